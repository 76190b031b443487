"""Grids and declared variables that the claims of this paper share (docs/theory.md#a3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import attnlab as al
from attnlab.lab import Data, Grid, Scale, Sweep, Table, variable

if TYPE_CHECKING:
    import xarray as xr

WORK = "attnlab.papers.lu2021.runs:train_topic"
HEADS = ("fixed", "linear", "two_layer")
_HEAD_NAMES = {"fixed": "fixed head", "linear": "linear head", "two_layer": "two-layer head"}
OTHERS = 20  # words besides a topic word in a sentence of the reference task
ADAM = {"optimizer": "adam", "step_size": 0.01}
LEAST_SCORE = 0.05  # scores from which the reduced model's relative error is spoken of
# A score that falls farther than this has dipped, by the standard deviation of the initial
# embeddings. A dip is ½|q|²(ν₀·g/|g|)² deep (docs/theory.md#a6): a third of the standard deviation
# makes it nine times less.
LEAST_DIP = {0.1: 1e-3 / 9, 0.3: 1e-3, 1.0: 1e-3}
# Runs of which one may miss while an exact interval proves a share of 0.75, or of 0.95; and runs of
# which six may miss while it proves 0.8.
ENOUGH, PLENTY, MANY = 20, 110, 64
_SHORT, _FEW = "short sentences", 5  # words besides a topic word where many runs are made

# Quick runs are smaller, not shorter: sentences and dictionary shrink, words per sentence and steps
# stay, since what is claimed of the end of training needs its steps. Theory's error falls with the
# number of sentences, so where a prediction is judged the task keeps its size, and half of the
# seeds do.
SMALL: dict[Scale, dict[str, Any]] = {
    "paper": {},
    "quick": {"sentences": 400, "test_sentences": 200, "dictionary": 500},
}
MIDDLE: dict[Scale, dict[str, Any]] = {
    "paper": {},
    "quick": {"sentences": 1000, "test_sentences": 250, "dictionary": 1250, "steps": 3000},
}


def head_name(head: str) -> str:
    """A head as figures call it.

    >>> head_name("two_layer"), head_name("mine")
    ('two-layer head', 'mine')
    """
    return _HEAD_NAMES.get(head, str(head))


def more(scale: Scale, seeds: int) -> int:
    """More seeds where runs are small: a share of seeds needs more of them than an average."""
    return seeds + seeds // 2 if scale == "quick" else seeds


def fewer(scale: Scale, seeds: int) -> int:
    """Fewer seeds where runs are large and what is judged is a bound."""
    return max(1, seeds // 2) if scale == "quick" else seeds


class Relation(Table):
    """The score–norm relation along training, of every topic word."""

    score = variable("score s of a topic word")
    query_norm = variable("|q|")
    loss = variable("training loss")
    accuracy_test = variable("test accuracy")
    scaled_norm = variable("|q||ν|, measured")
    predicted_scaled_norm = variable("|q||ν| that the relation predicts from the score alone")
    sen_error = variable("relative error of the plain form, where s > 0.05")
    sen_error_wrong_query = variable("the same with |q| taken 1.2 times too large")
    sen_error_corrected = variable("with |q|² I₁, what descent misses of the flow", optional=True)
    sen_error_refined = variable("with the other words' weight measured", optional=True)
    identity_error = variable("relative difference of the exact identity's sides", optional=True)
    score_sum_error = variable("|Σs| / Σ|s| over all words", optional=True)


class Predicted(Relation):
    """What the reduced model predicts of a run from its start, and how far that is from training."""

    predicted_score = variable("score that the reduced model predicts")
    predicted_norm = variable("norm that it predicts")
    predicted_attention = variable("attention that it predicts")
    predicted_loss = variable("loss that it predicts")
    onset = variable("step at which a score reaches half of its last value")
    predicted_onset = variable("the same, predicted")
    settled = variable("whether the loss has fallen to 0.1 at the last step")
    score_error = variable("relative error of the predicted score, along training")
    final_error = variable("relative error of the predicted score at the last step, if settled")
    onset_error = variable("relative error of the predicted onset")
    halved_score_error = variable("as score_error, m halved")
    halved_final_error = variable("as final_error, m halved")
    halved_onset_error = variable("as onset_error, m halved")


class Reference(Predicted, label="reference"):
    """The reference task under each head, with what the reduced model predicts of it."""

    attention = variable("attention on a topic word in its own sentences")
    separation_score = variable("AUC of scores, topic against other words")
    separation_norm = variable("AUC of norms, topic against other words")
    score_falls = variable("share of the score's increments between rows that are negative")
    norm_falls = variable("share of the norm's increments between rows that are negative")
    depth = variable("lowest score less the first")
    context_share = variable("share of a topic word in the contexts of its sentences")
    context_ratio = variable("|a ν| of a topic word over |c|, mean over its sentences")


class TwoLayerRuns(Predicted, label="two-layer runs"):
    """Many runs under the two-layer head; at quick scale of a task with few other words."""


class Endings(Table, label="endings"):
    """Every word of the dictionary at the end of training."""

    final_score = variable("score at the last step")
    final_norm = variable("norm at the last step")
    final_separation_score = variable("AUC of final scores, topic against other words")
    final_separation_norm = variable("AUC of final norms, topic against other words")


class UnderAdam(Relation, label="Adam"):
    """The reference task under Adam, which does not follow the gradient."""


def _reference_grid(scale: Scale, seeds: int) -> Grid:
    rows = 200 if scale == "paper" else 100
    base = {"record": "relation", "surroundings": True, "predict": True, "rows": rows}
    base |= {"context": True}
    # The longest first, so that no process waits at the end.
    arms = {head: base | {"head": head, "ending": True} for head in reversed(HEADS)}
    arms["Adam"] = SMALL[scale] | {"record": "relation", "surroundings": True, "steps": 2500} | ADAM
    return Grid(arms, fewer(scale, seeds))


def _measure_reference(arms: Data) -> Data:
    recorded = (
        Reference.attention,
        Reference.separation_score,
        Reference.separation_norm,
        Reference.context_share,
        Reference.context_ratio,
    )
    heads, endings = [], []
    for head in HEADS:
        run = arms[head]
        found = measure_prediction(run).merge(run[[*map(str, recorded)]])
        found[Reference.score_falls] = al.dynamics.falling_share(run.score)
        found[Reference.norm_falls] = al.dynamics.falling_share(run.norm)
        found[Reference.depth] = dips(run, 0.1).depth.where(finished(run))
        heads.append(found)
        endings.append(measure_endings(run))
    return {
        Reference.label: al.lab.side_by_side(heads, "head", HEADS),
        Endings.label: al.lab.side_by_side(endings, "head", HEADS),
        UnderAdam.label: measure_relation(arms["Adam"]),
    }


reference = Sweep(
    "reference", WORK, _reference_grid, _measure_reference, (Reference, Endings, UnderAdam)
)


def _two_layer_grid(scale: Scale, seeds: int) -> Grid:
    # The prediction's error goes with the number of other words over that of sentences.
    base = {"record": "curves", "predict": True, "head": "two_layer"}
    few = {"noise_words": _FEW, "sentences": 1000, "test_sentences": 200, "dictionary": 500}
    arms = {"reference": base} if scale == "paper" else {_SHORT: base | few}
    return Grid(arms, max(seeds, MANY))


def _measure_two_layer(arms: Data) -> Data:
    ((name, run),) = arms.items()
    return {TwoLayerRuns.label: measure_prediction(run, _FEW if name == _SHORT else OTHERS)}


two_layer = Sweep("two-layer", WORK, _two_layer_grid, _measure_two_layer, (TwoLayerRuns,))


class LargeStart(Table, label="std 0.1"):
    """The reference task from embeddings of standard deviation 0.1, fixed and linear head."""

    sen_error = variable("relative error of the plain form, where s > 0.05")
    sen_error_without_start = variable("the same as if embeddings had started at zero")
    score = variable("score s of a topic word")
    norm = variable("|ν|")
    loss = variable("training loss")
    context_share = variable("share of a topic word in the contexts of its sentences")
    context_ratio = variable("|a ν| of a topic word over |c|, mean over its sentences")


class Dips(Table):
    """Words that are suppressed first, from embeddings so large that some point away."""

    score = variable("score s of a topic word")
    norm = variable("|ν|")
    alignment = variable("initial alignment ν₀·(W_y − mean W)")
    alignment_auc = variable("AUC of misalignment for the dip, within each seed")
    score_falls = variable("share of the score's increments between rows that are negative")
    norm_falls = variable("share of the norm's increments between rows that are negative")
    dip = variable("whether the score falls below its start first")
    depth = variable("lowest score less the first")
    dip_step = variable("step at which the score is lowest")
    fall_together = variable("whether the norm is then below its start, too")
    recovered_step = variable("step at which the score is back at its start")


class AuthorsStart(Dips, label="std 0.1, early"):
    """Embeddings of standard deviation 0.1, as in the authors' ablations; fixed head, first steps."""


