"""``attnlab samples``: how many samples each student needs, and how many it saves."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
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
    TextTable,
    digest,
)
from attnlab.papers.liu2021.curve_settings import (
    MASKS,
    ON_VECTORS,
    ON_WORDS,
    SIZES,
    TEACHERS,
    SampleSettings,
)
from attnlab.papers.liu2021.sample_figures import ratio_and_predictors
from attnlab.papers.liu2021.sample_sweeps import LEVEL, WORK, TeacherCurves
from attnlab.questions._curves import SIGNS, fit_card, ratio_card, tuning_section
from attnlab.report import (
    Card,
    Figure,
    Section,
    answers_table,
    interval,
    learning_curves,
    needed_figure,
    number,
    plain_table,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Record

_SEPARATOR = " at "  # in the label of an arm, between student and features
_FEATURES = (16,)
_STUDENTS = {
    "dense": ("baseline", "vacuous-mask"),
    "mlp": ("baseline", "self-attention"),
    "self-attention": ("baseline", "self-attention", "known-weights"),
    "multi-layer": ("baseline", "multi-layer", "known-weights"),
}
# Defaults that differ between teachers on vectors and on words.
_VECTOR_DEFAULTS = {"sizes": SIZES, "batch_size": 64, "weight_decays": (0.0, 0.1)}
_WORD_DEFAULTS = {
    "sizes": (64, 128, 256, 512, 1024, 2048, 4096),
    "batch_size": 32,
    "weight_decays": (0.1,),
}
_TASK, _WHO, _ASKED, _TUNING = "Teacher", "Students", "Question", "Training and tuning"


class Samples(TeacherCurves, label="samples"):
    """Learning curves and answers (student, features, seed, size)."""


@dataclass(frozen=True)
class SamplesSettings(Settings):
    """A teacher, students, and how their needed samples are measured."""

    teacher: Annotated[
        str,
        Option(
            "Where data comes from. On vectors: static-mask, gate, moving-block, dense; on words: "
            "self-attention, mlp, multi-layer; or your own, file.py:function (key → object with "
            "sample(n, key=…, noisy=…)).",
            _TASK,
        ),
    ] = "static-mask"
    features: Annotated[
        tuple[int, ...] | None,
        Option(
            "Numbers in an input, p, as in 16 32 64 (16); teachers on vectors only.",
            _TASK,
            metavar="P…",
            above=0,
        ),
    ] = None
    relevant: Annotated[
        int | None,
        Option("Numbers that count (4); masks, gates and blocks only.", _TASK, least=1),
    ] = None
    depth: Annotated[
        int | None, Option("Layers (1); multi-layer teachers or students only.", _TASK, least=1)
    ] = None
    classes: Annotated[int, Option("0 for regression; 2 or more for labels.", _TASK, least=0)] = 0
    noise_std: Annotated[
        float | None,
        Option(
            "Standard deviation of the noise on outputs (0.2); not with --classes.", _TASK, least=0
        ),
    ] = None
    label_noise: Annotated[
        float,
        Option("Share of labels that are flipped; with --classes.", _TASK, least=0, most=1),
    ] = 0.0
    students: Annotated[
        tuple[str, ...] | None,
        Option(
            "What learns, as in A B C. On vectors: baseline, known-attention, vacuous-mask, "
            "wrong-mask, self-attention; on words: baseline, self-attention, multi-layer, "
            "known-weights, wrong-weights; or your own, file.py:function (key, shape → any Equinox "
            "module).",
            _WHO,
            metavar="NAME…",
        ),
    ] = None
    against: Annotated[
        str | None, Option("The student that others are compared with; the first one.", _WHO)
    ] = None
    hidden: Annotated[
        int | None, Option("Hidden units of the baseline (8; 24 on words).", _WHO, least=1)
    ] = None
    sharpness: Annotated[
        float, Option("τ of the softplus units of teacher and students.", _WHO, above=0)
    ] = SampleSettings.sharpness
    level: Annotated[
        float,
        Option(
            "The error asked for, between 0 and 1: E(ŷ − g)²/Var g; with classes, the share of "
            "wrong labels.",
            _ASKED,
        ),
    ] = LEVEL
    sizes: Annotated[
        tuple[int, ...] | None,
        Option(
            "Numbers of training samples, as in 32 64 128 (8 … 4096 by doubling; 64 … 4096 on "
            "words).",
            _ASKED,
            metavar="N…",
        ),
    ] = None
    seeds: Annotated[
        int, Option("Seeds of each student; intervals need at least 8.", _ASKED, least=1)
    ] = 8
    steps: Annotated[
        int,
        Option("Steps of each fit (Adam, step size falling as a cosine).", _TUNING, least=1),
    ] = SampleSettings.steps
    batch_size: Annotated[
        int | None, Option("Samples a step (64; 32 on words).", _TUNING, least=1)
    ] = None
    step_sizes: Annotated[
        tuple[float, ...],
        Option(
            "Step sizes to choose from (0.02), for all students alike.",
            _TUNING,
            metavar="X…",
            above=0,
        ),
    ] = SampleSettings.step_sizes
    weight_decays: Annotated[
        tuple[float, ...] | None,
        Option(
            "Weight decays to choose from (0 0.1; 0.1 on words), for all students alike.",
            _TUNING,
            metavar="X…",
        ),
    ] = None
    widen: Annotated[
        int,
        Option(
            "How often a grid of step sizes or weight decays goes on where its end was chosen; one "
            "of a single value stays as it is.",
            _TUNING,
            least=0,
        ),
    ] = 2

    def __post_init__(self):
        super().__post_init__()
        self._check_teacher()
        if not 0 < self.level < 1:
            raise AttnlabError(
                f"--level {self.level:g}: expected a share between 0 and 1, such as 0.1"
            )
        for flag, given in (("--students", self.students), ("--features", self.features)):
            if given is not None and (not given or len(set(given)) < len(given)):
                shown = " ".join(map(str, given))
                raise AttnlabError(f"{flag} {shown}: expected at least one, each once")
        if self.against is not None and self.against not in self.compared:
            raise AttnlabError(
                f"--against {self.against!r} is none of the students {', '.join(self.compared)}"
            )
        self.runs()  # refuses what makes no sense together

    def _check_teacher(self) -> None:
        """Refuse an unknown teacher, and what would have no effect on this one."""
        if ":" not in self.teacher and self.teacher not in TEACHERS:
            raise AttnlabError(
                f"--teacher {self.teacher!r}: expected one of {', '.join(TEACHERS)}; or your own "
                "as file.py:function"
            )
        if self.classes and self.noise_std is not None:
            raise AttnlabError("--noise-std has no meaning with --classes: give --label-noise")
        used = {
            "features": self.teacher in ON_VECTORS,
            "relevant": self.teacher in MASKS,
            "depth": "multi-layer" in (self.teacher, *(self.students or ())),
        }
        for name, is_used in used.items():
            value = getattr(self, name)
            if value is not None and not is_used:
                shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
                raise AttnlabError(
                    f"--{name} {shown}: has no meaning for the teacher {self.teacher!r} and these "
                    "students"
                )

    @property
    def compared(self) -> tuple[str, ...]:
        """The students, by default those that suit the teacher."""
        if self.students is not None:
            return self.students
        if ":" in self.teacher:
            raise AttnlabError(
                "--students: name your own as file.py:function; a teacher of your own has no others"
            )
        return _STUDENTS.get(self.teacher, ("baseline", "known-attention"))

    @property
    def question(self) -> dict[str, Any]:
        """Level, and the student that others are compared with."""
        against = self.compared[0] if self.against is None else self.against
        return {"level": self.level, "against": against}

    def runs(self) -> SampleSettings:
        """The settings of all runs, but for student, features and seed."""
        default = _WORD_DEFAULTS if self.teacher in ON_WORDS else _VECTOR_DEFAULTS
        chosen = {**default, "teacher": self.teacher}
        for name in ("relevant", "depth", "noise_std", "hidden", *default):
            if getattr(self, name) is not None:
                chosen[name] = getattr(self, name)
        for name in ("label_noise", "classes", "sharpness", "steps", "step_sizes", "widen"):
            chosen[name] = getattr(self, name)
        return SampleSettings(**chosen, code=self._fingerprint())

    def _fingerprint(self) -> str:
        """Of the user's files that teacher and students are read from; empty if there is none."""
        names = [name for name in (self.teacher, *self.compared) if ".py:" in name]
        files = [Path(name.rpartition(":")[0]).expanduser() for name in names]
        texts = [file.read_bytes() for file in files if file.is_file()]
        return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16] if texts else ""


