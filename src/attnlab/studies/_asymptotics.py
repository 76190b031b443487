"""Where training is heading: the reduced model's flow to times that no training reaches (THEORY
A6).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.runs import RunContext
from attnlab.studies._topic import TopicSettings


@dataclass(frozen=True)
class FarSettings:
    """One flow of the reduced model from a start drawn as ``TopicSettings`` draws it, with the
    population's numbers.

    ``last`` is the last time, ``rows`` the number of times recorded, evenly spaced in the logarithm
    from 0.1 on.
    """

    arm: str = ""
    seed: int = 0
    head: str = "fixed"
    last: float = 1e12
    rows: int = 101
    embedding_std: float = 1e-6
    query_length: float | None = None
    topics: int = 4
    topic_words: int = 2
    noise_words: int = 20


def flow_far(settings: FarSettings, context: RunContext) -> xr.Dataset:
    """Integrate the reduced flow; the data set has dimensions (time, word)."""
    s = settings
    start = TopicSettings(
        seed=s.seed,
        head=s.head,
        embedding_std=s.embedding_std,
        query_length=s.query_length,
        topics=s.topics,
        topic_words=s.topic_words,
        noise_words=s.noise_words,
    )
    return predict_one(start, s.last, s.rows, context.root_seed)


def predict_one(s: TopicSettings, until: float, rows: int, root_seed: int) -> xr.Dataset:
    """The reduced model of one seed; data set (time, word)."""
    from attnlab.dynamics import ReducedModel, reduced_descent, reduced_flow
    from attnlab.training import Logarithmic, run_keys

    config, task = s.config(), s.task()
    drawn = {
        f.name: getattr(config, f.name)
        for f in fields(config)
        if f.name not in ("words", "classes")
    }
    key, _ = run_keys(root_seed, s.seed)
    model = ReducedModel.for_task(task, key=key, others=s.others, **drawn)
    if s.head == "two_layer":
        steps = min(s.steps, int(until / s.step_size))
        run = reduced_descent(model, steps, step_size=s.step_size, when=Logarithmic(rows))
        return run.swap_dims(step="time").drop_vars("step")
    run = reduced_flow(model, np.geomspace(s.step_size, until, rows))
    if not bool(run.success):
        raise AttnlabError(
            f"the integrator gave up after {int(run.gradient_evaluations)} gradient evaluations"
        )
    return run.drop_vars("success")
