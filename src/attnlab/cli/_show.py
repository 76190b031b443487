"""What commands print."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

_STYLES = {
    "holds": "green",
    "fails": "red",
    "inconclusive": "yellow",
    "reported": "blue",
    "not run": "dim",
}


def number(value: float | None) -> str:
    """A number as a person reads it."""
    return "–" if value is None else f"{value:.3g}"


def print_json(value: Any) -> None:
    """Machine-readable output on standard output."""
    import typer

    typer.echo(json.dumps(value, ensure_ascii=False, indent=1))


def print_stale(about: Mapping[str, Any], *, quiet: bool) -> None:
    """How many stored runs other code made, if any; beside what a command prints."""
    import typer

    if "stale" in about and not quiet:
        typer.echo(about["stale"], err=True)


def print_verdicts(entries: Sequence[Mapping[str, Any]]) -> None:
    """The table of claims: verdict, and every criterion with its number and threshold."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        "claim", "verdict", "criterion", "measured", "asked", title="Claims", title_justify="left"
    )
    for entry in entries:
        verdict, reading = entry["verdict"], entry["reading"]
        first = True
        for c in entry["criteria"] or [None]:
            head = (entry["id"], f"[{_STYLES[verdict]}]{reading}[/]") if first else ("", "")
            if c is None:
                table.add_row(*head, escape(entry["reason"]), "", "")
            else:
                mark = (
                    ""
                    if c["reading"] == "holds"
                    else f" [{_STYLES[c['verdict']]}]({c['reading']})[/]"
                )
                runs = f"\n[dim]{escape(c['exceptions'])}[/]" if c["exceptions"] else ""
                table.add_row(
                    *head, escape(c["name"]) + mark + runs, escape(_measured(c)), escape(_asked(c))
                )
            first = False
        bad = [c["id"] for c in entry["controls"] if not c["ok"]]
        good = [c["id"] for c in entry["controls"] if c["ok"]]
        if good:
            table.add_row(
                "", "", f"[dim]controls as they should: {escape(', '.join(good))}[/]", "", ""
            )
        if bad:
            table.add_row("", "", f"[red]controls that failed: {escape(', '.join(bad))}[/]", "", "")
        table.add_section()
    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    console.print(table)


def _measured(criterion: Mapping[str, Any]) -> str:
    from attnlab.report import measured

    value, bounds = measured(criterion)
    shown = value if isinstance(value, str) else number(value)
    return shown if bounds is None else f"{shown} [{number(bounds[0])}, {number(bounds[1])}]"


def _asked(criterion: Mapping[str, Any]) -> str:
    threshold = criterion["threshold"]
    if isinstance(threshold, list):
        return f"{number(threshold[0])} … {number(threshold[1])}"
    return f"{'≥' if criterion.get('relation') == '>=' else '≤'} {number(threshold)}"


def print_ending(
    entries: Sequence[Mapping[str, Any]], contradictions: Sequence[str], undecided: Sequence[str]
) -> None:
    """How many claims are decided, what was left undecided, and what contradicts expectation, in
    words.
    """
    import typer

    decided = len(entries) - len(undecided)
    counts = [f"{n} {v}" for v in _STYLES if (n := sum(e["verdict"] == v for e in entries))]
    typer.echo(f"{decided} of {len(entries)} claims are decided: {', '.join(counts)}")
    for verdict in ("inconclusive", "not run"):
        named = [f"{e['id']} ({e['reason']})" for e in entries if e["verdict"] == verdict]
        if named:
            typer.echo(f"{verdict}: " + "; ".join(named))
    if entries and not undecided and not contradictions:
        typer.echo("none contradicts what was expected")
    for name in contradictions:
        entry = next(e for e in entries if e["id"] == name)
        typer.echo(
            f"contradiction: {name} was expected to be {entry['expected']!r} and came out "
            f"{entry['verdict']!r}"
        )