class SamplesQuestion(Experiment[SamplesSettings]):
    """Measure how many samples each student needs, and how many it saves.

    Every student is fitted to the same samples at every size, with the same tuning. The page shows
    learning curves, needed samples with intervals, their growth with p, ratios with a verdict
    (saves, no advantage, costs, inconclusive), and what simple quantities of the inputs predict.
    Interrupted and started again, it resumes. Options shown with a … take several
    values, separated by spaces or commas.

    Examples:

        attnlab samples --teacher static-mask --relevant 4 --features 16 32 64 128
            --students baseline known-attention --level 0.1

        attnlab samples --teacher self-attention --students baseline self-attention known-weights --out words

        attnlab samples --students baseline mine.py:model --sizes 32 64 128 256 512 --out mine

        attnlab samples --teacher mine.py:source --students mine.py:small mine.py:large --out own
    """

    name = "samples"
    title = "attnlab: how many samples does attention save?"
    settings = SamplesSettings

    def measure(self, settings: SamplesSettings, bench: Bench) -> Data:
        """The learning curve of every student at every p, and what it says."""
        from attnlab.questions._samples import check_student

        runs, default = settings.runs(), asdict(SampleSettings())
        changed = {k: v for k, v in asdict(runs).items() if v != default[k]}
        arms = {}
        for student in settings.compared:
            for p in settings.features or _FEATURES:
                check_student(replace(runs, student=student, features=p))
                own = {"student": student, "features": p}
                arms[f"{student}{_SEPARATOR}{p}"] = {**changed, **own}
        plan = Grid(arms, settings.seeds).plan(WORK, self.name)
        results = bench.sweep(plan, digest(changed))
        found = {}
        for label, data in al.lab.split_arms(results.dataset()).items():
            student, _, p = label.rpartition(_SEPARATOR)
            found[student, int(p)] = data
        question = al.complexity.Question(**settings.question)
        return {Samples.label: al.complexity.tabulate(found, question, further=True)}

    def answers(self, settings: SamplesSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """The verdict on each student, how needed samples grow, and what was tuned."""
        table = Samples.of(data)
        cards = [ratio_card(table, student) for student in _others(table)]
        if Samples.exponent in table:
            cards.append(_growth_card(table))
        cards.append(fit_card(table))
        what = "a share of wrong labels" if settings.classes else "an error"
        return Answers(
            question=f"How many samples does each student need for {what} of {settings.level:g}?",
            cards=tuple(cards),
            facts=_facts(settings, table),
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """Learning curves, needed samples, ratios, and what was tuned."""
        table, facts = Samples.of(record.data), record.about["settings"]
        return [
            _curves_section(table, facts),
            _needed_section(table),
            *_ratio_section(table),
            *tuning_section(table, facts),
        ]

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """A table of needed samples, then the answers in sentences."""
        table = Samples.of(record.data)
        yield _text_table(table)
        for student in _others(table):
            last = table.sel(student=student).isel(features=-1)
            where = f", p = {int(last.features)}" if table.sizes["features"] > 1 else ""
            said = last[Samples.said].values or "not run"
            yield f"{student} against {table.attrs['against']}{where}: {said}."

    def as_json(self, record: Record) -> dict[str, Any]:
        """The answers, and a record for each student and p."""
        return {"about": record.about, "samples": _rows(Samples.of(record.data))}


def _others(table: xr.Dataset) -> list[str]:
    """The students that are compared with another one."""
    return [name for name in table.student.values.tolist() if name != table.attrs["against"]]


def _growth_card(table: xr.Dataset) -> Card:
    signs = {"at least": "at least ", "at most": "at most "}
    said = []
    for student in table.student.values.tolist():
        one = table.sel(student=student)
        value, kind = float(one[Samples.exponent]), str(one[Samples.exponent_kind].values)
        known = f"{signs.get(kind, '')}p^{value:.2f}" if np.isfinite(value) else "unknown"
        said.append(f"{student} {known}")
    text = f"Needed samples grow like: {', '.join(said)}."
    return Card(label="growth with p", text=text, link="needed")


def _facts(settings: SamplesSettings, table: xr.Dataset) -> dict[str, Any]:
    """The settings as the page shows them, without those that have no effect."""
    left_out = {
        "arm",
        "seed",
        "student",
        "code",
        "noise_std" if settings.classes else "label_noise",
    }
    if settings.teacher not in ON_VECTORS:
        left_out.add("features")
    if settings.teacher not in MASKS:
        left_out.add("relevant")
    given = {"features": table.features.values.tolist()} | {
        k: v for k, v in asdict(settings.runs()).items() if k != "features" and v is not None
    }
    return {
        "students": table.student.values.tolist(),
        **settings.question,
        "seeds": table.sizes["seed"],
        **{k: v for k, v in given.items() if k not in left_out},
    }


def _rows(table: xr.Dataset) -> list[dict[str, Any]]:
    """The answers, one record for each student and p; what is not a finite number is null."""
    columns = (
        Samples.needed,
        Samples.needed_low,
        Samples.needed_high,
        Samples.needed_kind,
        Samples.ratio,
        Samples.ratio_low,
        Samples.ratio_high,
        Samples.ratio_kind,
        Samples.reached,
        Samples.verdict,
    )
    rows = []
    for student in table.student.values.tolist():
        for p in table.features.values.tolist():
            one = table.sel(student=student, features=p)
            row: dict[str, Any] = {"student": student, "features": p}
            for name in columns:
                value = one[name].values.item()
                missing = isinstance(value, float) and not np.isfinite(value)
                row[str(name)] = None if missing else value
            rows.append(row)
    return rows


def _text_table(table: xr.Dataset) -> TextTable:
    several = table.sizes["features"] > 1
    asked = f"samples for {table.attrs['score']} {table.attrs['level']:g}"
    columns = ("student", *(("p",) if several else ()), asked, "ratio", "verdict")
    rows = []
    for row in _rows(table):
        p = (str(row["features"]),) if several else ()
        sign = SIGNS.get(row["ratio_kind"], "")
        ratio = "" if row["ratio"] is None else f"{sign}{row['ratio']:.3g}"
        rows.append((row["student"], *p, _needed_words(row), ratio, row["verdict"]))
    return TextTable(columns, tuple(rows))


def _needed_words(row: Mapping[str, Any]) -> str:
    signs = {"crossed": "", "already met": "≤ "}
    kind = row["needed_kind"]
    return f"{signs[kind]}{row['needed']:.3g}" if kind in signs else kind


def _curves_section(table: xr.Dataset, facts: Mapping[str, Any]) -> Section:
    score, level = table.attrs["score"], number(table.attrs["level"])
    y_label = ""
    what = "the error is E(ŷ − g)²/Var g on points without noise: 1 for a constant, 0 for the truth"
    if facts["classes"]:
        y_label = "share of wrong labels"
        what = "the error is the share of wrong labels on points without noise"
    figure = learning_curves(
        table, id="learning_curves", title=f"When is {score} {level} reached?", y_label=y_label
    )
    return Section(
        id="curves",
        title="Learning curves",
        statement=f"How the {score} goes with the number of training samples n; {what}.",
        figures=(figure,),
    )


def _needed_section(table: xr.Dataset) -> Section:
    several = table.sizes["features"] > 1
    title = "Samples needed for the level"
    if several:
        title = "Samples needed, against the number of features"
    figures = [
        needed_figure(table, id="needed", title=title),
        answers_table(table, id="answers", title="The same in numbers"),
    ]
    further = _further_table(table, id="further", title="What a power law expects")
    if further is not None:
        figures.append(further)
    return Section(
        id="needed",
        title="Needed samples, and how they grow" if several else "Needed samples",
        statement="Where the curve over seeds first meets the level, interpolated in log n between "
        "the sizes that were run.",
        figures=tuple(figures),
    )


def _further_table(table: xr.Dataset, *, id: str, title: str) -> Figure | None:
    """What a power law expects for the level, and how well it predicted what was measured; None if
    not stored.
    """
    if Samples.extrapolated_said not in table:
        return None
    several = table.sizes["features"] > 1
    found = {}
    for student in table["student"].values.tolist():
        for p in table["features"].values.tolist():
            one = table.sel(student=student, features=p)
            said = str(one[Samples.extrapolated_said].values)
            value = float(one[Samples.extrapolated])
            ends = (float(one[Samples.extrapolated_low]), float(one[Samples.extrapolated_high]))
            expected = f"{number(value)} {interval(ends)}" if np.isfinite(value) else "none"
            if said:
                found[f"{student}, p = {p}" if several else str(student)] = (expected, said)
    if not found:
        return None
    if len(found) > 1 and len(set(found.values())) == 1:
        found = {"all students": next(iter(found.values()))}
    expected, words = zip(*found.values(), strict=True)
    return plain_table(
        list(found),
        {"samples expected": expected, "in words, with the back-test": words},
        id=id,
        title=title,
        caption="A power law fitted to the whole curve. It is believed only if the first half of "
        "the sizes predicted the second half (the back-test).",
    )


def _ratio_section(table: xr.Dataset) -> list[Section]:
    """Nothing for a single student."""
    if not _others(table):
        return []
    against = table.attrs["against"]
    figure = ratio_and_predictors(
        table, id="ratio", title=f"How many times fewer samples than {against}"
    )
    return [
        Section(
            id="ratio",
            title="How many samples are saved?",
            statement=f"The samples that {against} needs, over those that each other student "
            "needs, from paired seeds.",
            figures=(figure,),
        )
    ]


question = SamplesQuestion()
