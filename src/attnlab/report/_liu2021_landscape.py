"""Figures of the claims about minima: how good and how flat they are; and training at the edge of
stability.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._marks import Mark, rows_figure
from attnlab.report._page import Figure
from attnlab.report._text import interval, number, plain
from attnlab.stats import Location, interval_of, share_interval

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_GOOD = 0.1
_BAND = (0.95, 1.15)
_ERROR = "prediction error, E(ŷ − g)² / Var g"
_NAMES = {
    "known-attention": "known gate",
    "known-weights": "known weights",
    "known-weights-plain": "known weights, no w_V",
    "words-baseline": "MLP on words",
}
_MEASURES = {
    "largest": "largest eigenvalue",
    "trace": "trace of the Hessian",
    "trace_per_parameter": "trace per parameter",
    "keskar": "Keskar's ε-sharpness",
    "sam": "SAM sharpness",
    "adaptive_sam": "adaptive SAM sharpness",
    "petzka": "Petzka's relative flatness",
}


def _local_minima_known(data: Data) -> list[Figure]:
    table = data["minima"]
    return [
        _shares(
            table,
            id="minima_shares",
            title="Share of good minima by model and samples",
            asked={("known-attention", 128): 0.95, ("known-weights-plain", 128): 0.8},
        ),
        _errors(
            table,
            128,
            id="minima_errors_small",
            title="The error of every certified minimum, 128 samples",
        ),
    ]


def _local_minima_learned(data: Data) -> list[Figure]:
    table = data["minima"]
    models = table["model"].values.tolist()
    columns = ["starts certified", "minima per problem", "different ones", "zero modes"]
    end = table.sel(samples=512)
    cells = [
        [
            _mean(end["certified"].sel(model=model)),
            _mean(end["minima"].sel(model=model)),
            _mean(end["distinct"].sel(model=model)),
            _mean(end["zero_modes"].sel(model=model)),
        ]
        for model in models
    ]
    return [
        _errors(
            table,
            512,
            id="minima_errors_large",
            title="The error of every certified minimum, 512 samples",
        ),
        heat_table(
            [_name(model) for model in models],
            columns,
            cells,
            id="minima_counts",
            title="What was found, 512 samples",
            tones=[[""] * len(columns) for _ in models],
            caption="Means over problems. Minima that symmetry maps to each other count as one in "
            "the third column; "
            "zero modes are directions of symmetry, along which the loss does not change.",
        ),
    ]


def _stationary(data: Data) -> list[Figure]:
    table = data["saddles"]
    rows = [
        _errors_row(
            "minima of the known gate",
            data["minima"]["error"].sel(model="known-attention", samples=128),
        )
    ]
    rows += [
        _errors_row(f"saddles of the {_name(model)}", table["saddle_error"].sel(model=model))
        for model in table["model"].values.tolist()
    ]
    models = table["model"].values.tolist()
    columns = [
        "searches certified",
        "saddles per problem",
        "good stationary points",
        "directions down, at most",
    ]
    cells = [
        [
            _mean(table["certified"].sel(model=model)),
            _mean(table["saddles"].sel(model=model)),
            _share(table["good"].sel(model=model))[3],
            float(_finite(table["down"].sel(model=model)).max(initial=0)),
        ]
        for model in models
    ]
    return [
        dots_figure(
            _drawable(rows),
            id="saddle_errors",
            title="Saddles against minima: the error of each",
            x_label=_ERROR,
            caption="One dot per certified point, the bar is the median. On the shaded side a "
            "point is good. An error "
            "of 1 is that of a constant.",
        ),
        heat_table(
            [_name(model) for model in models],
            columns,
            cells,
            id="saddle_counts",
            title="What was found",
            tones=[[""] * len(columns) for _ in models],
            caption="Stationary points of any kind. Shares of good ones with 95 % intervals over "
            "problems.",
        ),
    ]


def _falls(data: Data) -> list[Figure]:
    table = data["minima"]
    sizes = table["samples"].values.astype(float)
    models = table["model"].values.tolist()
    series = {
        _name(model): table["typical"]
        .sel(model=model)
        .dropna("seed", how="all")
        .transpose("seed", "samples")
        for model in models
    }
    first = float(np.nanmedian(table["typical"].sel(model="known-attention").isel(samples=0)))
    judged = ("known-attention", "known-weights-plain")
    found = [_estimated(_finite(table["fall"].sel(model=model)), "median") for model in models]
    tones = [
        [_tone(one, -np.inf, -0.5) if model in judged else ""]
        for model, one in zip(models, found, strict=True)
    ]
    return [
        band_figure(
            sizes,
            series,
            id="fall_errors",
            title="The error of minima against samples",
            x_label="samples",
            y_label="median error of a problem's minima",
            log_x=True,
            log_y=True,
            singles=0,
            guides={"slope −1/2": (sizes, first * (sizes / sizes[0]) ** -0.5)},
            caption="Line: median over problems. Band: 10–90 % of problems. The guide begins at "
            "the known gate's.",
        ),
        heat_table(
            [_name(model) for model in models],
            ["exponent of the error in n"],
            [[one[3]] for one in found],
            id="fall_exponents",
            title="How fast the error falls",
            tones=tones,
            caption="Median over problems, with its 95 % interval; −0.5 or less is asked for of "
            "the two models of "
            "known attention.",
        ),
    ]


def _flatness_known(data: Data) -> list[Figure]:
    table = data["flatness"]
    return [
        _ratios(
            table,
            "known-attention",
            id="flat_known",
            title="Flatness of the known gate over the baseline's",
        ),
        _ratios(
            table, "baseline", id="flat_control", title="The control: one baseline over another"
        ),
    ]


def _flatness_learned(data: Data) -> list[Figure]:
    table = data["flatness"]
    rows = [
        DotRow(f"{_MEASURES[measure]}, {_name(model)}", one, 0.5)
        for model in ("self-attention", "known-attention")
        for measure in ("trace", "petzka")
        if (one := table["ratio"].sel(model=model, measure=measure).dropna("seed")).size
    ]
    return [
        _ratios(
            table,
            "self-attention",
            id="flat_learned",
            title="Flatness of self-attention over an MLP's",
        ),
        dots_figure(
            _drawable(rows),
            id="flat_seeds",
            title="The two measures that are asked about, seed by seed",
            x_label="ratio to the model without attention",
            caption="One dot per seed, the bar is the median. On the shaded side attention is at "
            "least twice as flat.",
        ),
    ]


def _edge(data: Data) -> list[Figure]:
    table = data["edge"]
    sizes = table["step_size"].values.tolist()
    steps = table["step"].values

    def series(name: str) -> dict[str, xr.DataArray]:
        return {
            f"step size {number(size)}": table[name].sel(step_size=size).dropna("seed", how="all")
            for size in sizes
        }

    cells, tones = [], []
    for size in sizes:
        values = _finite(table["last"].sel(step_size=size))
        found = _estimated(values, "mean")
        ends = interval((values.min(), values.max())) if values.size else "–"
        cells.append([found[3], ends, _mean(table["converged"].sel(step_size=size))])
        tones.append([_tone(found, *_BAND), "", ""])
    columns = ["mean over the last fifth", "from seed to seed", "looks that converged"]
    return [
        band_figure(
            steps,
            series("edge"),
            id="edge_course",
            title="λ_max · step size / 2 along training",
            y_label="λ_max · step size / 2",
            lines={"0.95": _BAND[0], "1.15": _BAND[1]},
            caption="Plain descent on a quadratic is stable only below 1. Line: median over "
            "seeds. Band: 10–90 % of "
            "seeds. An eigenvalue that had not converged is left out.",
        ),
        band_figure(
            steps,
            series("loss"),
            id="edge_loss",
            title="The training loss meanwhile",
            y_label="training loss",
            log_y=True,
            singles=0,
        ),
        heat_table(
            [f"step size {number(size)}" for size in sizes],
            columns,
            cells,
            id="edge_end",
            title="Where it ends",
            tones=tones,
            caption="Marked by whether the 95 % interval over seeds lies in 0.95 to 1.15. The "
            "smallest "
            "step is the control.",
        ),
    ]


def _shares(
    table: xr.Dataset, *, id: str, title: str, asked: Mapping[tuple[str, int], float]
) -> Figure:
    """The share of good minima of each model at each size, marked where the claim asks for one."""
    models, sizes = table["model"].values.tolist(), table["samples"].values.tolist()
    cells, tones = [], []
    for model in models:
        found = [_share(table["good"].sel(model=model, samples=n)) for n in sizes]
        limits = [asked.get((model, n)) for n in sizes]
        cells.append(
            [
                one[3] + ("" if limit is None else f", asked: ≥ {number(limit)}")
                for one, limit in zip(found, limits, strict=True)
            ]
        )
        tones.append(
            [
                "" if limit is None else _tone(one, limit, np.inf)
                for one, limit in zip(found, limits, strict=True)
            ]
        )
    return heat_table(
        [_name(model) for model in models],
        [f"n = {n}" for n in sizes],
        cells,
        id=id,
        title=title,
        tones=tones,
        caption=f"Of the certified minima, those with an error of at most {_GOOD}; means over "
        "problems with 95 % "
        "intervals.",
    )


def _errors(table: xr.Dataset, n: int, *, id: str, title: str) -> Figure:
    """A dot for each certified minimum."""
    rows = [
        _errors_row(_name(model), table["error"].sel(model=model, samples=n))
        for model in table["model"].values.tolist()
    ]
    return dots_figure(
        _drawable(rows),
        id=id,
        title=title,
        x_label=_ERROR,
        caption="One dot per certified minimum (of all problems and starts; equal ones are "
        "counted as often as they "
        "were found), the bar is the median. On the shaded side a minimum is good.",
    )


def _errors_row(label: str, errors: xr.DataArray) -> DotRow:
    return DotRow(label, _finite(errors), _GOOD)


def _drawable(rows: Sequence[DotRow]) -> list[DotRow]:
    """The rows in which anything was found; with none at all, the first stays, empty."""
    return [row for row in rows if np.size(row.values)] or list(rows[:1])


def _ratios(table: xr.Dataset, model: str, *, id: str, title: str) -> Figure:
    """The median ratio of every measure of flatness, with its interval."""
    marks = []
    for measure in table["measure"].values.tolist():
        value, low, high, said = _estimated(
            _finite(table["ratio"].sel(model=model, measure=measure)), "median ratio"
        )
        name = _MEASURES.get(measure, str(measure))
        kind = "exact" if np.isfinite(value) else "unknown"
        marks.append(
            Mark(
                name,
                value if kind == "exact" else 1.0,
                max(low, 0.0),
                high,
                kind,
                f"{plain(name)}<br>{plain(said)}",
            )
        )
    pairs = _mean(table["pairs"].sel(model=model))
    return rows_figure(
        marks,
        id=id,
        title=title,
        x_label="ratio at equal training error",
        lines={"0.5": 0.5, "1": 1.0},
        caption=f"Medians over seeds with 95 % intervals, from {number(pairs)} matched pairs a "
        "seed. Left of 1 the "
        "first model is flatter, left of 0.5 twice as flat. A crossed circle: no pair of minima "
        "matched.",
    )


def _estimated(values: np.ndarray, statistic: Location) -> tuple[float, float, float, str]:
    """Estimate, ends of its interval (open where there is none), and both in words."""
    if not values.size:
        return np.nan, -np.inf, np.inf, "–"
    found = interval_of(values, statistic)
    if not found.exists:
        return found.estimate, -np.inf, np.inf, number(found.estimate)
    return (
        found.estimate,
        found.low,
        found.high,
        f"{number(found.estimate)} {interval((found.low, found.high))}",
    )


def _share(values: xr.DataArray) -> tuple[float, float, float, str]:
    """The same of a share, each problem with its own; exact."""
    asked = (
        values.isel(seed=np.flatnonzero(values.coords["asked"].values))
        if "asked" in values.coords
        else values
    )
    known = _finite(asked)
    if not known.size:
        return np.nan, -np.inf, np.inf, "–"
    found = share_interval(float(known.sum()), len(known), unknown=asked.size - len(known))
    return (
        found.estimate,
        found.low,
        found.high,
        f"{number(found.estimate)} {interval((found.low, found.high))}",
    )


def _tone(found: tuple[float, float, float, str], least: float, most: float) -> str:
    """Whether an interval lies wholly within, wholly without, or across two limits."""
    _, low, high, _ = found
    if np.isinf([low, high]).any():
        return ""
    return (
        "good"
        if least <= low and high <= most
        else "bad"
        if high < least or low > most
        else "mixed"
    )


def _finite(values: xr.DataArray) -> np.ndarray:
    array = np.asarray(values, dtype=float).ravel()
    return array[np.isfinite(array)]


def _mean(values: xr.DataArray) -> float:
    known = _finite(values)
    return float(known.mean()) if known.size else np.nan


def _name(model: str) -> str:
    return _NAMES.get(model, str(model))


LANDSCAPE_FIGURES: dict[str, Callable[[Data], list[Figure]]] = {
    "liu2021.local_minima_known": _local_minima_known,
    "liu2021.local_minima_learned": _local_minima_learned,
    "liu2021.stationary_points": _stationary,
    "liu2021.error_falls_with_n": _falls,
    "liu2021.flatness_known": _flatness_known,
    "liu2021.flatness_learned": _flatness_learned,
    "beyond.edge_of_stability": _edge,
}
