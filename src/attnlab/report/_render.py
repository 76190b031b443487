"""From a page to one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import tempfile
from functools import cache
from importlib.resources import files
from itertools import zip_longest
from pathlib import Path

from attnlab import __version__
from attnlab._errors import AttnlabError
from attnlab._places import is_folder, is_remote, make_folder, place, put_bytes
from attnlab.report._page import Page
from attnlab.report._palette import DARK
from attnlab.report._parts import card_of, cards, element, footer, icon, section, tally
from attnlab.report._text import embed, escape


def render(page: Page) -> str:
    """The page as one self-contained HTML document; the same page gives the same text.

    A content security policy allows the page's own three scripts, by their hash, and no connection
    to anywhere.
    """
    has_figures = any(entry.figures for entry in page.sections)
    theme, plotly, script = _asset("theme.js"), _plotly() if has_figures else "", _asset("page.js")
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta http-equiv="Content-Security-Policy" '
            f'content="{_policy(theme, plotly, script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f'<meta name="generator" content="attnlab {escape(__version__)}">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(page.title)}</title>",
            f"<style>{_asset('page.css')}</style><script>{theme}</script></head>",
            f'<body>{_asset("icons.svg")}<a class="skip" href="#main">Skip to the content</a>',
            _bar(page),
            f'<div class="frame">{_rail(page)}<main id="main">{_top(page)}',
            *(section(entry) for entry in page.sections),
            f"</main></div>{footer(page)}",
            f'<script type="application/json" id="palette">{embed(DARK)}</script>',
            f"<script>{plotly}</script>" if plotly else "",
            f"<script>{script}</script>",
            "</body></html>\n",
        ]
    )


def write_page(page: Page, path: str | Path) -> Path:
    """Render the page into a file, which is complete or as it was before, never half written."""
    path = place(path)
    if is_folder(path):
        raise AttnlabError(
            f"{path} is a folder; expected the name of a file such as {path / 'report.html'}"
        )
    text = render(page)
    if is_remote(path):
        _put(path, text)
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def write_folder(page: Page, folder: str | Path) -> Path:
    """Write ``report.html``, and beside it each figure's drawing and data as ``figures/<id>.json``
    and ``.csv``.
    """
    out = place(folder)
    path = write_page(page, out / "report.html")
    figures = out / "figures"
    make_folder(figures)
    for figure in (f for entry in page.sections for f in entry.figures):
        if figure.plotly:
            _put(
                figures / f"{figure.id}.json", json.dumps(figure.plotly, ensure_ascii=False) + "\n"
            )
        table = io.StringIO(newline="")
        writer = csv.writer(table)
        writer.writerow(figure.table)
        writer.writerows(zip_longest(*figure.table.values()))
        _put(figures / f"{figure.id}.csv", table.getvalue())
    return path


def _put(path: Path, text: str) -> None:
    if not is_remote(path):
        path.write_bytes(text.encode())
        return
    try:
        put_bytes(path, text.encode())
    except OSError as error:
        raise AttnlabError(
            f"cannot write {path} ({error}): make it writable, then say `attnlab report`"
        ) from error


def _bar(page: Page) -> str:
    links = '<a href="#main">Top</a><a href="#provenance">Provenance</a>'
    toggle = '<button type="button" data-theme-toggle aria-label="Switch between light and dark">Dark</button>'
    name = f'<span class="brand">attnlab</span>{element("span", page.title, "page-name")}'
    return f'<div class="bar"><div>{name}</div><nav aria-label="Page">{links}{toggle}</nav></div>'


def _rail(page: Page) -> str:
    """The list of sections that stays in view on a wide screen."""
    items = []
    for entry in page.sections:
        kind = (entry.verdict or "plain").replace(" ", "-")
        mark = (
            f'{icon(kind)}<span class="unseen">{escape(entry.verdict)}: </span>'
            if entry.verdict
            else ""
        )
        items.append(
            f'<li class="{kind}"><a href="#{escape(entry.id)}">{mark}{escape(entry.id)}</a></li>'
        )
    return f'<nav class="rail" aria-label="Sections"><ul>{"".join(items)}</ul></nav>'


def _top(page: Page) -> str:
    """The question, the answer and the verdicts at a glance."""
    at_a_glance = page.cards or tuple(card_of(entry) for entry in page.sections if entry.verdict)
    title = "At a glance" if page.cards else "Verdicts at a glance"
    verdicts = f"<h2>{title}</h2>{tally(page)}{cards(at_a_glance, title)}" if at_a_glance else ""
    return (
        f'<div class="top"><h1>{escape(page.title)}</h1>{element("p", page.question, "question")}'
        f"{element('p', page.summary, 'summary')}{verdicts}"
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
