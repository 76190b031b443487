"""The work function of the claims about texts (docs/theory.md#a7): word attention on labelled
sentences.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache
from typing import cast

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab.data import Corpus, TextParts, text_parts, thinning
from attnlab.dynamics import (
    Surroundings,
    attended,
    competition,
    deletion_test,
    excess_purity,
    leads,
    telling_pairs,
    text_sen,
    word_table,
)
from attnlab.lab import axis
from attnlab.models import Incidence, WordAttention, WordAttentionConfig, pooled_logits
from attnlab.papers.lu2021.runs import finished_run
from attnlab.papers.lu2021.text_settings import WRONG_QUERY, TextSettings
from attnlab.sweeps import RunContext
from attnlab.training import (
    AbstractProbe,
    Accuracy,
    EarlyStopping,
    Every,
    GradientDescent,
    Loss,
    Measure,
    Norms,
    Scores,
    train,
)


def train_text(settings: TextSettings, context: RunContext) -> xr.Dataset:
    """Train once; keep curves over steps and tables of the top words, not every word at every step.

    Of very many sentences curves, pairs and the deletion test look at some (``attnlab.data.thinning``);
    training sees all.

    - (step): ``loss``, ``accuracy``, ``loss_valid``, ``accuracy_valid``, ``accuracy_test``; means
      over sentences of purity, its null, excess and frequency of the top-attended word
      (``attended_…``) and of the least attended one.
    - ``best_step``: the recorded step of the lowest validation loss; ``query_norm``.
    - (moment: best, final; rank): ``top_word`` and its score, norm, purity, excess, frequency,
      onset, leaning, others; at the best step (rank): ``scaled_norm``, ``predicted_scaled_norm``,
      ``sen_error``, ``sen_error_wrong_query`` and, if asked for, ``sen_error_refined``.
    - (step): ``purer_leads``, ``clear_leads``, ``longer_leads``, and ``pairs``, ``contested``: words that compete,
      by what is known of them from the labels as they are, permuted or not.
    - ``deletion_…``: the deletion test of the best model on test sentences; ``pair_…``: words that
      compete.
    """
    s = settings
    parts = _parts(s)
    corpus, words = _training(s, context.root_seed)
    data, model = _trained(s, corpus, parts, context.root_seed)
    best = int(data.best_step)
    looked, numbers = thinning.some_of(corpus, thinning.TRAINING)
    found = _joined(
        data.drop_dims("word"),
        _curves(data, looked, words),
        _tables(data, corpus, words, best, s.top),
        _deletion(model, thinning.some_of(parts.test, thinning.MEASURED)[0], s.seed),
        leads(data, corpus, _labelled(s.source, s.permutations, None, s.padding)[1]).drop_vars(
            "time", errors="ignore"
        ),
        _pairs(data, looked, words, lambda n: parts.sentences[int(numbers[n])], s),
        _kept(data, model, parts.test, s) if s.keep else xr.Dataset(),
    )
    return found.assign_attrs(data.attrs | {"content": parts.hash})


def _joined(*parts: xr.Dataset) -> xr.Dataset:
    return xr.merge(parts, compat="identical", join="exact", combine_attrs="drop")


def _parts(s: TextSettings) -> TextParts:
    """The texts, with a padding word if asked for."""
    parts = text_parts(s.source)
    parts.require(s.data, s.source)
    return _padded(s.source) if s.padding else parts


@lru_cache(maxsize=1)
def _padded(source: str) -> TextParts:
    parts = text_parts(source)
    longest = int(parts.train.lengths.max())
    return dataclasses.replace(
        parts, **{name: getattr(parts, name).padded(longest) for name in ("train", "valid", "test")}
    )


def _training(s: TextSettings, root_seed: int) -> tuple[Corpus, xr.Dataset]:
    """The training corpus and what is known of its words' purity."""
    permuted = (root_seed, s.seed) if s.permuted else None
    return _labelled(s.source, s.permutations, permuted, s.padding)


@lru_cache(maxsize=3)
def _labelled(
    source: str, permutations: int, permuted: tuple[int, int] | None, padding: bool
) -> tuple[Corpus, xr.Dataset]:

    corpus = (_padded(source) if padding else text_parts(source)).train
    if permuted is not None:
        labels = np.random.default_rng(permuted).permutation(corpus.labels)
        corpus = dataclasses.replace(corpus, labels=labels)
    return corpus, excess_purity(
        corpus, seed=0, permutations=thinning.permutations_for(len(corpus.words), permutations)
    )


def _trained(
    s: TextSettings, corpus: Corpus, parts: TextParts, root_seed: int
) -> tuple[xr.Dataset, WordAttention]:
    """What was recorded of all words, and the model of the best validation loss."""

    config = WordAttentionConfig.for_corpus(
        corpus,
        head=s.head,
        embedding_dim=s.embedding_dim,
        key_dim=s.key_dim,
        embedding_std=s.embedding_std,
        query_std=s.query_std,
    )
    measured = {
        name: thinning.some_of(part, thinning.MEASURED)[0]
        for name, part in (("valid", parts.valid), ("test", parts.test))
    }
    own = None
    if s.batch_size is not None and len(corpus) > thinning.MEASURED:
        own, measured["train"] = "train", thinning.some_of(corpus, thinning.MEASURED)[0]
    record: list[AbstractProbe] = [Loss(own), Accuracy(own), Scores(), Norms(), Loss("valid")]
    record += [Accuracy("valid"), Accuracy("test")]
    if s.surroundings:
        record.append(Surroundings())
    if s.keep:
        record.append(_shown_probe(parts.test, s.shown))
    run = train(
        config,
        corpus,
        steps=s.steps,
        seeds=[s.seed],
        optimizer=GradientDescent(s.step_size),
        record=record,
        when=Every(s.every),
        splits=measured,
        root_seed=root_seed,
        dtype=s.dtype,
        batch_size=s.batch_size,
        # Nothing ends a run early: this only keeps the parameters of the best row.
        stop=EarlyStopping("valid", patience=s.steps + 1),
        progress=False,
    )
    renamed = {} if own is None else {"loss_train": "loss", "accuracy_train": "accuracy"}
    return finished_run(run).rename(renamed), run.models[s.seed]


