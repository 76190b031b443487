"""The parts of a page as HTML: cards, sections, tables, figures, footer. Every text is escaped
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attnlab.report._page import (
    SAVINGS,
    VERDICTS,
    Card,
    Control,
    Criterion,
    Figure,
    Grid,
    Page,
    Section,
    Sentence,
    Shaded,
)
from attnlab.report._text import embed, escape, interval, linked, number

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


def icon(name: str) -> str:
    """A line icon in the colour of its text."""
    return f'<svg class="icon" aria-hidden="true"><use href="#i-{name}"/></svg>'


def pill(verdict: str, reading: str = "") -> str:
    """A verdict as icon and word, or as it reads ("holds on average")."""
    name = verdict.replace(" ", "-") if verdict in (*VERDICTS, *SAVINGS) else "not-run"
    return f'<span class="pill {name}">{icon(name)}{escape(reading or verdict)}</span>'


def element(tag: str, text: str, kind: str = "") -> str:
    """An element of escaped text, or nothing when there is no text."""
    start = f'{tag} class="{kind}"' if kind else tag
    return f"<{start}>{escape(text)}</{tag}>" if text else ""


def tally(page: Page) -> str:
    """How many claims hold, fail, are undecided or not run, and how many contradict what was
    expected.
    """
    claims = [section for section in page.sections if section.verdict]
    if not claims:
        return ""
    counts = [(verdict, sum(s.verdict == verdict for s in claims)) for verdict in VERDICTS]
    shown = [
        f'<li class="{v.replace(" ", "-")}">{icon(v.replace(" ", "-"))}<b>{n}</b> '
        f"{v if n == 1 else _PLURAL[v]}</li>"
        for v, n in counts
        if n
    ]
    against = sum(section.contradicts for section in claims)
    word = "contradicts" if against == 1 else "contradict"
    alarm = f'<li class="alarm">{icon("alarm")}<b>{against}</b> {word} what was expected</li>'
    decided = all(s.verdict in ("holds", "fails") for s in claims)
    calm = (
        '<li class="calm">none contradicts what was expected</li>'
        if decided and any(s.expected for s in claims)
        else ""
    )
    return (
        f'<ul class="tally" aria-label="Counts">{"".join(shown)}{alarm if against else calm}</ul>'
    )


def expectation(section: Section) -> str:
    """How the verdict compares with what was expected, in words."""
    if section.verdict is None or section.expected is None:
        return ""
    if section.verdict == "reported":
        return section.reason
    if section.contradicts:
        return f"expected: {section.expected}"
    return "as expected" if section.verdict == section.expected else f"expected: {section.expected}"


def headline(criterion: Criterion | None) -> str:
    """The number that says most, with its interval and threshold."""
    if criterion is None:
        return ""
    parts = [f"{number(criterion.statistic)}{_unit(criterion)}"]
    if criterion.interval is not None:
        parts.append(interval(criterion.interval))
    if criterion.threshold is not None:
        parts.append(f"· {'' if criterion.relation else 'threshold '}{limit(criterion)}")
    return " ".join(parts)


def limit(criterion: Criterion) -> str:
    """The threshold with its relation."""
    if criterion.threshold is None:
        return "–"
    text = (
        interval(criterion.threshold)
        if isinstance(criterion.threshold, tuple)
        else number(criterion.threshold)
    )
    return f"{criterion.relation} {text}{_unit(criterion)}".strip()


def card_of(section: Section) -> Card:
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


def card(entry: Card) -> str:
    """One card; the whole of it is the link."""
    mark = icon("alarm") if entry.alarm else ""
    note = (
        f'<span class="note{" alarm" if entry.alarm else ""}">{mark}{escape(entry.note)}</span>'
        if entry.note
        else ""
    )
    state = f'<span class="state">{pill(entry.verdict) if entry.verdict else ""}{note}</span>'
    inner = f"{state}{element('span', entry.label, 'label')}{element('span', entry.text, 'text')}{_number_of(entry)}"
    kind = (entry.verdict or "plain").replace(" ", "-")
    tag = f'a href="#{escape(entry.link)}"' if entry.link else "div"
    return f'<li><{tag} class="card {kind}">{inner}</{tag.split()[0]}></li>'


def cards(entries: Sequence[Card], title: str = "") -> str:
    """A grid of cards."""
    name = f' aria-label="{escape(title)}"' if title else ""
    return f'<ul class="cards"{name}>{"".join(map(card, entries))}</ul>' if entries else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str, kind: str = "") -> str:
    """A table in a box that scrolls by itself; the cells are HTML, head and title are text."""
    top = "".join(f'<th scope="col">{escape(word)}</th>' for word in head)
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    label = f'role="region" tabindex="0" aria-label="{escape(title)}"'
    return f'<div class="scroll {kind}" {label}><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def criteria_table(criteria: Sequence[Criterion]) -> str:
    """The numbers with intervals and thresholds."""
    if not criteria:
        return ""
    head = ("Criterion", "Kind", "Measured", "Interval", "Threshold", "Verdict")
    rows = []
    for c in criteria:
        measured = number(c.statistic) + (_unit(c) if c.statistic is not None else "")
        texts = [escape(c.kind), escape(measured), escape(interval(c.interval)), escape(limit(c))]
        texts.append(pill(c.verdict, c.reading))
        name = f"{escape(c.name)}{element('span', c.runs, 'runs')}"
        rows.append((f'<th scope="row">{name}</th>', *map(_cell, head[1:], texts)))
    return f"<h3>The numbers</h3>{table(head, rows, 'Criteria', 'stack')}"


def controls_table(controls: Sequence[Control]) -> str:
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
        mark = f'<span class="mark {kind}">{icon(name)}{word}</span>'
        texts = [escape(asked.get(c.should, c.should)), escape(c.verdict), mark]
        rows.append((f'<th scope="row">{escape(c.id)}</th>', *map(_cell, head[1:], texts)))
    return f"<h3>Controls</h3>{table(head, rows, 'Controls', 'stack')}"


def figure(entry: Figure) -> str:
    """A figure with its title, controls, buttons, place for the drawing, caption and data."""
    name = escape(entry.id)
    tools = "".join(
        f'<button type="button" data-save="{form}" aria-label="Save as {form.upper()}: '
        f'{escape(entry.title)}">'
        f"{form.upper()}</button>"
        for form in (("csv",) if entry.shaded else ("svg", "png", "csv"))
    )
    kind, place = _place(entry)
    data = {"plotly": entry.plotly, "table": entry.table, "note": entry.note, "title": entry.title}
    if entry.shaded:
        changing = [
            {"shades": s.shades, "told": s.told, "right": s.right} for s in entry.shaded.sentences
        ]
        data["shaded"] = {"steps": entry.shaded.steps, "sentences": changing}
    return (
        f'<figure id="figure-{name}" data-figure="{name}" data-kind="{kind}"><div '
        'class="figure-head">'
        f'<h3>{escape(entry.title)}</h3><div class="tools" role="group" '
        f'aria-label="Save">{tools}</div></div>'
        f"{_choice(entry)}{_slider(entry)}{place}<figcaption>{escape(entry.caption)} "
        f"{element('span', entry.note, 'left-out')}</figcaption><script "
        f'type="application/json">{embed(data)}</script>'
        "</figure>"
    )


def grid_table(grid: Grid, title: str) -> str:
    """A grid as a table of tinted cells."""

    def cell(text: str, tone: str) -> str:
        mark, word = _MARKS.get(tone, ("", ""))
        name = {"yes": "holds", "no": "fails"}.get(mark, mark)
        sign = f'{icon(name)}<span class="unseen">{word}: </span>' if mark else ""
        kind = f"{tone or 'none'}{' words' if len(text) > _LONG else ''}"
        return f'<td class="{kind}">{sign}{escape(text)}</td>'

    long = ' class="words"'
    rows = [
        (
            f'<th scope="row"{long if len(row) > _LONG else ""}>{escape(row)}</th>',
            *map(cell, cells, tones),
        )
        for row, cells, tones in zip(grid.rows, grid.cells, grid.tones, strict=True)
    ]
    kind = "heat dense" if len(rows) >= _DENSE else "heat"
    return f'<div class="{kind}">{table(("", *grid.columns), rows, title)}</div>'


def shaded_list(shaded: Shaded) -> str:
    """Sentences with each word shaded as at the last step; the page's script changes shades and
    remarks only.
    """

    def word(text: str, known: bool, shade: int) -> str:
        if not known:
            return f'<span class="unknown" title="not in the vocabulary">{escape(text)}</span>'
        return f'<span class="word" style="--shade:{shade}%">{escape(text)}</span>'

    def item(entry: Sentence) -> str:
        words = " ".join(map(word, entry.words, entry.known, entry.shades[-1]))
        told = (
            f'data-told data-right="{"yes" if entry.right[-1] else "no"}">{escape(entry.told[-1])}'
        )
        return (
            f'<li><p class="said" dir="auto">{words}</p><p class="told"><span class="label" '
            'dir="auto">'
            f"{escape(entry.label)}</span> <span {told}</span></p></li>"
        )

    return f'<ol class="shaded">{"".join(map(item, shaded.sentences))}</ol>'


def section(entry: Section) -> str:
    """A section: what is claimed, what came out, figures, numbers, controls, how to do it again."""
    name, kind = escape(entry.id), (entry.verdict or "plain").replace(" ", "-")
    parts = [
        f'<section id="{name}" class="{kind}" aria-labelledby="{name}--title"><header>',
        _state(entry),
        "<h2 "
        f'id="{name}--title">{escape(entry.title)}</h2>{element("p", entry.statement, "statement")}</header>',
        _against(entry),
        element("p", entry.reason, "reason"),
        *(element("p", paragraph) for paragraph in entry.body),
        cards(entry.cards),
        *map(figure, entry.figures),
        criteria_table(entry.criteria),
        _explained(entry),
        controls_table(entry.controls),
        _command(entry.command),
        _facts(entry),
        "</section>",
    ]
    return "".join(parts)


def footer(page: Page) -> str:
    """Where the page comes from."""
    facts = "".join(
        f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in page.provenance.items()
    )
    return f'<footer id="provenance"><h2>Where this comes from</h2><dl class="facts">{facts}</dl></footer>'


def _number_of(entry: Card) -> str:
    inner = f"{element('span', entry.measure, 'measure')}{element('b', entry.headline)}"
    return f'<span class="headline">{inner}</span>' if inner else ""


def _cell(name: str, inner: str) -> str:
    """A cell that knows its column's name, which a narrow screen shows beside it."""
    return f'<td data-name="{escape(name)}">{inner}</td>'


