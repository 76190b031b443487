"""How many labels does each kind of pooling need on texts? One student, one seed, several sizes."""

from __future__ import annotations

from functools import lru_cache

import jax
import numpy as np
import xarray as xr
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from attnlab.data import Corpus, text_parts, thinning
from attnlab.papers.liu2021.pooling_runs import curve_order, pool_curve
from attnlab.papers.liu2021.pooling_settings import POOLING
from attnlab.papers.liu2021.text_settings import STRENGTHS, TextStudentSettings
from attnlab.sweeps import RunContext
from attnlab.training import Recipe


def fit_text_student(s: TextStudentSettings, context: RunContext) -> xr.Dataset:
    """Test ``accuracy`` by ``size``, with what was chosen on validation sentences."""
    train, valid, test = _corpora(s.folder, s.data, context.root_seed)
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    if int(train.lengths.max()) > thinning.LONGEST:
        # Of very many texts, only those that are used are shortened.
        used = train.subset(curve_order(key, len(train))[: max(s.sizes)])
        train = thinning.shortened(used, thinning.LONGEST, np.random.default_rng(s.seed))
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
    """Training texts, and those of validation and test: not too many, and not too long."""
    parts = text_parts(folder)
    parts.require(data, folder)
    rng = np.random.default_rng(root_seed)
    checked = []
    for part in (parts.valid, parts.test):
        few, _ = thinning.some_of(part, thinning.LOOKED_AT)
        checked.append(thinning.shortened(few, thinning.LONGEST, rng))
    return parts.train, *checked


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
    shape = (len(corpus), len(corpus.vocabulary))
    return csr_matrix((corpus.counts.astype(np.float64), corpus.words, corpus.offsets), shape=shape)
