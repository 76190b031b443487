"""The store of a sweep: one folder, written so that it is readable at every moment."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attnlab._errors import AttnlabError
from attnlab._places import (
    checksum,
    disk_error,
    is_file,
    is_remote,
    is_settled,
    listed,
    make_folder,
    place,
    read_bytes,
    reading,
    remove,
    remove_temporaries,
    set_aside,
    write_atomically,
)
from attnlab.sweeps._plan import Plan
from attnlab.sweeps._work import load_work, work_identity
from attnlab.sweeps.store import _block
from attnlab.sweeps.store._lock import FolderLock, UrlLock, lock_of
from attnlab.sweeps.store._manifest import (
    Block,
    Failure,
    Sources,
    read_block_label,
    read_failures,
    read_plan,
    write_block_label,
    write_failures,
    write_plan,
)
from attnlab.sweeps.store._stack import Stack, merge
from attnlab.sweeps.store._zarr import Damaged

if TYPE_CHECKING:
    import xarray as xr

_LARGE_RUNS, _LARGE_BYTES = 512, 16_000_000
_MERGED_RUNS, _MERGED_BYTES = 1024, 32_000_000
# Blocks of large runs hold at least so many too, as far as memory allows, so that ten thousand runs
# never need a thousand files.
_FEWEST_RUNS, _MOST_BYTES = 24, 256_000_000
_NEW_FILES = 64  # when so many blocks, or files of failures, are new, a running sweep merges them
_ATTEMPTS = 50  # at reading a folder in which another command is merging files


class StoreWarning(UserWarning):
    """A file in a sweep's folder is damaged or foreign; its runs count as not done."""


def save_runs(folder: Path, stacks: Iterable[Stack], source: str) -> Block:
    """Write runs of one source as one new block. Any process may do so; the block counts once its
    last rename is done.
    """
    merged = merge(stacks)
    data = _block.pack(merged)
    digest = hashlib.sha256(data).hexdigest()
    hashes = tuple(run_hash for stack in merged for run_hash in stack.hashes)
    # The source is part of the name: runs of other code are another block, even with equal bits.
    block = Block(f"{digest[:16]}{source[:8]}", digest, len(data), hashes, source)
    save_block(folder, block, data)
    return block


def save_block(folder: Path, block: Block, data: bytes) -> None:
    """Write a block, its label first: a label without a block is ignored, but a block without a
    label is a foreign file.
    """
    write_block_label(folder / "blocks", block)
    write_atomically(folder / "blocks" / f"{block.stem}.zip", data)


def save_failures(folder: Path, failures: Iterable[Failure]) -> None:
    """Write failures as one new file."""
    write_failures(folder / "failures", failures)


