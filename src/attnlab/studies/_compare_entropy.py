"""Is attention's entropy ever below what the norm of its logits allows? Random rows, and the extremal one (B5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.runs import RunContext
from attnlab.studies._study import Data, Scale, Study, arm_plan

WORK = "attnlab.studies._compare_entropy:fit_entropy"
ROWS = 60_000
WORDS = (2, 3, 5, 8, 16, 64, 256)
_TOO_LARGE = 1.5  # the control's β is so many times too large: its bound lies too high


@dataclass(frozen=True)
class EntropySettings:
    """``rows`` random rows of logits; ``seed`` draws them, ``arm`` is only a label."""

    arm: str = ""
    seed: int = 0
    rows: int = 7500

    def __post_init__(self):
        if self.rows < len(WORDS):
            raise AttnlabError(f"rows={self.rows}: expected at least {len(WORDS)}, one for each number of words")


def fit_entropy(s: EntropySettings, context: RunContext) -> xr.Dataset:
    """Entropy and its bound of rows of logits of many norms and shapes, from even to nearly one word.

    - ``least``: the least of entropy − bound over rows;
    - ``tight``: the largest relative difference of the two at the extremal point, over T and σ;
    - ``wrong``: the least of entropy − bound where β is 1.5 times too large;
    - ``entropy``, ``norm``, ``words`` (row) of some rows, for the figure.
    """
    import jax.numpy as jnp

    from attnlab.models import attention_entropy, entropy_bound

    rng = np.random.default_rng([context.root_seed, s.seed])
    shares = np.array_split(np.arange(s.rows), len(WORDS))
    least, wrong, tight, shown = np.inf, np.inf, 0.0, []
    for words, own in zip(WORDS, shares, strict=True):
        logits = random_logits(rng, len(own), words)
        norm = np.linalg.norm(logits, axis=1)
        entropy = np.asarray(attention_entropy(jnp.asarray(softmax(logits))))
        bound = np.asarray(entropy_bound(jnp.asarray(norm), words))
        least = min(least, float((entropy - bound).min()))
        wrong = min(wrong, float((entropy - literal_bound(norm, words, _TOO_LARGE)).min()))
        sigma = np.linspace(0.1, 8.0, 60)
        extremal = attention_entropy(jnp.asarray(softmax(extremal_logits(sigma, words))))
        met = np.asarray(entropy_bound(jnp.asarray(sigma), words))
        tight = max(tight, float(np.abs(np.asarray(extremal) / met - 1).max()))
        shown += [(float(norm[k]), float(entropy[k]), float(words)) for k in range(min(24, len(own)))]
    columns = dict(zip(("norm", "entropy", "words"), np.array(shown).T, strict=True))
    return xr.Dataset({"least": least, "tight": tight, "wrong": wrong, **{k: ("row", v) for k, v in columns.items()}})


def random_logits(rng: np.random.Generator, rows: int, words: int) -> np.ndarray:
    """Centred rows whose norms spread over 0.01 … 30: normal ones, peaked ones, and ones near the extremal point."""
    normal = rng.normal(size=(rows, words))
    peaked = normal * np.exp(2 * rng.normal(size=(rows, words)))
    near = extremal_logits(np.ones(rows), words) + 0.1 * normal * rng.random((rows, 1))
    kind = rng.integers(0, 3, rows)
    logits = np.choose(kind[:, None], [normal, peaked, near])
    logits = logits - logits.mean(axis=1, keepdims=True)
    size = 10 ** rng.uniform(-2, 1.5, (rows, 1))
    return size * logits / np.linalg.norm(logits, axis=1, keepdims=True)


def extremal_logits(sigma: np.ndarray, words: int) -> np.ndarray:
    """The row of norm σ of the least entropy: one logit ``σ√((T−1)/T)``, all others ``−σ/√(T(T−1))``."""
    rows = np.repeat(-(np.asarray(sigma) / np.sqrt(words * (words - 1)))[:, None], words, axis=1)
    rows[:, 0] = np.asarray(sigma) * np.sqrt((words - 1) / words)
    return rows


def literal_bound(sigma: np.ndarray, words: int, factor: float = 1.0) -> np.ndarray:
    """The bound as THEORY B5 writes it; with a ``factor`` on β it is another one, which does not hold."""
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
