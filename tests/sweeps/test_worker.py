"""What a worker process does beside computing runs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.sweeps.executors import _worker_main


def test_a_worker_that_grew_drops_compiled_programs(monkeypatch: pytest.MonkeyPatch):
    memory = _worker_main._Memory()
    traced = []

    @jax.jit
    def double(x: jax.Array) -> jax.Array:
        traced.append(x)  # runs once for each program that is compiled
        return 2 * x

    double(jnp.ones(3))
    memory.limit()
    double(jnp.ones(3))
    assert len(traced) == 1, "dropped although nothing has come"

    held = np.ones(_worker_main._GROWTH // 8 + 1)  # ones, not zeros: pages that are written count
    memory.limit()
    assert double(jnp.ones(3))[0] == 2
    assert len(traced) == 2, "kept although much has come"

    memory.limit()
    double(jnp.ones(3))
    assert len(traced) == 2, "dropped again although nothing has come since"
    del held

    monkeypatch.setattr(_worker_main, "_resident_bytes", lambda: 0)
    _worker_main._Memory().limit()
    double(jnp.ones(3))
    assert len(traced) == 2, "dropped where the system does not say how much is held"
