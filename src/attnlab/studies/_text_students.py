"""How many labels does each kind of pooling need on a user's texts? One student, one seed, several
sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.studies._pooling import POOLING, curve_order, pool_curve
from attnlab.studies._text import text_parts
from attnlab.studies._text_sample import LONGEST, shortened
from attnlab.sweeps import RunContext

if TYPE_CHECKING:
    from attnlab.data import Corpus

WORK = "attnlab.studies._text_students:fit_text_student"
TF_IDF = "tf-idf"
TEXT_STUDENTS = ("attention-pooling", "mean-pooling", TF_IDF)
# So near to each other because the number of steps is fixed: a step size is also how early a fit
# stops, and a grid by threes misses the best by more than the two kinds of pooling differ.
STEP_SIZES = (0.001, 0.0017, 0.0028, 0.0046, 0.0077, 0.013, 0.022, 0.036, 0.06, 0.1)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LOOKED_AT = 4000  # validation and test sentences that a curve looks at, at most


@dataclass(frozen=True)
class StudentSettings:
    """One student on prepared texts at several numbers of labels.

    - ``folder``, ``data``: a source as ``text_parts`` takes it, mostly what ``Prepared.save``
      wrote, and its hash.
    - ``seed`` draws the order of the labels, the start and the minibatches, the same for every
      student; ``arm`` is a label and nothing else. ``student``: one of ``TEXT_STUDENTS``.
    - ``step_sizes``, ``weight_decays``: tried for both kinds of pooling at every size;
      ``strengths`` (C) for logistic regression. What is least in loss on validation sentences is
      kept.
    """

    arm: str = ""
    seed: int = 0
    student: str = "attention-pooling"
    folder: str = ""
    data: str = ""
    sizes: tuple[int, ...] = ()
    steps: int = 600
    embedding_dim: int = 10
    step_sizes: tuple[float, ...] = STEP_SIZES
    weight_decays: tuple[float, ...] = (0.0,)
    strengths: tuple[float, ...] = STRENGTHS

    def __post_init__(self):
        if self.student not in TEXT_STUDENTS:
            raise AttnlabError(
                f"student={self.student!r}: expected one of {', '.join(TEXT_STUDENTS)}"
            )


def fit_text_student(s: StudentSettings, context: RunContext) -> xr.Dataset:
    """Test ``accuracy`` by ``size``, with what was chosen on validation sentences."""
    import jax

    from attnlab.training import Recipe

    train, valid, test = _corpora(s.folder, s.data, context.root_seed)
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    if (
        int(train.lengths.max()) > LONGEST
    ):  # of very many texts, only those that are used are shortened
        used = train.subset(curve_order(key, len(train))[: max(s.sizes)])
        train = shortened(used, LONGEST, np.random.default_rng(s.seed))
    if s.student in POOLING:
        found = pool_curve(
            train,
            valid,
            test,
            s.sizes,
            student=s.student,
            key=key,
            recipe=Recipe(s.steps),
            step_sizes=s.step_sizes,
            weight_decays=s.weight_decays,
            embedding_dim=s.embedding_dim,
        )
        return found[
            ["accuracy", "valid_loss", "train_loss", "step_size", "weight_decay", "settling"]
        ]
    order = curve_order(key, len(train))[: max(s.sizes)]
    return tf_idf_curve(train.subset(order), valid, test, s.sizes, s.strengths)


@lru_cache(maxsize=1)
def _corpora(folder: str, data: str, root_seed: int) -> tuple[Corpus, Corpus, Corpus]:
    parts = text_parts(folder)
    if parts.hash != data:
        raise AttnlabError(
            f"{folder} holds texts with the content {parts.hash}, expected {data}: start again"
        )
    rng, few = (
        np.random.default_rng(root_seed),
        (_some(part, root_seed) for part in (parts.valid, parts.test)),
    )
    valid, test = (shortened(part, LONGEST, rng) for part in few)
    return parts.train, valid, test


def _some(corpus: Corpus, seed: int) -> Corpus:
    if len(corpus) <= LOOKED_AT:
        return corpus
    return corpus.subset(np.sort(np.random.default_rng(seed).permutation(len(corpus))[:LOOKED_AT]))


def tf_idf_curve(
    train: Corpus,
    valid: Corpus,
    test: Corpus,
    sizes: tuple[int, ...],
    strengths: tuple[float, ...] = STRENGTHS,
) -> xr.Dataset:
    """TF-IDF with logistic regression on the first n training sentences; C by the least loss on
    validation sentences.

    Where the first n sentences are all of one class, that class is the answer.

    >>> from attnlab.data import Corpus
    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]] * 20, labels=[1, 0] * 20)
    >>> tf_idf_curve(corpus, corpus, corpus, (1, 40)).accuracy.values.tolist()
    [0.5, 1.0]
    """
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    rows = []
    for n in sizes:
        part = train.subset(np.arange(n))
        seen = np.unique(part.labels)
        if len(seen) == 1:
            rows.append((float((test.labels == seen[0]).mean()), np.nan, np.nan))
            continue
        weigh = TfidfTransformer(sublinear_tf=True).fit(_counts(part))
        known = valid.subset(np.isin(valid.labels, seen))
        x, x_valid, x_test = (weigh.transform(_counts(each)) for each in (part, known, test))
        best = (np.inf, np.nan, np.nan)
        for strength in strengths:
            model = LogisticRegression(C=strength, max_iter=1000).fit(x, part.labels)
            loss = log_loss(known.labels, model.predict_proba(x_valid), labels=model.classes_)
            if loss < best[0]:
                best = (loss, float(model.score(x_test, test.labels)), strength)
        rows.append((best[1], best[0], best[2]))
    accuracy, loss, strength = np.array(rows).T
    columns = {"accuracy": accuracy, "valid_loss": loss, "strength": strength}
    return xr.Dataset(
        {name: ("size", values) for name, values in columns.items()}, {"size": list(sizes)}
    )


def _counts(corpus: Corpus):
    """How often each word occurs in each sentence, sparse."""
    from scipy.sparse import csr_matrix

    shape = (len(corpus), len(corpus.vocabulary))
    return csr_matrix((corpus.counts.astype(np.float64), corpus.words, corpus.offsets), shape=shape)