def _curves(data: xr.Dataset, corpus: Corpus, words: xr.Dataset) -> xr.Dataset:

    told = words[["purity", "null", "excess", "frequency"]]
    curves = []
    for prefix, least in (("attended", False), ("least_attended", True)):
        one = attended(data.score, corpus, told, least=least)
        curves.append(one.rename({name: f"{prefix}_{name}" for name in one.data_vars}))
    return _joined(*curves)


def _tables(data: xr.Dataset, corpus: Corpus, words: xr.Dataset, best: int, top: int) -> xr.Dataset:
    """Words of the highest score at the best and at the last step, and the relation of the former."""

    moments = {"best": best, "final": int(data.step[-1])}
    tables = []
    for step in moments.values():
        one = word_table(data, corpus, words.drop_vars(["null", "spread"]), step=step, top=top)
        tables.append(_ranked(one, "top_", [*one.data_vars, "word"]))
    found = cast(xr.Dataset, xr.concat(tables, axis("moment", moments), combine_attrs="drop"))
    relation = text_sen(data, corpus, step=best, words=top)
    wrong = text_sen(
        data.assign(query_norm=WRONG_QUERY * data.query_norm), corpus, step=best, words=top
    )
    relation["sen_error_wrong_query"] = wrong.sen_error
    return _joined(
        found, _ranked(relation, "", [name for name in relation if name not in ("score", "others")])
    )


def _ranked(table: xr.Dataset, prefix: str, names: Iterable[Hashable]) -> xr.Dataset:
    """Words by their rank instead of their names, which differ from run to run."""
    return xr.Dataset({f"{prefix}{name}": ("rank", table[name].values) for name in names})


def _deletion(model: WordAttention, test: Corpus, seed: int) -> xr.Dataset:

    found = deletion_test(model, test, seed=seed)
    return found.rename({name: f"deletion_{name}" for name in found.data_vars})


def _pairs(
    data: xr.Dataset,
    corpus: Corpus,
    words: xr.Dataset,
    sentence: Callable[[int], str],
    s: TextSettings,
) -> xr.Dataset:
    """Words that compete in a sentence; nothing where no order of attention changes."""

    triples = telling_pairs(data.score, corpus, words, count=s.pairs)
    if not triples:
        return xr.Dataset()
    found = competition(data, corpus, triples).drop_vars(["time", "sentence"], errors="ignore")
    found = found.rename({name: f"pair_{name}" for name in found.data_vars})
    return found.assign(
        pair_sentence=("pair", np.asarray([sentence(n) for n, *_ in triples], dtype=np.str_))
    )


def _kept(data: xr.Dataset, model: WordAttention, test: Corpus, s: TextSettings) -> xr.Dataset:
    """The best model as scores (any_word) and projected table (any_word, column); what was recorded
    of some test texts.

    ``shown_number`` (sentence): which they are; ``shown_logits`` (step, sentence, class);
    ``shown_score`` (step, sentence, place): scores of their different words, in the order of the
    corpus, nan beyond the last.
    """

    model = jax.tree.map(jnp.asarray, model)
    kept = xr.Dataset(
        {
            "kept_score": ("any_word", np.asarray(model.scores(), np.float64)),
            "kept_table": (("any_word", "column"), np.asarray(model.table(), np.float64)),
        }
    )
    chosen = shown_sentences(test, s.shown)
    sizes = np.diff(test.offsets)[chosen]
    places = np.full((len(chosen), int(sizes.max())), -1)
    for row, (n, size) in enumerate(zip(chosen, sizes, strict=True)):
        places[row, :size] = test.words[test.offsets[n] : test.offsets[n] + size]
    scores = data.score.transpose("step", "word").values.astype(np.float64)[:, places]
    return kept.assign(
        shown_number=("sentence", chosen),
        shown_score=(("step", "sentence", "place"), np.where(places >= 0, scores, np.nan)),
    )


def shown_sentences(test: Corpus, count: int) -> np.ndarray:
    """Some test sentences of middling length for people to look at, drawn once and for all."""
    sizes = np.diff(test.offsets)
    middling = (
        (sizes >= np.quantile(sizes, 0.25))
        & (sizes <= max(np.quantile(sizes, 0.75), 2))
        & (sizes <= 60)
    )
    fit = np.flatnonzero(middling) if middling.any() else np.argsort(sizes, kind="stable")[:count]
    return np.sort(np.random.default_rng(0).permutation(fit)[:count])


def _shown_probe(test: Corpus, count: int) -> AbstractProbe:
    """Records the logits of these sentences."""

    few = Incidence.of(test.subset(shown_sentences(test, count)), "float32")
    return Measure("shown_logits", lambda model: pooled_logits(model, few), ("sentence", "class"))
