"""What a worker process does beside computing runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.sweeps.executors import _worker_main


def test_a_worker_that_grew_drops_compiled_programs(monkeypatch: pytest.MonkeyPatch):
    memory = _worker_main._Memory()
    double = jax.jit(lambda x: 2 * x)
    double(jnp.ones(3))
    memory.limit()
    assert double._cache_size() == 1, "dropped although nothing has come"

    held = np.ones(_worker_main._GROWTH // 8 + 1)  # ones, not zeros: pages that are written count
    memory.limit()
    assert double._cache_size() == 0
    assert double(jnp.ones(3))[0] == 2

    memory.limit()
    assert double._cache_size() == 1, "dropped again although nothing has come since"
    del held

    monkeypatch.setattr(_worker_main, "_resident_bytes", lambda: 0)
    _worker_main._Memory().limit()
    assert double._cache_size() == 1, "dropped where the system does not say how much is held"
