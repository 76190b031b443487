"""Numbers and texts as a reader sees them: in sentences, in cells of tables and in Plotly's labels."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from attnlab.stats import Interval

WORD = 32  # characters of a word that are shown
_TEXT = 4000  # characters of a sentence of ours
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# Control characters, half of a surrogate pair (a file name that is not a text), and marks that turn
# the direction of all that follows: none can be shown, and some would break the page or its file.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]"
)


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
    if "." in mantissa:
        mantissa = mantissa.rstrip("0").rstrip(".")
    return f"{mantissa.replace('-', '−')} × 10{str(int(exponent)).translate(_SUPERSCRIPT)}"


def interval(bounds: Any) -> str:
    """An interval ``[low, high]``, or a dash.

    >>> interval([0.1, 0.25]), interval(None)
    ('[0.1, 0.25]', '–')
    """
    if bounds is None or isinstance(bounds, str):
        return bounds or "–"
    low, high = bounds
    return f"[{number(low)}, {number(high)}]"


def estimate(found: Interval | None) -> str:
    """The estimate, with its interval if it has one; a dash where nothing was measured.

    >>> from attnlab.stats import Interval
    >>> estimate(Interval(0.9, 1.2, 1.0)), estimate(Interval(math.nan, math.nan, 1.0))
    ('1 [0.9, 1.2]', '1')
    """
    if found is None:
        return number(None)
    ends = f" {interval((found.low, found.high))}" if found.exists else ""
    return f"{number(found.estimate)}{ends}"


def percent(value: Any) -> str:
    """A share in per cent.

    >>> percent(0.1234), percent(None), percent(1.0)
    ('12.3\xa0%', '–', '100\xa0%')
    """
    if value is None or not np.isfinite(value):
        return "–"
    return f"{number(100 * float(value))}\u00a0%"


def counted(value: Any) -> str:
    """A count as a person writes it.

    >>> counted(None), counted(25000)
    ('–', '25\u202f000')
    """
    if value is None or not np.isfinite(value):
        return "–"
    return f"{int(value):,}".replace(",", "\u202f")


def plain(text: Any) -> str:
    """Text for a Plotly label or hover template: its tags, entities and ``%{…}`` are shown, not
    interpreted.

    >>> plain("<b>50%{x}</b> & more")
    '&lt;b&gt;50&#37;{x}&lt;/b&gt; &amp; more'
    """
    text = str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("%{", "&#37;{").replace("$", "&#36;").replace("\n", " ")


def plain_lines(text: str) -> str:
    """Lines of text for a hover."""
    return "<br>".join(plain(line) for line in text.split("\n"))


def shortened(text: Any, most: int = WORD) -> str:
    """A user's text on one line: cut to ``most`` characters, with what cannot be shown replaced.

    >>> shortened("a" * 1_000_000, 4), shortened("not\\x00 so\\n good"), shortened("\\u202eevil")
    ('aaa…', 'not� so good', '�evil')
    """
    text = str(text)
    cut = text[:most] if len(text) <= most else f"{text[: most - 1]}…"
    return _UNSEEN.sub("\ufffd", " ".join(cut.split()))


def quoted(words: Iterable[Any]) -> str:
    """Words of the texts in a sentence of ours, each isolated so that right-to-left script turns
    nothing else.

    >>> quoted(["good", "bad"]).replace("\u2068", "").replace("\u2069", "")
    '“good”, “bad”'
    """
    return ", ".join(f"“\u2068{shortened(word)}\u2069”" for word in words)


def printable(value: Any) -> Any:
    """The same record with every text in it made safe to show, and a very long one cut.

    >>> printable({"a": ["x\\x00", 1], "b": None})
    {'a': ['x�', 1], 'b': None}
    """
    if isinstance(value, str):
        cut = value if len(value) <= _TEXT else f"{value[: _TEXT - 1]}…"
        return _UNSEEN.sub("\ufffd", cut)
    if isinstance(value, Mapping):
        return {printable(key): printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [printable(item) for item in value]
    return value


def distinct(names: Iterable[str]) -> list[str]:
    """Names of which none stands twice: texts that differ may be equal once they are cut.

    >>> distinct(["a", "b", "a"])
    ['a', 'b', 'a (2)']
    """
    found: dict[str, None] = {}
    for name in names:
        own, k = name, 1
        while own in found:
            k += 1
            own = f"{name} ({k})"
        found[own] = None
    return list(found)
