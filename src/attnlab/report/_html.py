"""From a page to HTML that needs no network: the templates and their filters.

Every text is escaped by the engine; a filter that returns HTML escapes what it is given.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup, escape

from attnlab import __version__
from attnlab.report._page import (
    SAVINGS,
    VERDICTS,
    Card,
    CriterionRow,
    Figure,
    Page,
    Section,
)
from attnlab.report._style import DARK
from attnlab.report._svg import svg
from attnlab.report._typeset import Glossary
from attnlab.report._words import interval, number

RELOAD_SECONDS = 20  # after which a page that is not final loads itself again
_MARKS = {
    "good": ("holds", "kept"),
    "bad": ("fails", "broken"),
    "mixed": ("tilde", "in part"),
}
_PLURAL = {
    "holds": "hold",
    "fails": "fail",
    "inconclusive": "inconclusive",
    "reported": "reported",
    "not run": "not run",
}
_URL = re.compile(r"https?://[^\s<>\"'()]+[^\s<>\"'().,;:]")
_SCRIPT_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


def render(page: Page) -> str:
    """The page as one self-contained HTML document; the same page gives the same text.

    A content security policy allows the page's own three scripts, by their hash, and no connection
    to anywhere.
    """
    has_figures = any(entry.figures for entry in page.sections)
    plotly = asset("plotly-cartesian.min.js").replace("</script", "<\\/script")
    scripts = {
        "theme": asset("theme.js"),
        "plotly": plotly if has_figures else "",
        "script": asset("page.js"),
    }
    return render_template(
        "report.html",
        Glossary(()),
        page=page,
        policy=Markup(_policy(*scripts.values())),
        style=Markup(style()),
        **{name: Markup(text) for name, text in scripts.items()},
    )


def render_template(name: str, glossary: Glossary, **content: Any) -> str:
    """A template with what it shows; ``glossary`` says what is explained in its texts."""
    return _environment().get_template(name).render(glossary=glossary, **content) + "\n"


@cache
def _environment() -> jinja2.Environment:
    """The templates, compiled once, with the filters of a page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("attnlab.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "all_decided": _all_decided,
        "counts": _counts,
        "data": figure_data,
        "display": jinja2.pass_context(
            lambda page, latex: page["glossary"].math(latex, display=True)
        ),
        "embed": embed,
        "expectation": expectation,
        "first_words": lambda text: " ".join(text.split()[:2]),
        "glance": _glance,
        "headline": headline,
        "interval": interval,
        "kind": _kind,
        "limit": _limit,
        "linked": _linked,
        "measured": _measured,
        "prose": jinja2.pass_context(lambda page, text: page["glossary"].prose(text)),
        "slug": lambda words: words.replace(" ", "-"),
        "steps": _steps,
        "svg": lambda figure: Markup(svg(figure)),
        "title": Glossary(()).typeset,
        "typeset": jinja2.pass_context(lambda page, text: page["glossary"].typeset(text)),
    }
    environment.globals |= {
        "icons": Markup(asset("icons.svg")),
        "marks": _MARKS,
        "palette": DARK,
        "reload": RELOAD_SECONDS,
        "verdicts": (*VERDICTS, *SAVINGS),
        "version": __version__,
    }
    return environment


@cache
def asset(name: str) -> str:
    """A file that comes with the templates."""
    return files("attnlab.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def style() -> str:
    """The style sheet; in it, the colours of drawings that stand still follow the theme."""
    twins = (
        f'.still [{what}="{light}"] {{ {what}: light-dark({light}, {dark}); }}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    )
    return f"{asset('page.css')}\n{chr(10).join(twins)}\n"


def _policy(*scripts: str) -> str:
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in scripts
        if text
    ]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: "
        "blob:; base-uri 'none'; form-action 'none'"
    )


def _counts(sections: Sequence[Section]) -> list[tuple[str, int, str]]:
    """How many sections hold, fail, are undecided or not run: verdict, count, word."""
    counts = [(verdict, sum(s.verdict == verdict for s in sections)) for verdict in VERDICTS]
    return [(verdict, n, verdict if n == 1 else _PLURAL[verdict]) for verdict, n in counts if n]


