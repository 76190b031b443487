"""Beyond the paper: does the relation survive? The sweep behind lu2021.beyond_sen."""

from __future__ import annotations

from typing import Any

import xarray as xr

from attnlab.papers.lu2021.settings import TopicSettings
from attnlab.papers.lu2021.sweeps import ADAM, HEADS, MIDDLE, WORK
from attnlab.studies._measure import side_by_side
from attnlab.studies._study import Data, Scale, Study, arm_plan

HEAD_KINDS = HEADS

BEYOND_ARMS: dict[str, dict[str, Any]] = {
    "as in the paper": {},
    "three layers, tanh": {"head": "deep"},
    "dictionary no larger than the topics": {"dictionary": 8},
    "three topic words in a sentence": {"topic_words_in_sentence": 3},
    "unequal topics": {"topic_probabilities": (0.55, 0.25, 0.15, 0.05)},
    "topic words as noise": {"topic_noise": 0.05},
    "contextual inputs": {"reach": 1},
    "minibatches of 70": {"batch_size": 70},
    "momentum 0.9": {"momentum": 0.9},
    "weight decay 1e-3": {"weight_decay": 1e-3},
    "Adam": ADAM,
}


def _beyond(scale: Scale, seeds: int):
    base = MIDDLE[scale] | {"record": "curves"}
    arms = {name: base | arm for name, arm in BEYOND_ARMS.items()}
    return arm_plan(WORK, "beyond", arms, max(1, seeds // 4) if scale == "quick" else seeds)


def _measure_beyond(arms: Data) -> Data:
    from attnlab.dynamics import sen_error

    found = []
    for name, arm in BEYOND_ARMS.items():
        run = arms[name]
        others = TopicSettings(**arm).others
        one = xr.Dataset(
            {
                "sen_error": sen_error(run, others),
                "score": run.score,
                "norm": run.norm,
                "loss": run.loss,
            }
        )
        wrong = run.assign(query_norm=1.2 * run.query_norm)
        one["sen_error_wrong_query"] = sen_error(wrong, others)
        one["accuracy_test"], one["query_norm"] = run.accuracy_test, run.query_norm
        found.append(one)
    return {"beyond": side_by_side(found, "setting", BEYOND_ARMS)}


BEYOND = Study("beyond", _beyond, _measure_beyond)
