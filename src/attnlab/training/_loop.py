"""The training loop, written once: compiled, resumable from slot to slot, for one run or a batch of
runs.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from attnlab._errors import AttnlabError
from attnlab.training._optimizers import Descent
from attnlab.training._probes import (
    AbstractProbe,
    Moment,
    Transition,
    first_memories,
    measured,
    next_memories,
)
from attnlab.training._problem import AbstractFrame, AbstractObjective, Evaluation, Trained

RUNNING, STOPPED_EARLY, NON_FINITE, TOO_WIDE, HALTED = 0, 1, 2, 3, 4
Order = Int[Array, "examples"] | None


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after ``patience`` recorded rows without a lower loss on ``split``; the best parameters
    are restored.

    A loss counts as lower when it improves by more than ``min_delta``.
    """

    split: str = "valid"
    patience: int = 10
    min_delta: float = 0.0

    def __post_init__(self):
        if self.patience < 1 or self.min_delta < 0:
            raise AttnlabError(
                f"patience={self.patience} must be ≥ 1 and min_delta={self.min_delta} must be ≥ 0"
            )


class Best(NamedTuple):
    """The best parameters so far, by early stopping's loss."""

    loss: Float[Array, ""]
    step: Int[Array, ""]
    waited: Int[Array, ""]
    trained: Trained


class Run(NamedTuple):
    """Everything that changes in a run.

    ``evaluation`` is that of the present step, except in a ``fresh`` run, which has yet to be
    evaluated where it is.
    """

    step: Int[Array, ""]
    fresh: Bool[Array, ""]
    trained: Trained
    evaluation: Evaluation
    optimizer: Any
    probes: tuple[Any, ...]
    order: Int[Array, "examples"] | None
    best: Best | None
    status: Int[Array, ""]
    ended: Int[Array, ""]


class Fixed(NamedTuple):
    """What one run keeps: its frame, and the key of its minibatches."""

    frame: AbstractFrame
    key: Key[Array, ""]


class Shared(NamedTuple):
    """What all runs share."""

    objective: AbstractObjective[Any]
    splits: Mapping[str, AbstractObjective[Any]]
    words: Int[Array, "chosen"]

    def guarding(self, on: bool) -> Shared:
        """The same with or without the objectives' guards."""
        return Shared(
            self.objective.guarding(on),
            {name: part.guarding(on) for name, part in self.splits.items()},
            self.words,
        )


@dataclass(frozen=True)
class Rules:
    """What decides the compiled program.

    The ordinary program has no room for scores that are too wide for its fast formulas: a run that
    meets them halts as ``TOO_WIDE`` before that step is recorded or left. The ``guarded`` program
    takes such runs further.
    """

    optimizer: Descent
    probes: tuple[AbstractProbe, ...]
    batch_size: int | None
    stopping: EarlyStopping | None
    rows: int
    batch_of_runs: int
    guarded: bool = False

    @property
    def context(self) -> bool:
        """Whether a probe needs the context term at every step."""
        return any(probe.needs_context for probe in self.probes)


def _running(run: Run) -> Bool[Array, ""]:
    return run.status == RUNNING


