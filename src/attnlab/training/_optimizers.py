"""Optimisers: gradient descent, Adam, any Optax optimiser, gradient flow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import optax

from attnlab._errors import AttnlabError


def check_positive(name: str, value: float) -> None:
    """Raise an error for a number that is not positive."""
    if not value > 0:
        raise AttnlabError(f"{name}={value}: expected a number > 0")


def check_weight_decay(value: float) -> None:
    """Raise an error for a negative weight decay."""
    if value < 0:
        raise AttnlabError(f"weight_decay={value}: expected a number ≥ 0")


@dataclass(frozen=True)
class GradientDescent:
    """``θ ← θ − step_size·(∂L/∂θ + weight_decay·θ)``; SGD with minibatches.

    Optionally with heavy-ball or Nesterov momentum.

    ``loss_floor``: the step is ``step_size / max(L, loss_floor)``, L the loss of the step's sentences.
    Where the loss falls like 1/τ, time then grows exponentially with the steps; record it with the
    probe ``Elapsed``.
    """

    step_size: float = 0.1
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0
    loss_floor: float | None = None

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        if not 0 <= self.momentum < 1:
            raise AttnlabError(f"momentum={self.momentum}: expected 0 ≤ momentum < 1")
        check_weight_decay(self.weight_decay)
        if self.loss_floor is not None:
            check_positive("loss_floor", self.loss_floor)

    @property
    def linear(self) -> bool:
        """Whether updates are linear combinations of gradients: reduced coordinates are then exact."""
        return self.weight_decay == 0

    def transformation(self, step_size: Any) -> optax.GradientTransformation:
        """The update rule with this step size, a number or an array."""
        descent = optax.sgd(step_size, momentum=self.momentum or None, nesterov=self.nesterov)
        if self.weight_decay == 0:
            return descent
        return optax.chain(optax.add_decayed_weights(self.weight_decay), descent)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, 2015), optionally with decoupled weight decay."""

    step_size: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    weight_decay: float = 0.0

    def __post_init__(self):
        check_positive("step_size", self.step_size)
        check_weight_decay(self.weight_decay)

    @property
    def linear(self) -> bool:
        """False: Adam scales each coordinate, so in reduced coordinates it is another algorithm."""
        return False

    def transformation(self, step_size: Any) -> optax.GradientTransformation:
        """The update rule with this step size, a number or an array."""
        if self.weight_decay == 0:
            return optax.adam(step_size, b1=self.b1, b2=self.b2)
        return optax.adamw(step_size, b1=self.b1, b2=self.b2, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class OptaxOptimizer:
    """Any Optax optimiser. ``step_size`` only labels records; the rule has its own."""

    rule: optax.GradientTransformation
    step_size: float = math.nan

    @property
    def linear(self) -> bool:
        """False: nothing is known about the rule."""
        return False

    def transformation(self, step_size: Any) -> optax.GradientTransformation:
        """The update rule; it has its own step size."""
        del step_size
        return self.rule


@dataclass(frozen=True)
class GradientFlow:
    """``dθ/dτ = −∂L/∂θ``, integrated by Diffrax (Tsit5, adaptive).

    ``step_size`` is the duration of one step: step k of a flow is at time ``k · step_size``, so a
    flow and a descent with equal step size share an axis.
    """

    step_size: float = 0.1
    rtol: float = 1e-6
    atol: float = 1e-9
    max_evaluations: int = 100_000

    def __post_init__(self):
        for name in ("step_size", "rtol", "atol"):
            check_positive(name, getattr(self, name))


Descent = GradientDescent | Adam | OptaxOptimizer


def step_of(rule: Descent, step_size: Any, loss: Any) -> Any:
    """The size of a step at this loss."""
    if not isinstance(rule, GradientDescent) or rule.loss_floor is None:
        return step_size
    return step_size / jnp.maximum(loss, rule.loss_floor)


def without_step_size(rule: Descent) -> Descent:
    """The same for every step size: training with another one needs no other program."""
    return replace(rule, step_size=1.0)


def as_optimizer(given: object) -> Descent | GradientFlow:
    """One of the optimisers above, or a plain Optax transformation wrapped as one."""
    if isinstance(given, Descent | GradientFlow):
        return given
    if isinstance(given, optax.GradientTransformation):
        return OptaxOptimizer(given)
    raise AttnlabError(
        f"optimizer={given!r}: expected GradientDescent(step), Adam(step), GradientFlow() or an "
        "Optax optimiser"
    )
