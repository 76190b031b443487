"""``attnlab report``."""

from __future__ import annotations

from typing import Annotated

import typer

import attnlab as al
from attnlab.questions import questions


def report(
    folder: Annotated[
        str, typer.Argument(help="A folder that `attnlab reproduce` or another command wrote.")
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the page again from the stored record; nothing is computed.

    Example:

        attnlab report results
    """
    record = al.lab.read_record(folder)
    known = questions()
    if record.experiment not in known:
        raise al.AttnlabError(
            f"{folder} holds a record of the experiment {record.experiment!r}, which is not a "
            f"command; expected one of {', '.join(known)}"
        )
    page = al.lab.write_page(known[record.experiment], record)
    if not quiet:
        typer.echo(f"page: {page}")