def _evaluated(
    rules: Rules, fixed: Fixed, shared: Shared, trained: Trained, step: Int[Array, ""], order: Order
) -> Evaluation:
    """Loss and gradient of a step; a minibatch is the step's piece of the epoch's random order."""
    batch = None
    if rules.batch_size is not None and order is not None:
        start = (step % (shared.objective.examples // rules.batch_size)) * rules.batch_size
        batch = jax.lax.dynamic_slice_in_dim(order, start, rules.batch_size)
    return shared.objective.evaluate(fixed.frame, trained, batch, context=rules.context)


def _reshuffled(
    rules: Rules, fixed: Fixed, shared: Shared, step: Int[Array, ""], order: Order
) -> Order:
    """A new order at the start of each epoch, from the run's key and the epoch's number alone."""
    if rules.batch_size is None or order is None:
        return None
    examples = shared.objective.examples
    steps_per_epoch = examples // rules.batch_size

    def shuffle(_: Array) -> Array:
        key = jax.random.fold_in(fixed.key, step // steps_per_epoch)
        return jax.random.permutation(key, jnp.arange(examples, dtype=jnp.int32))

    return jax.lax.cond(step % steps_per_epoch == 0, shuffle, lambda o: o, order)


def _judged(run: Run) -> Run:
    """Halt a run whose present evaluation is of no use."""
    bad = jnp.where(jnp.isfinite(run.evaluation.loss), RUNNING, NON_FINITE)
    verdict = jnp.where(run.evaluation.wide, TOO_WIDE, bad)
    halts = _running(run) & (verdict != RUNNING)
    return run._replace(
        status=jnp.where(halts, verdict, run.status), ended=jnp.where(halts, run.step, run.ended)
    )


def _moment(rules: Rules, run: Run, fixed: Fixed, shared: Shared) -> Moment:
    """The run as probes see it."""
    return Moment(
        run.step,
        fixed.frame,
        run.trained,
        run.evaluation,
        shared.objective,
        shared.splits,
        shared.words,
        rules.batch_size is None,
    )


def _moved(rules: Rules, run: Run, fixed: Fixed, shared: Shared) -> Run:
    """Take one step with the present gradient (a fresh run stays where it is), and evaluate where
    it leads.
    """
    with jax.numpy_dtype_promotion(
        "standard"
    ):  # some of Optax's rules mix their integer counters with floats
        rule = rules.optimizer.transformation()
        update, state = rule.update(run.evaluation.gradient, run.optimizer, run.trained)
    transition = Transition(_moment(rules, run, fixed, shared), update, rules.optimizer.step_size)
    after = (
        optax.apply_updates(run.trained, update),
        state,
        next_memories(rules.probes, run.probes, transition),
    )
    before = run.trained, run.optimizer, run.probes
    trained, state, memories = jax.tree.map(
        lambda old, new: jnp.where(run.fresh, old, new), before, after
    )
    step = run.step + (~run.fresh).astype(jnp.int64)
    order = _reshuffled(rules, fixed, shared, step, run.order)
    return _judged(
        run._replace(
            step=step,
            fresh=jnp.zeros((), bool),
            trained=trained,
            evaluation=_evaluated(rules, fixed, shared, trained, step, order),
            optimizer=state,
            probes=memories,
            order=order,
        )
    )


def _compared(rules: Rules, run: Run, row: dict[str, Array], recorded: Bool[Array, ""]) -> Run:
    """Early stopping: remember the best parameters, stop when patience is over."""
    if rules.stopping is None or run.best is None:
        return run
    loss = row[f"loss_{rules.stopping.split}"]
    counts = recorded & _running(run)
    better = counts & (loss < run.best.loss - rules.stopping.min_delta)
    waited = jnp.where(better, 0, run.best.waited + counts.astype(jnp.int64))
    before = run.best.trained
    best = Best(
        jnp.where(better, loss, run.best.loss),
        jnp.where(better, run.step, run.best.step),
        waited,
        jax.lax.cond(better, lambda: run.trained, lambda: before),
    )
    over = counts & (waited >= rules.stopping.patience)
    return run._replace(
        best=best,
        status=jnp.where(over, STOPPED_EARLY, run.status),
        ended=jnp.where(over, run.step, run.ended),
    )


def _start_one(rules: Rules, fixed: Fixed, shared: Shared) -> Run:
    trained, step = fixed.frame.initial(), jnp.zeros((), jnp.int64)
    order = (
        None if rules.batch_size is None else jnp.arange(shared.objective.examples, dtype=jnp.int32)
    )
    # Compiled only where a probe's start needs it, and then in a form that holds everywhere.
    first = _evaluated(
        rules,
        fixed,
        shared.guarding(True),
        trained,
        step,
        _reshuffled(rules, fixed, shared, step, order),
    )
    run = Run(
        step=step,
        fresh=jnp.ones((), bool),
        trained=trained,
        evaluation=first,
        optimizer=rules.optimizer.transformation().init(trained),
        probes=(),
        order=order,
        best=None,
        status=jnp.asarray(RUNNING, jnp.int64),
        ended=jnp.asarray(-1, jnp.int64),
    )
    memories = first_memories(rules.probes, _moment(rules, run, fixed, shared))
    run = run._replace(probes=memories, evaluation=jax.tree.map(jnp.zeros_like, first))
    if rules.stopping is None:
        return run
    return run._replace(best=Best(jnp.asarray(jnp.inf, first.loss.dtype), step, step, trained))


def _advance_one(
    rules: Rules,
    run: Run,
    fixed: Fixed,
    shared: Shared,
    stops: Int[Array, "slots"],
    places: Int[Array, "slots"],
    count: Int[Array, ""],
) -> tuple[Run, dict[str, Array]]:
    """Go through ``count`` slots: train to ``stops[i]``, then record the row of that step at
    ``places[i]``.

    A place beyond the last row records nothing: such a slot only gives the caller a chance to look
    at the clock.
    """

    def one_row(run: Run) -> dict[str, Array]:
        return measured(rules.probes, run.probes, _moment(rules, run, fixed, shared))

    def slot(
        i: Int[Array, ""], state: tuple[Run, dict[str, Array]]
    ) -> tuple[Run, dict[str, Array]]:
        run, rows = state
        run = jax.lax.while_loop(
            lambda r: _running(r) & (r.fresh | (r.step < stops[i])),
            lambda r: _moved(rules, r, fixed, shared),
            run,
        )
        recorded = places[i] < rules.rows
        # A row may cost as much as an epoch: none is computed for the clock alone.
        row = jax.lax.cond(recorded, one_row, nothing, run)
        rows = {name: rows[name].at[places[i]].set(value) for name, value in row.items()}
        run = _compared(rules, run, row, recorded)
        return run, rows

    shapes = jax.eval_shape(one_row, run)

    def nothing(_: Run) -> dict[str, Array]:
        return {name: jnp.zeros(s.shape, s.dtype) for name, s in shapes.items()}

    rows = {name: jnp.zeros((rules.rows + 1, *s.shape), s.dtype) for name, s in shapes.items()}
    run, rows = jax.lax.fori_loop(0, count, slot, (run, rows))
    return run, {name: values[: rules.rows] for name, values in rows.items()}


@functools.partial(jax.jit, static_argnames="rules")
def start(rules: Rules, fixed: Fixed, shared: Shared) -> Run:
    """Runs at step 0; ``fixed`` has a leading axis of runs when ``batch_of_runs`` is above one."""
    one, shared = functools.partial(_start_one, rules), shared.guarding(rules.guarded)
    return (
        one(fixed, shared)
        if rules.batch_of_runs == 1
        else jax.vmap(one, in_axes=(0, None))(fixed, shared)
    )


def halted(run: Run) -> Run:
    """Let no run go on until it is woken."""
    return run._replace(status=jnp.where(run.status == RUNNING, HALTED, run.status))


def woken(run: Run, asleep: Bool[np.ndarray, "*runs"]) -> Run:
    """Let these runs go on from where they are; each is evaluated there first."""
    chosen = jnp.asarray(asleep).reshape(run.status.shape)
    return run._replace(status=jnp.where(chosen, RUNNING, run.status), fresh=run.fresh | chosen)


@functools.partial(jax.jit, static_argnames="rules", donate_argnames="run")
def advance(
    rules: Rules, run: Run, fixed: Fixed, shared: Shared, stops: Array, places: Array, count: Array
) -> tuple[Run, dict[str, Array]]:
    """Train through some slots; see ``_advance_one``."""
    one, shared = functools.partial(_advance_one, rules), shared.guarding(rules.guarded)
    if rules.batch_of_runs == 1:
        return one(run, fixed, shared, stops, places, count)
    return jax.vmap(one, in_axes=(0, 0, None, None, None, None))(
        run, fixed, shared, stops, places, count
    )
