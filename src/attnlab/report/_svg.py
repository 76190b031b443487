"""A figure as a static SVG drawing, from the part of Plotly's terms that our figures use.

Drawn are the traces that are visible at first: curves, dots, error bars, bars, heat maps, contours
and tables, with axes, shapes, annotations, legend and colour bar. All text is escaped.
"""

from __future__ import annotations

import base64
import html
import math
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._style import GRID, INK, MUTED, PAPER, color_of
from attnlab.report._words import number

WIDTH = 860
_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Noto Sans', sans-serif"
_WIDE = 0.56  # the mean width of a character, in font sizes
_DASHES = {
    "dash": (6.0, 4.0),
    "dot": (1.5, 3.0),
    "dashdot": (6.0, 3.0, 1.5, 3.0),
    "longdash": (10.0, 4.0),
    "longdashdot": (10.0, 3.0, 1.5, 3.0),
}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_TAG = re.compile(r"(</?b>|<br>)")
_ANCHORS = {"left": "start", "center": "middle", "right": "end"}
_MANY_CELLS = 400  # from here on a heat map is a picture of pixels
_PIXELS = 160  # a contour is drawn with so many pixels a side
_LEGEND_ROW, _SWATCH = 20, 30

Place = float | None  # in pixels; None where there is nothing to draw


def svg(figure: Figure, *, standalone: bool = False) -> str:
    """The figure as an SVG element; ``standalone``: as the text of a file, on white.

    >>> from attnlab.report import band_figure
    >>> drawn = svg(band_figure([0, 1], [[1.0, 2.0]], id="f", title="<Loss>"), standalone=True)
    >>> drawn[:5], "<title>&lt;Loss&gt;</title>" in drawn
    ('<svg ', True)
    """
    layout = figure.plotly.get("layout", {})
    height = int(layout.get("height", 400))
    drawing = _Drawing(figure.id)
    traces = [one for one in figure.plotly["data"] if one.get("visible", True) is True]
    if any(one["type"] == "table" for one in traces):
        height = _table(drawing, traces[0])
    else:
        _plot(drawing, traces, layout, height)
    size = f'viewBox="0 0 {WIDTH} {height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONT}" font-size="13"'
    if standalone:
        said = f"<title>{_escaped(figure.title)}</title><desc>{_escaped(figure.alt)}</desc>"
        head += f' width="{WIDTH}" height="{height}">{said}<rect width="{WIDTH}" height="{height}"'
        head += f' fill="{PAPER}"/>'
    else:
        head += ' aria-hidden="true">'
    return f"{head}{''.join(drawing.parts)}</svg>"


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)


def _short(value: float) -> str:
    """A length in as few characters as its tenth of a pixel needs.

    >>> _short(3.0), _short(12.345), _short(-0.01)
    ('3', '12.3', '0')
    """
    text = f"{value:.1f}"
    text = text[:-2] if text.endswith(".0") else text
    return "0" if text == "-0" else text


def _paint(what: str, color: str) -> str:
    """A colour as attributes; the opacity of ``#rrggbbaa`` stands by itself, so that a style sheet
    can exchange the colour.
    """
    if len(color) == 9 and color[0] == "#":
        return f' {what}="{color[:7]}" {what}-opacity="{int(color[7:], 16) / 255:.3g}"'
    return f' {what}="{_escaped(color)}"'


def _stroke(line: dict[str, Any], color: str = INK, width: float = 2.0) -> str:
    width = line.get("width", width)
    dashes = _DASHES.get(line.get("dash", "solid"), ())
    dashed = " ".join(_short(part * max(width / 2, 0.8)) for part in dashes)
    more = f' stroke-dasharray="{dashed}"' if dashed else ""
    return f'{_paint("stroke", line.get("color", color))} stroke-width="{width:g}"{more}'


@dataclass
class _Drawing:
    """Elements in the order in which they are drawn."""

    name: str
    parts: list[str] = field(default_factory=list)

    def add(self, element: str) -> None:
        self.parts.append(element)

    def path(self, points: str, style: str) -> None:
        if points:
            self.add(f'<path d="{points}"{style}/>')

    def rect(self, x: float, y: float, width: float, height: float, style: str) -> None:
        sizes = f'width="{_short(max(width, 0))}" height="{_short(max(height, 0))}"'
        self.add(f'<rect x="{_short(x)}" y="{_short(y)}" {sizes}{style}/>')

    def line(self, x0: float, y0: float, x1: float, y1: float, style: str) -> None:
        self.path(f"M{_short(x0)} {_short(y0)}L{_short(x1)} {_short(y1)}", style)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = 13,
        color: str = INK,
        anchor: str = "start",
        turned: bool = False,
    ) -> None:
        """Text in Plotly's terms: lines at ``<br>``, bold in ``<b>``; y is its first base line."""
        style = f'{_paint("fill", color)} font-size="{size:g}"'
        style += "" if anchor == "start" else f' text-anchor="{anchor}"'
        for k, runs in enumerate(_lines(text)):
            below = y + 1.25 * size * k
            turn = f' transform="rotate(-90 {_short(x)} {_short(below)})"' if turned else ""
            inner = "".join(
                f'<tspan font-weight="700">{_escaped(run)}</tspan>' if bold else _escaped(run)
                for bold, run in runs
            )
            place = f'x="{_short(x)}" y="{_short(below)}"'
            self.add(f'<text {place}{style}{turn} xml:space="preserve">{inner}</text>')

    def image(
        self, x: float, y: float, width: float, height: float, pixels: np.ndarray, smooth: bool
    ) -> None:
        """Pixels (row, column, red-green-blue-opacity) in a rectangle."""
        data = base64.b64encode(_png(pixels)).decode()
        sizes = f'width="{_short(width)}" height="{_short(height)}" preserveAspectRatio="none"'
        look = "auto" if smooth else "pixelated"
        self.add(
            f'<image x="{_short(x)}" y="{_short(y)}" {sizes} style="image-rendering:{look}" '
            f'href="data:image/png;base64,{data}"/>'
        )

    def clipped(self, box: _Box, key: str, inner: _Drawing) -> None:
        name = f"clip-{self.name}-{key}"
        clip = _Drawing(self.name)
        clip.rect(box.left, box.top, box.width, box.height, "")
        self.add(f'<clipPath id="{name}">{clip.parts[0]}</clipPath><g clip-path="url(#{name})">')
        self.parts += inner.parts
        self.add("</g>")


