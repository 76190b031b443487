"""``attnlab report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `attnlab reproduce` or `attnlab dynamics` wrote.")],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the page again from what is stored; nothing is computed.

    Example:

        attnlab report results
    """
    if (folder / "dynamics.json").is_file():
        from attnlab.report import write_dynamics
        from attnlab.studies import read_exploration

        explored = read_exploration(folder)
        page = write_dynamics(folder, explored.data, explored.about)
    else:
        from attnlab.claims import read_reproduction
        from attnlab.report import write_report

        stored = read_reproduction(folder)
        page = write_report(folder, stored.claims, stored.data, stored.about)
    if not quiet:
        typer.echo(f"page: {page}")