def _unit(criterion: Criterion) -> str:
    return f" {criterion.unit}" if criterion.unit else ""


def _choice(entry: Figure) -> str:
    if not entry.choices:
        return ""
    options = "".join(
        f'<option value="{k}">{escape(choice)}</option>' for k, choice in enumerate(entry.choices)
    )
    select = f"<select data-choice>{options}</select>"
    return f'<div class="control"><label>{escape(entry.choice_label)} {select}</label></div>'


def _place(entry: Figure) -> tuple[str, str]:
    """The kind of a figure, and what stands where it is drawn."""
    if entry.grid:
        return "grid", grid_table(entry.grid, entry.title)
    if entry.shaded:
        return "shaded", shaded_list(entry.shaded)
    height = int(entry.plotly.get("layout", {}).get("height", 400))
    name = f'role="img" aria-label="{escape(entry.alt)}"'
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
    now = escape(names[last])
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
    kind, mark = ("note alarm", icon("alarm")) if entry.contradicts else ("note", "")
    note = f'<span class="{kind}">{mark}{escape(expectation(entry))}</span>'
    anchor = f'<a class="anchor" href="#{entry.id}">{entry.id}</a>'
    return f'<p class="state">{pill(entry.verdict, entry.reading)}{note}{anchor}</p>'


