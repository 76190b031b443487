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
    single: Annotated[
        bool,
        typer.Option(
            "--single", help="Write one file, report.html, where there would be a folder of pages."
        ),
    ] = False,
    pdf: Annotated[
        bool,
        typer.Option("--pdf", help="Write every figure as PDF, too (needs the plot extra)."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the pages and figures again from the stored record; nothing is computed.

    Examples:

        attnlab report results --details

        attnlab report results --single
    """
    record = al.lab.read_record(folder)
    known = questions()
    if record.experiment not in known:
        raise al.AttnlabError(
            f"{folder} holds a record of the experiment {record.experiment!r}, which is not a "
            f"command; expected one of {', '.join(known)}"
        )
    experiment = known[record.experiment]
    page = al.lab.write_page(experiment, record, single=single, pdf=pdf)
    if not quiet:
        show(experiment.details(record) if details else ())
        typer.echo(f"page: {page}")
