"""Golden numbers: what every claim and every command computed before, and whether it computes the
same now.

    python tools/golden.py                  run everything and compare with tests/golden/ (1e-12)
    python tools/golden.py lu2021.sen       one claim, or one command: landscape, samples, …
    python tools/golden.py --store NAME …   renew stored numbers; prints old and new value of what changed
    python tools/golden.py --reuse          compare what the last run left in build/golden

Claims run at quick scale, commands at a tiny size. Of a claim every statistic, interval and value
per run is stored; of every figure the length of each column of its CSV and four moments. A commit
that renews them does nothing else.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
STORED = ROOT / "tests" / "golden"
BUILD = ROOT / "build" / "golden"
SAME_MACHINE = 1e-12
# On another processor: statistics in float64, and figures, which are written with six digits.
FLOAT64, DRAWN = 1e-9, 1e-5

_TEXT = "texts.csv --text review --label sentiment"
COMMANDS: dict[str, str] = {
    "dynamics": "--seeds 2 --sentences 100 --dictionary 50 --noise-words 5 --steps 200",
    "samples": "--seeds 2 --sizes 8 16 32 --features 8 16 --steps 20 --weight-decays 0.1",
    "digits": "--seeds 2 --sizes 20 40 --students baseline patch-attention --canvas 16 --stride 8 "
    "--steps 10 "
    "--step-sizes 0.01 --weight-decays 0.1",
    "landscape": "--seeds 2 --model known-attention --samples 32 --starts 3",
    "compare": "--seeds 2 --task relevant:2 --variants softmax uniform --samples 16 64 --steps 20 "
    "--weight-decays 0",
    "study": f"{_TEXT} --seeds 2",
    "advise": _TEXT,
}
"""The commands at a tiny size; ``texts.csv`` is made up by ``make_texts``."""


def make_texts(path: Path, count: int = 60) -> None:
    """A labelled CSV in which one word of six tells the label."""
    draw = random.Random(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        for k in range(count):
            telling = ("good", "bad")[k % 2]
            noise = " ".join(f"w{draw.randrange(40)}" for _ in range(5))
            writer.writerow([f"{noise} {telling}", telling])


def fingerprint_of_claim(entry: dict[str, Any]) -> dict[str, Any]:
    """Verdict and numbers of every criterion, the claim's own and its controls'."""
    criteria = {c["name"]: _criterion(c) for c in entry["criteria"]}
    for control in entry["controls"]:
        criteria |= {
            f"control {control['id']}: {c['name']}": _criterion(c) for c in control["criteria"]
        }
    return {"verdict": entry["verdict"], "criteria": criteria}


def _criterion(record: dict[str, Any]) -> dict[str, Any]:
    return {
        name: record[name] for name in ("verdict", "statistic", "interval", "by_seed", "threshold")
    }


def fingerprint_of_csv(path: Path) -> dict[str, Any]:
    """Of each column its length and four moments, or, of words, how often each occurs (at most 8 of
    them).
    """
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = list(csv.reader(file))
    columns = {}
    for number, name in enumerate(header):
        cells = [row[number] for row in rows if number < len(row) and row[number] != ""]
        columns[name] = _column(cells)
    return columns


def _column(cells: list[str]) -> dict[str, Any]:
    try:
        values = [float(cell) for cell in cells]
    except ValueError:
        words = dict.fromkeys(cells)
        return {"count": len(cells), "words": len(words), "first": list(words)[:8]}
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return {"count": len(values), "finite": 0}
    mean = math.fsum(finite) / len(finite)
    spread = math.sqrt(math.fsum((value - mean) ** 2 for value in finite) / len(finite))
    return {
        "count": len(values),
        "finite": len(finite),
        "mean": mean,
        "spread": spread,
        "low": min(finite),
        "high": max(finite),
    }


def figures_of(page: str) -> list[str]:
    """Which figures stand on a page."""
    return [part.partition('"')[0] for part in page.split('data-figure="')[1:]]


def of_claims(folder: Path) -> dict[str, dict[str, Any]]:
    """Every claim of a folder that ``attnlab reproduce`` wrote, with its figures."""
    entries = json.loads((folder / "record.json").read_text("utf-8"))["content"]["claims"]
    found = {}
    for entry in entries:
        page = (folder / "claims" / f"{entry['id']}.html").read_text("utf-8")
        tables = {
            name: fingerprint_of_csv(folder / "figures" / f"{name}.csv")
            for name in figures_of(page)
        }
        found[entry["id"]] = fingerprint_of_claim(entry) | {"figures": tables}
    return found


def of_command(folder: Path) -> dict[str, Any]:
    """The sentences of a command's answer, and its figures."""
    record = next(folder.glob("*.json"))
    stored = json.loads(record.read_text("utf-8"))
    cards = stored["content"].get("cards", stored["about"]["cards"])
    tables = {
        path.stem: fingerprint_of_csv(path) for path in sorted((folder / "figures").glob("*.csv"))
    }
    return {"answers": [card["text"] for card in cards], "figures": tables}


