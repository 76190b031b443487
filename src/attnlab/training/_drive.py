"""The host side of training: groups of runs, short compiled calls, copying rows to the host.

Python cannot interrupt a compiled call, so calls are kept short enough for Ctrl-C to feel immediate.
"""

from __future__ import annotations

import abc
import dataclasses
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array
from rich.progress import Progress

import attnlab
from attnlab._errors import AttnlabError
from attnlab.training._loop import (
    NON_FINITE,
    RUNNING,
    STOPPED_EARLY,
    TOO_WIDE,
    EarlyStopping,
    Fixed,
    Rules,
    Run,
    Shared,
    advance,
    resumed,
    start,
    suspended,
)
from attnlab.training._optimizers import (
    Descent,
    GradientDescent,
    GradientFlow,
    as_optimizer,
    without_step_size,
)
from attnlab.training._probes import AbstractProbe, Loss
from attnlab.training._progress import Interrupt, interruptible, progress_bar
from attnlab.training._schedule import Schedule
from attnlab.training._trajectory import Recorder, Trajectory, to_host

_SECONDS_PER_CALL = 0.25  # how long Ctrl-C may have to wait
_BYTES_PER_CALL = 32 * 2**20  # rows kept on the device before they are copied to the host
_BYTES_OF_RECORD = 4 * 2**30  # a larger record is an error before training starts

BatchOfRuns = int | Literal["auto"]
ModelT = TypeVar("ModelT", bound=eqx.Module)


def run_keys(root_seed: int, seed: int) -> tuple[Array, Array]:
    """The keys of a run's model and minibatches: ``split(fold_in(key(root_seed), seed))``."""
    model_key, batch_key = jax.random.split(jax.random.fold_in(jax.random.key(root_seed), seed))
    return model_key, batch_key


class AbstractJob(abc.ABC, Generic[ModelT]):
    """How the run of a seed starts."""

    @abc.abstractmethod
    def fixed(self, seed: int) -> Fixed:
        """Frame and minibatch key of one run."""

    @abc.abstractmethod
    def notes(self, fixed: Fixed) -> dict[str, float]:
        """Numbers to store per run."""


@dataclass(frozen=True)
class Settings:
    """The arguments of a training call, checked; the same for every kind of model."""

    steps: int
    seeds: tuple[int, ...]
    rule: Descent | GradientFlow
    probes: tuple[AbstractProbe, ...]
    when: Schedule
    batch_size: int | None
    stop: EarlyStopping | None
    root_seed: int
    dtype: np.dtype
    batch_of_runs: BatchOfRuns
    progress: bool | None

    @classmethod
    def of(
        cls,
        *,
        steps: int,
        seeds: Any,
        optimizer: Any,
        record: Sequence[AbstractProbe],
        when: object,
        batch_size: int | None,
        stop: EarlyStopping | None,
        root_seed: int,
        dtype: DTypeLike,
        batch_of_runs: Any,
        progress: bool | None,
        examples: tuple[int, str],
        splits: Sequence[str],
    ) -> Settings:
        """Check the arguments; ``examples`` is their number and their name in errors."""
        rule = as_optimizer(optimizer)
        given = range(int(seeds)) if isinstance(seeds, int | np.integer) else seeds
        numbers = tuple(int(seed) for seed in given)
        if not isinstance(when, Schedule):
            raise AttnlabError(f"when={when!r}: expected Every(k), Logarithmic(count) or At(steps)")
        if batch_of_runs != "auto" and not _is_count(batch_of_runs):
            raise AttnlabError(
                f"batch_of_runs={batch_of_runs!r}: expected a whole number ≥ 1 or 'auto'"
            )
        if str(dtype) not in ("float32", "float64") and dtype not in (jnp.float32, jnp.float64):
            raise AttnlabError(f"dtype={dtype!r}: expected 'float32' or 'float64'")
        if steps < 0:
            raise AttnlabError(f"steps={steps}: expected a number ≥ 0")
        if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0:
            raise AttnlabError(
                f"seeds={list(numbers)}: expected at least one run, and distinct numbers ≥ 0"
            )
        if batch_size is not None and not 1 <= batch_size <= examples[0]:
            raise AttnlabError(
                f"batch_size={batch_size}: expected 1 to {examples[0]}, the number of {examples[1]}"
            )
        if stop is not None and stop.split not in splits:
            raise AttnlabError(
                f"early stopping watches the split {stop.split!r}; expected one of {sorted(splits)} "
                "(pass it as splits=…)"
            )
        _check_rule(rule, record, batch_size, stop)
        probes = tuple(record)
        if stop is not None and Loss(stop.split) not in probes:
            probes = (*probes, Loss(stop.split))
        return cls(
            steps,
            numbers,
            rule,
            probes,
            when,
            batch_size,
            stop,
            root_seed,
            jnp.dtype(dtype),
            "auto" if batch_of_runs == "auto" else int(batch_of_runs),
            progress,
        )

    @property
    def step_size(self) -> Array:
        """The step size, in the type of the parameters."""
        return jnp.asarray(self.rule.step_size, self.dtype)


