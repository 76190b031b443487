"""The answers of a study of texts in words and, for a program, as records."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Data
from attnlab.papers.liu2021.text import common_level
from attnlab.papers.liu2021.word_settings import TEXT_STEP_SIZES, TEXT_WIDEN
from attnlab.questions.texts._best import NAMES
from attnlab.questions.texts._tables import (
    PATH,
    Agreement,
    Curves,
    Deletion,
    Ends,
    Needed,
    Polish,
    Relation,
    Training,
    Words,
)
from attnlab.report import Card, shortened

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.complexity import NeededSamples, SampleRatio

_POINT = 0.01
_POOLINGS = ("attention-pooling", "mean-pooling")
_NOTEWORTHY = 0.05  # share of fits from which on a caution speaks of them
_WORST = 0.3  # relative error from which on the relation is said to fail for a word
_TOP = 40  # words of the record
_KINDS = {"crossed": "exact", "already met": "at most", "not reached": "at least"}


def _percent(text: str) -> str:
    """A sentence whose percent signs stay with their numbers."""
    return text.replace("%", "\u00a0%")


def pays(curves: xr.Dataset, level: float | None) -> tuple[xr.Dataset, dict[str, Any]]:
    """Whether attention needs fewer labels than mean pooling, with TF-IDF beside them.

    Returns the labels that each student needs, and a record of the verdict.
    """
    accuracy = curves[Curves.accuracy]
    level = common_level(accuracy) if level is None else level
    attention, mean = (accuracy.sel(student=name) for name in ("attention-pooling", "mean-pooling"))
    ratio = al.complexity.sample_ratio(mean, attention, level, falling=False, statistic="mean")
    students = accuracy["student"].values.tolist()
    needs = {
        name: al.complexity.needed_samples(
            accuracy.sel(student=name), level, falling=False, statistic="mean"
        )
        for name in students
    }
    ends = accuracy.isel(size=-1).mean("seed")
    difference = _difference(attention.isel(size=-1), mean.isel(size=-1))
    record = {
        "verdict": ratio.verdict,
        "ratio": _finite(ratio.value),
        "kind": ratio.kind,
        "interval": [_finite(ratio.interval.low), _finite(ratio.interval.high)],
        "level": level,
        "more_seeds": ratio.more_seeds,
        "words": f"{_saving(ratio, level)}{_crossing(ratio.verdict, difference)}"
        + _tuning_caution(curves),
        "headline": _headline(ratio),
        "needed": {name: _labels(one) for name, one in needs.items()},
        "accuracy": {name: float(ends.sel(student=name)) for name in students},
        "difference": [_finite(value) for value in difference],
        "tuned": _tuned(curves),
        "one_more_point": _one_more_point(attention),
    }
    return _needed_table(needs, level), record


def _needed_table(needs: Mapping[str, NeededSamples], level: float) -> xr.Dataset:
    found = list(needs.values())
    values = [one.largest if one.outcome == "not reached" else one.value for one in found]
    columns: dict[str, list[Any]] = {
        Needed.value: values,
        Needed.low: [one.interval.low for one in found],
        Needed.high: [one.interval.high for one in found],
        Needed.kind: [_KINDS[one.outcome] for one in found],
    }
    students = list(needs)
    table = {name: al.lab.labelled(column, student=students) for name, column in columns.items()}
    return al.lab.dataset(table).assign_attrs(level=level)


def _saving(ratio: SampleRatio, level: float) -> str:
    """The verdict as a sentence."""
    if ratio.verdict != "saves":
        return f"At {_percent(f'{level:.0%}')} accuracy: {ratio}."
    ends = (ratio.interval.low, ratio.interval.high)
    low, high = (1 - 1 / end if end > 0 else -math.inf for end in ends)
    sign = "at least " if ratio.kind == "at least" else ""
    saved = f"{sign}{1 - 1 / ratio.value:.0%} [{low:.0%}, {high:.0%}]"
    return _percent(
        f"Attention saves {saved} of the labels that mean pooling needs for {level:.0%} accuracy."
    )


def _difference(attention: xr.DataArray, mean: xr.DataArray) -> tuple[float, float, float]:
    """Accuracy of attention less that of mean pooling with all labels, with its interval over
    paired seeds.
    """
    found = al.stats.interval_of((attention - mean).dropna("seed").values, "mean")
    return found.estimate, found.low, found.high


def _crossing(verdict: str, difference: tuple[float, float, float]) -> str:
    """What must be said beside a verdict that turns round with all labels: the curves cross."""
    value, low, high = difference
    saves_and_worse = verdict == "saves" and high < 0
    costs_and_better = verdict == "costs" and low > 0
    if not (saves_and_worse or costs_and_better):
        return ""
    kind = "less" if saves_and_worse else "more"
    ends = sorted(abs(100 * end) for end in (low, high))
    return (
        f" But the curves cross: with all labels attention is {abs(100 * value):.1f} "
        f"[{ends[0]:.1f}, {ends[1]:.1f}] points {kind} accurate than mean pooling."
    )


def _headline(ratio: SampleRatio) -> str:
    if ratio.kind == "unknown" or not np.isfinite(ratio.value):
        return ratio.verdict
    sign = {"exact": "", "at least": "≥ ", "at most": "≤ "}[ratio.kind]
    low, high = (
        "∞" if math.isinf(end) else f"{end:.2f}"
        for end in (ratio.interval.low, ratio.interval.high)
    )
    return f"{sign}{ratio.value:.2f} [{low}, {high}]"


def _labels(needed: NeededSamples) -> str:
    if needed.outcome == "not reached":
        return f"> {needed.largest:,.0f}"
    return f"{'≤ ' if needed.outcome == 'already met' else ''}{needed.value:,.0f}"


def _tuned(curves: xr.Dataset) -> list[str]:
    """What was tuned, and whether a best value lay at the edge of what was tried."""
    listed = ", ".join(f"{size:g}" for size in TEXT_STEP_SIZES)
    said = [
        f"For both kinds of pooling, at every number of labels and seed, {len(TEXT_STEP_SIZES)} step "
        f"sizes of Adam ({listed}) were tried, the best kept by loss on validation texts, which "
        "are not counted as labels; where the best was an end of the range, the range went on, up to "
        f"{TEXT_WIDEN} times. TF-IDF had seven strengths of its penalty.",
    ]
    for student in _POOLINGS:
        chosen = curves[Curves.step_size].sel(student=student).values
        chosen = chosen[np.isfinite(chosen)]
        edge = share_at_end(curves, student)
        said.append(
            _percent(
                f"{NAMES[student].capitalize()}: the step size chosen was {np.median(chosen):g} in the middle, and an "
                f"end of its range in {edge:.0%} of the fits."
            )
        )
    return said


def share_at_end(curves: xr.Dataset, student: str) -> float:
    """Of the student's fits, the share whose step size is an end of what was tried."""
    if Curves.at_end not in curves:
        return 0.0
    at_end = curves[Curves.at_end].sel(student=student)
    return float(at_end.where(at_end.notnull(), drop=True).mean())


