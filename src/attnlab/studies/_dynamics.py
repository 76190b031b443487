"""One configuration of one's own: trained, compared with theory, told in phases; or predicted
without training.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.papers.lu2021.runs import predict_one, word_config
from attnlab.papers.lu2021.settings import TopicSettings
from attnlab.papers.lu2021.sweeps import WORK
from attnlab.studies._exploration import Exploration, card, checked_folder, store_exploration
from attnlab.studies._measure import axis, measure_endings, measure_relation, predicted_errors
from attnlab.studies._study import arm_plan, split_arms
from attnlab.sweeps import AbstractExecutor, Event, provenance, run_plan

_SURVIVES = 0.01  # largest median error with which the relation is said to hold


def explore(
    settings: TopicSettings,
    folder: str | Path,
    *,
    seeds: int = 4,
    until: float = 1e12,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: str = "",
    keep: bool = False,
) -> Exploration:
    """Train a configuration from several seeds and compare it with theory; writes ``dynamics.json``
    and the data.

    Where the reduced model applies, its flow is followed to the time ``until``. Interrupted and
    called again, it goes on where it was; ``keep`` as in ``run_plan``.
    """
    out = _checked(settings, folder, seeds, until)
    absent = _absent(settings)
    chosen = replace(settings, record="relation", predict="prediction" not in absent, ending=True)
    given = {
        f.name: getattr(chosen, f.name) for f in fields(chosen) if f.name not in ("arm", "seed")
    }
    changed = {k: v for k, v in given.items() if v != getattr(TopicSettings(), k)}
    begun = time.monotonic()
    plan = arm_plan(WORK, "dynamics", {"run": changed}, seeds)
    name = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:8]
    results = run_plan(
        plan,
        out / "runs" / name,
        processes=processes,
        executor=executor,
        progress=progress,
        on_event=on_event,
        keep=keep,
    )
    if results.interrupted:
        return Exploration(out, {}, interrupted=True)
    if results.finished == 0:
        raise AttnlabError(f"all {results.failed} runs failed: {results.failures[0].cause}")
    data = _measure(split_arms(results.dataset())["run"], chosen)
    cards = _cards(data["dynamics"], absent)
    if "prediction" not in absent:
        data["prediction"] = predict(settings, seeds=seeds, until=until)
        cards.append(_far_card(data["prediction"]))
    about = _about(settings, cards, absent, results.finished, time.monotonic() - begun, command)
    return store_exploration(out, "dynamics", data, about, [results])


def foretell(
    settings: TopicSettings,
    folder: str | Path,
    *,
    seeds: int = 4,
    until: float = 1e12,
    command: str = "",
) -> Exploration:
    """Only predict: ``explore`` without data and without training."""
    out = _checked(settings, folder, seeds, until)
    begun = time.monotonic()
    found = predict(settings, seeds=seeds, until=until)
    absent = {"dynamics": "nothing was trained: this is the reduced model's prediction alone"}
    about = _about(settings, [_far_card(found)], absent, seeds, time.monotonic() - begun, command)
    return store_exploration(out, "dynamics", {"prediction": found}, about, [])


def _checked(settings: TopicSettings, folder: str | Path, seeds: int, until: float) -> Path:
    """The folder; a mistake in the call is told before any run starts."""
    out = checked_folder(folder, "dynamics")
    if seeds < 1:
        raise AttnlabError(f"seeds={seeds}: expected at least 1")
    if not settings.step_size < until < float("inf"):
        raise AttnlabError(
            f"until={until}: expected a finite time above one step, {settings.step_size}"
        )
    word_config(settings)
    return out


def predict(
    settings: TopicSettings,
    *,
    seeds: int = 4,
    until: float = 1e12,
    rows: int = 157,
    root_seed: int = 0,
) -> xr.Dataset:
    """What the reduced model says of a configuration, without data and without training
    (docs/theory.md#a5).

    Starts are drawn as training of the same seeds would draw them; word frequencies are the
    population's. Returns score, norm, attention, margin (seed, time, word) and loss (seed, time) at
    times evenly spaced in the logarithm, and each word's ``onset``: when its score reaches half of
    what it is after ``settings.steps`` steps (nan if never). A head with kinks is followed by its
    descent map, to the time of those steps.

    >>> from attnlab.studies import TopicSettings
    >>> found = predict(TopicSettings(noise_words=10, query_norm=1.0), seeds=2, until=1e6)
    >>> dict(found.score.sizes), bool((found.attention[:, -1] > 0.7).all())
    ({'seed': 2, 'time': 157, 'word': 8}, True)
    """
    from attnlab.dynamics import onset_time

    if seeds < 1:
        raise AttnlabError(f"seeds={seeds}: expected at least 1")
    reason = _absent(settings).get("prediction")
    if reason:
        raise AttnlabError(f"no prediction: {reason}")
    far = max(until, settings.steps * settings.step_size)
    runs = [predict_one(replace(settings, seed=k), far, rows, root_seed) for k in range(seeds)]
    found = xr.concat(runs, dim=axis("seed", range(seeds)))
    assert isinstance(found, xr.Dataset)
    found.attrs["method"] = "descent" if settings.head == "two_layer" else "flow"
    end = found.score.interp(time=min(settings.steps * settings.step_size, float(found.time[-1])))
    return found.assign(
        onset=onset_time(found.score, level=(0.5 * end.drop_vars("time")).where(end > 0))
    )


def _absent(s: TopicSettings) -> dict[str, str]:
    """Why the reduced model, or the relation, has nothing to say of a configuration."""
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
            "labels are drawn anew, and the reduced model knows of no label noise"
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


def _measure(run: xr.Dataset, s: TopicSettings) -> dict[str, xr.Dataset]:
    from attnlab.dynamics import phases

    found = measure_relation(run, s.others)
    kept = (
        "norm",
        "attention",
        "separation_score",
        "separation_norm",
        "predicted_score",
        "predicted_norm",
        "predicted_attention",
        "predicted_loss",
        "alignment",
    )
    found = found.assign({name: run[name] for name in kept if name in run})
    if "predicted_score" in run:
        found = found.merge(predicted_errors(run).drop_vars("onset"))
    found = found.merge(phases(run))
    data = {"dynamics": found}
    if "final_score" in run:
        data["endings"] = measure_endings(run)
    return data


def _about(
    s: TopicSettings,
    cards: list[dict[str, Any]],
    absent: dict[str, str],
    seeds: int,
    seconds: float,
    command: str,
) -> dict[str, Any]:
    hidden = ("arm", "seed", "record", "predict", "ending", "surroundings", "rows")
    shown = {k: v for k, v in asdict(s).items() if k not in hidden}
    return {
        **provenance(seconds),
        "seeds": seeds,
        "command": command,
        "settings": shown,
        "absent": absent,
        "cards": cards,
        "summary": [card["text"] for card in cards],
    }


def _far_card(found: xr.Dataset) -> dict[str, Any]:
    last, end = found.isel(time=-1), f"{float(found.time[-1]):.3g}"
    onset, attention = float(found.onset.median()), float(last.attention.median())
    first = (
        f"the median topic word sets off at time {onset:.3g}"
        if np.isfinite(onset)
        else "no word sets off"
    )
    text = f"Foretold: {first}; at time {end} it gets {attention:.2f} of the attention."
    return card(
        "prediction", text, f"{float(last.loss.median()):.2g}", f"median loss at time {end}"
    )


def _cards(run: xr.Dataset, absent: Mapping[str, str]) -> list[dict[str, Any]]:
    """The answers in words, from the numbers."""
    return [
        _found_card(run),
        _relation_card(run, absent),
        _prediction_card(run, absent),
        _phases_card(run),
    ]


def _found_card(run: xr.Dataset) -> dict[str, Any]:
    end = run.isel(step=-1)
    worst, right = float(end.separation_score.min()), float(end.accuracy_test.mean())
    told = {
        0.999: "tells every topic word from all other words",
        0.9: "tells most topic words from other words",
    }
    found = next(
        (text for least, text in told.items() if worst >= least),
        "does not tell topic words from others",
    )
    text = f"After {int(run.step[-1])} steps the score {found}; test accuracy is {right:.3f}."
    return card(
        "what attention found",
        text,
        f"{float(end.attention.mean()):.2f}",
        "mean attention on a topic word",
    )


def _relation_card(run: xr.Dataset, absent: Mapping[str, str]) -> dict[str, Any]:
    label = "score–norm relation"
    if "relation" in absent:
        return card(label, f"Not asked: {absent['relation']}.")
    if not bool(run.sen_error.notnull().any()):
        return card(label, "Not asked: no score has risen above 0.05.")
    error, worst = float(run.sen_error.median()), float(run.sen_error.max())
    text = f"The norm predicted from the score alone is off by {100 * error:.2f} % (median over training)."
    verdict = "holds" if error <= _SURVIVES else "fails"
    return card(label, text, f"{100 * worst:.2f} %", "worst word and step", verdict)


def _prediction_card(run: xr.Dataset, absent: Mapping[str, str]) -> dict[str, Any]:
    label = "reduced model"
    if "prediction" in absent:
        return card(label, f"No prediction: {absent['prediction']}.")
    missed, both = int(np.isinf(run.onset_error).sum()), int(np.isfinite(run.onset_error).sum())
    said = []
    if both:
        late = 100 * float(run.onset_error.where(np.isfinite(run.onset_error)).median())
        said.append(f"Predicted before training: onset off by {late:.1f} % (median)")
    if missed:
        said.append(
            f"for {missed} of {run.onset_error.size} words only one of theory and training has an "
            "onset"
        )
    if not said:
        return card(label, "Neither theory nor training has a word set off within these steps.")
    if bool(run.final_error.notnull().any()):
        said.append(f"final score off by {100 * float(run.final_error.median()):.1f} %")
    else:
        said.append("training has not settled, so there is no final score to compare")
    text = "; ".join(said) + "."
    shown = f"{float(run.onset.median()):.0f} steps" if bool(run.onset.notnull().any()) else ""
    return card(label, text[0].upper() + text[1:], shown, "median onset" if shown else "")


def _phases_card(run: xr.Dataset) -> dict[str, Any]:
    dips, off = (int(run[name].notnull().sum()) for name in ("suppressed_until", "onset"))
    first = (
        f"{dips} of {run.onset.size} words are first suppressed"
        if dips
        else "No word is first suppressed"
    )
    rest = (
        f"{off} set off, the median one at step {float(run.onset.median()):.0f}"
        if off
        else "none has set off yet"
    )
    return card("phases", f"{first}; {rest}.")
