"""Sentences whose words are shaded by the attention they get, under a slider over training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure, Sentence, Shaded
from attnlab.report._prepare import short, thinned
from attnlab.report._shown import percent, quoted, shortened
from attnlab.report._text import number

if TYPE_CHECKING:
    import xarray as xr

_SENTENCES, _WORDS, _STEPS = 16, 80, 60
_NEEDED = ("weight", "word", "known", "label", "predicted", "probability")


def shaded_figure(sentences: xr.Dataset, *, id: str, title: str, caption: str = "") -> Figure:
    """Sentences with each word's background as strong as its share of the attention.

    ``sentences``: ``weight`` (sentence, place, step), ``word`` and ``known`` (sentence, place; an
    empty word is beyond the end), ``label`` (sentence), ``predicted`` and ``probability`` of the
    label (sentence, step). A shade is 100 · weight / (the sentence's largest weight at any step),
    so that twice as strong is twice the attention. Words after the 80th are shown as one, with the
    sum of their weights.

    >>> import xarray as xr
    >>> steps = ("sentence", "step")
    >>> data = xr.Dataset({"weight": (("sentence", "place", "step"), [[[0.5, 0.8], [0.5, 0.2]]]),
    ...     "word": (("sentence", "place"), [["good", "film"]]), "known": (("sentence", "place"), [[True, True]]),
    ...     "label": ("sentence", ["pos"]), "predicted": (steps, [["neg", "pos"]]),
    ...     "probability": (steps, [[0.5, 0.9]])}, {"step": [0, 250]})
    >>> shaded_figure(data, id="s", title="Shaded").shaded.sentences[0].shades
    ((62, 62), (100, 25))
    """
    lacking = [name for name in _NEEDED if name not in sentences]
    if lacking or not sentences.sizes.get("sentence"):
        raise AttnlabError(
            f"figure {id!r} has no sentence, or lacks {', '.join(lacking) or 'none'} of what it "
            "shows"
        )
    steps = thinned(sentences["step"].values, 1, most=_STEPS)
    kept = sentences.isel(sentence=slice(_SENTENCES), step=steps)
    names = [f"{step}" for step in kept["step"].values.tolist()]
    rows = [_row(kept.isel(sentence=k)) for k in range(kept.sizes["sentence"])]
    return Figure(
        id,
        title,
        caption or _CAPTION,
        title,
        {},
        _table(rows, names),
        _note(sentences, len(rows), len(names)),
        shaded=Shaded(tuple(names), tuple(row.entry() for row in rows)),
    )


_CAPTION = (
    "The stronger a word is shaded, the more of its sentence's attention it gets: full strength "
    "is the largest weight "
    "that any word of the sentence has at any step, and half of it is half the attention. Grey "
    "words in italics are "
    "not in the vocabulary: they get no attention. Below each sentence its label, then what the "
    "model says at this "
    "step, with the probability that it gives to the label, and the word that gets most."
)


@dataclass(frozen=True, eq=False)
class _Row:
    """One sentence as it is shown; ``weight`` is (step × word)."""

    words: list[str]
    known: list[bool]
    weight: np.ndarray
    label: str
    predicted: list[str]
    probability: list[float]
    right: list[bool]

    def entry(self) -> Sentence:
        """Its words with shades and remarks."""
        peak = self.weight.max() if self.weight.size else 0.0
        shades = np.rint(100 * self.weight / (peak or 1.0)).astype(int)
        return Sentence(
            tuple(self.words),
            tuple(self.known),
            self.label,
            shades=tuple(tuple(row) for row in shades.tolist()),
            told=tuple(self._told(k) for k in range(len(self.predicted))),
            right=tuple(self.right),
        )

    def _told(self, k: int) -> str:
        said = f"{'✓' if self.right[k] else '✗'} says {quoted([self.predicted[k]])}, "
        said += f"probability of the label {number(self.probability[k], 2)}"
        alone = self.weight[k][:_WORDS]
        if not alone.size or alone.max() <= 0:
            return f"{said}; it knows no word of this"
        first = int(alone.argmax())
        equal = np.isclose(alone, alone[first], rtol=1e-4) & np.array(self.known[: len(alone)])
        share, different = (
            percent(alone[first]),
            len({self.words[k] for k in np.flatnonzero(equal)}),
        )
        if different > 1:
            return f"{said}; {different} words get most, {share} each"
        return f"{said}; most on {quoted([self.words[first]])}, {share}{' at each place' if equal.sum() > 1 else ''}"


def _row(one: xr.Dataset) -> _Row:
    """A sentence up to its last word; words beyond ``_WORDS`` are one, with the sum of their
    weights.
    """
    words = [str(word) for word in one["word"].values.tolist()]
    length = max((k + 1 for k, word in enumerate(words) if word), default=0)
    known = one["known"].values.astype(bool)[:length]
    weight = one["weight"].transpose("step", "place").values.astype(float)[:, :length]
    weight = np.where(known & np.isfinite(weight), weight, 0.0)
    kept, there = (
        [shortened(word) for word in words[: min(length, _WORDS)]],
        known[:_WORDS].tolist(),
    )
    if length > _WORDS:
        kept, there = [*kept, f"… {length - _WORDS} more words"], [*there, True]
        weight = np.column_stack([weight[:, :_WORDS], weight[:, _WORDS:].sum(axis=1)])
    label, predicted = (
        str(one["label"].values),
        [str(each) for each in one["predicted"].values.tolist()],
    )
    return _Row(
        kept,
        there,
        weight,
        shortened(label),
        [shortened(each) for each in predicted],
        probability=one["probability"].values.astype(float).tolist(),
        right=[each == label for each in predicted],
    )


def _table(rows: list[_Row], steps: list[str]) -> dict[str, list[Any]]:
    """A row for each word, a column for each step."""
    table: dict[str, list[Any]] = {
        "sentence": [k + 1 for k, row in enumerate(rows) for _ in row.words],
        "label": [row.label for row in rows for _ in row.words],
        "place": [k + 1 for row in rows for k in range(len(row.words))],
        "word": [word for row in rows for word in row.words],
        "known": ["yes" if known else "no" for row in rows for known in row.known],
    }
    for k, step in enumerate(steps):
        table[f"attention at step {step}"] = [
            value for row in rows for value in short(row.weight[k])
        ]
    return table


def _note(sentences: xr.Dataset, shown: int, steps: int) -> str:
    parts = []
    if shown < sentences.sizes["sentence"]:
        parts.append(f"{shown} of {sentences.sizes['sentence']} sentences are shown.")
    if steps < sentences.sizes["step"]:
        parts.append(f"{steps} of {sentences.sizes['step']} recorded steps are shown and saved.")
    return " ".join(parts)
