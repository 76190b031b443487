"""``attnlab report``."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from attnlab._errors import AttnlabError
from attnlab._places import listed, place, reading

_KINDS = (
    "dynamics",
    "samples",
    "digits",
    "landscape",
    "compare",
)  # each has its writer in attnlab.report, write_<kind>


def report(
    folder: Annotated[
        str,
        typer.Argument(
            help="A folder that `attnlab reproduce`, `study` or another command with a page wrote."
        ),
    ],
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Draw the page again from what is stored; nothing is computed.

    Example:

        attnlab report results
    """
    stored = place(folder)
    page = _recorded(stored) or _explored(stored) or _claims(stored)
    if not quiet:
        typer.echo(f"page: {page}")


def _recorded(folder: Path) -> Path | None:
    """The page of an experiment; None if the folder holds no record of one."""
    with reading(folder):
        present = listed(folder)
    if "record.json" not in present:
        return None
    from attnlab.lab import read_record, write_page
    from attnlab.questions import questions

    record = read_record(folder)
    return write_page(questions()[record.experiment], record)


def _explored(folder: Path) -> Path | None:
    """The page of a command about one configuration; None if the folder holds none."""
    with reading(folder):
        present = listed(folder)
    if not any(f"{kind}.json" in present for kind in _KINDS):
        return None
    from attnlab import report as pages
    from attnlab.studies import read_exploration

    explored = read_exploration(folder)
    with _drawing(folder):
        return getattr(pages, f"write_{explored.kind}")(folder, explored.data, explored.about)


def _claims(folder: Path) -> Path:
    from attnlab.claims import read_reproduction
    from attnlab.report import write_report

    stored = read_reproduction(folder)
    with _drawing(folder):
        return write_report(folder, stored.claims, stored.data, stored.about)


@contextmanager
def _drawing(folder: Path) -> Iterator[None]:
    """A record that was forged can lack anything that its page needs, which every page knows for
    itself only.
    """
    try:
        yield
    except (AttnlabError, OSError):
        raise
    except Exception as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raise AttnlabError(
            f"the page of {folder} cannot be drawn ({type(error).__name__}: {error}; "
            f"{Path(last.filename).name}, line "
            f"{last.lineno}): the record holds other content than the page needs; run the command "
            "again"
        ) from error
