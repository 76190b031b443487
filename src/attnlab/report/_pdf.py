"""A drawing of ours as PDF, by matplotlib (the extra ``plot``)."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import numpy as np

from attnlab._errors import AttnlabError

_POINT = 0.75  # points in a pixel
_TOKEN = re.compile(r"[MLHVZ]|-?[\d.]+")
_INHERITED = (
    "fill",
    "fill-opacity",
    "stroke",
    "stroke-opacity",
    "stroke-width",
    "stroke-dasharray",
)
_BEFORE = {"start": 0.0, "middle": 0.5, "end": 1.0}  # the share of a text before its place


def pdf(drawing: str) -> bytes:
    """The PDF file of an SVG drawing that `attnlab.report.svg` made; others are not understood."""
    try:
        import matplotlib
        from matplotlib.backends.backend_pdf import FigureCanvasPdf
        from matplotlib.figure import Figure
    except ImportError as error:
        raise AttnlabError(
            "PDF needs matplotlib, which is not installed: pip install 'attnlab[plot]'"
        ) from error
    root = ElementTree.fromstring(drawing)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    with matplotlib.rc_context({"pdf.fonttype": 42, "font.family": "DejaVu Sans"}):
        page = Figure(figsize=(width / 96, height / 96))
        canvas = FigureCanvasPdf(page)
        axes = page.add_axes((0, 0, 1, 1))
        axes.axis("off")
        axes.set(xlim=(0, width), ylim=(height, 0))
        _Page(axes).add(root, {}, None)
        axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
        file = io.BytesIO()
        canvas.print_pdf(file, metadata={"CreationDate": None, "Creator": None, "Producer": None})
    return file.getvalue()


class _Page:
    """Axes in pixels, on which elements are drawn one above the other."""

    def __init__(self, axes: Any):
        self.axes = axes
        self.order = 0
        self.boxes: dict[str, tuple[float, ...]] = {}

    def add(
        self, element: ElementTree.Element, style: Mapping[str, str], clip: tuple[float, ...] | None
    ) -> None:
        """An element and all within it, in the style and box of what it stands in."""
        kind = element.tag.rpartition("}")[2]
        given = element.attrib
        style = {**style, **{k: v for k, v in given.items() if k in _INHERITED}}
        if kind == "clipPath":
            self.boxes[given["id"]] = _box(element[0].attrib)
            return
        if "clip-path" in given:
            clip = self.boxes[given["clip-path"][5:-1]]
        self.order += 1
        if kind in ("path", "rect", "circle"):
            self._shape(kind, given, style, clip)
        elif kind == "text":
            self._text(element, given)
        elif kind == "image":
            self._image(given, clip)
        elif kind in ("svg", "g"):
            for part in element:
                self.add(part, style, clip)

    def _shape(
        self, kind: str, given: Mapping[str, str], style: Mapping[str, str], clip: Any
    ) -> None:
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        if kind == "path":
            points, codes = _points(given["d"])
            path = Path(points, codes)
        elif kind == "rect":
            x, y, width, height = _box(given)
            path = Path(
                np.array([(0, 0), (1, 0), (1, 1), (0, 1), (0, 0)]) * (width, height) + (x, y)
            )
        else:
            path = Path.circle((float(given["cx"]), float(given["cy"])), float(given["r"]))
        dashes = [float(part) * _POINT for part in style.get("stroke-dasharray", "").split()]
        width = float(style.get("stroke-width", 0)) * _POINT if "stroke" in style else 0
        patch = PathPatch(
            path,
            facecolor=_color(style, "fill", "#000000"),
            edgecolor=_color(style, "stroke", "none"),
            linewidth=width,
            linestyle=(0, dashes) if dashes and width else "solid",
            zorder=self.order,
        )
        self.axes.add_patch(patch)
        self._clip(patch, clip)

    def _clip(self, artist: Any, clip: tuple[float, ...] | None) -> None:
        from matplotlib.patches import Rectangle

        if clip is not None:
            x, y, width, height = clip
            artist.set_clip_path(Rectangle((x, y), width, height, transform=self.axes.transData))

    def _text(self, element: ElementTree.Element, given: Mapping[str, str]) -> None:
        """Runs of plain and bold words, one after the other."""
        from matplotlib.font_manager import FontProperties
        from matplotlib.textpath import text_to_path

        runs = [("normal", element.text or "")]
        for part in element:
            runs += [("bold", part.text or ""), ("normal", part.tail or "")]
        size = float(given["font-size"])
        fonts = [FontProperties(family="DejaVu Sans", weight=w, size=size) for w, _ in runs]
        widths = [
            text_to_path.get_text_width_height_descent(text, font, ismath=False)[0] if text else 0.0
            for (_, text), font in zip(runs, fonts, strict=True)
        ]
        x, y = float(given["x"]), float(given["y"])
        anchor = given.get("text-anchor", "start")
        turned = "transform" in given  # such a text is one run, which matplotlib aligns
        x -= 0.0 if turned else _BEFORE[anchor] * sum(widths)
        for (weight, text), width in zip(runs, widths, strict=True):
            if text:
                self.axes.text(
                    x,
                    y,
                    text,
                    fontsize=size * _POINT,
                    fontweight=weight,
                    color=given.get("fill", "#000000"),
                    ha="center" if turned else "left",
                    va="baseline",
                    rotation=90 if turned else 0,
                    rotation_mode="anchor",
                    parse_math=False,
                    zorder=self.order,
                )
            x += width

    def _image(self, given: Mapping[str, str], clip: Any) -> None:
        from matplotlib.image import imread

        x, y, width, height = _box(given)
        pixels = imread(io.BytesIO(base64.b64decode(given["href"].partition(",")[2])))
        smooth = "auto" in given.get("style", "")
        drawn = self.axes.imshow(
            pixels,
            extent=(x, x + width, y + height, y),
            interpolation="bilinear" if smooth else "nearest",
            aspect="auto",
            zorder=self.order,
        )
        self._clip(drawn, clip)


def _box(given: Mapping[str, str]) -> tuple[float, ...]:
    return tuple(float(given.get(name, 0)) for name in ("x", "y", "width", "height"))


def _color(style: Mapping[str, str], what: str, default: str) -> Any:
    color = style.get(what, default)
    return color if color == "none" else (color, float(style.get(f"{what}-opacity", 1)))


def _points(path: str) -> tuple[list[tuple[float, float]], list[int]]:
    """Corners of a path of straight lines, and what is done at each.

    >>> _points("M1 2H3V4Z")
    ([(1.0, 2.0), (3.0, 2.0), (3.0, 4.0), (3.0, 4.0)], [1, 2, 2, 79])
    """
    move, line, close = 1, 2, 79
    points: list[tuple[float, float]] = []
    codes: list[int] = []
    tokens = iter(_TOKEN.findall(path))
    command, x, y = "M", 0.0, 0.0
    for token in tokens:
        number = token
        if token.isalpha():
            command = token
            if command == "Z":
                points.append((x, y))
                codes.append(close)
                continue
            number = next(tokens)
        if command == "H":
            x = float(number)
        elif command == "V":
            y = float(number)
        else:
            x, y = float(number), float(next(tokens))
        points.append((x, y))
        codes.append(move if command == "M" else line)
    return points, codes
