r"""Every line of every derivation, checked with numbers by NumPy alone.

A check is bound to the formula that the page shows: an edited formula has no check until one is
written. It returns both sides and a wrong right side, which must be told apart. Derivatives are
complex steps, ``∂f/∂x = Im f(x + ih)/h``, exact to rounding; the model is written again here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from attnlab.papers.lu2021.derivations import DERIVATIONS

Sides = Sequence[Any]  # left side, right side, and a right side that is wrong
Rest = Callable[[np.ndarray], np.ndarray]

_CHECKS: dict[tuple[str, str], tuple[Callable[[], Sides], float]] = {}
_H = 1e-30  # complex step
_WORD = 0  # the word that the relation is about
_TOPIC_WORDS, _OTHERS = 3, 3  # topic words of the quiet data, and other words of a sentence: m
_STEP = 0.7  # of gradient descent, large on purpose: what holds exactly holds for any step


def check(
    derivation: str, latex: str, tolerance: float = 1e-12
) -> Callable[[Callable[[], Sides]], Callable[[], Sides]]:
    """Registers the check of a line; ``tolerance`` is relative to the largest entry of the left."""

    def register(function: Callable[[], Sides]) -> Callable[[], Sides]:
        assert (derivation, latex) not in _CHECKS, f"two checks of {latex!r}"
        _CHECKS[derivation, latex] = (function, tolerance)
        return function

    return register


LINES = [(d.id, line.latex) for d in DERIVATIONS for line in d.lines]


def test_every_line_has_a_check():
    assert sorted(_CHECKS) == sorted(LINES)


@pytest.mark.parametrize(("derivation", "latex"), LINES)
def test_a_line_holds_and_a_wrong_one_is_told_apart(derivation: str, latex: str):
    function, tolerance = _CHECKS[derivation, latex]
    left, right, wrong = (np.asarray(side, dtype=float) for side in function())
    scale = max(np.abs(left).max(), np.abs(wrong).max())  # the left may be zero
    assert left.shape == right.shape == wrong.shape
    assert np.abs(left - right).max() <= tolerance * scale
    assert np.abs(left - wrong).max() > max(1e3 * tolerance, 1e-3) * scale


@pytest.mark.parametrize("derivation", DERIVATIONS, ids=lambda one: one.id)
def test_a_derivation_is_short_and_says_why(derivation: Any):
    assert 4 <= len(derivation.lines) <= 8
    for line in derivation.lines:
        assert line.words.endswith(".")
        assert len(line.words.split()) >= 6


# The model, written again


@dataclass(frozen=True)
class Model:
    """Word attention: embeddings E (V×d), keys K (V×k), a query, a head with the first layer W and
    the ``rest``, and labelled sentences.
    """

    E: np.ndarray
    K: np.ndarray
    q: np.ndarray
    W: np.ndarray
    sentences: np.ndarray  # sentence × place: numbers of words
    labels: np.ndarray
    rest: Rest

    @property
    def scores(self) -> np.ndarray:
        return self.K @ self.q

    @property
    def query_square(self) -> float:
        return float(self.q @ self.q)


def linear(projected: np.ndarray) -> np.ndarray:
    """Nothing behind the first layer."""
    return projected


def bent(projected: np.ndarray) -> np.ndarray:
    """A second layer."""
    return np.tanh(projected) @ np.array([[1.0, -0.4, 0.3], [0.2, 1.1, -0.5], [-0.6, 0.1, 0.9]])


@cache
def model(rest: Rest = bent) -> Model:
    """Seven words, six sentences of four words; the first word is in four of them."""
    draw = np.random.default_rng(7)
    sentences = np.array(
        [[0, 2, 3, 4], [0, 3, 5, 6], [0, 1, 4, 5], [1, 2, 3, 6], [0, 2, 5, 6], [1, 3, 4, 6]]
    )
    return Model(
        E=draw.normal(size=(7, 3)),
        K=0.3 * draw.normal(size=(7, 2)),
        q=np.array([0.8, -0.7]),
        W=draw.normal(size=(3, 3)),
        sentences=sentences,
        labels=np.array([0, 1, 2, 1, 0, 2]),
        rest=rest,
    )


@cache
def quiet() -> Model:
    """What the reduced model assumes: one topic word in each sentence, and three words whose scores
    and embeddings are zero. The scores of topic words start at zero, too.
    """
    m = model()
    sentences = np.array(
        [[0, 3, 4, 5], [0, 4, 5, 6], [1, 3, 5, 6], [2, 3, 4, 6], [0, 3, 5, 6], [1, 3, 4, 5]]
    )
    E = np.where(np.arange(7)[:, None] < _TOPIC_WORDS, m.E, 0.0)
    labels = sentences[:, 0]
    return replace(m, E=E, K=np.zeros((7, 2)), sentences=sentences, labels=labels)


@cache
def quiet_later() -> Model:
    """The same with scores that have grown."""
    m = quiet()
    return replace(m, K=np.where(np.arange(7)[:, None] < _TOPIC_WORDS, model().K, 0.0))


def attention(m: Model, s: np.ndarray | None = None) -> np.ndarray:
    """Sentence × place."""
    e = np.exp((m.scores if s is None else s)[m.sentences])
    return e / e.sum(1, keepdims=True)


def contexts(m: Model, s: np.ndarray | None = None) -> np.ndarray:
    return np.einsum("np,npd->nd", attention(m, s), m.E[m.sentences])


def cross_entropy(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of each row; also of complex logits."""
    own = logits[np.arange(len(labels)), labels]
    return np.log(np.exp(logits).sum(1)) - own


