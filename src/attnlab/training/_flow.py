"""Gradient flow, with the interface of descent."""

from __future__ import annotations

import functools
from typing import Any

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from attnlab.training._loop import Fixed, Shared
from attnlab.training._optimizers import GradientFlow
from attnlab.training._probes import AbstractProbe, Moment, first_memories, measured
from attnlab.training._problem import Trained

# Gradient evaluations per Tsit5 step: of its seven stages, the last is the first of the next step.
_STAGES = 6


@functools.partial(jax.jit, static_argnames=("flow", "probes"))
def solve_flow(
    flow: GradientFlow,
    probes: tuple[AbstractProbe, ...],
    fixed: Fixed,
    shared: Shared,
    times: Float[Array, "rows"],
) -> tuple[dict[str, Array], Trained, Array, Array]:
    """Rows at the given times, final coordinates, number of gradient evaluations, and success."""
    frame = fixed.frame

    def velocity(time: Any, trained: Trained, args: Any) -> Trained:
        del time, args
        evaluation = shared.objective.evaluate(frame, trained, None, context=False)
        return jax.tree.map(jnp.negative, evaluation.gradient)

    def moment_at(step: Array, trained: Trained) -> Moment:
        evaluation = shared.objective.evaluate(frame, trained, None, context=False)
        return Moment(
            step, frame, trained, evaluation, shared.objective, shared.splits, shared.words, True
        )

    first = moment_at(jnp.zeros((), jnp.int64), frame.initial())
    memories = first_memories(probes, first)

    def row(time: Any, trained: Trained, args: Any) -> dict[str, Array]:
        del args
        moment = moment_at(jnp.round(time / flow.step_size).astype(jnp.int64), trained)
        return measured(probes, memories, moment)

    rows = diffrax.SubSaveAt(ts=times, fn=row)
    last = diffrax.SubSaveAt(t1=True)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),  # pyright: ignore[reportArgumentType]
        diffrax.Tsit5(),
        t0=times[0],
        t1=times[-1],
        dt0=None,
        y0=frame.initial(),
        saveat=diffrax.SaveAt(subs=[rows, last]),
        stepsize_controller=diffrax.PIDController(rtol=flow.rtol, atol=flow.atol),
        max_steps=flow.max_evaluations // _STAGES,
        throw=False,
    )
    saved, final = solution.ys  # pyright: ignore[reportGeneralTypeIssues]
    evaluations = solution.stats["num_steps"] * _STAGES + 1
    succeeded = solution.result == diffrax.RESULTS.successful
    return saved, jax.tree.map(lambda leaf: leaf[0], final), evaluations, succeeded