def _lines(text: str) -> list[list[tuple[bool, str]]]:
    """Lines of (bold, words); entities become the characters that they stand for.

    >>> _lines("<b>a &lt; b</b>  c<br>d")
    [[(True, 'a < b'), (False, '  c')], [(False, 'd')]]
    """
    lines: list[list[tuple[bool, str]]] = [[]]
    bold = False
    for part in _TAG.split(str(text)):
        if part == "<br>":
            lines.append([])
        elif part in ("<b>", "</b>"):
            bold = part == "<b>"
        elif part:
            lines[-1].append((bold, html.unescape(part)))
    return lines


def _length(text: str, size: float = 13) -> float:
    """About how wide a text is."""
    widths = [sum(len(run) for _, run in runs) for runs in _lines(text)]
    return _WIDE * size * max(widths)


def _png(pixels: np.ndarray) -> bytes:
    """A PNG file of pixels (row, column, 4)."""
    rows, columns, _ = pixels.shape
    raw = np.zeros((rows, 1 + 4 * columns), dtype=np.uint8)
    raw[:, 1:] = pixels.reshape(rows, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        sum_ = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_)

    head = struct.pack(">IIBBBBB", columns, rows, 8, 6, 0, 0, 0)
    body = zlib.compress(raw.tobytes(), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def _rgba(color: str) -> tuple[float, float, float, float]:
    """
    >>> _rgba("#ff000080")[3], _rgba("rgba(230,159,0,0.4)")
    (128.0, (230.0, 159.0, 0.0, 102.0))
    """
    if color[0] == "#":
        parts = [float(int(color[k : k + 2], 16)) for k in range(1, len(color), 2)]
    else:
        parts = [float(part) for part in color[color.index("(") + 1 : -1].split(",")]
        parts[3:] = [255 * part for part in parts[3:]]
    red, green, blue, opacity = [*parts, 255.0][:4]
    return red, green, blue, opacity


def _colors(values: np.ndarray, scale: Sequence[Sequence[Any]]) -> np.ndarray:
    """Colours (…, 4) of values from 0 to 1; of what is not known none."""
    stops = [stop for stop, _ in scale]
    table = np.array([_rgba(color) for _, color in scale])
    at = np.clip(np.nan_to_num(values), 0, 1)
    found = np.stack([np.interp(at, stops, column) for column in table.T], axis=-1)
    found[np.isnan(values)] = 0
    return found.round().astype(np.uint8)


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        return self.right - self.left

    @property
    def height(self) -> float:
        return self.bottom - self.top


@dataclass
class _Axis:
    """Values along one side, and where they are in pixels."""

    style: dict[str, Any]
    side: str
    low: float
    high: float
    names: list[str]
    start: float = 0.0
    end: float = 1.0

    @property
    def is_log(self) -> bool:
        return self.style.get("type") == "log"

    def at(self, values: Iterable[Any]) -> list[Place]:
        """The places of some values; none for what an axis cannot show."""
        slope = (self.end - self.start) / ((self.high - self.low) or 1.0)
        first = self.start - slope * self.low
        if self.names:
            known = {name: first + slope * k for k, name in enumerate(self.names)}
            return [known.get(str(value)) for value in values]
        if self.is_log:
            return [
                first + slope * math.log10(v) if v is not None and v > 0 else None for v in values
            ]
        return [first + slope * v if v is not None else None for v in values]

    def place(self, value: float) -> float:
        """The place of one value, kept near the drawing."""
        found = self.at([value])[0]
        return self.start if found is None else max(-1e4, min(1e4, found))

    def ticks(self) -> list[tuple[float, str]]:
        """Places and words of the ticks within the axis."""
        low, high = sorted((self.low, self.high))
        room = 1e-6 * (high - low)
        if self.names:
            values = list(zip(self.names, self.names, strict=True))
            return [(p, text) for v, text in values if (p := self.at([v])[0]) is not None]
        if "tickvals" in self.style:
            texts = self.style.get("ticktext") or map(number, self.style["tickvals"])
            pairs = list(zip(self.style["tickvals"], texts, strict=True))
        elif self.is_log:
            pairs = self._log_ticks(low, high)
        else:
            pairs = self._even_ticks(low, high)
        inside = []
        for value, text in pairs:
            height = math.log10(value) if self.is_log else value
            if low - room <= height <= high + room:
                inside.append((self.place(value), str(text)))
        return inside

    def _log_ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        if high - low < 0.7:
            return self._even_ticks(10**low, 10**high)
        powers = range(math.floor(low), math.ceil(high) + 1)
        if high - low < 1.8 and "dtick" not in self.style:
            values = [float(f"{m}e{k}") for k in powers for m in (1, 2, 5)]
            return [(value, number(value)) for value in values]
        step = self.style.get("dtick") or math.ceil((high - low) / 7)
        return [(10.0**k, _power(k)) for k in powers if k % step == 0]

    def _even_ticks(self, low: float, high: float) -> list[tuple[float, str]]:
        if not high > low:
            return [(low, number(low))]
        wanted = max(2, self.style.get("nticks", 7) - 1)
        rough = (high - low) / wanted
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(m * size for m in (1, 2, 5, 10) if m * size >= rough * 0.999)
        values = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        values = [float(f"{value:.12g}") for value in values]
        if "%" in self.style.get("tickformat", ""):
            return [(value, f"{number(100 * value)}%") for value in values]
        return [(value, number(value)) for value in values]


def _power(k: int) -> str:
    """
    >>> _power(2), _power(-6)
    ('100', '10⁻⁶')
    """
    return number(10.0**k) if -3 <= k <= 4 else f"10{str(k).translate(_SUPERSCRIPT)}"


def _axis_of(trace: dict[str, Any], side: str) -> str:
    return trace.get(f"{side}axis", side)


def _edges(trace: dict[str, Any], side: str) -> Iterator[float]:
    """The values of a trace along a side, its error bars, bars and cells included."""
    kind = trace["type"]
    values = _grid(trace, side) if kind in ("heatmap", "contour") else trace.get(side, ())
    if kind == "heatmap":
        half = (values[1] - values[0]) / 2 if len(values) > 1 else 0.5
        yield from (values[0] - half, values[-1] + half)
        return
    if kind == "bar" and side == "x":
        half = max(trace["width"], default=1) / 2
        yield from (value + sign * half for value in values for sign in (-1, 1))
        return
    if kind == "bar":
        yield 0.0
    bars = trace.get(f"error_{side}")
    for k, value in enumerate(values):
        if value is None:
            continue
        yield value
        if bars:
            yield value + (bars["array"][k] or 0)
            yield value - (bars.get("arrayminus", bars["array"])[k] or 0)


def _grid(trace: dict[str, Any], side: str) -> list[Any]:
    """The coordinates of a matrix's columns (x) or rows (y)."""
    if side in trace:
        return trace[side]
    count = len(trace["z"][0]) if side == "x" else len(trace["z"])
    first, step = trace.get(f"{side}0", 0), trace.get(f"d{side}", 1)
    return [first + step * k for k in range(count)]


def _make_axis(key: str, style: dict[str, Any], traces: Sequence[dict[str, Any]]) -> _Axis:
    """An axis with its range: as given, or around what is drawn."""
    side = key[0]
    own = [t for t in traces if _axis_of(t, side) == key.replace("axis", "")]
    if style.get("type") == "category":
        names = list(dict.fromkeys(str(v) for t in own for v in _grid(t, side)))
        return _Axis(style, side, -0.5, len(names) - 0.5, names)
    if style.get("range"):
        low, high = style["range"]
        return _Axis(style, side, low, high, [])
    values = np.array([v for trace in own for v in _edges(trace, side)], dtype=float)
    is_log = style.get("type") == "log"
    values = values[np.isfinite(values) & ((values > 0) | (not is_log))]
    values = np.log10(values) if is_log else values
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    spaced = side == "y" or any("markers" in _mode(t) for t in own if t["type"] == "scatter")
    filled = any(t["type"] in ("heatmap", "contour") for t in own)
    room = 0.055 * (high - low) if spaced and not filled else 0.0
    low = low if any(t["type"] == "bar" for t in own) and side == "y" and not is_log else low - room
    pair = (low, high + room)
    low, high = pair[::-1] if style.get("autorange") == "reversed" else pair
    return _Axis(style, side, low, high, [])


def _mode(trace: dict[str, Any]) -> str:
    return trace.get("mode") or ("lines+markers" if len(trace.get("x", ())) < 20 else "lines")


def _title(style: dict[str, Any]) -> str:
    return (style.get("title") or {}).get("text", "")


def _plot(
    drawing: _Drawing, traces: list[dict[str, Any]], layout: dict[str, Any], height: int
) -> None:
    """Axes, traces and all that stands around them."""
    keys = [key for key in layout if re.fullmatch(r"[xy]axis\d?", key)]
    axes = {key: _make_axis(key, layout[key], traces) for key in keys or ("xaxis", "yaxis")}
    legend = _legend_items(traces, layout)
    bars = [t for t in traces if t.get("colorbar") and t.get("showscale", True)]
    box = _inner(axes, layout, legend, bars, height)
    for axis in axes.values():
        start, end = axis.style.get("domain", (0, 1))
        if axis.side == "x":
            axis.start, axis.end = box.left + start * box.width, box.left + end * box.width
        else:
            axis.start, axis.end = box.bottom - start * box.height, box.bottom - end * box.height
    _keep_aspect(axes)
    panels = [key for key in axes if key[0] == "y"]
    for key in panels:
        _grid_lines(drawing, axes["xaxis"], axes[key])
    _shapes(drawing, axes, layout, below=True)
    for key in panels:
        own = [t for t in traces if _axis_of(t, "y") == key.replace("axis", "")]
        _panel(drawing, axes["xaxis"], axes[key], own, key)
    for key in panels:
        _y_axis(drawing, axes[key], box)
    _x_axis(drawing, axes, box)
    _shapes(drawing, axes, layout, below=False)
    for note in layout.get("annotations", ()):
        _annotation(drawing, axes, note, box)
    _legend(drawing, legend, box)
    for trace in bars:
        _colorbar(drawing, trace, box, height)


def _inner(
    axes: dict[str, _Axis],
    layout: dict[str, Any],
    legend: list[dict[str, Any]],
    bars: list[dict[str, Any]],
    height: int,
) -> _Box:
    """Where the panels are: inside the margins, which grow with labels, legend and colour bar."""
    margin = layout.get("margin", {})
    left, right = float(margin.get("l", 64)), float(margin.get("r", 18))
    for axis in axes.values():
        if axis.side == "y" and axis.style.get("visible", True):
            axis.start, axis.end = float(height), 0.0
            labels = max((_length(text, 12) for _, text in axis.ticks()), default=0)
            left = max(left, labels + 14 + (24 if _title(axis.style) else 0))
    upright = [trace for trace in bars if trace["colorbar"].get("orientation") != "h"]
    right += 84 * bool(upright)
    rows = max((item["row"] + 1 for item in _placed(legend, left, WIDTH - right)), default=0)
    top = max(float(margin.get("t", 40)), _LEGEND_ROW * rows + 14 if rows else 0)
    return _Box(left, top, WIDTH - right, height - float(margin.get("b", 52)))


def _keep_aspect(axes: dict[str, _Axis]) -> None:
    """One unit is as long along y as along x, where an axis asks for it."""
    x, y = axes["xaxis"], axes["yaxis"]
    if y.style.get("scaleanchor") != "x":
        return
    across, up = abs(x.end - x.start), abs(y.end - y.start)
    scale = min(across / abs(x.high - x.low), up / abs(y.high - y.low))
    middle, half = (x.start + x.end) / 2, scale * abs(x.high - x.low) / 2
    x.start, x.end = middle - half, middle + half
    y.start = y.end + scale * abs(y.high - y.low)


def _box_of(x: _Axis, y: _Axis) -> _Box:
    return _Box(min(x.start, x.end), min(y.start, y.end), max(x.start, x.end), max(y.start, y.end))


def _grid_lines(drawing: _Drawing, x: _Axis, y: _Axis) -> None:
    box, style = _box_of(x, y), _stroke({"color": GRID, "width": 1})
    lines = ""
    if x.style.get("visible", True) and x.style.get("showgrid", True) and not x.names:
        lines += "".join(
            f"M{_short(p)} {_short(box.top)}V{_short(box.bottom)}" for p, _ in x.ticks()
        )
    if y.style.get("visible", True) and y.style.get("showgrid", True) and not y.names:
        lines += "".join(
            f"M{_short(box.left)} {_short(p)}H{_short(box.right)}" for p, _ in y.ticks()
        )
    drawing.path(lines, style)
    if y.style.get("zeroline") and min(y.low, y.high) <= 0 <= max(y.low, y.high):
        zero = _stroke({"color": y.style.get("zerolinecolor", MUTED), "width": 1})
        drawing.line(box.left, y.place(0.0), box.right, y.place(0.0), zero)


def _y_axis(drawing: _Drawing, y: _Axis, box: _Box) -> None:
    if not y.style.get("visible", True):
        return
    ticks = y.ticks()
    for place, text in ticks:
        drawing.text(box.left - 8, place + 4, text, size=12, color=MUTED, anchor="end")
    if title := _title(y.style):
        labels = max((_length(text, 12) for _, text in ticks), default=0)
        middle = (y.start + y.end) / 2
        across = max(box.left - labels - 18, 14)
        drawing.text(across, middle, title, color=MUTED, anchor="middle", turned=True)


def _x_axis(drawing: _Drawing, axes: dict[str, _Axis], box: _Box) -> None:
    x = axes["xaxis"]
    if not x.style.get("visible", True):
        return
    anchor = axes.get(x.style.get("anchor", "y").replace("y", "yaxis", 1), axes["yaxis"])
    bottom = max(anchor.start, anchor.end)
    drawing.line(x.start, bottom, x.end, bottom, _stroke({"color": GRID, "width": 1}))
    free = -1e9
    for place, text in sorted(x.ticks()):
        half = _length(text, 12) / 2
        if place - half > free:  # where labels would touch, one is left out
            drawing.text(place, bottom + 18, text, size=12, color=MUTED, anchor="middle")
            free = place + half + 4
    if title := _title(x.style):
        below = bottom + 38
        drawing.text((x.start + x.end) / 2, below, title, color=MUTED, anchor="middle")


def _panel(
    drawing: _Drawing, x: _Axis, y: _Axis, traces: Sequence[dict[str, Any]], key: str
) -> None:
    """All traces on a pair of axes: pictures below, then bars, then curves and dots."""
    inner, free = _Drawing(drawing.name), _Drawing(drawing.name)
    order = {"heatmap": 0, "contour": 0, "bar": 1}
    for k, trace in sorted(enumerate(traces), key=lambda pair: order.get(pair[1]["type"], 2)):
        kind = trace["type"]
        if kind == "heatmap":
            _heatmap(inner, x, y, trace)
        elif kind == "contour":
            _contour(inner, x, y, trace)
        elif kind == "bar":
            _bar(inner, x, y, trace)
        else:
            _scatter(free if trace.get("cliponaxis") is False else inner, x, y, trace, k)
    drawing.clipped(_box_of(x, y), key, inner)
    drawing.parts += free.parts


def _scatter(drawing: _Drawing, x: _Axis, y: _Axis, trace: dict[str, Any], k: int) -> None:
    xs, ys = x.at(trace.get("x", ())), y.at(trace.get("y", ()))
    mode = _mode(trace)
    if trace.get("fill") == "toself":
        points = _path(xs, ys, closed=True)
        drawing.path(points, _paint("fill", trace["fillcolor"]))
    line = trace.get("line", {})
    if "lines" in mode and line.get("width", 2) > 0:
        style = f' fill="none" stroke-linejoin="round"{_stroke(line, color_of(k))}'
        drawing.path(_path(xs, ys), style)
    for side in ("x", "y"):
        if f"error_{side}" in trace:
            _error_bars(drawing, (x, y), trace, side)
    if "markers" in mode:
        _markers(drawing, xs, ys, trace.get("marker", {}), color_of(k))
    if "text" in mode:
        _texts(drawing, xs, ys, trace)


def _path(xs: Sequence[Place], ys: Sequence[Place], closed: bool = False) -> str:
    """A line through all points, with gaps where one is missing; points that cannot be told from
    the one before are left out.
    """
    parts: list[str] = []
    old_x, old_y, drawn, last = 0.0, 0.0, False, len(xs) - 1
    for k, (px, py) in enumerate(zip(xs, ys, strict=True)):
        if px is None or py is None:
            drawn = False
            continue
        at_end = k == last or xs[k + 1] is None or ys[k + 1] is None
        if drawn and not at_end and abs(px - old_x) + abs(py - old_y) < 0.7:
            continue
        py = max(-1e4, min(1e4, py))
        parts.append(f"{'L' if drawn else 'M'}{_short(px)} {_short(py)}")
        old_x, old_y, drawn = px, py, True
    return "".join(parts) + ("Z" if closed and parts else "")


def _error_bars(
    drawing: _Drawing, axes: tuple[_Axis, _Axis], trace: dict[str, Any], side: str
) -> None:
    bars, along = trace[f"error_{side}"], axes[side == "y"]
    values, other = trace[side], axes[side == "x"].at(trace["x" if side == "y" else "y"])
    up, down = bars["array"], bars.get("arrayminus", bars["array"])
    cap, parts = bars.get("width", 4), []
    for value, across, more, less in zip(values, other, up, down, strict=True):
        if value is None or across is None or not (more or less):
            continue
        ends = [along.place(value - (less or 0)), along.place(value + (more or 0))]
        for end in ends:
            pair = (end, across - cap), (end, across + cap)
            parts.append(_segment(*pair) if side == "x" else _segment(*(p[::-1] for p in pair)))
        pair = (ends[0], across), (ends[1], across)
        parts.append(_segment(*pair) if side == "x" else _segment(*(p[::-1] for p in pair)))
    style = {"color": bars.get("color", INK), "width": bars.get("thickness", 2)}
    drawing.path("".join(parts), f' fill="none"{_stroke(style)}')


def _segment(start: tuple[float, ...], end: tuple[float, ...]) -> str:
    return f"M{_short(start[0])} {_short(start[1])}L{_short(end[0])} {_short(end[1])}"


def _each(value: Any, count: int) -> list[Any]:
    """A setting of each point: one for all, or a list."""
    return list(value) if isinstance(value, list | tuple) else [value] * count


def _markers(
    drawing: _Drawing,
    xs: Sequence[Place],
    ys: Sequence[Place],
    marker: dict[str, Any],
    color: str,
) -> None:
    """The markers of a trace, a group for each look."""
    count, edge = len(xs), marker.get("line", {})
    looks = zip(
        _each(marker.get("symbol", "circle"), count),
        _each(marker.get("color", color), count),
        _each(marker.get("size", 6), count),
        strict=True,
    )
    groups: dict[tuple[str, str, float], list[tuple[float, float]]] = {}
    for look, px, py in zip(looks, xs, ys, strict=True):
        if px is not None and py is not None:
            groups.setdefault(look, []).append((px, max(-1e4, min(1e4, py))))
    for (symbol, paint, size), places in groups.items():
        name, is_open = symbol.removesuffix("-open"), symbol.endswith("-open")
        outline = {
            "color": edge.get("color", paint),
            "width": edge.get("width", 1 if is_open else 0),
        }
        if name.startswith("line-"):
            outline["width"] = edge.get("width", 2)
        style = ' fill="none"' if is_open or name.startswith("line-") else _paint("fill", paint)
        style += _stroke(outline) if outline["width"] else ""
        if name == "circle":
            dots = (
                f'<circle cx="{_short(a)}" cy="{_short(b)}" r="{size / 2:g}"/>' for a, b in places
            )
            drawing.add(f"<g{style}>{''.join(dots)}</g>")
        else:
            drawing.path("".join(_symbol(name, a, b, size / 2) for a, b in places), style)


def _symbol(name: str, x: float, y: float, r: float) -> str:
    """The outline of a marker around a place."""
    if name == "line-ns":
        return f"M{_short(x)} {_short(y - r)}V{_short(y + r)}"
    if name == "circle-x":
        d = 0.7 * r
        ring = "".join(
            f"{'L' if k else 'M'}{_short(x + r * a)} {_short(y + r * b)}"
            for k, (a, b) in enumerate(_RING)
        )
        return (
            f"{ring}M{_short(x - d)} {_short(y - d)}L{_short(x + d)} {_short(y + d)}"
            f"M{_short(x + d)} {_short(y - d)}L{_short(x - d)} {_short(y + d)}"
        )
    corners = _CORNERS.get(name, _CORNERS["square"])
    points = (f"{_short(x + r * a)} {_short(y + r * b)}" for a, b in corners)
    return f"M{'L'.join(points)}Z"


def _turned(points: Sequence[tuple[float, float]], degrees: float) -> list[tuple[float, float]]:
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return [(c * a - s * b, s * a + c * b) for a, b in points]


_RING = [(math.cos(math.pi * k / 10), math.sin(math.pi * k / 10)) for k in range(21)]
_TRIANGLE = [(0.0, -1.15), (1.15, 0.7), (-1.15, 0.7)]
_PLUS = [
    (-0.4, -1.2),
    (0.4, -1.2),
    (0.4, -0.4),
    (1.2, -0.4),
    (1.2, 0.4),
    (0.4, 0.4),
    (0.4, 1.2),
    (-0.4, 1.2),
    (-0.4, 0.4),
    (-1.2, 0.4),
    (-1.2, -0.4),
    (-0.4, -0.4),
]
_CORNERS: dict[str, list[tuple[float, float]]] = {
    "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
    "diamond": [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
    "triangle-up": _TRIANGLE,
    "triangle-down": _turned(_TRIANGLE, 180),
    "triangle-left": _turned(_TRIANGLE, -90),
    "triangle-right": _turned(_TRIANGLE, 90),
    "cross": _PLUS,
    "x": _turned(_PLUS, 45),
    "star": [
        (r * math.sin(math.pi * k / 5), -r * math.cos(math.pi * k / 5))
        for k, r in enumerate([1.4, 0.55] * 5)
    ],
}


def _texts(
    drawing: _Drawing, xs: Sequence[Place], ys: Sequence[Place], trace: dict[str, Any]
) -> None:
    font, count = trace.get("textfont", {}), len(xs)
    size, color = font.get("size", 12), font.get("color", INK)
    positions = _each(trace.get("textposition", "middle center"), count)
    for px, py, text, position in zip(xs, ys, trace["text"], positions, strict=False):
        if px is None or py is None or not text:
            continue
        across, up = _ASIDE.get(position.split()[-1], "middle"), position.split()[0]
        shift = {"top": -8.0, "bottom": size + 6.0}.get(up, size * 0.35)
        shift -= 1.25 * size * (len(_lines(text)) - 1) * (up == "middle") / 2
        aside = {"start": 8, "end": -8}.get(across, 0)
        drawing.text(px + aside, py + shift, text, size=size, color=color, anchor=across)


_ASIDE = {"left": "end", "right": "start"}


def _bar(drawing: _Drawing, x: _Axis, y: _Axis, trace: dict[str, Any]) -> None:
    marker = trace.get("marker", {})
    hatched = "pattern" in marker
    style = ' fill="none"' if hatched else _paint("fill", marker.get("color", INK))
    style += _stroke(marker.get("line", {}) | ({"dash": "dash"} if hatched else {}), width=1)
    floor = y.start if y.is_log else y.place(0.0)
    parts = []
    for value, top, width in zip(trace["x"], y.at(trace["y"]), trace["width"], strict=True):
        if top is None or abs(top - floor) < 0.05:
            continue
        left, right = x.place(value - width / 2), x.place(value + width / 2)
        parts.append(
            f"M{_short(left)} {_short(floor)}V{_short(top)}H{_short(right)}V{_short(floor)}"
        )
    drawing.path("Z".join(parts), style)


def _matrix(trace: dict[str, Any]) -> np.ndarray:
    rows = [[np.nan if value is None else value for value in row] for row in trace["z"]]
    return np.array(rows, dtype=float)


def _shares(trace: dict[str, Any], z: np.ndarray) -> np.ndarray:
    """Values as shares of the way from the scale's lowest to its highest; none for those below a
    lowest that is invisible.
    """
    low = trace.get("zmin", np.nanmin(z) if np.isfinite(z).any() else 0.0)
    high = trace.get("zmax", np.nanmax(z) if np.isfinite(z).any() else 1.0)
    return (z - low) / ((high - low) or 1.0)


def _heatmap(drawing: _Drawing, x: _Axis, y: _Axis, trace: dict[str, Any]) -> None:
    z = _matrix(trace)
    xs, ys = _grid(trace, "x"), _grid(trace, "y")
    columns, rows = _cells(x, xs), _cells(y, ys)
    colors = _colors(_shares(trace, z), trace["colorscale"])
    if z.size > _MANY_CELLS:
        _picture(drawing, columns, rows, colors)
        return
    gap_x, gap_y = trace.get("xgap", 0) / 2, trace.get("ygap", 0) / 2
    texts, font = trace.get("text"), trace.get("textfont", {})
    for i, (top, bottom) in enumerate(rows):
        for j, (left, right) in enumerate(columns):
            red, green, blue, opacity = (int(part) for part in colors[i, j])
            fill = f' fill="#{red:02x}{green:02x}{blue:02x}"'
            fill += f' fill-opacity="{opacity / 255:.3g}"' if opacity < 255 else ""
            width, height = right - left - 2 * gap_x, bottom - top - 2 * gap_y
            if opacity:
                drawing.rect(left + gap_x, top + gap_y, width, height, fill)
            if texts and "texttemplate" in trace:
                middle = (top + bottom) / 2 + 0.35 * font.get("size", 12)
                # On a colour that is the same in both themes, the ink stays dark.
                drawing.text(
                    (left + right) / 2,
                    middle,
                    texts[i][j],
                    size=font.get("size", 12),
                    color=font.get("color", INK),
                    anchor="middle",
                )


def _cells(axis: _Axis, values: Sequence[Any]) -> list[tuple[float, float]]:
    """The two ends of each cell, the smaller first."""
    centres = [place for place in axis.at(values) if place is not None]
    if len(centres) < 2:
        half = abs(axis.end - axis.start) / 2
        return [(c - half, c + half) for c in centres]
    between = [(a + b) / 2 for a, b in pairwise(centres)]
    first, last = 2 * centres[0] - between[0], 2 * centres[-1] - between[-1]
    ends = [first, *between, last]
    return [(min(a, b), max(a, b)) for a, b in pairwise(ends)]


def _picture(
    drawing: _Drawing,
    columns: Sequence[tuple[float, float]],
    rows: Sequence[tuple[float, float]],
    colors: np.ndarray,
    smooth: bool = False,
) -> None:
    """Colours (row, column, 4) as one image."""
    left, right = min(a for a, _ in columns), max(b for _, b in columns)
    top, bottom = min(a for a, _ in rows), max(b for _, b in rows)
    colors = colors if rows[0][0] <= rows[-1][0] else colors[::-1]
    colors = colors if columns[0][0] <= columns[-1][0] else colors[:, ::-1]
    drawing.image(left, top, right - left, bottom - top, colors, smooth)


def _contour(drawing: _Drawing, x: _Axis, y: _Axis, trace: dict[str, Any]) -> None:
    """Bands of equal height, drawn as pixels."""
    z = _matrix(trace)
    xs, ys = (np.asarray(_grid(trace, side), dtype=float) for side in "xy")
    fine_x, fine_y = np.linspace(xs[0], xs[-1], _PIXELS), np.linspace(ys[0], ys[-1], _PIXELS)
    z = np.stack([np.interp(fine_x, xs, row) for row in z])
    z = np.stack([np.interp(fine_y, ys, column) for column in z.T], axis=1)
    levels = trace.get("contours", {})
    low, high, size = levels["start"], levels["end"], levels["size"]
    z = low + size * np.floor((z - low) / size + 0.5)
    colors = _colors((z - low) / ((high - low) or 1.0), trace["colorscale"])
    columns = [(p, p) for p in (x.place(xs[0]), x.place(xs[-1]))]
    rows = [(p, p) for p in (y.place(ys[0]), y.place(ys[-1]))]
    _picture(drawing, columns, rows, colors, smooth=True)


def _colorbar(drawing: _Drawing, trace: dict[str, Any], box: _Box, height: int) -> None:
    """The scale of colours with its ticks, on the right or below."""
    bar = trace["colorbar"]
    title, thick, steps = _title(bar), bar.get("thickness", 14), 32
    level = np.linspace(0, 1, steps)
    colors = _colors(level, trace["colorscale"])
    z = _matrix(trace)
    low = trace.get("zmin", trace.get("contours", {}).get("start", np.nanmin(z)))
    high = trace.get("zmax", trace.get("contours", {}).get("end", np.nanmax(z)))
    ticks = bar.get("tickvals") or [low, (low + high) / 2, high]
    words = bar.get("ticktext") or [number(tick, 2) for tick in ticks]
    flat = bar.get("orientation") == "h"
    length = bar.get("len", 280) if flat else box.height
    left = (box.left + box.right - length) / 2 if flat else box.right + 16
    top = height - 36 if flat else box.top
    for k, (red, green, blue, opacity) in enumerate(colors.tolist()):
        fill = f' fill="#{red:02x}{green:02x}{blue:02x}" fill-opacity="{opacity / 255:.3g}"'
        piece = length / steps
        if flat:
            drawing.rect(left + k * piece, top, piece + 0.3, thick, fill)
        else:
            drawing.rect(left, top + length - (k + 1) * piece, thick, piece + 0.3, fill)
    for tick, word in zip(ticks, words, strict=True):
        share = (tick - low) / ((high - low) or 1.0)
        if not -0.001 <= share <= 1.001:
            continue
        if flat:
            drawing.text(
                left + share * length, top + thick + 14, word, size=12, color=MUTED, anchor="middle"
            )
        else:
            drawing.text(
                left + thick + 6, top + length * (1 - share) + 4, word, size=12, color=MUTED
            )
    if flat:
        drawing.text(left + length / 2, top - 8, title, size=12, color=MUTED, anchor="middle")
    else:
        drawing.text(left, top - 10, title, size=12, color=MUTED)


def _ends(
    axes: dict[str, _Axis], one: dict[str, Any], side: str, keys: Sequence[str]
) -> list[float]:
    """Places of a shape's or annotation's coordinates, on an axis or as shares of its domain."""
    name, _, domain = one.get(f"{side}ref", side).partition(" ")
    axis = axes.get(name.replace(side, f"{side}axis", 1), axes[f"{side}axis"])
    if domain or name == "paper":
        return [axis.start + one[key] * (axis.end - axis.start) for key in keys]
    return [axis.place(one[key]) for key in keys]


def _shapes(
    drawing: _Drawing, axes: dict[str, _Axis], layout: dict[str, Any], *, below: bool
) -> None:
    for shape in layout.get("shapes", ()):
        if (shape.get("layer") == "below") != below:
            continue
        (x0, x1), (y0, y1) = (_ends(axes, shape, s, (f"{s}0", f"{s}1")) for s in "xy")
        line = shape.get("line", {})
        if shape["type"] == "rect":
            style = _paint("fill", shape.get("fillcolor", "none"))
            style += _stroke(line) if line.get("width") else ""
            drawing.rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0), style)
        else:
            drawing.line(x0, y0, x1, y1, _stroke(line))
        if label := shape.get("label"):
            _shape_label(drawing, label, x1, y1)