def _tuning_caution(curves: xr.Dataset) -> str:
    """What limits the comparison: tuning that ended at an end of its range."""
    cut = [NAMES[name] for name in _POOLINGS if share_at_end(curves, name) > _NOTEWORTHY]
    if not cut:
        return ""
    return (
        f" Caution: the best step size of {' and '.join(cut)} was often an end of the range that was "
        "tried, even after it was widened."
    )


def _one_more_point(attention: xr.DataArray) -> str:
    """How many labels a further point of accuracy would cost."""
    goal = float(attention.isel(size=-1).mean("seed")) + _POINT
    found = al.complexity.extrapolate(attention, level=goal, falling=False, statistic="mean")
    if found.outcome != "extrapolated":
        return f"What a further point of accuracy would cost cannot be said: {found.reason}."
    largest = int(attention["size"].values[-1])
    low, high = found.interval.low, found.interval.high
    off = ""
    if found.back_test is not None:
        off = f"; its first half foretells its second half to within {found.back_test.error:.0%}"
    return _percent(
        f"For {goal:.1%}, one point more than with {largest:,} labels, attention would need about "
        f"{found.value:,.0f} labels (95% interval {low:,.0f} to {high:,.0f}{off})."
    )


def records(data: Data) -> dict[str, Any]:
    """The numbers behind the other answers, for a program."""
    training, ends = Training.of(data), Ends.of(data)
    best = training.attrs["best_step"]
    at = training.isel(seed=0).sel(step=best)
    found: dict[str, Any] = {
        "words": {
            "best_step": best,
            "attended_purity": float(at[Training.attended_purity]),
            "attended_excess": float(at[Training.attended_excess]),
            "top": Words.of(data)[Words.word].values[:_TOP].tolist(),
        },
        "trained": {
            name: [_finite(float(v)) for v in ends[name].values] for name in Ends.variables
        },
    }
    if Deletion.label in data:
        deletion = Deletion.of(data)
        found["deletion"] = {name: float(deletion[name]) for name in Deletion.variables}
    if PATH in data:
        found["barrier"] = float(data[PATH].attrs["barrier"])
    return found


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def all_cards(data: Data, found: Mapping[str, Any]) -> tuple[Card, ...]:
    """Every answer at a glance, in the order of the page; each links to its section."""
    verdicts = found["verdicts"]
    cards = [
        _data_card(found["reading"]),
        *_pays_cards(verdicts["pays"]),
        *_words_cards(data),
        *_good_cards(data),
    ]
    if "try" in verdicts:
        cards.append(Card(label="what to try", text=verdicts["try"]["advice"], link="try"))
    return tuple(cards)


