"""The page of ``attnlab digits``: the images, where each student looks, and how many images it
needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._curves import learning_curves
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._dynamics import again_section, card_of_entry
from attnlab.report._heat import heat_table
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Figure, Page, Section
from attnlab.report._palette import INK, MUTED, SKY
from attnlab.report._prepare import layout, of_choice, short
from attnlab.report._render import write_folder
from attnlab.report._sample_tables import answers_table, tuning_table
from attnlab.report._text import number, plain, told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_ELSEWHERE = ("settings", "command", "summary", "cards", "title", "question", "protocol")
_ROWS = 4  # images that are shown at once
_GAP, _HEAD, _TOP = 0.1, 0.26, 0.4  # room between pictures, above each and above all, in pictures
_PIXELS = 104  # a picture's side on the page
_STRONG = 4.0  # even shares that are drawn strongly: nearly even attention stays pale
# Ink is light on dark and heat is laid over it, in both themes: what lies under the heat stays
# readable.
_GREYS = [[0, "#14181f"], [1, "#f4f6f8"]]
_HEAT = [[0, "rgba(230,159,0,0)"], [0.2, "rgba(230,159,0,0.4)"], [1, "rgba(255,96,0,0.82)"]]


def digits_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about students that read digits on cluttered images.

    - ``data["digits"]``: what ``attnlab.studies.tabulate`` returns, with the score ``accuracy``,
      and for students that attend ``attention_on_digit`` (student, task, seed, size) and
      ``digit_area``, the share that even attention has;
    - ``data["pictures"]``: test images of one seed: ``image`` and ``mask`` (example, row, column),
      ``label`` (example), ``predicted`` (student, example) and, if some student attends,
      ``attention_map`` (attending, example, row, column).

    ``about`` as for ``samples_page``; its ``protocol`` says in sentences how ``images`` are made,
    with which ``sizes`` students were fitted, and on what the answer ``depends``.
    """
    table, pictures, protocol = data["digits"], data["pictures"], about.get("protocol") or {}
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    return Page(
        title=str(about.get("title", "attnlab: noisy digits")),
        question=str(
            about.get("question", "How many images does each student need, and where does it look?")
        ),
        summary=str(protocol.get("depends", ""))
        if cards
        else " ".join(map(str, about.get("summary") or ())),
        sections=(
            _looking(table, pictures, protocol),
            _curves(table, protocol),
            _needed(table),
            *_ratio(table, protocol),
            *_fits(table, about.get("settings") or {}),
            again_section(about),
        ),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_digits(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(digits_page(data, about), folder)


def _looking(table: xr.Dataset, pictures: xr.Dataset, protocol: Mapping[str, Any]) -> Section:
    body = [str(protocol["images"])] if protocol.get("images") else []
    figures = [_read_table(pictures)]
    if "attention_map" in pictures:
        figures = [attention_pictures(pictures, id="pictures"), *looking_dots(table), *figures]
    else:
        body.append("No student of this run attends, so that there is no attention to draw.")
    statement = "One real digit stands among fragments of others and noise; nobody tells a student that attends where."
    return Section(
        "pictures",
        "Where does each student look?",
        statement,
        body=tuple(body),
        figures=tuple(figures),
    )


def attention_pictures(pictures: xr.Dataset, *, id: str) -> Figure:
    """Test images beside each attention, drawn over the image; the reader chooses which images."""
    count = pictures.sizes["example"]
    groups = [range(k, min(k + _ROWS, count)) for k in range(0, count, _ROWS)]
    traces = [_group(pictures, group) for group in groups]
    choices = (
        tuple(f"{group[0] + 1} to {group[-1] + 1}" for group in groups) if len(groups) > 1 else ()
    )
    if choices:
        traces = [[of_choice(trace, k) for trace in own] for k, own in enumerate(traces)]
    names = [str(name) for name in pictures["attending"].values]
    alt = "; ".join(f"{name}: {_in_short(pictures, name)}" for name in names)
    return Figure(
        id,
        "Test images, and the attention of each student over them",
        "Ink is light. Orange: pixels that get more than an even share of the attention, the "
        "stronger the more. Blue "
        "outline: the square in which the digit stands. Above each picture: what the student "
        "reads, and how much of "
        f"its attention is inside the square. Students of seed {pictures.attrs.get('seed', 0)}, "
        "fitted with "
        f"{pictures.attrs.get('size', 'the most')} images.",
        f"{count} cluttered test images with attention maps. {alt}.",
        {
            "data": [trace for own in traces for trace in own],
            "layout": _layout(len(names) + 1, len(groups[0])),
        },
        _summary(pictures),
        "The table holds shares; every pixel's attention lies in the folder's data.",
        choices=choices,
        choice_label="Test images",
    )


def _in_short(pictures: xr.Dataset, student: str) -> str:
    right = int((pictures["predicted"].sel(student=student) == pictures["label"]).sum())
    share = float(_shares(pictures, student).mean())
    return f"{right} of {pictures.sizes['example']} read right, {share:.0%} of the attention on the digit"


def _shares(pictures: xr.Dataset, student: str) -> np.ndarray:
    """How much of its attention lies on each image's digit."""
    return (
        (pictures["attention_map"].sel(attending=student) * pictures["mask"])
        .sum(("row", "column"))
        .values
    )


def _summary(pictures: xr.Dataset) -> dict[str, list[Any]]:
    names, count = [str(s) for s in pictures["attending"].values], pictures.sizes["example"]
    even = pictures["mask"].mean(("row", "column")).values
    return {
        "image": [k + 1 for _ in names for k in range(count)],
        "student": [name for name in names for _ in range(count)],
        "digit": [int(d) for _ in names for d in pictures["label"].values],
        "read as": [
            int(d) for name in names for d in pictures["predicted"].sel(student=name).values
        ],
        "attention on the digit": short(
            np.concatenate([_shares(pictures, name) for name in names])
        ),
        "even attention": short(np.tile(even, len(names))),
    }


def _group(pictures: xr.Dataset, group: range) -> list[dict[str, Any]]:
    """Some images, one in each row: the image alone, then under each student's attention."""
    names, (rows, columns) = [str(s) for s in pictures["attending"].values], _side(pictures)
    most = max(_STRONG, float(pictures["attention_map"].max()) * rows * columns)
    greys, heats, boxes, words = [], [], ([], []), []
    words += [
        (k, -0.2, f"<b>{plain(head).replace('-', '-<br>', 1)}</b>")
        for k, head in enumerate(["image", *names])
    ]
    for row, image in enumerate(group):
        one = pictures.isel(example=image)
        top = row * (1 + _HEAD) + _HEAD
        words.append((0, top - 0.1, f"a {int(one['label'])}"))
        grey = np.rint(100 * one["image"].values).astype(int)
        for k, name in enumerate([None, *names]):
            left = k * (1 + _GAP)
            greys.append(_picture(grey, left, top, _GREYS, -10, 100) | {"hoverinfo": "skip"})
            for side, values in zip(boxes, _outline(one["mask"].values, left, top), strict=True):
                side.extend(values)
            if name is not None:
                words.append((k, top - 0.1, _reads(pictures, name, image)))
                heat = one["attention_map"].sel(attending=name).values * rows * columns
                hover = f"%{{z:.2f}} times an even share<extra>{plain(name)}</extra>"
                drawn = _picture(np.round(heat, 2), left, top, _HEAT, 1, most)
                heats.append(
                    drawn | {"hovertemplate": hover, "showscale": not heats, "colorbar": _COLORBAR}
                )
    return [*greys, *heats, _box_trace(boxes), _word_trace(words)]


def _side(pictures: xr.Dataset) -> tuple[int, int]:
    return pictures.sizes["row"], pictures.sizes["column"]


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
    "title": {
        "text": "attention of a pixel, times an even share",
        "side": "top",
        "font": {"size": 12, "color": MUTED},
    },
    "tickfont": {"size": 12, "color": MUTED},
}


def _picture(
    values: np.ndarray, left: float, top: float, colors: list[list[Any]], low: float, high: float
) -> Any:
    """One picture in a square of side 1."""
    rows, columns = values.shape
    place = {"x0": left + 0.5 / columns, "dx": 1 / columns, "y0": top + 0.5 / rows, "dy": 1 / rows}
    place = {key: float(f"{value:.6g}") for key, value in place.items()}
    style = {"colorscale": colors, "zmin": low, "zmax": high, "showscale": False}
    return {"type": "heatmap", "z": values.tolist()} | place | style


def _outline(
    mask: np.ndarray, left: float, top: float
) -> tuple[list[float | None], list[float | None]]:
    """The border of what the mask leaves, and a break."""
    across, down = np.flatnonzero(mask.any(axis=0)), np.flatnonzero(mask.any(axis=1))
    (x0, x1), (y0, y1) = (
        (start + where[0] / length, start + (where[-1] + 1) / length)
        for where, length, start in ((across, mask.shape[1], left), (down, mask.shape[0], top))
    )
    return [*short([x0, x1, x1, x0, x0]), None], [*short([y0, y0, y1, y1, y0]), None]


def _box_trace(boxes: tuple[list[Any], list[Any]]) -> dict[str, Any]:
    line = {"color": SKY, "width": 2}
    data = {"x": boxes[0], "y": boxes[1], "name": "the digit's square", "showlegend": True}
    return {"type": "scatter", "mode": "lines", "line": line, "hoverinfo": "skip"} | data


def _word_trace(words: list[tuple[int, float, str]]) -> dict[str, Any]:
    data = {
        "x": short([k * (1 + _GAP) + 0.5 for k, _, _ in words]),
        "y": short([y for _, y, _ in words]),
    }
    style = {
        "mode": "text",
        "textfont": {"size": 11, "color": INK},
        "showlegend": False,
        "hoverinfo": "skip",
    }
    style |= {"cliponaxis": False}  # a name may be longer than its picture is wide
    return {"type": "scatter", "text": [text for _, _, text in words]} | data | style


def _reads(pictures: xr.Dataset, student: str, image: int) -> str:
    read, share = (
        int(pictures["predicted"].sel(student=student)[image]),
        _shares(pictures, student)[image],
    )
    return f"reads {_sign(read, int(pictures['label'][image]))} · {100 * share:.0f} %"


def _sign(read: int, label: int) -> str:
    return f"{read} {'✓' if read == label else '✗'}"


def _layout(columns: int, rows: int) -> dict[str, Any]:
    width, tall = columns * (1 + _GAP) - _GAP, rows * (1 + _HEAD) + 0.06
    hidden = {"visible": False, "fixedrange": True, "constrain": "domain"}
    style = layout(round(_PIXELS * (tall + _TOP)) + 120, top=36)
    style["xaxis"] = hidden | {"range": [-_GAP, width + _GAP]}
    style["yaxis"] = hidden | {"range": [tall, -_TOP], "scaleanchor": "x", "constraintoward": "top"}
    style["margin"] |= {"l": 6, "r": 6, "b": 76}
    return style


def looking_dots(table: xr.Dataset) -> list[Figure]:
    """Attention on the digit, seed by seed, against what even attention would have."""
    rows = []
    for student in (str(s) for s in table["student"].values):
        one = table.sel(student=student).isel(task=0)
        for size in table["size"].values.tolist():
            values = one["attention_on_digit"].sel(size=size).dropna("seed")
            if values.size:
                rows.append(
                    DotRow(
                        f"{student}, {size} images",
                        values,
                        float(one["digit_area"].mean()),
                        "above",
                    )
                )
    if not rows:
        return []
    figure = dots_figure(
        rows,
        id="on_digit",
        title="How much attention is on the digit, seed by seed",
        x_label="share of attention in the digit's square",
        caption="One dot per seed (mean over all test images), the bar is the median. Dotted "
        "line: even attention, "
        "whose share is that of the square in the image. On the shaded side the student looks at "
        "the digit.",
    )
    names = {
        "within the threshold": "more than even attention",
        "beyond the threshold": "less than even attention",
    }
    drawn = [
        trace | {"name": names.get(trace["name"], trace["name"])} for trace in figure.plotly["data"]
    ]
    return [replace(figure, plotly=figure.plotly | {"data": drawn})]


def _read_table(pictures: xr.Dataset) -> Figure:
    students = [str(s) for s in pictures["student"].values]
    labels = [int(d) for d in pictures["label"].values]
    read = pictures["predicted"].transpose("example", "student").values
    cells = [[_sign(int(r), label) for r in row] for row, label in zip(read, labels, strict=True)]
    return heat_table(
        [f"image {k + 1}: a {label}" for k, label in enumerate(labels)],
        students,
        cells,
        id="read",
        title="What each student reads in these test images",
        tones=[["" for _ in row] for row in cells],
        caption="✓ right, ✗ wrong. A few images of one seed; the learning curves count all.",
    )


def _curves(table: xr.Dataset, protocol: Mapping[str, Any]) -> Section:
    level = number(100 * float(table.attrs["level"]))
    return Section(
        "curves",
        "Learning curves",
        "How the share of test digits that are read right grows with the number of training "
        "images n; chance reads "
        "about one in ten.",
        body=(str(protocol["sizes"]),) if protocol.get("sizes") else (),
        figures=(
            learning_curves(
                table,
                id="learning_curves",
                title=f"When are {level} % of the digits read right?",
                y_label="accuracy on test images",
            ),
        ),
    )


def _needed(table: xr.Dataset) -> Section:
    return Section(
        "needed",
        "Needed images",
        "Where the mean curve over seeds first meets the level, interpolated in log n between the "
        "sizes that were run.",
        figures=(
            needed_figure(table, id="needed", title="Images needed for the level"),
            answers_table(table, id="answers", title="The same in numbers"),
        ),
    )


def _ratio(table: xr.Dataset, protocol: Mapping[str, Any]) -> tuple[Section, ...]:
    """Nothing for a single student."""
    against = str(table.attrs["against"])
    if table.sizes["student"] < 2:
        return ()
    return (
        Section(
            "ratio",
            "How many images are saved?",
            f"The images that {against} needs, over those that each other student needs, from "
            "paired seeds.",
            body=(str(protocol["depends"]),) if protocol.get("depends") else (),
            figures=(
                ratio_figure(
                    table, id="ratio", title=f"How many times fewer images than {against}"
                ),
            ),
        ),
    )


def _fits(table: xr.Dataset, settings: Mapping[str, Any]) -> tuple[Section, ...]:
    offered = {
        "step_size": settings.get("step_sizes") or (),
        "weight_decay": settings.get("weight_decays") or (),
    }
    figure = tuning_table(table, id="tuning", title="What validation images chose", offered=offered)
    statement = "Students are only comparable if all were tuned alike, and if their training had come to an end."
    return (
        () if figure is None else (Section("fits", "What was tuned", statement, figures=(figure,)),)
    )
