"""Texts whose class is told by one word among noise."""

import numpy as np


def topic_texts(count: int, *, classes=("film", "music", "sport"), seed: int = 0, noise: int = 8):
    """Texts and labels; a text of class c holds ``c`` or ``cs`` once, among words that tell
    nothing.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, len(classes), count)
    texts = []
    for label in labels:
        words = [f"noise{i}" for i in rng.integers(0, 60, noise)]
        words.insert(
            int(rng.integers(noise + 1)), classes[label] + ("s" if rng.random() < 0.5 else "")
        )
        texts.append(" ".join(words))
    return texts, np.array(classes)[labels]


def topic_words(words) -> set[str]:
    """Those of some words that tell the class."""
    return {word for word in words if not word.startswith("noise")}
