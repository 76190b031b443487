"""The work function behind the studies of real text (docs/theory.md#a7): one run of word attention
on labelled sentences.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.papers.lu2021.runs import finished_run
from attnlab.studies._measure import axis
from attnlab.studies._text_prepare import is_prepared, open_prepared
from attnlab.studies._text_sample import MEASURED, TRAINING, permutations_for, some_of
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    from attnlab.data import Corpus, Texts
    from attnlab.models import WordAttention
    from attnlab.training import AbstractProbe

WORK = "attnlab.studies._text:train_text"
ROTTEN_TOMATOES = "rotten-tomatoes"
WRONG_QUERY = 1.2  # by which the control takes |q| too large
_HEADS = ("fixed", "linear")
_PARTS = {"train": ("train",), "valid": ("dev", "valid", "val", "validation"), "test": ("test",)}
_SST2 = (6920, 872, 1821)
_SPLIT_SEED = 0  # the split of a source without one is part of the source, the same for all runs


@dataclass(frozen=True)
class TextSettings:
    """One training run on real text; the defaults are those of docs/theory.md#a7 for the fixed head (linear:
    embedding_dim 100, 30 000 steps).

    - ``seed`` draws the initial parameters; sentences are the same in all runs. ``arm`` is a label
      and nothing else.
    - ``source``: ``"rotten-tomatoes"``, or the path of a file, or of a folder with training,
      validation and test file; ``data``: the content hash that it must have (``TextParts.hash``),
      so that stored runs belong to their data.
    - ``every``: recorded steps, on which the best validation loss is looked for.
    - ``permuted``: training labels in random order, drawn by the seed: the control.
    - ``surroundings``: record what the refined relation needs. ``top``: words kept in the tables.
    - ``batch_size``: sentences a step, all by default. ``keep``: the model of the best validation
      loss, as scores and projected table, and the attention of some test sentences along training.
    """

    arm: str = ""
    seed: int = 0
    source: str = ROTTEN_TOMATOES
    data: str = ""
    head: str = "fixed"
    embedding_dim: int = 200
    steps: int = 12_000
    step_size: float = 0.1
    embedding_std: float = 1e-6
    key_dim: int = 10
    query_std: float = 0.3
    every: int = 250
    permuted: bool = False
    surroundings: bool = False
    top: int = 200
    permutations: int = 200
    pairs: int = 4
    dtype: str = "float32"
    batch_size: int | None = None
    keep: bool = False
    shown: int = 12

    def __post_init__(self):
        if self.head not in _HEADS:
            raise AttnlabError(f"head={self.head!r}: expected one of {', '.join(_HEADS)}")
        for name in ("embedding_dim", "steps", "key_dim", "every", "top", "pairs"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")
        if not self.step_size > 0:
            raise AttnlabError(f"step_size={self.step_size}: expected a positive number")


@dataclass(frozen=True, eq=False)
class TextParts:
    """Training, validation and test sentences over the training vocabulary, and what a source is
    known by.

    ``sentences`` are the training sentences as they stood in the source, one for each of ``train``;
    ``dropped`` says how many sentences of each part have no known word and are left out,
    ``unknown`` the share of unknown words.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    sentences: Sequence[str]
    dropped: tuple[int, int, int]
    unknown: tuple[float, float, float]
    hash: str

    @property
    def is_sst2(self) -> bool:
        """Whether this is SST-2 with its own split, by its numbers of sentences: what the
        thresholds were set on.
        """
        sizes = tuple(len(part) for part in (self.train, self.valid, self.test))
        return len(self.train.classes) == 2 and sizes == _SST2


def plain_words(text: str) -> list[str]:
    """The words of a sentence that is already tokenised, punctuation stripped.

    >>> plain_words("it 's not bad , really ... 10/10 !")
    ['it', "'s", 'not', 'bad', 'really', '10/10']
    """
    return [word for word in text.split() if any(c.isalnum() for c in word)]


