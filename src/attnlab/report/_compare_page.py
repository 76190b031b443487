"""The page of ``attnlab compare``: variants ranked, groups of equals, what each needs and how it
trains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._curves import learning_curves
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._dynamics import again_section, card_of_entry
from attnlab.report._heat import heat_table
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Figure, Page, Section
from attnlab.report._palette import SERIES
from attnlab.report._render import write_folder
from attnlab.report._sample_tables import answers_table, tuning_table
from attnlab.report._text import interval, number, told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_ELSEWHERE = (
    "settings",
    "command",
    "summary",
    "cards",
    "title",
    "question",
    "advice",
    "reading",
    "content",
)
_COURSE = {
    "error": "error",
    "accuracy": "accuracy",
    "attention": "attention on the words that matter",
    "entropy": "entropy of attention, nats",
}


_TOLD_APART = (
    "Two variants that share a letter cannot be told apart (Wilcoxon's signed-rank test on paired "
    "seeds, all pairs "
    "corrected together by Holm's method, 5 %)."
)
_COLUMNS = {
    "entropy": "Words: e to the mean entropy of attention, so many are attended to.",
    "attention": "On right words: attention on those that matter.",
    "onset": "Sets off: the step at which half of the way of that is gone (of the score, where no "
    "words are known to "
    "matter).",
    "sharpness": "λ_max: of the training loss where training stopped, which does not say how flat "
    "a minimum is.",
}


def compare_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about many variants of attention on one task.

    - ``data["compare"]``: what ``attnlab.studies.tabulate`` returns, with ``student`` for the
      variant;
    - ``data["ranking"]`` (student, other), the best first: ``centre`` and ``ratio`` with ``_low``
      and ``_high``, ``p``, ``group``, ``runs``, and where stored ``entropy``, ``attention``,
      ``onset``, ``sharpness``;
    - ``data["course"]`` (student, seed, step) may have the score, ``entropy`` and ``attention``
      along training; ``data["longer"]`` (student): ``before`` and ``after`` four times the steps,
      and ``ratio``; ``data["dropping"]``: which variants were not gone on with, and the interval
      that proves them worse.

    ``about`` is as for ``samples_page``; its ``summary`` is the advice.
    """
    table, ranking, settings = data["compare"], data["ranking"], about.get("settings") or {}
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    return Page(
        title=str(about.get("title", "attnlab: which attention for which data")),
        question=str(about.get("question", "Which variant of attention is best here?")),
        summary=" ".join(map(str, about.get("summary") or ())),
        sections=(
            _ranking(ranking, data.get("dropping")),
            _curves(table, ranking),
            *_needed(table),
            *_training(data),
            *_fits(table, settings),
            again_section(about),
        ),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_compare(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(compare_page(data, about), folder)


def _ranking(ranking: xr.Dataset, dropping: xr.Dataset | None) -> Section:
    size, seeds = int(ranking.attrs["size"]), int(ranking.attrs["seeds"])
    body = ()
    if dropping is not None and bool((dropping["dropped"] > 0).any()):
        lost = [str(s) for s in dropping["student"].values[dropping["dropped"].values > 0]]
        body = (
            f"After 8 seeds, {', '.join(lost)} {'was' if len(lost) == 1 else 'were'} not gone on "
            "with: the 99 % "
            f"interval proves {'it' if len(lost) == 1 else 'them'} worse than "
            f"{dropping.attrs['best']}.",
        )
    figures = [rank_table(ranking)]
    if ranking.sizes["student"] > 1:
        figures.append(apart_table(ranking))
    return Section(
        "ranking",
        "The ranking, and who cannot be told apart",
        f"By the median {ranking.attrs['score']} over {seeds} seeds with {size} samples.",
        body=body,
        figures=tuple(figures),
    )


def rank_table(ranking: xr.Dataset) -> Figure:
    """The variants from the best to the worst, with their groups of equals."""
    score, against = str(ranking.attrs["score"]), str(ranking.attrs["against"])
    rows = [str(s) for s in ranking["student"].values]
    extra = {
        "entropy": "words",
        "attention": "on right words",
        "onset": "sets off",
        "sharpness": "λ_max",
    }
    extra = {name: words for name, words in extra.items() if name in ranking}
    uneven, cells = len(set(ranking["runs"].values.tolist())) > 1, []
    for name in rows:
        one = ranking.sel(student=name)
        row = [
            str(one["group"].values),
            _ended(one, "centre"),
            "1" if name == against else _ended(one, "ratio"),
        ]
        for key in extra:
            value = float(one[key])
            row.append(number(np.exp(value) if key == "entropy" else value))
        cells.append([*row, *([str(int(one["runs"]))] if uneven else [])])
    what = "error" if ranking.attrs["falling"] else "share of wrong answers"
    columns = [
        "group",
        f"median {score}, 95 % interval",
        f"{what} over that of {against}",
        *extra.values(),
    ]
    columns += ["seeds"] if uneven else []
    tones = [["good" if "A" in row[0] else "", *[""] * (len(row) - 1)] for row in cells]
    return heat_table(
        rows,
        columns,
        cells,
        id="ranking",
        title="From the best to the worst",
        tones=tones,
        caption=" ".join([_TOLD_APART, *(_COLUMNS[key] for key in extra)]),
    )


def _ended(one: xr.Dataset, name: str) -> str:
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{number(value)} {interval((low, high))}" if np.isfinite(low) else number(value)


def apart_table(ranking: xr.Dataset) -> Figure:
    """The corrected p-value of every two variants."""
    names = [str(s) for s in ranking["student"].values]
    p, level = ranking["p"].values, float(ranking.attrs["level"])
    places = range(len(names))
    cells = [
        [
            "" if i == j else "< 0.001" if p[i, j] < 0.001 else number(float(p[i, j]), 2)
            for j in places
        ]
        for i in places
    ]
    tones = [["" if i == j or p[i, j] >= level else "good" for j in places] for i in places]
    return heat_table(
        names,
        names,
        cells,
        id="apart",
        title="Which pairs can be told apart",
        tones=tones,
        caption="p-values of all pairs after Holm's correction; marked: told apart, below "
        f"{level:g}. Few seeds "
        "cannot tell much: with 8, no p-value is below 0.0078 even before the correction.",
    )


def _drawn(ranking: xr.Dataset) -> tuple[list[str], str]:
    """The variants that curves show, as many as there are colours, and a note on the others; the
    reference is shown.
    """
    names, against = [str(s) for s in ranking["student"].values], str(ranking.attrs["against"])
    left = [name for name in names[len(SERIES) :] if name != against]
    if len(names) > len(SERIES) and against in names[len(SERIES) :]:
        left.insert(0, names[len(SERIES) - 1])
    note = f" Not drawn, for want of colours: {', '.join(left)}." if left else ""
    return [name for name in names if name not in left], note


def _curves(table: xr.Dataset, ranking: xr.Dataset) -> Section:
    score, (names, note) = str(table.attrs["score"]), _drawn(ranking)
    what = (
        "E(ŷ − g)²/Var g on points without noise"
        if score == "error"
        else "the share of right answers on test texts"
    )
    title = f"The {score} against the number of samples"
    curves = learning_curves(table, id="learning_curves", title=title, students=names)
    figures = [replace(curves, caption=f"{curves.caption}{note}")]
    if "entropy" in table:
        entropy = {
            str(s): table["entropy"].sel(student=s).isel(task=0).transpose("seed", "size").values
            for s in names
        }
        figures.append(
            band_figure(
                table["size"].values,
                entropy,
                id="entropy",
                title="How spread out attention is",
                log_x=True,
                singles=0,
                x_label="training samples n",
                y_label="entropy of attention, nats",
                caption="Mean over test samples. Line: median over seeds; band: 10–90 % of "
                f"seeds.{note}",
            )
        )
    return Section("curves", "Learning curves", f"The {score} is {what}.", figures=tuple(figures))


def _needed(table: xr.Dataset) -> tuple[Section, ...]:
    level, against = number(float(table.attrs["level"])), str(table.attrs["against"])
    figures = [
        needed_figure(
            table, id="needed", title=f"Samples needed for {table.attrs['score']} {level}"
        )
    ]
    if any(str(kind) not in ("not run", "") for kind in np.ravel(table["ratio_kind"].values)):
        figures.append(
            ratio_figure(table, id="ratio", title=f"How many times fewer samples than {against}")
        )
    figures.append(answers_table(table, id="answers", title="The same in numbers"))
    statement = (
        "Where the curve over seeds first meets the level, interpolated in log n between the sizes "
        "that were run."
    )
    return (Section("needed", "Needed samples", statement, figures=tuple(figures)),)


def _training(data: Data) -> tuple[Section, ...]:
    """What longer training changes, and the course of one training; nothing if neither was stored."""
    figures = [_longer_table(data["longer"])] if "longer" in data else []
    figures += _courses(data.get("course"), *_drawn(data["ranking"]))
    figures += _onsets(data["compare"])
    if not figures:
        return ()
    statement = "A variant that is ahead after few steps may only be faster: read this before believing a difference."
    return (
        Section("training", "How it trains, and what is speed", statement, figures=tuple(figures)),
    )


def _longer_table(longer: xr.Dataset) -> Figure:
    steps, times, against = (longer.attrs[name] for name in ("steps", "times", "against"))
    rows = [str(s) for s in longer["student"].values]
    cells = []
    for name in rows:
        one = longer.sel(student=name)
        cells.append(
            [number(float(one["before"])), number(float(one["after"])), _ended(one, "ratio")]
        )
    columns = [
        f"{steps} steps",
        f"{times * steps} steps",
        f"{steps} steps over {against} with {times * steps}",
    ]
    return heat_table(
        rows,
        columns,
        cells,
        id="longer",
        title=f"What {times} times the steps change",
        tones=[["" for _ in row] for row in cells],
        caption="Median errors (shares of wrong answers, for texts) at the largest size, of the "
        "reference and of the "
        "best variant. Last column: a ratio near 1 says that what was gained is speed.",
    )


def _courses(course: xr.Dataset | None, names: list[str], note: str) -> list[Figure]:
    """Score, attention and entropy along training."""
    if course is None or not any(name in course for name in _COURSE):
        return []
    steps = np.maximum(course["step"].values.astype(float), 0.5)
    drawn = {}
    for name, words in _COURSE.items():
        if name not in course:
            continue
        series = {str(s): course[name].sel(student=s).dropna("seed", how="all") for s in names}
        drawn[words] = band_figure(
            steps,
            {s: one for s, one in series.items() if one.sizes["seed"]},
            id=name,
            title=words,
            y_label=words,
            log_x=True,
            log_y=name == "error",
            singles=0,
        )
    return [
        chosen(
            drawn,
            id="course",
            title="How each variant trains",
            choice_label="Show",
            caption="One training for each seed at the largest size, Adam with a constant step, "
            "on 500 test samples. Step "
            f"0 is drawn at one half. Line: median over seeds; band: 10–90 % of seeds.{note}",
        )
    ]


def _onsets(table: xr.Dataset) -> list[Figure]:
    if "onset" not in table:
        return []
    one = table["onset"].isel(task=0)
    rows = [
        DotRow(str(s), one.sel(student=s).dropna("seed"), None) for s in table["student"].values
    ]
    rows = [row for row in rows if len(row.numbers()[0])]
    if not rows:
        return []
    return [
        dots_figure(
            rows,
            id="onset",
            title="When each variant sets off",
            x_label="step",
            caption="One dot per seed, the bar is the median: the step at which half of the way "
            "is gone. A variant that "
            "never sets off has no dots.",
        )
    ]


def _fits(table: xr.Dataset, settings: Mapping[str, Any]) -> tuple[Section, ...]:
    offered = {
        "step_size": settings.get("step_sizes") or (),
        "weight_decay": settings.get("weight_decays") or (),
    }
    figure = tuning_table(table, id="tuning", title="What validation data chose", offered=offered)
    if figure is None:
        return ()
    statement = "Variants are only comparable if all were tuned alike, and if their training had come to an end."
    return (Section("fits", "What was tuned", statement, figures=(figure,)),)
