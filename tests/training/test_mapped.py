"""Training on a corpus that stays on disk: the same bits as in memory, without a copy."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from attnlab import train
from attnlab.models import WordAttentionConfig
from attnlab.tasks import Corpus, TopicTask
from attnlab.training import Accuracy, Adam, Attention, EarlyStopping, Every, GradientDescent, Loss, Norms, Scores
from attnlab.training._drive import run_keys
from attnlab.training._mapped import MappedObjective
from attnlab.training._objective import Frame

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
    asked = {
        "steps": 60, "seeds": 2, "batch_size": 32, "record": RECORD, "when": Every(20), "dtype": dtype,
        "optimizer": optimizer, "splits": {"valid": CORPUS.subset(np.arange(200))},
        "stop": EarlyStopping("valid", 50),
    }  # fmt: skip
    here, there = train(config, CORPUS, **asked), train(config, mapped, **asked)
    assert (here.data.attrs["sentences"], there.data.attrs["sentences"]) == ("in memory", "read from disk")
    for name in ("score", "norm", "loss_valid", "accuracy_valid"):
        np.testing.assert_array_equal(here.data[name], there.data[name])
    close = {"rtol": 1e-12, "atol": 1e-15} if dtype == "float64" else {"rtol": 2e-6, "atol": 1e-8}
    np.testing.assert_allclose(here.data.loss, there.data.loss, **close)
    assert float(there.data.loss[0, -1]) < float(there.data.loss[0, 0])


def test_the_loss_on_all_sentences_is_summed_over_pieces(monkeypatch):
    """Also where the last piece is not full, and sentences differ in length."""
    uneven = Corpus.from_tokens([list("abcab"[: 1 + k % 5]) for k in range(47)], labels=[k % 2 for k in range(47)])
    config = WordAttentionConfig.for_corpus(uneven, head="linear", embedding_std=0.5, key_std=0.5)
    monkeypatch.setattr("attnlab.training._mapped._BLOCK", 10)
    frame = Frame.of(config.init(run_keys(0, 0)[0]), reduced=True)
    pieces = float(MappedObjective.of(uneven, 4).loss(frame, frame.initial()))
    assert pieces == pytest.approx(float(train(config, uneven, steps=0, record=(Loss(),)).data.loss[0, 0]), rel=1e-12)


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
