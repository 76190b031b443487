"""``attnlab claims``."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from attnlab.cli._commands import print_json
from attnlab.papers import ROTTEN_TOMATOES, resolve


def claims(
    names: Annotated[
        list[str] | None, typer.Argument(help="Groups or claim ids; all by default.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List claims: id, statement, source, how it is measured, what would refute it.

    Example:

        attnlab claims laws
    """
    chosen = resolve(names or (), corpus=ROTTEN_TOMATOES)
    if json:
        fields = ("id", "title", "statement", "how_measured", "refuted_by", "expected")
        print_json(
            [
                {field: getattr(claim, field) for field in fields}
                | {"source": claim.source.words, "source_kind": claim.source.kind}
                for claim in chosen
            ]
        )
        return
    console = Console()
    for claim in chosen:
        console.print(f"[bold]{escape(claim.id)}[/]  {escape(claim.title)}", highlight=False)
        for label, text in (
            ("claim", claim.statement),
            ("source", claim.source.words),
            ("measured", claim.how_measured),
            ("refuted by", claim.refuted_by),
            ("controls", "; ".join(c.id for c in claim.controls)),
            ("expected", claim.expected),
        ):
            console.print(f"  [dim]{label:>10}[/]  {escape(text)}", highlight=False)
        console.print()
