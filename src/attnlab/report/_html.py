"""From a page to one HTML file that needs nothing else. Every text is escaped here."""

from __future__ import annotations

import base64
import hashlib
import html
import io
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from attnlab import __version__
from attnlab._csv import write_csv
from attnlab._errors import AttnlabError
from attnlab._places import (
    is_folder,
    is_remote,
    make_folder,
    place,
    put_bytes,
    write_atomically,
)
from attnlab.report._page import (
    SAVINGS,
    VERDICTS,
    Card,
    ControlRow,
    CriterionRow,
    Figure,
    Grid,
    Page,
    Section,
    Sentence,
    Shaded,
)
from attnlab.report._style import DARK
from attnlab.report._words import interval, number

_RELOAD_SECONDS = 20  # after which a page that is not final loads itself again
_LONG = 40  # characters from which on a cell is broken into lines
_DENSE = 16  # rows from which on a table is set closer
_MARKS = {"good": ("yes", "kept"), "bad": ("no", "broken"), "mixed": ("tilde", "in part")}
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
    theme, plotly, script = (
        _asset("templates/theme.js"),
        _plotly() if has_figures else "",
        _asset("page.js"),
    )
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            f'content="{_policy(theme, plotly, script)}">',
            f'<meta http-equiv="refresh" content="{_RELOAD_SECONDS}">' if page.pending else "",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="generator" content="attnlab {_escape(__version__)}">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{_escape(page.title)}</title>",
            f"<style>{_asset('templates/page.css')}</style><script>{theme}</script></head>",
            f'<body>{_asset("templates/icons.svg")}<a class="skip" href="#main">Skip to the content</a>',
            _bar(page),
            f'<div class="frame">{_rail(page)}<main id="main">{_top(page)}',
            *(_section(entry) for entry in page.sections),
            f"</main></div>{_footer(page)}",
            f'<script type="application/json" id="palette">{_embed(DARK)}</script>',
            f"<script>{plotly}</script>" if plotly else "",
            f"<script>{script}</script>",
            "</body></html>\n",
        ]
    )


def write_folder(page: Page, folder: str | Path) -> Path:
    """Write ``report.html``, and beside it each figure's drawing and data as ``figures/<id>.json``
    and ``.csv``; of a page with something ``pending`` only ``report.html``.
    """
    out = place(folder)
    path = out / "report.html"
    if is_folder(path):
        raise AttnlabError(f"{path} is a folder; expected a file, or a name that is free")
    try:
        _write_all(page, out)
    except OSError as error:
        raise _cannot_write(path, error) from error
    return path


def _write_all(page: Page, out: Path) -> None:
    make_folder(out)
    write_atomically(out / "report.html", render(page).encode())
    if page.pending:
        return
    figures = out / "figures"
    make_folder(figures)
    for figure in (f for entry in page.sections for f in entry.figures):
        if figure.plotly:
            drawing = json.dumps(figure.plotly, ensure_ascii=False) + "\n"
            _put(figures / f"{figure.id}.json", drawing)
        table = io.StringIO(newline="")
        write_csv(table, [list(figure.table), *zip_longest(*figure.table.values())])
        _put(figures / f"{figure.id}.csv", table.getvalue())


def _put(path: Path, text: str) -> None:
    if is_remote(path):
        put_bytes(path, text.encode())
    else:
        path.write_bytes(text.encode())


def _cannot_write(path: Path, error: OSError) -> AttnlabError:
    return AttnlabError(
        f"cannot write {path} ({error}): free some space or make it writable, then run `attnlab "
        "report`"
    )


def _bar(page: Page) -> str:
    links = '<a href="#main">Top</a><a href="#provenance">Provenance</a>'
    toggle = '<button type="button" data-theme-toggle aria-label="Switch between light and dark">Dark</button>'
    name = f'<span class="brand">attnlab</span>{_element("span", page.title, "page-name")}'
    return f'<div class="bar"><div>{name}</div><nav aria-label="Page">{links}{toggle}</nav></div>'


