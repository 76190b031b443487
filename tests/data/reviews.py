"""Made-up reviews in which one word tells the label, in files as a user has them."""

from __future__ import annotations

import csv
import random
from pathlib import Path

TELLING = {"pos": ["good", "great", "lovely"], "neg": ["bad", "dull", "awful"]}
EVIL = "<img src=x onerror=alert(1)>"


def rows(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts in which one word tells the label; one text in twenty has an unfriendly word in it."""
    draw = random.Random(seed)
    found = []
    for k in range(count):
        label = ("pos", "neg")[k % 2]
        words = [draw.choice(TELLING[label]), *(f"w{draw.randrange(60)}" for _ in range(6))]
        draw.shuffle(words)
        found.append((" ".join(words + ([EVIL] if k % 20 == 0 else [])), label))
    return found


def write(path: Path, table: list[tuple[str, str]]) -> str:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("review", "sentiment"), *table])
    return str(path)
