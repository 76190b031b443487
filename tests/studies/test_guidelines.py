"""The entropy bound, against the model's and on random rows."""

import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import entropy_bound
from attnlab.runs import RunContext
from attnlab.studies import _compare_entropy as entropy


def test_the_bound_is_the_models_and_is_met_at_the_extremal_row():
    sigma = np.linspace(0.0, 20.0, 50)
    for words in (2, 3, 17):
        bound = np.asarray(entropy_bound(jnp.asarray(sigma), words))
        np.testing.assert_allclose(
            entropy.literal_bound(sigma, words), bound, rtol=1e-9, atol=1e-14
        )
        rows = entropy.extremal_logits(sigma, words)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), sigma, rtol=1e-12, atol=1e-14)
        weights = entropy.softmax(rows)
        np.testing.assert_allclose(
            -np.sum(weights * np.log(weights), axis=1), bound, rtol=1e-9, atol=1e-15
        )


def test_no_row_is_below_the_bound_and_many_are_below_a_wrong_one():
    found = entropy.fit_entropy(entropy.EntropySettings(rows=700), RunContext(0, 0, "0" * 16))
    assert float(found.least) >= -1e-12
    assert float(found.tight) <= 1e-6
    assert float(found.wrong) < -1e-3
    assert set(found.words.values.tolist()) == set(map(float, entropy.WORDS))
    rows = entropy.random_logits(np.random.default_rng(0), 500, 8)
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-12)
    assert np.linalg.norm(rows, axis=1).min() < 0.1
    assert np.linalg.norm(rows, axis=1).max() > 10
    with pytest.raises(AttnlabError, match="at least 7"):
        entropy.EntropySettings(rows=3)


def test_all_rows_are_asked_for_whatever_the_seeds():
    for seeds in (8, 7):
        plan = entropy.ENTROPY.plan("quick", seeds)
        assert sum(run.settings["rows"] for run in plan.runs) >= entropy.ROWS
