"""The page of one configuration: what training did over some seeds, and whether theory says so."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.report._bands import band_figure
from attnlab.report._chosen import chosen
from attnlab.report._lu2021 import sen_error_figure, sen_relation
from attnlab.report._lu2021_course import endings_figures, far_figures, reduced_figures
from attnlab.report._page import Card, Figure, Page, Section
from attnlab.report._phases import PHASES, phase_figure, phase_table
from attnlab.report._render import write_folder
from attnlab.report._text import told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_BAND = "Line: median over seeds; band: 10–90 % of seeds."
_SINGLES = 12
_FAR = ("Predicted loss", "Predicted score against log log τ", "Predicted attention")
_QUANTITIES = {"score": ("score s", "Scores"), "norm": ("norm |ν|", "Norms")}
_ELSEWHERE = ("settings", "command", "summary", "cards", "absent", "title", "question")


def dynamics_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about one configuration.

    ``data["dynamics"]`` has the dimensions (seed, step, word) and, of these names, what was
    recorded: ``loss``, ``accuracy_test``, ``score``, ``norm``, ``attention``, ``separation_score``,
    ``separation_norm``; for the relation ``scaled_norm``, ``predicted_scaled_norm``, ``sen_error``
    and its other forms; for the reduced model ``predicted_score``, ``onset``, ``predicted_onset``;
    for the phases ``phase``, ``suppressed_until``, ``depth``, ``onset``, ``saturation``.
    ``data["endings"]`` may have ``final_score`` and ``final_norm`` of all words, and
    ``data["prediction"]`` the reduced model's flow to far times (seed, time, word). Without
    ``data["dynamics"]`` the page shows that prediction alone.

    ``about``: ``summary`` (sentences), ``cards`` (label, text, headline, measure, verdict),
    ``command``, ``settings``, and ``absent``, which says for ``"dynamics"``, ``"endings"``,
    ``"relation"``, ``"prediction"`` or ``"phases"`` why it is not shown. All else is shown as where
    the page comes from.
    """
    absent = {str(key): str(value) for key, value in (about.get("absent") or {}).items()}
    run = data.get("dynamics")
    if run is None:
        title = "What happened"
        sections = (
            Section("happened", title, body=_why("dynamics", "Training", absent)),
            _far(data["prediction"]),
        )
    else:
        parts = (
            _happened(run, data, absent),
            _relation(run, absent),
            _reduced(run, absent),
            _told_phases(run, absent),
        )
        far = (_far(data["prediction"]),) if "prediction" in data else ()
        sections = (*parts[:3], *far, parts[3])
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    summary = about.get("summary") or ()
    summary = [summary] if isinstance(summary, str) else [str(sentence) for sentence in summary]
    said = {card.text for card in cards}  # what a card says need not be said twice
    return Page(
        title=str(about.get("title", "attnlab: one configuration and its theory")),
        question=str(
            about.get(
                "question",
                "What does training do to scores and embeddings, and does theory say so?",
            )
        ),
        summary=" ".join(sentence for sentence in summary if sentence not in said),
        sections=(*sections, again_section(about)),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_dynamics(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(dynamics_page(data, about), folder)


def again_section(about: Mapping[str, Any]) -> Section:
    """The command and the settings that give the same page."""
    return Section(
        id="again",
        title="Again",
        statement="The same configuration gives the same numbers.",
        command=str(about.get("command", "")),
        facts={str(key): told(value) for key, value in (about.get("settings") or {}).items()},
    )


def card_of_entry(entry: Mapping[str, Any]) -> Card:
    """The card of an entry of ``about["cards"]``."""
    return Card(
        label=str(entry["label"]),
        text=str(entry["text"]),
        verdict=entry.get("verdict"),
        headline=str(entry.get("headline", "")),
        measure=str(entry.get("measure", "")),
        note=str(entry.get("note", "")),
        link=str(entry.get("link", "")),
    )


def _why(group: str, what: str, absent: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence on what is missing."""
    reason = absent.get(group, "it was not recorded in these runs").rstrip(".")
    return (f"{what} is not shown: {reason}.",)


def _happened(run: xr.Dataset, data: Data, absent: Mapping[str, str]) -> Section:
    x = run["step"].values
    figures, body = [], ()
    if "loss" in run:
        series = {"measured": run["loss"]}
        if "predicted_loss" in run:
            series["reduced model"] = run["predicted_loss"]
        figures.append(
            band_figure(
                x,
                series,
                id="loss",
                title="Training loss",
                y_label="training loss",
                log_y=True,
                singles=_SINGLES,
                caption=_BAND,
            )
        )
    figures += _shares(run)
    figures += [_words(run, name, id=f"words_{name}") for name in _QUANTITIES if name in run]
    if "endings" in data:
        figures += endings_figures(
            data["endings"], prefix="dynamics", title="Final scores and norms of all words"
        )
    elif "endings" in absent:
        body = _why("endings", "The distribution of final scores and norms over all words", absent)
    if not figures:
        body = (*body, *_why("dynamics", "The course of training", absent))
    return Section(
        "happened",
        "What happened",
        "Loss, scores, norms and attention along training.",
        body=body,
        figures=tuple(figures),
    )


def _shares(run: xr.Dataset) -> list[Figure]:
    """Accuracy, attention and separation, all between 0 and 1, to choose from."""
    names = {
        "test accuracy": "accuracy_test",
        "attention on the topic words": "attention",
        "AUC of scores, topic against other words": "separation_score",
        "AUC of norms, topic against other words": "separation_norm",
    }
    drawn = {}
    for word, name in names.items():
        if name not in run:
            continue
        values = run[name].mean("word") if "word" in run[name].dims else run[name]
        series = {word: values}
        if name == "attention" and "predicted_attention" in run:
            series["reduced model"] = run["predicted_attention"].mean("word")
        drawn[word] = band_figure(
            run["step"].values,
            series,
            id="s",
            title=word,
            y_label=word,
            lines={"": 1.0},
            singles=_SINGLES,
        )
    if not drawn:
        return []
    return [
        chosen(
            drawn,
            id="learned",
            title="What is learned on the way",
            choice_label="Show",
            caption=f"{_BAND} Attention is the mean over topic words in their own sentences. The "
            "AUC is the chance "
            "that a topic word's score (norm) exceeds another word's.",
            alt="Accuracy, attention or separation against step.",
        )
    ]


def _words(run: xr.Dataset, name: str, *, id: str, along: str = "step") -> Figure:
    """The mean of the topic words, the highest and the lowest; then word by word."""
    label, title = _QUANTITIES[name]
    if along == "time":
        run, title = run.isel(time=run["time"].values > 0), f"{title}, predicted"
    axes: dict[str, Any] = {"id": id, "title": title, "y_label": label, "log_x": along == "time"}
    axes["x_label"] = "step" if along == "step" else "time τ (step × step size)"
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
    return chosen(
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
    if "relation" in absent or not {"scaled_norm", "predicted_scaled_norm", "sen_error"} <= set(
        run.data_vars
    ):
        return Section("relation", title, statement, body=_why("relation", "The relation", absent))
    if not bool(run["sen_error"].notnull().any()):
        body = _why("relation", "The relation", {"relation": "no score has risen above 0.05"})
        return Section("relation", title, statement, body=body)
    relation = sen_relation(run, title="Norm against score, and the relation's curve")
    error = sen_error_figure(run, lines={"1 %": 1.0})
    return Section("relation", title, statement, figures=(relation, error))


def _reduced(run: xr.Dataset, absent: Mapping[str, str]) -> Section:
    title = "What the reduced model predicted before training"
    statement = (
        "One sentence per topic word, the word and m null words, stands for the whole data set."
    )
    if "predicted_score" not in run:
        return Section("reduced", title, statement, body=_why("prediction", "A prediction", absent))
    return Section(
        "reduced", title, statement, figures=tuple(reduced_figures(run, prefix="reduced"))
    )


def _far(prediction: xr.Dataset) -> Section:
    figures = [
        _words(prediction, "score", id="far_words", along="time"),
        *far_figures(prediction, prefix="far", titles=_FAR),
    ]
    far = "followed to times that no training reaches"
    if prediction.attrs.get("method") == "descent":
        far = (
            "followed by its descent map, to the last step (a head with kinks has no adaptive flow)"
        )
    statement = f"The reduced model {far}, with the words' population frequencies."
    return Section("foretold", "Where it is heading", statement, figures=tuple(figures))


def _told_phases(run: xr.Dataset, absent: Mapping[str, str]) -> Section:
    title = "The phases of one word"
    statement = (
        "A word may be suppressed first; it waits, sets off, rises steeply and then slows down."
    )
    if not {"phase", "score", "norm", "suppressed_until", "depth", "onset", "saturation"} <= set(
        run.data_vars
    ):
        return Section(
            "phases", title, statement, body=_why("phases", "The story of each word", absent)
        )
    names = tuple(run.attrs.get("phases", PHASES))
    figures = (
        phase_figure(
            run, id="phase_story", title="One word's training, told in phases", names=names
        ),
        phase_table(run, id="phase_table", title="All words' phases"),
    )
    return Section("phases", title, statement, figures=figures)
