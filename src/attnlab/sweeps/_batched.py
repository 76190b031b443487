"""Declaring that a work function computes several runs at once.

A file of its own that imports little of attnlab: work functions import it, so that an edit here
makes their stored runs stale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from attnlab._errors import AttnlabError

BatchT = TypeVar("BatchT", bound=Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]])


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