@lru_cache(maxsize=2)
def text_parts(source: str) -> TextParts:
    """Read a source: Rotten Tomatoes (8 : 1 : 1, a fixed split), one file (split alike), or a
    folder with three.

    A folder that ``Prepared.save`` wrote is opened as it is.
    """
    from attnlab.data import Vocabulary, index_texts

    if is_prepared(source):
        train, valid, test, sentences, content = open_prepared(source)
        return TextParts(train, valid, test, sentences, (0, 0, 0), (0.0, 0.0, 0.0), content)
    texts = _texts(source)
    vocabulary = Vocabulary.of(texts[0].texts, tokenizer=plain_words)
    indexed = [
        index_texts(
            part.texts, part.labels, vocabulary, classes=texts[0].classes, tokenizer=plain_words
        )
        for part in texts
    ]
    train, valid, test = (one.corpus for one in indexed)
    digest = hashlib.sha256(
        "".join(corpus.content_hash for corpus in (train, valid, test)).encode()
    ).hexdigest()
    return TextParts(
        train,
        valid,
        test,
        sentences=tuple(texts[0].texts[i] for i in indexed[0].kept),
        dropped=(len(indexed[0].wordless), len(indexed[1].wordless), len(indexed[2].wordless)),
        unknown=(indexed[0].unknown_share, indexed[1].unknown_share, indexed[2].unknown_share),
        hash=digest[:16],
    )


def _texts(source: str) -> tuple[Texts, Texts, Texts]:
    from attnlab.data import load_movie_reviews, read_texts, split_texts

    if source == ROTTEN_TOMATOES:
        whole = load_movie_reviews(source)
    elif Path(source).is_dir():
        files = {part: _part_file(Path(source), part) for part in _PARTS}
        train = read_texts(files["train"])
        valid, test = (read_texts(files[part], classes=train.classes) for part in ("valid", "test"))
        return train, valid, test
    else:
        whole = read_texts(source)
    train, valid, test = split_texts(whole, fractions=(0.8, 0.1, 0.1), seed=_SPLIT_SEED)
    return train, valid, test


def _part_file(folder: Path, part: str) -> Path:
    """The one file of a folder whose name says that it is this part."""
    names = sorted(
        file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")
    )
    found = [
        file for file in names if set(re.split(r"[._\-\s]", file.name.lower())) & set(_PARTS[part])
    ]
    if len(found) != 1:
        shown = ", ".join(file.name for file in (found or names)[:8]) or "nothing"
        raise AttnlabError(
            f"{folder}: expected one file with {' or '.join(map(repr, _PARTS[part]))} in its name "
            "(stsa.binary.train, "
            f"…), found {len(found)}: {shown}"
        )
    return found[0]


def train_text(settings: TextSettings, context: RunContext) -> xr.Dataset:
    """Train once; keep curves over steps and tables of the top words, not every word at every step.

    Of very many sentences curves, pairs and the deletion test look at some (``_text_sample``);
    training sees all.

    - (step): ``loss``, ``accuracy``, ``loss_valid``, ``accuracy_valid``, ``accuracy_test``; means
      over sentences of purity, its null, excess and frequency of the top-attended word
      (``attended_…``) and of the least attended one.
    - ``best_step``: the recorded step of the lowest validation loss; ``query_norm``.
    - (moment: best, final; rank): ``top_word`` and its score, norm, purity, excess, frequency,
      onset, leaning, others; at the best step (rank): ``scaled_norm``, ``predicted_scaled_norm``,
      ``sen_error``, ``sen_error_wrong_query`` and, if asked for, ``sen_error_refined``.
    - ``deletion_…``: the deletion test of the best model on test sentences; ``pair_…``: words that
      compete.
    """
    s = settings
    parts = text_parts(s.source)
    if s.data and s.data != parts.hash:
        raise AttnlabError(
            f"the texts of {s.source!r} are not those that the plan was made for (content "
            f"{parts.hash}, expected "
            f"{s.data}): start again with the changed files"
        )
    corpus, words = _training(s, context.root_seed)
    data, model = _trained(s, corpus, parts, context.root_seed)
    best = int(data.best_step)
    looked, numbers = some_of(corpus, TRAINING)
    found = _joined(
        data.drop_dims("word"),
        _curves(data, looked, words),
        _tables(data, corpus, words, best, s.top),
        _deletion(model, some_of(parts.test, MEASURED)[0], s.seed),
        _pairs(data, looked, words, lambda n: parts.sentences[int(numbers[n])], s),
        _kept(data, model, parts.test, s) if s.keep else xr.Dataset(),
    )
    about = {"content": parts.hash, "dropped": list(parts.dropped), "unknown": list(parts.unknown)}
    return found.assign_attrs(data.attrs | about)


