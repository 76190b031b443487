"""``attnlab dynamics``: one configuration, trained from some seeds, with theory drawn over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab import (
    Answers,
    Bench,
    Data,
    Experiment,
    Grid,
    Option,
    Settings,
    Table,
    digest,
    variable,
)
from attnlab.papers.lu2021.beyond_sen import SURVIVES
from attnlab.papers.lu2021.figures import (
    endings_figure,
    far_figures,
    phase_figure,
    phase_table,
    reduced_figures,
    sen_error_figure,
    sen_relation,
)
from attnlab.papers.lu2021.settings import HEADS, OPTIMIZERS, TopicSettings
from attnlab.papers.lu2021.sweeps import (
    WORK,
    Endings,
    Relation,
    measure_endings,
    measure_relation,
    predicted_errors,
)
from attnlab.report import Card, Figure, Section, band_figure, menu_figure

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Record

_TASK, _MODEL, _TRAINING, _THEORY = "Task", "Model", "Training", "Theory"
_BAND = "Line: median over seeds; band: 10–90 % of seeds."
_SINGLES = 12  # runs that a figure can show one by one
_FOUND = {  # how well scores tell topic words from others, by their AUC in the worst run
    0.999: "tells every topic word from all other words",
    0.9: "tells most topic words from other words",
    -np.inf: "does not tell topic words from others",
}


class Course(Relation, label="dynamics"):
    """Training, and theory where it applies (seed, step, word)."""

    norm = variable("norm |ν| of a topic word's embedding")
    attention = variable("attention on a topic word in its own sentences")
    separation_score = variable("AUC of scores, topic against other words")
    separation_norm = variable("AUC of norms, topic against other words")
    alignment = variable("alignment of a word's embedding with its label at first", optional=True)
    phase = variable("suppressed, waiting, rising or saturated, as a number")
    suppressed_until = variable("step of the lowest score, of a word that dips first")
    depth = variable("lowest score, change from the start")
    onset = variable("step at which a score reaches half of its last value")
    saturation = variable("step from which the score grows at half of its fastest pace")
    predicted_score = variable("score that the reduced model predicts", optional=True)
    predicted_norm = variable("norm that it predicts", optional=True)
    predicted_attention = variable("attention that it predicts", optional=True)
    predicted_loss = variable("loss that it predicts", optional=True)
    predicted_onset = variable("onset that it predicts", optional=True)
    settled = variable("whether the loss has fallen to 0.1 at the last step", optional=True)
    score_error = variable("relative error of the predicted score", optional=True)
    final_error = variable("the same at the last step, if settled", optional=True)
    onset_error = variable("relative error of the predicted onset", optional=True)
    halved_score_error = variable("as score_error, m halved", optional=True)
    halved_final_error = variable("as final_error, m halved", optional=True)
    halved_onset_error = variable("as onset_error, m halved", optional=True)


class Prediction(Table, label="prediction"):
    """The reduced model to times that no training reaches (seed, time, word)."""

    score = variable("score s of a topic word")
    norm = variable("norm |ν| of its embedding")
    attention = variable("attention on it in its own sentences")
    margin = variable("margin of its label")
    loss = variable("loss")
    query_norm = variable("|q|")
    onset = variable("time at which a score reaches half of what it is after training")
    gradient_evaluations = variable("gradients that the integrator took", optional=True)


_RECORDED = (
    Course.norm,
    Course.attention,
    Course.separation_score,
    Course.separation_norm,
    Course.alignment,
    Course.predicted_score,
    Course.predicted_norm,
    Course.predicted_attention,
    Course.predicted_loss,
)


@dataclass(frozen=True)
class DynamicsSettings(Settings):
    """One configuration of the topic task; the defaults are the paper's reference setting."""

    topics: Annotated[int, Option("Topics, which are the classes.", _TASK, least=2)] = 4
    topic_words: Annotated[int, Option("Topic words of each topic.", _TASK, least=1)] = 2
    topic_probabilities: Annotated[
        tuple[float, ...] | None,
        Option("Label frequencies, as 0.5 0.3 0.2; equal by default.", _TASK, metavar="P…"),
    ] = None
    dictionary: Annotated[int, Option("Words without a topic.", _TASK, least=1)] = 5000
    noise_words: Annotated[
        int, Option("Words beside the topic word in a sentence.", _TASK, least=0)
    ] = 20
    topic_words_in_sentence: Annotated[
        int, Option("Topic words in a sentence.", _TASK, least=1)
    ] = 1
    topic_noise: Annotated[
        float, Option("Chance that a noise word is a topic word.", _TASK, least=0, most=1)
    ] = 0.0
    label_noise: Annotated[
        float,
        Option("Chance that a label is drawn again, from all topics.", _TASK, least=0, most=1),
    ] = 0.0
    sentences: Annotated[int, Option("Training sentences.", _TASK, least=1)] = 4000
    head: Annotated[
        str,
        Option("What turns a context into logits.", _MODEL, metavar="|".join(HEADS), choices=HEADS),
    ] = "fixed"
    trained: Annotated[
        tuple[str, ...] | None,
        Option(
            "Parts that move, of keys embeddings head query; the head's own choice by default.",
            _MODEL,
            metavar="PART…",
        ),
    ] = None
    embedding_std: Annotated[
        float, Option("Standard deviation of initial embeddings.", _MODEL, least=0)
    ] = 1e-6
    query_norm: Annotated[float | None, Option("|q|; drawn by default.", _MODEL, above=0)] = None
    head_scale: Annotated[
        float, Option("Factor on the head's initial weights.", _MODEL, least=0)
    ] = 1.0
    reach: Annotated[
        int | None,
        Option("Attend to a convolution over so many neighbours to each side.", _MODEL, least=0),
    ] = None
    optimizer: Annotated[
        str,
        Option("How it is trained.", _TRAINING, metavar="|".join(OPTIMIZERS), choices=OPTIMIZERS),
    ] = "descent"
    step_size: Annotated[float, Option("Step size.", _TRAINING, above=0)] = 0.1
    momentum: Annotated[float, Option("Momentum.", _TRAINING, least=0)] = 0.0
    weight_decay: Annotated[float, Option("Weight decay.", _TRAINING, least=0)] = 0.0
    batch_size: Annotated[
        int | None, Option("Sentences a step; all by default.", _TRAINING, least=1)
    ] = None
    steps: Annotated[int, Option("Steps.", _TRAINING, least=1)] = 5000
    seeds: Annotated[
        int, Option("Runs, each with data and start of its own.", _TRAINING, least=1)
    ] = 4
    predict_only: Annotated[
        bool,
        Option("Only predict: no data, no training.", _THEORY, names=("--predict-only",)),
    ] = False
    until: Annotated[
        float,
        Option("How far the prediction goes, in time = steps × step size.", _THEORY, above=0),
    ] = 1e12

    def __post_init__(self):
        super().__post_init__()
        if not self.step_size < self.until < np.inf:
            raise AttnlabError(
                f"--until {self.until:g}: expected a finite time above one step, {self.step_size:g}"
            )
        self.topic()  # refuses settings that contradict each other

    def topic(self) -> TopicSettings:
        """The settings of a run."""
        own = ("seeds", "predict_only", "until")
        shared = {name: value for name, value in asdict(self).items() if name not in own}
        return TopicSettings(**shared, test_sentences=max(1, self.sentences // 4), rows=200)


class Dynamics(Experiment[DynamicsSettings]):
    """Train one configuration of your choice and draw theory over it.

    The page shows scores, norms and attention against step, the score–norm relation, what the
    reduced model predicted before training, and the phases of each word. Interrupted and started
    again, it resumes.

    Examples:

        attnlab dynamics --topics 4 --noise-words 20 --head fixed

        attnlab dynamics --head linear --embedding-std 0.3 --seeds 8 --out mine

        attnlab dynamics --noise-words 100 --predict-only
    """

    name = "dynamics"
    title = "attnlab: one configuration and its theory"
    settings = DynamicsSettings

    def measure(self, settings: DynamicsSettings, bench: Bench) -> Data:
        """What training did and theory says, where it applies; or what theory says alone."""
        from attnlab.questions._dynamics import beyond_theory, reduced_prediction

        topic = settings.topic()
        absent = beyond_theory(topic)
        data: dict[str, xr.Dataset] = {}
        if not settings.predict_only:
            run = _trained(topic, settings.seeds, "prediction" not in absent, bench)
            data |= _measure(run, topic.others)
        if settings.predict_only or "prediction" not in absent:
            bench.stage("prediction without training")
            far = reduced_prediction(topic, seeds=settings.seeds, until=settings.until)
            Prediction.check(far)
            data[Prediction.label] = far
        if settings.predict_only:
            absent = {
                "dynamics": "nothing was trained: this is the reduced model's prediction alone"
            }
        bench.found["absent"] = absent
        return data

    def answers(self, settings: DynamicsSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """What attention found, whether relation and prediction fit, phases, and what follows."""
        absent, cards = found["absent"], []
        facts = asdict(settings) | {"test_sentences": settings.topic().test_sentences}
        if Course.label in data:
            run = Course.of(data)
            cards = [
                _found_card(run),
                _relation_card(run, absent),
                _prediction_card(run, absent),
                _phases_card(run),
            ]
            facts["finished"] = run.sizes["seed"]
        if Prediction.label in data:
            cards.append(_far_card(Prediction.of(data)))
        return Answers(
            question="What does training do to scores and embeddings, and does theory say so?",
            cards=tuple(cards),
            absent=absent,
            facts=facts,
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """What happened, the relation, the reduced model, where it is heading, the phases."""
        data, absent = record.data, record.about["absent"]
        far = [_far(Prediction.of(data))] if Prediction.label in data else []
        if Course.label not in data:
            body = (f"Training is not shown: {absent['dynamics']}.",)
            return [Section("happened", "What happened", body=body), *far]
        run = Course.of(data)
        return [
            _happened(data),
            _relation(run, absent),
            _reduced(run, absent),
            *far,
            _told_phases(run),
        ]


def _trained(topic: TopicSettings, seeds: int, predict: bool, bench: Bench) -> xr.Dataset:
    """The runs of all seeds."""
    asked = asdict(replace(topic, record="relation", predict=predict, ending=True))
    default = asdict(TopicSettings())
    changed = {name: value for name, value in asked.items() if value != default[name]}
    plan = Grid({"run": changed}, seeds).plan(WORK, "dynamics")
    results = bench.sweep(plan, digest(changed))
    return al.lab.split_arms(results.dataset())["run"]


def _measure(run: xr.Dataset, others: int) -> dict[str, xr.Dataset]:
    found = measure_relation(run, others)
    found = found.assign({name: run[name] for name in _RECORDED if name in run})
    if Course.predicted_score in run:
        found = found.merge(predicted_errors(run).drop_vars(str(Course.onset)))
    found = found.merge(al.dynamics.phases(run))
    Course.check(found)
    data = {Course.label: found}
    if Endings.final_score in run:
        data[Endings.label] = measure_endings(run)
    return data


def _found_card(run: xr.Dataset) -> Card:
    end = run.isel(step=-1)
    worst = float(end[Course.separation_score].min())
    accuracy = float(end[Course.accuracy_test].mean())
    found = next(words for least, words in _FOUND.items() if worst >= least)
    return Card(
        label="what attention found",
        text=f"After {int(run.step[-1])} steps the score {found}; test accuracy is {accuracy:.3f}.",
        headline=f"{float(end[Course.attention].mean()):.2f}",
        measure="mean attention on a topic word",
    )


def _relation_card(run: xr.Dataset, absent: Mapping[str, str]) -> Card:
    label, errors = "score–norm relation", run[Course.sen_error]
    if "relation" in absent:
        return Card(label=label, text=f"Not asked: {absent['relation']}.")
    if not bool(errors.notnull().any()):
        return Card(label=label, text="Not asked: no score has risen above 0.05.")
    error = float(errors.median())
    return Card(
        label=label,
        text=f"The norm predicted from the score alone is off by {100 * error:.2f} % (median over "
        "training).",
        verdict="holds" if error <= SURVIVES else "fails",
        headline=f"{100 * float(errors.max()):.2f} %",
        measure="worst word and step",
    )


def _prediction_card(run: xr.Dataset, absent: Mapping[str, str]) -> Card:
    label = "reduced model"
    if "prediction" in absent:
        return Card(label=label, text=f"No prediction: {absent['prediction']}.")
    late, final = run[Course.onset_error], run[Course.final_error]
    known, missed = np.isfinite(late), int(np.isinf(late).sum())
    parts = []
    if bool(known.any()):
        error = 100 * float(late.where(known).median())
        parts.append(f"Predicted before training: onset off by {error:.1f} % (median)")
    if missed:
        parts.append(
            f"for {missed} of {late.size} words only one of theory and training has an onset"
        )
    if not parts:
        text = "Neither theory nor training has an onset within these steps."
        return Card(label=label, text=text)
    if bool(final.notnull().any()):
        parts.append(f"final score off by {100 * float(final.median()):.1f} %")
    else:
        parts.append("training has not settled, so there is no final score to compare")
    text = "; ".join(parts) + "."
    text = text[0].upper() + text[1:]
    onset = run[Course.onset]
    if not bool(onset.notnull().any()):
        return Card(label=label, text=text)
    headline = f"{float(onset.median()):.0f} steps"
    return Card(label=label, text=text, headline=headline, measure="median onset")


def _phases_card(run: xr.Dataset) -> Card:
    onset = run[Course.onset]
    dips, rising = int(run[Course.suppressed_until].notnull().sum()), int(onset.notnull().sum())
    first = "No word is first suppressed"
    if dips:
        first = f"{dips} of {onset.size} words are first suppressed"
    rest = "none has its onset yet"
    if rising:
        rest = f"{rising} have their onset, the median one at step {float(onset.median()):.0f}"
    return Card(label="phases", text=f"{first}; {rest}.")


def _far_card(far: xr.Dataset) -> Card:
    last, end = far.isel(time=-1), f"{float(far.time[-1]):.3g}"
    onset, attention = float(far[Prediction.onset].median()), float(last.attention.median())
    first = "no word has an onset"
    if np.isfinite(onset):
        first = f"the onset of the median topic word is at time {onset:.3g}"
    return Card(
        label="prediction",
        text=f"Predicted: {first}; at time {end} it gets {attention:.2f} of the attention.",
        headline=f"{float(last[Prediction.loss].median()):.2g}",
        measure=f"median loss at time {end}",
    )


def _happened(data: Data) -> Section:
    run = Course.of(data)
    series = {"measured": run[Course.loss]}
    if Course.predicted_loss in run:
        series["reduced model"] = run[Course.predicted_loss]
    loss = band_figure(
        run["step"].values,
        series,
        id="loss",
        title="Training loss",
        y_label="training loss",
        log_y=True,
        singles=_SINGLES,
        caption=_BAND,
    )
    figures = [
        loss,
        _shares(run),
        _words(run, Course.score, "score s", id="words_score", title="Scores"),
        _words(run, Course.norm, "norm |ν|", id="words_norm", title="Norms"),
    ]
    if Endings.label in data:
        title = "Final scores and norms of all words"
        figures.append(endings_figure(Endings.of(data), id="dynamics_endings", title=title))
    return Section(
        "happened",
        "What happened",
        "Loss, scores, norms and attention along training.",
        figures=tuple(figures),
    )


def _shares(run: xr.Dataset) -> Figure:
    """Accuracy, attention and separation, all between 0 and 1, to choose from."""
    quantities = {
        "test accuracy": {"test accuracy": run[Course.accuracy_test]},
        "attention on the topic words": _attention(run),
        "AUC of scores, topic against other words": {
            "AUC of scores, topic against other words": run[Course.separation_score]
        },
        "AUC of norms, topic against other words": {
            "AUC of norms, topic against other words": run[Course.separation_norm]
        },
    }
    drawn = {
        title: band_figure(
            run["step"].values,
            series,
            id="s",
            title=title,
            y_label=title,
            lines={"": 1.0},
            singles=_SINGLES,
        )
        for title, series in quantities.items()
    }
    return menu_figure(
        drawn,
        id="learned",
        title="What is learned on the way",
        choice_label="Show",
        caption=f"{_BAND} Attention is the mean over topic words in their own sentences. The AUC "
        "is the chance that a topic word's score (norm) exceeds another word's.",
        alt="Accuracy, attention or separation against step.",
    )


def _attention(run: xr.Dataset) -> dict[str, xr.DataArray]:
    """Mean attention on the topic words, measured and predicted."""
    series = {"attention on the topic words": run[Course.attention].mean("word")}
    if Course.predicted_attention in run:
        series["reduced model"] = run[Course.predicted_attention].mean("word")
    return series


def _words(
    run: xr.Dataset, name: str, label: str, *, id: str, title: str, along: str = "step"
) -> Figure:
    """The mean of the topic words, the highest and the lowest; then word by word."""
    x_label = "step" if along == "step" else "time τ (step × step size)"
    axes: dict[str, Any] = {"id": id, "title": title, "y_label": label, "x_label": x_label}
    axes["log_x"] = along == "time"
    values, x = run[name], run[along].values
    spread = {
        "highest word": values.max("word"),
        "mean": values.mean("word"),
        "lowest word": values.min("word"),
    }
    drawn = {"all topic words": band_figure(x, spread, singles=0, **axes)}
    words = run["word"].values.tolist()[:12]
    for word in words:
        drawn[str(word)] = band_figure(x, {str(word): values.sel(word=word)}, singles=4, **axes)
    count = run.sizes["word"]
    left = f" The first {len(words)} of {count} words can be chosen." if len(words) < count else ""
    return menu_figure(
        drawn,
        id=id,
        title=title,
        choice_label="Word",
        caption=f"{_BAND}{left}",
        alt=f"The topic words' {label} against {along}.",
    )


def _relation(run: xr.Dataset, absent: Mapping[str, str]) -> Section:
    title = "Does the score–norm relation hold?"
    statement = (
        "Along training, s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²): a word's score determines its norm."
    )
    reason = absent.get("relation", "")
    if not reason and not bool(run[Course.sen_error].notnull().any()):
        reason = "no score has risen above 0.05"
    if reason:
        body = (f"The relation is not shown: {reason}.",)
        return Section("relation", title, statement, body=body)
    relation = sen_relation(run, title="Norm against score, and the relation's curve")
    error = sen_error_figure(run, lines={f"{100 * SURVIVES:g} %": 100 * SURVIVES})
    return Section("relation", title, statement, figures=(relation, error))


def _reduced(run: xr.Dataset, absent: Mapping[str, str]) -> Section:
    title = "What the reduced model predicted before training"
    statement = (
        "One sentence per topic word, the word and m null words, stands for the whole data set."
    )
    if "prediction" in absent:
        body = (f"A prediction is not shown: {absent['prediction']}.",)
        return Section("reduced", title, statement, body=body)
    figures = tuple(reduced_figures(run, prefix="reduced"))
    return Section("reduced", title, statement, figures=figures)


def _far(far: xr.Dataset) -> Section:
    later = far.isel(time=far["time"].values > 0)
    title = "Scores, predicted"
    words = _words(later, Prediction.score, "score s", id="far_words", title=title, along="time")
    titles = ("Predicted loss", "Predicted score against log log τ", "Predicted attention")
    how = "followed to times that no training reaches"
    if far.attrs["method"] == "descent":
        how = (
            "followed by its descent map, to the last step (a head with kinks has no adaptive flow)"
        )
    return Section(
        "predicted",
        "Where it is heading",
        f"The reduced model {how}, with the words' population frequencies.",
        figures=(words, *far_figures(far, prefix="far", titles=titles)),
    )


def _told_phases(run: xr.Dataset) -> Section:
    title = "One word's training, told in phases"
    story = phase_figure(run, id="phase_story", title=title)
    table = phase_table(run, id="phase_table", title="All words' phases")
    return Section(
        "phases",
        "The phases of one word",
        "A word may be suppressed first; it waits, starts to rise, rises steeply and then slows down.",
        figures=(story, table),
    )


question = Dynamics()
