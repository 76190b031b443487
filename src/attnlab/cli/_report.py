"""``attnlab report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `attnlab reproduce` wrote.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the page again from what is stored; nothing is computed.

    Example:

        attnlab report results
    """
    from attnlab.claims import read_reproduction
    from attnlab.report import write_report

    stored = read_reproduction(folder)
    page = write_report(folder, stored.claims, stored.data, stored.about)
    if not quiet:
        typer.echo(f"page: {page}")