def _shape_label(drawing: _Drawing, label: dict[str, Any], x: float, y: float) -> None:
    """A label at the end of a line."""
    font, room = label.get("font", {}), label.get("padding", 3)
    anchor = _ANCHORS[label.get("xanchor", "right")]
    across = x + {"start": room, "end": -room}.get(anchor, 0)
    size = font.get("size", 12)
    height = y + size if label.get("yanchor") == "top" else y - room
    drawing.text(
        across, height, label["text"], size=size, color=font.get("color", MUTED), anchor=anchor
    )


def _annotation(drawing: _Drawing, axes: dict[str, _Axis], note: dict[str, Any], box: _Box) -> None:
    (x,), (y,) = (_ends(axes, note, side, (side,)) for side in "xy")
    font = note.get("font", {})
    size = font.get("size", 12)
    anchor = _ANCHORS.get(note.get("xanchor", "center"), "middle")
    lines = len(_lines(note["text"]))
    shift = {"top": size, "bottom": -4.0}.get(note.get("yanchor", "middle"), size * 0.35)
    shift -= 1.25 * size * (lines - 1) * (note.get("yanchor", "middle") == "middle") / 2
    if color := note.get("bgcolor"):
        width = min(_length(note["text"], size) + 6, box.width)
        left = {"start": x - 2, "middle": x - width / 2}.get(anchor, x - width + 2)
        drawing.rect(left, y + shift - size, width, 1.3 * size, _paint("fill", color))
    drawing.text(x, y + shift, note["text"], size=size, color=font.get("color", INK), anchor=anchor)