def _data_card(reading: Mapping[str, Any]) -> Card:
    """How many rows there are and what became of them."""
    dropped = sum(entry["count"] for entry in reading["dropped"])
    leaked = sum(entry["count"] for entry in reading["leaks"])
    counts = {name: sum(parts.values()) for name, parts in reading["classes"].items()}
    text = f"{reading['kept']:,} of {reading['rows']:,} rows are used, in {len(counts)} classes; "
    text += f"{reading['vocabulary']['size']:,} words are known. "
    text += f"{dropped:,} rows were left out." if dropped else "No row was left out."
    text += "".join(f" Lines {e['reason']}: {e['count']:,}." for e in reading["recoded"])
    if leaked:
        text += (
            f" {leaked:,} validation or test texts also stand among the training texts: accuracies "
            "are too high."
        )
    share = max(counts.values()) / max(sum(counts.values()), 1)
    text += _percent(f" The largest class has {share:.0%} of the texts.")
    return Card(
        label="your data",
        text=text,
        headline=f"{reading['kept']:,}",
        measure="labelled texts",
        link="data",
    )


def _pays_cards(record: Mapping[str, Any]) -> list[Card]:
    """Whether attention pays, the labels needed, and what one more point would cost."""
    level = _percent(f"{record['level']:.0%}")
    reached = ", ".join(f"{NAMES[name]} {value:.3f}" for name, value in record["accuracy"].items())
    needed = ", ".join(f"{NAMES[name]} {labels}" for name, labels in record["needed"].items())
    return [
        Card(
            label="attention against mean pooling",
            text=f"{record['words']} With all labels the test accuracies are {reached}.",
            headline=record["headline"],
            measure=f"times fewer labels than mean pooling, at {level}",
            verdict=record["verdict"],
            link="pays",
        ),
        Card(
            label="labels needed",
            text=f"Labels needed for {level} test accuracy: {needed}.",
            headline=record["needed"]["attention-pooling"],
            measure=f"labels for {level} with attention",
            link="pays",
        ),
        Card(label="one more point of accuracy", text=record["one_more_point"], link="pays"),
    ]


