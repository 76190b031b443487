"""Candidate predictors of the sample ratio, computed from inputs only (docs/theory.md#b2)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class Bounds:
    """Five quantities of a distribution of inputs; fields as in ``BoundRatios``."""

    mean_square: float
    largest_square: float
    fourth_moment: float
    participation: float
    intrinsic_dimension: float


@dataclass(frozen=True)
class BoundRatios:
    """Each quantity of the raw inputs x, divided by that of the attended inputs x⊙f(x).

    - ``mean_square``: E‖x‖²; ``largest_square``: max‖x‖²; ``fourth_moment``: √E‖x‖⁴;
    - ``participation``: (tr Σ)² / ‖Σ‖_F²; ``intrinsic_dimension``: tr Σ / λ_max, Σ the covariance
      of the inputs;
    - ``raw``, ``attended``: the quantities themselves.
    """

    mean_square: float
    largest_square: float
    fourth_moment: float
    participation: float
    intrinsic_dimension: float
    raw: Bounds
    attended: Bounds

    def as_dict(self) -> dict[str, float]:
        """The five ratios by name."""
        return {name: float(getattr(self, name)) for name in asdict(self.raw)}

    def __str__(self) -> str:
        parts = ", ".join(
            f"{name.replace('_', ' ')} {value:.3g}" for name, value in self.as_dict().items()
        )
        return f"raw over attended inputs: {parts} (candidate predictors of an order, not bounds that were proved)"


def bound_ratios(x: Any, attended: Any, *, centred: bool = True) -> BoundRatios:
    """The five ratios of raw against attended inputs, each of shape (samples, features).

    Further axes are flattened: for self-attention, x and V a (or x a) of every sample. The two may
    differ in their number of features, not in their samples. ``centred=False`` takes Σ = E xxᵀ
    instead of the covariance.

    These are *our candidate predictors* of the ratio of needed samples. They are not the theorems
    of Liu et al., whose statements and hypotheses are not reproduced here; they predict the order
    of settings, not the level of a ratio. Σ's two ratios are estimated from the samples: use many
    more samples than features.

    >>> x = np.eye(8) * 3.0
    >>> mask = np.array([1, 1, 0, 0, 0, 0, 0, 0])
    >>> found = bound_ratios(np.concatenate([x, -x]), np.concatenate([x, -x]) * mask)
    >>> found.mean_square, found.participation, found.intrinsic_dimension
    (4.0, 4.0, 4.0)
    """
    rows = _rows(x, "x"), _rows(attended, "attended")
    if len(rows[0]) != len(rows[1]):
        raise AttnlabError(
            f"x has {len(rows[0])} samples and attended {len(rows[1])}: expected the same samples "
            "in both"
        )
    raw, seen = (_bounds(each, centred) for each in rows)
    return _over(raw, seen)


def _over(raw: Bounds, seen: Bounds) -> BoundRatios:
    if min(asdict(seen).values()) <= 0:
        raise AttnlabError(
            "attended inputs are all zero: expected some that are not; check that the mask is not "
            "empty"
        )
    ratios = {name: value / asdict(seen)[name] for name, value in asdict(raw).items()}
    return BoundRatios(**ratios, raw=raw, attended=seen)


def population_ratios(
    covariance: Any, kept: Any, *, kurtosis: float, squares: Any, draws: int
) -> BoundRatios:
    """The five ratios of a distribution itself, behind a mask that lets the numbers ``kept`` through.

    The numbers of x have mean 0, ``covariance`` Σ (p, p) and ``kurtosis`` E x_j⁴/(E x_j²)², and are
    independent or jointly normal, so that ``E x_i² x_j² = Σ_ii Σ_jj + 2 Σ_ij² + δ_ij (κ − 3) Σ_ii²``.
    The largest of ``draws`` inputs has no closed form: it is the expected one, from ``squares``
    (samples, 2), the squared lengths of many more inputs and of what the mask leaves of them.

    >>> lengths = np.full((10, 2), [8.0, 2.0])
    >>> found = population_ratios(np.eye(8), [0, 1], kurtosis=1.0, squares=lengths, draws=4)
    >>> found.mean_square, found.largest_square, found.fourth_moment, found.intrinsic_dimension
    (4.0, 4.0, 4.0, 4.0)
    """
    whole = np.asarray(covariance, np.float64)
    part = whole[np.ix_(kept, kept)]
    largest = np.asarray(squares, np.float64)
    raw, seen = (
        _moments(each, kurtosis, expected_largest(largest[:, k], draws))
        for k, each in enumerate((whole, part))
    )
    return _over(raw, seen)


def _moments(covariance: np.ndarray, kurtosis: float, largest: float) -> Bounds:
    variances = covariance.diagonal()
    trace, squared = variances.sum(), (covariance**2).sum()
    fourth = trace**2 + 2 * squared + (kurtosis - 3) * (variances**2).sum()
    return Bounds(
        mean_square=float(trace),
        largest_square=largest,
        fourth_moment=float(np.sqrt(fourth)),
        participation=float(trace**2 / squared),
        intrinsic_dimension=float(trace / np.linalg.eigvalsh(covariance)[-1]),
    )


def expected_largest(values: Any, draws: int) -> float:
    """``E max`` of so many draws, ``∫ v dF(v)^draws`` with F the distribution of ``values``.

    >>> expected_largest([1.0, 2.0], 2)
    1.75
    """
    ordered = np.sort(np.asarray(values, np.float64))
    below = np.arange(len(ordered) + 1) / len(ordered)
    return float(ordered @ np.diff(below**draws))


def _rows(values: Any, name: str) -> np.ndarray:
    data = np.asarray(values, np.float64)
    if data.ndim < 2 or len(data) < 2 or not np.isfinite(data).all():
        raise AttnlabError(
            f"{name} has shape {data.shape}: expected finite inputs of shape (samples, features), "
            "at least 2 samples"
        )
    return data.reshape(len(data), -1)


def _bounds(rows: np.ndarray, centred: bool) -> Bounds:
    squares = (rows**2).sum(axis=1)
    spread = rows - rows.mean(axis=0) if centred else rows
    # The nonzero eigenvalues of XᵀX and XXᵀ agree: the smaller of the two is enough.
    gram = spread.T @ spread if rows.shape[1] <= len(rows) else spread @ spread.T
    trace, top = np.trace(gram), np.linalg.eigvalsh(gram)[-1]
    if not top > 0:
        raise AttnlabError(
            "inputs do not vary between samples: expected a distribution; check that the mask is "
            "not empty"
        )
    return Bounds(
        mean_square=float(squares.mean()),
        largest_square=float(squares.max()),
        fourth_moment=float(np.sqrt((squares**2).mean())),
        participation=float(trace**2 / (gram**2).sum()),
        intrinsic_dimension=float(trace / top),
    )
