"""``attnlab compare``: many variants of attention on one task, which is best and which are equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

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
    TextTable,
    digest,
    variable,
)
from attnlab.papers.liu2021.variant_settings import TEACHER_WORK, Variant, VariantSettings
from attnlab.papers.liu2021.variant_sweeps import LONGER
from attnlab.papers.liu2021.word_settings import FIT_WORDS, WordSettings, on_texts
from attnlab.questions._curves import tuning_section
from attnlab.questions._ranking import (
    Compared,
    Longer,
    Ranking,
    advise,
    apart,
    apart_table,
    centre,
    ended,
    error_ratio,
    measure_comparison,
    rank_table,
)
from attnlab.report import (
    MAX_SERIES,
    Card,
    DotRow,
    Figure,
    Section,
    answers_table,
    band_figure,
    dots_figure,
    heat_table,
    learning_curves,
    menu_figure,
    needed_figure,
    number,
    ratio_figure,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.data import TextSource
    from attnlab.lab import Record

TASKS = ("hard", "dense", "relevant:R", "topic")
ON_TASKS = (
    "softmax",
    "softmax:0.25",
    "softmax:4",
    "sparsemax",
    "entmax15",
    "top1",
    "top2",
    "uniform",
)
ON_TEXTS = ("softmax", "softmax:0.25", "sparsemax", "entmax15", "uniform")
FIRST_SEEDS = 8  # after which a variant that is proved worse may be dropped
_WORDS = VariantSettings.words  # of which a teacher attends to some
_NOT_SHOWN = (
    *("arm", "seed", "variant", "student", "folder", "data", "course", "drawn", "dtype"),
    "strengths",  # of TF-IDF, which is no variant of attention
)
_OF_TOPIC_TASK = (
    *("topics", "topic_words", "dictionary", "noise_words"),
    *("hidden", "valid_points", "test_points"),
)

_TASK, _TEXTS, _VARIANTS, _TUNING = "Task", "Your own texts", "Variants", "Training and tuning"


class Course(Table, label="course"):
    """One training at the largest size (student, seed, step)."""

    error = variable("error on 500 test samples", optional=True)
    accuracy = variable("accuracy on 500 test texts", optional=True)
    attention = variable("attention on the words that matter", optional=True)
    entropy = variable("entropy of attention")


class Dropping(Table, label="dropping"):
    """Which variants were proved worse than the best so far (student); its attribute ``best``."""

    difference = variable("median over paired seeds of what it has more error, less accuracy")
    low = variable("low end of its 99 % interval")
    high = variable("high end of its 99 % interval")
    dropped = variable("1 if the interval lies wholly above 0")


class _Texts(NamedTuple):
    """Prepared texts: where workers find them, the hash of their content, how many train."""

    folder: str
    content: str
    training: int


@dataclass(frozen=True)
class CompareSettings(Settings):
    """What to compare on what."""

    files: Annotated[
        tuple[str, ...],
        Option(
            "Labelled texts, instead of a task: CSV, TSV, JSON Lines, Parquet or “label text” "
            "lines, also compressed, also at URLs.",
            argument=True,
        ),
    ] = ()
    task: Annotated[
        str | None,
        Option(
            "A teacher that attends to one of 16 words (hard, the default), to all (dense) or to "
            "R (relevant:R); or topic: sentences of the topic task.",
            _TASK,
        ),
    ] = None
    noise_std: Annotated[
        float | None, Option("Standard deviation of a teacher's noise (0.2).", _TASK, least=0)
    ] = None
    text: Annotated[str | None, Option("The column with the texts.", _TEXTS)] = None
    label: Annotated[str | None, Option("The column with the labels.", _TEXTS)] = None
    variants: Annotated[
        tuple[str, ...],
        Option(
            "Normalisers: softmax, softmax:T, sparsemax, entmax15, topK, uniform; each with a "
            "penalty on request, +entropy:X, +l1:X, +prior:X, +wrong-prior:X, as in "
            "softmax+entropy:0.1.",
            _VARIANTS,
            metavar="NAME…",
        ),
    ] = ()
    against: Annotated[
        str | None, Option("The variant that others are compared with; the first.", _VARIANTS)
    ] = None
    samples: Annotated[
        tuple[int, ...],
        Option(
            "Numbers of training samples (64 … 2048 by doubling; fewer for sentences).",
            _VARIANTS,
            metavar="N…",
        ),
    ] = ()
    seeds: Annotated[
        int,
        Option("Seeds of each variant; to tell 8 variants apart takes 11.", _VARIANTS, least=1),
    ] = 16
    level: Annotated[
        float | None,
        Option(
            "Error or accuracy for which needed samples are compared; else what half the data "
            "reach.",
            _VARIANTS,
            above=0,
        ),
    ] = None
    drop: Annotated[
        bool, Option("After 8 seeds, do not go on with variants that are proved worse.", _VARIANTS)
    ] = False
    steps: Annotated[
        int | None, Option("Steps of each fit (1500; 600 for sentences).", _TUNING, least=1)
    ] = None
    step_sizes: Annotated[
        tuple[float, ...],
        Option(
            "Step sizes to choose from, for all variants alike.", _TUNING, metavar="X…", above=0
        ),
    ] = ()
    weight_decays: Annotated[
        tuple[float, ...],
        Option("Weight decays to choose from, for all variants alike.", _TUNING, metavar="X…"),
    ] = ()

    def __post_init__(self):
        super().__post_init__()
        if self.files and (self.task is not None or self.noise_std is not None):
            raise AttnlabError(
                "texts of your own are a task of their own; leave out --task and --noise-std"
            )
        if not self.files and (self.text is not None or self.label is not None):
            raise AttnlabError("--text and --label name columns of FILES, which were not given")
        if len(set(self.variants)) < len(self.variants):
            raise AttnlabError(f"--variants {' '.join(self.variants)}: expected each once")
        if self.samples and (min(self.samples) < 1 or (np.diff(self.samples) <= 0).any()):
            given = " ".join(map(str, self.samples))
            raise AttnlabError(f"--samples {given}: expected increasing positive numbers")
        for name in self.compared:
            Variant.of(name)
        if self.reference not in self.compared:
            raise AttnlabError(
                f"--against {self.against} is none of the variants {', '.join(self.compared)}"
            )
        if self.noise_std is not None and self.task == "topic":
            raise AttnlabError(
                f"--noise-std {self.noise_std} has no meaning for sentences; only teachers have noise"
            )
        _ = self.relevant  # refuses an unknown task

    def source(self) -> TextSource:
        """The texts, as the data room reads them."""
        return al.data.TextSource(self.files, text=self.text, label=self.label)

    @property
    def subject(self) -> dict[str, tuple[str, ...]]:
        """Which texts, if it is about texts."""
        return self.source().subject if self.files else {}

    @property
    def compared(self) -> tuple[str, ...]:
        """The variants: as given, or the usual ones."""
        return self.variants or (ON_TEXTS if self.files else ON_TASKS)

    @property
    def reference(self) -> str:
        """The variant that others are compared with."""
        return self.compared[0] if self.against is None else self.against

    @property
    def relevant(self) -> int:
        """How many words a teacher attends to; 0 for sentences."""
        if self.files or self.task == "topic":
            return 0
        fixed = {None: 1, "hard": 1, "dense": _WORDS}
        if self.task in fixed:
            return fixed[self.task]
        name, _, count = str(self.task).partition(":")
        if name == "relevant" and count.isdigit() and 1 <= int(count) <= _WORDS:
            return int(count)
        raise AttnlabError(
            f"--task {self.task}: expected one of {', '.join(TASKS)} with R from 1 to {_WORDS}, or "
            "your own texts"
        )

    @property
    def score(self) -> str:
        """What is compared."""
        return "error" if self.relevant else "accuracy"

    @property
    def task_name(self) -> str:
        """The task, as a page names it."""
        return "own texts" if self.files else self.task or "hard"

    @property
    def where(self) -> str:
        """The task in words, as a sentence begins."""
        if self.files:
            return "On these texts"
        if self.task == "topic":
            return "On the topic task"
        told = {1: "one word matters", _WORDS: "all words matter"}
        count = self.relevant
        return f"Where {told.get(count, f'{count} of {_WORDS} words matter')},"

    def fit(self, texts: _Texts | None) -> dict[str, Any]:
        """The settings that the runs of all variants share, where they are not the defaults."""
        given = {
            "steps": self.steps,
            "step_sizes": self.step_sizes,
            "weight_decays": self.weight_decays,
            "sizes": self.samples,
            "noise_std": self.noise_std,
        }
        changed: dict[str, Any] = {k: v for k, v in given.items() if v not in (None, ())}
        changed["course"] = True
        if self.step_sizes:
            changed["widen"] = 0  # what is named is all that is tried
        if self.relevant:
            return {"relevant": self.relevant, **changed}
        if texts is None:
            return changed
        common = on_texts(texts.folder, texts.content)
        return {**common, "sizes": text_sizes(texts.training), **changed}


def text_sizes(available: int) -> tuple[int, ...]:
    """Three numbers of labels by doubling, up to all there are (16 384 at most).

    >>> text_sizes(6920)
    (1730, 3460, 6920)
    """
    most = min(available, al.data.thinning.LABELS)
    return tuple(dict.fromkeys(max(1, most // parts) for parts in (4, 2, 1)))


class Compare(Experiment[CompareSettings]):
    """Compare variants of attention on one task: which is best, which cannot be told apart, and
    what to try.

    Every variant is fitted to the same samples at every size, with the same tuning and seeds. The
    page has a ranking with groups of equals (paired tests, corrected for asking many), learning
    curves, needed samples, attention's entropy, the onset of each variant, and advice in words
    made from the numbers. Interrupted and started again, it resumes. Options shown
    with a … take several values, separated by spaces.

    Examples:

        attnlab compare --task hard --variants softmax softmax:0.25 sparsemax top2

        attnlab compare --task relevant:4 --variants softmax sparsemax --samples 128 256 512 --out four

        attnlab compare reviews.csv --text review --label sentiment --out reviews
    """

    name = "compare"
    title = "attnlab: which attention for which data"
    settings = CompareSettings

    def measure(self, settings: CompareSettings, bench: Bench) -> Data:
        """Learning curves and ranking, the course of training, and what more steps change."""
        texts = None
        if settings.files:
            bench.stage("reading the texts")
            source = settings.source()
            prepared, folder = al.data.prepare_in(source, bench.folder)
            for entry in prepared.reading["recoded"]:
                bench.stage(f"lines {entry['reason']}: {entry['count']:,}")
            texts = _Texts(folder, prepared.hash, len(prepared.train))
            bench.found["texts"] = {
                "source": asdict(source),
                "reading": prepared.reading,
                "content": prepared.hash,
            }
        fits = _Fits(bench, TEACHER_WORK if settings.relevant else FIT_WORDS, settings.fit(texts))
        bench.found["fit"] = fits.settings()
        bench.stage("learning curves")
        arms, data = fits.curves(settings)
        curves = {name: arm.drop_vars(_course_names(arm)) for name, arm in arms.items()}
        data |= measure_comparison(
            curves, score=settings.score, against=settings.reference, level=settings.level
        )
        data[Course.label] = _course(arms)
        bench.stage(f"{LONGER} times the steps, for what is speed")
        ranking = Ranking.of(data)
        try:
            longer = fits.longer(settings, ranking)
        except AttnlabError as error:  # of all runs of a variant: the ranking stands without
            bench.found["absent"] = {Longer.label: str(error)}
        else:
            steps = int(bench.found["fit"]["steps"])
            data[Longer.label] = compare_longer(
                curves, longer, score=settings.score, steps=steps, against=settings.reference
            )
        for table in (Compared, Ranking, Course, Longer, Dropping):
            if table.label in data:
                table.check(table.of(data))
        return data

    def answers(self, settings: CompareSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """Advice in words, the ranking, and each variant against the reference."""
        hidden = (*_NOT_SHOWN, *(_OF_TOPIC_TASK if settings.files else ()))
        return Answers(
            question=f"Which variant of attention is best on this task ({settings.task_name}), and "
            "which cannot be told apart?",
            cards=(_ranking_card(data), *_variant_cards(data)),
            summary=tuple(advise(data, what=settings.where)),
            absent=found.get("absent", {}),
            facts={
                "task": settings.task_name,
                "variants": settings.compared,
                "against": settings.reference,
                "seeds": settings.seeds,
                **found.get("texts", {}).get("source", {}),
                **{name: value for name, value in found["fit"].items() if name not in hidden},
            },
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """Ranking, learning curves, needed samples, training, tuning."""
        data = record.data
        table, ranking = Compared.of(data), Ranking.of(data)
        return [
            _ranking_section(ranking, data.get(Dropping.label)),
            _curves_section(table, ranking),
            _needed_section(table),
            _training_section(data, record.about["absent"]),
            *tuning_section(table, record.about["settings"], of="Variants"),
        ]

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """The ranking as a table, and the advice."""
        yield _text_table(Ranking.of(record.data))
        yield "Variants that share a letter cannot be told apart."
        yield " ".join(record.about["summary"])

    def as_json(self, record: Record) -> dict[str, Any]:
        """The answers, the advice in one string, and the ranking."""
        return {
            "about": record.about,
            "advice": " ".join(record.about["summary"]),
            **record.content,
            "ranking": ranking_rows(Ranking.of(record.data)),
        }


@dataclass(frozen=True)
class _Fits:
    """Runs of one work function, an arm for each variant; ``base`` is what they share."""

    bench: Bench
    work: str
    base: dict[str, Any]

    def settings(self) -> dict[str, Any]:
        """All settings that the variants share."""
        kind = VariantSettings if self.work == TEACHER_WORK else WordSettings
        return asdict(kind(**self.base))

    def curves(
        self, settings: CompareSettings
    ) -> tuple[dict[str, xr.Dataset], dict[str, xr.Dataset]]:
        """What the runs of every variant hold, and, with ``drop``, which of them were dropped."""
        first = min(settings.seeds, FIRST_SEEDS) if settings.drop else settings.seeds
        counts = dict.fromkeys(settings.compared, first)
        arms = self._run(counts)
        if settings.seeds == first:
            return arms, {}
        dropping = dominated(arms, score=settings.score)
        kept = dropping["student"].values[dropping[Dropping.dropped].values == 0]
        names = [*(str(name) for name in kept), settings.reference]
        arms = self._run(counts | dict.fromkeys(names, settings.seeds))
        return arms, {Dropping.label: dropping}

    def longer(self, settings: CompareSettings, ranking: xr.Dataset) -> dict[str, xr.Dataset]:
        """The reference and the best variant with LONGER times the steps, at the largest size."""
        best = str(ranking["student"].values[0])
        changed = {
            "sizes": (int(ranking.attrs["size"]),),
            "steps": LONGER * int(self.settings()["steps"]),
            "course": False,
        }
        counts = dict.fromkeys([settings.reference, best], settings.seeds)
        return replace(self, base=self.base | changed)._run(counts)

    def _run(self, counts: dict[str, int]) -> dict[str, xr.Dataset]:
        """So many seeds of each variant."""
        field = "variant" if self.work == TEACHER_WORK else "student"
        arms = {variant: self.base | {field: variant} for variant in counts}
        plan = Grid(arms, counts).plan(self.work, Compare.name)
        results = self.bench.sweep(plan, digest({"work": self.work, **self.base}))
        return al.lab.split_arms(results.dataset())


def _course_names(arm: xr.Dataset) -> list[str]:
    return [str(name) for name in arm.data_vars if str(name).startswith("course_")]


def _course(arms: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """The training at the largest size (student, seed, step)."""
    parts = []
    for arm in arms.values():
        names = {name: name.removeprefix("course_") for name in _course_names(arm)}
        parts.append(arm[list(names)].rename(names))
    course = al.lab.along(parts, "student", list(arms), join="outer")
    return course.drop_vars("size", errors="ignore")


def dominated(arms: Mapping[str, xr.Dataset], *, score: str) -> xr.Dataset:
    """The table `Dropping`: which variants are proved worse than the best so far, at the largest
    size. Fewer than 8 seeds prove nothing.
    """
    sign = 1.0 if score == "error" else -1.0
    last = {variant: sign * data[score].isel(size=-1) for variant, data in arms.items()}
    best = min(last, key=lambda variant: float(last[variant].median()))
    rows = []
    for scores in last.values():
        # Subtraction pairs seeds, and leaves out those that only one of the two has.
        differences = (scores - last[best]).dropna("seed").values
        if not len(differences):
            rows.append((np.nan, np.nan, np.nan, False))
            continue
        found = al.stats.interval_of(differences, "median", confidence=0.99)
        rows.append((found.estimate, found.low, found.high, found.low > 0))
    columns = np.array(rows, float).T
    table = al.lab.dataset(
        {
            name: al.lab.labelled(column, student=list(last))
            for name, column in zip(Dropping.variables, columns, strict=True)
        }
    )
    return table.assign_attrs(best=best)


def compare_longer(
    arms: Mapping[str, xr.Dataset],
    longer: Mapping[str, xr.Dataset],
    *,
    score: str,
    steps: int,
    against: str,
) -> xr.Dataset:
    """The table `Longer` of some variants, trained with ``steps`` and with LONGER times as many.

    A ratio near 1 says that what a variant has gained is speed.
    """
    falling = score == "error"
    rows = []
    for name in longer:
        runs = (arms[name], longer[name], longer[against])
        short, long, other = _paired([run[score].isel(size=-1, drop=True) for run in runs])
        before, after = (
            centre(each, falling) if falling else 1 - centre(each, falling)
            for each in (short, long)
        )
        rows.append((before, after, *error_ratio(short, other, falling)))
    table = al.lab.dataset(
        {
            name: al.lab.labelled(column, student=list(longer))
            for name, column in zip(Longer.variables, np.array(rows).T, strict=True)
        }
    )
    return table.assign_attrs(steps=steps, against=against, times=LONGER, falling=int(falling))


def _paired(scores: Sequence[xr.DataArray]) -> list[np.ndarray]:
    """The scores (seed) of the seeds that all have."""
    shared = set.intersection(*(set(each["seed"].values.tolist()) for each in scores))
    return [each.sel(seed=sorted(shared)).values.astype(float) for each in scores]


def _ranking_card(data: Data) -> Card:
    """The best variant, and which cannot be told from it."""
    ranking = Ranking.of(data)
    names = [str(name) for name in ranking["student"].values]
    equals = [name for name in names if not apart(ranking, names[0], name)]
    best = ranking.sel(student=names[0])
    text = f"Best: {', '.join(equals)}."
    text += " These cannot be told apart." if len(equals) > 1 else ""
    return Card(
        label="ranking",
        text=text,
        headline=_short(best, Ranking.centre),
        measure=f"{ranking.attrs['statistic']} {ranking.attrs['score']} of {names[0]}",
        link="ranking",
    )


def _variant_cards(data: Data) -> list[Card]:
    """Every other variant against the reference."""
    table, ranking = Compared.of(data), Ranking.of(data)
    against = str(ranking.attrs["against"])
    said = {
        "saves": "It needs fewer samples",
        "costs": "It needs more samples",
        "no advantage": "It saves no samples",
    }
    cards = []
    for name in (str(each) for each in ranking["student"].values):
        if name == against:
            continue
        verdict = str(table[Compared.verdict].sel(student=name).isel(task=0).values)
        saves = said.get(verdict, "Whether it saves samples is not known")
        card = Card(
            label=name,
            text=f"{saves}, compared with {against}.",
            verdict=verdict or None,
            headline=_short(ranking.sel(student=name), Ranking.ratio),
            measure=f"error over that of {against}",
            link="needed",
        )
        cards.append(card)
    return cards


def _short(one: xr.Dataset, name: str) -> str:
    value, low, high = (float(one[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return number(value) + (f" [{number(low)}, {number(high)}]" if np.isfinite(low) else "")


def ranking_rows(ranking: xr.Dataset) -> list[dict[str, Any]]:
    """The variants from the best to the worst, a record each; what is not a finite number is null."""
    columns = [str(name) for name in ranking.data_vars if name not in (Ranking.p, Ranking.pairs)]
    rows = []
    for name in ranking["student"].values.tolist():
        one = ranking.sel(student=name)
        row: dict[str, Any] = {"variant": name}
        for column in columns:
            value = one[column].values.item()
            row[column] = None if isinstance(value, float) and not np.isfinite(value) else value
        others = ranking["other"].values.tolist()
        row["p"] = dict(zip(others, one[Ranking.p].values.tolist(), strict=True))
        rows.append(row)
    return rows


def _text_table(ranking: xr.Dataset) -> TextTable:
    score, against = ranking.attrs["score"], ranking.attrs["against"]
    middle = f"{ranking.attrs['statistic']} {score}"
    has_onset = Ranking.onset in ranking
    columns = ["variant", "group", middle, f"error over {against}", "entropy"]
    columns += ["onset"] if has_onset else []
    rows = []
    for name in (str(each) for each in ranking["student"].values):
        one = ranking.sel(student=name)
        row = [name, str(one[Ranking.group].values)]
        row += [ended(one, Ranking.centre), ended(one, Ranking.ratio)]
        row += [number(float(one[Ranking.entropy]))]
        row += [number(float(one[Ranking.onset]))] if has_onset else []
        rows.append(tuple(row))
    return TextTable(tuple(columns), tuple(rows))


def _ranking_section(ranking: xr.Dataset, dropping: xr.Dataset | None) -> Section:
    size, seeds = int(ranking.attrs["size"]), int(ranking.attrs["seeds"])
    figures = [rank_table(ranking)]
    if ranking.sizes["student"] > 1:
        figures.append(apart_table(ranking))
    return Section(
        id="ranking",
        title="The ranking, and who cannot be told apart",
        statement=f"By the {ranking.attrs['statistic']} {ranking.attrs['score']} over {seeds} "
        f"seeds with {size} samples.",
        body=() if dropping is None else _dropped_words(dropping),
        figures=tuple(figures),
    )


def _dropped_words(dropping: xr.Dataset) -> tuple[str, ...]:
    lost = [str(name) for name in dropping["student"].values[dropping[Dropping.dropped].values > 0]]
    if not lost:
        return ()
    were, them = ("was", "it") if len(lost) == 1 else ("were", "them")
    return (
        f"After {FIRST_SEEDS} seeds, {', '.join(lost)} {were} not continued: the 99 % interval "
        f"proves {them} worse than {dropping.attrs['best']}.",
    )


def _drawn(ranking: xr.Dataset) -> tuple[list[str], str]:
    """The variants that curves show, as many as there are colours, and a note on the others; the
    reference is shown.
    """
    names, against = [str(s) for s in ranking["student"].values], str(ranking.attrs["against"])
    left = [name for name in names[MAX_SERIES:] if name != against]
    if against in names[MAX_SERIES:]:
        left.insert(0, names[MAX_SERIES - 1])
    note = f" Not drawn, since colours run out: {', '.join(left)}." if left else ""
    return [name for name in names if name not in left], note


def _curves_section(table: xr.Dataset, ranking: xr.Dataset) -> Section:
    score, (names, note) = str(table.attrs["score"]), _drawn(ranking)
    what = (
        "E(ŷ − g)²/Var g on points without noise"
        if score == "error"
        else "the share of right answers on test texts"
    )
    curves = learning_curves(
        table,
        id="learning_curves",
        title=f"The {score} against the number of samples",
        students=names,
    )
    entropy = table[Compared.entropy].isel(task=0).transpose("student", "seed", "size")
    spread = band_figure(
        table["size"].values,
        {name: entropy.sel(student=name).values for name in names},
        id="entropy",
        title="How spread out attention is",
        log_x=True,
        singles=0,
        x_label="training samples n",
        y_label="entropy of attention, nats",
        caption=f"Mean over test samples. Line: median over seeds; band: 10–90 % of seeds.{note}",
    )
    return Section(
        id="curves",
        title="Learning curves",
        statement=f"The {score} is {what}.",
        figures=(replace(curves, caption=f"{curves.caption}{note}"), spread),
    )


def _needed_section(table: xr.Dataset) -> Section:
    level, against = number(float(table.attrs["level"])), str(table.attrs["against"])
    title = f"Samples needed for {table.attrs['score']} {level}"
    figures = [needed_figure(table, id="needed", title=title)]
    kinds = {str(kind) for kind in np.ravel(table[Compared.ratio_kind].values)}
    if kinds - {"not run", ""}:
        title = f"How many times fewer samples than {against}"
        figures.append(ratio_figure(table, id="ratio", title=title))
    figures.append(answers_table(table, id="answers", title="The same in numbers"))
    return Section(
        id="needed",
        title="Needed samples",
        statement="Where the curve over seeds first meets the level, interpolated in log n between "
        "the sizes that were run.",
        figures=tuple(figures),
    )


def _training_section(data: Data, absent: Mapping[str, str]) -> Section:
    """What longer training changes, and the course of one training."""
    figures = [_longer_table(Longer.of(data))] if Longer.label in data else []
    figures.append(_course_figure(Course.of(data), *_drawn(Ranking.of(data))))
    figures += _onset_figure(Compared.of(data))
    missing = absent.get(Longer.label)
    return Section(
        id="training",
        title="How it trains, and what is speed",
        statement="A variant that is ahead after few steps may only be faster: read this before "
        "believing a difference.",
        body=(f"What more steps change is not shown: {missing}.",) if missing else (),
        figures=tuple(figures),
    )


def _longer_table(longer: xr.Dataset) -> Figure:
    steps, times, against = (longer.attrs[name] for name in ("steps", "times", "against"))
    rows = [str(name) for name in longer["student"].values]
    cells = []
    for name in rows:
        one = longer.sel(student=name)
        before, after = float(one[Longer.before]), float(one[Longer.after])
        cells.append([number(before), number(after), ended(one, Longer.ratio)])
    columns = [
        f"{steps} steps",
        f"{times * steps} steps",
        f"{steps} steps over {against} with {times * steps}",
    ]
    return heat_table(
        rows,
        columns,
        cells,
        id="longer",
        title=f"What {times} times the steps change",
        tones=[["" for _ in row] for row in cells],
        caption="Median errors (mean shares of wrong answers, for sentences) at the largest size, "
        "of the reference and of the best variant. Last column: a ratio near 1 says that what was gained "
        "is speed.",
    )


def _course_figure(course: xr.Dataset, names: list[str], note: str) -> Figure:
    """Score, attention and entropy along training."""
    titles = {
        Course.error: "error",
        Course.accuracy: "accuracy",
        Course.attention: "attention on the words that matter",
        Course.entropy: "entropy of attention, nats",
    }
    steps = np.maximum(course["step"].values.astype(float), 0.5)
    drawn = {}
    for name, title in titles.items():
        if name not in course:
            continue
        series = {s: course[name].sel(student=s).dropna("seed", how="all") for s in names}
        drawn[title] = band_figure(
            steps,
            {s: one for s, one in series.items() if one.sizes["seed"]},
            id=str(name),
            title=title,
            y_label=title,
            log_x=True,
            log_y=name == Course.error,
            singles=0,
        )
    return menu_figure(
        drawn,
        id="course",
        title="How each variant trains",
        choice_label="Show",
        caption="One training for each seed at the largest size, Adam with a constant step, on 500 "
        "test samples. Step 0 is drawn at one half. Line: median over seeds; band: 10–90 % of "
        f"seeds.{note}",
    )


def _onset_figure(table: xr.Dataset) -> list[Figure]:
    """The onset of every seed; nothing where no variant has one."""
    if Compared.onset not in table:
        return []
    onset = table[Compared.onset].isel(task=0)
    rows = [
        DotRow(str(name), onset.sel(student=name).dropna("seed"), None)
        for name in table["student"].values
    ]
    rows = [row for row in rows if len(row.numbers()[0])]
    if not rows:
        return []
    figure = dots_figure(
        rows,
        id="onset",
        title="The onset of each variant",
        x_label="step",
        caption="One dot per seed, the bar is the median: the step at which attention on the "
        "right words is halfway to its end. A variant that never gets there has no dots.",
    )
    return [figure]


question = Compare()
