"""Conservation laws of training word attention (docs/theory.md#a4), and how much descent violates them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attnlab._errors import AttnlabError
from attnlab.training import AbstractProbe, InstantProbe, Moment, Transition


@dataclass(frozen=True)
class ScoreSum(InstantProbe):
    """``score_sum`` = Σ_w s_w and ``score_total`` = Σ_w |s_w| over *all* words.

    Gradients by the scores of a softmax sum to zero, so Σ_w s_w is conserved if the query is frozen.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number each."""
        return {"score_sum": (), "score_total": ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Both sums."""
        s = moment.frame.scores(moment.trained)
        return {"score_sum": jnp.sum(s), "score_total": jnp.sum(jnp.abs(s))}


@dataclass(frozen=True)
class Balance(AbstractProbe):
    """``balance_drift`` = ‖(EᵀE − WWᵀ) − its start‖_F, and ``head_square`` = ‖WWᵀ‖_F.

    W is the head's first layer. If it is trained, the flow conserves EᵀE − WWᵀ.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number each."""
        return {"balance_drift": (), "head_square": ()}

    @property
    def every_step(self) -> bool:
        """False: only the initial value is kept."""
        return False

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> Array:
        """EᵀE − WWᵀ at the start."""
        embeddings, head = _squares(moment)
        return embeddings - head

    def follow(self, memory: Array, transition: Transition) -> Array:
        """Unchanged."""
        del transition
        return memory

    def measure(self, memory: Array, moment: Moment) -> dict[str, Array]:
        """The drift."""
        embeddings, head = _squares(moment)
        return {
            "balance_drift": jnp.linalg.norm(embeddings - head - memory),
            "head_square": jnp.linalg.norm(head),
        }


def _squares(moment: Moment) -> tuple[Array, Array]:
    weight = moment.frame.valued.head(moment.trained["values"]).first_weight()
    if weight is None:
        raise AttnlabError(
            "Balance needs a head with a linear first layer, which a user-defined head does not "
            "declare; use head='linear' or 'two_layer'"
        )
    embeddings = moment.frame.embeddings(moment.trained)
    return embeddings.T @ embeddings, weight @ weight.T


@dataclass(frozen=True)
class QueryBalance(AbstractProbe):
    """The laws of a trained query: the flow conserves KᵀK − qqᵀ, and Σ_w κ_w is conserved exactly.

    ``query_balance_drift`` = ‖(KᵀK − qqᵀ) − its start‖_F, ``query_square`` = |q|², ``query_turn`` =
    1 − cos(q, q₀), ``key_sum`` = max over coordinates of |Σ_w κ_w − its start|.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number each."""
        return {"query_balance_drift": (), "query_square": (), "query_turn": (), "key_sum": ()}

    @property
    def every_step(self) -> bool:
        """False: only the initial value is kept."""
        return False

    @property
    def needs_context(self) -> bool:
        """No."""
        return False

    def initial(self, moment: Moment) -> tuple[Array, Array, Array]:
        """KᵀK − qqᵀ, the query's direction and Σ_w κ_w at the start."""
        keys, query = moment.frame.keyed.restore(moment.trained["scores"])
        return (
            keys.T @ keys - jnp.outer(query, query),
            query / jnp.linalg.norm(query),
            jnp.sum(keys, axis=0),
        )

    def follow(
        self, memory: tuple[Array, Array, Array], transition: Transition
    ) -> tuple[Array, Array, Array]:
        """Unchanged."""
        del transition
        return memory

    def measure(self, memory: tuple[Array, Array, Array], moment: Moment) -> dict[str, Array]:
        """The drifts."""
        balance, direction, key_sum = memory
        keys, query = moment.frame.keyed.restore(moment.trained["scores"])
        # ½|a − b|² = 1 − cos of unit vectors, without the cancellation of 1 − cos.
        turn = 0.5 * jnp.sum((query / jnp.linalg.norm(query) - direction) ** 2)
        return {
            "query_balance_drift": jnp.linalg.norm(
                keys.T @ keys - jnp.outer(query, query) - balance
            ),
            "query_square": query @ query,
            "query_turn": turn,
            "key_sum": jnp.max(jnp.abs(jnp.sum(keys, axis=0) - key_sum)),
        }


def score_sum_error(data: xr.Dataset) -> xr.DataArray:
    """``|Σ_w s_w − its start| / Σ_w |s_w|`` at the recorded steps after the first."""
    change = abs(data.score_sum - data.score_sum.sel(step=0, drop=True))
    return (change / data.score_total).where(data.step > 0).rename("score_sum_error")


def balance_error(data: xr.Dataset) -> xr.DataArray:
    """Drift of EᵀE − WWᵀ at the last step over the final ‖WWᵀ‖_F, per seed."""
    return (data.balance_drift / data.head_square).isel(step=-1, drop=True).rename("balance_error")


def query_balance_error(data: xr.Dataset) -> xr.DataArray:
    """Drift of KᵀK − qqᵀ at the last step over the final |q|², per seed."""
    return (
        (data.query_balance_drift / data.query_square)
        .isel(step=-1, drop=True)
        .rename("query_balance_error")
    )


def order_in_step(step_sizes: np.ndarray, errors: np.ndarray) -> Any:
    """Fitted exponent p of ``error ∝ step_size^p``; axis 0 of ``errors`` runs over step sizes.

    >>> float(order_in_step(np.array([0.1, 0.05]), np.array([4e-4, 2e-4])).round(3))
    1.0
    """
    x = np.log(np.asarray(step_sizes, np.float64))
    y = np.log(np.asarray(errors, np.float64))
    centred = x - x.mean()
    return np.tensordot(centred, y, axes=(0, 0)) / (centred @ centred)
