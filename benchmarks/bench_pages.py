"""How fast pages load in Chromium: ``python benchmarks/bench_pages.py``.

On the folder ``results`` that ``make reproduce`` left; without it, or without Chromium, nothing is
measured.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from _timing import result

_ROOT = Path(__file__).resolve().parent.parent
_RESULTS = _ROOT / "results"
_REPEATS = 5
_MOST = 25e6  # bytes of all pages and figures
_LOADED = "performance.getEntriesByType('navigation')[0].loadEventEnd / 1000"


def _seconds(browser, path: Path) -> float:
    """Median seconds until a page has loaded; its figures may be drawn after that."""
    taken = []
    for _ in range(_REPEATS):
        browser.open(path)
        taken.append(browser.evaluate(_LOADED))
    return sorted(taken)[_REPEATS // 2]


def _size(folder: Path) -> int:
    """Bytes of all that a reader opens: not the record and the runs."""
    paths = [*folder.glob("*.html"), *(folder / "claims").glob("*")]
    paths += [*(folder / "assets").glob("*"), *(folder / "figures").glob("*")]
    return sum(path.stat().st_size for path in paths)


def measure() -> list[dict[str, object]]:
    """Seconds of the first page and of the largest claim, and the size of all, with what they may be."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None or not (_RESULTS / "index.html").is_file():
        return []
    sys.path.insert(0, str(_ROOT))
    from tests.headless import Browser

    idle = os.getloadavg()[0] <= 0.5
    largest = max((_RESULTS / "claims").glob("*.html"), key=lambda path: path.stat().st_size)
    with tempfile.TemporaryDirectory() as profile:
        browser = Browser(program, Path(profile))
        first, claim = (_seconds(browser, path) for path in (_RESULTS / "index.html", largest))
        browser.close()
    size = _size(_RESULTS) / _MOST
    return [
        result("first page loads", "1 second", first, 0.7, at_most=True, judged=idle),
        result(
            f"largest claim loads ({largest.stem})",
            "1 second",
            claim,
            1.0,
            at_most=True,
            judged=idle,
        ),
        result("all pages and figures", "25 MB", size, 1.0, at_most=True),
    ]


if __name__ == "__main__":
    for line in measure():
        print(line)
