"""The training loop, written once: compiled, resumable from slot to slot, for one run or a batch of runs."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key

from attnlab._errors import AttnlabError
from attnlab.training._objective import Evaluation, Frame, Trained, WordObjective
from attnlab.training._optimizers import Descent
from attnlab.training._probes import AbstractProbe, Moment, Transition

RUNNING, STOPPED_EARLY, NON_FINITE = 0, 1, 2


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after ``patience`` recorded rows without a lower loss on ``split``; the best parameters are restored.

    A loss counts as lower when it improves by more than ``min_delta``.
    """

    split: str = "valid"
    patience: int = 10
    min_delta: float = 0.0

    def __post_init__(self):
        if self.patience < 1 or self.min_delta < 0:
            raise AttnlabError(f"patience={self.patience} must be ≥ 1 and min_delta={self.min_delta} must be ≥ 0")


class Best(NamedTuple):
    """The best parameters so far, by early stopping's loss."""

    loss: Float[Array, ""]
    step: Int[Array, ""]
    waited: Int[Array, ""]
    trained: Trained


class Run(NamedTuple):
    """Everything that changes in a run."""

    step: Int[Array, ""]
    trained: Trained
    optimizer: Any
    probes: tuple[Any, ...]
    order: Int[Array, "examples"] | None
    best: Best | None
    status: Int[Array, ""]
    ended: Int[Array, ""]


class Fixed(NamedTuple):
    """What one run keeps: its frame, and the key of its minibatches."""

    frame: Frame
    key: Key[Array, ""]


class Shared(NamedTuple):
    """What all runs share."""

    objective: WordObjective
    splits: dict[str, WordObjective]
    words: Int[Array, "chosen"]


@dataclass(frozen=True)
class Rules:
    """What decides the compiled program."""

    optimizer: Descent
    probes: tuple[AbstractProbe, ...]
    batch_size: int | None
    stopping: EarlyStopping | None
    rows: int
    width: int

    @property
    def context(self) -> bool:
        """Whether a probe needs the context term at every step."""
        return any(probe.needs_context for probe in self.probes)


def _running(run: Run) -> Bool[Array, ""]:
    return run.status == RUNNING


def _batch_of(rules: Rules, run: Run, shared: Shared) -> Int[Array, "batch"] | None:
    """The sentences of this step: consecutive pieces of the epoch's random order."""
    if rules.batch_size is None or run.order is None:
        return None
    steps_per_epoch = shared.objective.incidence.sentences // rules.batch_size
    start = (run.step % steps_per_epoch) * rules.batch_size
    return jax.lax.dynamic_slice_in_dim(run.order, start, rules.batch_size)


def _reshuffled(rules: Rules, run: Run, fixed: Fixed, shared: Shared) -> Run:
    """A new order at the start of each epoch, from the run's key and the epoch's number alone."""
    if rules.batch_size is None or run.order is None:
        return run
    examples = shared.objective.incidence.sentences
    steps_per_epoch = examples // rules.batch_size
    epoch = run.step // steps_per_epoch

    def shuffle(_: Array) -> Array:
        key = jax.random.fold_in(fixed.key, epoch)
        return jax.random.permutation(key, jnp.arange(examples, dtype=jnp.int32))

    return run._replace(order=jax.lax.cond(run.step % steps_per_epoch == 0, shuffle, lambda o: o, run.order))


def _moment(rules: Rules, run: Run, fixed: Fixed, shared: Shared) -> tuple[Run, Moment]:
    """Evaluate the loss and gradient of the run's present step."""
    run = _reshuffled(rules, run, fixed, shared)
    batch = _batch_of(rules, run, shared)
    evaluation = shared.objective.evaluate(fixed.frame, run.trained, batch, context=rules.context)
    bad = _running(run) & ~jnp.isfinite(evaluation.loss)
    run = run._replace(status=jnp.where(bad, NON_FINITE, run.status), ended=jnp.where(bad, run.step, run.ended))
    return run, _at(run, fixed, shared, evaluation, batch is None)


def _at(run: Run, fixed: Fixed, shared: Shared, evaluation: Evaluation, full_batch: bool) -> Moment:
    return Moment(
        run.step,
        fixed.frame,
        run.trained,
        evaluation,
        shared.objective,
        shared.splits,
        shared.words,
        full_batch,
    )


