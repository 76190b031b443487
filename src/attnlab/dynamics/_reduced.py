"""The reduced model of training (docs/theory.md#a5; Lu et al. 2021, section 4).

One pseudo-sentence per topic word, with the word and m null words, replaces all sentences that
contain the word: d + 1 numbers per word, and the head, instead of a data set. Its trajectory is a
prediction before any training.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int, Key, PyTree

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.models import AbstractHead, Part, TwoLayerHead, WordAttention, WordAttentionConfig
from attnlab.training import At, Every, Logarithmic

Schedule = Every | Logarithmic | At
State = dict[str, PyTree]
# Gradient evaluations per Tsit5 step: of its seven stages, the last is the first of the next step.
_STAGES = 6


class ReducedModel(eqx.Module):
    """``L = Σ_t P_t·CE(head(a_t ν_t), label_t)`` with ``a_t = e^{s_t} / (e^{s_t} + m_t)``.

    - ``embeddings`` ν: (words, d), ``scores`` s: (words,), ``head``: the initial values;
    - ``query_norm`` |q|, ``labels``: (words,), ``frequency`` P_t: (words,), the share of all
      sentences that contain the word (the shares need not sum to one), ``others`` m_t: (words,), the
      number of other words in its sentences;
    - ``trained``: the trained parts; ``names``: the words.

    Constructed by ``of`` from a model, or by ``for_task`` without any data.
    """

    embeddings: Float[Array, "words d"]
    scores: Float[Array, "words"]
    head: AbstractHead
    query_norm: Float[Array, ""]
    labels: Int[Array, "words"]
    frequency: Float[Array, "words"]
    others: Float[Array, "words"]
    trained: tuple[Part, ...] = eqx.field(static=True, default=("embeddings", "keys"))
    names: tuple[str, ...] = eqx.field(static=True, default=())

    @classmethod
    def of(
        cls,
        model: WordAttention,
        *,
        words: Iterable[int | np.integer],
        labels: Any,
        frequency: Any,
        others: Any,
        names: Sequence[str] | None = None,
    ) -> ReducedModel:
        """The reduced model of some words of a model, usually an initial one.

        ``labels``, ``frequency`` and ``others`` hold one number per word, or one for all. Frozen
        keys or embeddings stay constant; a trained query is outside the theory.

        >>> model = WordAttentionConfig(words=50, classes=2, query_norm=1.0).init(jax.random.key(0))
        >>> reduced = ReducedModel.of(model, words=[0, 1], labels=[0, 1], frequency=0.5, others=20)
        >>> reduced.embeddings.shape, reduced.attention.round(4).tolist()
        ((2, 10), [0.0476, 0.0476])
        """
        if "query" in model.trained:
            raise AttnlabError(
                "the query is trained: the reduced model has ds = −|q|² ∂L/∂s with |q| constant; "
                "train any of embeddings, keys and head, and leave the query frozen"
            )
        if not model.trained:
            raise AttnlabError(
                "no part of the model is trained: expected at least one of embeddings, keys and "
                "head"
            )
        chosen = _checked_words(words, model.embeddings.shape[0])
        model = jax.tree.map(_doubled, model)
        classes = jax.eval_shape(model.head, model.embeddings[0]).shape[0]
        return cls(
            embeddings=model.embeddings[chosen],
            scores=model.scores()[chosen],
            head=model.head,
            query_norm=jnp.linalg.norm(model.query),
            labels=_checked_labels(labels, len(chosen), classes),
            frequency=_per_word("frequency", frequency, len(chosen), positive=True),
            others=_per_word("others", others, len(chosen), positive=False),
            trained=model.trained,
            names=_checked_names(names, len(chosen)),
        )

    @classmethod
    def for_task(
        cls,
        task: TopicTask,
        *,
        key: Key[Array, ""],
        frequency: Any = None,
        others: Any = None,
        **config: Any,
    ) -> ReducedModel:
        """The topic words of a task, initialised by ``WordAttentionConfig(**config)``, without data.

        Only the topic words' embeddings are drawn. They, the query and the head equal those that
        ``config.init(key)`` draws for the whole dictionary. ``frequency`` and ``others`` are those
        of the population by default.

        >>> reduced = ReducedModel.for_task(TopicTask(), key=jax.random.key(0), query_norm=1.0)
        >>> reduced.names[:3], reduced.frequency[0].item(), reduced.head_trained
        (('topic0.word0', 'topic0.word1', 'topic1.word0'), 0.125, False)
        """
        ids = task.topic_word_ids
        model = WordAttentionConfig(words=len(ids), classes=task.topics, **config).init(key)
        return cls.of(
            model,
            words=ids,
            labels=task.topic_of_word[ids],
            frequency=task.word_frequency if frequency is None else frequency,
            others=task.noise_words if others is None else others,
            names=task.vocabulary[: len(ids)],
        )

    @property
    def head_trained(self) -> bool:
        """Whether the head is trained."""
        return "head" in self.trained

    @property
    def attention(self) -> Float[Array, "words"]:
        """``a = e^s / (e^s + m)`` of each word."""
        return 1 / (1 + self.others * jnp.exp(-self.scores))

    def loss_of_words(self) -> Float[Array, "words"]:
        """Cross-entropy of each word's pseudo-sentence, with small relative error even near 0."""
        # −log softmax_y = log(1 + Σ_j e^{z_j − z_y}) over j ≠ y, without the cancellation of
        # logsumexp(z) − z_y when the label's logit is far ahead.
        return jax.nn.softplus(jax.nn.logsumexp(self._excess(), axis=1))

    def loss(self) -> Float[Array, ""]:
        """``Σ_t P_t·CE_t``."""
        return jnp.sum(self.frequency * self.loss_of_words())

    def margin(self) -> Float[Array, "words"]:
        """The label's logit minus the largest other one."""
        return -jnp.max(self._excess(), axis=1)

    def _excess(self) -> Float[Array, "words classes"]:
        """Each logit minus the label's; −∞ for the label itself."""
        logits = jax.vmap(self.head)(self.attention[:, None] * self.embeddings)
        own = self.labels[:, None] == jnp.arange(logits.shape[1], dtype=self.labels.dtype)[None, :]
        label_logit = jnp.sum(jnp.where(own, logits, 0.0), axis=1, keepdims=True)
        return jnp.where(own, -jnp.inf, logits - label_logit)

    def state(self) -> State:
        """The trained parts of embeddings, scores and head."""
        full = {
            "embeddings": self.embeddings,
            "keys": self.scores,
            "head": eqx.filter(self.head, eqx.is_inexact_array),
        }
        return {part: full[part] for part in self.trained}

    def at(self, state: State) -> ReducedModel:
        """The model with these values of its trained parts."""
        return ReducedModel(
            state.get("embeddings", self.embeddings),
            state.get("keys", self.scores),
            eqx.combine(state["head"], self.head) if self.head_trained else self.head,
            self.query_norm,
            self.labels,
            self.frequency,
            self.others,
            self.trained,
            self.names,
        )

    def velocity(self, state: State) -> State:
        """``dν = −∂L/∂ν``, ``ds = −|q|² ∂L/∂s``, ``dW = −∂L/∂W``."""
        gradient = jax.grad(lambda moved: self.at(moved).loss())(state)
        # A score s = q·κ moves by its key: ds = q·dκ = −|q|² ∂L/∂s.
        if "keys" in gradient:
            gradient["keys"] = self.query_norm**2 * gradient["keys"]
        return jax.tree.map(jnp.negative, gradient)


