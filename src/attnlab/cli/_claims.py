"""``attnlab claims``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from attnlab.cli._commands import print_json
from attnlab.lab import Claim
from attnlab.papers import ROTTEN_TOMATOES, resolve


def claims(
    names: Annotated[
        list[str] | None, typer.Argument(help="Groups or claim ids; all by default.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List claims: statement, source, measurement, thresholds, and when these were set.

    "Not discriminating" is a criterion that holds in every control, too. docs/ledger.md explains
    sources and provenance.

    Example:

        attnlab claims laws
    """
    chosen = resolve(names or (), corpus=ROTTEN_TOMATOES)
    if json:
        print_json([_fields(claim) for claim in chosen])
        return
    console = Console()
    for claim in chosen:
        console.print(f"[bold]{escape(claim.id)}[/]  {escape(claim.title)}", highlight=False)
        for label, text in _lines(claim):
            console.print(f"  [dim]{label:>10}[/]  {escape(text)}", highlight=False)
        console.print()


def _fields(claim: Claim) -> dict[str, Any]:
    names = ("id", "title", "statement", "how_measured", "refuted_by")
    return {name: getattr(claim, name) for name in names} | claim.ledger()


def _lines(claim: Claim) -> Iterator[tuple[str, str]]:
    """What is printed of a claim: label and text of each line."""
    ledger = claim.ledger()
    yield "claim", claim.statement
    yield "source", ledger["source"]
    yield "measured", claim.how_measured
    yield "refuted by", claim.refuted_by
    own = ledger["of_criteria"]
    label = "asked"
    for name, words in ledger["criteria"].items():
        notes = "; ".join(own.get(name, {}).values())
        yield label, f"{name}: {words}" + (f" ({notes})" if notes else "")
        label = ""
    if any("provenance" not in own.get(name, {}) for name in ledger["criteria"]):
        yield "thresholds", ledger["provenance"] or "it is not stated when they were set"
    yield "controls", "; ".join(ledger["controls"])
    since = ledger["expected_provenance"]
    yield "expected", claim.expected + (f"; {since}" if since else "")
