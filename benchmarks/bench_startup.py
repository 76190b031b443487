"""CPU seconds of the commands that a user waits for: ``python benchmarks/bench_startup.py``.

``runs`` and ``report`` are measured on the folder ``results`` where ``make reproduce`` left one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from _timing import result, use_one_thread

use_one_thread()

_RESULTS = Path(__file__).resolve().parent.parent / "results"
_REPEATS = 5
_MODEL = """
from attnlab import AttentionClassifier
texts = ["a fine film", "a dull film"] * 20
AttentionClassifier(steps=20).fit(texts, ["good", "bad"] * 20).save("model")
"""


def _seconds(words: list[str], folder: Path) -> float:
    """Median CPU seconds of a command, after one call that warms the disk's cache."""
    taken = []
    for _ in range(_REPEATS + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "attnlab", *words]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return sorted(taken[1:])[_REPEATS // 2]


def measure() -> list[dict[str, object]]:
    """Seconds of each command and the most that it may take, on an idle machine."""
    idle = os.getloadavg()[0] <= 0.5
    commands = {
        "attnlab --help": (["--help"], 0.4),
        "attnlab claims": (["claims"], 0.7),
        "attnlab predict, 10 texts": (["predict", "texts.txt", "--model", "model"], 2.5),
    }
    if (_RESULTS / "record.json").is_file():
        commands["attnlab runs"] = (["runs", str(_RESULTS)], 0.8)
        commands["attnlab report"] = (["report", str(_RESULTS), "--quiet"], 4.0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        subprocess.run([sys.executable, "-c", _MODEL], cwd=folder, check=True)
        (folder / "texts.txt").write_text("a fine and not so dull film\n" * 10, "utf-8")
        return [
            result(name, "1 CPU second", _seconds(words, folder), most, at_most=True, judged=idle)
            for name, (words, most) in commands.items()
        ]


if __name__ == "__main__":
    for line in measure():
        print(line)
