"""The page of a study of texts: the data, whether attention pays, what was trained, what to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from attnlab.lab import Data
from attnlab.questions.texts._best import NAMES
from attnlab.questions.texts._tables import (
    PATH,
    Agreement,
    Confused,
    Curves,
    Ends,
    Lengths,
    Needed,
    Polish,
    Scores,
    Tried,
)
from attnlab.questions.texts._words import training_section, why_missing, words_section
from attnlab.report import (
    Card,
    DotRow,
    Figure,
    Mark,
    Section,
    barrier_figure,
    bounds_note,
    counted,
    distinct,
    dots_figure,
    histogram_figure,
    learning_curves,
    percent,
    plain_table,
    printable,
    rows_figure,
    scatter_figure,
    shortened,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Record

_LINE = 120  # characters of a text that are shown
_PLACE = 48  # of the place where a row stands
_PARTS = {"train": "training", "valid": "validation", "test": "test"}
_MOST_CLASSES, _MOST_FILES, _MOST_REASONS, _MOST_EXAMPLES, _MOST_VALUES = 50, 20, 20, 3, 6
_BINS = 48


def sections(record: Record) -> list[Section]:
    """All sections; any data set may be missing or empty, and the page then says why."""
    data = {name: one for name, one in record.data.items() if all(one.sizes.values())}
    for name in (Curves.label, Needed.label):
        if name in data:
            students = [NAMES.get(str(own), str(own)) for own in data[name]["student"].values]
            data[name] = data[name].assign_coords(student=students)
    content = printable(record.content)
    absent = printable(record.about["absent"])
    verdicts = content["verdicts"]

    def own(section: str) -> tuple[Card, ...]:
        """The cards of a section, without the link to where they stand."""
        cards = [Card(**entry) for entry in content["cards"]]
        return tuple(replace(card, link="") for card in cards if card.link == section)

    majority = verdicts["answer"]["majority"]
    return [
        answer_section(data, verdicts["answer"], absent),
        pays_section(data, verdicts["pays"], absent, own("pays")[:1]),
        try_section(data, verdicts.get("try", {}), absent),
        data_section(data, content["reading"], absent),
        words_section(data, absent, own("words")),
        training_section(data, absent, own("training"), majority),
        good_section(data, absent, own("good"), majority),
    ]


_ANSWER = {
    Scores.label: "The scores",
    Curves.label: "Learning curves",
    Confused.label: "What is taken for what",
}
_MOST_CONFUSED = 8  # classes up to which all pairs are shown
_CONFUSIONS = 12


def answer_section(data: Data, record: Mapping[str, Any], absent: Mapping[str, str]) -> Section:
    """The scores with all labels, accuracy against labels, and what the best student confuses."""
    figures = []
    if Scores.label in data:
        figures.append(scores_table(Scores.of(data)))
    if Curves.label in data and bool(Curves.accuracy(data).notnull().any()):
        figures.append(
            accuracy_curves(
                Curves.of(data),
                data.get(Needed.label),
                id="accuracy_curves",
                majority=record["majority"],
            )
        )
    if Confused.label in data:
        figures.append(confusion_table(Confused.of(data)))
    return Section(
        "answer",
        "What is best on these texts?",
        body=why_missing(_ANSWER, data, absent, section="answer"),
        figures=tuple(figures),
        how_measured="Attention pooling, mean pooling of as many dimensions, and TF-IDF with "
        "logistic regression, all tuned alike on validation texts. One is better than another where "
        "the 95 % interval of the difference, over seeds and test texts, excludes 0.",
    )


def scores_table(scores: xr.Dataset) -> Figure:
    """Accuracy, balanced accuracy and macro-F1 of each student, and of naming the largest class."""
    kinds = [str(kind) for kind in scores["score"].values]
    rows = [NAMES.get(str(name), str(name)) for name in scores["student"].values]
    ends = (Scores.value, Scores.low, Scores.high)
    columns: dict[str, list[Any]] = {}
    shown: dict[str, list[str]] = {}
    for kind in kinds:
        one = scores.sel(score=kind)
        columns[kind] = one[Scores.value].values.tolist()
        shown[kind] = [
            _with_ends(*(float(one[name][k]) for name in ends)) for k in range(len(rows))
        ]
    return plain_table(
        rows,
        columns,
        id="scores",
        title="With all labels",
        shown=shown,
        caption="Means over seeds, with 95 % intervals for other seeds and other texts of the same "
        "kind. Balanced accuracy: the mean over classes of the share that is found. Macro-F1: the "
        "mean over classes of F1.",
    )


def _with_ends(value: float, low: float, high: float) -> str:
    """A share with its interval, in per cent; a dash where there is none."""
    if not np.isfinite(value):
        return "–"
    return f"{100 * value:.1f}\u00a0% [{100 * low:.1f}, {100 * high:.1f}]"


def confusion_table(confused: xr.Dataset) -> Figure:
    """What the best student says of the texts of each class; of many classes the pairs that it
    confuses most.
    """
    student = NAMES.get(str(confused.attrs["student"]), str(confused.attrs["student"]))
    title = f"What {student} takes for what"
    names = distinct(shortened(name) for name in confused["true"].values)
    share, low, high = (
        confused[name].transpose("true", "said").values
        for name in (Confused.share, Confused.low, Confused.high)
    )
    texts = confused[Confused.texts].values
    how = "Means over seeds; 95 % intervals over test texts."
    if len(names) > _MOST_CONFUSED:
        wrong = np.where(np.eye(len(names), dtype=bool), np.nan, share)
        order = [k for k in np.argsort(-wrong, axis=None, kind="stable") if wrong.flat[k] > 0]
        pairs = [divmod(int(k), len(names)) for k in order[:_CONFUSIONS]]
        return plain_table(
            distinct(f"{names[i]} taken for {names[j]}" for i, j in pairs),
            {
                "share of its texts": [float(share[i, j]) for i, j in pairs],
                "test texts": [int(texts[i]) for i, _ in pairs],
            },
            id="confusion",
            title=title,
            shown={
                "share of its texts": [
                    _with_ends(share[i, j], low[i, j], high[i, j]) for i, j in pairs
                ]
            },
            caption=f"The {len(pairs)} most frequent confusions of {len(names)} classes. {how}",
        )
    columns = {f"said: {name}": share[:, j].tolist() for j, name in enumerate(names)}
    shown = {
        f"said: {name}": [_with_ends(share[i, j], low[i, j], high[i, j]) for i in range(len(names))]
        for j, name in enumerate(names)
    }
    tones = {
        f"said: {name}": [
            f"h{min(4, int(5 * share[i, j]))}" if np.isfinite(share[i, j]) else ""
            for i in range(len(names))
        ]
        for j, name in enumerate(names)
    }
    return plain_table(
        [f"truly {name}" for name in names],
        columns | {"test texts": texts.astype(int).tolist()},
        id="confusion",
        title=title,
        shown=shown,
        tones=tones,
        caption=f"Each row: of the texts of one class, the share that is given each class. {how}",
    )


def data_section(data: Data, reading: Mapping[str, Any], absent: Mapping[str, str]) -> Section:
    """Rows, classes and balance, lengths, vocabulary, and what was dropped and why."""
    figures = [
        *_classes(reading),
        *_files(reading),
        *_lost(
            reading.get("dropped") or (), id="dropped", title="Rows that were left out, and why"
        ),
        *_lost(
            reading.get("recoded") or (),
            id="recoded",
            title="Lines in another encoding than the rest of their file",
            caption="They are used. If they look wrong, repair the file; a named encoding "
            "(--encoding utf-8) leaves them out.",
        ),
        *_lost(
            reading.get("leaks") or (),
            id="leaks",
            title="Texts that stand in more than one part",
            caption="A model can know these test texts by heart, so that its accuracy on them "
            "says little.",
        ),
        *_lengths(data),
        *_sampled(reading.get("sampled") or ()),
    ]
    body = [
        *_rows(reading),
        *_vocabulary(reading),
        *why_missing({Lengths.label: "Words per text"}, data, absent, section="data"),
    ]
    return Section(
        "data",
        "Your data",
        "What was read, and what was not.",
        body=tuple(body),
        figures=tuple(figures),
    )


def _rows(reading: Mapping[str, Any]) -> list[str]:
    """How many rows there are and how many are used; lengths in words."""
    said = []
    if "rows" in reading:
        left = reading["rows"] - reading.get("kept", reading["rows"])
        out = f"{counted(left)} are left out" if left else "none is left out"
        said.append(
            f"{counted(reading['rows'])} rows were read, {counted(reading.get('kept'))} are used, "
            f"{out}."
        )
    if reading.get("split"):
        said.append(f"The split into training, validation and test texts: {reading['split']}.")
    if "leaks" in reading and not reading["leaks"]:
        said.append("No text stands in more than one of training, validation and test data.")
    lengths = reading.get("lengths") or {}
    if lengths:
        said.append(
            f"Half of the training texts have up to {counted(lengths.get('median'))} words, nine "
            "in ten up to "
            f"{counted(lengths.get('p90'))}, the longest has {counted(lengths.get('longest'))}."
        )
    return [" ".join(said)] if said else []


def _vocabulary(reading: Mapping[str, Any]) -> list[str]:
    words = reading.get("vocabulary") or {}
    if not words:
        return []
    said = f"The vocabulary, from training texts only, has {counted(words.get('size'))} words"
    said += f"; {counted(words['left_out'])} more are left out." if words.get("left_out") else "."
    unknown = words.get("unknown") or {}
    shares = [
        f"{percent(share)} of {_PARTS.get(part, part)} words" for part, share in unknown.items()
    ]
    tail = " Not in it, and so unseen by the models: " + ", ".join(shares) + "." if shares else ""
    return [said + tail]


def _classes(reading: Mapping[str, Any]) -> list[Figure]:
    """Rows of each class in each part, its share, and which values of the label column it was read
    from.
    """
    classes = reading.get("classes") or {}
    if not classes:
        return []
    order = sorted(classes, key=lambda name: -sum(classes[name].values()))
    shown = order[:_MOST_CLASSES]
    parts = [part for part in _PARTS if any(part in counts for counts in classes.values())]
    columns: dict[str, list[Any]] = {
        _PARTS[p]: [classes[name].get(p, 0) for name in shown] for p in parts
    }
    words = {name: [counted(value) for value in values] for name, values in columns.items()}
    total = sum(sum(counts.values()) for counts in classes.values())
    columns["share"] = [sum(classes[name].values()) / max(total, 1) for name in shown]
    words["share"] = [percent(share) for share in columns["share"]]
    read = {
        name: [value for value, own in (reading.get("labels") or {}).items() if own == name]
        for name in shown
    }
    if any(values and values != [name] for name, values in read.items()):
        columns["read from"] = [_values(read[name]) for name in shown]
    left = (
        f" The {len(shown)} largest of {len(order)} classes are shown."
        if len(shown) < len(order)
        else ""
    )
    return [
        plain_table(
            distinct(shortened(name) for name in shown),
            columns,
            id="classes",
            title="Classes, and how many rows each has",
            shown=words,
            caption=f"{_balance([sum(counts.values()) for counts in classes.values()], total)}{left}",
        )
    ]


def _values(values: Sequence[str]) -> str:
    shown = [shortened(value) for value in values[:_MOST_VALUES]]
    return (
        ", ".join([*shown, *([f"… ({len(values)} in all)"] if len(values) > _MOST_VALUES else [])])
        or "–"
    )


def _balance(counts: Sequence[int], total: int) -> str:
    """What always naming the largest class would score: the accuracy that means nothing."""
    if not total:
        return "No row has a class."
    return (
        f"Always naming the largest class is right in {percent(max(counts) / total)} of the rows."
    )


def _files(reading: Mapping[str, Any]) -> list[Figure]:
    files = list(reading.get("files") or ())
    if not files:
        return []
    shown = files[:_MOST_FILES]
    columns: dict[str, list[Any]] = {
        "format": [shortened(file.get("format") or "–") for file in shown],
        "encoding": [shortened(file.get("encoding") or "–") for file in shown],
        "rows": [file.get("rows") for file in shown],
    }
    left = f"The first {len(shown)} of {len(files)} files." if len(shown) < len(files) else ""
    return [
        plain_table(
            distinct(shortened(file.get("name", ""), _LINE) for file in shown),
            columns,
            id="files",
            caption=left,
            title="Files that were read",
            shown={"rows": [counted(file.get("rows")) for file in shown]},
        )
    ]


def _lost(
    entries: Sequence[Mapping[str, Any]], *, id: str, title: str, caption: str = ""
) -> list[Figure]:
    """Reasons with counts and first examples, the most frequent first."""
    if not entries:
        return []
    order = sorted(entries, key=lambda entry: -entry["count"])[:_MOST_REASONS]
    columns = {
        "count": [entry["count"] for entry in order],
        "first examples": [_examples(entry.get("examples") or ()) for entry in order],
    }
    return [
        plain_table(
            distinct(shortened(entry["reason"], _LINE) for entry in order),
            columns,
            id=id,
            title=title,
            caption=caption,
            shown={"count": [counted(entry["count"]) for entry in order]},
        )
    ]


def _sampled(entries: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """What stands for more than was looked at: a figure, how many, of how many."""
    if not entries:
        return []
    columns: dict[str, list[Any]] = {
        "used": [entry["used"] for entry in entries],
        "of": [entry["of"] for entry in entries],
        "what": [shortened(entry.get("what", "texts"), _LINE) for entry in entries],
    }
    words = {name: [counted(value) for value in columns[name]] for name in ("used", "of")}
    return [
        plain_table(
            distinct(shortened(entry["figure"], _LINE) for entry in entries),
            columns,
            id="sampled",
            shown=words,
            title="Figures that look at some of the data",
            caption="Drawn at random, the same whenever the study is run. All else is of all "
            "texts.",
        )
    ]


def _examples(examples: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        f"{_place(example)}: “\u2068{shortened(example['text'], _LINE)}\u2069”"
        if str(example.get("text") or "").strip()
        else _place(example)
        for example in examples[:_MOST_EXAMPLES]
    ]
    return "; ".join(shown) or "–"


def _place(example: Mapping[str, Any]) -> str:
    """File and row; of a long path its end, where the row is."""
    place = str(example.get("place", ""))
    return shortened(place if len(place) <= _PLACE else f"…{place[1 - _PLACE :]}", _PLACE)


def _lengths(data: Data) -> list[Figure]:
    if Lengths.label not in data:
        return []
    values = np.asarray(Lengths.length(data).values, dtype=float)
    low, high = np.floor(values.min()), np.ceil(values.max())
    # Whole numbers of words in each bin, or some bins would hold more lengths than others.
    width = int(np.ceil((high - low + 1) / _BINS))
    edges: Any = np.arange(low - 0.5, high + width, width)
    return [
        histogram_figure(
            {"training texts": values},
            id="lengths",
            title="Words per training text",
            x_label="words",
            y_label="share of the texts",
            bins=edges,
            caption=f"Known and unknown words, in bins of {width} word{'s' if width > 1 else ''}.",
        )
    ]


_PAYS = {Needed.label: "Labels needed for the target"}
_OUTCOMES = {"exact": "crossed", "at least": "not reached", "at most": "already met"}


def pays_section(
    data: Data, record: Mapping[str, Any], absent: Mapping[str, str], cards: tuple[Card, ...]
) -> Section:
    """The labels that each student needs for the target."""
    figures = []
    if Needed.label in data:
        figures.append(labels_figure(Needed.of(data), id="labels_needed"))
    return Section(
        "pays",
        "How many labels does each need?",
        "The labels after which each reaches one level of accuracy.",
        body=(*why_missing(_PAYS, data, absent, section="pays"), record["one_more_point"]),
        cards=cards,
        figures=tuple(figures),
        how_measured=" ".join(record["tuned"]),
    )


def accuracy_curves(
    curves: xr.Dataset, needed: xr.Dataset | None, *, id: str, majority: float
) -> Figure:
    """``accuracy`` (student, seed, size) against size, with the target and where each student meets
    it, and the accuracy of always naming the largest class.
    """
    target = float(curves.attrs["level"])
    figure = learning_curves(
        _tabulated(curves, needed, target),
        id=id,
        title="How accuracy grows with labels",
        y_label="test accuracy",
        caption="Line: mean over seeds; band: 10–90 % of seeds. Open circle: where the line first "
        "meets the target, "
        "with its 95 % interval; a triangle: not reached (pointing right) or already met (left) "
        "on this grid.",
    )
    style = figure.plotly["layout"]
    style["xaxis"]["title"]["text"] = "labelled training texts"
    for trace in list(figure.plotly["data"]):
        if trace.get("name", "").startswith("level "):
            trace["name"] = f"target {percent(target)}"
            name = f"largest class {percent(majority)}"
            line = trace["line"] | {"dash": "dash"}
            figure.plotly["data"].append(
                trace | {"name": name, "y": [majority, majority], "line": line}
            )
    return figure


def _tabulated(curves: xr.Dataset, needed: xr.Dataset | None, target: float) -> xr.Dataset:
    """The curves in the form that ``learning_curves`` draws."""
    students = [str(name) for name in curves["student"].values]
    told = {"score": "accuracy", "falling": False, "level": target, "statistic": "mean"}
    numbers = {
        name: np.full(len(students), np.nan) for name in ("needed", "needed_low", "needed_high")
    }
    kinds, said = ["not run"] * len(students), [""] * len(students)
    for mark in marks_of(needed) if needed is not None else ():
        if mark.label in students and mark.kind in _OUTCOMES:
            k = students.index(mark.label)
            numbers["needed"][k], numbers["needed_low"][k], numbers["needed_high"][k] = (
                mark.value,
                mark.low,
                mark.high,
            )
            kinds[k], said[k] = _OUTCOMES[mark.kind], f"{mark.words} labels for {percent(target)}"
    table = curves[[Curves.accuracy]].assign_attrs(told).assign_coords(student=students)
    return table.assign(
        {name: ("student", values) for name, values in numbers.items()}
        | {"needed_kind": ("student", kinds), "needed_said": ("student", said)}
    )


def marks_of(needed: xr.Dataset) -> list[Mark]:
    """The labels that each student needs, as marks; an unknown number has no place and stands at
    the least known.
    """
    values, low, high = (
        np.asarray(needed[name].values, dtype=float)
        for name in (Needed.value, Needed.low, Needed.high)
    )
    known = values[np.isfinite(values)]
    marks = []
    for k, student in enumerate(str(name) for name in needed["student"].values):
        kind = cast(Any, str(needed[Needed.kind].values[k]))
        value = values[k] if np.isfinite(values[k]) else float(known.min()) if known.size else 1.0
        kind = kind if np.isfinite(values[k]) else "unknown"
        least, most = 0.0 if np.isnan(low[k]) else low[k], np.inf if np.isnan(high[k]) else high[k]
        mark = Mark(shortened(student), float(value), float(least), float(most), kind)
        marks.append(replace(mark, said=f"{mark.words} labels"))
    return marks


def labels_figure(needed: xr.Dataset, *, id: str) -> Figure:
    """A row for each student: labels needed for the target, with interval or as a bound."""
    level = f"{percent(needed.attrs['level'])} accuracy"
    marks = marks_of(needed)
    bounds = bounds_note([mark for mark in marks if mark.kind != "unknown"])
    unknown = (
        "A crossed circle: unknown; its place says nothing."
        if any(m.kind == "unknown" for m in marks)
        else ""
    )
    return rows_figure(
        marks,
        id=id,
        title=f"Labels needed for {level}",
        x_label="labelled training texts",
        caption=" ".join(filter(None, ["Bars: 95 % intervals over seeds.", bounds, unknown])),
    )


_GOOD = {
    Ends.label: "Gradient and curvature where training stopped",
    Agreement.label: "Agreement of seeds",
    PATH: "The line between two seeds",
    Polish.label: "Minima, from a polish with l2",
}
_END_COLUMNS = {
    Ends.accuracy_test: "test accuracy",
    Ends.gradient: "gradient norm",
    Ends.sharpness: "largest curvature λ_max",
    Ends.trace: "trace of the curvature",
}
_POLISH_COLUMNS = {
    Polish.kind: "kind",
    Polish.l2: "l2",
    Polish.loss: "training loss",
    Polish.gradient: "gradient norm",
    Polish.accuracy_test: "test accuracy",
}
_SEED_ROWS, _SEED_PAIRS = 24, 12


def good_section(
    data: Data, absent: Mapping[str, str], cards: tuple[Card, ...], majority: float
) -> Section:
    """Where training stopped, seed by seed; how far seeds agree; the line between two; minima from
    a polish.
    """
    figures = []
    if Ends.label in data:
        figures += ends_figures(Ends.of(data), majority)
    if Agreement.label in data:
        figures.append(agreement_table(Agreement.of(data), id="agreement"))
    if PATH in data:
        figures.append(
            barrier_figure(
                data[PATH],
                id="between_seeds",
                title="The loss on the straight line between two seeds",
                caption="From where training stopped with one seed to where it stopped with "
                "another.",
                ends="where training stopped",
                x_label="t, from one seed (0) to the other (1)",
                y_label="training loss",
            )
        )
    if Polish.label in data:
        figures.append(polish_table(Polish.of(data), id="polish"))
    return Section(
        "good",
        "Theory: where did training stop?",
        "Gradient and curvature there, how far seeds agree, and what lies between them. Measured "
        "where training stopped, which need not be a point of rest.",
        body=why_missing(_GOOD, data, absent, section="good"),
        cards=cards,
        figures=tuple(figures),
        folded=True,
    )


def ends_figures(ends: xr.Dataset, majority: float) -> list[Figure]:
    """Test accuracy of each seed, gradient and curvature as dots, and all of it as a table."""
    accuracy = ends[Ends.accuracy_test]
    figures = [
        scatter_figure(
            {"seeds": (ends["seed"], accuracy)},
            id="ends_accuracy",
            title="Test accuracy, seed by seed",
            x_label="seed",
            y_label="test accuracy",
            lines={"median": float(accuracy.median()), "largest class": majority},
            caption="Dotted lines: the median over seeds, and always naming the largest class.",
        )
    ]
    rows = [
        DotRow(_END_COLUMNS[name], ends[name])
        for name in (Ends.gradient, Ends.sharpness, Ends.trace)
        if _positive(ends[name])
    ]
    if rows:
        figure = dots_figure(
            rows,
            id="ends_curvature",
            title="Gradient and curvature where training stopped",
            x_label="value",
            caption="Of the training loss; one dot per seed, the bar is the median. A gradient "
            "far from zero says that training would go on.",
        )
        traces = [
            trace if trace["name"] == "median" else trace | {"name": "one seed"}
            for trace in figure.plotly["data"]
        ]
        figures.append(replace(figure, plotly=figure.plotly | {"data": traces}))
    figures.append(_by_seed(ends, _END_COLUMNS, id="ends", title="Where training stopped"))
    return figures


def _positive(values: xr.DataArray) -> bool:
    """Whether a logarithmic axis can show it: curvature where training stopped may be negative."""
    array = values.values.astype(float)
    return bool(np.isfinite(array).any()) and not bool((array < 0).any())


def _by_seed(
    data: xr.Dataset, names: Mapping[Any, str], *, id: str, title: str, caption: str = ""
) -> Figure:
    top = data.isel(seed=slice(_SEED_ROWS))
    columns: dict[str, list[Any]] = {
        title: [shortened(v) for v in top[name].values]
        if name == Polish.kind
        else top[name].values.astype(float).tolist()
        for name, title in names.items()
    }
    shown = {
        word: [percent(v) for v in columns[word]]
        for word in columns
        if word == _END_COLUMNS[Ends.accuracy_test]
    }
    left = (
        f" The first {_SEED_ROWS} of {data.sizes['seed']} seeds."
        if data.sizes["seed"] > _SEED_ROWS
        else ""
    )
    rows = [f"seed {seed}" for seed in top["seed"].values.tolist()]
    return plain_table(
        rows, columns, id=id, title=title, shown=shown, caption=f"{caption}{left}".strip()
    )


def agreement_table(agreement: xr.Dataset, *, id: str) -> Figure:
    """In how many test texts each two seeds say the same, the stronger tinted the more they differ
    from the others.
    """
    share = (
        agreement[Agreement.share]
        .isel(seed=slice(_SEED_PAIRS), other=slice(_SEED_PAIRS))
        .transpose("seed", "other")
    )
    values = share.values.astype(float)
    seeds, others = (
        [f"seed {seed}" for seed in share[dim].values.tolist()] for dim in ("seed", "other")
    )
    apart = np.array([[a != b for b in others] for a in seeds])
    known = values[apart & np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    level = np.clip(5 * (values - low) / ((high - low) or 1.0), 0, 4)
    tones = {
        name: [
            f"h{int(level[i, k])}" if apart[i, k] and np.isfinite(level[i, k]) else ""
            for i in range(len(seeds))
        ]
        for k, name in enumerate(others)
    }
    said = (
        f"From {percent(low)} to {percent(high)} of the test texts; the mean is "
        f"{percent(known.mean())}. "
        if (known.size)
        else ""
    )
    left = (
        f" The first {_SEED_PAIRS} of {agreement.sizes['seed']} seeds."
        if agreement.sizes["seed"] > _SEED_PAIRS
        else ""
    )
    return plain_table(
        seeds,
        {name: values[:, k].tolist() for k, name in enumerate(others)},
        id=id,
        title="How often two seeds say the same of a test text",
        tones=tones,
        shown={name: [percent(v) for v in values[:, k]] for k, name in enumerate(others)},
        caption=f"{said}Seeds of equal accuracy may still be right on different texts.{left}",
    )


def polish_table(polish: xr.Dataset, *, id: str) -> Figure:
    """What a polish with l2 ended in, seed by seed."""
    return _by_seed(
        polish,
        _POLISH_COLUMNS,
        id=id,
        title="Minima, from a polish with l2",
        caption="From where training stopped, the loss with a penalty ½ l2 ‖θ‖² was minimised "
        "further: with a penalty "
        "a point of rest exists. The kind is what was certified there.",
    )


_TRY = {Tried.label: "Variants of attention"}


def try_section(data: Data, record: Mapping[str, Any], absent: Mapping[str, str]) -> Section:
    """Variants of attention from the best to the worst, and the advice that follows."""
    statement, figures = "Other ways to turn scores into attention, on the same texts.", []
    if Tried.label in data:
        table = Tried.of(data)
        statement = (
            f"Ways to turn scores into attention, each with {counted(table.attrs['size'])} labels, "
            f"{int(table.attrs['steps'])} steps and the same tuning, over "
            f"{int(table.attrs['seeds'])} seeds."
        )
        figures.append(tried_table(table))
    advice = (record["advice"],) if record else ()
    return Section(
        "try",
        "Would another kind of attention do better?",
        statement,
        body=(*why_missing(_TRY, data, absent, section="try"), *advice),
        figures=tuple(figures),
        how_measured="Softmax is the attention pooling and uniform the mean pooling above, with "
        "their runs. “attnlab compare FILES” has the long form: more variants, learning curves, "
        "the labels that each needs, and what is only speed.",
    )


def tried_table(table: xr.Dataset) -> Figure:
    """Accuracy of every variant, and its gain over the one compared with."""
    rows = [str(name) for name in table["student"].values]
    against = str(table.attrs["against"])
    value, low, high, gain, gain_low, gain_high, entropy = (
        table[name].values.astype(float)
        for name in (
            Tried.value,
            Tried.low,
            Tried.high,
            Tried.gain,
            Tried.gain_low,
            Tried.gain_high,
            Tried.entropy,
        )
    )
    gains = [
        f"{100 * g:+.1f} [{100 * a:+.1f}, {100 * b:+.1f}]" if name != against else "–"
        for name, g, a, b in zip(rows, gain, gain_low, gain_high, strict=True)
    ]
    tones = [
        "good" if a > 0 else "bad" if b < 0 else ""
        for a, b in zip(gain_low, gain_high, strict=True)
    ]
    points = f"points over {against}"
    columns = {
        "test accuracy": value.tolist(),
        points: (100 * gain).tolist(),
        "words attended to": np.exp(entropy).tolist(),
    }
    return plain_table(
        rows,
        columns,
        id="ranking",
        title="From the best to the worst",
        shown={
            "test accuracy": [_with_ends(*ends) for ends in zip(value, low, high, strict=True)],
            points: gains,
            "words attended to": [f"{np.exp(e):.1f}" for e in entropy],
        },
        tones={points: tones},
        caption="95 % intervals for other seeds and other texts; those of the differences are from "
        "the same texts and seeds, and so narrower. Words attended to: e to the mean entropy of "
        "attention.",
    )
