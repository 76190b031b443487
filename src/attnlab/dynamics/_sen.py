"""The relation of a word's score and the norm of its embedding (SEN; docs/theory.md#a3).

From Lu et al. 2021, section 4. Functions take plain or labelled arrays and broadcast by name; probes
record the terms they need inside the training loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array

from attnlab._errors import AttnlabError
from attnlab.training import AbstractProbe, InstantProbe, Moment, Transition

Form = Literal["plain", "corrected", "refined"]


@dataclass(frozen=True)
class SenTerms(AbstractProbe):
    """``i1`` and ``i2``: the terms that discrete steps add to the relation, summed over all steps.

    ``I₁ = ½ Σ_k |Δν_k|²`` and ``I₂ = Σ_k step Σ_{n∋w} a_n c_n·g_n`` with ``g_n = −∂L/∂c_n``. For a
    head with a linear first layer ``c_n·g_n = −p_n·∂L/∂p_n`` with the projected context p, so
    contexts are never computed. Only the exact identity needs I₂, at a quarter of the cost of a
    step: ``second=False`` leaves it out.
    """

    second: bool = True

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number per word each."""
        return {"i1": ("word",), "i2": ("word",)} if self.second else {"i1": ("word",)}

    @property
    def every_step(self) -> bool:
        """True: both are sums over all steps."""
        return True

    @property
    def needs_context(self) -> bool:
        """For I₂."""
        return self.second

    def initial(self, moment: Moment) -> tuple[Array, Array]:
        """Zero."""
        zero = jnp.zeros_like(moment.scores())
        return zero, zero

    def follow(self, memory: tuple[Array, Array], transition: Transition) -> tuple[Array, Array]:
        """Add one step's terms."""
        moment, (i1, i2) = transition.moment, memory
        change = moment.frame.embedding_change(transition.update, moment.words)
        i1 = i1 + 0.5 * jnp.sum(change**2, axis=1)
        if not self.second:
            return i1, i2
        term = moment.evaluation.context_term
        assert term is not None, "the loop computes the context term for a probe that needs it"
        return i1, i2 + transition.step_size * term[moment.words]

    def measure(self, memory: tuple[Array, Array], moment: Moment) -> dict[str, Array]:
        """The sums."""
        del moment
        return {"i1": memory[0], "i2": memory[1]} if self.second else {"i1": memory[0]}


@dataclass(frozen=True)
class Surroundings(InstantProbe):
    """The other words in a word's sentences, which the refined relation measures.

    ``others_mass`` is ⟨Z_o⟩, the mean over sentences of the sum of the other words' e^s;
    ``offset_norm`` is |ν − ⟨o⟩|, the distance of the embedding from the mean context of the other
    words.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number per word each."""
        return {"others_mass": ("word",), "offset_norm": ("word",)}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Sums over the sentences of each word, without a context per pair of word and sentence."""
        incidence, index = moment.objective.incidence, moment.objective.incidence.by_word
        s, nu = moment.frame.scores(moment.trained), moment.frame.embeddings(moment.trained)
        top = jnp.max(s)
        e = jnp.exp(s - top)[:, None]
        sums = incidence.sentence_sums(jnp.concatenate([e, e * nu], axis=1))
        own = index.weights * e[index.rows, 0]
        others = jnp.maximum(sums[index.ids, 0] - own, 0)
        inverse = jnp.where(others > 0, 1 / jnp.where(others > 0, others, 1), 0)
        # The context of the other words in sentence n(k) is (C_{n(k)} − own_k ν) / others_k. Its
        # sum over the sentences of a word is a row sum of X with the counts replaced by weights.
        weighted = eqx.tree_at(lambda x: x.by_word.weights, incidence, inverse).word_sums(
            sums[:, 1:]
        )
        ones = jnp.ones((incidence.sentences, 1), s.dtype)
        share = eqx.tree_at(lambda x: x.by_word.weights, incidence, own * inverse).word_sums(ones)
        mass = eqx.tree_at(lambda x: x.by_word.weights, incidence, others).word_sums(ones)[:, 0]
        present = jnp.diff(index.offsets).astype(s.dtype)
        mean_other = (weighted - share * nu) / present[:, None]
        offset = jnp.sqrt(jnp.sum((nu - mean_other) ** 2, axis=1))
        chosen = moment.words
        return {
            "others_mass": (jnp.exp(top) * mass / present)[chosen],
            "offset_norm": offset[chosen],
        }


def sen_norm(
    score: Any, *, others: Any, query_norm: Any, initial_norm: Any = 0.0, i1: Any = 0.0
) -> Any:
    """``|q||ν|`` predicted from the score: ``√max(0, 2(s + (e^s − 1)/m + |q|² I₁) + |q|²|ν₀|²)``.

    ``others`` is m, the weight of the other words of a sentence. Keys start at zero.

    >>> float(sen_norm(2.0, others=20, query_norm=1.0).round(4))
    2.1538
    """
    half = score + np.expm1(score) / others + query_norm**2 * i1
    return np.sqrt(np.maximum(2 * half + query_norm**2 * initial_norm**2, 0.0))


def sen_error(
    data: xr.Dataset, others: Any, *, form: Form = "plain", least_score: float = 0.05
) -> xr.DataArray:
    """Relative error of the predicted ``|q||ν|``; nan where the score is ≤ ``least_score``.

    - ``"plain"``: the relation with ``others`` other words per sentence (a number, or one per word);
    - ``"corrected"``: with I₁, the difference of descent and flow; needs ``SenTerms``;
    - ``"refined"``: with the measured ⟨Z_o⟩ and ν − ⟨o⟩; needs ``Surroundings``.

    ``data`` holds ``score``, ``norm`` and ``query_norm``, recorded from step 0 on.
    """
    _need(data, "score", "norm", "query_norm")
    if form == "refined":
        _need(data, "others_mass", "offset_norm")
        norm, others = data.offset_norm, data.others_mass
    else:
        norm = data.norm
    i1 = 0.0
    if form == "corrected":
        _need(data, "i1")
        i1 = data.i1
    start = norm.sel(step=0, drop=True)
    predicted = sen_norm(
        data.score, others=others, query_norm=data.query_norm, initial_norm=start, i1=i1
    )
    measured = data.query_norm * norm
    error = abs(predicted - measured) / measured.where(measured > 0)
    return error.where(data.score > least_score).rename("sen_error")


def identity_error(data: xr.Dataset, *, least_score: float = 1e-3) -> xr.DataArray:
    """Relative error of the exact discrete identity, nan where ``|s| ≤ least_score``.

    ``s(T) − s(0) = |q|² [½(|ν(T)|² − |ν(0)|²) − I₁ − I₂]`` holds for gradient descent and SGD with
    a frozen query.
    """
    _need(data, "score", "norm", "query_norm", "i1", "i2")
    gained = data.score - data.score.sel(step=0, drop=True)
    half = 0.5 * (data.norm**2 - data.norm.sel(step=0, drop=True) ** 2)
    error = abs(gained - data.query_norm**2 * (half - data.i1 - data.i2)) / abs(data.score)
    return error.where(abs(data.score) > least_score).rename("identity_error")


def _need(data: xr.Dataset, *names: str) -> None:
    missing = [name for name in names if name not in data]
    if missing:
        raise AttnlabError(
            f"the data set has no {missing[0]!r}; record it with the probe that measures it "
            f"(it has {sorted(map(str, data.data_vars))})"
        )
