"""Is attention's entropy ever below what the norm of its logits allows? Random rows, and the
extremal one (docs/theory.md#c5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.studies._study import Data, Scale, Study, arm_plan
from attnlab.sweeps import RunContext

WORK = "attnlab.studies._compare_entropy:fit_entropy"
ROWS = 60_000
WORDS = (2, 3, 5, 8, 16, 64, 256)
_NORMS, _SHOWN = (
    60,
    24,
)  # norms at which the extremal row is taken, and random rows for each T that the figure shows
_TOO_LARGE = 1.5  # the control's β is so many times too large: its bound lies too high


@dataclass(frozen=True)
class EntropySettings:
    """``rows`` random rows of logits; ``seed`` draws them, ``arm`` is only a label."""

    arm: str = ""
    seed: int = 0
    rows: int = 7500

    def __post_init__(self):
        if self.rows < len(WORDS):
            raise AttnlabError(
                f"rows={self.rows}: expected at least {len(WORDS)}, one for each number of words"
            )


def fit_entropy(s: EntropySettings, context: RunContext) -> xr.Dataset:
    """Entropy and its bound of rows of logits of many norms and shapes, from even to nearly one
    word.

    - ``least``: the least of entropy − bound over rows;
    - ``tight``: the largest relative difference of the two at the extremal point, over T and σ;
    - ``wrong``: the least of entropy − bound where β is 1.5 times too large;
    - ``entropy``, ``norm``, ``words`` (row) of some rows, for the figure.
    """
    import jax.numpy as jnp

    from attnlab.models import attention_entropy, entropy_bound

    rng = np.random.default_rng([context.root_seed, s.seed])
    shares = np.array_split(np.arange(s.rows), len(WORDS))
    sigma = np.linspace(0.1, 8.0, _NORMS)
    rows = [(t, random_logits(rng, len(own), t)) for t, own in zip(WORDS, shares, strict=True)]
    words, norm, weights = _padded(rows)
    entropy = np.asarray(attention_entropy(jnp.asarray(weights)))
    bound = np.asarray(entropy_bound(jnp.asarray(norm), jnp.asarray(words)))
    wrong = literal_bound(norm, words, _TOO_LARGE)
    there, length, at_most = _padded([(t, extremal_logits(sigma, t)) for t in WORDS])
    met = np.asarray(entropy_bound(jnp.asarray(length), jnp.asarray(there)))
    tight = np.abs(np.asarray(attention_entropy(jnp.asarray(at_most))) / met - 1)
    shown = np.concatenate([own[:_SHOWN] for own in shares])
    columns = {"norm": norm[shown], "entropy": entropy[shown], "words": words[shown].astype(float)}
    least = {
        "least": (entropy - bound).min(),
        "tight": tight.max(),
        "wrong": (entropy - wrong).min(),
    }
    return xr.Dataset(least | {name: ("row", values) for name, values in columns.items()})


def _padded(groups: list[tuple[int, np.ndarray]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of words, norms and weights of rows of logits, zeros beyond the words: one shape for
    all T.
    """
    words = np.concatenate([np.full(len(rows), t) for t, rows in groups])
    norm = np.concatenate([np.linalg.norm(rows, axis=1) for _, rows in groups])
    weights = np.concatenate(
        [np.pad(softmax(rows), ((0, 0), (0, max(WORDS) - t))) for t, rows in groups]
    )
    return words, norm, weights


def random_logits(rng: np.random.Generator, rows: int, words: int) -> np.ndarray:
    """Centred rows whose norms spread over 0.01 … 30: normal ones, peaked ones, and ones near the
    extremal point.
    """
    normal = rng.normal(size=(rows, words))
    peaked = normal * np.exp(2 * rng.normal(size=(rows, words)))
    near = extremal_logits(np.ones(rows), words) + 0.1 * normal * rng.random((rows, 1))
    kind = rng.integers(0, 3, rows)
    logits = np.choose(kind[:, None], [normal, peaked, near])
    logits = logits - logits.mean(axis=1, keepdims=True)
    size = 10 ** rng.uniform(-2, 1.5, (rows, 1))
    return size * logits / np.linalg.norm(logits, axis=1, keepdims=True)


def extremal_logits(sigma: np.ndarray, words: int) -> np.ndarray:
    """The row of norm σ of the least entropy: one logit ``σ√((T−1)/T)``, all others
    ``−σ/√(T(T−1))``.
    """
    rows = np.repeat(-(np.asarray(sigma) / np.sqrt(words * (words - 1)))[:, None], words, axis=1)
    rows[:, 0] = np.asarray(sigma) * np.sqrt((words - 1) / words)
    return rows


def literal_bound(sigma: Any, words: Any, factor: float = 1.0) -> Any:
    """The bound as docs/theory.md#c5 writes it; with a ``factor`` on β it is another one, which
    does not hold.
    """
    beta = factor * np.exp(-sigma * np.sqrt(words / (words - 1)))
    mass = 1 + (words - 1) * beta
    return np.log(mass) + sigma * np.sqrt(words * (words - 1)) * beta / mass


def softmax(logits: np.ndarray) -> np.ndarray:
    """In float64, row by row."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def _plan(scale: Scale, seeds: int):
    del scale
    return arm_plan(WORK, "entropy bound", {"rows": {"rows": -(-ROWS // seeds)}}, seeds)


def _measure(arms: Data) -> Data:
    return {"entropy bound": arms["rows"]}


ENTROPY = Study("entropy bound", _plan, _measure)
