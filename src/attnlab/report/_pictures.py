"""What attention goes to, shown on the thing itself: images under heat, sentences with shaded words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure, Sentence, Shaded
from attnlab.report._style import INK, MUTED, SKY, layout, of_choice, one_note, short, thinned
from attnlab.report._words import number, percent, plain, quoted, shortened

if TYPE_CHECKING:
    import xarray as xr

_ROWS = 4  # images that are shown at once
_GAP, _HEAD, _TOP = 0.1, 0.26, 0.4  # room between pictures, above each and above all, in pictures
_PIXELS = 104  # a picture's side on the page
_STRONG = 4.0  # heat that is drawn strongly, at least: what is nearly even stays pale
# Ink is light on dark and heat is laid over it, in both themes: what lies under the heat stays
# readable.
_GREYS = [[0, "#14181f"], [1, "#f4f6f8"]]
_HEAT = [[0, "rgba(230,159,0,0)"], [0.2, "rgba(230,159,0,0.4)"], [1, "rgba(255,96,0,0.82)"]]
_COLORBAR = {
    "orientation": "h",
    "y": 0,
    "yanchor": "top",
    "x": 0.5,
    "lenmode": "pixels",
    "len": 280,
    "thickness": 12,
    "outlinewidth": 0,
    "ypad": 6,
    "tickfont": {"size": 12, "color": MUTED},
}
_SENTENCES, _WORDS, _STEPS = 16, 80, 60  # what is shown of sentences at most
_NEEDED = ("weight", "word", "known", "label", "predicted", "probability")
_SHADED_CAPTION = (
    "The stronger a word is shaded, the more of its sentence's attention it gets: full strength "
    "is the largest weight that any word of the sentence has at any step, and half of it is half "
    "the attention. Grey words in italics are not in the vocabulary: they get no attention. Below "
    "each sentence its label, then what the model says at this step, with the probability that it "
    "gives to the label, and the word that gets most."
)


@dataclass(frozen=True)
class PictureRow:
    """One image, shown alone and then once for each ``heat`` over it.

    - ``image`` (rows, columns): ink from 0 to 1; ``outlined``, of the same shape: not zero in the
      rectangle that is outlined.
    - ``heats``: of the same shape; up to 1 nothing is drawn, above it the stronger the more.
    - ``words``: what stands above each picture, that of the image alone first.
    """

    image: np.ndarray
    outlined: np.ndarray
    heats: tuple[np.ndarray, ...]
    words: tuple[str, ...]


def pictures_figure(
    rows: Sequence[PictureRow],
    heads: Sequence[str],
    *,
    id: str,
    title: str,
    caption: str,
    alt: str,
    table: Mapping[str, list[Any]],
    note: str = "",
    outline_label: str,
    heat_label: str,
    heat_unit: str,
    choice_label: str = "Images",
) -> Figure:
    """Rows of pictures under ``heads``, one for each heat; the reader chooses which rows.

    ``table`` has the numbers in short; ``heat_unit`` follows a pixel's heat where it is pointed at.
    """
    if not rows:
        raise AttnlabError(f"figure {id!r} has no picture to draw; expected at least one row")
    groups = [range(k, min(k + _ROWS, len(rows))) for k in range(0, len(rows), _ROWS)]
    most = max(_STRONG, max(float(heat.max()) for row in rows for heat in row.heats))
    colorbar = _COLORBAR | {
        "title": {"text": heat_label, "side": "top", "font": {"size": 12, "color": MUTED}}
    }
    traces = [
        [
            *_pictures([rows[k] for k in group], heads, most, heat_unit, colorbar),
            _outlines([rows[k] for k in group], outline_label),
            _picture_words([rows[k] for k in group], heads),
        ]
        for group in groups
    ]
    choices = ()
    if len(groups) > 1:
        choices = tuple(f"{group[0] + 1} to {group[-1] + 1}" for group in groups)
        traces = [[of_choice(trace, k) for trace in own] for k, own in enumerate(traces)]
    return Figure(
        id,
        title,
        caption,
        alt,
        {
            "data": [trace for own in traces for trace in own],
            "layout": _pictures_layout(len(heads) + 1, len(groups[0])),
        },
        dict(table),
        note,
        choices=choices,
        choice_label=choice_label,
    )


def _left(column: int) -> float:
    return column * (1 + _GAP)


def _top(row: int) -> float:
    return row * (1 + _HEAD) + _HEAD


def _pictures(
    rows: Sequence[PictureRow],
    heads: Sequence[str],
    most: float,
    unit: str,
    colorbar: dict[str, Any],
) -> list[dict[str, Any]]:
    """All images, and over them all heats."""
    greys, heats = [], []
    for k, row in enumerate(rows):
        grey = np.rint(100 * row.image).astype(int)
        for column in range(len(heads) + 1):
            place = _left(column), _top(k)
            greys.append(_picture(grey, place, _GREYS, -10, 100) | {"hoverinfo": "skip"})
        for column, (head, heat) in enumerate(zip(heads, row.heats, strict=True), start=1):
            drawn = _picture(np.round(heat, 2), (_left(column), _top(k)), _HEAT, 1, most)
            hover = f"%{{z:.2f}} {plain(unit)}<extra>{plain(head)}</extra>"
            scale = {"showscale": not heats, "colorbar": colorbar}
            heats.append(drawn | {"hovertemplate": hover} | scale)
    return [*greys, *heats]


def _picture(
    values: np.ndarray,
    place: tuple[float, float],
    colors: list[list[Any]],
    low: float,
    high: float,
) -> dict[str, Any]:
    """One picture in a square of side 1."""
    (rows, columns), (left, top) = values.shape, place
    where = {"x0": left + 0.5 / columns, "dx": 1 / columns, "y0": top + 0.5 / rows, "dy": 1 / rows}
    where = {key: float(f"{value:.6g}") for key, value in where.items()}
    style = {"colorscale": colors, "zmin": low, "zmax": high, "showscale": False}
    return {"type": "heatmap", "z": values.tolist()} | where | style


def _outlines(rows: Sequence[PictureRow], name: str) -> dict[str, Any]:
    """The border of what is outlined in every picture, with a break after each."""
    x: list[float | None] = []
    y: list[float | None] = []
    for k, row in enumerate(rows):
        height, width = row.outlined.shape
        across = np.flatnonzero(row.outlined.any(axis=0))
        down = np.flatnonzero(row.outlined.any(axis=1))
        for column in range(len(row.heats) + 1):
            x0, x1 = (_left(column) + end / width for end in (across[0], across[-1] + 1))
            y0, y1 = (_top(k) + end / height for end in (down[0], down[-1] + 1))
            x += [*short([x0, x1, x1, x0, x0]), None]
            y += [*short([y0, y0, y1, y1, y0]), None]
    data = {"x": x, "y": y, "name": plain(name), "showlegend": True}
    line = {"color": SKY, "width": 2}
    return {"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"} | data


def _picture_words(rows: Sequence[PictureRow], heads: Sequence[str]) -> dict[str, Any]:
    """The heads of the columns, and what stands above each picture."""
    words = [
        (column, -0.2, f"<b>{plain(head).replace('-', '-<br>', 1)}</b>")
        for column, head in enumerate(["image", *heads])
    ]
    for k, row in enumerate(rows):
        above = enumerate(row.words)
        words += [(column, _top(k) - 0.1, plain(text)) for column, text in above]
    return {
        "type": "scatter",
        "text": [text for _, _, text in words],
        "x": short([_left(column) + 0.5 for column, _, _ in words]),
        "y": short([y for _, y, _ in words]),
        "mode": "text",
        "textfont": {"size": 11, "color": INK},
        "showlegend": False,
        "hoverinfo": "skip",
        "cliponaxis": False,  # a name may be longer than its picture is wide
    }


def _pictures_layout(columns: int, rows: int) -> dict[str, Any]:
    width, tall = columns * (1 + _GAP) - _GAP, rows * (1 + _HEAD) + 0.06
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    style = layout(round(_PIXELS * (tall + _TOP)) + 120, top=36)
    style["xaxis"] = hidden | {"range": [-_GAP, width + _GAP]}
    style["yaxis"] = hidden | {"range": [tall, -_TOP], "scaleanchor": "x", "constraintoward": "top"}
    style["margin"] |= {"l": 6, "r": 6, "b": 76}
    return style


def shaded_figure(
    sentences: xr.Dataset, *, id: str, title: str, start: float | None = None
) -> Figure:
    """Sentences with each word's background as strong as its share of the attention.

    ``sentences``: ``weight`` (sentence, place, step), ``word`` and ``known`` (sentence, place; an
    empty word is beyond the end), ``label`` (sentence), ``predicted`` and ``probability`` of the
    label (sentence, step). A shade is 100 · weight / (the sentence's largest weight at any step),
    so that twice as strong is twice the attention. The slider opens at the step nearest to
    ``start``, by default at the last one. Words after the 80th are shown as one, with the
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
    rows = [_shaded_row(kept.isel(sentence=k)) for k in range(kept.sizes["sentence"])]
    return Figure(
        id,
        title,
        _SHADED_CAPTION,
        title,
        {},
        _shaded_table(rows, names),
        _shaded_note(sentences, len(rows), len(names)),
        shaded=Shaded(
            tuple(names),
            tuple(row.entry() for row in rows),
            -1 if start is None else int(np.abs(kept["step"].values - start).argmin()),
        ),
    )


@dataclass(frozen=True, eq=False)
class _ShadedRow:
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
            remarks=tuple(self._remark(k) for k in range(len(self.predicted))),
            right=tuple(self.right),
        )

    def _remark(self, k: int) -> str:
        said = f"{'✓' if self.right[k] else '✗'} says {quoted([self.predicted[k]])}, "
        said += f"probability of the label {number(self.probability[k], 2)}"
        alone = self.weight[k][:_WORDS]
        if not alone.size or alone.max() <= 0:
            return f"{said}; it knows no word of this"
        first = int(alone.argmax())
        equal = np.isclose(alone, alone[first], rtol=1e-4) & np.array(self.known[: len(alone)])
        share = percent(alone[first])
        most = {self.words[k] for k in np.flatnonzero(equal)}
        if len(most) > 1:
            return f"{said}; {len(most)} words get most, {share} each"
        often = " at each place" if equal.sum() > 1 else ""
        return f"{said}; most on {quoted([self.words[first]])}, {share}{often}"