def _all_decided(sections: Sequence[Section]) -> bool:
    return all(section.verdict in ("holds", "fails") for section in sections)


def expectation(section: Section) -> str:
    """How the verdict compares with what was expected, in words."""
    if section.verdict is None or section.expected is None:
        return ""
    if section.verdict == "reported":
        return section.reason
    if section.contradicts:
        return f"expected: {section.expected}"
    return "as expected" if section.verdict == section.expected else f"expected: {section.expected}"


def headline(criterion: CriterionRow | None) -> str:
    """The number that says most, with its interval and threshold."""
    if criterion is None:
        return ""
    parts = [f"{number(criterion.statistic)}{_unit(criterion)}"]
    if criterion.interval is not None:
        parts.append(interval(criterion.interval))
    if criterion.threshold is not None:
        parts.append(f"· {'' if criterion.relation else 'threshold '}{_limit(criterion)}")
    return " ".join(parts)


def _measured(criterion: CriterionRow) -> str:
    unit = _unit(criterion) if criterion.statistic is not None else ""
    return number(criterion.statistic) + unit


def _limit(criterion: CriterionRow) -> str:
    """The threshold with its relation."""
    if criterion.threshold is None:
        return "–"
    text = (
        interval(criterion.threshold)
        if isinstance(criterion.threshold, tuple)
        else number(criterion.threshold)
    )
    return f"{criterion.relation} {text}{_unit(criterion)}".strip()


def _unit(criterion: CriterionRow) -> str:
    return f" {criterion.unit}" if criterion.unit else ""


def _glance(page: Page) -> tuple[Card, ...]:
    """The cards at the top: the page's own, or one for each verdict."""
    return page.cards or tuple(_card_of(entry) for entry in page.sections if entry.verdict)


def _card_of(section: Section) -> Card:
    """The card of a section with a verdict."""
    return Card(
        label=section.id,
        text=section.statement or section.title,
        verdict=section.verdict,
        headline=headline(section.headline),
        measure=section.headline.name if section.headline else "",
        note=expectation(section),
        link=section.id,
        alarm=section.contradicts,
    )


def _kind(figure: Figure) -> str:
    if figure.grid:
        return "grid"
    return "shaded" if figure.shaded else "plot"


def _steps(figure: Figure) -> Sequence[str]:
    """The places of a figure's slider."""
    if figure.shaded:
        return figure.shaded.steps
    return [frame["name"] for frame in figure.plotly.get("frames") or []]


def figure_data(figure: Figure) -> Markup:
    """All that the page's script needs of a figure."""
    names = ("plotly", "table", "note", "title")
    data: dict[str, Any] = {name: getattr(figure, name) for name in names}
    if figure.grid:  # its cells are on the page, an image of it is not
        data["plotly"], data["still"] = {}, svg(figure, standalone=True)
    if figure.shaded:
        changing = [
            {"shades": one.shades, "remarks": one.remarks, "right": one.right}
            for one in figure.shaded.sentences
        ]
        data["shaded"] = {"steps": figure.shaded.steps, "sentences": changing}
    return embed(data)


def _linked(text: str) -> Markup:
    """Escaped text in which plain web addresses can be followed."""
    parts, end = [], 0
    for match in _URL.finditer(text):
        address = escape(match.group())
        parts += [
            escape(text[end : match.start()]),
            Markup('<a href="{0}" rel="noopener noreferrer">{0}</a>').format(address),
        ]
        end = match.end()
    return Markup("").join([*parts, escape(text[end:])])


def embed(value: Any) -> Markup:
    """JSON that may stand inside a script element; what is not finite becomes null.

    >>> print(embed({"a": float("nan"), "b": "</script>"}))
    {"a":null,"b":"\\u003c/script\\u003e"}
    """
    try:
        text = _as_json(value)
    except ValueError:  # something is not finite
        text = _as_json(_jsonable(value))
    return Markup(re.sub("[<>&\u2028\u2029]", lambda found: _SCRIPT_ESCAPES[found[0]], text))


def _as_json(value: Any) -> str:
    return json.dumps(
        value,
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
        default=lambda numbers: numbers.tolist(),
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
