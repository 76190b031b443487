"""Where students look on noisy digits: figures that claim and command share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.papers.liu2021.digit_sweeps import DigitCurves, Pictures
from attnlab.report import DotRow, Figure, PictureRow, dots_figure, pictures_figure

if TYPE_CHECKING:
    import xarray as xr


def attention_pictures(pictures: xr.Dataset, *, id: str) -> Figure:
    """Test images beside each attention, drawn over the image; the reader chooses which images."""
    count = pictures.sizes["example"]
    names = [str(name) for name in pictures["attending"].values]
    alt = "; ".join(f"{name}: {_in_short(pictures, name)}" for name in names)
    return pictures_figure(
        [_row(pictures, names, k) for k in range(count)],
        names,
        id=id,
        title="Test images, and the attention of each student over them",
        caption="Ink is light. Orange: pixels that get more than an even share of the attention, "
        "the stronger the more. Blue outline: the square in which the digit stands. Above each "
        "picture: what the student reads, and how much of its attention is inside the square. "
        f"Students of seed {pictures.attrs['seed']}, fitted with {pictures.attrs['size']} images.",
        alt=f"{count} cluttered test images with attention maps. {alt}.",
        table=_numbers(pictures, names),
        note="The table holds shares; every pixel's attention lies in the folder's data.",
        outline_label="the digit's square",
        heat_label="attention of a pixel, times an even share",
        heat_unit="times an even share",
        choice_label="Test images",
    )


def sign(read: int, digit: int) -> str:
    """What was read, and whether that is right.

    >>> sign(3, 3), sign(8, 3)
    ('3 ✓', '8 ✗')
    """
    return f"{read} {'✓' if read == digit else '✗'}"


def _row(pictures: xr.Dataset, names: list[str], example: int) -> PictureRow:
    one = pictures.isel(example=example)
    digit = int(one[Pictures.digit])
    pixels = pictures.sizes["row"] * pictures.sizes["column"]
    heats, words = [], [f"a {digit}"]
    for name in names:
        read = int(one[Pictures.predicted].sel(student=name))
        share = 100 * _shares(pictures, name)[example]
        words.append(f"reads {sign(read, digit)} · {share:.0f} %")
        heats.append(one[Pictures.attention_map].sel(attending=name).values * pixels)
    image, mask = one[Pictures.image].values, one[Pictures.mask].values
    return PictureRow(image, mask, tuple(heats), tuple(words))


def _in_short(pictures: xr.Dataset, student: str) -> str:
    read = pictures[Pictures.predicted].sel(student=student)
    right = int((read == pictures[Pictures.digit]).sum())
    share = float(_shares(pictures, student).mean())
    count = pictures.sizes["example"]
    return f"{right} of {count} read right, {share:.0%} of the attention on the digit"


def _shares(pictures: xr.Dataset, student: str) -> np.ndarray:
    """How much of its attention lies on each image's digit."""
    inside = pictures[Pictures.attention_map].sel(attending=student) * pictures[Pictures.mask]
    return inside.sum(("row", "column")).values


def _numbers(pictures: xr.Dataset, names: list[str]) -> dict[str, list[Any]]:
    """What the pictures show, one row for each student and image."""
    columns: dict[str, list[Any]] = {
        "image": [],
        "student": [],
        "digit": [],
        "read as": [],
        "attention on the digit": [],
        "even attention": [],
    }
    digits = pictures[Pictures.digit].values
    even = pictures[Pictures.mask].mean(("row", "column")).values
    for name in names:
        read = pictures[Pictures.predicted].sel(student=name).values
        shares = _shares(pictures, name)
        for k in range(pictures.sizes["example"]):
            row = (k + 1, name, int(digits[k]), int(read[k]), _short(shares[k]), _short(even[k]))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def _short(value: Any) -> float:
    return float(f"{value:.6g}")


def looking_dots(table: xr.Dataset) -> list[Figure]:
    """Attention on the digit, seed by seed, against what even attention would have."""
    rows = []
    for student in (str(s) for s in table["student"].values):
        one = table.sel(student=student).isel(task=0)
        even = float(one[DigitCurves.digit_area].mean())
        for size in table["size"].values.tolist():
            values = one[DigitCurves.attention_on_digit].sel(size=size).dropna("seed")
            if values.size:
                rows.append(DotRow(f"{student}, {size} images", values, even, "above"))
    if not rows:
        return []
    return [
        dots_figure(
            rows,
            id="on_digit",
            title="How much attention is on the digit, seed by seed",
            x_label="share of attention in the digit's square",
            caption="One dot per seed (mean over all test images), the bar is the median. Dotted "
            "line: even attention, whose share is that of the square in the image. On the shaded "
            "side the student looks at the digit.",
            names=("more than even attention", "less than even attention"),
        )
    ]
