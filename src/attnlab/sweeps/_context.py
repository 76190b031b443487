"""What a work function knows about its run besides its settings.

A file of its own that imports nothing of attnlab: every work function imports it, so that an edit
here makes all stored runs stale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class RunContext:
    """What a work function gets besides its settings: the plan's root seed, the run's index and its
    hash.
    """

    root_seed: int
    index: int
    hash: str

    def key(self) -> jax.Array:
        """The random key of this run: the root key, folded with the run's hash (its first two
        32-bit words).

        Not with the index: that changes when values are added to a grid, and new runs would then
        get the keys of runs that are kept. A hash is the same in every plan that asks for the run.
        """
        import jax

        key = jax.random.key(self.root_seed)
        for word in (self.hash[:8], self.hash[8:16]):
            key = jax.random.fold_in(key, int(word, 16))
        return key
