"""Measurements that several studies share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import xarray as xr

OTHERS = 20  # words beside a topic word in a sentence of the reference task


def axis(name: str, labels) -> xr.DataArray:
    """A new dimension with these labels, for ``xr.concat``."""
    return xr.DataArray(np.asarray(list(labels)), dims=name, name=name)


def side_by_side(parts: Sequence[xr.Dataset], name: str, labels: Iterable[Any]) -> xr.Dataset:
    """Put data sets along a new dimension; the coordinate ``asked`` says which seeds each of them
    was asked for.

    Where parts have different seeds, the table has all of them, and nan where a part was never run:
    what is asked for and missing must be told from what was not asked for.

    >>> few, many = (xr.Dataset({"x": ("seed", np.ones(n))}, {"seed": range(n)}) for n in (1, 3))
    >>> side_by_side([few, many], "arm", ["few", "many"]).asked.values.tolist()
    [[True, False, False], [True, True, True]]
    """
    dim = axis(name, labels)
    bare = [part.drop_vars("asked", errors="ignore") for part in parts]
    table = cast(xr.Dataset, xr.concat(bare, dim=dim, join="outer"))
    if "seed" not in table.dims:
        return table
    seeds = table["seed"].values
    asked = [_asked(part).reindex(seed=seeds).fillna(False).astype(bool) for part in parts]
    return table.assign_coords(asked=xr.concat(asked, dim=dim))


def _asked(part: xr.Dataset) -> xr.DataArray:
    if "asked" in part.coords:
        return part.coords["asked"]
    return xr.DataArray(
        np.ones(part.sizes["seed"], bool), dims="seed", coords={"seed": part["seed"].values}
    )


def asked_of(*values: xr.DataArray) -> np.ndarray:
    """Whether each seed was asked for in all of some measurements with the same seeds: shape
    (seeds,).
    """
    masks = [value.coords["asked"].values for value in values if "asked" in value.coords]
    return np.all([np.ones(values[0].sizes["seed"], bool), *masks], axis=0)


def measure_relation(data: xr.Dataset, others: Any = OTHERS) -> xr.Dataset:
    """Everything that the relation's claims judge, its prediction for the figures, and the
    control's wrong |q|.
    """
    from attnlab.dynamics import identity_error, score_sum_error, sen_error, sen_norm

    start = data.norm.sel(step=0, drop=True)
    measured = {
        "score": data.score,
        "query_norm": data.query_norm,
        "loss": data.loss,
        "accuracy_test": data.accuracy_test,
        "scaled_norm": data.query_norm * data.norm,
        "predicted_scaled_norm": sen_norm(
            data.score, others=others, query_norm=data.query_norm, initial_norm=start
        ),
        "sen_error": sen_error(data, others),
        "sen_error_wrong_query": sen_error(data.assign(query_norm=1.2 * data.query_norm), others),
    }
    if "i1" in data:
        measured["sen_error_corrected"] = sen_error(data, others, form="corrected")
    if "i2" in data:
        measured["identity_error"] = identity_error(data)
    if "score_sum" in data:
        measured["score_sum_error"] = score_sum_error(data)
    if "others_mass" in data:
        measured["sen_error_refined"] = sen_error(data, others, form="refined")
    return xr.Dataset(measured)


def measure_endings(run: xr.Dataset) -> xr.Dataset:
    """Final scores and norms of all words, which of them are topic words, and how well each tells
    the two apart.
    """
    from attnlab.dynamics import separation

    ends = run[["final_score", "final_norm"]]
    chosen = np.arange(ends.sizes["any_word"]) < run.sizes["word"]
    for name in ("score", "norm"):
        ends[f"final_separation_{name}"] = separation(ends[f"final_{name}"], chosen, dim="any_word")
    return ends.assign_coords(topical=("any_word", chosen))


def log_agreement(data: xr.Dataset, rows: int = 60) -> xr.DataArray:
    """Rank agreement of score and norm over recorded steps about evenly spaced in the logarithm.

    Training happens in log time: evenly spaced steps would be nearly all from the end, where both
    only rise.
    """
    from attnlab.dynamics import rank_agreement

    steps = data.step.values
    wanted = np.geomspace(max(steps[1], 1), steps[-1], rows)
    places = np.unique([0, *(int(np.argmin(abs(steps - w))) for w in wanted)])
    return rank_agreement(data.score.isel(step=places), data.norm.isel(step=places))


def predicted_errors(
    data: xr.Dataset, *, least_score: float = 0.05, settled: float = 0.1
) -> xr.Dataset:
    """Relative errors of the reduced model: along training, at its end, and of the onset; each with
    m halved too.

    Errors are relative to the measured score, and counted wherever it or the prediction is above
    ``least_score``. The onset is the step at which a score reaches half of its own last value; one
    that ends below ``least_score`` has none, and where only one of the two has one the error is
    infinite. A run whose loss is still above ``settled`` at the last step is in the midst of its
    onset and has no final score yet: ``final_error`` is nan there.
    """
    from attnlab.dynamics import onset_time

    steps = data.step.values

    def onset_of(score: xr.DataArray) -> xr.DataArray:
        return onset_time(score, time=steps).where(score.isel(step=-1, drop=True) >= least_score)

    onset = onset_of(data.score)
    done = data.loss.isel(step=-1, drop=True) <= settled
    found = {"onset": onset, "settled": done.astype(float)}
    for name, prefix in (("predicted", ""), ("halved", "halved_")):
        theory = data[f"{name}_score"]
        relevant = np.maximum(theory, data.score) > least_score
        error = (abs(theory - data.score) / data.score.clip(min=least_score)).where(relevant)
        early = onset_of(theory)
        missed = (
            onset.isnull() != early.isnull()
        )  # only one of the two ever sets off: as wrong as can be
        found[f"{prefix}score_error"] = error
        found[f"{prefix}final_error"] = error.isel(step=-1, drop=True).where(done)
        found[f"{prefix}onset_error"] = (abs(early - onset) / onset).where(~missed, np.inf)
        if name == "predicted":
            found["predicted_onset"] = early
    return xr.Dataset(found)
