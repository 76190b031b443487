"""The workers of a Dask cluster during one sweep: who is there, and which chunk is where."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import queue
import sys
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import CancelledError
from concurrent.futures import Future as Promise
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from attnlab._errors import AttnlabError
from attnlab._places import remove, whole_name
from attnlab._whole import TEMPORARY
from attnlab.sweeps._source import CodeChanged
from attnlab.sweeps.executors import _dask_talk, _dask_worker, _wire
from attnlab.sweeps.executors._chunks import Chunk, Chunks
from attnlab.sweeps.executors._dask_client import Link, tell
from attnlab.sweeps.executors._executor import Job, Outcome
from attnlab.sweeps.executors._retries import MOST_DEATHS, MOST_WORKER_DEATHS, Retries, undone
from attnlab.sweeps.executors._versions import differences, versions
from attnlab.sweeps.store._files import write_atomic
from attnlab.sweeps.store._store import disk_error, save_block, save_failures

if TYPE_CHECKING:
    from distributed import Future

_GREETING_SECONDS = 30.0
_LONELY_SECONDS = 3.0
_STOP_SECONDS = 1.3
_MOST_GREETINGS = 5
_NOT_THERE = ("ModuleNotFoundError", "ImportError", "AttributeError")


@dataclass
class _Member:
    """A worker: its threads, whether it sees the store (``None``: not known yet), and what it did
    last.
    """

    threads: int
    shared: bool | None = None
    last: Chunk | None = None
    early_deaths: int = 0


@dataclass(frozen=True)
class _Lease:
    """A chunk that was given to a worker."""

    address: str
    chunk: Chunk
    shared: bool
    future: Future


class Crew:
    """Gives each worker as many chunks as it has threads, and takes back what becomes of them.

    A chunk is a Dask task that only one worker may take, so that which worker computes what is
    decided here: kinds of runs stay with the worker that has compiled them, and no worker gets any
    before its versions were compared. The caller's thread never waits for the network: coroutines
    do, and put what they hear into the inbox.
    """

    def __init__(self, job: Job, link: Link, *, owner: str, limit: float | None):
        self._job, self._link, self._owner, self._limit = job, link, owner, limit
        self._sweep, self._token = uuid.uuid4().hex, uuid.uuid4().hex
        self._token_place = job.folder / f"{TEMPORARY}{self._token}"
        self._retries = Retries(job)
        self._members: dict[str, _Member] = {}
        self._leases: dict[str, _Lease] = {}
        self._versions = versions()
        self._watch: Promise[Any] | None = None
        self._unheard: dict[str, int] = {}
        self._told: set[str] = set()
        self._reset()

    def _reset(self) -> None:
        self._members.clear()
        self._leases.clear()
        self._inbox: _dask_talk.Inbox = queue.SimpleQueue()
        self._since = self._last_seen = time.monotonic()
        self._scheduler_known = self._all_known = False
        self.is_silent = False

    def start(self) -> None:
        """Look who is there, now and again and again."""
        self._reset()
        try:
            write_atomic(self._token_place, self._token.encode())
        except OSError as error:
            raise disk_error(self._job.folder, error) from error
        self._watch = self._link.spawn(_dask_talk.look(self._link.client, self._inbox))
        self._link.spawn(_dask_talk.ask_scheduler(self._link.client, self._probe, self._inbox))

    @property
    def _probe(self) -> tuple[str, str]:
        return whole_name(self._token_place), self._token

    @property
    def is_started(self) -> bool:
        """Whether somebody looks who is there."""
        return self._watch is not None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being computed, nor to be tried again."""
        return not self._leases and not self._retries.waiting

    def hand_out(self, chunks: Chunks) -> None:
        """Give chunks to workers with nothing to do, once the versions of all that were there first
        are known.
        """
        if not self._may_begin():
            return
        at_work: dict[str, int] = {}
        for lease in self._leases.values():
            at_work[lease.address] = at_work.get(lease.address, 0) + 1
        for address, member in self._members.items():
            while member.shared is not None and at_work.get(address, 0) < member.threads:
                waiting = self._retries.waiting
                chunk = waiting.popleft() if waiting else chunks.take(after=member.last)
                if chunk is None:
                    return
                self._give(address, member, chunk)
                at_work[address] = at_work.get(address, 0) + 1

    def _may_begin(self) -> bool:
        """Not before all that were there first are known; but one that does not answer is not
        waited for for ever.
        """
        waited = time.monotonic() - self._since > _GREETING_SECONDS
        greeted = bool(self._members) and all(
            member.shared is not None for member in self._members.values()
        )
        self._all_known = self._all_known or greeted or waited
        return self._all_known and self._scheduler_known

    def _give(self, address: str, member: _Member, chunk: Chunk) -> None:
        key = f"attnlab-{uuid.uuid4().hex}"
        order = {
            **json.loads(_wire.job_message(self._job, _own_path())),
            **json.loads(_wire.chunk_message(chunk)),
            "key": key,
            "sweep": self._sweep,
            "owner": self._owner,
            "limit": self._limit,
            "shared": member.shared,
        }
        try:
            future = self._link.client.submit(
                _dask_worker.compute,
                json.dumps(order).encode(),
                key=key,
                workers=[address],
                pure=False,
                allow_other_workers=False,
            )
        except Exception:  # of a client that has just lost its scheduler, which is noticed soon
            self._retries.back(chunk)
            return
        member.last = chunk
        self._leases[key] = _Lease(address, chunk, bool(member.shared), future)
        self._link.spawn(_dask_talk.deliver(key, future, self._inbox))

    def listen(self, seconds: float) -> Iterator[Outcome]:
        """Wait for news for a while; the outcomes among them."""
        with suppress(queue.Empty):
            news = self._inbox.get(timeout=seconds) if seconds else self._inbox.get_nowait()
            while True:
                yield from self._take_note(*news)
                news = self._inbox.get_nowait()

    def _take_note(self, kind: str, about: Any, content: Any) -> Iterator[Outcome]:
        if kind == "answer":
            yield from self._hear(about, content)
        elif kind == "workers":
            yield from self._roll_call(content)
        elif kind == "hello":
            self._greet(about, content)
        elif kind == "scheduler":
            self._refuse("the scheduler", content)
            self._scheduler_known = True
        else:
            self.is_silent = True

    def _roll_call(self, threads: dict[str, int]) -> Iterator[Outcome]:
        """Greet workers that came; what those were at that went is tried again."""
        for address in [address for address in self._members if address not in threads]:
            del self._members[address]
            for key in [key for key, lease in self._leases.items() if lease.address == address]:
                yield from self._bury(self._leases.pop(key), f"{address} left the cluster")
        for address in [address for address in threads if address not in self._members]:
            self._members[address] = _Member(threads[address])
            self._link.spawn(_dask_talk.ask(self._link.client, address, self._probe, self._inbox))
        if threads:
            self._last_seen = time.monotonic()
        elif time.monotonic() - self._last_seen > _LONELY_SECONDS:
            self._tell_once("the cluster has no workers now; waiting for some to join")

    def _greet(self, address: str, answer: Any) -> None:
        """What a worker says about itself."""
        member = self._members.get(address)
        if member is None:
            return
        if isinstance(answer, dict):
            self._compare(address, answer["versions"])
            member.shared = answer["shared"]
            return
        self._refuse(f"worker {address}", answer)
        self._unheard[address] = self._unheard.get(address, 0) + 1
        if self._unheard[address] >= _MOST_GREETINGS:
            raise AttnlabError(
                f"worker {address} does not answer: {answer!r}; stop it, or look at what it says"
            )
        del self._members[address]  # it went away, or is seen at the next look and asked again

    def _refuse(self, who: str, answer: Any) -> None:
        """Whoever does not have our functions cannot even load the tasks that call them."""
        if isinstance(answer, BaseException) and any(name in repr(answer) for name in _NOT_THERE):
            raise AttnlabError(
                f"{who} has no attnlab, or another one ({answer}): this command has attnlab "
                f"{self._versions['attnlab']}; start scheduler and workers in an environment with "
                "the same"
            )

    def _compare(self, address: str, theirs: dict[str, str]) -> None:
        found = differences(self._versions, theirs)
        if found:
            told = ", ".join(
                f"{name} {there} (needed: {here})" for name, (here, there) in found.items()
            )
            raise AttnlabError(
                f"worker {address} has {told}: results would depend on where a run is computed; "
                "install the same versions there, or start this command in the workers' environment"
            )
        if theirs.get("processor") != self._versions.get("processor"):
            self._tell_once(
                "workers have another kind of processor than this machine: last bits may differ "
                "from its"
            )

    def _hear(self, key: str, answer: Any) -> Iterator[Outcome]:
        """An answer of a worker, or in which way there is none."""
        lease = self._leases.pop(key, None)
        if (
            lease is None
        ):  # its worker left the cluster in the meantime, and its runs are tried again
            return
        if isinstance(answer, CancelledError | asyncio.CancelledError):
            self._retries.back(lease.chunk)  # the scheduler has forgotten it
        elif isinstance(answer, BaseException):
            yield from self._bury(lease, f"{lease.address}: {answer!r}")
        else:
            yield from self._settle(lease, answer)

    def _settle(self, lease: _Lease, answer: dict[str, Any]) -> Iterator[Outcome]:
        outcomes = [_wire.read_outcome(json.loads(text)) for text in answer["outcomes"]]
        for outcome in outcomes:
            yield self._stored(lease, outcome, answer["files"])
        left = undone(lease.chunk, outcomes)
        member = self._members.get(lease.address, _Member(0))
        if answer["ended"] is None:
            member.early_deaths = 0
        elif answer["ended"] == "broken":
            raise AttnlabError(
                f"worker {lease.address} cannot load the work function: {answer['cause']}"
            )
        elif answer["ended"] == "changed":
            raise CodeChanged(
                f"worker {lease.address} has other code than this command ({answer['cause']}); if "
                "nothing was edited, "
                "install the same attnlab there, and give it the same files"
            )
        elif answer["ended"] == "stopped":
            self._retries.back(left)
        elif answer["ended"] == "late" and self._limit is not None:
            yield from self._retries.late(left, answer["at"], self._limit)
        else:
            member.early_deaths = 0 if answer["ready"] else member.early_deaths + 1
            if member.early_deaths >= MOST_DEATHS:
                raise AttnlabError(
                    f"processes do not start on worker {lease.address} ({answer['cause']}): "
                    f"{answer['last_words'] or 'they left no message'}"
                )
            yield from self._retries.died(
                left, answer["cause"], answer["last_words"], counts=answer["ready"]
            )

    def _stored(self, lease: _Lease, outcome: Outcome, files: dict[str, bytes]) -> Outcome:
        """The outcome; what its worker could not write to the store is written here."""
        if outcome.refused is not None:
            return replace(outcome, refused=f"on worker {lease.address}: {outcome.refused}")
        if lease.shared:
            return outcome
        try:
            for block in outcome.blocks:
                if hashlib.sha256(files[block.stem]).hexdigest() != block.sha256:
                    raise OSError(
                        f"block {block.stem} of worker {lease.address} did not arrive as it was "
                        "written"
                    )
                save_block(self._job.folder, block, files[block.stem])
            save_failures(self._job.folder, outcome.failures)
        except OSError as error:
            return Outcome((), (), outcome.seconds, refused=str(error))
        return outcome

    def _bury(self, lease: _Lease, last_words: str) -> Iterator[Outcome]:
        lease.future.cancel()
        cause = "the Dask worker that computed it died"
        yield from self._retries.died(lease.chunk, cause, last_words, most=MOST_WORKER_DEATHS)

    def scatter(self) -> None:
        """The scheduler is gone: everything that was under way is to be done again."""
        self._stop_watching()
        for lease in self._leases.values():
            self._retries.back(lease.chunk)
        self._leases.clear()

    def stop(self) -> Iterator[Outcome]:
        """Have all workers store what is finished, or send it; who does not answer soon is not
        waited for.
        """
        if self._leases and self._link.is_open:
            busy = sorted({lease.address for lease in self._leases.values()})
            self._link.spawn(_dask_talk.stop(self._link.client, busy, self._sweep))
            deadline = time.monotonic() + _STOP_SECONDS
            while self._leases and time.monotonic() < deadline:
                yield from self.listen(0.05)

    def close(self) -> None:
        """Cancel what is left."""
        self._stop_watching()
        for lease in self._leases.values():
            with suppress(Exception):  # the scheduler may be gone
                lease.future.cancel()
        self._leases.clear()
        with suppress(OSError):
            remove(self._token_place)

    def _stop_watching(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _tell_once(self, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            tell(text)


def _own_path() -> list[str]:
    """Where this process imports from besides its installation, which need not be the workers'."""
    return [
        entry or os.getcwd()
        for entry in sys.path
        if not entry.startswith((sys.prefix, sys.base_prefix))
    ]
