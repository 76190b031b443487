"""Training on a corpus that stays on disk: the same bits as in memory, without a copy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from attnlab import train
from attnlab.data import Corpus, TopicTask
from attnlab.models import WordAttentionConfig
from attnlab.training import (
    Accuracy,
    Adam,
    Attention,
    EarlyStopping,
    Every,
    GradientDescent,
    Loss,
    Norms,
    Scores,
)
from attnlab.training._drive import run_keys
from attnlab.training._mapped import MappedObjective
from attnlab.training._objective import Capacity, Frame

pytestmark = pytest.mark.slow

TASK = TopicTask(topics=3, topic_words=2, dictionary=60, noise_words=5)
CORPUS = TASK.sample(1200, key=jax.random.key(3))
RECORD = (Loss(), Loss("valid"), Accuracy("valid"), Scores(), Norms())


@pytest.fixture(scope="module")
def mapped(tmp_path_factory) -> Corpus:
    return Corpus.open(CORPUS.save(tmp_path_factory.mktemp("corpus") / "train"))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("optimizer", [GradientDescent(0.5), Adam(0.05)])
def test_runs_are_those_of_the_corpus_in_memory(mapped, dtype, optimizer):
    config = WordAttentionConfig.for_corpus(CORPUS, head="linear", query_norm=1.0)
    asked: dict[str, Any] = {
        "steps": 60,
        "seeds": 2,
        "batch_size": 32,
        "record": RECORD,
        "when": Every(20),
        "dtype": dtype,
        "optimizer": optimizer,
        "splits": {"valid": CORPUS.subset(np.arange(200))},
        "stop": EarlyStopping("valid", 50),
    }
    here, there = train(config, CORPUS, **asked), train(config, mapped, **asked)
    assert (here.data.attrs["sentences"], there.data.attrs["sentences"]) == (
        "in memory",
        "read from disk",
    )
    for name in ("score", "norm", "loss_valid", "accuracy_valid"):
        np.testing.assert_array_equal(here.data[name], there.data[name])
    rtol, atol = (1e-12, 1e-15) if dtype == "float64" else (2e-6, 1e-8)
    np.testing.assert_allclose(here.data.loss, there.data.loss, rtol=rtol, atol=atol)
    assert float(there.data.loss[0, -1]) < float(there.data.loss[0, 0])


def test_the_loss_on_all_sentences_is_summed_over_pieces(monkeypatch):
    """Also where the last piece is not full, and sentences differ in length."""
    uneven = Corpus.from_tokens(
        [list("abcab"[: 1 + k % 5]) for k in range(47)], labels=[k % 2 for k in range(47)]
    )
    config = WordAttentionConfig.for_corpus(uneven, head="linear", embedding_std=0.5, key_std=0.5)
    monkeypatch.setattr("attnlab.training._mapped._BLOCK", 10)
    frame = Frame.of(config.init(run_keys(0, 0)[0]), reduced=True)
    pieces = float(MappedObjective.of(uneven, 4).loss(frame, frame.initial()))
    assert pieces == pytest.approx(
        float(train(config, uneven, steps=0, record=(Loss(),)).data.loss[0, 0]), rel=1e-12
    )


def test_no_array_is_copied(mapped):
    objective = MappedObjective.of(mapped, 32)
    for name in ("offsets", "words", "counts", "labels"):
        address = getattr(mapped, name).__array_interface__["data"][0]
        assert getattr(objective, name).unsafe_buffer_pointer() == address


def test_a_probe_of_all_sentences_takes_them_into_memory(mapped):
    config = WordAttentionConfig.for_corpus(CORPUS)
    run = train(config, mapped, steps=2, batch_size=32, record=(Attention(),))
    assert run.data.attrs["sentences"] == "in memory"
    assert train(config, mapped, steps=2, record=(Loss(),)).data.attrs["sentences"] == "in memory"


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_minibatch_beyond_its_room_is_computed_with_more(tmp_path, monkeypatch, on_disk):
    """Nothing is cut off: the run goes on in the program that has room for the longest sentences of
    all.
    """
    uneven = Corpus.from_tokens(
        [list("abcdefgh"[: 1 + 7 * (k % 10 == 0)]) for k in range(200)],
        labels=[k % 2 for k in range(200)],
    )
    config = WordAttentionConfig.for_corpus(uneven, head="linear", embedding_std=0.5)
    asked: dict[str, Any] = {
        "steps": 40,
        "batch_size": 8,
        "record": (Scores(), Loss()),
        "when": Every(10),
    }
    expected = train(config, uneven, **asked)
    data = Corpus.open(uneven.save(tmp_path / "corpus")) if on_disk else uneven
    for likely in (9, 30):  # exceeded at once, and later
        monkeypatch.setattr(Capacity, "of", lambda *_, likely=likely: Capacity(likely, 64))
        found = train(config, data, **asked)
        np.testing.assert_allclose(found.data.score, expected.data.score, atol=1e-14)
        np.testing.assert_allclose(found.data.loss, expected.data.loss, atol=1e-14)


def test_the_room_is_what_minibatches_need():
    """Of 2000 minibatches none has more entries, and the room is far below that of the longest
    sentences.
    """
    rng = np.random.default_rng(0)
    lengths = np.minimum(rng.geometric(0.05, 3000), 200)
    corpus = Corpus.from_pairs(
        np.repeat(np.arange(3000), lengths),
        np.concatenate([np.arange(n) for n in lengths]),
        labels=rng.integers(0, 2, 3000),
        vocabulary=[f"w{k}" for k in range(200)],
        classes=["a", "b"],
    )
    capacity = Capacity.of(corpus, 256)
    entries = [int(lengths[rng.permutation(3000)[:256]].sum()) for _ in range(2000)]
    assert max(entries) < capacity.likely < 0.7 * capacity.most
