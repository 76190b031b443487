"""How parameters move: gradient descent, any Optax optimiser, gradient flow."""

from __future__ import annotations

import math
from dataclasses import dataclass

import optax

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class GradientDescent:
    """``θ ← θ − step_size·(∂L/∂θ + weight_decay·θ)``, with heavy-ball or Nesterov momentum on
    request.

    With minibatches this is SGD.
    """

    step_size: float = 0.1
    momentum: float = 0.0
    nesterov: bool = False
    weight_decay: float = 0.0

    def __post_init__(self):
        if not self.step_size > 0:
            raise AttnlabError(f"step_size={self.step_size}: expected a positive number")
        if not 0 <= self.momentum < 1:
            raise AttnlabError(f"momentum={self.momentum}: expected 0 ≤ momentum < 1")
        if self.weight_decay < 0:
            raise AttnlabError(f"weight_decay={self.weight_decay}: expected a number ≥ 0")

    @property
    def linear(self) -> bool:
        """Whether the motion is a linear combination of gradients, so that reduced coordinates are
        exact.
        """
        return self.weight_decay == 0

    def transformation(self) -> optax.GradientTransformation:
        """The update rule."""
        descent = optax.sgd(self.step_size, momentum=self.momentum or None, nesterov=self.nesterov)
        if self.weight_decay == 0:
            return descent
        return optax.chain(optax.add_decayed_weights(self.weight_decay), descent)


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma and Ba, 2015), with decoupled weight decay on request."""

    step_size: float = 1e-3
    b1: float = 0.9
    b2: float = 0.999
    weight_decay: float = 0.0

    def __post_init__(self):
        if not self.step_size > 0 or self.weight_decay < 0:
            raise AttnlabError(
                f"step_size={self.step_size} must be positive and "
                f"weight_decay={self.weight_decay} must be ≥ 0"
            )

    @property
    def linear(self) -> bool:
        """Adam rescales every coordinate by itself: reduced coordinates would be another algorithm."""
        return False

    def transformation(self) -> optax.GradientTransformation:
        """The update rule."""
        if self.weight_decay == 0:
            return optax.adam(self.step_size, b1=self.b1, b2=self.b2)
        return optax.adamw(self.step_size, b1=self.b1, b2=self.b2, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class OptaxOptimizer:
    """Any Optax optimiser. ``step_size`` is only what records call the step; the rule has its own."""

    rule: optax.GradientTransformation
    step_size: float = math.nan

    @property
    def linear(self) -> bool:
        """Nothing is known of the rule."""
        return False

    def transformation(self) -> optax.GradientTransformation:
        """The update rule."""
        return self.rule


@dataclass(frozen=True)
class GradientFlow:
    """``dθ/dτ = −∂L/∂θ``, integrated by Diffrax (Tsit5, adaptive).

    ``step_size`` is the time that one step stands for: step k of a flow is time ``k · step_size``,
    so that a flow and a descent of equal step size share their axis.
    """

    step_size: float = 0.1
    rtol: float = 1e-6
    atol: float = 1e-9
    max_evaluations: int = 100_000

    def __post_init__(self):
        if not self.step_size > 0 or not self.rtol > 0 or not self.atol > 0:
            raise AttnlabError("step_size, rtol and atol of a gradient flow must be positive")


Descent = GradientDescent | Adam | OptaxOptimizer


def as_optimizer(given: object) -> Descent | GradientFlow:
    """Accept ours and plain Optax transformations."""
    if isinstance(given, Descent | GradientFlow):
        return given
    if isinstance(given, optax.GradientTransformation):
        return OptaxOptimizer(given)
    raise AttnlabError(
        f"optimizer={given!r}: expected GradientDescent(step), Adam(step), GradientFlow() or an "
        "Optax optimiser"
    )
