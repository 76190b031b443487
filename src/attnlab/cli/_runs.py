"""``attnlab runs``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def runs(
    folder: Annotated[Path, typer.Argument(help="A folder of `attnlab reproduce`, or of one sweep.")],
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the sweeps in a folder: runs asked, finished, failed (grouped by cause).

    Example:

        attnlab runs results
    """
    from attnlab._errors import AttnlabError
    from attnlab.cli._show import print_json
    from attnlab.runs import Results

    if not folder.is_dir():
        raise AttnlabError(f"{folder} is not a folder; expected one that `attnlab reproduce --out` wrote")
    sweeps = [folder] if (folder / "plan.json").is_file() else sorted(p.parent for p in folder.glob("runs/*/plan.json"))
    if not sweeps:
        raise AttnlabError(
            f"{folder} holds no sweep (no plan.json in it or in its runs/); run `attnlab reproduce` first"
        )
    rows: list[dict[str, Any]] = []
    for path in sweeps:
        found = Results.read(path)
        causes = [{"cause": g.cause, "count": g.count, "runs": list(g.runs)} for g in found.failures]
        rows.append(
            {
                "sweep": path.name, "asked": found.asked, "finished": found.finished, "failed": found.failed,
                "missing": found.missing, "failures": causes,
            }
        )  # fmt: skip
    print_json(rows) if json else _print(rows)


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table("sweep", "asked", "finished", "failed", "missing")
    for row in rows:
        table.add_row(escape(row["sweep"]), *(str(row[key]) for key in ("asked", "finished", "failed", "missing")))
        for group in row["failures"]:
            shown = ", ".join(map(str, group["runs"][:5])) + ("…" if len(group["runs"]) > 5 else "")
            table.add_row(f"  [red]{group['count']} × {escape(group['cause'])}[/] (runs {shown})", "", "", "", "")
    Console().print(table)
