"""The answers of a study of texts in words: what the page says at a glance and ``study.json`` says
to a program.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attnlab.studies._exploration import card

_POINT = 0.01
_WORST = 0.3  # relative error from which on the relation is said to fail for a word


@dataclass(frozen=True, eq=False)
class Pays:
    """Whether attention pays: needed labels (student), the verdict for a program, cards and
    sentences.
    """

    target: float
    needed: xr.Dataset
    record: dict[str, Any]
    cards: list[dict[str, Any]]
    tuned: list[str]
    extrapolation: list[str]


def pays(curves: xr.Dataset, target: float | None, reading: dict[str, Any]) -> Pays:
    """Compare attention with mean pooling, and report TF-IDF beside them."""
    from attnlab.complexity import needed_samples, sample_ratio

    accuracy = curves.accuracy
    level = common_level(accuracy) if target is None else target
    attention, mean = (accuracy.sel(student=name) for name in ("attention-pooling", "mean-pooling"))
    ratio = sample_ratio(mean, attention, level, falling=False, statistic="mean")
    students = accuracy.student.values.tolist()
    needs = [
        needed_samples(accuracy.sel(student=name), level, falling=False, statistic="mean")
        for name in students
    ]
    kinds = {"crossed": "exact", "already met": "at most", "not reached": "at least"}
    columns = {
        "value": [n.largest if n.outcome == "not reached" else n.value for n in needs],
        "low": [n.interval.low for n in needs],
        "high": [n.interval.high for n in needs],
    }
    table = xr.Dataset({k: ("student", v) for k, v in columns.items()}, {"student": students})
    table = table.assign(kind=("student", [kinds[n.outcome] for n in needs]))
    ends = accuracy.isel(size=-1).mean("seed")
    said = f"{level:.0%}".replace("%", "\u00a0%")
    difference = _difference(attention.isel(size=-1), mean.isel(size=-1))
    words = f"{_saving(ratio, said)}{_crossing(ratio.verdict, difference)}"
    reached = ", ".join(f"{name} {float(ends.sel(student=name)):.3f}" for name in students)
    cards = [
        card(
            "does attention pay?",
            f"{words} With all labels the test accuracies are {reached}.",
            _headline(ratio),
            f"times fewer labels than mean pooling, at {said}",
            ratio.verdict,
        )
        | {"link": "pays"},
        card(
            "labels needed",
            _needs_words(students, needs, said),
            _number(needs[0]),
            f"labels for {said} with attention",
        )
        | {"link": "pays"},
    ]
    record = {
        "verdict": ratio.verdict,
        "ratio": _finite(ratio.value),
        "kind": ratio.kind,
        "interval": [_finite(ratio.interval.low), _finite(ratio.interval.high)],
        "target": level,
        "more_seeds": ratio.more_seeds,
        "words": words,
        "accuracy": {name: float(ends.sel(student=name)) for name in students},
        "difference": [_finite(value) for value in difference],
    }
    further = _extrapolation(accuracy)
    cards.append(card("one more point of accuracy", further[0]) | {"link": "pays"})
    return Pays(level, table, record, cards, _tuned(curves), further)


def common_level(accuracy: xr.DataArray) -> float:
    """What both kinds of pooling reach with all labels, less a point, rounded down to a whole
    percent.
    """
    ends = accuracy.sel(student=["attention-pooling", "mean-pooling"]).isel(size=-1).mean("seed")
    return max(math.floor(100 * (float(ends.min()) - _POINT) + 1e-9) / 100, 0.01)


def _saving(ratio: Any, said: str) -> str:
    """The verdict as a sentence."""
    low, high = (
        1 - 1 / end if end > 0 else -math.inf for end in (ratio.interval.low, ratio.interval.high)
    )
    if ratio.verdict == "saves":
        sign = "at least " if ratio.kind == "at least" else ""
        saved = f"{sign}{1 - 1 / ratio.value:.0%} [{low:.0%}, {high:.0%}]".replace("%", "\u00a0%")
        return f"Attention saves {saved} of the labels that mean pooling needs for {said} accuracy."
    return f"At {said} accuracy: {ratio}."


def _difference(attention: xr.DataArray, mean: xr.DataArray) -> tuple[float, float, float]:
    """Accuracy of attention less that of mean pooling with all labels, with its interval over
    paired seeds.
    """
    from attnlab.stats import interval_of

    found = interval_of((attention - mean).dropna("seed").values, "mean")
    return found.estimate, found.low, found.high


def _crossing(verdict: str, difference: tuple[float, float, float]) -> str:
    """What must be said beside a verdict that turns round with all labels: the curves cross."""
    value, low, high = difference
    saves_and_worse, costs_and_better = (
        verdict == "saves" and high < 0,
        verdict == "costs" and low > 0,
    )
    if not (saves_and_worse or costs_and_better):
        return ""
    kind = "less" if saves_and_worse else "more"
    ends = sorted(abs(100 * end) for end in (low, high))
    return (
        f" But the curves cross: with all labels attention is {abs(100 * value):.1f} "
        f"[{ends[0]:.1f}, {ends[1]:.1f}] "
        f"points {kind} accurate than mean pooling."
    )


def _headline(ratio: Any) -> str:
    if ratio.kind == "unknown" or not np.isfinite(ratio.value):
        return ratio.verdict
    sign = {"exact": "", "at least": "≥ ", "at most": "≤ "}[ratio.kind]
    ends = "".join(
        f"{open_}{'∞' if math.isinf(end) else f'{end:.2f}'}{close}"
        for open_, end, close in (("[", ratio.interval.low, ", "), ("", ratio.interval.high, "]"))
    )
    return f"{sign}{ratio.value:.2f} {ends}"


def _number(needed: Any) -> str:
    if needed.outcome == "not reached":
        return f"> {needed.largest:,.0f}"
    return f"{'≤ ' if needed.outcome == 'already met' else ''}{needed.value:,.0f}"


def _needs_words(students: list[str], needs: list[Any], said: str) -> str:
    listed = ", ".join(
        f"{name} {_number(needed)}" for name, needed in zip(students, needs, strict=True)
    )
    return f"Labels needed for {said} test accuracy: {listed}."


def _tuned(curves: xr.Dataset) -> list[str]:
    """What was tuned, and whether a best value lay at the edge of what was tried."""
    from attnlab.studies._text_students import STEP_SIZES

    said = [
        f"For both kinds of pooling, at every number of labels and seed, {len(STEP_SIZES)} step "
        "sizes of Adam "
        f"({', '.join(f'{s:g}' for s in STEP_SIZES)}) were tried, the best kept by "
        "loss on validation texts, which are not counted as labels. TF-IDF had seven strengths of "
        "its penalty.",
    ]
    for student in ("attention-pooling", "mean-pooling"):
        chosen = curves.step_size.sel(student=student).values
        chosen = chosen[np.isfinite(chosen)]
        edge = float(np.mean(np.isin(chosen, [min(STEP_SIZES), max(STEP_SIZES)])))
        said.append(
            f"{student}: the step size chosen was {np.median(chosen):g} in the middle, and at an "
            "end of the range in "
            f"{edge:.0%} of the fits.".replace("%", "\u00a0%")
        )
    return said


def _extrapolation(accuracy: xr.DataArray) -> list[str]:
    """How many labels a further point of accuracy would cost."""
    from attnlab.complexity import extrapolate

    curve = accuracy.sel(student="attention-pooling")
    goal = float(curve.isel(size=-1).mean("seed")) + _POINT
    found = extrapolate(curve, level=goal, falling=False, statistic="mean")
    largest = int(curve["size"].values[-1])
    if found.outcome != "extrapolated":
        return [f"What a further point of accuracy would cost cannot be said: {found.reason}."]
    low, high = found.interval.low, found.interval.high
    off = ""
    if found.back_test is not None:
        off = f"; its first half foretells its second half to within {found.back_test.error:.0%}"
    said = (
        f"For {goal:.1%}, one point more than with {largest:,} labels, attention would need about "
        f"{found.value:,.0f} "
        f"labels (95% interval {low:,.0f} to {high:,.0f}{off})."
    )
    return [said.replace("%", "\u00a0%")]


def data_card(reading: dict[str, Any]) -> dict[str, Any]:
    """How many rows there are and what became of them."""
    dropped = sum(entry["count"] for entry in reading["dropped"])
    leaked = sum(entry["count"] for entry in reading["leaks"])
    counts = {name: sum(parts.values()) for name, parts in reading["classes"].items()}
    text = f"{reading['kept']:,} of {reading['rows']:,} rows are used, in {len(counts)} classes; "
    text += f"{reading['vocabulary']['size']:,} words are known. "
    text += f"{dropped:,} rows were left out." if dropped else "No row was left out."
    if leaked:
        text += f" {leaked:,} validation or test texts also stand among the training texts: accuracies are too high."
    share = max(counts.values()) / max(sum(counts.values()), 1)
    text += f" The largest class has {share:.0%} of the texts.".replace("%", "\u00a0%")
    return card("your data", text, f"{reading['kept']:,}", "labelled texts") | {"link": "data"}


def words_cards(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """What attention goes to, whether it matters, and whether theory's relation holds."""
    words, training = data["words"], data["training"]
    best = training.attrs["best_step"]
    top = ", ".join(f"“{word}”" for word in words.word.values[:8])
    at = training.isel(seed=0).sel(step=best)
    excess, purity = float(at.attended_excess), float(at.attended_purity)
    cards = [
        card(
            "attended words",
            f"Most attended are {top}. The word that a text attends to most leans to its class by "
            f"{purity:.2f} on average, "
            f"{excess:.2f} more than chance gives a word as rare.",
            f"{excess:.2f}",
            "excess purity of the attended word",
        )
        | {"link": "words"}
    ]
    if "deletion" in data:
        found = data["deletion"]
        flips, other = float(found.top), float(found.other)
        clear = float(found.top_low) > float(found.other_high)
        cards.append(
            card(
                "does attention matter?",
                f"Taking the most attended word out of a test text turns {flips:.0%} of the "
                "answers, taking out another "
                f"word {other:.0%}.".replace("%", "\u00a0%"),
                f"{flips:.0%} [{float(found.top_low):.0%}, {float(found.top_high):.0%}]".replace(
                    "%", "\u00a0%"
                ),
                "answers turned by the attended word",
                "holds" if clear else "inconclusive",
            )
            | {"link": "words"}
        )
    error = data["sen"].sen_error.values
    known = error[np.isfinite(error)]
    if known.size:
        share = float(np.mean(known > _WORST))
        cards.append(
            card(
                "score and norm",
                "Theory predicts the norm of a word's embedding from its score to within "
                f"{np.median(known):.1%} (median "
                f"of {known.size} top words), and misses by over {_WORST:.0%} for "
                f"{share:.0%}.".replace("%", "\u00a0%"),
                f"{np.median(known):.1%}".replace("%", "\u00a0%"),
                "median error of the relation",
                "reported",
            )
            | {"link": "words"}
        )
    return cards