def _moved(rules: Rules, run: Run, moment: Moment) -> Run:
    """Take one step."""
    with jax.numpy_dtype_promotion("standard"):  # some of Optax's rules mix their integer counters with floats
        rule = rules.optimizer.transformation()
        update, state = rule.update(moment.evaluation.gradient, run.optimizer, run.trained)
    transition = Transition(moment, update, rules.optimizer.step_size)
    memories = tuple(probe.follow(memory, transition) for probe, memory in zip(rules.probes, run.probes, strict=True))
    return run._replace(
        step=run.step + 1, trained=optax.apply_updates(run.trained, update), optimizer=state, probes=memories
    )


def _measure(rules: Rules, run: Run, moment: Moment) -> dict[str, Array]:
    row: dict[str, Array] = {}
    for probe, memory in zip(rules.probes, run.probes, strict=True):
        row |= probe.measure(memory, moment)
    return row


def _judged(rules: Rules, run: Run, row: dict[str, Array], recorded: Bool[Array, ""]) -> Run:
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
    trained = fixed.frame.initial()
    examples = shared.objective.incidence.sentences
    run = Run(
        step=jnp.zeros((), jnp.int64),
        trained=trained,
        optimizer=rules.optimizer.transformation().init(trained),
        probes=(),
        order=None if rules.batch_size is None else jnp.arange(examples, dtype=jnp.int32),
        best=None,
        status=jnp.asarray(RUNNING, jnp.int64),
        ended=jnp.asarray(-1, jnp.int64),
    )
    _, moment = _moment(rules, run, fixed, shared)
    run = run._replace(probes=tuple(probe.initial(moment) for probe in rules.probes))
    if rules.stopping is None:
        return run
    infinite = jnp.asarray(jnp.inf, moment.evaluation.loss.dtype)
    zero = jnp.zeros((), jnp.int64)
    return run._replace(best=Best(infinite, zero, zero, trained))


def _advance_one(
    rules: Rules,
    run: Run,
    fixed: Fixed,
    shared: Shared,
    stops: Int[Array, "slots"],
    places: Int[Array, "slots"],
    count: Int[Array, ""],
) -> tuple[Run, dict[str, Array]]:
    """Go through ``count`` slots: record the row of the present step at ``places[i]``, then train to ``stops[i]``.

    A place beyond the last row records nothing: such a slot only gives the caller a chance to look at the clock.
    """

    def step(run: Run) -> Run:
        run, moment = _moment(rules, run, fixed, shared)
        return _moved(rules, run, moment)

    def slot(i: Int[Array, ""], state: tuple[Run, dict[str, Array]]) -> tuple[Run, dict[str, Array]]:
        run, rows = state
        run, moment = _moment(rules, run, fixed, shared)
        row = _measure(rules, run, moment)
        rows = {name: rows[name].at[places[i]].set(value) for name, value in row.items()}
        run = _judged(rules, run, row, places[i] < rules.rows)
        go = _running(run) & (run.step < stops[i])
        run = jax.lax.cond(go, lambda r: _moved(rules, r, moment), lambda r: r, run)
        run = jax.lax.while_loop(lambda r: _running(r) & (r.step < stops[i]), step, run)
        return run, rows

    def one_row(run: Run) -> dict[str, Array]:
        run, moment = _moment(rules, run, fixed, shared)
        return _measure(rules, run, moment)

    shapes = jax.eval_shape(one_row, run)
    rows = {name: jnp.zeros((rules.rows + 1, *s.shape), s.dtype) for name, s in shapes.items()}
    run, rows = jax.lax.fori_loop(0, count, slot, (run, rows))
    return run, {name: values[: rules.rows] for name, values in rows.items()}


@functools.partial(jax.jit, static_argnames="rules")
def start(rules: Rules, fixed: Fixed, shared: Shared) -> Run:
    """Runs at step 0; ``fixed`` has a leading axis of runs when the width is above one."""
    one = functools.partial(_start_one, rules)
    return one(fixed, shared) if rules.width == 1 else jax.vmap(one, in_axes=(0, None))(fixed, shared)


@functools.partial(jax.jit, static_argnames="rules", donate_argnames="run")
def advance(
    rules: Rules, run: Run, fixed: Fixed, shared: Shared, stops: Array, places: Array, count: Array
) -> tuple[Run, dict[str, Array]]:
    """Train through some slots; see ``_advance_one``."""
    one = functools.partial(_advance_one, rules)
    if rules.width == 1:
        return one(run, fixed, shared, stops, places, count)
    return jax.vmap(one, in_axes=(0, 0, None, None, None, None))(run, fixed, shared, stops, places, count)
