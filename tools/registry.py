"""The registry of the claims: criteria, thresholds, controls and expectations, in words.

    python tools/registry.py            say what differs from the registry; exit code 1 if anything does
    python tools/registry.py --store    renew it

A criterion or an expectation that changed must also say when and after seeing what (its
``provenance``, docs/ledger.md); otherwise ``--store`` refuses. A commit that renews the registry says
why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attnlab.papers import ROTTEN_TOMATOES, claims

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = ROOT / "src" / "attnlab" / "papers" / "registry.json"
RENEW = "renew it by `make registry` (python tools/registry.py --store)"


def today() -> dict[str, dict[str, Any]]:
    """The ledger of every claim by id."""
    return {name: claim.ledger() for name, claim in claims(ROTTEN_TOMATOES).items()}


def stored() -> dict[str, dict[str, Any]]:
    """The registry."""
    return json.loads(REGISTRY.read_text("utf-8"))


def differences(old: Any, new: Any, where: str) -> Iterator[str]:
    """In words what is in one ledger and not in the other."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            yield from differences(old.get(name), new.get(name), f"{where}, {name}")
    elif old != new:
        yield f"{where}: {_text(old)} -> {_text(new)}"


def unexplained(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Of two registries: the criteria and expectations that changed while their provenance did not."""
    for name in [name for name in new if name in old]:
        before, now = old[name], new[name]
        for criterion, words in now["criteria"].items():
            asked = _asked_before(before, now, criterion)
            since = _provenance(now, criterion)
            if words != asked and since == _provenance(before, criterion):
                yield f"{name}, {criterion}: {_text(asked)} -> {_text(words)}, still “{since}”"
        same = now["expected_provenance"] == before["expected_provenance"]
        if now["expected"] != before["expected"] and same:
            since = now["expected_provenance"]
            yield f"{name}, expected: {before['expected']} -> {now['expected']}, still “{since}”"


def _asked_before(before: Mapping[str, Any], now: Mapping[str, Any], criterion: str) -> str | None:
    """What a criterion asked; one of another name that asked the same and is gone was renamed."""
    asked, words = before["criteria"], now["criteria"][criterion]
    gone = [asked[name] for name in asked if name not in now["criteria"]]
    return asked.get(criterion, words if words in gone else None)


def _provenance(ledger: Mapping[str, Any], criterion: str) -> str:
    own = ledger["of_criteria"].get(criterion, {})
    return own.get("provenance", ledger["provenance"])


def _text(value: Any) -> str:
    return "–" if value is None else json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Compare, or renew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--store", action="store_true", help="renew the registry")
    given = parser.parse_args()
    old, new = stored() if REGISTRY.is_file() else {}, today()
    lines = [line for name in {**old, **new} for line in _of_claim(old, new, name)]
    for line in lines:
        print(line)
    if not given.store:
        print(RENEW if lines else "the registry is up to date")
        sys.exit(1 if lines else 0)
    missing = list(unexplained(old, new))
    if missing:
        print("not stored: say when and after seeing what, by `provenance` (docs/ledger.md):")
        print(*missing, sep="\n")
        sys.exit(1)
    REGISTRY.write_text(json.dumps(new, ensure_ascii=False, indent=1) + "\n", "utf-8")


def _of_claim(old: Mapping[str, Any], new: Mapping[str, Any], name: str) -> Iterator[str]:
    if name not in old or name not in new:
        yield f"{name}: {'gone' if name in old else 'new'}"
    else:
        yield from differences(old[name], new[name], name)


if __name__ == "__main__":
    main()