def loss_of_contexts(m: Model, c: np.ndarray) -> np.ndarray:
    return cross_entropy(m.rest(c @ m.W), m.labels).mean()


def loss(m: Model) -> np.ndarray:
    return loss_of_contexts(m, contexts(m))


def gradient(of: Callable[[np.ndarray], Any], x: np.ndarray) -> np.ndarray:
    """∂of/∂x by complex steps; entries of ``of`` come first."""
    columns = []
    for place in np.ndindex(x.shape):
        moved = x.astype(complex)
        moved[place] += 1j * _H
        columns.append(np.imag(of(moved)) / _H)
    found = np.array(columns)
    return np.moveaxis(found, 0, -1).reshape(*found.shape[1:], *x.shape)


def descent(m: Model, name: str) -> np.ndarray:
    """−∂L by one part of the model."""
    return -gradient(lambda x: loss(replace(m, **{name: x})), getattr(m, name))


def context_forces(m: Model) -> np.ndarray:
    """g_n = −∂L/∂c_n, sentence by sentence."""
    return -gradient(lambda c: loss_of_contexts(m, c), contexts(m))


def word_attention(m: Model, word: int = _WORD) -> np.ndarray:
    """The word's attention in each sentence, 0 where it is not."""
    return np.where(m.sentences == word, attention(m), 0.0).sum(1)


def other_contexts(m: Model, word: int = _WORD) -> np.ndarray:
    """The context of the other words of each sentence, by a softmax without the word."""
    e = np.where(m.sentences == word, 0.0, np.exp(m.scores[m.sentences]))
    return np.einsum("np,npd->nd", e / e.sum(1, keepdims=True), m.E[m.sentences])