def _is_count(value: Any) -> bool:
    """Whether this is a whole number of at least 1."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(whole and value >= 1)


def _check_rule(
    rule: Descent | GradientFlow,
    record: Sequence[AbstractProbe],
    batch_size: int | None,
    stop: EarlyStopping | None,
) -> None:
    """Raise an error for what a rule cannot do."""
    if math.isnan(rule.step_size) and any(p.needs_context for p in record):
        raise AttnlabError(
            "SenTerms needs the step size: give OptaxOptimizer(rule, step_size=…), not the bare "
            "rule"
        )
    if isinstance(rule, GradientFlow):
        unsupported = [f"the probe {type(p).__name__}" for p in record if p.every_step]
        if batch_size is not None:
            unsupported.append("batch_size")
        if stop is not None:
            unsupported.append("early stopping")
        if unsupported:
            raise AttnlabError(
                f"a gradient flow has no steps: {unsupported[0]} needs GradientDescent or another "
                "descent"
            )


def drive(
    settings: Settings,
    job: AbstractJob[ModelT],
    shared: Shared,
    *,
    words: Sequence[str] | None,
    attrs: Mapping[str, Any],
) -> Trajectory[ModelT]:
    """Train every run of a call, and label the records.

    ``words`` are the names of the recorded words, if any.
    """
    dims, rule, steps = _dims(settings.probes), settings.rule, settings.when.steps(settings.steps)
    columns = 0 if words is None else len(words)
    _check_size(dims, len(settings.seeds), len(steps), columns, settings.dtype)
    recorder = Recorder(settings.seeds, steps)
    about: dict[str, Any] = {
        "attnlab": attnlab.__version__,
        "jax": jax.__version__,
        "dtype": str(settings.dtype),
        "optimizer": repr(rule),
        "step_size": float(rule.step_size),
        "root_seed": settings.root_seed,
        "batch_of_runs": 1,
        **attrs,
    }
    if isinstance(rule, GradientDescent) and rule.loss_floor is not None:
        about["loss_floor"] = rule.loss_floor
    total = len(settings.seeds) * max(settings.steps, 1)
    with interruptible() as interrupt, progress_bar(settings.progress, "training", total) as bar:
        if isinstance(rule, GradientFlow):
            _flow_all(rule, settings, job, shared, recorder, bar, interrupt)
        else:
            rows = _rows_per_call(dims, columns)
            rules = Rules(
                without_step_size(rule),
                settings.probes,
                settings.batch_size,
                settings.stop,
                rows,
                1,
            )
            batch_of_runs = settings.batch_of_runs
            if batch_of_runs == "auto":
                batch_of_runs, cost = propose_batch_of_runs(rules, job, shared, len(settings.seeds))
                about["batch_of_runs_cost"] = repr(cost)
            about["batch_of_runs"] = batch_of_runs
            _descend_all(
                dataclasses.replace(rules, batch_of_runs=batch_of_runs),
                job,
                shared,
                recorder,
                bar,
                interrupt,
            )
    return Trajectory(recorder.dataset(dims, words, about), recorder.models)


def _stacked(fixeds: Sequence[Fixed]) -> Fixed:
    try:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fixeds)
    except ValueError:
        raise AttnlabError(
            "the models of one batch differ in more than numbers (shapes, or a function created "
            "for each seed?); define such functions once, or train with batch_of_runs=1"
        ) from None


def _descend_all(
    rules: Rules,
    job: AbstractJob[Any],
    shared: Shared,
    recorder: Recorder,
    bar: Progress,
    interrupt: Interrupt,
) -> None:
    """Train all runs, ``batch_of_runs`` at a time.

    A last group that is too small is padded with copies of its last run: one compiled program.
    """
    batch_of_runs = rules.batch_of_runs
    for first in range(0, len(recorder.seeds), batch_of_runs):
        if interrupt.pressed:
            return
        positions = list(range(first, min(first + batch_of_runs, len(recorder.seeds))))
        bar.update(bar.task_ids[0], runs=f"run {first + 1} of {len(recorder.seeds)}")
        seeds = [recorder.seeds[p] for p in positions]
        seeds += [seeds[-1]] * (batch_of_runs - len(seeds))
        fixeds = [job.fixed(seed) for seed in seeds]
        fixed = fixeds[0] if batch_of_runs == 1 else _stacked(fixeds)
        for position, one in zip(positions, fixeds, strict=False):
            recorder.note(position, **job.notes(one))
        group = _Group(fixed, shared, recorder, positions, bar, interrupt)
        run = group.descend(
            rules, start(rules, fixed, shared), dict.fromkeys(range(len(positions)), 0)
        )
        # Most runs never need the guarded program, which is twice as large. Those that do halted
        # before their first wide step, and continue from there with the guarded program.
        wide = {
            i: int(np.atleast_1d(run.ended)[i])
            for i in range(len(positions))
            if _status(run)[i] == TOO_WIDE
        }
        if wide:
            run = group.descend(dataclasses.replace(rules, guarded=True), suspended(run), wide)
        _finish_group(rules, run, fixed, recorder, positions)


def _status(run: Run) -> np.ndarray:
    return np.atleast_1d(np.asarray(run.status))


@dataclass(frozen=True)
class _Group:
    """Runs that are trained together; ``positions`` are their indices in the record."""

    fixed: Fixed
    shared: Shared
    recorder: Recorder
    positions: list[int]
    bar: Progress
    interrupt: Interrupt

    def descend(self, rules: Rules, run: Run, starts: dict[int, int]) -> Run:
        """Train from row to row, in calls short enough for Ctrl-C.

        ``starts`` maps each run of the group that is to be trained to its first step. All runs of a
        group share one step counter, so a run waits until the counter reaches its first step.
        """
        steps, waiting, active = self.recorder.steps, dict(starts), set[int]()
        at, row, budget = -1, 0, 1  # every row up to step ``at`` is recorded
        while not self.interrupt.pressed:
            # If no active run is left, jump to the first step of the next waiting run.
            if not any(_status(run)[i] == RUNNING for i in active) or row >= len(steps):
                if not waiting:
                    break
                at = min(waiting.values()) - 1
                row = int(np.searchsorted(steps, at + 1))
            joining = {i for i, first in waiting.items() if first == at + 1}
            if any(_status(run)[i] == TOO_WIDE for i in joining):
                run = resumed(run, np.isin(np.arange(rules.batch_of_runs), list(joining)))
            active |= joining
            waiting = {i: first for i, first in waiting.items() if i not in joining}
            end = min([at + budget, *(first - 1 for first in waiting.values())])
            stops, places, rows = _slots(steps[row:], at, end, rules.rows)
            started = time.perf_counter()
            run, values = advance(
                rules, run, self.fixed, self.shared, *padded(stops, places, rules.rows)
            )
            host = to_host(values)
            elapsed = time.perf_counter() - started
            active = self._write(rules, run, active, row, host, rows)
            moved, at, row = stops[-1] - at, stops[-1], row + rows
            # Grow the budget at most eightfold per call: the first call includes compilation, and
            # short calls are a poor estimate of the rate.
            affordable = int(max(moved, 1) * _SECONDS_PER_CALL / max(elapsed, 1e-6))
            budget = max(1, min(8 * budget, affordable))
            self.bar.update(self.bar.task_ids[0], advance=moved * len(active))
        return run

    def _write(
        self,
        rules: Rules,
        run: Run,
        active: set[int],
        first: int,
        host: dict[str, np.ndarray],
        rows: int,
    ) -> set[int]:
        """Store the rows of one call; returns the runs that remain active.

        A run that became too wide is no longer active and has no rows from that step on.
        """
        status, ended = _status(run), np.atleast_1d(np.asarray(run.ended))
        still = set(active)
        for i in active:
            count = rows
            if status[i] == TOO_WIDE:
                count = int(np.sum(self.recorder.steps[first : first + rows] < ended[i]))
                still.remove(i)
            block = {
                name: (v if rules.batch_of_runs == 1 else v[i])[:count] for name, v in host.items()
            }
            self.recorder.write(self.positions[i], first, block)
        return still


def _slots(steps: np.ndarray, at: int, end: int, most: int) -> tuple[list[int], list[int], int]:
    """The slots of one call: which steps to train to, where their rows go, how many rows.

    ``steps`` are those of the rows not yet recorded, all after ``at``. If the next row lies beyond
    ``end``, a slot without a row stops there (its place ``most`` is out of range).
    """
    stops = [int(step) for step in steps[:most] if step <= end]
    places = list(range(len(stops)))
    if len(stops) < min(most, len(steps)) and (not stops or stops[-1] < end):
        return [*stops, end], [*places, most], len(stops)
    return stops, places, len(stops)


def padded(stops: list[int], places: list[int], size: int) -> tuple[Array, Array, Array]:
    """The slots as arrays of one size, and their number."""
    count = len(stops)
    stop_array, place_array = np.zeros(size, np.int64), np.full(size, size, np.int64)
    stop_array[:count], place_array[:count] = stops, places
    return jnp.asarray(stop_array), jnp.asarray(place_array), jnp.asarray(count)


def _finish_group(
    rules: Rules, run: Run, fixed: Fixed, recorder: Recorder, positions: list[int]
) -> None:
    """Record how each run of a group ended, and keep its model."""
    last = int(recorder.steps[-1])
    for i, position in enumerate(positions):
        one, frame = run, fixed.frame
        if rules.batch_of_runs > 1:
            one, frame = jax.tree.map(lambda leaf, i=i: leaf[i], (run, fixed.frame))
        step, status = int(one.step), int(one.status)
        best = None if one.best is None else int(one.best.step)
        if status == NON_FINITE:
            ended = int(one.ended)
            reason = f"the loss was no longer finite at step {ended}"
            recorder.end(position, "non-finite", reason, ended, best)
        elif status == STOPPED_EARLY and rules.stopping is not None:
            reason = f"no lower loss on {rules.stopping.split!r} for {rules.stopping.patience} rows"
            recorder.end(position, "stopped early", reason, int(one.ended), best)
        elif step < last or status == TOO_WIDE:
            recorder.end(position, "interrupted", f"interrupted at step {step}", step, best)
        else:
            recorder.end(position, "finished", "all steps done", last, best)
        trained = one.trained if one.best is None else one.best.trained
        recorder.models[recorder.seeds[position]] = to_host(frame.model(trained))


def _flow_all(
    flow: GradientFlow,
    settings: Settings,
    job: AbstractJob[Any],
    shared: Shared,
    recorder: Recorder,
    bar: Progress,
    interrupt: Interrupt,
) -> None:
    """Integrate all runs, one after the other."""
    # Importing diffrax takes as long as importing JAX; descent does not need it.
    from attnlab.training._flow import solve_flow

    times = jnp.asarray(recorder.steps, settings.dtype) * flow.step_size
    last = int(recorder.steps[-1])
    for position, seed in enumerate(recorder.seeds):
        if interrupt.pressed:
            return
        fixed = job.fixed(seed)
        rows, final, evaluations, succeeded = to_host(
            solve_flow(flow, settings.probes, fixed, shared, times)
        )
        recorder.write(position, 0, rows)
        model = fixed.frame.model(jax.tree.map(jnp.asarray, final))
        recorder.note(position, **job.notes(fixed), gradient_evaluations=float(evaluations))
        if succeeded:
            recorder.end(position, "finished", "all steps done", last)
        else:
            finite = np.ones(len(recorder.steps), bool)
            for values in rows.values():
                finite &= np.isfinite(values.reshape(len(values), -1).sum(1))
            reached = int(recorder.steps[int(finite.sum()) - 1]) if finite.any() else 0
            reason = f"the integrator gave up after {int(evaluations)} gradient evaluations, near step {reached}"
            recorder.end(position, "non-finite", reason, reached + 1)
        recorder.models[seed] = to_host(model)
        bar.update(bar.task_ids[0], advance=last)


def propose_batch_of_runs(
    rules: Rules,
    job: AbstractJob[Any],
    shared: Shared,
    runs: int,
    candidates: Sequence[int] = (1, 2, 4, 8),
) -> tuple[int, dict[int, float]]:
    """Measure the CPU time per step and run for batches of several sizes.

    Returns the best size (1, unless another gains 10 %), and milliseconds per step and run by size.
    """
    cost: dict[int, float] = {}
    for size in (candidate for candidate in candidates if candidate == 1 or candidate <= runs):
        chosen = dataclasses.replace(rules, batch_of_runs=size)
        fixed = job.fixed(0) if size == 1 else _stacked([job.fixed(k) for k in range(size)])
        run, _ = advance(
            chosen, start(chosen, fixed, shared), fixed, shared, *padded([10], [0], rules.rows)
        )
        if (_status(run) == TOO_WIDE).any():
            chosen = dataclasses.replace(chosen, guarded=True)
            run, _ = advance(
                chosen, start(chosen, fixed, shared), fixed, shared, *padded([10], [0], rules.rows)
            )
        jax.block_until_ready(run)
        started = time.process_time()
        run, _ = advance(chosen, run, fixed, shared, *padded([60], [rules.rows], rules.rows))
        jax.block_until_ready(run)
        cost[size] = (time.process_time() - started) * 1e3 / 50 / size
    best = min(cost, key=lambda size: cost[size])
    return (best if cost[best] < 0.9 * cost[1] else 1), cost


def _dims(record: Sequence[AbstractProbe]) -> dict[str, tuple[str, ...]]:
    dims: dict[str, tuple[str, ...]] = {}
    for probe in record:
        for name, axes in probe.dims.items():
            if name in dims:
                raise AttnlabError(f"two probes record the name {name!r}; give each its own")
            dims[name] = axes
    return dims


def _row_bytes(dims: Mapping[str, tuple[str, ...]], words: int, size: int = 8) -> int:
    return max(sum(size * (words if "word" in axes else 1) for axes in dims.values()), 1)


def _rows_per_call(dims: Mapping[str, tuple[str, ...]], words: int) -> int:
    return int(np.clip(_BYTES_PER_CALL // _row_bytes(dims, words), 1, 512))


def _check_size(
    dims: Mapping[str, tuple[str, ...]], runs: int, rows: int, words: int, dtype: np.dtype
) -> None:
    need = runs * rows * _row_bytes(dims, words, dtype.itemsize)
    if need > _BYTES_OF_RECORD:
        raise AttnlabError(
            f"recording {rows} rows of {words} words in {runs} runs needs {need / 2**30:.1f} GiB "
            f"of memory, more than {_BYTES_OF_RECORD / 2**30:.0f}; choose words=…, or record fewer "
            "steps with when=Every(k) or Logarithmic()"
        )
