"""Where a sweep's results lie: one folder, written so that it is readable at every moment."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab._errors import AttnlabError
from attnlab.runs import _block
from attnlab.runs._files import FolderLock, checksum, is_settled, remove_temporaries, set_aside, write_atomic
from attnlab.runs._plan import Plan
from attnlab.runs._record import (
    Block,
    Failure,
    read_block_label,
    read_failures,
    read_plan,
    write_block_label,
    write_failures,
    write_plan,
)
from attnlab.runs._stack import Stack, merge
from attnlab.runs._work import work_identity

if TYPE_CHECKING:
    import xarray as xr

_LARGE_RUNS, _LARGE_BYTES = 512, 16_000_000
_MERGED_RUNS, _MERGED_BYTES = 1024, 32_000_000


class StoreWarning(UserWarning):
    """A file in a sweep's folder is not what it should be; its runs count as not done."""


def disk_error(folder: Path, error: OSError | str) -> AttnlabError:
    """The one message for a disk that refuses writes."""
    return AttnlabError(
        f"cannot write to {folder} ({error}): all runs that finished before are kept; "
        "free some space or make the folder writable, then start the same command again"
    )


def save_runs(folder: Path, stacks: Iterable[Stack]) -> Block:
    """Write runs as one new block. Any process may; the block counts from the moment its last rename is done."""
    merged = merge(stacks)
    data = _block.pack(merged)
    digest = hashlib.sha256(data).hexdigest()
    hashes = tuple(run_hash for stack in merged for run_hash in stack.hashes)
    block = Block(digest[:24], digest, len(data), hashes)
    # The label first: a label without its block is nothing, a block without a label would be a foreign file.
    write_block_label(folder / "blocks", block)
    write_atomic(folder / "blocks" / f"{block.stem}.zip", data)
    return block


def save_failures(folder: Path, failures: Iterable[Failure]) -> None:
    """Write failures as one new file."""
    write_failures(folder / "failures", failures)