def _rail(page: Page) -> str:
    """The list of sections that stays in view on a wide screen."""
    items = []
    for entry in page.sections:
        kind = (entry.verdict or "plain").replace(" ", "-")
        mark = (
            f'{_icon(kind)}<span class="unseen">{_escape(entry.verdict)}: </span>'
            if entry.verdict
            else ""
        )
        items.append(
            f'<li class="{kind}"><a href="#{_escape(entry.id)}">{mark}{_escape(entry.id)}</a></li>'
        )
    return f'<nav class="rail" aria-label="Sections"><ul>{"".join(items)}</ul></nav>'


def _top(page: Page) -> str:
    """The question, the answer and the verdicts at a glance."""
    at_a_glance = page.cards or tuple(_card_of(entry) for entry in page.sections if entry.verdict)
    title = "At a glance" if page.cards else "Verdicts at a glance"
    pending = (
        _element(
            "p",
            f"Under way: {page.pending} This page loads itself again. If the command was "
            "interrupted, the same command resumes.",
            "pending",
        )
        if page.pending
        else ""
    )
    verdicts = f"<h2>{title}</h2>{_tally(page)}{_cards(at_a_glance, title)}" if at_a_glance else ""
    return (
        f'<div class="top"><h1>{_escape(page.title)}</h1>{_element("p", page.question, "question")}'
        f"{pending}{_element('p', page.summary, 'summary')}{verdicts}"
        "<noscript><p>The figures are drawn by a script, which this browser does not run; all "
        "verdicts, numbers and "
        "tables are below.</p></noscript></div>"
    )


def _policy(*scripts: str) -> str:
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in scripts
        if text
    ]
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: "
        "blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return files("attnlab.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs  # late: reading five megabytes is for those who render

    return get_plotlyjs().replace("\r\n", "\n").replace("</script", "<\\/script")


def _icon(name: str) -> str:
    """A line icon in the colour of its text."""
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{name}"/></svg>'


def _pill(verdict: str, reading: str = "") -> str:
    """A verdict as icon and word, or as it reads ("holds on average")."""
    name = verdict.replace(" ", "-") if verdict in (*VERDICTS, *SAVINGS) else "not-run"
    return f'<span class="pill {name}">{_icon(name)}{_escape(reading or verdict)}</span>'


def _element(tag: str, text: str, kind: str = "") -> str:
    """An element of escaped text, or nothing when there is no text."""
    start = f'{tag} class="{kind}"' if kind else tag
    return f"<{start}>{_escape(text)}</{tag}>" if text else ""


def _tally(page: Page) -> str:
    """How many sections hold, fail, are undecided or not run, and how many contradict what was
    expected.
    """
    judged = [section for section in page.sections if section.verdict]
    if not judged:
        return ""
    counts = [(verdict, sum(s.verdict == verdict for s in judged)) for verdict in VERDICTS]
    shown = [
        f'<li class="{v.replace(" ", "-")}">{_icon(v.replace(" ", "-"))}<b>{n}</b> '
        f"{v if n == 1 else _PLURAL[v]}</li>"
        for v, n in counts
        if n
    ]
    against = sum(section.contradicts for section in judged)
    word = "contradicts" if against == 1 else "contradict"
    alarm = f'<li class="alarm">{_icon("alarm")}<b>{against}</b> {word} what was expected</li>'
    decided = all(s.verdict in ("holds", "fails") for s in judged)
    calm = (
        '<li class="calm">none contradicts what was expected</li>'
        if decided and any(s.expected for s in judged)
        else ""
    )
    return (
        f'<ul class="tally" aria-label="Counts">{"".join(shown)}{alarm if against else calm}</ul>'
    )


def _expectation(section: Section) -> str:
    """How the verdict compares with what was expected, in words."""
    if section.verdict is None or section.expected is None:
        return ""
    if section.verdict == "reported":
        return section.reason
    if section.contradicts:
        return f"expected: {section.expected}"
    return "as expected" if section.verdict == section.expected else f"expected: {section.expected}"


def _headline(criterion: CriterionRow | None) -> str:
    """The number that says most, with its interval and threshold."""
    if criterion is None:
        return ""
    parts = [f"{number(criterion.statistic)}{_unit(criterion)}"]
    if criterion.interval is not None:
        parts.append(interval(criterion.interval))
    if criterion.threshold is not None:
        parts.append(f"· {'' if criterion.relation else 'threshold '}{_limit(criterion)}")
    return " ".join(parts)


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