def along(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The inner product of each row."""
    return (x * y).sum(-1)


def batch(m: Model, rule: str, k: int) -> Model:
    """With the sentences that step k of a rule sees: half of them with SGD."""
    seen = slice(k % 2, None, 2) if rule == "SGD" else slice(None)
    return replace(m, sentences=m.sentences[seen], labels=m.labels[seen])


def after_steps(
    m: Model, steps: int, trained: tuple[str, ...], rule: str = "descent"
) -> list[Model]:
    """The models that gradient descent, SGD on half of the sentences, momentum or Adam go through."""
    path, memory = [m], {name: np.zeros_like(getattr(m, name)) for name in trained}
    squares = {name: np.zeros_like(getattr(m, name)) for name in trained}
    for k in range(steps):
        now = path[-1]
        forces = {name: descent(batch(now, rule, k), name) for name in trained}
        moved = {}
        for name, force in forces.items():
            kept = {"momentum": 0.9, "Adam": 0.9}.get(rule, 0.0)
            memory[name] = kept * memory[name] + force
            squares[name] = 0.9 * squares[name] + force**2
            way = memory[name] / (np.sqrt(squares[name]) + 1e-8) if rule == "Adam" else memory[name]
            moved[name] = getattr(now, name) + _STEP * way
        path.append(replace(now, **moved))
    return path


def flow(
    m: Model, time: float, steps: int, trained: tuple[str, ...], words: int = 7
) -> list[Model]:
    """Gradient flow by the classical Runge–Kutta method; only the first words move."""
    h, path = time / steps, [m]
    first = np.arange(len(m.E))[:, None] < words

    def slope(at: Model) -> dict[str, np.ndarray]:
        found = {name: descent(at, name) for name in trained}
        return {name: one if name == "W" else one * first for name, one in found.items()}

    def ahead(at: Model, slopes: dict[str, np.ndarray], part: float) -> Model:
        return replace(at, **{name: getattr(at, name) + part * v for name, v in slopes.items()})

    for _ in range(steps):
        now = path[-1]
        k1 = slope(now)
        k2 = slope(ahead(now, k1, h / 2))
        k3 = slope(ahead(now, k2, h / 2))
        k4 = slope(ahead(now, k3, h))
        mean = {name: (k1[name] + 2 * k2[name] + 2 * k3[name] + k4[name]) / 6 for name in trained}
        path.append(ahead(now, mean, h))
    return path


# The relation of score and norm


@check("lu2021.sen", r"c_n = \sum_{u \in n} a_{u,n}\,\nu_u")
def context_is_a_weighted_mean() -> Sides:
    m = model()
    table = np.zeros((len(m.sentences), len(m.E)))  # attention of every word in every sentence
    for n, words in enumerate(m.sentences):
        weights = [float(np.exp(m.K[w] @ m.q)) for w in words]
        for w, weight in zip(words, weights, strict=True):
            table[n, w] = weight / sum(weights)
    return contexts(m), table @ m.E, np.sign(table) @ m.E / 4


@check(
    "lu2021.sen",
    r"\frac{\mathrm{d}\nu}{\mathrm{d}\tau} = \sum_n a_n\, g_n, \qquad "
    r"g_n = -\frac{\partial L}{\partial c_n}",
)
def embedding_follows_the_forces() -> Sides:
    m = model()
    a, g = word_attention(m), context_forces(m)
    return descent(m, "E")[_WORD], a @ g, (a > 0) @ g


@check("lu2021.sen", r"\frac{\partial c_n}{\partial s} = a_n\,(\nu - c_n)")
def context_by_the_score() -> Sides:
    m = model()
    a, nu = word_attention(m)[:, None], m.E[_WORD]
    left = gradient(lambda s: contexts(m, s), m.scores)[..., _WORD]
    return left, a * (nu - contexts(m)), a * nu


@check(
    "lu2021.sen", r"\frac{\mathrm{d}s}{\mathrm{d}\tau} = |q|^2 \sum_n a_n\,(\nu - c_n) \cdot g_n"
)
def score_follows_its_key() -> Sides:
    m = model()
    pull = word_attention(m) @ along(m.E[_WORD] - contexts(m), context_forces(m))
    left = m.q @ descent(m, "K")[_WORD]
    return left, m.query_square * pull, np.sqrt(m.query_square) * pull


@check("lu2021.sen", r"\nu - c_n = (1 - a_n)\,(\nu - o_n)")
def context_lies_between() -> Sides:
    m = model()
    apart = m.E[_WORD] - other_contexts(m)
    return m.E[_WORD] - contexts(m), (1 - word_attention(m))[:, None] * apart, apart


@check(
    "lu2021.sen",
    r"\frac{\mathrm{d}s}{\mathrm{d}\tau} = |q|^2\,(1 - a)\; \nu \cdot "
    r"\frac{\mathrm{d}\nu}{\mathrm{d}\tau}",
)
def score_by_the_embedding() -> Sides:
    m = quiet_later()
    a = word_attention(m)[0]
    right = m.query_square * (m.E[_WORD] @ descent(m, "E")[_WORD])
    return m.q @ descent(m, "K")[_WORD], (1 - a) * right, right


@check(
    "lu2021.sen",
    r"\left(1 + \frac{e^s}{m}\right) \frac{\mathrm{d}s}{\mathrm{d}\tau} = "
    r"\frac{|q|^2}{2}\,\frac{\mathrm{d}|\nu|^2}{\mathrm{d}\tau}",
)
def both_rates() -> Sides:
    m = quiet_later()
    pace = m.q @ descent(m, "K")[_WORD]
    grown = np.exp(m.scores[_WORD])
    # d|ν|²/dτ by a complex step in time, along the flow of the embedding
    moved = m.E[_WORD] + 1j * _H * descent(m, "E")[_WORD]
    right = m.query_square / 2 * np.imag((moved**2).sum()) / _H
    # The wrong one takes the word itself for one of the others.
    left, wrong = (
        (1 + grown / _OTHERS) * pace,
        right * (1 + grown / _OTHERS) / (1 + grown / (_OTHERS + 1)),
    )
    return left, right, wrong


@cache
def quiet_flow() -> list[Model]:
    """The flow of the topic words; the other words keep what the reduced model assumes."""
    return flow(quiet(), 12.0, 120, ("E", "K"), words=_TOPIC_WORDS)


@check(
    "lu2021.sen",
    r"s + \frac{e^s - 1}{m} = \frac{|q|^2}{2} \left(|\nu|^2 - |\nu_0|^2\right)",
    tolerance=1e-7,  # of the integration
)
def relation_along_the_flow() -> Sides:
    path = quiet_flow()
    s = np.array([m.scores[_WORD] for m in path])
    norm = np.array([m.E[_WORD] @ m.E[_WORD] for m in path])
    right = 0.5 * path[0].query_square * (norm - norm[0])
    assert s[-1] > 0.5  # it has moved
    return s + np.expm1(s) / _OTHERS, right, 1.2**2 * right


# The identity of each step


@cache
def steps_of(rule: str) -> list[Model]:
    """Twelve steps of a rule from the same start, keys and embeddings and first layer trained."""
    return after_steps(model(), 12, ("E", "K", "W"), rule)


def changes() -> tuple[Model, np.ndarray, float]:
    """A model, and what one step of descent does to a word's embedding and score."""
    before, after = steps_of("descent")[:2]
    change = after.E[_WORD] - before.E[_WORD]
    return before, change, float(after.scores[_WORD] - before.scores[_WORD])


@check("laws.identity", r"\Delta\nu = \eta \sum_n a_n\, g_n")
def a_step_of_the_embedding() -> Sides:
    m, change, _ = changes()
    total = word_attention(m) @ context_forces(m)
    return change, _STEP * total, _STEP**2 * total


@check(
    "laws.identity",
    r"\tfrac{1}{2}|\nu + \Delta\nu|^2 - \tfrac{1}{2}|\nu|^2 = \nu \cdot \Delta\nu + "
    r"\tfrac{1}{2}|\Delta\nu|^2",
)
def a_step_of_the_square() -> Sides:
    m, change, _ = changes()
    nu, (_, after) = m.E[_WORD], steps_of("descent")[:2]
    left = 0.5 * (after.E[_WORD] @ after.E[_WORD] - nu @ nu)
    return left, nu @ change + 0.5 * change @ change, nu @ change


@check("laws.identity", r"\Delta s = \eta\,|q|^2 \sum_n a_n\,(\nu - c_n) \cdot g_n")
def a_step_of_the_score() -> Sides:
    m, _, change = changes()
    a, g, nu = word_attention(m), context_forces(m), m.E[_WORD]
    pulls = [a @ along(nu - c, g) for c in (contexts(m), np.zeros((len(a), 3)))]
    right, wrong = (_STEP * m.query_square * pull for pull in pulls)
    return change, right, wrong


@check(
    "laws.identity",
    r"\Delta s = |q|^2 \left(\nu \cdot \Delta\nu - \eta \sum_n a_n\, c_n \cdot g_n\right)",
)
def a_step_of_both() -> Sides:
    m, change, of_score = changes()
    along_nu = m.E[_WORD] @ change
    shared = _STEP * word_attention(m) @ along(contexts(m), context_forces(m))
    return of_score, m.query_square * (along_nu - shared), m.query_square * (along_nu + shared)


@check(
    "laws.identity",
    r"s(T) - s(0) = |q|^2 \left[\tfrac{1}{2}\left(|\nu(T)|^2 - |\nu(0)|^2\right) - I_1 - "
    r"I_2\right]",
)
def the_identity() -> Sides:
    found = [_identity(rule) for rule in ("descent", "SGD")]
    return [np.array(sides) for sides in zip(*found, strict=True)]


def _identity(rule: str) -> tuple[float, float, float]:
    path = steps_of(rule)
    first, last = path[0], path[-1]
    i1 = i2 = 0.0
    for k, (m, after) in enumerate(pairwise(path)):
        change = after.E[_WORD] - m.E[_WORD]
        i1 += 0.5 * change @ change
        seen = batch(m, rule, k)
        i2 += _STEP * word_attention(seen) @ along(contexts(seen), context_forces(seen))
    half = 0.5 * (last.E[_WORD] @ last.E[_WORD] - first.E[_WORD] @ first.E[_WORD])
    square = first.query_square
    left = last.scores[_WORD] - first.scores[_WORD]
    return left, square * (half - i1 - i2), square * (half - i2)


@pytest.mark.parametrize("rule", ["momentum", "Adam"])
def test_other_rules_break_the_identity(rule: str):
    left, right, _ = _identity(rule)
    assert abs(left - right) > 0.01 * abs(left)


@check("laws.identity", r"c_n \cdot g_n = -\ell_n \cdot \frac{\partial L}{\partial \ell_n}")
def context_term_of_a_linear_head() -> Sides:
    m = model(linear)
    logits = contexts(m) @ m.W
    slopes = gradient(lambda z: cross_entropy(z, m.labels).mean(), logits)
    return along(contexts(m), context_forces(m)), -along(logits, slopes), along(logits, slopes)


# The sum of all scores


def loss_of_scores(m: Model, s: np.ndarray) -> np.ndarray:
    return loss_of_contexts(m, contexts(m, s))


@check("laws.score_sum", r"L(s + t\,\mathbf{1}) = L(s)")
def a_common_shift() -> Sides:
    m = model()
    return [loss_of_scores(m, s) for s in (m.scores + 0.9, m.scores, 1.9 * m.scores)]


@check("laws.score_sum", r"\sum_w \frac{\partial L}{\partial s_w} = 0")
def gradients_sum_to_zero() -> Sides:
    m = model()

    def unnormalised(s: np.ndarray) -> np.ndarray:
        c = np.einsum("np,npd->nd", np.exp(s[m.sentences]) / 4, m.E[m.sentences])
        return loss_of_contexts(m, c)

    left = gradient(lambda s: loss_of_scores(m, s), m.scores).sum()
    return left, 0.0, gradient(unnormalised, m.scores).sum()


@check("laws.score_sum", r"\Delta s_w = -\eta\,|q|^2\, \frac{\partial L}{\partial s_w}")
def every_score_moves_alike() -> Sides:
    before, after = steps_of("descent")[:2]
    slopes = gradient(lambda s: loss_of_scores(before, s), before.scores)
    right = -_STEP * before.query_square * slopes
    return after.scores - before.scores, right, right / before.query_square


@check("laws.score_sum", r"\sum_w s_w(T) = \sum_w s_w(0)")
def the_sum_stays() -> Sides:
    rules = ("descent", "SGD", "momentum")
    left = np.array([steps_of(rule)[-1].scores.sum() for rule in rules])
    start, adam = (steps_of("Adam")[k].scores.sum() for k in (0, -1))
    return left, np.full(3, start), np.full(3, adam)


# The balance of embeddings and head


def loss_of_projected(m: Model, U: np.ndarray) -> np.ndarray:
    pooled = np.einsum("np,npd->nd", attention(m), U[m.sentences])
    return cross_entropy(m.rest(pooled), m.labels).mean()


def projected_slope(m: Model) -> np.ndarray:
    """G = ∂L/∂U."""
    return gradient(lambda U: loss_of_projected(m, U), m.E @ m.W)


def both_sides_of_balance(m: Model) -> np.ndarray:
    G = projected_slope(m)
    return -(m.E.T @ G @ m.W.T + m.W @ G.T @ m.E)


@check("laws.balance", r"U = E\,W, \qquad L(E, W) = L(U)")
def only_the_product_counts() -> Sides:
    m, R = model(), np.array([[1.0, 0.4, 0.0], [-0.3, 0.8, 0.2], [0.1, 0.0, 1.3]])
    turned = replace(m, E=m.E @ R, W=np.linalg.solve(R, m.W))
    left = [loss(m), loss(turned)]
    return left, [loss_of_projected(m, m.E @ m.W)] * 2, [loss(replace(m, E=m.E @ R))] * 2


@check(
    "laws.balance",
    r"\frac{\partial L}{\partial E} = G\,W^\top, \qquad "
    r"\frac{\partial L}{\partial W} = E^\top G",
)
def gradients_share_a_factor() -> Sides:
    m = model()
    G = projected_slope(m)
    left = np.concatenate([-descent(m, "E"), -descent(m, "W")])
    return left, np.concatenate([G @ m.W.T, m.E.T @ G]), np.concatenate([G @ m.W, m.E.T @ G])


@check(
    "laws.balance",
    r"\frac{\mathrm{d}}{\mathrm{d}\tau} E^\top E = "
    r"-\left(E^\top G\,W^\top + W\,G^\top E\right)",
)
def rate_of_the_embeddings() -> Sides:
    m = model()
    moved = m.E + 1j * _H * descent(m, "E")
    right = both_sides_of_balance(m)
    return np.imag(moved.T @ moved) / _H, right, -m.E.T @ projected_slope(m) @ m.W.T


@check(
    "laws.balance",
    r"\frac{\mathrm{d}}{\mathrm{d}\tau} W\,W^\top = "
    r"-\left(E^\top G\,W^\top + W\,G^\top E\right)",
)
def rate_of_the_head() -> Sides:
    m = model()
    moved = m.W + 1j * _H * descent(m, "W")
    right = both_sides_of_balance(m)
    return np.imag(moved @ moved.T) / _H, right, -right


@check("laws.balance", r"E^\top E - W\,W^\top = \mathrm{const}", tolerance=1e-7)
def balance_along_the_flow() -> Sides:
    path = flow(model(), 6.0, 60, ("E", "W"))
    first, last = path[0], path[-1]
    left, right = (m.E.T @ m.E - m.W @ m.W.T for m in (last, first))
    return left, right, last.E.T @ last.E - first.W @ first.W.T


@check(
    "laws.balance",
    r"\Delta\left(E^\top E - W\,W^\top\right) = \eta^2 \left(W\,G^\top G\,W^\top - "
    r"E^\top G\,G^\top E\right)",
)
def balance_of_one_step() -> Sides:
    before, after = after_steps(model(), 1, ("E", "W"))
    G = projected_slope(before)
    left = (after.E.T @ after.E - after.W @ after.W.T) - (
        before.E.T @ before.E - before.W @ before.W.T
    )
    second = before.W @ G.T @ G @ before.W.T - before.E.T @ G @ G.T @ before.E
    return left, _STEP**2 * second, _STEP * second


# The reduced model


def reduced_attention(m: Model, others: float = _OTHERS) -> np.ndarray:
    grown = np.exp(m.scores[:_TOPIC_WORDS])
    return grown / (grown + others)


def reduced_loss(m: Model, c: np.ndarray, frequency: np.ndarray | None = None) -> np.ndarray:
    """Of the contexts of the topic words' pseudo-sentences."""
    counts = np.bincount(m.sentences[:, 0], minlength=_TOPIC_WORDS)
    share = counts / counts.sum() if frequency is None else frequency
    return share @ cross_entropy(m.rest(c @ m.W), np.arange(_TOPIC_WORDS))


def reduced_forces(m: Model) -> np.ndarray:
    c = reduced_attention(m)[:, None] * m.E[:_TOPIC_WORDS]
    return -gradient(lambda at: reduced_loss(m, at), c)


@check("lu2021.rate", r"a_t = \frac{e^{s_t}}{e^{s_t} + m}, \qquad c_n = a_t\,\nu_t")
def contexts_of_the_topic_word() -> Sides:
    m = quiet_later()
    topic = m.sentences[:, 0]
    right, wrong = (
        (reduced_attention(m, others)[:, None] * m.E[:_TOPIC_WORDS])[topic]
        for others in (_OTHERS, _OTHERS / 2)
    )
    return contexts(m), right, wrong


@check("lu2021.rate", r"L = \sum_t P_t\; \mathrm{CE}\left(\mathrm{head}(a_t\,\nu_t)\right)")
def loss_of_the_topic_words() -> Sides:
    m = quiet_later()
    c = reduced_attention(m)[:, None] * m.E[:_TOPIC_WORDS]
    return loss(m), reduced_loss(m, c), reduced_loss(m, c, np.full(_TOPIC_WORDS, 1 / _TOPIC_WORDS))


@check(
    "lu2021.rate",
    r"\frac{\mathrm{d}\nu_t}{\mathrm{d}\tau} = a_t\, f_t, \qquad "
    r"f_t = -\frac{\partial L}{\partial (a_t\nu_t)}",
)
def embeddings_of_the_reduced_model() -> Sides:
    m = quiet_later()
    f = reduced_forces(m)
    return descent(m, "E")[:_TOPIC_WORDS], reduced_attention(m)[:, None] * f, f


@check(
    "lu2021.rate",
    r"\frac{\mathrm{d}s_t}{\mathrm{d}\tau} = |q|^2\, a_t\,(1 - a_t)\; \nu_t \cdot f_t",
)
def scores_of_the_reduced_model() -> Sides:
    m = quiet_later()
    a = reduced_attention(m)
    pull = m.query_square * a * along(m.E[:_TOPIC_WORDS], reduced_forces(m))
    return (descent(m, "K") @ m.q)[:_TOPIC_WORDS], (1 - a) * pull, pull


@check(
    "lu2021.rate",
    r"\frac{\mathrm{d}}{\mathrm{d}\tau}\left[s_t + \frac{e^{s_t}}{m} - "
    r"\frac{|q|^2}{2}|\nu_t|^2\right] = 0",
)
def relation_is_a_first_integral() -> Sides:
    m = quiet_later()
    a, f, nu = reduced_attention(m), reduced_forces(m), m.E[:_TOPIC_WORDS]
    pull = a * along(nu, f)  # ν·dν of the reduced model
    pace, grown = m.query_square * (1 - a) * pull, np.exp(m.scores[:_TOPIC_WORDS])
    left = (1 + grown / _OTHERS) * pace - m.query_square * pull
    return left, np.zeros(3), pace - m.query_square * pull