class LargerStart(Dips, label="std 0.3"):
    """Embeddings of standard deviation 0.3, fixed head."""


class LargestStart(Dips, label="std 1.0"):
    """Embeddings of standard deviation 1, fixed head."""


class RandomLabels(Table, label="labels at random"):
    """Labels drawn independently of the words: there is nothing to find."""

    loss = variable("training loss")
    accuracy_test = variable("test accuracy")
    attention = variable("attention on a topic word in its own sentences")
    separation_score = variable("AUC of scores, topic against other words")
    separation_norm = variable("AUC of norms, topic against other words")
    context_share = variable("share of a topic word in the contexts of its sentences")
    context_ratio = variable("|a ν| of a topic word over |c|, mean over its sentences")


def _starts_grid(scale: Scale, seeds: int) -> Grid:
    middle = MIDDLE[scale] | {"record": "curves", "context": True}
    small = SMALL[scale] | {"record": "curves"}
    arms = {
        "fixed 0.1": middle | {"embedding_std": 0.1},
        "linear 0.1": middle | {"embedding_std": 0.1, "head": "linear"},
        "early 0.1": small | {"embedding_std": 0.1, "steps": 1000},
        "fixed 0.3": small | {"embedding_std": 0.3, "steps": 2500, "rows": 125},
        "fixed 1.0": small | {"embedding_std": 1.0, "rows": 250},
        "labels at random": {"record": "curves", "label_noise": 1.0, "context": True},
    }
    counts = dict.fromkeys(arms, fewer(scale, seeds))
    many = dict.fromkeys(("early 0.1", "fixed 0.3"), max(seeds, PLENTY))
    return Grid(arms, counts | many)