def _shaded_row(one: xr.Dataset) -> _ShadedRow:
    """A sentence up to its last word; words beyond ``_WORDS`` are one, with the sum of their
    weights.
    """
    words = [str(word) for word in one["word"].values.tolist()]
    length = max((k + 1 for k, word in enumerate(words) if word), default=0)
    known = one["known"].values.astype(bool)[:length]
    weight = one["weight"].transpose("step", "place").values.astype(float)[:, :length]
    weight = np.where(known & np.isfinite(weight), weight, 0.0)
    kept = [shortened(word) for word in words[:length][:_WORDS]]
    there = known[:_WORDS].tolist()
    if length > _WORDS:
        kept.append(f"… {length - _WORDS} more words")
        there.append(True)
        weight = np.column_stack([weight[:, :_WORDS], weight[:, _WORDS:].sum(axis=1)])
    label = str(one["label"].values)
    predicted = [str(each) for each in one["predicted"].values.tolist()]
    return _ShadedRow(
        kept,
        there,
        weight,
        shortened(label),
        [shortened(each) for each in predicted],
        probability=one["probability"].values.astype(float).tolist(),
        right=[each == label for each in predicted],
    )


def _shaded_table(rows: list[_ShadedRow], steps: list[str]) -> dict[str, list[Any]]:
    """A row for each word, a column for each step."""
    table: dict[str, list[Any]] = {
        name: [] for name in ("sentence", "label", "place", "word", "known")
    } | {f"attention at step {step}": [] for step in steps}
    for k, row in enumerate(rows):
        count = len(row.words)
        table["sentence"] += [k + 1] * count
        table["label"] += [row.label] * count
        table["place"] += range(1, count + 1)
        table["word"] += row.words
        table["known"] += ["yes" if known else "no" for known in row.known]
        for step, weight in zip(steps, row.weight, strict=True):
            table[f"attention at step {step}"] += short(weight)
    return table


def _shaded_note(sentences: xr.Dataset, shown: int, steps: int) -> str:
    every, recorded = sentences.sizes["sentence"], sentences.sizes["step"]
    return one_note(
        f"{shown} of {every} sentences are shown." if shown < every else "",
        f"{steps} of {recorded} recorded steps are shown and saved." if steps < recorded else "",
    )