def _card_of(section: Section) -> Card:
    """The card of a section with a verdict."""
    return Card(
        label=section.id,
        text=section.statement or section.title,
        verdict=section.verdict,
        headline=_headline(section.headline),
        measure=section.headline.name if section.headline else "",
        note=_expectation(section),
        link=section.id,
        alarm=section.contradicts,
    )


def _card(entry: Card) -> str:
    """One card; the whole of it is the link."""
    mark = _icon("alarm") if entry.alarm else ""
    note = (
        f'<span class="note{" alarm" if entry.alarm else ""}">{mark}{_escape(entry.note)}</span>'
        if entry.note
        else ""
    )
    state = f'<span class="state">{_pill(entry.verdict) if entry.verdict else ""}{note}</span>'
    inner = f"{state}{_element('span', entry.label, 'label')}{_element('span', entry.text, 'text')}{_number_of(entry)}"
    kind = (entry.verdict or "plain").replace(" ", "-")
    tag = f'a href="#{_escape(entry.link)}"' if entry.link else "div"
    return f'<li><{tag} class="card {kind}">{inner}</{tag.split()[0]}></li>'


def _cards(entries: Sequence[Card], title: str = "") -> str:
    """A grid of cards."""
    name = f' aria-label="{_escape(title)}"' if title else ""
    return f'<ul class="cards"{name}>{"".join(map(_card, entries))}</ul>' if entries else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str, kind: str = "") -> str:
    """A table in a box that scrolls by itself; the cells are HTML, head and title are text."""
    top = "".join(f'<th scope="col">{_escape(word)}</th>' for word in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    label = f'role="region" tabindex="0" aria-label="{_escape(title)}"'
    return f'<div class="scroll {kind}" {label}><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def _criteria_table(criteria: Sequence[CriterionRow]) -> str:
    """The numbers with intervals and thresholds."""
    if not criteria:
        return ""
    head = ("Criterion", "Kind", "Measured", "Interval", "Threshold", "Verdict")
    rows = []
    for c in criteria:
        measured = number(c.statistic) + (_unit(c) if c.statistic is not None else "")
        texts = [
            _escape(c.kind),
            _escape(measured),
            _escape(interval(c.interval)),
            _escape(_limit(c)),
        ]
        texts.append(_pill(c.verdict, c.reading))
        name = f"{_escape(c.name)}{_element('span', c.runs, 'runs')}"
        rows.append((f'<th scope="row">{name}</th>', *map(_cell, head[1:], texts)))
    return f"<h3>The numbers</h3>{_table(head, rows, 'Criteria', 'stack')}"


def _controls_table(controls: Sequence[ControlRow]) -> str:
    """The controls, and whether each came out as it should."""
    if not controls:
        return ""
    asked = {"reject": "must be rejected", "accept": "must be accepted"}
    head = ("Control", "Should", "Verdict", "Came out")
    rows = []
    for c in controls:
        kind, name, word = (
            ("good", "holds", "as it should") if c.ok else ("bad", "fails", "not as it should")
        )
        mark = f'<span class="mark {kind}">{_icon(name)}{word}</span>'
        texts = [_escape(asked.get(c.should, c.should)), _escape(c.verdict), mark]
        rows.append((f'<th scope="row">{_escape(c.id)}</th>', *map(_cell, head[1:], texts)))
    return f"<h3>Controls</h3>{_table(head, rows, 'Controls', 'stack')}"


def _figure(entry: Figure) -> str:
    """A figure with its title, controls, buttons, place for the drawing, caption and data."""
    name = _escape(entry.id)
    tools = "".join(
        f'<button type="button" data-save="{form}" aria-label="Save as {form.upper()}: '
        f'{_escape(entry.title)}">'
        f"{form.upper()}</button>"
        for form in (("csv",) if entry.shaded else ("svg", "png", "csv"))
    )
    kind, place = _place(entry)
    data = {"plotly": entry.plotly, "table": entry.table, "note": entry.note, "title": entry.title}
    if entry.shaded:
        changing = [
            {"shades": one.shades, "remarks": one.remarks, "right": one.right}
            for one in entry.shaded.sentences
        ]
        data["shaded"] = {"steps": entry.shaded.steps, "sentences": changing}
    return (
        f'<figure id="figure-{name}" data-figure="{name}" data-kind="{kind}"><div '
        'class="figure-head">'
        f'<h3>{_escape(entry.title)}</h3><div class="tools" role="group" '
        f'aria-label="Save">{tools}</div></div>'
        f"{_choice(entry)}{_slider(entry)}{place}<figcaption>{_escape(entry.caption)} "
        f"{_element('span', entry.note, 'left-out')}</figcaption><script "
        f'type="application/json">{_embed(data)}</script>'
        "</figure>"
    )


def _grid_table(grid: Grid, title: str) -> str:
    """A grid as a table of tinted cells."""

    def cell(text: str, tone: str) -> str:
        mark, word = _MARKS.get(tone, ("", ""))
        name = {"yes": "holds", "no": "fails"}.get(mark, mark)
        sign = f'{_icon(name)}<span class="unseen">{word}: </span>' if mark else ""
        kind = f"{tone or 'none'}{' words' if len(text) > _LONG else ''}"
        return f'<td class="{kind}">{sign}{_escape(text)}</td>'

    long = ' class="words"'
    rows = [
        (
            f'<th scope="row"{long if len(row) > _LONG else ""}>{_escape(row)}</th>',
            *map(cell, cells, tones),
        )
        for row, cells, tones in zip(grid.rows, grid.cells, grid.tones, strict=True)
    ]
    kind = "heat dense" if len(rows) >= _DENSE else "heat"
    return f'<div class="{kind}">{_table(("", *grid.columns), rows, title)}</div>'


def _shaded_list(shaded: Shaded) -> str:
    """Sentences with each word shaded as at the last step; the page's script changes shades and
    remarks only.
    """

    def word(text: str, known: bool, shade: int) -> str:
        if not known:
            return f'<span class="unknown" title="not in the vocabulary">{_escape(text)}</span>'
        return f'<span class="word" style="--shade:{shade}%">{_escape(text)}</span>'

    def item(entry: Sentence) -> str:
        words = " ".join(map(word, entry.words, entry.known, entry.shades[-1]))
        right = "yes" if entry.right[-1] else "no"
        return (
            f'<li><p class="said" dir="auto">{words}</p><p class="remark">'
            f'<span class="label" dir="auto">{_escape(entry.label)}</span> '
            f'<span data-remark data-right="{right}">{_escape(entry.remarks[-1])}</span></p></li>'
        )

    return f'<ol class="shaded">{"".join(map(item, shaded.sentences))}</ol>'


def _section(entry: Section) -> str:
    """A section: what is claimed, what came out, figures, numbers, controls, how to do it again."""
    name, kind = _escape(entry.id), (entry.verdict or "plain").replace(" ", "-")
    parts = [
        f'<section id="{name}" class="{kind}" aria-labelledby="{name}--title"><header>',
        _state(entry),
        *(_element("p", f"Caution: {caution}", "caution") for caution in entry.cautions),
        "<h2 "
        f'id="{name}--title">{_escape(entry.title)}</h2>{_element("p", entry.statement, "statement")}</header>',
        _against(entry),
        _element("p", entry.reason, "reason"),
        *(_element("p", paragraph) for paragraph in entry.body),
        _cards(entry.cards),
        *map(_figure, entry.figures),
        _criteria_table(entry.criteria),
        _explained(entry),
        _controls_table(entry.controls),
        _command(entry.command),
        _facts(entry),
        "</section>",
    ]
    return "".join(parts)


def _footer(page: Page) -> str:
    """Where the page comes from."""
    facts = "".join(
        f"<dt>{_escape(key)}</dt><dd>{_escape(value)}</dd>"
        for key, value in page.provenance.items()
    )
    return f'<footer id="provenance"><h2>Where this comes from</h2><dl class="facts">{facts}</dl></footer>'


def _number_of(entry: Card) -> str:
    inner = f"{_element('span', entry.measure, 'measure')}{_element('b', entry.headline)}"
    return f'<span class="headline">{inner}</span>' if inner else ""


def _cell(name: str, inner: str) -> str:
    """A cell that knows its column's name, which a narrow screen shows beside it."""
    return f'<td data-name="{_escape(name)}">{inner}</td>'


def _unit(criterion: CriterionRow) -> str:
    return f" {criterion.unit}" if criterion.unit else ""


def _choice(entry: Figure) -> str:
    if not entry.choices:
        return ""
    options = "".join(
        f'<option value="{k}">{_escape(choice)}</option>' for k, choice in enumerate(entry.choices)
    )
    select = f"<select data-choice>{options}</select>"
    return f'<div class="control"><label>{_escape(entry.choice_label)} {select}</label></div>'


def _place(entry: Figure) -> tuple[str, str]:
    """The kind of a figure, and what stands where it is drawn."""
    if entry.grid:
        return "grid", _grid_table(entry.grid, entry.title)
    if entry.shaded:
        return "shaded", _shaded_list(entry.shaded)
    height = int(entry.plotly.get("layout", {}).get("height", 400))
    name = f'role="img" aria-label="{_escape(entry.alt)}"'
    return "plot", f'<div class="plot" {name} style="min-height:{height}px"></div>'


def _slider(entry: Figure) -> str:
    names = (
        entry.shaded.steps
        if entry.shaded
        else [frame["name"] for frame in entry.plotly.get("frames") or []]
    )
    if not names:
        return ""
    last = len(names) - 1
    now = _escape(names[last])
    return (
        '<div class="control slider"><button type="button" data-play aria-label="Play through '
        'training">Play</button>'
        f'<label>Step <input type="range" min="0" max="{last}" value="{last}" '
        f'aria-valuetext="{now}" data-frame>'
        f"</label><output>{now}</output></div>"
    )


def _state(entry: Section) -> str:
    """The verdict, how it compares with what was expected, and the id that the command line knows."""
    if entry.verdict is None:
        return ""
    kind, mark = ("note alarm", _icon("alarm")) if entry.contradicts else ("note", "")
    note = f'<span class="{kind}">{mark}{_escape(_expectation(entry))}</span>'
    anchor = f'<a class="anchor" href="#{entry.id}">{entry.id}</a>'
    return f'<p class="state">{_pill(entry.verdict, entry.reading)}{note}{anchor}</p>'


def _against(entry: Section) -> str:
    if not entry.contradicts:
        return ""
    text = f"This verdict contradicts what was expected: expected “{entry.expected}”, found “{entry.verdict}”."
    return f'<p class="against">{_icon("alarm")}<span>{_escape(text)}</span></p>'


def _explained(entry: Section) -> str:
    asked = (
        ("How it was measured", entry.how_measured),
        ("What would refute it", entry.refuted_by),
    )
    parts = [f"<div><h3>{title}</h3><p>{_escape(text)}</p></div>" for title, text in asked if text]
    return f'<div class="pair">{"".join(parts)}</div>' if parts else ""


def _command(command: str) -> str:
    if not command:
        return ""
    button = '<button type="button" data-copy aria-label="Copy the command">Copy</button>'
    return (
        f'<h3>Reproduce this</h3><div class="command"><code>{_escape(command)}</code>{button}</div>'
    )


def _facts(entry: Section) -> str:
    facts = [("Source", _linked(entry.source))] if entry.source else []
    facts += [(_escape(name), _escape(text)) for name, text in entry.facts.items()]
    items = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    return f'<dl class="facts">{items}</dl>' if items else ""


def _escape(text: Any) -> str:
    """Text for an HTML element or a quoted attribute."""
    return html.escape(str(text), quote=True)


def _linked(text: str) -> str:
    """Escaped text in which plain web addresses can be followed."""
    parts, end = [], 0
    for match in _URL.finditer(text):
        address = _escape(match.group())
        parts += [
            _escape(text[end : match.start()]),
            f'<a href="{address}" rel="noopener noreferrer">{address}</a>',
        ]
        end = match.end()
    return "".join([*parts, _escape(text[end:])])


def _embed(value: Any) -> str:
    """JSON that may stand inside a script element; what is not finite becomes null.

    >>> _embed({"a": float("nan"), "b": "</script>"})
    '{"a":null,"b":"\\\\u003c/script\\\\u003e"}'
    """
    try:
        text = _as_json(value)
    except ValueError:  # something is not finite
        text = _as_json(_jsonable(value))
    return re.sub("[<>&\u2028\u2029]", lambda found: _SCRIPT_ESCAPES[found[0]], text)


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
