"""The entropy bound: against the models' own, at the extremal row, and what refutes the claim."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.models import entropy_bound
from attnlab.papers.beyond.entropy_bound import ROWS, Rows, claim
from attnlab.papers.beyond.runs import (
    extremal_logits,
    literal_bound,
    measure_entropy,
    random_logits,
    softmax,
)
from attnlab.papers.beyond.settings import WORDS, EntropySettings
from attnlab.sweeps import RunContext

(SWEEP,) = claim.sweeps


@pytest.fixture(scope="module")
def found() -> xr.Dataset:
    return measure_entropy(EntropySettings(rows=700), RunContext(0, 0, "0" * 16))


def test_the_bound_is_the_models_and_is_met_at_the_extremal_row():
    sigma = np.linspace(0.0, 20.0, 50)
    for words in (2, 3, 17):
        bound = np.asarray(entropy_bound(jnp.asarray(sigma), words))
        np.testing.assert_allclose(literal_bound(sigma, words), bound, rtol=1e-9, atol=1e-14)
        rows = extremal_logits(sigma, words)
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), sigma, rtol=1e-12, atol=1e-14)
        weights = softmax(rows)
        entropy = -np.sum(weights * np.log(weights), axis=1)
        np.testing.assert_allclose(entropy, bound, rtol=1e-9, atol=1e-15)


def test_no_row_is_below_the_bound_and_many_are_below_a_wrong_one(found):
    assert float(found.least) >= -1e-12
    assert float(found.tight) <= 1e-6
    assert float(found.wrong) < -1e-3
    assert set(found.words.values.tolist()) == set(map(float, WORDS))


def test_random_rows_are_centred_and_of_all_norms():
    rows = random_logits(np.random.default_rng(0), 500, 8)
    np.testing.assert_allclose(rows.mean(axis=1), 0, atol=1e-12)
    assert np.linalg.norm(rows, axis=1).min() < 0.1
    assert np.linalg.norm(rows, axis=1).max() > 10


def test_too_few_rows_are_refused():
    with pytest.raises(AttnlabError, match="at least 7"):
        EntropySettings(rows=3)


@pytest.mark.parametrize("seeds", [8, 7])
def test_all_rows_are_asked_for_whatever_the_seeds(seeds):
    runs = SWEEP.plan("quick", seeds).runs
    assert sum(run.settings["rows"] for run in runs) >= ROWS


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "holds"),
        ({Rows.least: -1e-3}, "fails"),
        ({Rows.tight: 1e-3}, "fails"),
        ({Rows.wrong: 0.0}, "inconclusive"),
    ],
)
def test_one_row_below_the_bound_refutes_it(found, changed, verdict):
    arm = found.assign(changed).expand_dims(seed=np.arange(8))
    assert claim.judge(SWEEP.measured({"rows": arm}))["verdict"] == verdict
