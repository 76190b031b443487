"""The third section of a study's page: what attention goes to, since when, and whether it matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Data
from attnlab.questions.texts._tables import SENTENCES, Deletion, Pairs, Relation, Training, Words
from attnlab.report import (
    Card,
    Figure,
    Mark,
    Section,
    band_figure,
    counted,
    distinct,
    menu_figure,
    percent,
    plain_table,
    quoted,
    scatter_figure,
    shaded_figure,
    shares_figure,
    shortened,
)

if TYPE_CHECKING:
    import xarray as xr

_LINE = 120  # characters of a text that are shown
_WANTED = {
    SENTENCES: "Sentences shaded by attention",
    Words.label: "Words by score",
    Deletion.label: "The deletion test",
}
_ALONG = {
    Training.label: "The course of training",
    Pairs.label: "Words that compete",
    Relation.label: "The score–norm relation",
}
_ROWS, _GROUPS, _PAIRS = 40, 6, 6
_BAND = "Line: median over seeds; band: 10–90 % of seeds."
_NUMBERS = {
    Words.score: "score",
    Words.norm: "norm |ν|",
    Words.purity: "purity",
    Words.excess: "excess purity",
}
_QUANTITIES = {
    Pairs.weight: "attention",
    Pairs.score: "score s",
    Pairs.norm: "norm |ν|",
}


def words_section(data: Data, absent: Mapping[str, str], cards: tuple[Card, ...]) -> Section:
    """Shaded sentences, words by score, and whether the answer hangs on them."""
    figures = []
    if SENTENCES in data:
        best = Training.of(data).attrs["best_step"] if Training.label in data else None
        figures.append(
            shaded_figure(
                data[SENTENCES], id="sentences", title="Attention over training", start=best
            )
        )
    if Words.label in data:
        figures += [
            words_table(Words.of(data), id="words_by_score"),
            words_scatter(Words.of(data), id="rarity"),
        ]
    if Deletion.label in data:
        figures.append(deletion_figure(Deletion.of(data), id="deletion"))
    return Section(
        "words",
        "What does it attend to, and since when?",
        "Attention finds words that tell the classes apart; rare words seem to do so by chance, "
        "which is taken off. The slider opens at the step of the stored model, that of the lowest "
        "validation loss.",
        body=why_missing(_WANTED, data, absent, section="words"),
        cards=cards,
        figures=tuple(figures),
    )


def training_section(
    data: Data, absent: Mapping[str, str], cards: tuple[Card, ...], majority: float
) -> Section:
    """The attended word along training, words that compete, and the score–norm relation."""
    figures = []
    if Training.label in data:
        figures += training_figures(Training.of(data), majority)
    if Pairs.label in data:
        figures.append(pairs_figure(Pairs.of(data), id="pairs"))
    if Relation.label in data:
        figures.append(sen_figure(Relation.of(data), id="sen"))
    return Section(
        "training",
        "Theory: how did attention get there?",
        "The course of training, words that compete in one text, and the relation of a word's score "
        "to the norm of its embedding.",
        body=why_missing(_ALONG, data, absent, section="words"),
        cards=cards,
        figures=tuple(figures),
        folded=True,
    )


def words_table(words: xr.Dataset, *, id: str) -> Figure:
    """The words of the highest score, a row each, tinted by excess purity."""
    top = words.isel(rank=slice(_ROWS))
    columns: dict[str, list[Any]] = {
        title: top[name].values.astype(float).tolist() for name, title in _NUMBERS.items()
    }
    columns["texts with it"] = top[Words.frequency].values.astype(float).tolist()
    columns["leans to"] = [_class(name) for name in top[Words.leaning].values]
    columns["since step"] = top[Words.onset].values.astype(float).tolist()
    counts = ("texts with it", "since step")
    excess = _NUMBERS[Words.excess]
    all_of_them = top.sizes["rank"] == words.sizes["rank"]
    left = "" if all_of_them else f"The first {top.sizes['rank']} of {words.sizes['rank']}. "
    return plain_table(
        [shortened(word) for word in top[Words.word].values],
        columns,
        id=id,
        title="Words by score",
        shown={name: [counted(value) for value in columns[name]] for name in counts},
        tones={excess: [_tint(value) for value in columns[excess]]},
        caption=f"Highest score first. {left}Purity is 1 for a word that stands in texts of one "
        "class only, 0 for one that tells nothing. Excess: purity less what shuffled labels give "
        "a word as rare; the stronger the tint, the larger. Since: the step at which the score "
        "reached half of what it is here.",
    )


def _class(name: Any) -> str:
    return shortened(name) or "–"


def _tint(excess: float) -> str:
    return f"h{min(4, int(5 * excess))}" if np.isfinite(excess) and excess > 0 else ""


def words_scatter(words: xr.Dataset, *, id: str) -> Figure:
    """Excess purity against frequency, a dot for each word, in groups by the class it leans to."""
    names = np.array([shortened(word) for word in words[Words.word].values])
    leaning = np.array([str(name) for name in words[Words.leaning].values])
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
            al.lab.labelled(words[n].values[own].astype(float), word=names[own])
            for n in (Words.frequency, Words.excess)
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


def training_figures(training: xr.Dataset, majority: float) -> list[Figure]:
    """Purity with its null, frequency, loss and accuracy along training; the best step is marked."""
    marks = _best(training)
    wanted = (
        (
            "attended_purity",
            "Purity of the top-attended word",
            "mean over training texts",
            {
                "purity": Training.attended_purity,
                "by chance, at this rarity": Training.attended_null,
                "excess": Training.attended_excess,
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
            {"texts with the top-attended word": Training.attended_frequency},
            "Mean over training texts.",
        ),
        (
            "course_loss",
            "Loss along training",
            "loss",
            {"training": Training.loss, "validation": Training.loss_valid},
            "",
        ),
        (
            "course_accuracy",
            "Accuracy along training",
            "accuracy",
            {"validation": Training.accuracy_valid, "test": Training.accuracy_test},
            "",
        ),
    )
    figures = []
    for id, title, label, series, caption in wanted:
        drawn = {word: training[name] for word, name in series.items()}
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
                    lines={"largest class": majority} if id == "course_accuracy" else None,
                    caption=f"{caption} {_BAND}".lstrip(),
                )
            )
    return figures


def _best(training: xr.Dataset) -> dict[str, float]:
    return {"best validation": float(training.attrs["best_step"])}


def pairs_figure(pairs: xr.Dataset, *, id: str) -> Figure:
    """Two words of one sentence: attention, score or norm over training, as chosen."""
    drawn, told = {}, []
    shown = pairs.isel(pair=slice(_PAIRS))
    seed = [0]
    for k in range(shown.sizes["pair"]):
        one = shown.isel(pair=k)
        words = distinct(shortened(word) for word in one[Pairs.word].values)
        told.append(
            f"({k + 1}) {quoted(words)}, in “\u2068{shortened(one[Pairs.sentence].values[()], _LINE)}\u2069”"
        )
        for name, label in _QUANTITIES.items():
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
    return menu_figure(
        drawn,
        id=id,
        title="Two words that compete in one text",
        choice_label="Pair",
        caption="Words that lean to different classes and stand in one text, one seed. "
        f"{'; '.join(told)}.{left}",
        alt=f"Attention, score or norm of two words over training. {'; '.join(told)}.",
    )


_WORST = 5


def deletion_figure(deletion: xr.Dataset, *, id: str) -> Figure:
    """How often the prediction flips when a word is removed: the top-attended one against a random
    other one.
    """
    top, top_low, top_high, other, other_low, other_high = (
        float(deletion[name])
        for name in (
            Deletion.top,
            Deletion.top_low,
            Deletion.top_high,
            Deletion.other,
            Deletion.other_low,
            Deletion.other_high,
        )
    )
    marks = [
        Mark("the top-attended word", top, top_low, top_high, said="top-attended"),
        Mark("a random other word", other, other_low, other_high, said="random other"),
    ]
    tested, left = int(deletion[Deletion.sentences]), int(deletion[Deletion.left_out])
    one = f" {counted(left)} of one known word are left out." if left else ""
    return shares_figure(
        marks,
        id=id,
        title="Does removing a word flip the prediction?",
        caption=f"{counted(tested)} test texts, each without all occurrences of one word.{one} "
        "Bars: 95 % intervals. If attention meant nothing, both would flip as often.",
        alt="Share of predictions that flip without a word.",
        x_label="share of predictions that flip",
        columns=("removed", "flips"),
    )


def sen_figure(sen: xr.Dataset, *, id: str) -> Figure:
    """Measured |q||ν| against the one predicted from the score, with the diagonal; the worst words
    are named.
    """
    words = [shortened(word) for word in sen[Relation.word].values]
    x, y = (
        al.lab.labelled(sen[name].values.astype(float), word=words)
        for name in (Relation.predicted_scaled_norm, Relation.scaled_norm)
    )
    error = np.abs(sen[Relation.sen_error].values.astype(float))
    known = np.flatnonzero(np.isfinite(error))
    worst = known[np.argsort(-error[known], kind="stable")][:_WORST]
    said = "No word's score is high enough to be compared."
    if known.size:
        listed = ", ".join(f"{quoted([words[k]])} {percent(error[k])}" for k in worst)
        said = f"Half of the words are within {percent(np.median(error[known]))}. Worst: {listed}."
    return scatter_figure(
        {"words": (x, y)},
        id=id,
        title="The score–norm relation on these words",
        identity=True,
        x_label="predicted |q||ν|, from the score alone",
        y_label="measured |q||ν|",
        caption="Theory: s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²), with m the mean number of other "
        "words beside the word. "
        f"On the dotted line theory is exact. {said}",
    )


def why_missing(
    wanted: Mapping[str, str], there: Iterable[str], absent: Mapping[str, str], *, section: str
) -> tuple[str, ...]:
    """Why parts of a section are not shown: each part's own reason, then the section's for all
    others.

    ``wanted``: name of the data → what it would show.

    >>> wanted = {"curves": "Learning curves", "needed": "Labels needed"}
    >>> why_missing(wanted, [], {"pays": "too few rows."}, section="pays")
    ('Learning curves, labels needed: not shown, since too few rows.',)
    """
    lost = [name for name in wanted if name not in there]
    said = [
        f"{wanted[name]}: not shown, since {_reason(absent[name])}."
        for name in lost
        if name in absent
    ]
    rest = [wanted[name] for name in lost if name not in absent]
    if not rest:
        return tuple(said)
    listed = ", ".join([rest[0], *(f"{name[0].lower()}{name[1:]}" for name in rest[1:])])
    why = (
        f"not shown, since {_reason(absent[section])}"
        if section in absent
        else "not part of this study"
    )
    return (*said, f"{listed}: {why}.")


def _reason(text: str) -> str:
    return str(text).strip().rstrip(".")
