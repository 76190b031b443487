"""How a result shows in a notebook: a title, a picture, a few rows. Text is escaped; colours are
those of the notebook, light or dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence

_STYLE = "font:14px/1.45 system-ui,sans-serif;max-width:44em;margin:.3em 0"
_LINE = 'fill="none" stroke="currentColor" stroke-width="1.5"'
_WIDTH, _HEIGHT, _PAD = 240.0, 44.0, 4.0


def card(title: str, rows: Mapping[str, object], picture: str = "", sentence: str = "") -> str:
    """A title, one sentence, a picture made by a function of this module, and labelled rows.

    >>> "a &lt;b&gt;" in card("a <b>", {})
    True
    """
    parts = [f"<strong>{html.escape(title)}</strong>"]
    if sentence:
        parts.append(f"<div>{html.escape(sentence)}</div>")
    if picture:
        parts.append(f'<div style="margin:.3em 0">{picture}</div>')
    if rows:
        cells = "".join(map(_row, rows, rows.values()))
        parts.append(f'<table style="border-collapse:collapse;margin:0">{cells}</table>')
    return f'<div style="{_STYLE}">{"".join(parts)}</div>'


def _row(label: str, value: object) -> str:
    left = 'style="text-align:left;vertical-align:top;padding:0 1em 0 0;opacity:.7"'
    right = 'style="text-align:left;vertical-align:top;padding:0"'
    return (
        f"<tr><td {left}>{html.escape(label)}</td><td {right}>{html.escape(str(value))}</td></tr>"
    )


def sparkline(
    lines: Iterable[tuple[Sequence[float], Sequence[float]]],
    *,
    label: str,
    level: float | None = None,
    log_x: bool = False,
) -> str:
    """Lines of (x, y) on common axes, with a dashed level; numbers that are not finite are gaps."""
    places = [
        [(math.log(x) if log_x and x > 0 else x, y) for x, y in zip(xs, ys, strict=True)]
        for xs, ys in lines
    ]
    known = [point for line in places for point in line if all(map(math.isfinite, point))]
    if not known:
        return ""
    levels = [] if level is None else [level]
    x_of = _Scale([x for x, _ in known], _PAD, _WIDTH - _PAD)
    y_of = _Scale([y for _, y in known] + levels, _HEIGHT - _PAD, _PAD)
    drawn = [f'<path d="{_path(line, x_of, y_of)}" {_LINE} opacity=".75"/>' for line in places]
    if level is not None:
        y = y_of(level)
        drawn.append(
            f'<path d="M0 {y:.1f}H{_WIDTH:g}" {_LINE} stroke-dasharray="3 3" opacity=".5"/>'
        )
    return _svg(drawn, label)


def _path(line: Sequence[tuple[float, float]], x_of: _Scale, y_of: _Scale) -> str:
    pieces, pen = [], "M"
    for x, y in line:
        if math.isfinite(x) and math.isfinite(y):
            pieces.append(f"{pen}{x_of(x):.1f} {y_of(y):.1f}")
            pen = "L"
        else:
            pen = "M"
    return "".join(pieces)


def interval_bar(low: float, estimate: float, high: float, *, label: str) -> str:
    """An estimate on its interval; an end at infinity is an arrow. Empty without an interval."""
    if any(map(math.isnan, (low, estimate, high))):
        return ""
    known = [value for value in (low, estimate, high) if math.isfinite(value)]
    if not known:
        return ""
    x_of = _Scale(known, 40.0, _WIDTH - 40.0)
    left = x_of(low) if math.isfinite(low) else _PAD
    right = x_of(high) if math.isfinite(high) else _WIDTH - _PAD
    middle = _HEIGHT / 2
    drawn = [f'<path d="M{left:.1f} {middle}H{right:.1f}" {_LINE}/>']
    drawn += [_end(left, math.isfinite(low), 1), _end(right, math.isfinite(high), -1)]
    if math.isfinite(estimate):
        drawn.append(f'<circle cx="{x_of(estimate):.1f}" cy="{middle}" r="4" fill="currentColor"/>')
    return _svg(drawn, label)


def _end(x: float, closed: bool, inwards: int) -> str:
    middle = _HEIGHT / 2
    if closed:
        return f'<path d="M{x:.1f} {middle - 6}V{middle + 6}" {_LINE}/>'
    tip = x + 6 * inwards
    return f'<path d="M{tip:.1f} {middle - 5}L{x:.1f} {middle}L{tip:.1f} {middle + 5}" {_LINE}/>'


def shares_bar(parts: Mapping[str, int], *, label: str) -> str:
    """Counts as parts of one bar, in their order, from full to faint colour."""
    total = sum(parts.values())
    if not total:
        return ""
    drawn, left = [], 0.0
    for k, count in enumerate(parts.values()):
        width = _WIDTH * count / total
        opacity = 0.85 - 0.6 * k / max(len(parts) - 1, 1)
        drawn.append(
            f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="12" fill="currentColor" '
            f'opacity="{opacity:.2f}"/>'
        )
        left += width
    return _svg(drawn, label, height=12)


class _Scale:
    """A linear map of the range of some values onto a range of pixels."""

    def __init__(self, values: Sequence[float], start: float, stop: float):
        self._low = min(values)
        self._span = (max(values) - self._low) or 1.0
        self._start, self._stop = start, stop

    def __call__(self, value: float) -> float:
        return self._start + (self._stop - self._start) * (value - self._low) / self._span


def _svg(drawn: Iterable[str], label: str, height: float = _HEIGHT) -> str:
    return (
        f'<svg role="img" aria-label="{html.escape(label)}" width="{_WIDTH:g}" height="{height:g}" '
        f'viewBox="0 0 {_WIDTH:g} {height:g}">{"".join(drawn)}</svg>'
    )
