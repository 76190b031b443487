"""Phases of training (docs/theory.md#a6): suppression, onset, saturation; separation; equal loss.

Functions take labelled arrays with a ``step`` dimension and keep all other dimensions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int
from scipy.stats import rankdata

from attnlab._errors import AttnlabError
from attnlab.dynamics._rates import onset_time
from attnlab.models import LinearHead, WordAttention
from attnlab.stats import crossing
from attnlab.training import InstantProbe, Moment

PHASES = ("suppressed", "waiting", "rising", "saturated")


@dataclass(frozen=True)
class Separation(InstantProbe):
    """``separation_score`` and ``separation_norm``: how well each separates the chosen words.

    The area under the ROC curve: the probability that a chosen word's score (norm) exceeds that of
    another word.
    """

    @property
    def dims(self) -> dict[str, tuple[str, ...]]:
        """One number each."""
        return {"separation_score": (), "separation_norm": ()}

    def look(self, moment: Moment) -> dict[str, Array]:
        """Compare every chosen word with every other."""
        scores = moment.frame.scores(moment.trained)
        norms = jnp.sum(moment.frame.embeddings(moment.trained) ** 2, axis=1)
        return {
            "separation_score": area_under_curve(scores, moment.words),
            "separation_norm": area_under_curve(norms, moment.words),
        }


def area_under_curve(
    values: Float[Array, "words"], chosen: Int[Array, "chosen"]
) -> Float[Array, ""]:
    """``separation`` inside a compiled loop: all pairs are compared, ties count half."""
    other = jnp.ones(values.shape, values.dtype).at[chosen].set(0)
    above = jnp.sign(values[chosen][:, None] - values[None, :]) / 2 + 0.5
    return jnp.mean(above @ other) / jnp.sum(other)


def separation(
    values: xr.DataArray, chosen: xr.DataArray | np.ndarray, dim: str = "word"
) -> xr.DataArray:
    """Area under the ROC curve: the probability that a chosen value exceeds another; ties count half.

    >>> values = xr.DataArray([3.0, 1.0, 2.0, 0.0], dims="word")
    >>> float(separation(values, np.array([True, False, True, False])))
    1.0
    """

    def area(row: np.ndarray, mask: np.ndarray) -> float:
        mask = mask.astype(bool)
        inside, outside = int(mask.sum()), int((~mask).sum())
        if inside == 0 or outside == 0 or np.isnan(row).any():
            return float("nan")
        # Mann and Whitney: the rank sum minus its smallest possible value counts the pairs won.
        won = rankdata(row)[mask].sum() - inside * (inside + 1) / 2
        return float(won / (inside * outside))

    labelled = chosen if isinstance(chosen, xr.DataArray) else xr.DataArray(chosen, dims=dim)
    return xr.apply_ufunc(area, values, labelled, input_core_dims=[[dim], [dim]], vectorize=True)


def falling_share(values: xr.DataArray, dim: str = "step") -> xr.DataArray:
    """Share of the increments between recorded steps that are negative; nan without increments.

    0 for values that never fall.

    >>> float(falling_share(xr.DataArray([0.0, -1.0, 1.0, 2.0, 2.0], dims="step")))
    0.25
    """
    change = values.diff(dim)
    known = change.notnull().sum(dim)
    return (change < 0).sum(dim) / known.where(known > 0)


def rank_agreement(first: xr.DataArray, second: xr.DataArray, dim: str = "step") -> xr.DataArray:
    """Spearman's rank correlation along training: 1 if both always rise and fall together.

    It does not see direction: it is 1 also where both only fall (`falling_share`).

    >>> s = xr.DataArray([0.0, 1.0, 4.0], dims="step")
    >>> float(rank_agreement(s, s**2))
    1.0
    """

    def spearman(x: np.ndarray, y: np.ndarray) -> float:
        both = ~(np.isnan(x) | np.isnan(y))
        if both.sum() < 3:
            return float("nan")
        a, b = rankdata(x[both]), rankdata(y[both])
        a, b = a - a.mean(), b - b.mean()
        spread = np.sqrt((a @ a) * (b @ b))
        return float(a @ b / spread) if spread > 0 else float("nan")

    return xr.apply_ufunc(spearman, first, second, input_core_dims=[[dim], [dim]], vectorize=True)


def alignment(
    model: WordAttention, words: Sequence[int] | np.ndarray, labels: Sequence[int] | np.ndarray
) -> np.ndarray:
    """``ν_w·(W_y − mean_j W_j)`` of a linear head, shape (words,).

    Positive if a word's embedding points to its label y. Words whose *initial* alignment is negative
    are first suppressed (docs/theory.md#a6).
    """
    if not isinstance(model.head, LinearHead):
        raise AttnlabError(
            f"alignment is defined for a linear head, got {type(model.head).__name__}; use "
            "head='fixed' or 'linear'"
        )
    weight = np.asarray(model.head.weight)
    toward = weight[:, np.asarray(labels)].T - weight.mean(axis=1)
    return np.sum(np.asarray(model.embeddings)[np.asarray(words)] * toward, axis=1)


def suppression(data: xr.Dataset, *, least_depth: float = 1e-3) -> xr.Dataset:
    """Words that are first suppressed: their score falls by more than ``least_depth`` at some step.

    - ``dip``: whether it does; ``depth``: the lowest score minus the first; ``dip_step``: the step
      of the lowest score;
    - ``fall_together``: whether the norm is then below its initial value, too (nan without a dip);
    - ``recovered_step``: the first later step at which the score is back at its initial value (nan
      if never).

    >>> data = xr.Dataset({"score": ("step", [0.0, -0.2, 0.5]), "norm": ("step", [1.0, 0.9, 2.0])}, {"step": [0, 1, 2]})
    >>> found = suppression(data)
    >>> bool(found.dip), float(found.depth), int(found.dip_step), float(found.fall_together)
    (True, -0.2, 1, 1.0)
    """
    relative = data.score - data.score.isel(step=0, drop=True)
    depth = relative.min("step")
    dip = depth < -least_depth
    lowest = relative.fillna(np.inf).argmin("step")
    step = data.step.isel(step=lowest).drop_vars("step")
    fallen = (data.norm.isel(step=lowest) < data.norm.isel(step=0)).drop_vars(
        "step", errors="ignore"
    )
    back = (relative >= 0) & (data.step > step)
    recovered = data.step.where(back).min("step")
    return xr.Dataset(
        {
            "dip": dip,
            "depth": depth,
            "dip_step": step.where(dip),
            "fall_together": fallen.where(dip).astype(float),
            "recovered_step": recovered.where(dip),
        }
    )


def phases(
    data: xr.Dataset,
    *,
    onset_level: float | None = None,
    least_depth: float = 1e-3,
    least_score: float = 0.05,
) -> xr.Dataset:
    """Phases of each word's score: suppression, onset, saturation.

    - ``suppressed_until``: step of the lowest score, for a word that dips (nan otherwise);
    - ``onset``: the first step at which the score reaches ``onset_level``, by default half of its
      own last value, interpolated (nan if never, and for scores that end below ``least_score``);
    - ``saturation``: the first recorded step after the steepest one at which the growth of the
      score in log time is at most half of its maximum (nan if not yet);
    - ``phase``: the phase of each step, an index into ``PHASES``: suppressed, waiting, rising,
      saturated.
    """
    dips = suppression(data, least_depth=least_depth)
    onset = onset_time(data.score, level=onset_level, time=data.step.values)
    onset = onset.where(data.score.isel(step=-1, drop=True) >= least_score)
    saturation = xr.apply_ufunc(
        _saturation,
        data.score,
        data.step.astype(float),
        input_core_dims=[["step"], ["step"]],
        vectorize=True,
    )
    saturation = saturation.where(onset.notnull())
    step = data.step.astype(float)
    phase = xr.full_like(data.score, 1.0)
    phase = phase.where(~(step < dips.dip_step), 0.0)
    phase = phase.where(~(step >= onset), 2.0)
    phase = phase.where(~(step >= saturation), 3.0)
    return xr.Dataset(
        {
            "suppressed_until": dips.dip_step,
            "depth": dips.depth,
            "onset": onset,
            "saturation": saturation,
            "phase": phase.where(data.score.notnull()),
        },
        attrs={"phases": list(PHASES)},
    )


def at_loss(values: xr.DataArray, loss: xr.DataArray, level: float) -> xr.DataArray:
    """Values at the point where the loss first falls to a level: compares runs at equal loss.

    Interpolated between recorded steps, linearly in log loss; nan if the loss never reaches the
    level.

    >>> loss = xr.DataArray([1.0, 0.1, 0.001], dims="step")
    >>> round(float(at_loss(xr.DataArray([0.0, 2.0, 6.0], dims="step"), loss, 0.01)), 6)
    4.0
    """

    def read(y: np.ndarray, losses: np.ndarray) -> float:
        if np.isnan(losses).all():  # a run that failed
            return float("nan")
        place = crossing(
            np.arange(losses.size), np.log(losses), np.log(level), log_x=False, rising=False
        ).value
        if not np.isfinite(place):
            return float("nan")
        return float(np.interp(place, np.arange(losses.size), y))

    return xr.apply_ufunc(read, values, loss, input_core_dims=[["step"], ["step"]], vectorize=True)


def _saturation(score: np.ndarray, step: np.ndarray) -> float:
    """The first step after the steepest one at which ds / d log step is at most half its maximum."""
    keep = (step > 0) & ~np.isnan(score)
    if keep.sum() < 3:
        return float("nan")
    growth: Any = np.gradient(score[keep], np.log(step[keep]))
    steepest = int(np.argmax(growth))
    slow = np.flatnonzero(growth[steepest:] <= 0.5 * growth[steepest])
    if slow.size == 0 or growth[steepest] <= 0:
        return float("nan")
    return float(step[keep][steepest + slow[0]])
