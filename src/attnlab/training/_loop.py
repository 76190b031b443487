"""The compiled training loop, for one run or a batch of runs.

A compiled call goes through a few *slots*: each trains to a given step and records a row there. The
host (``_drive``) chooses the slots, so that calls stay short, and resumes a run in the next call.
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
from attnlab.training._optimizers import Descent, step_of
from attnlab.training._probes import (
    AbstractProbe,
    Moment,
    Transition,
    first_memories,
    measured,
    next_memories,
)
from attnlab.training._problem import AbstractFrame, AbstractObjective, Evaluation, Trained

RUNNING, STOPPED_EARLY, NON_FINITE, TOO_WIDE, SUSPENDED = 0, 1, 2, 3, 4
Order = Int[Array, "examples"] | None


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after ``patience`` recorded rows without a lower loss on ``split``.

    The best parameters are restored. A loss counts as lower if it improves by more than
    ``min_delta``.
    """

    split: str = "valid"
    patience: int = 10
    min_delta: float = 0.0

    def __post_init__(self):
        if self.patience < 1:
            raise AttnlabError(f"patience={self.patience}: expected at least 1")
        if self.min_delta < 0:
            raise AttnlabError(f"min_delta={self.min_delta}: expected a number ≥ 0")


class Best(NamedTuple):
    """The best parameters so far, by the loss that early stopping watches."""

    loss: Float[Array, ""]
    step: Int[Array, ""]
    waited: Int[Array, ""]
    trained: Trained


class Run(NamedTuple):
    """Everything that changes in a run.

    ``evaluation`` belongs to the current step. In a ``fresh`` run it has not been computed yet: the
    next move only evaluates, so that the step is compiled once and serves both cases.
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
    """What stays constant in one run: its frame, and the key of its minibatches."""

    frame: AbstractFrame
    key: Key[Array, ""]


class Shared(NamedTuple):
    """What all runs share."""

    objective: AbstractObjective[Any]
    splits: Mapping[str, AbstractObjective[Any]]
    words: Int[Array, "chosen"]
    step_size: Float[Array, ""]

    def guarding(self, on: bool) -> Shared:
        """The same with or without the guards of the objectives."""
        return self._replace(
            objective=self.objective.guarding(on),
            splits={name: part.guarding(on) for name, part in self.splits.items()},
        )


@dataclass(frozen=True)
class Rules:
    """The static arguments of the compiled program.

    The step size is an argument of the program: ``optimizer`` is ``without_step_size``.
    The ordinary program cannot handle scores that are too wide for its fast formulas: a run that
    meets them halts as ``TOO_WIDE``, before that step is recorded. The ``guarded`` program continues
    such runs.
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
    """Loss and gradient of a step; a minibatch is the step's slice of the epoch's random order."""
    batch = None
    if rules.batch_size is not None and order is not None:
        start = (step % (shared.objective.examples // rules.batch_size)) * rules.batch_size
        batch = jax.lax.dynamic_slice_in_dim(order, start, rules.batch_size)
    return shared.objective.evaluate(fixed.frame, trained, batch, context=rules.context)


def _reshuffled(
    rules: Rules, fixed: Fixed, shared: Shared, step: Int[Array, ""], order: Order
) -> Order:
    """A new order at the start of each epoch, from the run's key and the epoch number only."""
    if rules.batch_size is None or order is None:
        return None
    examples = shared.objective.examples
    steps_per_epoch = examples // rules.batch_size

    def shuffle(_: Array) -> Array:
        key = jax.random.fold_in(fixed.key, step // steps_per_epoch)
        return jax.random.permutation(key, jnp.arange(examples, dtype=jnp.int32))

    return jax.lax.cond(step % steps_per_epoch == 0, shuffle, lambda o: o, order)


def _judged(run: Run) -> Run:
    """Halt a run whose current evaluation is invalid or not finite."""
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
    """Take one step with the current gradient, and evaluate there; a fresh run only evaluates."""
    # Some of Optax's rules mix their integer counters with floats.
    with jax.numpy_dtype_promotion("standard"):
        step_size = step_of(rules.optimizer, shared.step_size, run.evaluation.loss)
        rule = rules.optimizer.transformation(step_size)
        update, state = rule.update(run.evaluation.gradient, run.optimizer, run.trained)
    transition = Transition(_moment(rules, run, fixed, shared), update, step_size)
    after = (
        optax.apply_updates(run.trained, update),
        state,
        next_memories(rules.probes, run.probes, transition),
    )
    # A fresh run has no gradient yet. Selecting with `where` keeps one compiled body for both cases.
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
    """Early stopping: keep the best parameters, stop when patience is exhausted."""
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
    # XLA drops this evaluation unless a probe's initial memory needs it. It is guarded because the
    # initial scores may already be too wide.
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
        optimizer=rules.optimizer.transformation(shared.step_size).init(trained),
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
    """Go through ``count`` slots: train to ``stops[i]``, then record a row at ``places[i]``.

    A place beyond the last row records nothing: such a slot only returns control to the host.
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
        # A row may cost as much as an epoch: compute it only if it is recorded.
        row = jax.lax.cond(recorded, one_row, nothing, run)
        rows = {name: rows[name].at[places[i]].set(value) for name, value in row.items()}
        run = _compared(rules, run, row, recorded)
        return run, rows

    shapes = jax.eval_shape(one_row, run)

    def nothing(_: Run) -> dict[str, Array]:
        return {name: jnp.zeros(s.shape, s.dtype) for name, s in shapes.items()}

    # One row more than needed: slots without a row write there, and it is dropped.
    rows = {name: jnp.zeros((rules.rows + 1, *s.shape), s.dtype) for name, s in shapes.items()}
    run, rows = jax.lax.fori_loop(0, count, slot, (run, rows))
    return run, {name: values[: rules.rows] for name, values in rows.items()}


@functools.partial(jax.jit, static_argnames="rules")
def start(rules: Rules, fixed: Fixed, shared: Shared) -> Run:
    """Runs at step 0; ``fixed`` has a leading axis of runs if ``batch_of_runs`` is above one."""
    one, shared = functools.partial(_start_one, rules), shared.guarding(rules.guarded)
    if rules.batch_of_runs == 1:
        return one(fixed, shared)
    return jax.vmap(one, in_axes=(0, None))(fixed, shared)


def suspended(run: Run) -> Run:
    """Stop all running runs until they are resumed."""
    return run._replace(status=jnp.where(run.status == RUNNING, SUSPENDED, run.status))


def resumed(run: Run, chosen: Bool[np.ndarray, "*runs"]) -> Run:
    """Resume these runs from their current step; each is evaluated there first."""
    these = jnp.asarray(chosen).reshape(run.status.shape)
    return run._replace(status=jnp.where(these, RUNNING, run.status), fresh=run.fresh | these)


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
