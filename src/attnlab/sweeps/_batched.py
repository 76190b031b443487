"""Work functions that compute several runs at once.

A file of its own that imports little of attnlab: work functions import it, so that an edit here
makes their stored runs stale.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.sweeps._context import RunContext

if TYPE_CHECKING:
    import jax

BatchT = TypeVar("BatchT", bound=Callable[[list[Any], list[Any]], Sequence[Any]])


def batched(size: int) -> Callable[[BatchT], BatchT]:
    """Declare that a work function computes ``size`` runs in one call: ``work(settings, contexts)``
    → one data set for each run.

    Both arguments are lists of *always* ``size`` entries. The runs of one call differ only in
    fields whose name ends in ``seed``. Where fewer runs are left, the last one is repeated and the
    surplus results are dropped. One program, compiled for ``size`` runs, thus makes every result:
    if it treats its entries alike and independently, as ``jax.vmap`` does, a run alone equals the
    run in any group, bit for bit.

    >>> @batched(2)
    ... def work(settings: list[Power], contexts: list[RunContext]) -> list[xr.Dataset]:
    ...     return [xr.Dataset({"power": one.number**one.exponent}) for one in settings]
    """
    if type(size) is not int or size < 1:
        raise AttnlabError(
            f"batched({size!r}): expected how many runs one call computes, a whole number ≥ 1; "
            "write @batched(64) above the work function"
        )

    def declare(work: BatchT) -> BatchT:
        vars(work)["batch"] = size
        return work

    return declare


def keys_of(contexts: Sequence[RunContext]) -> jax.Array:
    """The random keys of several runs, shape (runs,): ``context.key()`` of each, made by one program.

    Stacking them one by one takes as long as training a very small model.

    >>> contexts = [RunContext(0, index, f"{index:064x}") for index in range(3)]
    >>> keys_of(contexts).shape, bool(keys_of(contexts)[1] == contexts[1].key())
    ((3,), True)
    """
    (root_seed,) = {context.root_seed for context in contexts}
    words = [[int(c.hash[:8], 16), int(c.hash[8:16], 16)] for c in contexts]
    return _folded()(root_seed, np.array(words, np.uint32))


@functools.cache
def _folded() -> Callable[..., jax.Array]:
    import jax

    def key(root_seed: jax.Array, words: jax.Array) -> jax.Array:
        root = jax.random.key(root_seed)
        return jax.random.fold_in(jax.random.fold_in(root, words[0]), words[1])

    return jax.jit(jax.vmap(key, in_axes=(None, 0)))
