"""The reduced model's prediction against training; gradient evaluations of the whole model's
gradient flow.
"""

from __future__ import annotations

from _timing import interleaved, result, use_one_thread

use_one_thread()

import jax  # noqa: E402
import numpy as np  # noqa: E402
import xarray as xr  # noqa: E402

from attnlab.data import TopicTask  # noqa: E402
from attnlab.dynamics import ReducedModel, reduced_descent, reduced_flow  # noqa: E402
from attnlab.models import WordAttentionConfig  # noqa: E402
from attnlab.training import Every, GradientDescent, GradientFlow, Scores, train  # noqa: E402

_STEPS, _STEP, _ROWS = 5000, 0.1, Every(50)
_TASK = TopicTask()
_CORPUS = _TASK.sample(4000, key=jax.random.key(0))


def _trained(optimizer: GradientDescent | GradientFlow, seeds: int = 1) -> xr.Dataset:
    """FC on the reference task, the topic words' scores at every 50th step."""
    config = WordAttentionConfig.for_corpus(_CORPUS)
    run = train(
        config,
        _CORPUS,
        steps=_STEPS,
        seeds=seeds,
        record=(Scores(),),
        when=_ROWS,
        words=_TASK.topic_word_ids,
        progress=False,
        optimizer=optimizer,
    )
    assert run.finished
    return run.data


def _prediction_against_training() -> list[dict[str, object]]:
    """Warm CPU time of a 5000-step FC run over that of its prediction, from the start's draw to the
    labelled data.
    """
    times = _STEP * _ROWS.steps(_STEPS)

    def model() -> ReducedModel:
        return ReducedModel.for_task(_TASK, key=jax.random.key(0))

    seconds = interleaved(
        {
            "training": lambda: _trained(GradientDescent(_STEP)),
            "descent": lambda: reduced_descent(model(), _STEPS, step_size=_STEP, when=_ROWS),
            "flow": lambda: reduced_flow(model(), times),
        },  # pyright: ignore[reportArgumentType]
        repeats=5,
    )
    return [
        result(
            f"reduced {kind} of 5000 FC steps",
            "training them",
            seconds["training"] / seconds[kind],
            20.0,
            ms=seconds[kind] * 1e3,
            training_ms=seconds["training"] * 1e3,
        )
        for kind in ("descent", "flow")
    ]


def _flow_evaluations(seeds: int = 8) -> list[dict[str, object]]:
    """The whole model's flow to time 500 with the default tolerances: evaluations, and scores
    against a tight one.
    """
    data = _trained(GradientFlow(_STEP), seeds)
    tight = _trained(GradientFlow(_STEP, rtol=1e-9, atol=1e-12), seeds)
    worst = int(data.gradient_evaluations.max())
    error = float(abs(data.score - tight.score).max())
    return [
        result(
            f"gradient evaluations, FC flow to time 500, worst of {seeds} seeds",
            "1",
            worst,
            250.0,
            at_most=True,
            median=float(np.median(data.gradient_evaluations)),
        ),
        result("error of its scores", "a flow of rtol 1e-9", error, 1e-4, at_most=True),
    ]


def measure() -> list[dict[str, object]]:
    """Every ratio that the reduced model and the flow promise."""
    return [*_prediction_against_training(), *_flow_evaluations()]


if __name__ == "__main__":
    for line in measure():
        print(line)