def _joined(*parts: xr.Dataset) -> xr.Dataset:
    return xr.merge(parts, compat="identical", join="exact", combine_attrs="drop")


def _training(s: TextSettings, root_seed: int) -> tuple[Corpus, xr.Dataset]:
    """The training corpus and what is known of its words' purity."""
    return _labelled(s.source, s.permutations, (root_seed, s.seed) if s.permuted else None)


@lru_cache(maxsize=2)
def _labelled(
    source: str, permutations: int, permuted: tuple[int, int] | None
) -> tuple[Corpus, xr.Dataset]:
    from attnlab.dynamics import excess_purity

    corpus = text_parts(source).train
    if permuted is not None:
        labels = np.random.default_rng(permuted).permutation(corpus.labels)
        corpus = dataclasses.replace(corpus, labels=labels)
    return corpus, excess_purity(
        corpus, seed=0, permutations=permutations_for(corpus, permutations)
    )


def _trained(
    s: TextSettings, corpus: Corpus, parts: TextParts, root_seed: int
) -> tuple[xr.Dataset, WordAttention]:
    """What was recorded of all words, and the model of the best validation loss."""
    from attnlab.dynamics import Surroundings
    from attnlab.models import WordAttentionConfig
    from attnlab.training import (
        Accuracy,
        EarlyStopping,
        Every,
        GradientDescent,
        Loss,
        Norms,
        Scores,
        train,
    )

    config = WordAttentionConfig.for_corpus(
        corpus,
        head=s.head,
        embedding_dim=s.embedding_dim,
        key_dim=s.key_dim,
        embedding_std=s.embedding_std,
        query_std=s.query_std,
    )
    measured = {
        name: some_of(part, MEASURED)[0]
        for name, part in (("valid", parts.valid), ("test", parts.test))
    }
    own = None
    if s.batch_size is not None and len(corpus) > MEASURED:
        own, measured["train"] = "train", some_of(corpus, MEASURED)[0]
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
    from attnlab.dynamics import attended

    told = words[["purity", "null", "excess", "frequency"]]
    curves = []
    for prefix, least in (("attended", False), ("least_attended", True)):
        one = attended(data.score, corpus, told, least=least)
        curves.append(one.rename({name: f"{prefix}_{name}" for name in one.data_vars}))
    return _joined(*curves)


def _tables(data: xr.Dataset, corpus: Corpus, words: xr.Dataset, best: int, top: int) -> xr.Dataset:
    """Words of the highest score at the best and at the last step, and the relation of the former."""
    from attnlab.dynamics import text_sen, word_table

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
    from attnlab.dynamics import deletion_test

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
    from attnlab.dynamics import competition, telling_pairs

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
    import jax
    import jax.numpy as jnp

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
    from attnlab.models import Incidence, pooled_logits
    from attnlab.training import Measure

    few = Incidence.of(test.subset(shown_sentences(test, count)), "float32")
    return Measure("shown_logits", lambda model: pooled_logits(model, few), ("sentence", "class"))
