"""The third section of a study's page: what attention goes to and since when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._page import Card, Figure, Section
from attnlab.report._scatter import scatter_figure
from attnlab.report._shaded import shaded_figure
from attnlab.report._study_parts import (
    LINE,
    counted,
    distinct,
    missing,
    plain_table,
    quoted,
    shortened,
)
from attnlab.report._study_tests import deletion_figure, sen_figure
from attnlab.report._text import number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_WANTED = {
    "sentences": "Sentences shaded by attention",
    "words": "Words by score",
    "training": "The course of training",
    "pairs": "Words that compete",
    "deletion": "The deletion test",
    "sen": "The score–norm relation",
}
_ROWS, _GROUPS, _PAIRS = 40, 6, 6
_BAND = "Line: median over seeds; band: 10–90 % of seeds."
_NUMBERS = {"score": "score", "norm": "norm |ν|", "purity": "purity", "excess": "excess purity"}
_QUANTITIES = {"weight": "attention", "score": "score s", "norm": "norm |ν|"}


def words_section(data: Data, absent: Mapping[str, str], cards: tuple[Card, ...]) -> Section:
    """Shaded sentences, words by score, the attended word along training, two words competing, two
    tests.
    """
    figures = []
    if "sentences" in data:
        figures.append(
            shaded_figure(data["sentences"], id="sentences", title="Attention over training")
        )
    if "words" in data:
        figures += [
            words_table(data["words"], id="words_by_score"),
            words_scatter(data["words"], id="rarity"),
        ]
    if "training" in data:
        figures += training_figures(data["training"])
    if "pairs" in data:
        figures.append(pairs_figure(data["pairs"], id="pairs"))
    if "deletion" in data:
        figures.append(deletion_figure(data["deletion"], id="deletion"))
    if "sen" in data:
        figures.append(sen_figure(data["sen"], id="sen"))
    return Section(
        "words",
        "What does it attend to, and since when?",
        "Attention finds words that tell the classes apart; rare words seem to do so by chance, "
        "which is taken off.",
        body=missing(_WANTED, data, absent, section="words"),
        cards=cards,
        figures=tuple(figures),
    )


def words_table(words: xr.Dataset, *, id: str) -> Figure:
    """The words of the highest score, a row each, tinted by excess purity."""
    top = words.isel(rank=slice(_ROWS))
    columns: dict[str, list[Any]] = {
        title: top[name].values.astype(float).tolist()
        for name, title in _NUMBERS.items()
        if name in top
    }
    shown = {}
    if "frequency" in top:
        columns["texts with it"] = top["frequency"].values.astype(float).tolist()
        shown["texts with it"] = [counted(value) for value in columns["texts with it"]]
    if "leaning" in top:
        columns["leans to"] = [_class(name) for name in top["leaning"].values]
    if "onset" in top:
        columns["since step"] = top["onset"].values.astype(float).tolist()
        shown["since step"] = [counted(value) for value in columns["since step"]]
    tones = {_NUMBERS["excess"]: [_tint(value) for value in columns.get(_NUMBERS["excess"], ())]}
    when = f" at step {words.attrs['step']}" if "step" in words.attrs else ""
    left = (
        f"The first {top.sizes['rank']} of {words.sizes['rank']}. "
        if top.sizes["rank"] < words.sizes["rank"]
        else ""
    )
    return plain_table(
        [shortened(word) for word in top["word"].values],
        columns,
        id=id,
        title="Words by score",
        shown=shown,
        tones=tones,
        caption=f"Highest score first{when}. {left}Purity is 1 for a word that stands in texts of "
        "one class only, 0 "
        "for one that tells nothing. Excess: purity less what shuffled labels give a word as "
        "rare; the "
        "stronger the tint, the larger. Since: the step at which the score reached half of what "
        "it is here.",
    )


def _class(name: Any) -> str:
    return shortened(name) or "–"


def _tint(excess: float) -> str:
    return f"h{min(4, int(5 * excess))}" if np.isfinite(excess) and excess > 0 else ""


def words_scatter(words: xr.Dataset, *, id: str) -> Figure:
    """Excess purity against frequency, a dot for each word, in groups by the class it leans to."""
    import xarray as xr

    names = xr.DataArray([shortened(word) for word in words["word"].values], dims="rank")
    leaning = np.array([str(name) for name in words["leaning"].values])
    common = [name for name, _ in Counter(leaning.tolist()).most_common(_GROUPS)]
    titles = distinct(
        f"leans to {shortened(name)}" if name else "leans to no class" for name in common
    )
    members = [leaning == name for name in common]
    if len(set(leaning.tolist())) > _GROUPS:
        titles, members = [*titles, "leans to another class"], [*members, ~np.isin(leaning, common)]
    groups = {}
    for title, own in zip(titles, members, strict=True):
        x, y = (
            xr.DataArray(words[n].values[own].astype(float), {"word": names.values[own]}, ("word",))
            for n in ("frequency", "excess")
        )
        groups[title] = (x, y)
    return scatter_figure(
        groups,
        id=id,
        title="Excess purity against frequency",
        x_label="training texts with the word",
        y_label="excess purity",
        log_x=True,
        lines={"by chance": 0.0},
        caption="One dot for each of the words of highest score. At the dotted line a word tells "
        "the classes apart no "
        "better than shuffled labels would let a word as rare.",
    )


def training_figures(training: xr.Dataset) -> list[Figure]:
    """Purity with its null, frequency, loss and accuracy along training; the best step is marked."""
    marks = _best(training)
    wanted = (
        (
            "attended_purity",
            "Purity of the top-attended word",
            "mean over training texts",
            {
                "purity": "attended_purity",
                "by chance, at this rarity": "attended_null",
                "excess": "attended_excess",
            },
            "The top-attended word of each training text. By chance: the purity that words as "
            "rare get from shuffled "
            "labels. Excess is the difference: where only purity rises, attention has moved to "
            "rarer words.",
        ),
        (
            "attended_frequency",
            "Frequency of the top-attended word",
            "training texts with the word",
            {"texts with the top-attended word": "attended_frequency"},
            "Mean over training texts.",
        ),
        (
            "course_loss",
            "Loss along training",
            "loss",
            {"training": "loss", "validation": "loss_valid"},
            "",
        ),
        (
            "course_accuracy",
            "Accuracy along training",
            "accuracy",
            {"validation": "accuracy_valid", "test": "accuracy_test"},
            "",
        ),
    )
    figures = []
    for id, title, label, series, caption in wanted:
        drawn = {word: training[name] for word, name in series.items() if name in training}
        if drawn:
            figures.append(
                band_figure(
                    training["step"].values,
                    drawn,
                    id=id,
                    title=title,
                    y_label=label,
                    marks=marks,
                    singles=12,
                    log_y=id == "attended_frequency",
                    caption=f"{caption} {_BAND}".lstrip(),
                )
            )
    return figures


def _best(training: xr.Dataset) -> dict[str, float]:
    best = np.ravel(np.asarray(training.attrs.get("best_step", ()), dtype=float))
    if not best.size:
        return {}
    return {
        "best validation" if best.size == 1 else "best validation, median": float(np.median(best))
    }


def pairs_figure(pairs: xr.Dataset, *, id: str) -> Figure:
    """Two words of one sentence: attention, score or norm over training, as chosen."""
    drawn, told = {}, []
    shown = pairs.isel(pair=slice(_PAIRS))
    seed = [pairs.attrs.get("seed", 0)]
    for k in range(shown.sizes["pair"]):
        one = shown.isel(pair=k)
        words = distinct(shortened(word) for word in one["word"].values)
        told.append(f"({k + 1}) {quoted(words)}, {_sentence(one)}")
        for name, label in _QUANTITIES.items():
            if name not in one:
                continue
            lines = {w: one[name].isel(which=j).expand_dims(seed=seed) for j, w in enumerate(words)}
            figure = band_figure(
                pairs["step"].values, lines, id=id, title="", y_label=label, singles=0
            )
            drawn[f"{k + 1} · {' and '.join(words)}: {label}"] = figure
    left = (
        f" The first {_PAIRS} of {pairs.sizes['pair']} pairs."
        if pairs.sizes["pair"] > _PAIRS
        else ""
    )
    return chosen(
        drawn,
        id=id,
        title="Two words that compete in one text",
        choice_label="Pair",
        caption="Words that lean to different classes and stand in one text, one seed. "
        f"{'; '.join(told)}.{left}",
        alt=f"Attention, score or norm of two words over training. {'; '.join(told)}.",
    )


def _sentence(one: xr.Dataset) -> str:
    """The sentence in which two words compete: its text, or its number where that is what is
    stored.
    """
    value = one["sentence"].values[()]
    if isinstance(value, str | np.str_):
        return f"in “\u2068{shortened(value, LINE)}\u2069”"
    return f"in training text {number(value)}"
