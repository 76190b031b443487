"""SEN from large embeddings: the relation holds once the start is kept in it."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Measure, Source, pooled_median, pooled_p95
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.sweeps import LargeStart, head_name, starts
from attnlab.report import DotRow, Figure, band_figure, dots_figure

_MEDIAN, _P95 = 0.006, 0.02


def within(prefix: str, measure: Measure) -> tuple[Criterion, ...]:
    """The claim's bounds on the relation's error."""
    return (
        Criterion(f"{prefix}, median", measure, pooled_median <= _MEDIAN),
        Criterion(f"{prefix}, p95", measure, pooled_p95 <= _P95),
    )


def figures(data: Data) -> list[Figure]:
    """The error with and without the start: along training, and of each run."""
    runs = LargeStart.of(data)
    bound = 100 * _MEDIAN
    forms = {
        "with |ν₀|²": (LargeStart.sen_error, ""),
        "without |ν₀|²": (LargeStart.sen_error_without_start, "control: "),
    }
    series, rows = {}, []
    for form, (variable, prefix) in forms.items():
        for head in runs["head"].values.tolist():
            name, error = f"{head_name(head)}, {form}", 100 * runs[variable].sel(head=head)
            series[name] = error.median("word")
            rows.append(DotRow(prefix + name, error.median(["step", "word"]), bound))
    return [
        band_figure(
            runs["step"].values,
            series,
            id="sen_init_error",
            title="The start must be kept in the relation",
            y_label="error of |q||ν| in %, median word",
            log_y=True,
            singles=6,
            lines={"bound on the median": bound},
            caption="Initial embeddings of standard deviation 0.1. Line: median over seeds of the "
            "median word with s > 0.05; band: 10–90 % of seeds.",
        ),
        dots_figure(
            rows,
            id="sen_init_seeds",
            title="Median error of each run",
            x_label="error of |q||ν| in %",
            caption="One dot per seed, the bar is the median of the seeds; the shaded side is "
            "within the bound.",
        ),
    ]


claim = Claim(
    id="lu2021.sen_init",
    rank=2,
    title="The relation survives embeddings that start large",
    statement="With initial embeddings of standard deviation 0.1 the relation holds once |ν₀|² is "
    "kept in it.",
    why="The relation adds up motion from the start, so that it fixes how much |ν|² has gained and "
    "not |ν|² itself. A word that starts long keeps |ν₀|² in it for all of training because "
    "the constant of an integral never goes away; left out, it puts the word on the wrong "
    "curve.",
    finding={
        "holds": "The relation survives large initial embeddings, once |ν₀|² is kept",
        "fails": "From large initial embeddings the relation breaks, even with |ν₀|²",
        "inconclusive": "Whether the relation survives large initial embeddings is undecided",
    },
    source=Source("rebuilt", PAPER, "the relation from larger embeddings, those of the ablations"),
    provenance=PROTOTYPE,
    sweeps=(starts,),
    criteria=within("relative error, fixed and linear head", LargeStart.sen_error),
    controls=(
        Control(
            "without |ν₀|²",
            "The relation as if embeddings had started at zero must not fit.",
            within("without |ν₀|²", LargeStart.sen_error_without_start),
        ),
    ),
    how_measured="As lu2021.sen in its plain form, with initial embeddings N(0, 0.1²) under the "
    "fixed and linear head.",
    refuted_by="An error above the bound, or a fit that is as good without |ν₀|².",
    figures=figures,
)
