"""``attnlab diff``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

import attnlab as al
from attnlab.cli._commands import print_json, show
from attnlab.lab import TextTable
from attnlab.report import interval, number

if TYPE_CHECKING:
    from attnlab.lab import Comparison

_SAME = "same"


def diff(
    before: Annotated[
        str, typer.Argument(help="A folder or URL that a command wrote, such as results.")
    ],
    after: Annotated[str, typer.Argument(help="Another folder of the same command.")],
    details: Annotated[
        bool, typer.Option("--details", help="Print what did not move, too.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON, with all figures.")] = False,
) -> None:
    """List the verdicts and figures that moved between two folders; nothing is computed.

    A figure moved if the 95 % interval of its difference over the seeds that both folders have
    excludes 0; without 8 shared seeds, if its two intervals do not overlap.

    Exit codes: 0 nothing moved; 1 a verdict or a figure moved; 2 a mistake in the call or its files.

    Example:

        attnlab diff results results-after-the-edit
    """
    found = al.lab.compare_records(before, after)
    if json:
        print_json(found.as_json())
    else:
        show(_shown(found, details))
    if found.moved:
        raise typer.Exit(1)


def _shown(found: Comparison, details: bool) -> Iterator[str | TextTable]:
    """The tables of what moved, and how much was compared."""
    for label, one in (("before", found.before), ("after", found.after)):
        settings = ", ".join(
            f"{k} {v}" for k, v in (one["settings"] or {}).items() if k != "sweeps"
        )
        yield f"{label}: {one['folder']} ({settings or one['experiment']}; {one['date']})"
    if found.verdicts:
        columns = ("claim", "verdict of", "before", "after")
        yield TextTable(
            columns,
            tuple((v.claim, v.what or "the whole", v.before, v.after) for v in found.verdicts),
        )
    rows = _figure_rows(found, details)
    if rows:
        yield TextTable(("claim", "figure", "before", "after", "difference", "moved"), rows)
    for words in found.asked_otherwise:
        yield f"asked otherwise: {words}"
    for label, names in (("before", found.only_before), ("after", found.only_after)):
        if names:
            yield f"only in {label}: {', '.join(names)}"
    yield _counts(found)


def _figure_rows(found: Comparison, details: bool) -> tuple[tuple[str, ...], ...]:
    """The figures that moved, and those of which that cannot be said; all of them with details."""
    rows = []
    for one in found.figures:
        if one.moved is False and not details:
            continue
        difference = "" if one.difference is None else number(one.difference)
        if one.interval is not None:
            difference += f" {interval(one.interval)}, {one.seeds} seeds"
        moved = {True: "moved", False: _SAME, None: one.how}[one.moved]
        values = number(one.before), number(one.after)
        rows.append((one.claim, one.what, *values, difference, moved))
    return tuple(rows)


def _counts(found: Comparison) -> str:
    """How much moved, and how much of that chance alone would give."""
    moved = sum(figure.moved is True for figure in found.figures)
    unknown = sum(figure.moved is None for figure in found.figures)
    words = f"{len(found.verdicts)} verdicts moved; {moved} of {len(found.figures)} figures moved"
    if found.judged:
        chance = number((1 - al.stats.CONFIDENCE) * found.judged, 2)
        words += f", {found.judged} of them compared by intervals (at most {chance} move by chance)"
    return words + (f"; {unknown} others differ and have no interval" if unknown else "")
