"""Where training on texts stopped: gradient, curvature, agreement of seeds, the way between two of
them, a polish.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from attnlab.data import Corpus, thinning
from attnlab.landscape import (
    Problem,
    certify,
    extremes,
    minimise,
    reduced_problem,
    straight_path,
    trace,
)
from attnlab.models import Incidence, LinearHead, WordAttention, pooled_logits
from attnlab.questions.texts._tables import PATH, Agreement, Ends, Polish

_TRIES = 6  # penalties tried
_ROUGH = 1e-6  # gradient with which a trial ends
_FEW, _STEPS = 300, 3000  # of L-BFGS, in a trial and in the end
_SHAKE = 0.05
_LOSS_NEAR = 0.01  # how near the polish must come to the training loss, relative


def compact_model(score: np.ndarray, table: np.ndarray, classes: int) -> WordAttention:
    """The word attention with these scores (words,) and this projected table (words, columns), as
    small as can be.

    Its key is the score itself and its query is 1; one column serves two classes, as the difference
    of their logits.

    >>> model = compact_model(np.array([0.0, 1.0]), np.array([[2.0], [-1.0]]), 2)
    >>> model.scores().tolist(), model.head(model.embeddings[0]).tolist()
    ([0.0, 1.0], [2.0, 0.0])
    """
    columns = table.shape[1]
    weight = np.eye(columns, classes)
    return WordAttention(
        jnp.asarray(table, jnp.float64),
        jnp.asarray(score, jnp.float64)[:, None],
        jnp.ones(1, jnp.float64),
        LinearHead(jnp.asarray(weight)),
    )


@dataclass(frozen=True, eq=False)
class Stopped:
    """What was found: data sets by name, and for one that is missing why."""

    data: dict[str, xr.Dataset]
    absent: dict[str, str]


def where_stopped(
    models: list[WordAttention],
    query_norms: list[float],
    train: Corpus,
    test: Corpus,
    seeds: list[int],
) -> Stopped:
    """Look at the models of several seeds, all in the coordinates of scores and projected table.

    Of more than 20 000 training texts so many, drawn once, stand for all; test texts are all looked
    at.

    Gradient and curvature are those of the training loss in the coordinates that descent moves:
    scores over |q|, and the table, an orthonormal column at a time. The path is the straight line
    between the first two seeds, scores and tables mixed. The polish is the stationary point that a
    penalty has near the first seed's end, at the same training loss.
    """
    words = int(train.counts.sum())
    train, _ = thinning.some_of(train, thinning.CURVATURE)
    problems = [
        _problem(model, norm, train) for model, norm in zip(models, query_norms, strict=True)
    ]
    answers = [_answers(model, test) for model in models]
    data = {
        Ends.label: _ends(problems, answers, test, seeds),
        Agreement.label: _agreement(answers, seeds),
    }
    absent: dict[str, str] = {}
    if len(models) > 1:
        data[PATH] = _path(models, query_norms[0], train)
    else:
        absent[PATH] = "one seed was trained; a way between two needs two"
    if words > thinning.POLISHED:
        absent[Polish.label] = (
            f"more than {thinning.POLISHED:,} training words: a polish to a stationary point would take too "
            "long"
        )
    else:
        data[Polish.label] = _polish(problems[0], train, test, seeds[0])
    return Stopped(data, absent)


def _problem(model: WordAttention, query_norm: float, train: Corpus, l2: float = 0.0) -> Problem:
    """The training loss; the query has the length that it had in training, so that the metric is
    descent's.
    """
    scaled = eqx.tree_at(
        lambda m: [m.query, m.keys],
        model,
        [jnp.full(1, query_norm, jnp.float64), model.keys / query_norm],
    )
    return reduced_problem(scaled, train, l2=l2)


def _answers(model: WordAttention, corpus: Corpus) -> np.ndarray:
    return np.asarray(pooled_logits(model, Incidence.of(corpus, "float64"))).argmax(axis=1)


def _ends(
    problems: list[Problem], answers: list[np.ndarray], test: Corpus, seeds: list[int]
) -> xr.Dataset:
    rows = []
    for problem, answer in zip(problems, answers, strict=True):
        top, total = extremes(problem, ends="largest", max_depth=128).largest[0], trace(problem)
        rows.append(
            {
                Ends.accuracy_test: float((answer == test.labels).mean()),
                Ends.loss: float(problem.value(problem.start)),
                Ends.gradient: float(np.abs(np.asarray(problem.gradient(problem.start))).max()),
                Ends.sharpness: top.value if top.converged else np.nan,
                Ends.trace: total.estimate,
                Ends.trace_error: total.standard_error,
            }
        )
    columns = {name: ("seed", np.array([row[name] for row in rows])) for name in rows[0]}
    return xr.Dataset(columns, {"seed": seeds}).assign_attrs(parameters=problems[0].parameters)


def _agreement(answers: list[np.ndarray], seeds: list[int]) -> xr.Dataset:
    share = [[float((a == b).mean()) for b in answers] for a in answers]
    return xr.Dataset(
        {Agreement.share: (("seed", "other"), share)}, {"seed": seeds, "other": seeds}
    )


def _path(models: list[WordAttention], query_norm: float, train: Corpus) -> xr.Dataset:
    one, other = (_problem(model, query_norm, train) for model in models[:2])
    path = straight_path(one, one.start, other.start, points=51)
    return path.data.assign_attrs(barrier=path.barrier, place=path.place, height=path.height)


def _polish(problem: Problem, train: Corpus, test: Corpus, seed: int) -> xr.Dataset:
    """Choose the penalty so that the stationary point near the end of training has its training
    loss.
    """
    wanted = float(problem.value(problem.start))
    l2, theta = _matching_penalty(problem, wanted)
    penalised = dataclasses.replace(problem, l2=jnp.asarray(l2, problem.start.dtype))
    # Words at zero score and zero table are stationary on their own, often as saddles: a shake lets
    # them fall.
    shake = _SHAKE * jax.random.normal(jax.random.key(seed), theta.shape, theta.dtype)
    found = minimise(penalised, (theta + shake)[None], method="krylov", steps=_STEPS)
    theta = jnp.asarray(found.theta.values[0])
    certificate = certify(penalised, theta)
    model: Any = penalised.model(theta)
    columns = {
        Polish.l2: l2,
        Polish.loss: float(found.loss[0]),
        Polish.gradient: certificate.gradient,
        Polish.accuracy_test: float((_answers(model.expand(), test) == test.labels).mean()),
        Polish.kind: certificate.kind,
        Polish.certificate: str(certificate),
        Polish.trained_loss: wanted,
    }
    return xr.Dataset(
        {name: ("seed", [value]) for name, value in columns.items()}, {"seed": [seed]}
    )


def _matching_penalty(problem: Problem, wanted: float) -> tuple[float, Any]:
    """λ whose stationary point has the loss that is wanted, to within a hundredth, and about where
    that point is.

    At a stationary point λθ = −∇L, which gives a first guess at the end of training; then the
    secant rule in logarithms, on points that are found roughly.
    """
    theta, gradient = problem.start, problem.gradient(problem.start)
    pulled = float(-jnp.vdot(theta, gradient) / jnp.vdot(theta, theta))
    places, losses = [float(np.log(np.clip(pulled, 1e-8, 0.1)))], []
    for _ in range(_TRIES):
        rough = dataclasses.replace(problem, l2=jnp.asarray(np.exp(places[-1]), theta.dtype))
        found = minimise(
            rough, theta[None], method="krylov", tolerance=_ROUGH, steps=_FEW, newton_steps=1
        )
        theta = jnp.asarray(found.theta.values[0])
        losses.append(float(np.log(found.loss[0])))
        off = losses[-1] - np.log(wanted)
        if abs(off) <= _LOSS_NEAR:
            break
        slope = 0.5
        if len(losses) > 1 and abs(places[-1] - places[-2]) > 1e-9:
            slope = np.clip((losses[-1] - losses[-2]) / (places[-1] - places[-2]), 0.05, 2.0)
        places.append(float(np.clip(places[-1] - off / slope, np.log(1e-9), np.log(1.0))))
    return float(np.exp(places[len(losses) - 1])), theta
