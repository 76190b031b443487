"""``attnlab digits``: how many images students need to read digits among clutter, and where they
look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
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
from attnlab.papers.liu2021.digit_figures import attention_pictures, looking_dots, sign
from attnlab.papers.liu2021.digit_settings import ATTENTION, STUDENTS, DigitFitSettings
from attnlab.papers.liu2021.digit_sweeps import (
    WORK,
    DigitCurves,
    Pictures,
    measure_curves,
    measure_pictures,
)
from attnlab.questions._curves import fit_card, ratio_card, tuning_section
from attnlab.report import (
    Card,
    Figure,
    Section,
    answers_table,
    heat_table,
    learning_curves,
    needed_figure,
    number,
    percent,
    ratio_figure,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Record

_SOURCES = {"sklearn": "scikit-learn", "mnist": "MNIST"}  # others are folders with IDX files
_TASK = "noisy digits"
_PICTURES = 12  # test images that are kept for drawing
_PERCENT = "\u00a0%"  # stays with its number at the end of a line
_SIGNS = {"at least": "≥ ", "at most": "≤ ", "already met": "≤ "}


class Digits(DigitCurves, label="digits"):
    """All students on one task, compared with one of them."""


class DigitPictures(Pictures, label="pictures"):
    """Test images of the first seed, after fits with the most images."""


@dataclass(frozen=True)
class DigitsSettings(Settings):
    """Images, students, and what is asked of them."""

    digits: Annotated[
        str,
        Option(
            "Where digits come from: sklearn (8×8 pixels, always at hand), mnist (needs the extra "
            "attnlab[mnist]), or a folder with IDX files, train-images-idx3-ubyte and "
            "train-labels-idx1-ubyte (.gz or not).",
            "Images",
        ),
    ] = "sklearn"
    shrink: Annotated[
        int | None,
        Option("Average squares of so many pixels (1; 2 unless sklearn).", "Images", least=1),
    ] = None
    canvas: Annotated[
        int | None, Option("Pixels of an image's side (three digits).", "Images", least=1)
    ] = None
    spacing: Annotated[
        int | None,
        Option(
            "A digit's place lies on a lattice of so many pixels (one digit).", "Images", least=1
        ),
    ] = None
    fragments: Annotated[
        int, Option("Fragments of other digits in an image.", "Images", least=0)
    ] = 4
    fragment_size: Annotated[
        int | None, Option("Pixels of a fragment's side (half a digit).", "Images", least=1)
    ] = None
    noise_std: Annotated[
        float, Option("Standard deviation of the noise on every pixel.", "Images", least=0)
    ] = 0.1
    validation: Annotated[
        int, Option("Images on which the tuning is chosen.", "Images", least=2)
    ] = DigitFitSettings.valid_points
    test: Annotated[int, Option("Images on which accuracy is measured.", "Images", least=2)] = (
        DigitFitSettings.test_points
    )
    students: Annotated[
        tuple[str, ...],
        Option(
            "What learns, as in A B C: baseline, known-mask, wrong-mask, patch-attention, "
            "attention-pooling (all).",
            "Students",
            metavar="NAME…",
            choices=STUDENTS,
        ),
    ] = STUDENTS
    against: Annotated[str, Option("The student that others are compared with.", "Students")] = (
        "baseline"
    )
    hidden: Annotated[
        int, Option("Hidden units of the networks on pixels.", "Students", least=1)
    ] = DigitFitSettings.hidden
    embedding_dim: Annotated[
        int, Option("Size of every layer of students that attend.", "Students", least=1)
    ] = DigitFitSettings.embedding_dim
    key_dim: Annotated[int, Option("Size of the keys of patch-attention.", "Students", least=1)] = (
        DigitFitSettings.key_dim
    )
    patch: Annotated[
        int | None,
        Option("Pixels of a patch's side, for attention (one digit).", "Students", least=1),
    ] = None
    stride: Annotated[
        int | None, Option("Pixels from patch to patch (half a digit).", "Students", least=1)
    ] = None
    level: Annotated[float, Option("The accuracy asked for, between 0 and 1.", "Question")] = 0.3
    sizes: Annotated[
        tuple[int, ...],
        Option("Numbers of training images, as in 39 78 312.", "Question", metavar="N…"),
    ] = (39, 78, 312, 625, 1250)
    attention_sizes: Annotated[
        tuple[int, ...] | None,
        Option(
            "The same for students that attend, which cost more (the middle and the largest size).",
            "Question",
            metavar="N…",
        ),
    ] = None
    seeds: Annotated[
        int, Option("Seeds of each student; intervals need at least 8.", "Question", least=1)
    ] = 8
    steps: Annotated[
        int,
        Option(
            "Steps of each fit (Adam, step size falling as a cosine).",
            "Training and tuning",
            least=1,
        ),
    ] = 200
    batch_size: Annotated[int, Option("Images a step.", "Training and tuning", least=1)] = (
        DigitFitSettings.batch_size
    )
    step_sizes: Annotated[
        tuple[float, ...],
        Option(
            "Step sizes to choose from, for all students alike.",
            "Training and tuning",
            metavar="X…",
            above=0,
        ),
    ] = DigitFitSettings.step_sizes
    weight_decays: Annotated[
        tuple[float, ...],
        Option(
            "Weight decays to choose from, for all students alike.",
            "Training and tuning",
            metavar="X…",
        ),
    ] = DigitFitSettings.weight_decays
    widen: Annotated[
        int,
        Option(
            "How often a grid of step sizes or weight decays goes on where its end was chosen; one "
            "of a single value stays as it is.",
            "Training and tuning",
            least=0,
        ),
    ] = 2

    def __post_init__(self):
        super().__post_init__()
        if not 0 < self.level < 1:
            raise AttnlabError(
                f"--level {self.level:g}: expected a share between 0 and 1, such as 0.3"
            )
        if not self.students or len(set(self.students)) < len(self.students):
            raise AttnlabError(
                f"--students {' '.join(self.students)}: expected at least one, each once"
            )
        if self.against not in self.students:
            raise AttnlabError(
                f"--against {self.against}: expected one of the students {', '.join(self.students)}"
            )
        _check_increasing("--sizes", self.sizes)
        _check_increasing("--attention-sizes", self.sizes_with_attention)
        if self.sizes_with_attention[-1] != self.sizes[-1]:
            raise AttnlabError(
                f"--attention-sizes {' '.join(map(str, self.sizes_with_attention))}: expected to "
                f"end with the largest size, {self.sizes[-1]}"
            )

    @property
    def sizes_with_attention(self) -> tuple[int, ...]:
        """Sizes of the students that attend; by default the middle and the largest one.

        >>> DigitsSettings(sizes=(39, 78, 312, 625, 1250)).sizes_with_attention
        (312, 1250)
        >>> DigitsSettings(sizes=(100,)).sizes_with_attention
        (100,)
        """
        if self.attention_sizes is not None:
            return self.attention_sizes
        middle = self.sizes[(len(self.sizes) - 1) // 2]
        return tuple(dict.fromkeys((middle, self.sizes[-1])))

    def fits(self) -> dict[str, Any]:
        """What all fits share, as fields of `DigitFitSettings`; ``None`` where digits must say."""
        elsewhere = (
            *("students", "against", "level", "attention_sizes", "seeds"),
            *("validation", "test"),
        )
        given = {name: value for name, value in asdict(self).items() if name not in elsewhere}
        if self.digits not in _SOURCES:  # in full, so that settings mean the same from everywhere
            given["digits"] = str(Path(self.digits).expanduser().resolve())
        if self.shrink is None:
            given["shrink"] = 1 if self.digits == "sklearn" else 2
        points = {"valid_points": self.validation, "test_points": self.test}
        return given | points | {"pictures": min(_PICTURES, self.test)}


def _check_increasing(flag: str, sizes: Sequence[int]) -> None:
    if not sizes or min(sizes) < 1 or any(after <= before for before, after in pairwise(sizes)):
        raise AttnlabError(
            f"{flag} {' '.join(map(str, sizes))}: expected increasing positive numbers of images"
        )


class DigitsQuestion(Experiment[DigitsSettings]):
    """Read real digits among clutter: how many images does attention save, and where does it look?

    Every student reads the same images: one digit among fragments of others, under noise. One is
    told where the digit is, others find it out themselves. The page shows the images with each
    student's attention over them, learning curves, needed images with intervals, and ratios with a
    verdict (saves, no advantage, costs, inconclusive). About five minutes on one core. Interrupted
    and started again, it resumes. Options shown with a … take several values,
    separated by spaces or commas.

    Examples:

        attnlab digits

        attnlab digits --students baseline known-mask --sizes 39 78 156 312 625 1250 --level 0.5 --out masks

        attnlab digits --fragments 8 --noise-std 0.2 --out harder

        attnlab digits --digits mnist --out mnist
    """

    name = "digits"
    title = "attnlab: noisy digits"
    settings = DigitsSettings

    def measure(self, settings: DigitsSettings, bench: Bench) -> Data:
        """Learning curves of all students, and pictures of what they look at."""
        from attnlab.questions._digits import prepare

        fits, content = prepare(settings.fits(), settings.students)
        default = asdict(DigitFitSettings())
        changed = {k: v for k, v in asdict(fits).items() if v != default[k]}
        arms = {}
        for student in settings.students:
            attends = student in ATTENTION
            sizes = settings.sizes_with_attention if attends else settings.sizes
            arms[student] = {**changed, "student": student, "sizes": sizes}
        plan = Grid(arms, settings.seeds).plan(WORK, self.name)
        results = bench.sweep(plan, digest({**changed, "content": content}))
        bench.found["fits"] = asdict(fits)
        found = al.lab.split_arms(results.dataset())
        table = measure_curves(found, settings.level, task=_TASK, against=settings.against)
        return {
            Digits.label: table,
            DigitPictures.label: measure_pictures(found, settings.sizes[-1]),
        }

    def answers(self, settings: DigitsSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """Each student against one of them, accuracies, where students look, and the tuning."""
        table = Digits.of(data)
        cards = [
            *(ratio_card(table, student) for student in _others(table)),
            _accuracy_card(table),
            *(_attention_card(table, student) for student in _attending(table)),
            fit_card(table),
        ]
        elsewhere = ("arm", "seed", "student", "drawn", "pictures", "valid_points", "test_points")
        fits = {k: v for k, v in found["fits"].items() if k not in elsewhere}
        facts = {
            "students": settings.students,
            "level": settings.level,
            "against": settings.against,
            "seeds": table.sizes["seed"],
            "attention_sizes": settings.sizes_with_attention,
            "validation": settings.validation,
            "test": settings.test,
            **fits,
        }
        return Answers(
            question=f"How many images does each student need to read {settings.level * 100:.3g} % "
            "of the digits, and where does it look?",
            cards=tuple(cards),
            summary=(_depends(facts),),
            facts=facts,
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """Where students look, learning curves, needed images, ratios, and what was tuned."""
        table, facts = Digits.of(record.data), record.about["settings"]
        return [
            _looking(table, DigitPictures.of(record.data), facts),
            _curves(table, facts),
            _needed(table),
            *_ratio(table, facts),
            *tuning_section(table, facts, on="images"),
        ]

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """A table of needed images, then the answers in sentences."""
        table = Digits.of(record.data)
        yield _answers_in_rows(table)
        for student in _others(table):
            said = str(table[Digits.said].sel(student=student).values[0])
            yield f"{student} against {table.attrs['against']}: {said}."
        for student in _attending(table):
            yield _looks(table, student)
        yield from record.about["summary"]

    def as_json(self, record: Record) -> dict[str, Any]:
        """The answers, and the numbers of each student."""
        return {"about": record.about, Digits.label: _rows(Digits.of(record.data))}


def _others(table: xr.Dataset) -> list[str]:
    """The students that are compared with another one, the known mask first."""
    names = [str(name) for name in table["student"].values if name != table.attrs["against"]]
    return sorted(names, key=lambda student: student != "known-mask")


def _attending(table: xr.Dataset) -> list[str]:
    return [str(name) for name in table["student"].values if name in ATTENTION]


def _most(table: xr.Dataset) -> int:
    """The largest number of training images."""
    return int(table["size"].values[-1])


def _accuracy_card(table: xr.Dataset) -> Card:
    last = table[Digits.accuracy].isel(task=0, size=-1).mean("seed")
    said = [
        f"{student} {100 * float(last.sel(student=student)):.0f}{_PERCENT}"
        for student in table["student"].values
    ]
    return Card(
        label=f"accuracy with {_most(table)} images",
        text=f"{', '.join(said)}.",
        measure="mean over seeds, all test images",
        link="curves",
    )


def _attention_card(table: xr.Dataset, student: str) -> Card:
    """The share of attention on the digit with the most images, beside that of even attention."""
    values, even = _on_digit(table, student)
    found = al.stats.interval_of(values, "mean")
    bounds = f" [{100 * found.low:.1f}, {100 * found.high:.1f}]" if found.exists else ""
    return Card(
        label=f"where {student} looks",
        text=f"Even attention would have {percent(even)} there, the share of the image that the "
        "digit's square is.",
        headline=f"{percent(found.estimate)}{bounds}",
        measure="of the attention is on the digit, mean over seeds",
        link="pictures",
    )


def _looks(table: xr.Dataset, student: str) -> str:
    values, even = _on_digit(table, student)
    return (
        f"{student} has {percent(float(values.mean()))} of its attention on the digit with "
        f"{_most(table)} images; even attention would have {percent(even)}."
    )


def _on_digit(table: xr.Dataset, student: str) -> tuple[np.ndarray, float]:
    """The share of attention on the digit, seed by seed, and that of even attention."""
    one = table.sel(student=student).isel(task=0, size=-1)
    shares = one[Digits.attention_on_digit].dropna("seed").values
    return shares, float(one[Digits.digit_area].mean())


def _rows(table: xr.Dataset) -> list[dict[str, Any]]:
    """The answers, one record for each student; accuracy and attention with the most images, means
    over seeds. What is not a finite number is null.
    """
    names = (
        Digits.needed,
        Digits.needed_low,
        Digits.needed_high,
        Digits.needed_kind,
        Digits.ratio,
        Digits.ratio_low,
        Digits.ratio_high,
        Digits.ratio_kind,
        Digits.reached,
        Digits.verdict,
    )
    rows = []
    for student in table["student"].values.tolist():
        one = table.sel(student=student).isel(task=0)
        row = {"student": student, **{str(name): one[name].values.item() for name in names}}
        for name in (Digits.accuracy, Digits.attention_on_digit):
            if name in one:
                row[str(name)] = float(one[name].isel(size=-1).mean())
        for name, value in row.items():
            if isinstance(value, float) and not np.isfinite(value):
                row[name] = None
        rows.append(row)
    return rows


def _answers_in_rows(table: xr.Dataset) -> TextTable:
    rows = []
    for row in _rows(table):
        needed = kind = row["needed_kind"]
        if kind in ("crossed", "already met"):
            needed = f"{_SIGNS.get(kind, '')}{row['needed']:.3g}"
        ratio = ""
        if row["ratio"] is not None:
            ratio = f"{_SIGNS.get(row['ratio_kind'], '')}{row['ratio']:.3g}"
        right = "–" if row["accuracy"] is None else f"{row['accuracy']:.1%}"
        rows.append((row["student"], needed, ratio, row["verdict"], right))
    level, most = table.attrs["level"], _most(table)
    columns = ("student", f"images for {level:.0%}", "ratio", "verdict", f"accuracy, n = {most}")
    return TextTable(columns, tuple(rows))


def _made(facts: Mapping[str, Any]) -> str:
    """How the images are made."""
    source = _SOURCES.get(facts["digits"], facts["digits"])
    side, part = facts["canvas"], facts["fragment_size"]
    return (
        f"Each image is {side}×{side} pixels and shows one real digit ({source}) whose place lies "
        f"on a lattice of {facts['spacing']} pixels. Clutter: {facts['fragments']} fragments of "
        f"other digits, {part}×{part} pixels each, at any place, and Gaussian noise of standard "
        f"deviation {facts['noise_std']:g} on every pixel. Training, validation and test images "
        "show different digits."
    )


def _sizes_told(facts: Mapping[str, Any]) -> str:
    """With which sizes students were fitted."""
    every = f"Students are fitted with {', '.join(map(str, facts['sizes']))} images"
    attending = [student for student in facts["students"] if student in ATTENTION]
    few = facts["attention_sizes"]
    if not attending or list(few) == list(facts["sizes"]):
        return f"{every}, {facts['steps']} steps each."
    return (
        f"{every}, {facts['steps']} steps each; {' and '.join(attending)}, which cost more, only "
        f"with {', '.join(map(str, few))}. Where these meet the level is therefore known less "
        "finely, or only as a bound."
    )


def _depends(facts: Mapping[str, Any]) -> str:
    """On what the answer depends."""
    spacing, patch, stride = facts["spacing"], facts["patch"], facts["stride"]
    words = (
        "The ratio is a property of these images, not of attention alone: it changes with the "
        f"clutter and with the lattice of places ({spacing} pixels here), and a known mask gives "
        "away where the digit is."
    )
    if spacing % stride == 0:
        words += (
            f" Patches of {patch} pixels every {stride} lie on that lattice, which helps attention."
        )
    return words


def _looking(table: xr.Dataset, pictures: xr.Dataset, facts: Mapping[str, Any]) -> Section:
    body, figures = [_made(facts)], [_read_table(pictures)]
    if Pictures.attention_map in pictures:
        figures = [attention_pictures(pictures, id="pictures"), *looking_dots(table), *figures]
    else:
        body.append("No student of this run attends, so that there is no attention to draw.")
    return Section(
        id="pictures",
        title="Where does each student look?",
        statement="One real digit stands among fragments of others and noise; nobody tells a "
        "student that attends where.",
        body=tuple(body),
        figures=tuple(figures),
    )


def _read_table(pictures: xr.Dataset) -> Figure:
    digits = [int(digit) for digit in pictures[Pictures.digit].values]
    read = pictures[Pictures.predicted].transpose("example", "student").values
    cells = [[sign(int(r), digit) for r in row] for row, digit in zip(read, digits, strict=True)]
    return heat_table(
        [f"image {k + 1}: a {digit}" for k, digit in enumerate(digits)],
        [str(student) for student in pictures["student"].values],
        cells,
        id="read",
        title="What each student reads in these test images",
        tones=[["" for _ in row] for row in cells],
        caption="✓ right, ✗ wrong. A few images of one seed; the learning curves count all.",
    )


def _curves(table: xr.Dataset, facts: Mapping[str, Any]) -> Section:
    level = number(100 * float(table.attrs["level"]))
    figure = learning_curves(
        table,
        id="learning_curves",
        title=f"When are {level} % of the digits read right?",
        y_label="accuracy on test images",
    )
    return Section(
        id="curves",
        title="Learning curves",
        statement="How the share of test digits that are read right grows with the number of "
        "training images n; chance reads about one in ten.",
        body=(_sizes_told(facts),),
        figures=(figure,),
    )


def _needed(table: xr.Dataset) -> Section:
    return Section(
        id="needed",
        title="Needed images",
        statement="Where the mean curve over seeds first meets the level, interpolated in log n "
        "between the sizes that were run.",
        figures=(
            needed_figure(table, id="needed", title="Images needed for the level"),
            answers_table(table, id="answers", title="The same in numbers"),
        ),
    )


def _ratio(table: xr.Dataset, facts: Mapping[str, Any]) -> list[Section]:
    """Nothing for a single student."""
    if table.sizes["student"] < 2:
        return []
    against = str(table.attrs["against"])
    title = f"How many times fewer images than {against}"
    return [
        Section(
            id="ratio",
            title="How many images are saved?",
            statement=f"The images that {against} needs, over those that each other student needs, "
            "from paired seeds.",
            body=(_depends(facts),),
            figures=(ratio_figure(table, id="ratio", title=title),),
        )
    ]


question = DigitsQuestion()