def _legend_items(traces: Sequence[dict[str, Any]], layout: dict[str, Any]) -> list[dict[str, Any]]:
    """The traces that the legend names, if there is one."""
    named = [
        trace
        for trace in traces
        if trace.get("showlegend", True)
        and trace.get("name")
        and trace["type"] in ("scatter", "bar")
    ]
    shown = layout.get("showlegend", len([t for t in traces if t["type"] != "heatmap"]) > 1)
    named.sort(key=lambda trace: trace.get("legendrank", 1000))
    return named if shown else []


def _placed(items: Sequence[dict[str, Any]], left: float, right: float) -> list[dict[str, Any]]:
    """Row and place of each entry."""
    placed, x, row = [], left, 0
    for trace in items:
        wide = _SWATCH + 8 + _length(trace["name"]) + 18
        if x > left and x + wide > right:
            x, row = left, row + 1
        placed.append({"trace": trace, "x": x, "row": row})
        x += wide
    return placed


def _legend(drawing: _Drawing, items: Sequence[dict[str, Any]], box: _Box) -> None:
    placed = _placed(items, box.left, box.right)
    rows = max((item["row"] + 1 for item in placed), default=0)
    for k, item in enumerate(placed):
        trace, x = item["trace"], item["x"]
        y = box.top - 14 - _LEGEND_ROW * (rows - 1 - item["row"])
        mode, middle = _mode(trace), x + _SWATCH / 2
        if trace["type"] == "bar" or trace.get("fill") == "toself":
            color = trace.get("fillcolor") or trace.get("marker", {}).get("color", INK)
            drawing.rect(x + 6, y - 6, _SWATCH - 12, 12, _paint("fill", color))
        elif "lines" in mode and trace.get("line", {}).get("width", 2) > 0:
            style = f' fill="none"{_stroke(trace.get("line", {}), color_of(k))}'
            drawing.line(x, y, x + _SWATCH, y, style)
        if trace["type"] == "scatter" and "markers" in mode:
            marker = dict(trace.get("marker", {}))
            for key in ("symbol", "color", "size"):
                if isinstance(marker.get(key), list):
                    marker[key] = marker[key][0]
            marker["size"] = min(marker.get("size", 6), 12)
            _markers(drawing, [middle], [y], marker, color_of(k))
        drawing.text(x + _SWATCH + 8, y + 4.5, trace["name"])


