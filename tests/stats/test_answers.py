"""Scores of answers against scikit-learn's, their influence against differences, and coverage."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score, f1_score

from attnlab import AttnlabError
from attnlab.stats import SCORES, answer_scores


def drawn(seed, items=300, runs=4, classes=3):
    """Truths of unequal classes, and answers that are right in 60 to 80 % of the cases."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(classes, items, p=np.array([0.6, 0.3, 0.1])[:classes])
    hard = rng.random(items) < 0.4  # items that all runs find hard
    right = rng.random((runs, items)) < np.where(hard, 0.4, 0.9) - 0.1 * rng.random((runs, 1))
    said = np.where(right, truth, rng.integers(classes, size=(runs, items)))
    return said, truth


def test_scores_are_scikit_learns():
    said, truth = drawn(0)
    found = answer_scores(said, truth, 3)
    oracles = (
        accuracy_score,
        balanced_accuracy_score,
        lambda a, b: f1_score(a, b, average="macro"),
    )
    assert tuple(found) == SCORES
    for score, oracle in zip(found.values(), oracles, strict=True):
        np.testing.assert_allclose(score.runs, [oracle(truth, one) for one in said], rtol=1e-12)


def test_influence_is_the_derivative_by_the_weight_of_an_item():
    said, truth = drawn(1, items=60)
    found = answer_scores(said, truth, 3)
    copies = 400  # an item that counts 1/400 more
    for item in (0, 7, 31):
        more = np.concatenate([np.tile(np.arange(60), copies), [item]])
        moved = answer_scores(said[:, more], truth[more], 3)
        for name in SCORES:
            slope = (moved[name].runs.mean() - found[name].runs.mean()) * copies * 60
            assert slope == pytest.approx(found[name].influence[item], abs=2e-2)
    for score in found.values():
        assert abs(score.influence.sum()) < 1e-9


@pytest.mark.parametrize("name", SCORES)
def test_intervals_cover_what_other_runs_on_other_items_score(name):
    truth_value = np.mean(
        [answer_scores(*drawn(10_000 + k, items=4000), 3)[name].runs.mean() for k in range(20)]
    )
    covered = 0
    for seed in range(400):
        interval = answer_scores(*drawn(seed), 3)[name].interval()
        covered += interval.low <= truth_value <= interval.high
    assert covered / 400 >= 0.92


def test_paired_differences_are_narrower_and_one_run_has_items_alone():
    said, truth = drawn(2)
    better = np.where(np.arange(300) % 7 == 0, truth, said)
    a, b = (answer_scores(each, truth, 3)["accuracy"] for each in (better, said))
    gain = (a - b).interval()
    assert gain.low > 0
    assert gain.high - gain.low < 0.5 * (a.interval().high - a.interval().low)
    one = answer_scores(np.zeros((1, 300), int), truth, 3)["accuracy"].interval()
    assert one.estimate == pytest.approx(np.mean(truth == 0))
    assert one.low < one.estimate < one.high


def test_answers_must_fit_the_items():
    with pytest.raises(AttnlabError, match="answers of shape"):
        answer_scores(np.zeros((2, 3), int), np.zeros(4, int), 2)
    with pytest.raises(AttnlabError, match="expected numbers below 2"):
        answer_scores(np.zeros((2, 4), int), np.array([0, 1, 2, 0]), 2)
