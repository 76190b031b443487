"""Made-up reviews whose words are known to lean, in files as a user has them."""

from pathlib import Path

import numpy as np

GOOD, BAD = ("fine", "moving", "witty"), ("dull", "flat", "stale")


def sentences(count: int, seed: int) -> list[str]:
    """Lines "label words": a leaning word (sometimes the wrong one), some of many that do not lean,
    punctuation.
    """
    rng = np.random.default_rng(seed)
    lines = []
    for n in range(count):
        label = n % 2
        leaning = (GOOD if label ^ (rng.random() < 0.1) else BAD)[rng.integers(3)]
        words = [leaning, *(f"w{w}" for w in rng.integers(0, 40, rng.integers(3, 9)))]
        lines.append(f"{label} {' '.join(rng.permutation(words))} .")
    return lines


def write_folder(folder: Path, sizes=(120, 40, 60)) -> Path:
    """Training, validation and test file, named as SST's are."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (part, count) in enumerate(zip(("train", "dev", "test"), sizes, strict=True)):
        (folder / f"made.up.{part}").write_text("\n".join(sentences(count, seed)) + "\n", "utf-8")
    return folder