def _row(model: ReducedModel) -> dict[str, Array]:
    return {
        "loss": model.loss(),
        "score": model.scores,
        "norm": jnp.linalg.norm(model.embeddings, axis=1),
        "attention": model.attention,
        "margin": model.margin(),
    }


def flow_rows(
    model: ReducedModel, times: Float[Array, "rows"], rtol: Any, atol: Any, max_steps: int
) -> tuple[dict[str, Array], Array, Array]:
    """Rows at the times, number of gradient evaluations, success; pure, for ``jit`` and ``vmap``.

    The flow is integrated in u = log(1 + τ): ``dθ/du = e^u dθ/dτ``. Late training proceeds at a
    constant rate in u, so that an adaptive step reaches τ = 1e12.
    """

    def velocity(u: Any, state: State, args: Any) -> State:
        del args
        return jax.tree.map(lambda v: jnp.exp(u) * v, model.velocity(state))

    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(velocity),  # pyright: ignore[reportArgumentType]
        diffrax.Tsit5(),
        t0=0.0,
        t1=jnp.log1p(times[-1]),
        dt0=None,
        y0=model.state(),
        saveat=diffrax.SaveAt(ts=jnp.log1p(times), fn=lambda u, state, args: _row(model.at(state))),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
        max_steps=max_steps,
        throw=False,
    )
    reached = solution.result == diffrax.RESULTS.successful
    return solution.ys, solution.stats["num_steps"] * _STAGES + 1, reached  # pyright: ignore[reportReturnType]


