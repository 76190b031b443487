"""Scores of one model at several training set sizes, fitted in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Array

from attnlab._errors import AttnlabError

Fit = Callable[[int, Any], "float | Mapping[str, float]"]


@dataclass(frozen=True)
class Fitted:
    """One fit is done: what a progress callback is told. ``status`` is finished, failed or not
    finite.
    """

    done: int
    total: int
    seed: int
    size: int
    status: str
    reason: str

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"fit {self.done} of {self.total}: seed {self.seed}, {self.size} samples, {self.status}{why}"


def learning_curve(
    fit: Fit,
    sizes: Sequence[int],
    *,
    seeds: int | Sequence[int],
    root_seed: int = 0,
    progress: Callable[[Fitted], None] | None = None,
) -> xr.Dataset:
    """Call ``fit(size, key)`` for every seed and size; its scores as a data set with dims (seed,
    size).

    ``fit`` returns a number, stored as ``score``, or several by name. Seed k has the key
    ``fold_in(key(root_seed), k)`` at every size and for every model that is given the same
    ``root_seed``: models are compared on *paired* seeds, and samples drawn from the key can be
    nested (``on_subsets`` does so).

    A fit that raises does not end the others: its scores are nan, ``status`` says ``"failed"`` and
    ``reason`` why. A score that is nan or infinite is kept, with the status ``"not finite"``.
    ``progress`` is told of every fit.

    >>> data = learning_curve(lambda size, key: 1.0 / size, [1, 2, 4], seeds=2)
    >>> data.score.values.tolist(), data.status.values[0, 0].item()
    ([[1.0, 0.5, 0.25], [1.0, 0.5, 0.25]], 'finished')
    """
    numbers = list(range(seeds)) if isinstance(seeds, int) else [int(k) for k in seeds]
    counts = [int(size) for size in sizes]
    if not numbers or len(set(numbers)) < len(numbers):
        raise AttnlabError(f"seeds={seeds!r}: expected a positive number, or distinct seed numbers")
    if not counts or min(counts) < 1 or (np.diff(counts) <= 0).any():
        raise AttnlabError(
            f"sizes={list(sizes)!r}: expected increasing positive numbers of samples"
        )
    shape, root = (len(numbers), len(counts)), jax.random.key(root_seed)
    scores: dict[str, np.ndarray] = {}
    status, reason = np.full(shape, "", object), np.full(shape, "", object)
    for row, seed in enumerate(numbers):
        key = jax.random.fold_in(root, seed)
        for column, size in enumerate(counts):
            found, status[row, column], reason[row, column] = _one(fit, size, key)
            for name, value in found.items():
                scores.setdefault(name, np.full(shape, np.nan))[row, column] = value
            if progress is not None:
                done = row * len(counts) + column + 1
                words = status[row, column], reason[row, column]
                progress(Fitted(done, len(numbers) * len(counts), seed, size, *words))
    if not scores:
        scores["score"] = np.full(shape, np.nan)
    dims = ("seed", "size")
    texts = {"status": (dims, status.astype(str)), "reason": (dims, reason.astype(str))}
    return xr.Dataset(
        {**{name: (dims, values) for name, values in scores.items()}, **texts},
        coords={"seed": numbers, "size": counts},
        attrs={"root_seed": root_seed, "failed": int((status == "failed").sum())},
    )


def _one(fit: Fit, size: int, key: Array) -> tuple[dict[str, float], str, str]:
    """The scores of one fit, how it ended, and why."""
    try:
        result = fit(size, key)
        found = result if isinstance(result, Mapping) else {"score": result}
        scores = {str(name): float(value) for name, value in found.items()}
        if not scores or {"status", "reason", "seed", "size"} & set(scores):
            raise AttnlabError(
                f"fit returned the names {sorted(scores)}: expected scores, none named status or "
                "reason"
            )
    except (
        Exception
    ) as error:  # A user's function may fail in any way; Ctrl-C still ends everything.
        return {}, "failed", f"{type(error).__name__}: {error}"
    odd = [name for name, value in scores.items() if not np.isfinite(value)]
    return (
        (scores, "not finite", f"{', '.join(odd)} is not finite")
        if odd
        else (scores, "finished", "")
    )


def on_subsets(fit: Callable[[np.ndarray, Any], Any], available: int) -> Fit:
    """Turn ``fit(subset, key)`` into ``fit(size, key)``: the subset is the rows of the first
    ``size`` samples of a random order of ``available``, drawn from the key.

    Subsets of one seed are nested and the same for every model, so that what the drawn samples do
    cancels in a ratio.

    >>> fit = on_subsets(lambda subset, key: len(set(subset.tolist())), 10)
    >>> learning_curve(fit, [3, 10], seeds=1).score.values.tolist()
    [[3.0, 10.0]]
    """

    def fit_size(size: int, key: Any) -> Any:
        if size > available:
            raise AttnlabError(
                f"size {size} of {available} available samples: expected no more than there are"
            )
        order_key, fit_key = jax.random.split(key)
        return fit(np.asarray(jax.random.permutation(order_key, available))[:size], fit_key)

    return fit_size
