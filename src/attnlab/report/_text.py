"""Numbers as words, and text from data made harmless: in HTML, in script blocks and in Plotly's
labels.
"""

from __future__ import annotations

import html
import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_HEADS = {"fixed": "fixed head", "linear": "linear head", "two_layer": "two-layer head"}
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_URL = re.compile(r"https?://[^\s<>\"'()]+[^\s<>\"'().,;:]")
_SCRIPT_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def number(value: Any, digits: int = 3) -> str:
    """A number as a person writes it; what is absent is a dash, words stay words.

    >>> number(0.01234), number(1.2e-15), number(2048), number(None), number(float("-inf"))
    ('0.0123', '1.2 × 10⁻¹⁵', '2048', '–', '−∞')
    """
    if isinstance(value, str):
        return value
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    value = float(value)
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        rounded = float(f"{value:.{digits}g}") if abs(value) < 10**digits else round(value)
        return np.format_float_positional(rounded, trim="-").replace("-", "−")
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    mantissa = (
        mantissa.rstrip("0").rstrip(".").replace("-", "−")
        if "." in mantissa
        else mantissa.replace("-", "−")
    )
    return f"{mantissa} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def head_name(head: str) -> str:
    """A head as figures call it.

    >>> head_name("two_layer"), head_name("mine")
    ('two-layer head', 'mine')
    """
    return _HEADS.get(head, str(head))


def interval(bounds: Any) -> str:
    """An interval ``[low, high]``, or a dash.

    >>> interval([0.1, 0.25]), interval(None)
    ('[0.1, 0.25]', '–')
    """
    if bounds is None or isinstance(bounds, str):
        return bounds or "–"
    low, high = bounds
    return f"[{number(low)}, {number(high)}]"


def measured(entry: Mapping[str, Any]) -> tuple[float | str | None, tuple[float, float] | None]:
    """The value of a criterion's record, in words where it is only a bound, and its interval with
    open ends infinite.

    >>> measured({"statistic": 52.0, "interval": [40.0, None], "bounded": "at least"})
    ('≥ 52', (40.0, inf))
    """
    value, bounds = entry.get("statistic"), entry.get("interval")
    sign = {"at least": "≥ ", "at most": "≤ ", "already met": "≤ "}.get(
        entry.get("bounded") or "", ""
    )
    if entry.get("bounded") == "not reached":
        value = "not reached"
    elif sign and value is not None:
        value = f"{sign}{number(value)}"
    if bounds is None:
        return value, None
    low, high = bounds
    return value, (-math.inf if low is None else low, math.inf if high is None else high)


def told(value: Any) -> str:
    """A setting or version in words: lists with commas, what is absent as a dash.

    >>> told(["keys", "head"]), told(None), told(False), told(1e-6)
    ('keys, head', '–', 'no', '1e-06')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(told, value))
    return number(value) if value is None or isinstance(value, bool) else str(value)


def escape(text: Any) -> str:
    """Text for an HTML element or a quoted attribute."""
    return html.escape(str(text), quote=True)


def linked(text: str) -> str:
    """Escaped text in which plain web addresses can be followed."""
    parts, end = [], 0
    for match in _URL.finditer(text):
        address = escape(match.group())
        parts += [
            escape(text[end : match.start()]),
            f'<a href="{address}" rel="noopener noreferrer">{address}</a>',
        ]
        end = match.end()
    return "".join([*parts, escape(text[end:])])


def plain(text: Any) -> str:
    """Text for a Plotly label or hover template: its tags, entities and ``%{…}`` are shown, not
    interpreted.

    >>> plain("<b>50%{x}</b> & more")
    '&lt;b&gt;50&#37;{x}&lt;/b&gt; &amp; more'
    """
    text = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("%{", "&#37;{").replace("$", "&#36;").replace("\n", " ")


def embed(value: Any) -> str:
    """JSON that may stand inside a script element; what is not finite becomes null.

    >>> embed({"a": float("nan"), "b": "</script>"})
    '{"a":null,"b":"\\\\u003c/script\\\\u003e"}'
    """
    text = json.dumps(_jsonable(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return (
        "".join(_SCRIPT_ESCAPES.get(c, c) for c in text)
        if re.search("[<>&\u2028\u2029]", text)
        else text
    )


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _jsonable(item) for key, item in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _jsonable(value.tolist())
    if isinstance(value, list | tuple):
        return [_jsonable(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