class Store:
    """A sweep's folder: ``plan.json``, ``blocks/*.zip`` with ``*.json`` labels,
    ``failures/*.json``, ``lock``.

    The folder may be a URL; there the lock is ``locks/*.json``.

    ``Store.read`` never changes anything; ``Store.open`` owns the folder until ``close`` (use it in
    a ``with`` statement). A block whose bits are not those that were written is never read: its
    runs count as not done. So do runs of code that ``sources`` does not accept, which are kept.
    """

    def __init__(
        self, folder: Path, plan: Plan, lock: FolderLock | UrlLock | None, sources: Sources
    ):
        self.folder, self.plan, self._lock, self.sources = folder, plan, lock, sources
        self._verified: set[str] = set()
        self._blocks: dict[str, Block] = {}
        self._failures: dict[tuple[str, str], Failure] = {}
        self._merged_failures: dict[str, int] = {}  # files of merged failures, with their lengths
        self._new_blocks = self._new_failures = 0

    @classmethod
    def read(cls, folder: str | Path) -> Store:
        """Read a stored sweep."""
        folder = place(folder)
        with reading(folder):
            if not is_file(folder / "plan.json"):
                raise AttnlabError(
                    f"{folder} holds no sweep: expected a folder with a plan.json; run a plan "
                    "into it first"
                )
            plan, sources = read_plan(folder / "plan.json")
            store = cls(folder, plan, None, sources)
            store._scan()
        return store

    @classmethod
    def open(cls, folder: str | Path, plan: Plan, *, keep: bool = False) -> Store:
        """Own the folder for this plan; creates it, or resumes if it holds the same sweep, perhaps
        with fewer runs.

        The same sweep has the same work function, name and root seed. Only runs count that were
        made by the work function as this process has loaded it; with ``keep`` also those of other
        code. Every block's checksum is verified; bad files are renamed to ``*.bad`` and named in a
        warning.
        """
        sources = Sources(load_work(plan.work).source.hash, keep=keep)
        folder = place(folder)
        lock = lock_of(folder)
        try:
            for part in (folder, folder / "blocks", folder / "failures"):
                make_folder(part)
            lock.acquire()
            store = cls(folder, plan, lock, sources)
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
        """Release the folder."""
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    @property
    def finished(self) -> frozenset[str]:
        """Hashes of all stored runs that count, including those that the plan no longer asks for."""
        return frozenset(run_hash for block in self._counting() for run_hash in block.runs)

    @property
    def fresh(self) -> frozenset[str]:
        """Hashes of all runs that the present code made."""
        blocks = [block for block in self._blocks.values() if block.source == self.sources.current]
        return frozenset(run_hash for block in blocks for run_hash in block.runs)

    @property
    def foreign(self) -> frozenset[str]:
        """Hashes of all runs that other code made, whether they count or not."""
        blocks = [block for block in self._blocks.values() if block.source != self.sources.current]
        return frozenset(run_hash for block in blocks for run_hash in block.runs)

    @property
    def failures(self) -> dict[str, Failure]:
        """The last failure, by the present code, of each run that failed and is not stored."""
        finished = self.finished
        return {
            failure.hash: failure
            for failure in self._failures.values()
            if failure.source == self.sources.current and failure.hash not in finished
        }

    def _counting(self) -> list[Block]:
        """The blocks whose runs count; a run that is in several is taken from the first."""
        ranks = {block.stem: self.sources.rank(block.source) for block in self._blocks.values()}
        counting = [block for block in self._blocks.values() if ranks[block.stem] is not None]
        return sorted(counting, key=lambda block: ranks[block.stem] or 0)

    def note(self, blocks: Iterable[Block], failures: Iterable[Failure]) -> None:
        """Register what a worker has just written."""
        blocks, failures = list(blocks), list(failures)
        self._blocks.update((block.stem, block) for block in blocks)
        self._failures.update(((failure.hash, failure.source), failure) for failure in failures)
        self._new_blocks += len(blocks)
        self._new_failures += bool(failures)
        if self._lock is not None and self._lock.lost is not None:
            raise AttnlabError(
                f"{self.folder} was taken away from this command by {self._lock.lost}; all runs "
                "that finished before are kept, start it again when the other one has ended"
            )

    def adopt(self, spool: Path, blocks: Iterable[Block], failures: Iterable[Failure]) -> None:
        """Store what workers that cannot write to this folder have written to a folder of this
        machine.
        """
        for block in blocks:
            path = spool / "blocks" / f"{block.stem}.zip"
            save_block(self.folder, block, path.read_bytes())
            path.unlink()
            path.with_suffix(".json").unlink()
        save_failures(self.folder, failures)
        for path in (spool / "failures").glob("*.json"):  # the outcomes hold the same failures
            path.unlink()

    def stacks(self, wanted: Iterable[str], chosen: _block.Chosen | None = None) -> Iterator[Stack]:
        """The stored stacks that hold any of the wanted runs; of each only the ``chosen``
        variables.

        Several stacks may hold the same run: the first counts.
        """
        left = set(wanted)
        for _ in range(_ATTEMPTS):
            vanished = False
            for block in self._counting():
                if left.isdisjoint(block.runs):
                    continue
                found = self._unpacked(block, chosen)
                if found is not None:
                    left.difference_update(block.runs)
                    yield from found
                elif is_file(self._path(block)):
                    self._report([self._path(block)], "run the plan again to recompute its runs")
                else:
                    vanished = True
                    break
            if not vanished:
                return
            self._scan()  # another command has merged the block into a larger one in the meantime

    def run(self, run_hash: str) -> xr.Dataset:
        """One run's data set, exactly as its work function returned it."""
        for stack in self.stacks([run_hash]):
            if run_hash in stack.hashes:
                return stack.dataset(run_hash)
        raise AttnlabError(f"run {run_hash[:12]} is not stored: it failed, or was not computed yet")

    def keep_few_files(self) -> None:
        """Merge new files if there are many; only the owner calls this, during a sweep."""
        with suppress(OSError):  # best effort: running out of disk here loses nothing
            if self._new_blocks >= _NEW_FILES:
                self._consolidate_blocks()
            if self._new_failures >= _NEW_FILES:
                self._consolidate_failures(at_most=_LARGE_RUNS)

    def consolidate(self) -> None:
        """Merge small blocks into larger ones. The new block is written before the old ones are
        removed: a crash in between leaves harmless duplicates.
        """
        self._consolidate_blocks()
        self._consolidate_failures()

    def _consolidate_blocks(self) -> None:
        self._new_blocks = 0
        for batch in _batches([block for block in self._blocks.values() if _is_small(block)]):
            found = {block.stem: self._unpacked(block, None) for block in batch}
            sound = [block for block in batch if found[block.stem] is not None]
            if len(sound) < 2:
                continue
            stacks = (stack for block in sound for stack in found[block.stem] or ())
            merged = save_runs(self.folder, stacks, batch[0].source)
            for block in sound:
                if block.stem != merged.stem:
                    # The block before its label, since a reader takes a block without a label for
                    # a damaged one.
                    remove(self._path(block))
                    remove(self._path(block).with_suffix(".json"))
                    del self._blocks[block.stem]
            self._blocks[merged.stem] = merged
            self._verified.add(merged.stem)

    def _consolidate_failures(self, at_most: int | None = None) -> None:
        """Merge files of failures; with ``at_most`` only those with fewer failures, so that none is
        rewritten over and over.
        """
        self._new_failures = 0
        folder = self.folder / "failures"
        finished = {
            (run_hash, block.source) for block in self._blocks.values() for run_hash in block.runs
        }
        names = sorted(name for name in listed(folder) if name.endswith(".json"))
        if at_most is not None:
            names = [name for name in names if self._merged_failures.get(name, 0) < at_most]
        read = {name: read_failures(folder / name) for name in names}
        files = {name: failures for name, failures in read.items() if failures is not None}
        if len(files) < 2:
            return
        last = {
            (failure.hash, failure.source): failure
            for failures in files.values()
            for failure in failures
        }
        kept = [failure for made, failure in last.items() if made not in finished]
        # Named by the time of the last of them, so that later failures still sort after it.
        merged = write_failures(folder, kept, stamp=max(files).partition("-")[0])
        if merged is not None:
            self._merged_failures[merged] = len(kept)
        for name in files:
            remove(folder / name)

    def _claim(self) -> None:
        """Check that the folder is this sweep's; store the plan and whose runs count if either is
        new.
        """
        path = self.folder / "plan.json"
        if is_file(path):
            stored, before = read_plan(path)
            for what in ("work", "name", "root_seed"):
                theirs, ours = getattr(stored, what), getattr(self.plan, what)
                if theirs != ours and (
                    what != "work" or work_identity(theirs) != work_identity(ours)
                ):
                    raise AttnlabError(
                        f"{self.folder} holds another sweep: its {what} is {theirs!r}, this "
                        f"plan's is {ours!r}; use another folder"
                    )
            self.sources = before.after(self.sources.current, keep=self.sources.keep)
            if stored == self.plan and self.sources == before:
                return
        write_plan(path, self.plan, self.sources)

    def _scan(self) -> None:
        """Read what is stored: labels, and checksums too; at a URL only the owner reads all blocks
        for that.
        """
        names, bad = self._read_labels()
        for _ in range(_ATTEMPTS):
            # Another command may have merged "bad" files away in the meantime: then read again.
            if all(is_file(path) for path in bad):
                break
            names, bad = self._read_labels()
        if self._lock is not None:
            self._tidy(names)
            self._report(bad, "its runs are computed again")
        else:
            self._report(bad, "run the plan again to recompute its runs")

    def _read_labels(self) -> tuple[list[str], list[Path]]:
        """Read all labels and failures; returns the names in the folder of blocks, and the files
        that are damaged or foreign, or were removed by another command in the meantime.
        """
        self._blocks.clear()
        bad = []
        blocks, failures = self.folder / "blocks", self.folder / "failures"
        sizes = _listed_at_rest(blocks, ".zip")
        for name in sorted(name for name in sizes if name.endswith(".zip")):
            path = blocks / name
            block = read_block_label(path.with_suffix(".json"))
            if block is not None and self._is_intact(block, sizes[name]):
                self._blocks[block.stem] = block
            else:
                bad.append(path)
        names = _listed_at_rest(failures, ".json")
        for name in sorted(name for name in names if name.endswith(".json")):
            records = read_failures(failures / name)
            if records is None:
                bad.append(failures / name)
            else:
                self._failures.update(
                    ((failure.hash, failure.source), failure) for failure in records
                )
        return list(sizes), bad

    def _tidy(self, names: Iterable[str]) -> None:
        """Remove what killed processes of attnlab left: temporary files, and labels whose block was
        never written.
        """
        for part in ("blocks", "failures"):
            remove_temporaries(self.folder / part)
        remove_temporaries(self.folder)
        present = set(names)
        for name in present:
            label = self.folder / "blocks" / name
            is_orphan = name.endswith(".json") and f"{label.stem}.zip" not in present
            if is_orphan and is_settled(label) and read_block_label(label) is not None:
                remove(label)

    def _report(self, bad: list[Path], consequence: str) -> None:
        """Warn of bad files, and set them aside if this command owns the folder."""
        if not bad:
            return
        names = []
        for path in bad:
            names.append(set_aside(path).name if self._lock is not None else path.name)
            label = path.with_suffix(".json")
            if self._lock is not None and path.suffix == ".zip" and is_file(label):
                set_aside(label)
        warnings.warn(
            f"{self.folder}: {', '.join(names)} is not what attnlab wrote (half-written, damaged, "
            f"edited or foreign); nothing was read from it, {consequence}",
            StoreWarning,
            stacklevel=3,
        )

    def _path(self, block: Block) -> Path:
        return self.folder / "blocks" / f"{block.stem}.zip"

    def _is_intact(self, block: Block, size: int) -> bool:
        """Whether a file of this size can be the block. The checksum is compared too, except by a
        reader at a URL, who compares it with what is read later.
        """
        if size != block.size:
            return False
        reads_later = self._lock is None and is_remote(self.folder)
        return reads_later or self._is_sound(block)

    def _is_sound(self, block: Block) -> bool:
        """Whether the file holds the bits that were written; once verified, it is not read again."""
        if block.stem not in self._verified:
            try:
                if checksum(self._path(block)) == block.sha256:
                    self._verified.add(block.stem)
            except OSError as error:
                if is_remote(self.folder) and not isinstance(error, FileNotFoundError):
                    raise  # it cannot be reached, and may be intact
        return block.stem in self._verified

    def _unpacked(self, block: Block, chosen: _block.Chosen | None) -> list[Stack] | None:
        """The stacks of a block, or ``None`` where the file is missing or not what was written."""
        path = self._path(block)
        try:
            if is_remote(path):
                data = read_bytes(path)
                if hashlib.sha256(data).hexdigest() != block.sha256:
                    return None
                self._verified.add(block.stem)
                found = _block.unpack(data, chosen)
            else:
                found = _block.unpack(path, chosen) if self._is_sound(block) else None
        except (FileNotFoundError, Damaged):
            return None
        if found is None:
            return None
        hashes = {run_hash for stack in found for run_hash in stack.hashes}
        return found if hashes == set(block.runs) else None


