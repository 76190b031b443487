"""From the runs of a study of texts to its tables, and to the model that it stores."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, Prepared, TextSource, Tokenizer, thinning
from attnlab.estimators import AttentionClassifier
from attnlab.lab import along
from attnlab.models import WordAttention
from attnlab.papers.lu2021.text_settings import TextSettings
from attnlab.papers.lu2021.text_sweeps import Trained
from attnlab.questions.texts._stopped import Stopped, compact_model, where_stopped
from attnlab.questions.texts._tables import (
    SENTENCES,
    STUDENTS,
    Answered,
    Curves,
    Deletion,
    Lengths,
    Pairs,
    Relation,
    Training,
    Words,
)

_RELATED = 100  # words whose score–norm relation is shown


def student_curves(arms: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Accuracy (student, seed, size) of seeds that every student has, and what was chosen."""
    missing = [name for name in STUDENTS if name not in arms]
    if missing:
        raise AttnlabError(
            f"no run of {missing[0]} finished; `attnlab runs` groups the failures by cause"
        )
    shared = sorted(set.intersection(*(set(arm.seed.values.tolist()) for arm in arms.values())))
    parts = []
    for student in STUDENTS:
        own = arms[student]
        kept = {name: own[name].astype(float) for name in Curves.variables if name in own}
        parts.append(xr.Dataset(kept).sel(seed=shared))
    return along(parts, "student", STUDENTS, join="outer")


def answers_of(arms: Mapping[str, xr.Dataset], prepared: Prepared, *, labels: int) -> xr.Dataset:
    """What all students and variants say of the test texts, with seeds that all of them have.

    Softmax and uniform weights are students of the learning curves, and not fitted again: a model
    has one accuracy on a page.
    """
    shared = sorted(set.intersection(*(set(arm.seed.values.tolist()) for arm in arms.values())))
    said = [
        arm.answers.sel(seed=shared).drop_vars("size", errors="ignore") for arm in arms.values()
    ]
    test, _ = thinning.some_of(prepared.test, thinning.LOOKED_AT)
    return xr.Dataset(
        {
            Answered.said: along(said, "student", arms).astype(np.int32),
            Answered.truth: ("text", np.asarray(test.labels)),
            Answered.name: ("class", np.asarray(prepared.train.classes, dtype=np.str_)),
        }
    ).assign_attrs(size=labels, majority=int(np.bincount(prepared.train.labels).argmax()))


def median_entropy(arm: xr.Dataset) -> float:
    """Of attention with all labels, over seeds."""
    return float(arm.entropy.isel(size=-1).median("seed"))


def some_lengths(corpus: Corpus) -> xr.Dataset:
    """The lengths of some training texts; the attribute ``of`` says of how many."""
    lengths = corpus.lengths
    chosen = np.random.default_rng(0).permutation(len(lengths))[: thinning.LENGTHS]
    table = xr.Dataset({Lengths.length: ("sentence", lengths[np.sort(chosen)])})
    return table.assign_attrs(of=len(lengths))


def training_tables(
    trained: xr.Dataset, prepared: Prepared, tokenizer: Tokenizer
) -> dict[str, xr.Dataset]:
    """What the page shows of training: curves of every seed, words and texts of the first."""
    first = trained.isel(seed=0, drop=True)
    curves = trained[list(Training.variables)]
    found = {
        Training.label: curves.assign_attrs(best_step=int(first[Trained.best_step])),
        Words.label: _words(first),
        Relation.label: _relation(first),
        SENTENCES: _sentences(first, prepared, tokenizer),
    }
    return found | competing(first) | _deletion(first)


def _words(first: xr.Dataset) -> xr.Dataset:
    best = first.sel(moment="best", drop=True)
    return xr.Dataset({name: ("rank", best[f"top_{name}"].values) for name in Words.variables})


def _relation(first: xr.Dataset) -> xr.Dataset:
    words = first[Trained.top_word].sel(moment="best").values
    columns = {Relation.word: ("rank", words)}
    for name in (Relation.scaled_norm, Relation.predicted_scaled_norm, Relation.sen_error):
        columns[name] = ("rank", first[name].values)
    return xr.Dataset(columns).isel(rank=slice(_RELATED))


def competing(first: xr.Dataset) -> dict[str, xr.Dataset]:
    """Words that compete, in the first seed's texts; nothing where there are none.

    Seeds may have found different numbers of pairs: what this one lacks was filled up with nothing,
    and is left out.
    """
    if Trained.pair_weight not in first:
        return {}
    columns = {
        Pairs.weight: Trained.pair_weight,
        Pairs.score: Trained.pair_score,
        Pairs.norm: Trained.pair_norm,
        Pairs.word: Trained.pair_competitor,
        Pairs.sentence: Trained.pair_sentence,
    }
    table = xr.Dataset({name: first[own] for name, own in columns.items()}).rename(side="which")
    there = table[Pairs.weight].notnull().all(("which", "step"))
    return {Pairs.label: table.isel(pair=np.flatnonzero(there))}