def descent_rows(
    model: ReducedModel, steps: Int[Array, "rows"], step_size: Any
) -> dict[str, Array]:
    """Rows at the steps of gradient descent; pure, for ``jit`` and ``vmap``."""

    def move(_: Any, state: State) -> State:
        return jax.tree.map(lambda x, v: x + step_size * v, state, model.velocity(state))

    def to_row(
        carry: tuple[State, Array], stop: Array
    ) -> tuple[tuple[State, Array], dict[str, Array]]:
        state, at = carry
        state = jax.lax.fori_loop(at, stop, move, state)
        return (state, stop), _row(model.at(state))

    _, rows = jax.lax.scan(to_row, (model.state(), jnp.zeros_like(steps[0])), steps)
    return rows


_flow = partial(jax.jit, static_argnames="max_steps")(flow_rows)
_descent = jax.jit(descent_rows)


def reduced_flow(
    model: ReducedModel,
    times: Any,
    *,
    rtol: float = 1e-8,
    atol: float = 1e-10,
    max_steps: int = 10_000,
) -> xr.Dataset:
    """The gradient flow of the reduced model at the given times, up to 1e12 and beyond.

    Returns ``score``, ``norm``, ``attention`` and ``margin`` (time, word), ``loss`` (time,), the
    number of ``gradient_evaluations``, and ``success``; rows that the integrator did not reach are
    nan.

    Adaptive Tsit5 in log time. For a two-layer head use ``reduced_descent``: an adaptive step stalls
    at the kinks of ReLU.

    >>> model = ReducedModel.for_task(TopicTask(), key=jax.random.key(0), query_norm=1.0)
    >>> run = reduced_flow(model, [0.0, 500.0, 1e12])
    >>> dict(run.score.sizes), bool(run.success), bool((run.attention[-1] > 0.9).all())
    ({'time': 3, 'word': 8}, True, True)
    """
    if isinstance(model.head, TwoLayerHead):
        raise AttnlabError(
            "the two-layer head has ReLU kinks, at which an adaptive integrator stalls; "
            "use reduced_descent(model, steps, step_size=…)"
        )
    for name, value in (("rtol", rtol), ("atol", atol), ("max_steps", max_steps)):
        if not value > 0:
            raise AttnlabError(f"{name}={value}: expected a number > 0")
    at = _checked_times(times)
    rows, evaluations, success = _flow(
        _nameless(model), jnp.asarray(at), float(rtol), float(atol), max_steps=max_steps
    )
    finite = {name: np.where(np.isfinite(values), values, np.nan) for name, values in rows.items()}
    data = _dataset(finite, "time", {"time": ("time", at)}, model)
    data["gradient_evaluations"], data["success"] = int(evaluations), bool(success)
    return data.assign_attrs(rtol=float(rtol), atol=float(atol))