def _measure_starts(arms: Data) -> Data:
    heads = ("fixed", "linear")
    random = arms["labels at random"]
    return {
        LargeStart.label: al.lab.along(
            [_measure_large_start(arms[f"{head} 0.1"]) for head in heads], "head", heads
        ),
        AuthorsStart.label: _measure_dips(arms["early 0.1"], 0.1),
        LargerStart.label: _measure_dips(arms["fixed 0.3"], 0.3),
        LargestStart.label: _measure_dips(arms["fixed 1.0"], 1.0),
        RandomLabels.label: random[list(RandomLabels.variables)],
    }


def _measure_large_start(run: xr.Dataset) -> xr.Dataset:
    from_zero = run.assign(norm=run.norm.where(run.step > 0, 0.0))
    return al.lab.dataset(
        {
            LargeStart.sen_error: al.dynamics.sen_error(run, OTHERS),
            LargeStart.sen_error_without_start: al.dynamics.sen_error(from_zero, OTHERS),
            LargeStart.score: run.score,
            LargeStart.norm: run.norm,
            LargeStart.loss: run.loss,
            LargeStart.context_share: run.context_share,
            LargeStart.context_ratio: run.context_ratio,
        }
    )


def _measure_dips(run: xr.Dataset, std: float) -> xr.Dataset:
    found = dips(run, std)
    found[Dips.alignment_auc] = al.dynamics.separation(-run.alignment, found.dip)
    found[Dips.dip] = found.dip.where(finished(run))
    found[Dips.score_falls] = al.dynamics.falling_share(run.score)
    found[Dips.norm_falls] = al.dynamics.falling_share(run.norm)
    return found.merge(run[[str(Dips.score), str(Dips.norm), str(Dips.alignment)]])


starts = Sweep(
    "starts",
    WORK,
    _starts_grid,
    _measure_starts,
    (LargeStart, AuthorsStart, LargerStart, LargestStart, RandomLabels),
)


class Phases(Table):
    """The phases of each topic word, as `attnlab.dynamics.phases` finds them."""

    score = variable("score s of a topic word")
    norm = variable("|ν|")
    phase = variable("number of the phase at each step")
    suppressed_until = variable("step of the lowest score, if the word dips")
    depth = variable("lowest score less the first")
    onset = variable("step of the onset: the score starts to rise")
    saturation = variable("step at which its growth in log time has halved")


class Flow(Table):
    """The reduced model's flow to far times (seed, time, word)."""

    score = variable("score s of a topic word")
    norm = variable("|ν|")
    attention = variable("attention on the topic word")
    loss = variable("loss")


def dips(run: xr.Dataset, std: float) -> xr.Dataset:
    """Which words are suppressed first, and how far, from embeddings of this standard deviation."""
    return al.dynamics.suppression(run, least_depth=LEAST_DIP[std])


def finished(run: xr.Dataset) -> xr.DataArray:
    """Which runs finished: a run that failed has no score, which is not the same as no dip."""
    return run.score.notnull().any(["step", "word"])