class Store:
    """A sweep's folder: ``plan.json``, ``blocks/*.zip`` with ``*.json`` labels, ``failures/*.json``, ``lock``.

    ``Store.read`` looks only and never changes anything; ``Store.open`` owns the folder until ``close`` (use it in a
    ``with`` statement). A block whose bits are not those that were written is never read: its runs count as not done.
    """

    def __init__(self, folder: Path, plan: Plan, lock: FolderLock | None):
        self.folder, self.plan, self._lock = folder, plan, lock
        self._verified: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self._failures: dict[str, Failure] = {}

    @classmethod
    def read(cls, folder: str | Path) -> Store:
        """Look at a stored sweep."""
        folder = Path(folder)
        if not (folder / "plan.json").is_file():
            raise AttnlabError(f"{folder} holds no sweep: expected a folder with a plan.json; run a plan into it first")
        store = cls(folder, read_plan(folder / "plan.json"), None)
        store._scan()
        return store

    @classmethod
    def open(cls, folder: str | Path, plan: Plan) -> Store:
        """Own the folder for this plan; create it, or go on in it if it holds the same sweep, perhaps with fewer runs.

        The same sweep: the same work function, name and root seed. Every block's checksum is verified; bad files are
        renamed to ``*.bad`` and named in a warning.
        """
        folder = Path(folder)
        lock = FolderLock(folder)
        try:
            for part in (folder, folder / "blocks", folder / "failures"):
                part.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            store = cls(folder, plan, lock)
            store._claim()
            store._scan()
        except OSError as error:
            lock.release()
            raise disk_error(folder, error) from error
        except BaseException:
            lock.release()
            raise
        return store

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the folder back."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def finished(self) -> frozenset[str]:
        """Hashes of all stored runs, also of those that the plan no longer asks for."""
        return frozenset(run_hash for block in self._blocks.values() for run_hash in block.runs)

    @property
    def failures(self) -> dict[str, Failure]:
        """The last failure of each run that failed and is not stored."""
        finished = self.finished
        return {run_hash: failure for run_hash, failure in self._failures.items() if run_hash not in finished}

    def note(self, blocks: Iterable[Block], failures: Iterable[Failure]) -> None:
        """Take notice of what a worker has just written."""
        self._blocks.update((block.stem, block) for block in blocks)
        self._failures.update((failure.hash, failure) for failure in failures)

    def stacks(self, wanted: Iterable[str], chosen: _block.Chosen | None = None) -> Iterator[Stack]:
        """The stored stacks that hold any of the wanted runs; of each only the ``chosen`` variables."""
        left = set(wanted)
        for block in list(self._blocks.values()):
            if left.isdisjoint(block.runs):
                continue
            if not self._path(block).exists():  # another command has merged it into a larger one since we looked
                self._scan()
                yield from self.stacks(left, chosen)
                return
            if not self._is_sound(block):
                self._report([self._path(block)], "run the plan again to compute its runs anew")
                continue
            left.difference_update(block.runs)
            yield from _block.unpack(self._path(block), chosen)

    def run(self, run_hash: str) -> xr.Dataset:
        """One run's data set, exactly as its work function returned it."""
        for stack in self.stacks([run_hash]):
            if run_hash in stack.hashes:
                return stack.dataset(run_hash)
        raise AttnlabError(f"run {run_hash[:12]} is not stored: it failed, or was not computed yet")

    def consolidate(self) -> None:
        """Merge small blocks into larger ones. New first, then old: a crash between leaves harmless duplicates."""
        small = [b for b in self._blocks.values() if len(b.runs) < _LARGE_RUNS and b.size < _LARGE_BYTES]
        for batch in _batches([block for block in small if self._is_sound(block)]):
            stacks = [stack for block in batch for stack in _block.unpack(self._path(block))]
            merged = save_runs(self.folder, stacks)
            for block in batch:
                if block.stem != merged.stem:
                    self._path(block).unlink()
                    self._path(block).with_suffix(".json").unlink()
                    del self._blocks[block.stem]
            self._blocks[merged.stem] = merged
            self._verified.add(merged.stem)
        self._consolidate_failures()

    def _consolidate_failures(self) -> None:
        files = sorted((self.folder / "failures").glob("*.json"))
        if len(files) > 1:
            save_failures(self.folder, self.failures.values())
            for path in files:
                path.unlink()

    def _claim(self) -> None:
        """Check that the folder is this sweep's, and store the plan if it is new or has changed."""
        path = self.folder / "plan.json"
        if path.exists():
            stored = read_plan(path)
            for what in ("work", "name", "root_seed"):
                theirs, ours = getattr(stored, what), getattr(self.plan, what)
                if theirs != ours and (what != "work" or work_identity(theirs) != work_identity(ours)):
                    raise AttnlabError(
                        f"{self.folder} holds another sweep: its {what} is {theirs!r}, this plan's is {ours!r}; "
                        "use another folder"
                    )
            if stored == self.plan:
                return
        write_plan(path, self.plan)

    def _scan(self) -> None:
        """Find out what is stored. Labels are enough for that; only an owner verifies checksums at once."""
        self._blocks.clear()
        bad = []
        blocks = self.folder / "blocks"
        sizes = {entry.name: entry.stat().st_size for entry in os.scandir(blocks)} if blocks.is_dir() else {}
        for name in sorted(name for name in sizes if name.endswith(".zip")):
            path = blocks / name
            block = read_block_label(path.with_suffix(".json"))
            if block is None or sizes[name] != block.size or (self._lock is not None and not self._is_sound(block)):
                bad.append(path)
            else:
                self._blocks[block.stem] = block
        for path in sorted((self.folder / "failures").glob("*.json")):
            records = read_failures(path)
            if records is None:
                bad.append(path)
            else:
                self._failures.update((failure.hash, failure) for failure in records)
        if self._lock is not None:
            self._tidy(sizes)
        self._report(bad, "its runs are computed anew" if self._lock else "run the plan again to compute its runs anew")

    def _tidy(self, names: Iterable[str]) -> None:
        """Remove our own leftovers of killed processes: temporary files, and labels whose block never came."""
        for part in ("blocks", "failures"):
            remove_temporaries(self.folder / part)
        remove_temporaries(self.folder)
        present = set(names)
        for name in present:
            label = self.folder / "blocks" / name
            lonely = name.endswith(".json") and f"{label.stem}.zip" not in present
            if lonely and is_settled(label) and read_block_label(label) is not None:
                label.unlink()

    def _report(self, bad: list[Path], consequence: str) -> None:
        """Set bad files aside if the folder is ours, and say so."""
        if not bad:
            return
        names = []
        for path in bad:
            names.append(set_aside(path).name if self._lock is not None else path.name)
            label = path.with_suffix(".json")
            if self._lock is not None and path.suffix == ".zip" and label.exists():
                set_aside(label)
        warnings.warn(
            f"{self.folder}: {', '.join(names)} is not what attnlab wrote (half-written, damaged or foreign); "
            f"nothing was read from it, {consequence}",
            StoreWarning,
            stacklevel=3,
        )

    def _path(self, block: Block) -> Path:
        return self.folder / "blocks" / f"{block.stem}.zip"

    def _is_sound(self, block: Block) -> bool:
        """Whether the file holds the bits that were written; computed once."""
        if block.stem not in self._verified:
            with suppress(OSError):
                if checksum(self._path(block)) == block.sha256:
                    self._verified.add(block.stem)
        return block.stem in self._verified


def _batches(blocks: list[Block]) -> Iterator[list[Block]]:
    """Groups of at least two small blocks that together make a large one."""
    batch: list[Block] = []
    runs = size = 0
    for block in sorted(blocks, key=lambda block: block.stem):
        if batch and (runs + len(block.runs) > _MERGED_RUNS or size + block.size > _MERGED_BYTES):
            if len(batch) > 1:
                yield batch
            batch, runs, size = [], 0, 0
        batch.append(block)
        runs, size = runs + len(block.runs), size + block.size
    if len(batch) > 1:
        yield batch