def reduced_descent(
    model: ReducedModel,
    steps: int,
    *,
    step_size: float = 0.1,
    when: Schedule = Every(10),  # noqa: B008  (frozen)
) -> xr.Dataset:
    """Gradient descent on the reduced model, with any head: ``θ ← θ + step_size·velocity``.

    Returns ``score``, ``norm``, ``attention`` and ``margin`` (step, word) and ``loss`` (step,),
    with the coordinate ``time = step·step_size``, at the steps that ``train`` records with the same
    ``when``.

    >>> model = ReducedModel.for_task(TopicTask(), key=jax.random.key(0), head="two_layer", query_norm=1.0)
    >>> run = reduced_descent(model, 5000, when=Every(1000))
    >>> run.time.values.tolist(), bool((run.score[-1] > 0.5).all())
    ([0.0, 100.0, 200.0, 300.0, 400.0, 500.0], True)
    """
    if steps < 0:
        raise AttnlabError(f"steps={steps}: expected a number ≥ 0")
    if not step_size > 0:
        raise AttnlabError(f"step_size={step_size}: expected a number > 0")
    recorded = when.steps(int(steps))
    rows = _descent(_nameless(model), jnp.asarray(recorded), float(step_size))
    coords = {"step": ("step", recorded), "time": ("step", recorded * float(step_size))}
    values = {name: np.asarray(column) for name, column in rows.items()}
    return _dataset(values, "step", coords, model).assign_attrs(step_size=float(step_size))


def _nameless(model: ReducedModel) -> ReducedModel:
    """Without names, so that models of equal size share one compiled program."""
    return dataclasses.replace(model, names=())


def _dataset(
    rows: dict[str, np.ndarray], dim: str, coords: dict[str, Any], model: ReducedModel
) -> xr.Dataset:
    if model.names:
        coords = coords | {"word": ("word", np.asarray(model.names))}
    data = {
        name: ((dim, "word") if values.ndim == 2 else (dim,), values)
        for name, values in rows.items()
    }
    return xr.Dataset(data, coords).assign(query_norm=float(model.query_norm))


def _doubled(leaf: Any) -> Any:
    """As float64 on the device; models of a trajectory hold NumPy arrays, possibly float32."""
    array = jnp.asarray(leaf)
    return array.astype(jnp.float64) if eqx.is_inexact_array(array) else array


def _checked_words(words: Iterable[int | np.integer], count: int) -> Int[np.ndarray, "chosen"]:
    chosen = np.asarray(list(words))
    if (
        chosen.size == 0
        or not np.issubdtype(chosen.dtype, np.integer)
        or chosen.min() < 0
        or chosen.max() >= count
    ):
        raise AttnlabError(
            f"words={chosen.tolist()}: expected one or more word numbers in 0..{count - 1}; "
            "corpus.word_ids converts words to numbers"
        )
    return chosen


def _checked_labels(given: Any, words: int, classes: int) -> Int[Array, "words"]:
    labels = np.asarray(given)
    if not np.issubdtype(labels.dtype, np.integer) or labels.shape not in ((), (words,)):
        raise AttnlabError(
            f"labels={given!r}: expected one class number for each of the {words} words"
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise AttnlabError(
            f"labels lie in {labels.min()}..{labels.max()}; expected classes of the head, "
            f"0..{classes - 1}"
        )
    return jnp.asarray(np.broadcast_to(labels, (words,)), jnp.int32)


def _per_word(name: str, given: Any, words: int, *, positive: bool) -> Float[Array, "words"]:
    values = np.asarray(given, np.float64)
    if values.shape not in ((), (words,)):
        raise AttnlabError(
            f"{name} has shape {values.shape}: expected one number, or one for each of {words} "
            "words"
        )
    if not np.isfinite(values).all() or values.min() < 0 or (positive and values.min() == 0):
        raise AttnlabError(
            f"{name}={values.tolist()}: expected finite numbers {'above 0' if positive else '≥ 0'}"
        )
    return jnp.asarray(np.broadcast_to(values, (words,)))


def _checked_names(names: Sequence[str] | None, words: int) -> tuple[str, ...]:
    if names is not None and len(names) != words:
        raise AttnlabError(
            f"got {len(names)} names for {words} words; give one name per word, or none"
        )
    return tuple(names or ())


def _checked_times(times: Any) -> Float[np.ndarray, "rows"]:
    at = np.asarray(times, np.float64)
    if (
        at.ndim != 1
        or at.size == 0
        or not np.isfinite(at).all()
        or at[0] < 0
        or (np.diff(at) <= 0).any()
    ):
        raise AttnlabError(
            "times must be a list of finite, strictly increasing numbers ≥ 0; the flow starts at "
            "time 0"
        )
    if at[-1] == 0:
        raise AttnlabError("times ends at 0: expected at least one time after the start")
    return at
