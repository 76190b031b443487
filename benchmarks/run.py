"""``make bench``: run all benchmarks (or those named), print a table, write ``build/bench.json``."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from _timing import use_one_thread

use_one_thread()
_HERE = Path(__file__).resolve().parent


def _passed(line: dict) -> str:
    if line["target"] is None:
        return "reported"
    if line.get("judged", True) is False:
        return "not judged: the machine is busy"
    met = (
        line["ratio"] <= line["target"] if line.get("at_most") else line["ratio"] >= line["target"]
    )
    return "yes" if met else "NO"


def main() -> int:
    """Run the modules named on the command line; all by default."""
    from rich.console import Console
    from rich.table import Table

    named = sys.argv[1:] or sorted(p.stem for p in _HERE.glob("bench_*.py"))
    lines: list[dict] = []
    for name in named:
        lines += importlib.import_module(name).measure()
    table = Table(
        "what", "against", "ratio", "target", "met", title=f"load {os.getloadavg()[0]:.2f}"
    )
    for line in lines:
        sign = "≤" if line.get("at_most") else "≥"
        target = "" if line["target"] is None else f"{sign} {line['target']:g}"
        table.add_row(line["name"], line["against"], f"{line['ratio']:.3g}", target, _passed(line))
    Console(width=120).print(table)
    path = _HERE.parent / "build" / "bench.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(lines, indent=1) + "\n")
    print(f"written to {path}")
    return 1 if any(_passed(line) == "NO" for line in lines) else 0


if __name__ == "__main__":
    raise SystemExit(main())