def _listed_at_rest(folder: Path, ending: str) -> dict[str, int]:
    """What a folder holds, listed until nothing new appeared: during a merge one listing may miss
    both the merged file and its parts.
    """
    found = listed(folder)
    for _ in range(_ATTEMPTS):
        again = listed(folder)
        if {name for name in again if name.endswith(ending)} <= set(found):
            return again
        found = again
    return found


def _is_small(block: Block) -> bool:
    if len(block.runs) < _FEWEST_RUNS:
        return block.size < _MOST_BYTES
    return len(block.runs) < _LARGE_RUNS and block.size < _LARGE_BYTES


def _batches(blocks: list[Block]) -> Iterator[list[Block]]:
    """Groups of at least two small blocks of one source, to be merged into one block each."""
    batch: list[Block] = []
    runs = size = 0
    for block in sorted(blocks, key=lambda block: (block.source, block.stem)):
        room = _MERGED_BYTES if runs >= _FEWEST_RUNS else _MOST_BYTES
        full = runs + len(block.runs) > _MERGED_RUNS or size + block.size > room
        if batch and (full or block.source != batch[0].source):
            if len(batch) > 1:
                yield batch
            batch, runs, size = [], 0, 0
        batch.append(block)
        runs, size = runs + len(block.runs), size + block.size
    if len(batch) > 1:
        yield batch
