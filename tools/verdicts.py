"""The verdicts at paper scale: docs/verdicts.json and docs/verdicts.md.

    python tools/verdicts.py                say which verdicts are missing or out of date; write the page
    python tools/verdicts.py FOLDER …       take over the verdicts of folders that `attnlab reproduce
                                            --scale paper` wrote

A verdict belongs to the criteria that it was judged by. When a criterion, threshold, control or
expectation of a claim changes, its verdict is out of date: it is listed as not run until the claim is
judged again. `make verdicts` judges everything on seeds that no threshold was set after.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.papers import ROTTEN_TOMATOES, claims
from attnlab.report import interval, number

ROOT = Path(__file__).resolve().parent.parent
LEDGER = ROOT / "docs" / "verdicts.json"
PAGE = ROOT / "docs" / "verdicts.md"
SCALE = "paper"
OUT_OF_DATE = "its criteria changed since it was judged"
# Refuted and undecided claims come first.
_ORDER = ("fails", "inconclusive", "reported", "holds")
_CRITERION = ("statistic", "interval", "bounded", "relation", "threshold", "unit", "verdict")
_SIGNS = {"<=": "≤", ">=": "≥", "in": "in"}
_INTRODUCTION = """\
# Verdicts at paper scale

Every claim, judged once at paper scale on seeds that no threshold was set after. Refuted and undecided claims come
first. [verdicts.json](verdicts.json) holds every criterion and control with its interval; `make verdicts` judges
everything again, and [ledger.md](ledger.md) explains sources, thresholds and provenance.
"""


def entry_of(claim: Mapping[str, Any], about: Mapping[str, Any], commit: str) -> dict[str, Any]:
    """What the ledger keeps of a claim's entry in a record."""
    return {
        "verdict": claim["verdict"],
        "reading": claim["reading"],
        "expected": claim["expected"],
        "reason": claim["reason"],
        "source": claim["source"],
        "provenance": sorted({c["provenance"] for c in claim["criteria"]}),
        "seeds": claim["seeds"],
        "first_seed": claim["looks"][-1]["first_seed"],
        "runs": {key: claim["runs"][key] for key in ("asked", "finished", "failed")},
        "date": claim["looks"][-1]["date"],
        "commit": commit,
        "versions": {name: about[name] for name in ("attnlab", "jax")},
        "criteria": {c["name"]: {key: c[key] for key in _CRITERION} for c in claim["criteria"]},
        "controls": {
            control["id"]: {
                "should": control["should"],
                "verdict": control["verdict"],
                "ok": control["ok"],
                "criteria": {
                    c["name"]: {key: c[key] for key in _CRITERION} for c in control["criteria"]
                },
            }
            for control in claim["controls"]
        },
    }


def take_over(ledger: dict[str, Any], folder: Path, commit: str) -> Iterator[str]:
    """Put the verdicts of a folder into the ledger; yields the claims' ids."""
    from attnlab.lab import read_record

    record = read_record(folder)
    if (scale := record.about["settings"].get("scale")) != SCALE:
        raise SystemExit(f"{folder} was judged at {scale} scale; expected {SCALE!r}")
    known = claims(ROTTEN_TOMATOES)
    for claim in record.content["claims"]:
        name = claim["id"]
        if name not in known or claim["verdict"] == "not run":
            continue
        entry = entry_of(claim, record.about, commit)
        ledger["claims"][name] = {**entry, "hash": known[name].ledger()["hash"]}
        yield name


def refreshed(ledger: Mapping[str, Any]) -> dict[str, Any]:
    """The ledger in the order of today's claims; what is missing or out of date counts as not run."""
    judged, not_run = {}, {}
    for name, claim in claims(ROTTEN_TOMATOES).items():
        entry = ledger["claims"].get(name)
        if entry is None:
            not_run[name] = ledger["not_run"].get(name, "not judged at paper scale yet")
        elif entry["hash"] != claim.ledger()["hash"]:
            not_run[name] = OUT_OF_DATE
        else:
            judged[name] = entry
    return {"scale": SCALE, "claims": judged, "not_run": not_run}


def page(ledger: Mapping[str, Any]) -> str:
    """The ledger as a table, refuted and undecided claims first."""
    known = claims(ROTTEN_TOMATOES)
    lines = [_INTRODUCTION]
    lines += ["| claim | verdict | measured | asked | seeds |", "|---|---|---|---|---|"]
    for verdict in _ORDER:
        for name, entry in ledger["claims"].items():
            if entry["verdict"] == verdict:
                lines.append(_row(name, known[name].statement, entry))
    if ledger["not_run"]:
        lines += ["", "Not run:", ""]
        lines += [f"- `{name}`: {reason}" for name, reason in ledger["not_run"].items()]
    return "\n".join(lines) + "\n"


def _row(name: str, statement: str, entry: Mapping[str, Any]) -> str:
    measured = [(what, c) for what, c in entry["criteria"].items() if c["statistic"] is not None]
    agreeing = [pair for pair in measured if pair[1]["verdict"] == entry["verdict"]]
    head = f'<a id="{name}"></a>`{name}`: {_cell(statement)} | {entry["reading"]}'
    seeds = f"{entry['seeds']} from {entry['first_seed']}"
    for what, c in [*agreeing, *measured][:1]:
        return f"| {head} | {_cell(what)}: {measured_words(c)} | {asked_words(c)} | {seeds} |"
    return f"| {head} | {_cell(entry['reason'])} | | {seeds} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def measured_words(criterion: Mapping[str, Any]) -> str:
    """A measured number with its interval, as on the pages."""
    value, ends = criterion["statistic"], criterion["interval"]
    if ends is None:
        return number(value)
    low, high = (
        math.inf * sign if end is None else end for end, sign in zip(ends, (-1, 1), strict=True)
    )
    return f"{number(value)} {interval((low, high))}"


def asked_words(criterion: Mapping[str, Any]) -> str:
    """A threshold with its relation."""
    threshold = criterion["threshold"]
    if isinstance(threshold, list):
        return f"{number(threshold[0])} … {number(threshold[1])}"
    return f"{_SIGNS[criterion['relation']]} {number(threshold)}"


def stored() -> dict[str, Any]:
    """The ledger as it is committed."""
    if not LEDGER.is_file():
        return {"scale": SCALE, "claims": {}, "not_run": {}}
    return json.loads(LEDGER.read_text("utf-8"))


def main() -> None:
    """Take over, refresh, write; exit code 1 if verdicts are missing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", nargs="*", type=Path, help="folders of paper-scale results")
    given = parser.parse_args()
    ledger = stored()
    commit = subprocess.run(
        ["git", "rev-parse", "--short=10", "HEAD"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    for folder in given.folders:
        for name in take_over(ledger, folder, commit):
            print(f"{name}: {ledger['claims'][name]['reading']}")
    ledger = refreshed(ledger)
    LEDGER.write_text(json.dumps(ledger, ensure_ascii=False, indent=1) + "\n", "utf-8")
    PAGE.write_text(page(ledger), "utf-8")
    for name, reason in ledger["not_run"].items():
        print(f"{name}: {reason}")
    print(f"{len(ledger['claims'])} verdicts, {len(ledger['not_run'])} not run")
    sys.exit(1 if ledger["not_run"] else 0)


if __name__ == "__main__":
    main()
