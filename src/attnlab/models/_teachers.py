"""Teachers (docs/theory.md#b1): models that generate data with known truth and Bayes error."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from attnlab._errors import AttnlabError
from attnlab.models._dense import (
    Baseline,
    BaselineConfig,
    Gate,
    KnownAttention,
    MovingBlock,
    Output,
    StaticMask,
    check_scale,
    normal,
)
from attnlab.models._inputs import Inputs
from attnlab.models._self_attention import (
    MultiLayer,
    MultiLayerConfig,
    SelfAttention,
    SelfAttentionConfig,
)

_CALIBRATION = 65536
_BLOCK = 1024
_NORMAL = Inputs()

# docs/theory.md#b2: logits divided by d_q. With queries and keys of standard deviation 1, the
# logits have a spread of about 3.
TEACHER_ATTENTION = SelfAttentionConfig(
    embedding_dim=4, words=5, key_dim=2, value_dim=3, hidden=6, scale="dim", query_scale=2.0
)


class Scaled(eqx.Module):
    """``model(x) / divisor``."""

    model: Any
    divisor: Float[Array, ""]

    def __call__(self, x: Float[Array, "..."]) -> Output:
        """Output for one input."""
        return self.model(x) / self.divisor


class Teacher(eqx.Module):
    """``y = g(x) + σ·ε``, ``ε ~ N(0, 1)``, with a model g with Var g(x) = 1; x is N(0, I) unless
    ``inputs`` says otherwise.

    - ``model``: g, the given model with its last layer divided by ``deviation``;
    - ``deviation``: the standard deviation of the given model over 65536 inputs drawn from the
      teacher's key (accurate to about 1 %). The mean is not subtracted: g stays in the class of the
      models, which have no biases;
    - ``noise_std`` σ, in units of g's standard deviation; ``shape`` of one input.

    ``KnownWeights`` uses ``teacher.model.attentions``.
    """

    model: Any
    deviation: Float[Array, ""]
    noise_std: float = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    inputs: Inputs = eqx.field(static=True, default=Inputs())

    @classmethod
    def of(
        cls,
        model: Callable[[Array], Array],
        *,
        key: Key[Array, ""],
        shape: tuple[int, ...],
        noise_std: float = 0.2,
        inputs: str = "normal",
    ) -> Teacher:
        """A teacher from any module with one output.

        >>> sum_of_two = Baseline(jnp.ones((2, 1)), jnp.ones((1, 1)), math.inf)
        >>> teacher = Teacher.of(sum_of_two, key=jax.random.key(0), shape=(2,), noise_std=0.1)
        >>> bool(abs(teacher.deviation - math.sqrt(1 - 1 / math.pi)) < 0.01)  # of relu(N(0, 2))
        True
        """
        check_scale("noise_std", noise_std)
        drawn = Inputs(inputs)
        outputs = _calibrate(model, key, shape, drawn)
        if outputs.ndim != 1:
            raise AttnlabError(
                f"the model has {outputs.shape[1]} outputs; a regression teacher has one "
                "(LabelTeacher takes several)"
            )
        deviation = jnp.std(outputs)
        return cls(divided(model, deviation), deviation, float(noise_std), tuple(shape), drawn)

    @property
    def bayes_error(self) -> float:
        """``E(y − g(x))²/Var g = σ²``: the error of g on noisy labels. On noiseless ones it is 0."""
        return self.noise_std**2

    def truth(self, x: Float[Array | np.ndarray, "n ..."]) -> Float[Array, "n"]:
        """``g`` of many inputs."""
        return evaluate(self.model, x, self.shape)

    def sample(
        self, n: int, *, key: Key[Array, ""], noisy: bool = True
    ) -> tuple[Float[Array, "n ..."], Float[Array, "n"]]:
        """Inputs and labels; pass ``noisy=False`` for test points.

        With the same key, a smaller sample is a prefix of a larger one.

        >>> teacher = make_teacher("static-mask", key=jax.random.key(0), features=16, relevant=4)
        >>> x, y = teacher.sample(100, key=jax.random.key(1))
        >>> x.shape, y.shape, bool(teacher.sample(50, key=jax.random.key(1))[1][49] == y[49])
        ((100, 16), (100,), True)
        """
        x, stream = draw_inputs(n, self.shape, key, self.inputs)
        y = self.truth(x)
        return x, y + self.noise_std * stream.standard_normal(n) if noisy else y


class LabelTeacher(eqx.Module):
    """A label ``c(x)`` for ``x ~ N(0, I)``, or as ``inputs`` says: the sign of one output, or the
    argmax of several.

    - one output: two classes, ``c = 1`` where ``model(x) > centre``; K outputs: ``c = argmax_k
      model(x)_k − centre_k``;
    - ``centre``: 0, or the mean output over inputs drawn from the teacher's key, which makes no
      class rare;
    - ``label_noise``: the probability that a noisy label is another class, uniform over the others.
    """

    model: Any
    centre: Float[Array, "..."]
    label_noise: float = eqx.field(static=True)
    shape: tuple[int, ...] = eqx.field(static=True)
    inputs: Inputs = eqx.field(static=True, default=Inputs())

    @classmethod
    def of(
        cls,
        model: Callable[[Array], Array],
        *,
        key: Key[Array, ""],
        shape: tuple[int, ...],
        label_noise: float = 0.0,
        centred: bool = True,
        inputs: str = "normal",
    ) -> LabelTeacher:
        """A teacher from any module (or the ``model`` of a ``Teacher``), scaled to unit deviation."""
        if not 0 <= label_noise <= 1:
            raise AttnlabError(f"label_noise={label_noise}: expected a probability from 0 to 1")
        drawn = Inputs(inputs)
        outputs = _calibrate(model, key, shape, drawn)
        # One divisor for all outputs keeps their order, and hence the labels.
        deviation = jnp.sqrt(jnp.mean(jnp.var(outputs, axis=0)))
        mean = jnp.mean(outputs, axis=0) / deviation
        return cls(
            divided(model, deviation),
            mean if centred else jnp.zeros_like(mean),
            float(label_noise),
            tuple(shape),
            drawn,
        )

    @property
    def classes(self) -> int:
        """Number of classes."""
        return 2 if self.centre.ndim == 0 else self.centre.shape[0]

    @property
    def bayes_error(self) -> float:
        """Share of noisy labels that the best predictor gets wrong; 0 on labels without noise.

        It is ``label_noise``, unless noise makes another class likelier than the true one.
        """
        return 1 - max(1 - self.label_noise, self.label_noise / (self.classes - 1))

    def truth(self, x: Float[Array | np.ndarray, "n ..."]) -> Int[Array, "n"]:
        """``c`` of many inputs."""
        outputs = evaluate(self.model, x, self.shape)
        if self.centre.ndim == 0:
            return (outputs > self.centre).astype(jnp.int64)
        return jnp.argmax(outputs - self.centre[None], axis=1)

    def sample(
        self, n: int, *, key: Key[Array, ""], noisy: bool = True
    ) -> tuple[Float[Array, "n ..."], Int[Array, "n"]]:
        """Inputs and labels; pass ``noisy=False`` for test points.

        With the same key, a smaller sample is a prefix of a larger one.

        >>> head = BaselineConfig(numbers=6, hidden=4, outputs=3).init(jax.random.key(0))
        >>> teacher = LabelTeacher.of(head, key=jax.random.key(1), shape=(6,), label_noise=0.1)
        >>> x, y = teacher.sample(200, key=jax.random.key(2))
        >>> x.shape, sorted(set(y.tolist())), round(teacher.bayes_error, 9)
        ((200, 6), [0, 1, 2], 0.1)
        """
        x, stream = draw_inputs(n, self.shape, key, self.inputs)
        labels = self.truth(x)
        if not noisy:
            return x, labels
        # Two uniform numbers per label: whether it is flipped, and to which of the other classes.
        chance = stream.random((n, 2))
        flipped = chance[:, 0] < self.label_noise
        shift = 1 + np.floor(chance[:, 1] * (self.classes - 1)).astype(np.int64)
        return x, jnp.where(flipped, (labels + shift) % self.classes, labels)


def draw_inputs(
    n: int, shape: tuple[int, ...], key: Key[Array, ""], inputs: Inputs = _NORMAL
) -> tuple[Float[Array, "n ..."], np.random.Generator]:
    """``n`` inputs, and a separate generator for the noise of their labels.

    NumPy draws them, seeded by the JAX key: nothing is compiled for a new n.
    """
    if n < 1:
        raise AttnlabError(f"n={n}: expected at least 1")
    stream, noise = _streams(key)
    return jnp.asarray(inputs.draw(n, shape, stream)), noise


def _streams(key: Key[Array, ""]) -> list[np.random.Generator]:
    words = np.asarray(jax.random.key_data(key)).tolist()
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(words))).spawn(2)


def evaluate(
    model: Any, x: Float[Array | np.ndarray, "n ..."], shape: tuple[int, ...]
) -> Float[Array, "n ..."]:
    """Outputs for many inputs, in blocks of one size: compiled once for any number of inputs."""
    if x.shape[1:] != tuple(shape):
        raise AttnlabError(f"inputs of shape {x.shape}; expected (n, {', '.join(map(str, shape))})")
    n = x.shape[0]
    # Cut by NumPy: JAX would compile every cut.
    padded = np.concatenate([np.asarray(x), np.zeros((-n % _BLOCK, *shape), x.dtype)])
    starts = range(0, len(padded), _BLOCK)
    blocks = [np.asarray(_evaluate_block(model, padded[i : i + _BLOCK])) for i in starts]
    return jnp.asarray(np.concatenate(blocks)[:n])


@eqx.filter_jit
def _evaluate_block(
    model: Any, x: Float[Array | np.ndarray, "block ..."]
) -> Float[Array, "block ..."]:
    return jax.vmap(model)(x)


def _calibrate(
    model: Any, key: Key[Array, ""], shape: tuple[int, ...], inputs: Inputs
) -> Float[Array, "n ..."]:
    """Outputs over a large fixed sample, computed block by block; an error if they do not vary."""
    stream, _ = _streams(key)
    blocks = (
        jnp.asarray(inputs.draw(_BLOCK, shape, stream)) for _ in range(_CALIBRATION // _BLOCK)
    )
    outputs = jnp.concatenate([_evaluate_block(model, x) for x in blocks])
    deviation = float(jnp.sqrt(jnp.mean(jnp.var(outputs, axis=0))))
    if not 0 < deviation < math.inf:
        raise AttnlabError(
            f"the model's outputs have standard deviation {deviation} over {inputs.kind} "
            "inputs and cannot be normalised; give a model that varies with its input and stays "
            "finite"
        )
    return outputs


def divided(model: Any, divisor: Float[Array, ""]) -> Any:
    """The model with divided outputs: in the last layer of our models, otherwise as a wrapper."""
    if isinstance(model, Baseline):
        return eqx.tree_at(lambda m: m.w2, model, model.w2 / divisor)
    if isinstance(model, KnownAttention | SelfAttention | MultiLayer):
        return eqx.tree_at(lambda m: m.head.w2, model, model.head.w2 / divisor)
    return Scaled(model, divisor)


# Settings of each kind of teacher, besides key and noise.
_VECTOR, _MATRIX = ("features", "hidden", "sharpness", "gain"), ("attention", "gain")
_SETTINGS: dict[str, tuple[str, ...]] = {
    "static-mask": (*_VECTOR, "relevant"),
    "gate": (*_VECTOR, "relevant"),
    "moving-block": (*_VECTOR, "relevant"),
    "dense": _VECTOR,
    "self-attention": _MATRIX,
    "mlp": _MATRIX,
    "multi-layer": (*_MATRIX, "depth", "residual"),
}
TEACHER_KINDS = tuple(_SETTINGS)


def make_teacher(
    kind: str,
    *,
    key: Key[Array, ""],
    noise_std: float = 0.2,
    inputs: str = "normal",
    **settings: Any,
) -> Teacher:
    """Draw a teacher by the protocol of docs/theory.md#b2.

    On vectors of ``features`` (16) numbers, with ``hidden`` (4) units and ``sharpness`` τ (4):

    - ``"static-mask"``, ``"gate"``: known attention to ``relevant`` features, a number (4, the first
      ones) or a tuple;
    - ``"moving-block"``: known attention to the ``relevant`` features that follow the largest one;
    - ``"dense"``: the baseline on all features.

    On matrices, with the sizes of ``attention`` (docs/theory.md#b2: t=4, p=5, d_q=2, d_v=3, d=6,
    τ=4, logits over d_q):

    - ``"self-attention"``, and ``"multi-layer"`` of ``depth`` (2) layers, with ``residual`` (True)
      or without;
    - ``"mlp"``: the baseline on ``vec(x)``, with d hidden units.

    The head: entries of w₁ are ``gain``·N(0, 1/s), s the number of inputs that matter (relevant
    ones, all, or p·d_v); the gain is 2, but 1 after self-attention; w₂ is +1, −1, +1, … before
    normalisation. A setting that the kind does not use is an error. ``inputs``: see `Inputs`.

    >>> teacher = make_teacher("gate", key=jax.random.key(0), features=32, relevant=4)
    >>> teacher.model.mask, round(teacher.bayes_error, 9)
    (Gate(relevant=(0, 1, 2, 3), features=32), 0.04)
    """
    model_key, calibration_key = jax.random.split(key)
    model, shape = _draw_model(kind, model_key, 1, settings)
    return Teacher.of(model, key=calibration_key, shape=shape, noise_std=noise_std, inputs=inputs)


def make_label_teacher(
    kind: str,
    *,
    key: Key[Array, ""],
    classes: int = 2,
    label_noise: float = 0.0,
    centred: bool = True,
    inputs: str = "normal",
    **settings: Any,
) -> LabelTeacher:
    """Draw a teacher that labels by the sign or the argmax of a model of ``make_teacher``.

    Two classes take the sign of one output; more take the argmax of as many, with w₂ ~ N(0, 1).

    >>> teacher = make_label_teacher("dense", key=jax.random.key(0), features=8, label_noise=0.1)
    >>> x, y = teacher.sample(1000, key=jax.random.key(1))
    >>> bool(0.3 < y.mean() < 0.7), bool(0.06 < (y != teacher.truth(x)).mean() < 0.14)
    (True, True)
    """
    if classes < 2:
        raise AttnlabError(f"classes={classes}: expected at least 2")
    model_key, calibration_key = jax.random.split(key)
    model, shape = _draw_model(kind, model_key, 1 if classes == 2 else classes, settings)
    return LabelTeacher.of(
        model,
        key=calibration_key,
        shape=shape,
        label_noise=label_noise,
        centred=centred,
        inputs=inputs,
    )


def _draw_model(
    kind: str, key: Key[Array, ""], outputs: int, settings: dict[str, Any]
) -> tuple[Any, tuple[int, ...]]:
    """A model before it is normalised, and the shape of its inputs."""
    if kind not in _SETTINGS:
        raise AttnlabError(
            f"kind={kind!r}: no such teacher; the kinds are {', '.join(map(repr, TEACHER_KINDS))}"
        )
    unused = [name for name in settings if name not in _SETTINGS[kind]]
    if unused:
        raise AttnlabError(
            f"{unused[0]}={settings[unused[0]]!r}: a teacher of kind {kind!r} does not use it; its "
            f"settings are {', '.join(_SETTINGS[kind])}"
        )
    if "attention" in _SETTINGS[kind]:
        return _matrix_model(kind, key, outputs, **settings)
    return _vector_model(kind, key, outputs, **settings)


def _vector_model(
    kind: str,
    key: Key[Array, ""],
    outputs: int,
    *,
    features: int = 16,
    relevant: int | np.integer | tuple[int, ...] = 4,
    hidden: int = 4,
    sharpness: float = 4.0,
    gain: float = 2.0,
) -> tuple[Any, tuple[int, ...]]:
    sizes = BaselineConfig(features, hidden, outputs, sharpness)
    if kind == "dense":
        return _head(key, sizes, features, gain), (features,)
    mask = _mask(kind, features, relevant)
    count = mask.length if isinstance(mask, MovingBlock) else len(mask.relevant)
    return KnownAttention(_head(key, sizes, count, gain), mask), (features,)


def _mask(
    kind: str, features: int, relevant: int | np.integer | tuple[int, ...]
) -> StaticMask | Gate | MovingBlock:
    if kind == "moving-block":
        if not isinstance(relevant, int | np.integer):
            raise AttnlabError(
                f"relevant={relevant}: a moving block has no fixed place; give its length"
            )
        return MovingBlock(int(relevant), features)
    chosen = tuple(range(relevant)) if isinstance(relevant, int | np.integer) else tuple(relevant)
    return StaticMask(chosen, features) if kind == "static-mask" else Gate(chosen, features)


def _matrix_model(
    kind: str,
    key: Key[Array, ""],
    outputs: int,
    *,
    attention: SelfAttentionConfig = TEACHER_ATTENTION,
    gain: float | None = None,
    depth: int = 2,
    residual: bool = True,
) -> tuple[Any, tuple[int, ...]]:
    shape = (attention.embedding_dim, attention.words)
    base = replace(attention, outputs=outputs)
    if kind == "mlp":
        sizes = base.head(base.embedding_dim)
        return _head(key, sizes, sizes.numbers, 2.0 if gain is None else gain), shape
    drawn = (
        base.init(key)
        if kind == "self-attention"
        else MultiLayerConfig(base, depth, residual).init(key)
    )
    sizes = base.head(base.value_dim)
    head = _head(key, sizes, sizes.numbers, 1.0 if gain is None else gain)
    return eqx.tree_at(lambda model: model.head, drawn, head), shape


def _head(key: Key[Array, ""], sizes: BaselineConfig, count: int, gain: float) -> Baseline:
    """w₁ ~ ``gain``·N(0, 1/count); w₂ of alternating signs, or normal for several outputs."""
    if not 0 < gain < math.inf:
        raise AttnlabError(f"gain={gain}: expected a number > 0")
    first, second = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
    w1 = normal(first, (sizes.numbers, sizes.hidden), gain / math.sqrt(count))
    if sizes.outputs > 1:
        return Baseline(w1, normal(second, (sizes.hidden, sizes.outputs)), sizes.sharpness)
    return Baseline(w1, jnp.asarray((-1.0) ** np.arange(sizes.hidden))[:, None], sizes.sharpness)
