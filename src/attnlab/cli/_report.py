"""``attnlab report``."""

from __future__ import annotations

from typing import Annotated

import typer

import attnlab as al
from attnlab.cli._commands import show
from attnlab.questions import questions


def report(
    folder: Annotated[
        str, typer.Argument(help="A folder that `attnlab reproduce` or another command wrote.")
    ],
    details: Annotated[
        bool, typer.Option("--details", help="Print all numbers of the record, too.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the page again from the stored record; nothing is computed.

    Example:

        attnlab report results --details
    """
    record = al.lab.read_record(folder)
    known = questions()
    if record.experiment not in known:
        raise al.AttnlabError(
            f"{folder} holds a record of the experiment {record.experiment!r}, which is not a "
            f"command; expected one of {', '.join(known)}"
        )
    experiment = known[record.experiment]
    page = al.lab.write_page(experiment, record)
    if not quiet:
        show(experiment.details(record) if details else ())
        typer.echo(f"page: {page}")