def _words_cards(data: Data) -> list[Card]:
    """What attention goes to, whether it matters, and whether theory's relation holds."""
    training = Training.of(data)
    at = training.isel(seed=0).sel(step=training.attrs["best_step"])
    excess, purity = float(at[Training.attended_excess]), float(at[Training.attended_purity])
    top = ", ".join(f"“{shortened(word)}”" for word in Words.of(data)[Words.word].values[:8])
    cards = [
        Card(
            label="attended words",
            text=f"Most attended are {top}. The word that a text attends to most leans to its "
            f"class by {purity:.2f} on average, {excess:.2f} more than chance gives a word as "
            "rare.",
            headline=f"{excess:.2f}",
            measure="excess purity of the attended word",
            link="words",
        )
    ]
    if Deletion.label in data:
        cards.append(_deletion_card(Deletion.of(data)))
    error = Relation.of(data)[Relation.sen_error].values
    known = error[np.isfinite(error)]
    if known.size:
        share, middle = float(np.mean(known > _WORST)), float(np.median(known))
        cards.append(
            Card(
                label="score and norm",
                text=_percent(
                    "Theory predicts the norm of a word's embedding from its score to within "
                    f"{middle:.1%} (median of {known.size} top words), and misses by over "
                    f"{_WORST:.0%} for {share:.0%}."
                ),
                headline=_percent(f"{middle:.1%}"),
                measure="median error of the relation",
                verdict="reported",
                link="training",
            )
        )
    return cards


def _deletion_card(deletion: xr.Dataset) -> Card:
    flips, other = float(deletion[Deletion.top]), float(deletion[Deletion.other])
    low, high = float(deletion[Deletion.top_low]), float(deletion[Deletion.top_high])
    clear = low > float(deletion[Deletion.other_high])
    return Card(
        label="does attention matter?",
        text=_percent(
            f"Taking the most attended word out of a test text turns {flips:.0%} of the answers, "
            f"taking out another word {other:.0%}."
        ),
        headline=_percent(f"{flips:.0%} [{low:.0%}, {high:.0%}]"),
        measure="answers turned by the attended word",
        verdict="holds" if clear else "inconclusive",
        link="words",
    )


def _good_cards(data: Data) -> list[Card]:
    """Where training stopped, how seeds differ, and what a polish found."""
    ends = Ends.of(data)
    accuracy = ends[Ends.accuracy_test].values
    text = (
        "Training stopped where the largest entry of the gradient is "
        f"{float(ends[Ends.gradient][0]):.2g}: no minimum. Over {accuracy.size} seeds the test "
        f"accuracy is {accuracy.min():.3f} to {accuracy.max():.3f}"
    )
    share = Agreement.of(data)[Agreement.share].values
    others = share[~np.eye(len(share), dtype=bool)]
    if others.size:
        text += f", and two seeds give the same answer in {others.mean():.0%} of the test texts"
    cards = [
        Card(
            label="where training stopped",
            text=_percent(f"{text}."),
            headline=f"{accuracy[0]:.3f}",
            measure="test accuracy of the stored model",
            link="good",
        )
    ]
    if PATH in data:
        barrier, loss = float(data[PATH].attrs["barrier"]), float(data[PATH]["loss"][0])
        cards.append(
            Card(
                label="between two seeds",
                text="On the straight line between two seeds (scores and tables mixed) the "
                f"training loss rises by {barrier:.3g} above the line between their losses, of "
                f"which the first is {loss:.3g}.",
                headline=f"{barrier:.3g}",
                measure="barrier",
                link="good",
            )
        )
    if Polish.label in data:
        one = Polish.of(data).isel(seed=0)
        kind = str(one[Polish.kind].values)
        cards.append(
            Card(
                label="with a penalty",
                text=f"With l2 = {float(one[Polish.l2]):.2g} and about the same training loss "
                f"there is a point ({kind}) with test accuracy "
                f"{float(one[Polish.accuracy_test]):.3f}.",
                headline=kind,
                measure="what the polish found",
                link="good",
            )
        )
    return cards