def differences(old: Any, new: Any, tolerance: float, where: str = "") -> Iterator[str]:
    """In words where two fingerprints differ by more than the relative tolerance."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            place = f"{where}/{name}"
            if name not in old or name not in new:
                yield f"{place}: {'gone' if name in old else 'new'}"
            else:
                yield from differences(old[name], new[name], tolerance, place)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (before, now) in enumerate(zip(old, new, strict=True)):
            yield from differences(before, now, tolerance, f"{where}[{number}]")
    elif isinstance(old, (int, float)) and isinstance(new, (int, float)):
        if abs(old - new) > tolerance * max(1.0, abs(old), abs(new)):
            yield f"{where}: {old!r} -> {new!r}"
    elif old != new:
        yield f"{where}: {old!r} -> {new!r}"


def run_command(name: str, folder: Path) -> None:
    """One command at its tiny size into ``folder / name``."""
    folder.mkdir(parents=True, exist_ok=True)
    make_texts(folder / "texts.csv")
    words = [name, *COMMANDS[name].split(), "--out", name, "--quiet", "--processes", "0"]
    subprocess.run([sys.executable, "-m", "attnlab", *words], cwd=folder, check=True)


def run_claims(names: list[str], folder: Path, processes: int | None = None) -> None:
    """Claims at quick scale, those about texts included, into ``folder / "claims"``."""
    words = ["reproduce", *names, "--corpus", "rotten-tomatoes", "--out", "claims"]
    words += [] if processes is None else ["--processes", str(processes)]
    done = subprocess.run([sys.executable, "-m", "attnlab", *words], cwd=folder, check=False)
    if done.returncode not in (0, 3):
        raise SystemExit(f"attnlab {' '.join(words)}: exit code {done.returncode}")


def stored_names() -> list[str]:
    """All claims and commands with stored numbers."""
    return sorted(path.stem for path in STORED.glob("*.json"))


def main() -> None:
    """Run, compare, and say what differs; exit code 1 if anything does."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "names", nargs="*", help="claims, groups of claims, or commands; all by default"
    )
    parser.add_argument("--store", action="store_true", help="renew the stored numbers")
    parser.add_argument("--reuse", action="store_true", help="compare what the last run left")
    parser.add_argument("--processes", type=int, help="worker processes; one per core by default")
    parser.add_argument("--tolerance", type=float, default=SAME_MACHINE)
    given = parser.parse_args()
    commands = [name for name in given.names if name in COMMANDS] if given.names else list(COMMANDS)
    claims = [name for name in given.names if name not in COMMANDS]
    BUILD.mkdir(parents=True, exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    for name in commands:
        if not given.reuse:
            run_command(name, BUILD)
        found[name] = of_command(BUILD / name)
    if claims or not given.names:
        if not given.reuse:
            run_claims(claims, BUILD, given.processes)
        found |= of_claims(BUILD / "claims")
    changed = 0
    for name, new in found.items():
        path = STORED / f"{name}.json"
        old = json.loads(path.read_text("utf-8")) if path.is_file() else {}
        lines = list(differences(old, new, given.tolerance)) if old else ["not stored yet"]
        changed += bool(lines)
        for line in lines:
            print(f"{name}{line if line.startswith('/') else f': {line}'}")
        if given.store:
            path.write_text(json.dumps(new, ensure_ascii=False, indent=1) + "\n", "utf-8")
    print(f"{len(found) - changed} of {len(found)} are as they were")
    sys.exit(1 if changed and not given.store else 0)


if __name__ == "__main__":
    main()
