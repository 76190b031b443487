"""``attnlab study``: settings, sweeps and answers about a user's labelled texts."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab._places import is_file, place, read_bytes, write_atomically, writing
from attnlab.lab import Answers, Bench, Data, Experiment, Grid, Option, Scale, Settings, TextTable
from attnlab.papers.liu2021.word_settings import FIT_WORDS, POOLING, on_texts
from attnlab.papers.lu2021.text_settings import TRAIN_TEXT
from attnlab.questions.texts._answers import all_cards, pays, records
from attnlab.questions.texts._best import confusion, scoreboard, tried, verdict
from attnlab.questions.texts._page import sections
from attnlab.questions.texts._tables import (
    STUDENTS,
    TABLES,
    Answered,
    Confused,
    Curves,
    Lengths,
    Needed,
    Scores,
    Tried,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.data import Prepared, TextSource
    from attnlab.lab import Record
    from attnlab.report import Section
    from attnlab.sweeps import AbstractExecutor

TRIED = ("softmax", "softmax:0.25", "sparsemax", "uniform")
_SIZES = 7  # numbers of labels of a learning curve: the fewest from which one can be extrapolated
_FEWEST = 16
_TEXTS, _WORDS, _COST = "Texts", "Words", "How much to run"
_NUMBERS: dict[Scale, dict[str, int]] = {
    "quick": {"seeds": 8, "fit_steps": 600, "training_seeds": 4},
    "paper": {"seeds": 16, "fit_steps": 1500, "training_seeds": 8},
}


@dataclass(frozen=True)
class StudySettings(Settings):
    """Which texts, what counts as a word of them, and how much is run.

    Beyond the options of the command, of which those that are ``None`` follow from the scale:

    - ``sizes``: numbers of labels of the learning curves; seven by default, up to all training
      texts (16 384 at most). ``fit_steps``: Adam steps of each fit.
    - ``training_seeds``, ``training_steps``, ``embedding_dim``, ``head``: plain descent in the
      theory's setting (docs/theory.md#a7), whose best validation step is the model that is looked
      at and stored.
    - ``variants``: of attention, compared with all labels for "What to try"; others are compared
      with the first. Softmax and uniform weights are those of the learning curves.
    """

    files: Annotated[
        tuple[str, ...],
        Option(
            "Labelled texts: CSV, TSV, JSON Lines, Parquet or “label text” lines, also compressed, "
            "also at URLs; with --test those for training.",
            argument=True,
        ),
    ] = ()
    text: Annotated[str | None, Option("The column with the texts.", _TEXTS)] = None
    label: Annotated[str | None, Option("The column with the labels.", _TEXTS)] = None
    valid: Annotated[
        tuple[str, ...],
        Option(
            "Validation files, several by spaces; without them a tenth is held out.",
            _TEXTS,
            commas=False,
        ),
    ] = ()
    test: Annotated[
        tuple[str, ...],
        Option("Test files; without them the split is 8 : 1 : 1.", _TEXTS, commas=False),
    ] = ()
    format: Annotated[
        str | None, Option("csv, tsv, jsonl, parquet or lines; else guessed.", _TEXTS)
    ] = None
    encoding: Annotated[str | None, Option("Such as utf-8 or cp1252; else found out.", _TEXTS)] = (
        None
    )
    header: Annotated[
        bool, Option("Whether the first row of CSV and TSV names the columns.", _TEXTS)
    ] = True
    lower: Annotated[bool, Option("Make words lower case.", _WORDS)] = True
    punctuation: Annotated[bool, Option("Keep punctuation marks as words.", _WORDS)] = False
    tokenizer: Annotated[
        str | None,
        Option("A tokeniser of your own, module:function, from text to words.", _WORDS),
    ] = None
    min_count: Annotated[int, Option("Rarer words are unknown and dropped.", _WORDS, least=1)] = 1
    max_words: Annotated[
        int, Option("The most frequent words that are known.", _WORDS, least=1)
    ] = 20_000
    level: Annotated[
        float | None,
        Option("Accuracy at which labels are compared; else what both poolings reach.", _COST),
    ] = None
    scale: Annotated[Scale, Option("quick (8 seeds) or paper (16 seeds, longer fits).", _COST)] = (
        "quick"
    )
    seeds: Annotated[
        int | None, Option("Seeds of the learning curves; an interval needs 8.", _COST, least=1)
    ] = None
    what_to_try: Annotated[
        bool,
        Option(
            "Compare variants of attention too, for “What to try”.",
            _COST,
            names=("--try/--no-try",),
        ),
    ] = True
    split_seed: Annotated[int, Option("Draws the split.", _COST)] = 0
    sizes: tuple[int, ...] = ()
    fit_steps: int | None = None
    training_seeds: int | None = None
    training_steps: int = 12_000
    embedding_dim: int = 200
    head: str = "fixed"
    variants: tuple[str, ...] = TRIED

    def __post_init__(self):
        super().__post_init__()
        if not self.files:
            raise AttnlabError("no file was given: expected at least one with labelled texts")
        if self.valid and not self.test:
            raise AttnlabError(
                "validation files without test files: give both (--valid, --test), or neither"
            )
        if self.level is not None and not 0 < self.level < 1:
            raise AttnlabError(
                f"--level {self.level:g}: expected an accuracy between 0 and 1, such as 0.8"
            )
        for name in ("fit_steps", "training_seeds", "training_steps", "embedding_dim"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise AttnlabError(f"{name}={value}: expected at least 1")

    def number(self, name: str) -> int:
        """``seeds``, ``fit_steps`` or ``training_seeds``: as given, or that of the scale."""
        given = getattr(self, name)
        return _NUMBERS[self.scale][name] if given is None else given

    @property
    def tried(self) -> tuple[str, ...]:
        """The variants of attention that are compared; none if that was not asked for."""
        return self.variants if self.what_to_try else ()

    @property
    def subject(self) -> dict[str, tuple[str, ...]]:
        """Which texts, and which of their columns."""
        return self.source().subject

    def source(self) -> TextSource:
        """The texts and what counts as a word, as the data room reads them."""
        return al.data.TextSource(
            self.files,
            self.valid,
            self.test,
            text=self.text,
            label=self.label,
            format=self.format,
            encoding=self.encoding,
            header=self.header,
            lower=self.lower,
            punctuation=self.punctuation,
            tokenizer=self.tokenizer,
            min_count=self.min_count,
            max_words=self.max_words,
            split_seed=self.split_seed,
        )


class Study(Experiment[StudySettings]):
    """Study your own labelled texts: does attention pay, what does it attend to, is what was
    trained good?

    Learning curves of attention pooling, mean pooling and TF-IDF say how many labels each needs;
    training along the theory's setting says which words get attention and since when, and where
    training stopped; a comparison of variants of attention says what to try. Writes
    OUT/report.html, OUT/record.json, the data and the trained model (OUT/model, for `attnlab
    predict`). Interrupted and started again, it resumes.

    Examples:

        attnlab study reviews.csv --text review --label sentiment

        attnlab study train.tsv --valid dev.tsv --test test.tsv --out mine
    """

    name = "study"
    title = "attnlab: a study of your texts"
    settings = StudySettings

    def measure(self, settings: StudySettings, bench: Bench) -> Data:
        """Read the texts, run the sweeps, look at where training stopped, store the model."""
        from attnlab.questions.texts import _work

        bench.stage("reading the texts")
        prepared, folder = al.data.prepare_in(
            settings.source(),
            str(bench.folder),
            on_rows=lambda count: bench.stage(f"reading: {count:,} texts "),
        )
        for entry in prepared.reading["recoded"]:
            bench.stage(f"lines {entry['reason']}: {entry['count']:,}")
        sizes = settings.sizes or default_sizes(len(prepared.train))
        common = on_texts(folder, prepared.hash)
        students = _run(bench, prepared, "students", _students(settings, common, sizes))
        others = [name for name in settings.tried if name not in POOLING.values()]
        variants: dict[str, xr.Dataset] = {}
        if others:
            stage = _variants(settings, common, others, max(sizes))
            variants = _run(bench, prepared, "variants", stage)
        trained = _run(bench, prepared, "training", _training(settings, prepared, folder))[
            "training"
        ]
        bench.executor.rest()  # what follows needs the memory that waiting processes hold

        bench.stage("looking at where training stopped")
        curves = _work.student_curves(students)
        needed, paying = pays(curves, settings.level)
        data = {
            Curves.label: curves.assign_attrs(level=paying["level"]),
            Needed.label: needed,
            Lengths.label: _work.some_lengths(prepared.train),
            **_work.training_tables(trained, prepared, settings.source().words()),
        }
        models = _work.kept_models(trained, len(prepared.train.classes))
        ended = _work.stopped(trained, models, prepared)
        data |= ended.data
        answered = _work.answers_of(students | variants, prepared, labels=max(sizes))
        data |= {
            Answered.label: answered,
            Scores.label: scoreboard(answered),
            Confused.label: confusion(answered),
        }
        verdicts = {"answer": verdict(answered), "pays": paying, **records(data)}
        if settings.tried:
            names = {POOLING.get(name, name): name for name in (*POOLING, *variants)}
            names = {name: names[name] for name in settings.tried if name in names}
            arms = students | variants
            entropies = {name: _work.median_entropy(arms[own]) for name, own in names.items()}
            data[Tried.label], verdicts["try"] = tried(
                answered, entropies, names, steps=settings.number("fit_steps")
            )
        for table in TABLES:
            if table.label in data:
                table.check(data[table.label])
        bench.stage("storing the model")
        _work.store_model(bench.folder / "model", models[0], prepared, settings.source())
        sampled = _work.sampled(prepared, labels=max(sizes), variants=bool(settings.tried))
        bench.found |= {
            "verdicts": verdicts,
            "reading": prepared.reading | {"sampled": sampled},
            "absent": ended.absent,
            "sizes": list(sizes),
            "content": prepared.hash,
            "peak_memory": _peak_memory(),
        }
        bench.found["cards"] = [asdict(card) for card in all_cards(data, bench.found)]
        return data

    def answers(self, settings: StudySettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """The answer in one sentence; every part of it is a card of its section."""
        level = found["verdicts"]["pays"]["level"]
        chosen = {name: settings.number(name) for name in _NUMBERS[settings.scale]}
        chosen |= {"sizes": found["sizes"], "level": level, "variants": settings.tried}
        return Answers(
            question="Which way to classify these texts is best, and does attention pay?",
            summary=(found["verdicts"]["answer"]["sentence"],),
            absent=found["absent"],
            facts={"peak memory": found["peak_memory"], **asdict(settings), **chosen},
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """The answer first: what is best, labels needed, what to try; the data, the words; theory."""
        return sections(record)

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """The answer, and every part of it under its label."""
        cards = record.content["cards"]
        return [*record.about["summary"], *(f"{card['label']}: {card['text']}" for card in cards)]


def study_texts(
    texts: Any,
    folder: str | Path,
    *,
    labels: Iterable[Any] | None = None,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_stage: Callable[[str], None] | None = None,
    overwrite: bool = False,
    **settings: Any,
) -> Record:
    """Study labelled texts as ``attnlab study`` does; returns the record, the page lies in the folder.

    ``texts`` are files; or a data frame of pandas or Polars, whose columns ``text`` and ``label``
    name; or, with ``labels``, the texts themselves. Texts in memory are written to
    ``folder/texts.jsonl``. ``settings`` are the fields of `StudySettings`. Interrupted and called
    again, it resumes. `attnlab.lab.run` has more to choose from, and says what ``overwrite`` is.
    """
    file, content = place(folder) / "texts.jsonl", None
    if labels is None and hasattr(type(texts), "columns"):
        texts, labels = al.data.frame_columns(
            texts, settings.pop("text", None), settings.pop("label", None)
        )
    if labels is not None:
        texts, content = str(file), _as_lines(list(texts), list(labels))
        settings |= {"text": "text", "label": "label", "format": "jsonl"}
    asked = StudySettings(files=tuple(al.data.named_files(texts)), **settings)
    if content is not None:
        al.lab.take_folder(folder, Study.name, asked.subject, overwrite=overwrite)
        _store_texts(file, content, overwrite=overwrite)
    return al.lab.run(
        Study(),
        asked,
        folder,
        processes=processes,
        executor=executor,
        progress=progress,
        on_stage=on_stage,
        overwrite=overwrite,
    )


def _as_lines(texts: list[Any], labels: list[Any]) -> bytes:
    """Texts in memory as JSON Lines."""
    if len(texts) != len(labels):
        raise AttnlabError(
            f"{len(texts)} texts and {len(labels)} labels: expected one label for each text"
        )
    lines = [
        json.dumps({"text": _or_null(text), "label": _or_null(label)})
        for text, label in zip(texts, labels, strict=True)
    ]
    return ("\n".join(lines) + "\n").encode()


def _or_null(value: Any) -> str | None:
    """A text or label as a string; what is missing as ``None``."""
    return None if al.data.is_missing(value) else str(value)


def _store_texts(file: Path, content: bytes, *, overwrite: bool) -> None:
    """Write texts to the folder of their study; it may not be that of others."""
    with writing(file.parent):
        if is_file(file) and not overwrite:
            if read_bytes(file) != content:
                raise AttnlabError(
                    f"{file.parent} holds a study of other texts (texts.jsonl): give another "
                    "folder, or overwrite=True"
                )
            return
        write_atomically(file, content)


def default_sizes(available: int) -> tuple[int, ...]:
    """Seven numbers of labels, evenly spaced in the logarithm, up to all there are (16 384 at
    most).

    >>> default_sizes(6920)
    (108, 216, 432, 864, 1729, 3459, 6920)
    """
    most = min(available, al.data.thinning.LABELS)
    least = max(most // 64, min(_FEWEST, most))
    return tuple(dict.fromkeys(round(float(n)) for n in np.geomspace(least, most, _SIZES)))


@dataclass(frozen=True)
class _Stage:
    """One sweep of a study: what is said of it, its work function, and its runs."""

    said: str
    work: str
    grid: Grid


def _run(bench: Bench, prepared: Prepared, name: str, stage: _Stage) -> dict[str, xr.Dataset]:
    """The runs of a sweep, by arm."""
    bench.stage(stage.said)
    plan = stage.grid.plan(stage.work, name)
    return al.lab.split_arms(bench.sweep(plan, f"{name}-{prepared.hash}").dataset())


def _students(settings: StudySettings, common: Mapping[str, Any], sizes: tuple[int, ...]) -> _Stage:
    return _Stage("learning curves", FIT_WORDS, _fits(settings, common, STUDENTS, sizes))


def _variants(
    settings: StudySettings, common: Mapping[str, Any], variants: Iterable[str], labels: int
) -> _Stage:
    """Variants with as many labels as the learning curves end with, and the same tuning."""
    fits = _fits(settings, common, variants, (labels,))
    return _Stage("variants of attention", FIT_WORDS, fits)


def _fits(
    settings: StudySettings,
    common: Mapping[str, Any],
    students: Iterable[str],
    sizes: tuple[int, ...],
) -> Grid:
    steps = settings.number("fit_steps")
    shared = {**common, "sizes": tuple(sizes), "steps": steps, "answers": True}
    arms = {student: {"student": student, **shared} for student in students}
    return Grid(arms, settings.number("seeds"))


def _training(settings: StudySettings, prepared: Prepared, folder: str) -> _Stage:
    large = len(prepared.train.words) > al.data.thinning.FULL_BATCH
    arm = {
        "source": folder,
        "data": prepared.hash,
        "head": settings.head,
        "embedding_dim": settings.embedding_dim,
        "steps": settings.training_steps,
        "every": max(1, settings.training_steps // 48),
        "keep": True,
        "batch_size": min(al.data.thinning.BATCH, len(prepared.train)) if large else None,
    }
    grid = Grid({"training": arm}, settings.number("training_seeds"))
    return _Stage("training along the theory's setting", TRAIN_TEXT, grid)


def _peak_memory() -> str:
    """The largest memory of this process and of any one worker."""
    if sys.platform == "win32":
        return "not measured on Windows"
    import resource  # which Windows does not have

    factor = 1 if sys.platform == "darwin" else 1024
    here, worker = (
        resource.getrusage(who).ru_maxrss * factor / 2**30
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return f"{here:.2f} GiB here, {worker:.2f} GiB in the largest worker"
