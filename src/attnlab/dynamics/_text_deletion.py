"""The deletion test: does removing the most attended word change the prediction?"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models import Incidence, WordAttention, pooled_logits
from attnlab.stats import share_interval

REMOVED = ("top", "random")


def deletion_test(model: WordAttention, corpus: Corpus, *, seed: int) -> xr.Dataset:
    """How often removing a sentence's top-attended word flips the prediction, against a random word.

    All occurrences of a word are removed. The top-attended word has the highest score (the first in
    the vocabulary in case of ties); the random one is drawn uniformly from the others, by ``seed``.
    Sentences of one word are left out.

    - ``flips``, ``flips_low``, ``flips_high`` (removed: top, random): share of sentences whose
      prediction flips, with its exact 95 % interval; ``only`` (removed): sentences that this
      removal flips and the other does not.
    - ``preference``, ``_low``, ``_high``: among sentences that exactly one of the two removals
      flips, the share where it is the top word: a paired comparison. It is 0.5 if attention carries
      no information, and nan if there is no such sentence.
    - ``sentences``: the number tested; ``left_out``: the number with one word only.
    """
    long = np.diff(corpus.offsets) > 1
    if not long.any():
        raise AttnlabError(
            f"all {len(corpus)} sentences have only one word: the test needs longer ones"
        )
    tested, model = corpus.subset(long), jax.tree.map(jnp.asarray, model)
    top = _top_entries(np.asarray(model.scores()), tested)
    before = _predicted(model, tested)
    flipped = {
        name: _predicted(model, _without(tested, entries)) != before
        for name, entries in (("top", top), ("random", _other_entries(tested, top, seed)))
    }
    only = [int((flipped[one] & ~flipped[other]).sum()) for one, other in (REMOVED, REMOVED[::-1])]
    shares = [share_interval(int(flipped[name].sum()), len(tested)) for name in REMOVED]
    prefer = share_interval(only[0], sum(only)) if sum(only) else None
    found: dict[str, object] = {
        "flips": ("removed", [share.estimate for share in shares]),
        "flips_low": ("removed", [share.low for share in shares]),
        "flips_high": ("removed", [share.high for share in shares]),
        "only": ("removed", only),
        "sentences": len(tested),
        "left_out": int((~long).sum()),
    }
    for name, end in (
        ("preference", "estimate"),
        ("preference_low", "low"),
        ("preference_high", "high"),
    ):
        found[name] = np.nan if prefer is None else getattr(prefer, end)
    return xr.Dataset(found, {"removed": list(REMOVED)}, {"seed": seed, "level": 0.95})


def _predicted(model: WordAttention, corpus: Corpus) -> Int[ndarray, "sentences"]:
    logits = pooled_logits(model, Incidence.of(corpus, model.query.dtype))
    return np.asarray(jnp.argmax(logits, axis=1))


def _top_entries(scores: Float[ndarray, "words"], corpus: Corpus) -> Int[ndarray, "sentences"]:
    """The entry of each sentence's first word with the highest score."""
    entries = scores[corpus.words]
    at_top = entries == np.maximum.reduceat(entries, corpus.offsets[:-1])[corpus.rows]
    return _first(at_top, corpus)


def _first(chosen: Bool[ndarray, "entries"], corpus: Corpus) -> Int[ndarray, "sentences"]:
    places = np.flatnonzero(chosen)
    return places[np.searchsorted(places, corpus.offsets[:-1])]


def _other_entries(
    corpus: Corpus, top: Int[ndarray, "sentences"], seed: int
) -> Int[ndarray, "sentences"]:
    """For each sentence, an entry drawn uniformly from all but the top one."""
    sizes = np.diff(corpus.offsets)
    drawn = np.random.default_rng(seed).integers(0, sizes - 1)
    drawn += drawn >= top - corpus.offsets[:-1]  # skip the top entry
    return corpus.offsets[:-1] + drawn


def _without(corpus: Corpus, entries: Int[ndarray, "sentences"]) -> Corpus:
    """The corpus without one entry of each sentence."""
    kept = np.ones(len(corpus.words), bool)
    kept[entries] = False
    offsets = corpus.offsets - np.arange(len(corpus) + 1)
    return Corpus(
        offsets,
        corpus.words[kept],
        corpus.counts[kept],
        corpus.labels,
        corpus.vocabulary,
        corpus.classes,
    )
