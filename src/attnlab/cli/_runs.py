"""``attnlab runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab._places import is_file, is_folder, listed, place, reading
from attnlab.cli._commands import print_json


def runs(
    folder: Annotated[
        str, typer.Argument(help="A folder or URL of `attnlab reproduce`, or of one sweep.")
    ],
    unlock: Annotated[
        bool,
        typer.Option(
            "--unlock", help="Release the folder's locks if their command has ended; list nothing."
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the sweeps in a folder: runs asked, finished, failed (by cause), missing and stale.

    Stale runs were made by other code than today's. They stay stored, but only --keep uses them.

    Examples:

        attnlab runs results

        attnlab runs s3://bucket/results --unlock
    """
    sweeps = _sweeps(place(folder))
    if unlock:
        _unlock(sweeps)
        return
    rows: list[dict[str, Any]] = []
    for path in sweeps:
        found = al.sweeps.Results.read(path)
        causes = [
            {"cause": group.cause, "count": group.count, "runs": list(group.runs)}
            for group in found.failures
        ]
        rows.append(
            {
                "sweep": path.name,
                "asked": found.asked,
                "finished": found.finished,
                "failed": found.failed,
                "missing": found.missing,
                "stale": found.stale,
                "reused": found.reused,
                "failures": causes,
            }
        )
    if json:
        print_json(rows)
    else:
        _print(rows)


def _sweeps(folder: Path) -> list[Path]:
    """The folder itself if it is a sweep's, and the folders of the sweeps in it."""
    with reading(folder):
        if not is_folder(folder):
            raise AttnlabError(
                f"{folder} is not a folder; expected one that `attnlab reproduce --out` wrote"
            )
        inner = [folder / "runs" / name for name in sorted(listed(folder / "runs"))]
        sweeps = [path for path in (folder, *inner) if is_file(path / "plan.json")]
    if not sweeps:
        raise AttnlabError(
            f"{folder} holds no sweep (no plan.json in it or in its runs/); run `attnlab "
            "reproduce` first"
        )
    return sweeps


def _unlock(sweeps: list[Path]) -> None:
    freed = [(path, holder) for path in sweeps for holder in al.sweeps.unlock(path)]
    for path, holder in freed:
        typer.echo(f"{path} was taken from {holder}")
    if not freed:
        typer.echo("none of these sweeps was locked")


def _print(rows: list[dict[str, Any]]) -> None:
    columns = ("asked", "finished", "failed", "missing", "stale")
    table = Table("sweep", *columns)
    for row in rows:
        table.add_row(escape(row["sweep"]), *(str(row[key]) for key in columns))
        if row["reused"]:
            table.add_row(f"  {row['reused']} of the finished were made by other code (--keep)")
        for group in row["failures"]:
            shown = ", ".join(map(str, group["runs"][:5])) + ("…" if len(group["runs"]) > 5 else "")
            table.add_row(f"  [red]{group['count']} × {escape(group['cause'])}[/] (runs {shown})")
    Console().print(table)