def _sentences(first: xr.Dataset, prepared: Prepared, tokenizer: Tokenizer) -> xr.Dataset:
    """Some test texts, word by word in their own order, with attention and answer along training,
    as `attnlab.report.shaded_figure` takes them.
    """
    test, classes = prepared.test, np.asarray(prepared.test.classes, dtype=np.str_)
    numbers = first.shown_number.values.astype(int)
    cut = [tokenizer(prepared.texts["test"][int(n)]) for n in numbers]
    shape = (len(numbers), max(len(words) for words in cut))
    words, known = np.full(shape, "", dtype=object), np.zeros(shape, bool)
    weights = np.zeros((*shape, first.sizes["step"]))
    for row, (n, tokens) in enumerate(zip(numbers, cut, strict=True)):
        span = slice(test.offsets[n], test.offsets[n + 1])
        score = first.shown_score.values[:, row, : span.stop - span.start]
        each = np.exp(score - score.max(axis=1, keepdims=True))
        each = each / (each * test.counts[span]).sum(axis=1, keepdims=True)
        places = {test.vocabulary[w]: i for i, w in enumerate(test.words[span])}
        for place, token in enumerate(tokens):
            words[row, place] = token
            if token in places:
                known[row, place] = True
                weights[row, place] = each[:, places[token]]
    logits = first.shown_logits.transpose("sentence", "step", "class").values
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    shares = shares / shares.sum(axis=2, keepdims=True)
    truth = test.labels[numbers]
    return xr.Dataset(
        {
            "weight": (("sentence", "place", "step"), weights),
            "word": (("sentence", "place"), words.astype(np.str_)),
            "known": (("sentence", "place"), known),
            "label": ("sentence", classes[truth]),
            "predicted": (("sentence", "step"), classes[logits.argmax(axis=2)]),
            "probability": (("sentence", "step"), shares[np.arange(len(truth)), :, truth]),
        },
        {"step": first.step.values},
    )


def _deletion(first: xr.Dataset) -> dict[str, xr.Dataset]:
    """Shares of answers that turn without the top-attended and without another word, with their
    intervals.
    """
    if Trained.deletion_flips not in first:
        return {}
    columns: dict[str, Any] = {
        Deletion.sentences: int(first[Trained.deletion_sentences]),
        Deletion.left_out: int(first[Trained.deletion_left_out]),
    }
    ends = {
        "": Trained.deletion_flips,
        "_low": Trained.deletion_flips_low,
        "_high": Trained.deletion_flips_high,
    }
    for name, removed in (("top", "top"), ("other", "random")):
        for end, share in ends.items():
            columns[Deletion.variables[f"{name}{end}"]] = float(first[share].sel(removed=removed))
    return {Deletion.label: xr.Dataset(columns)}


def kept_models(trained: xr.Dataset, classes: int) -> list[WordAttention]:
    """The model of each seed at its best validation step."""
    seeds = (trained.isel(seed=k) for k in range(trained.sizes["seed"]))
    return [compact_model(one.kept_score.values, one.kept_table.values, classes) for one in seeds]


def stopped(trained: xr.Dataset, models: list[WordAttention], prepared: Prepared) -> Stopped:
    """What surrounds the places where training stopped."""
    norms = [float(norm) for norm in trained[Trained.query_norm]]
    seeds = trained.seed.values.tolist()
    return where_stopped(models, norms, prepared.train, prepared.test, seeds)


def store_model(folder: Path, model: WordAttention, prepared: Prepared, source: TextSource) -> None:
    """Store a model for ``attnlab predict``."""
    classifier = AttentionClassifier.from_model(
        model,
        prepared.vocabulary,
        prepared.train.classes,
        prior=np.bincount(prepared.train.labels),
        head="linear",
        embedding_dim=model.embeddings.shape[1],
        optimizer="descent",
        lower=source.lower,
        punctuation=source.punctuation,
        tokenizer=source.tokenizer,
        min_count=source.min_count,
        max_words=source.max_words,
        dtype="float64",
    )
    classifier.save(folder, overwrite=True)


def sampled(prepared: Prepared, *, labels: int, variants: bool) -> list[dict[str, Any]]:
    """Figures that do not show all texts: ``figure``, how many were ``used``, ``of`` how many
    ``what``.

    ``labels``: of the largest size of the learning curves; ``variants``: whether variants of
    attention were tried.
    """
    train, valid, test = (len(part) for part in (prepared.train, prepared.valid, prepared.test))
    asked = TextSettings().permutations
    permuted = thinning.permutations_for(len(prepared.train.words), asked)
    course = "loss and accuracy along training"
    curves = "learning curves, what to try" if variants else "learning curves"
    attended = "attended words and words that compete"
    ends = "where training stopped: loss, gradient, curvature, barrier"
    found = [
        ("words per text", thinning.LENGTHS, train, "training texts"),
        (curves, labels, train, "labels"),
        (curves, thinning.LOOKED_AT, valid, "validation texts"),
        (curves, thinning.LOOKED_AT, test, "test texts"),
        (course, thinning.MEASURED, train, "training texts"),
        (course, thinning.MEASURED, valid, "validation texts"),
        (course, thinning.MEASURED, test, "test texts"),
        (attended, thinning.TRAINING, train, "training texts"),
        ("purity that chance gives", permuted, asked, "permutations of the labels"),
        ("deletion test", thinning.MEASURED, test, "test texts"),
        (ends, thinning.CURVATURE, train, "training texts"),
    ]
    lengths = prepared.train.lengths
    long = int((lengths > thinning.LONGEST).sum())
    if long:
        words = f"words of {long:,} longer texts"
        found.append((curves, thinning.LONGEST, int(lengths.max()), words))
    return [
        {"figure": figure, "used": used, "of": of, "what": what}
        for figure, used, of, what in found
        if used < of
    ]