def _table(drawing: _Drawing, trace: dict[str, Any]) -> int:
    """A table of words in cells with tints; the height that it takes."""
    head, cells = trace["header"], trace["cells"]
    columns = [[top, *own] for top, own in zip(head["values"], cells["values"], strict=True)]
    wanted = [max(_length(text) for text in column) + 24 for column in columns]
    scale = min(1.0, (WIDTH - 20) / sum(wanted))
    tall, left = cells.get("height", 32), 10.0
    for wide, column, fills in zip(wanted, columns, cells["fill"]["color"], strict=True):
        width = wide * scale
        for k, text in enumerate(column):
            top = 10 + tall * k
            color = PAPER if k == 0 else fills[k - 1] if isinstance(fills, list) else fills
            if color != PAPER:
                drawing.rect(left + 1, top + 1, width - 2, tall - 2, _paint("fill", color))
            room = max(4, int((width - 16) / (_WIDE * 13)))
            shown = html.unescape(_TAG.sub("", text))
            shown = shown if len(shown) <= room else f"{shown[: room - 1]}…"
            ink = MUTED if k == 0 else INK
            drawing.text(left + 8, top + tall / 2 + 4.5, html.escape(shown, quote=False), color=ink)
        left += width
    return 20 + tall * (1 + max((len(own) for own in cells["values"]), default=0))
