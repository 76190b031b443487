"""What theory says of a configuration without training: the work of ``attnlab dynamics`` that needs
JAX.
"""

from __future__ import annotations

from dataclasses import replace

import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.dynamics import onset_time
from attnlab.lab import along
from attnlab.papers.lu2021.runs import predict_one, word_config
from attnlab.papers.lu2021.settings import TopicSettings


def reduced_prediction(
    settings: TopicSettings,
    *,
    seeds: int = 4,
    until: float = 1e12,
    rows: int = 157,
    root_seed: int = 0,
) -> xr.Dataset:
    """What the reduced model predicts for a configuration, without data and without training
    (docs/theory.md#a5).

    Starts are drawn as training of the same seeds would draw them; word frequencies are the
    population's. Returns score, norm, attention, margin (seed, time, word) and loss (seed, time) at
    times evenly spaced in the logarithm, and each word's ``onset``: when its score reaches half of
    what it is after ``settings.steps`` steps (nan if never). A head with kinks is followed by its
    descent map, to the time of those steps.

    >>> settings = TopicSettings(noise_words=10, query_norm=1.0)
    >>> found = reduced_prediction(settings, seeds=2, until=1e6)
    >>> dict(found.score.sizes), bool((found.attention[:, -1] > 0.7).all())
    ({'seed': 2, 'time': 157, 'word': 8}, True)
    """
    if seeds < 1:
        raise AttnlabError(f"seeds={seeds}: expected at least 1")
    reason = beyond_theory(settings).get("prediction")
    if reason:
        raise AttnlabError(f"no prediction: {reason}")
    trained = settings.steps * settings.step_size
    far = max(until, trained)
    runs = [predict_one(replace(settings, seed=k), far, rows, root_seed) for k in range(seeds)]
    found = along(runs, "seed", range(seeds))
    found.attrs["method"] = "descent" if settings.head == "two_layer" else "flow"
    end = found.score.interp(time=min(trained, float(found.time[-1]))).drop_vars("time")
    return found.assign(onset=onset_time(found.score, level=(0.5 * end).where(end > 0)))


def beyond_theory(s: TopicSettings) -> dict[str, str]:
    """Why the reduced model (``"prediction"``) or the score–norm relation (``"relation"``) has
    nothing to say of a configuration; empty where both apply. Refuses one that cannot be trained.
    """
    parts = word_config(s).trained_parts
    absent: dict[str, str] = {}
    if "query" in parts:
        absent["prediction"] = "the query is trained, and the reduced model needs |q| to stay"
    elif s.optimizer != "descent" or s.momentum or s.weight_decay or s.batch_size is not None:
        absent["prediction"] = (
            "the reduced model follows plain full-batch gradient descent, not another optimiser"
        )
    elif s.label_noise:
        absent["prediction"] = (
            "labels are drawn again, and the reduced model knows of no label noise"
        )
    elif s.topic_words_in_sentence > 1 or s.topic_noise:
        absent["prediction"] = (
            "the reduced model knows one topic word in a sentence, and there may be several"
        )
    elif s.reach is not None:
        absent["prediction"] = (
            "inputs are contextual, and the reduced model knows single words only"
        )
    if not {"keys", "embeddings"} <= set(parts):
        absent["relation"] = (
            "the relation ties a trained score to a trained embedding, and one of them is frozen"
        )
    elif "query" in parts:
        absent["relation"] = "the query is trained, and the relation needs |q| to stay"
    return absent
