"""A small study: one model has one accuracy, in the learning curves, in the ranking and in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from attnlab.lab import Record
from attnlab.papers.liu2021.word_runs import fit_words
from attnlab.papers.liu2021.word_settings import POOLING, WordSettings, on_texts
from attnlab.questions.texts import Study, StudySettings, study_texts
from attnlab.questions.texts._tables import Curves, Scores, Tried
from attnlab.sweeps import RunContext

pytestmark = pytest.mark.slow

SMALL = {
    "seeds": 2,
    "sizes": (24, 96),
    "fit_steps": 60,
    "training_seeds": 2,
    "training_steps": 96,
    "embedding_dim": 8,
}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Record]:
    """Texts in which one word of six tells the label, and one in ten has the wrong label."""
    draw = np.random.default_rng(0)
    texts, labels = [], []
    for k in range(160):
        words = [f"w{word}" for word in draw.integers(40, size=5)]
        texts.append(" ".join([*words, ("good", "bad")[k % 2]]))
        labels.append((k + (k % 10 == 3)) % 2)
    folder = tmp_path_factory.mktemp("study")
    return folder, study_texts(texts, folder, labels=labels, processes=0, progress=False, **SMALL)


def test_the_ranking_has_the_accuracies_of_the_learning_curves(study: tuple[Path, Record]):
    _, record = study
    curves = Curves.accuracy(record.data).isel(size=-1)
    ranking, said = Tried.of(record.data), record.content["verdicts"]
    for student, variant in POOLING.items():
        shown = float(curves.sel(student=student).mean("seed"))
        assert float(ranking[Tried.value].sel(student=variant)) == pytest.approx(shown, abs=1e-6)
        row = Scores.value(record.data).sel(student=student, score="accuracy")
        assert float(row) == pytest.approx(shown, abs=1e-6)
        assert said["pays"]["accuracy"][student] == pytest.approx(said["try"]["accuracy"][variant])
    assert int(ranking.attrs["size"]) == 96


def test_other_variants_are_fitted_as_the_students_are(study: tuple[Path, Record]):
    """Against fits by themselves, with the defaults of texts; softmax and uniform had no other."""
    folder, record = study
    (place,) = (folder / "corpus").iterdir()
    common = on_texts(str(place), record.content["content"]) | {"sizes": (96,), "steps": 60}
    for variant in ("softmax", "sparsemax"):
        alone = [
            float(
                fit_words(
                    WordSettings(seed=k, student=variant, **common), RunContext(0, 0, "")
                ).accuracy[0]
            )
            for k in range(2)
        ]
        accuracy = record.content["verdicts"]["try"]["accuracy"][variant]
        assert accuracy == pytest.approx(float(np.mean(alone)))
    swept = [path.name for path in (folder / "runs").iterdir()]
    assert sum(name.startswith("variants") for name in swept) == 1


def test_caps_are_told_once_for_curves_and_variants(study: tuple[Path, Record]):
    _, record = study
    told = {
        (one["figure"], one["what"]): one["used"] for one in record.content["reading"]["sampled"]
    }
    assert told == {("learning curves, what to try", "labels"): 96}
    assert {section.id for section in Study().sections(record)} >= {"pays", "try"}
    assert StudySettings(files=("a.csv",)).tried == (
        "softmax",
        "softmax:0.25",
        "sparsemax",
        "uniform",
    )