def _against(entry: Section) -> str:
    if not entry.contradicts:
        return ""
    text = f"This verdict contradicts what was expected: expected “{entry.expected}”, found “{entry.verdict}”."
    return f'<p class="against">{icon("alarm")}<span>{escape(text)}</span></p>'


def _explained(entry: Section) -> str:
    asked = (
        ("How it was measured", entry.how_measured),
        ("What would refute it", entry.refuted_by),
    )
    parts = [f"<div><h3>{title}</h3><p>{escape(text)}</p></div>" for title, text in asked if text]
    return f'<div class="pair">{"".join(parts)}</div>' if parts else ""


def _command(command: str) -> str:
    if not command:
        return ""
    button = '<button type="button" data-copy aria-label="Copy the command">Copy</button>'
    return f'<h3>Do it again</h3><div class="command"><code>{escape(command)}</code>{button}</div>'


def _facts(entry: Section) -> str:
    facts = [("Source", linked(entry.source))] if entry.source else []
    facts += [("Seeds", escape(entry.seeds))] if entry.seeds is not None else []
    facts += [("Runs", escape(entry.runs))] if entry.runs else []
    facts += [("Looks", escape(entry.looks))] if entry.looks else []
    facts += [(escape(name), escape(text)) for name, text in entry.facts.items()]
    items = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in facts)
    return f'<dl class="facts">{items}</dl>' if items else ""