def good_cards(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """Where training stopped, how seeds differ, and what a polish found."""
    ends = data["ends"]
    accuracy = ends.accuracy_test.values
    text = (
        "Training stopped where the largest entry of the gradient is "
        f"{float(ends.gradient[0]):.2g}: no minimum. "
        f"Over {accuracy.size} seeds the test accuracy is {accuracy.min():.3f} to "
        f"{accuracy.max():.3f}"
    )
    share = data["agreement"].share.values
    others = share[~np.eye(len(share), dtype=bool)]
    if others.size:
        text += f", and two seeds give the same answer in {others.mean():.0%} of the test texts"
    text = f"{text}.".replace("%", "\u00a0%")
    cards = [
        card(
            "where training stopped",
            text,
            f"{accuracy[0]:.3f}",
            "test accuracy of the stored model",
        )
    ]
    if "path" in data:
        barrier, loss = float(data["path"].attrs["barrier"]), float(data["path"].loss[0])
        cards.append(
            card(
                "between two seeds",
                "On the straight line between two seeds (scores and tables mixed) the training "
                "loss rises by "
                f"{barrier:.3g} above the line between their losses, of which the first is "
                f"{loss:.3g}.",
                f"{barrier:.3g}",
                "barrier",
            )
        )
    if "polish" in data:
        one = data["polish"].isel(seed=0)
        cards.append(
            card(
                "with a penalty",
                f"With l2 = {float(one.l2):.2g} and about the same training loss there is a point "
                f"({one.kind.values!s}) with test accuracy {float(one.accuracy_test):.3f}.",
                str(one.kind.values),
                "what the polish found",
            )
        )
    return [each | {"link": "good"} for each in cards]


def records(data: dict[str, xr.Dataset]) -> dict[str, Any]:
    """The numbers behind the other cards, for a program."""
    best = data["training"].attrs["best_step"]
    at = data["training"].isel(seed=0).sel(step=best)
    found: dict[str, Any] = {
        "words": {
            "best_step": best,
            "attended_purity": float(at.attended_purity),
            "attended_excess": float(at.attended_excess),
            "top": data["words"].word.values[:40].tolist(),
        },
        "trained": {
            name: [_finite(float(v)) for v in data["ends"][name].values]
            for name in data["ends"].data_vars
        },
    }
    if "deletion" in data:
        found["deletion"] = {str(k): float(v) for k, v in data["deletion"].data_vars.items()}
    if "path" in data:
        found["barrier"] = float(data["path"].attrs["barrier"])
    return found


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
