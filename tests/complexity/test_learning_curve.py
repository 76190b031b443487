"""Every fit is called once with its seed's key, and a fit that fails is recorded."""

import jax
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.complexity import learning_curve, needed_samples, on_subsets


def test_seed_k_has_the_same_key_at_every_size_in_every_arm_and_alone():
    def draw(size, key):
        return float(jax.random.uniform(key))

    first = learning_curve(draw, [4, 8], seeds=3, root_seed=7).score
    assert (first.isel(size=0).values == first.isel(size=1).values).all()
    assert len(set(first.isel(size=0).values.tolist())) == 3
    alone = learning_curve(draw, [8], seeds=[2], root_seed=7).score
    assert float(alone.sel(seed=2, size=8)) == float(first.sel(seed=2, size=8))
    expected = jax.random.uniform(jax.random.fold_in(jax.random.key(7), 2))
    assert float(alone.values[0, 0]) == float(expected)


def test_failures_and_odd_scores_are_recorded_and_never_fatal():
    def fit(size, key):
        if size == 8:
            raise RuntimeError("no memory")
        return {"error": np.nan if size == 16 else 1 / size, "accuracy": 0.5}

    told = []
    data = learning_curve(fit, [4, 8, 16], seeds=2, progress=told.append)
    assert data.status.values[0].tolist() == ["finished", "failed", "not finite"]
    assert data.reason.values[1].tolist() == ["", "RuntimeError: no memory", "error is not finite"]
    np.testing.assert_array_equal(data.error.values[0], [0.25, np.nan, np.nan])
    np.testing.assert_array_equal(data.accuracy.values[0], [0.5, np.nan, 0.5])
    assert data.attrs["failed"] == 2
    assert [event.done for event in told] == [1, 2, 3, 4, 5, 6]
    assert str(told[1]) == "fit 2 of 6: seed 0, 8 samples, failed (RuntimeError: no memory)"


def test_when_everything_fails_there_is_still_a_data_set():
    data = learning_curve(lambda size, key: {}, [4], seeds=1)
    assert np.isnan(data.score.values).all()
    assert "fit returned the names []" in data.reason.values[0, 0]
    with pytest.raises(AttnlabError, match="no fit has a score"):
        needed_samples(data.score, 0.1)


def test_ctrl_c_still_ends():
    def fit(size, key):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learning_curve(fit, [4], seeds=1)


def test_subsets_are_nested_and_drawn_without_replacement():
    seen = {}

    def fit(subset, key):
        seen[len(subset)] = subset
        return 0.0

    data = learning_curve(on_subsets(fit, 20), [5, 10, 20, 21], seeds=1)
    assert set(seen[5]) < set(seen[10]) < set(seen[20]) == set(range(20))
    assert data.status.values[0].tolist() == ["finished"] * 3 + ["failed"]


@pytest.mark.parametrize(
    ("sizes", "seeds", "words"),
    [
        ([], 2, "sizes"),
        ([4, 2], 2, "increasing"),
        ([0, 2], 2, "positive"),
        ([4], 0, "seeds"),
        ([4], [1, 1], "distinct"),
    ],
)
def test_grids_that_are_none_are_refused(sizes, seeds, words):
    with pytest.raises(AttnlabError, match=words):
        learning_curve(lambda size, key: 0.0, sizes, seeds=seeds)
