"""The commands, their shared options and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from attnlab import __version__
from attnlab._errors import AttnlabError
from attnlab._places import is_disk_error
from attnlab.cli._claims import claims
from attnlab.cli._commands import command_of
from attnlab.cli._diff import diff
from attnlab.cli._many import FilesCommand, ManyCommand
from attnlab.cli._predict import predict
from attnlab.cli._report import report
from attnlab.cli._runs import runs
from attnlab.lab import options
from attnlab.questions import questions

_HELP = """The laboratory for the theory of attention.

Trains small attention models by the thousand, draws the theory's prediction over what training did, and reports,
with confidence intervals, which claims hold.

Exit codes: 0 done, no verdict contradicts its expectation; 1 too many runs failed; 2 a mistake in the call or its
files; 3 a verdict contradicts its expectation; 4 with --strict: a verdict is undecided; 130 interrupted (the same
command resumes). `attnlab diff` ends with 1 if something moved.
"""

app = typer.Typer(
    help=_HELP, no_args_is_help=True, rich_markup_mode="markdown", pretty_exceptions_enable=False
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"attnlab {__version__}")
        raise typer.Exit


@app.callback()
def _version_option(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    del version


app.command()(predict)
for _question in questions().values():
    _commas = all(field.option.commas for field in options(_question.settings))
    app.command(cls=ManyCommand if _commas else FilesCommand)(command_of(_question))
app.command()(report)
app.command()(runs)
app.command()(claims)
app.command()(diff)


def main() -> None:
    """Run a command. A user's mistake is one message on standard error and exit code 2."""
    try:
        app()
    except AttnlabError as error:
        typer.echo(f"attnlab: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        if not is_disk_error(error):
            raise
        # What Python would write at its end goes nowhere: standard output may be on the full disk.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        typer.echo(f"attnlab: {error}: check space and permissions there", err=True)
        sys.exit(2)