def measure_relation(data: xr.Dataset, others: Any = OTHERS) -> xr.Dataset:
    """The variables of `Relation` that the runs allow."""
    d = al.dynamics
    start = data.norm.sel(step=0, drop=True)
    norm = d.sen_norm(data.score, others=others, query_norm=data.query_norm, initial_norm=start)
    wrong = data.assign(query_norm=1.2 * data.query_norm)
    measured: dict[str, Any] = {
        Relation.score: data.score,
        Relation.query_norm: data.query_norm,
        Relation.loss: data.loss,
        Relation.accuracy_test: data.accuracy_test,
        Relation.scaled_norm: data.query_norm * data.norm,
        Relation.predicted_scaled_norm: norm,
        Relation.sen_error: d.sen_error(data, others),
        Relation.sen_error_wrong_query: d.sen_error(wrong, others),
    }
    if "i1" in data:
        measured[Relation.sen_error_corrected] = d.sen_error(data, others, form="corrected")
    if "i2" in data:
        measured[Relation.identity_error] = d.identity_error(data)
    if "score_sum" in data:
        measured[Relation.score_sum_error] = d.score_sum_error(data)
    if "others_mass" in data:
        measured[Relation.sen_error_refined] = d.sen_error(data, others, form="refined")
    return al.lab.dataset(measured)


def measure_endings(run: xr.Dataset) -> xr.Dataset:
    """The variables of `Endings`, with a coordinate that says which words are topic words."""
    ends = run[[str(Endings.final_score), str(Endings.final_norm)]]
    topical = np.arange(ends.sizes["any_word"]) < run.sizes["word"]
    for of, to in (
        (Endings.final_score, Endings.final_separation_score),
        (Endings.final_norm, Endings.final_separation_norm),
    ):
        ends[to] = al.dynamics.separation(ends[of], topical, dim="any_word")
    return ends.assign_coords(topical=("any_word", topical))


def measure_prediction(run: xr.Dataset, others: Any = OTHERS) -> xr.Dataset:
    """The variables of `Predicted`."""
    predicted = (
        Predicted.predicted_score,
        Predicted.predicted_norm,
        Predicted.predicted_attention,
        Predicted.predicted_loss,
    )
    found = measure_relation(run, others).merge(predicted_errors(run))
    return found.merge(run[[*map(str, predicted)]])


HOW_PREDICTED = (
    "The prediction uses the run's initial embeddings, head and |q| and its words' frequencies; it "
    f"is compared where s > {LEAST_SCORE}. The onset is the step at which a score reaches half of "
    "its own last value; a run whose loss is still above 0.1 at the last step is in the midst of "
    "it and has no final score to compare."
)
"""What `predicted_errors` compares, in words."""


def predicted_errors(
    data: xr.Dataset, *, least_score: float = LEAST_SCORE, settled: float = 0.1
) -> xr.Dataset:
    """Relative errors of the reduced model: along training, at its end, and of the onset.

    Errors are relative to the measured score, and counted wherever it or the prediction is above
    ``least_score``. The onset is the step at which a score reaches half of its own last value; one
    that ends below ``least_score`` has none, and where only one of the two has one the error is
    infinite. A run whose loss is still above ``settled`` at the last step is in the midst of its
    onset and has no final score yet: its final error is nan.
    """
    steps = data.step.values

    def onset_of(score: xr.DataArray) -> xr.DataArray:
        time = al.dynamics.onset_time(score, time=steps)
        return time.where(score.isel(step=-1, drop=True) >= least_score)

    onset = onset_of(data.score)
    done = data.loss.isel(step=-1, drop=True) <= settled
    found: dict[str, Any] = {
        Predicted.onset: onset,
        Predicted.settled: done.astype(float),
        Predicted.predicted_onset: onset_of(data.predicted_score),
    }
    for theory, names in (
        (
            data.predicted_score,
            (Predicted.score_error, Predicted.final_error, Predicted.onset_error),
        ),
        (
            data.halved_score,
            (
                Predicted.halved_score_error,
                Predicted.halved_final_error,
                Predicted.halved_onset_error,
            ),
        ),
    ):
        relevant = np.maximum(theory, data.score) > least_score
        error = (abs(theory - data.score) / data.score.clip(min=least_score)).where(relevant)
        early = onset_of(theory)
        missed = onset.isnull() != early.isnull()  # only one of the two rises: as wrong as can be
        late = (abs(early - onset) / onset).where(~missed, np.inf)
        ends = error.isel(step=-1, drop=True).where(done)
        found |= dict(zip(names, (error, ends, late), strict=True))
    return al.lab.dataset(found)
