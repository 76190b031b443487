"""``attnlab samples``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.cli._reproduce import OUT, Quiet
from attnlab.cli._where import HERE, Where, anywhere

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.studies import SampleSettings

_TASK, _STUDENTS, _SIZES, _TUNING, _OUTPUT = (
    "Teacher",
    "Students",
    "Question",
    "Training and tuning",
    "Output",
)
_MASKS, _WORDS = ("static-mask", "gate", "moving-block"), ("self-attention", "mlp", "multi-layer")
_WORD_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
_PAIRS = {
    "dense": ("baseline", "vacuous-mask"),
    "mlp": ("baseline", "self-attention"),
    "self-attention": ("baseline", "self-attention", "known-weights"),
    "multi-layer": ("baseline", "multi-layer", "known-weights"),
}


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@anywhere
def samples(
    teacher: Annotated[
        str,
        _option(
            "Where data comes from. On vectors: static-mask, gate, moving-block, dense; on words: "
            "self-attention, mlp, "
            "multi-layer; or your own, file.py:function (key → object with sample(n, key=…, "
            "noisy=…)).",
            _TASK,
        ),
    ] = "static-mask",
    features: Annotated[
        list[int] | None,
        _option(
            "Numbers in an input, p, as in 16 32 64 (16); teachers on vectors only.",
            _TASK,
            metavar="P…",
        ),
    ] = None,
    relevant: Annotated[
        int | None, _option("Numbers that count (4); masks, gates and blocks only.", _TASK)
    ] = None,
    depth: Annotated[
        int | None, _option("Layers (1); multi-layer teachers or students only.", _TASK)
    ] = None,
    classes: Annotated[int, _option("0 for regression; 2 or more for labels.", _TASK)] = 0,
    noise_std: Annotated[
        float | None,
        _option("Standard deviation of the noise on outputs (0.2); not with --classes.", _TASK),
    ] = None,
    label_noise: Annotated[
        float, _option("Share of labels that are flipped; with --classes.", _TASK)
    ] = 0.0,
    students: Annotated[
        list[str] | None,
        _option(
            "What learns, as in A B C. On vectors: baseline, known-attention, vacuous-mask, "
            "wrong-mask, "
            "self-attention; on words: baseline, self-attention, multi-layer, known-weights, "
            "wrong-weights; or your "
            "own, file.py:function (key, shape → any Equinox module).",
            _STUDENTS,
            metavar="NAME…",
        ),
    ] = None,
    against: Annotated[
        str | None, _option("The student that others are compared with; the first one.", _STUDENTS)
    ] = None,
    hidden: Annotated[
        int | None, _option("Hidden units of the baseline (8; 24 on words).", _STUDENTS)
    ] = None,
    sharpness: Annotated[
        float, _option("τ of the softplus units of teacher and students.", _STUDENTS)
    ] = 4.0,
    error: Annotated[
        float,
        _option(
            "The error asked for, between 0 and 1: E(ŷ − g)²/Var g; with classes, the share of "
            "wrong labels.",
            _SIZES,
        ),
    ] = 0.1,
    sizes: Annotated[
        list[int] | None,
        _option(
            "Numbers of training samples, as in 32 64 128 (8 … 4096 by doubling; 64 … 4096 on "
            "words).",
            _SIZES,
            metavar="N…",
        ),
    ] = None,
    seeds: Annotated[
        int, _option("Seeds of each student; intervals need at least 8.", _SIZES, min=1)
    ] = 8,
    steps: Annotated[
        int, _option("Steps of each fit (Adam, step size falling as a cosine).", _TUNING)
    ] = 1500,
    batch_size: Annotated[int | None, _option("Samples a step (64; 32 on words).", _TUNING)] = None,
    step_sizes: Annotated[
        list[float] | None,
        _option("Step sizes to choose from (0.02), for all students alike.", _TUNING, metavar="X…"),
    ] = None,
    weight_decays: Annotated[
        list[float] | None,
        _option(
            "Weight decays to choose from (0 0.1; 0.1 on words), for all students alike.",
            _TUNING,
            metavar="X…",
        ),
    ] = None,
    out: Annotated[str, _option(OUT, _OUTPUT, "--out", metavar="PATH|URL")] = "samples",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool,
        _option("Print samples.json's answers and numbers instead of a text.", _OUTPUT, "--json"),
    ] = False,
) -> None:
    """Measure how many samples each student needs, and how many it saves.

    Every student is fitted to the same samples at every size, with the same tuning. The page shows
    learning curves, needed samples with intervals, their growth with p, ratios with a verdict
    (saves, no advantage, costs, inconclusive), and what simple quantities of the inputs predict.
    Interrupted and started again, it goes on where it was. Options shown with a … take several
    values, separated by spaces or commas.

    Examples:

        attnlab samples --teacher static-mask --relevant 4 --features 16 32 64 128
            --students baseline known-attention --error 0.1

        attnlab samples --teacher self-attention --students baseline self-attention known-weights --out words

        attnlab samples --students baseline mine.py:model --sizes 32 64 128 256 512 --out mine

        attnlab samples --teacher mine.py:source --students mine.py:small mine.py:large --out own
    """
    from attnlab.studies import SampleSettings

    _check_teacher(teacher)
    if classes and noise_std is not None:
        raise AttnlabError("--noise-std has no meaning with --classes: give --label-noise")
    given = {"features": features, "relevant": relevant, "depth": depth}
    _check_use(
        teacher, students or (), {name: value for name, value in given.items() if value is not None}
    )
    words = teacher in _WORDS
    settings = SampleSettings(
        teacher=teacher,
        relevant=4 if relevant is None else relevant,
        depth=1 if depth is None else depth,
        noise_std=SampleSettings.noise_std if noise_std is None else noise_std,
        label_noise=label_noise,
        classes=classes,
        hidden=hidden,
        sharpness=sharpness,
        sizes=tuple(sizes) if sizes else _WORD_SIZES if words else SampleSettings.sizes,
        steps=steps,
        batch_size=(32 if words else 64) if batch_size is None else batch_size,
        step_sizes=tuple(step_sizes or (0.02,)),
        weight_decays=tuple(weight_decays or ((0.1,) if words else (0.0, 0.1))),
    )
    command = shlex.join(["attnlab", *sys.argv[1:]])
    asked = {
        "students": _students(teacher, students),
        "features": tuple(features or (16,)),
        "level": error,
        "seeds": seeds,
        "against": against,
        "where": where,
        "command": command,
    }
    _run(settings, place(out), asked, quiet, json)


def _check_teacher(teacher: str) -> None:
    from attnlab.models import TEACHER_KINDS

    if ":" not in teacher and teacher not in TEACHER_KINDS:
        raise AttnlabError(
            f"--teacher {teacher!r}: expected one of {', '.join(TEACHER_KINDS)}; or your own as "
            "file.py:function"
        )


def _check_use(teacher: str, students: list[str] | tuple[str, ...], given: dict[str, Any]) -> None:
    """Refuse what would have no effect."""
    useful = {
        "features": teacher in (*_MASKS, "dense"),
        "relevant": teacher in _MASKS,
        "depth": teacher == "multi-layer" or "multi-layer" in students,
    }
    for name, value in given.items():
        if not useful[name]:
            shown = " ".join(map(str, value)) if isinstance(value, list) else value
            raise AttnlabError(
                f"--{name} {shown}: has no meaning for the teacher {teacher!r} and these students"
            )


def _students(teacher: str, given: list[str] | None) -> tuple[str, ...]:
    if given:
        return tuple(given)
    if ":" in teacher:
        raise AttnlabError(
            "--students: name your own as file.py:function; a teacher of your own has no others"
        )
    return _PAIRS.get(teacher, ("baseline", "known-attention"))


def _run(
    settings: SampleSettings, out: Path, asked: dict[str, Any], quiet: bool, json: bool
) -> None:
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_samples
    from attnlab.studies import explore_samples

    if not 0 < asked["level"] < 1:
        raise AttnlabError(
            f"--error {asked['level']:g}: expected a share between 0 and 1, such as 0.1"
        )
    where = asked.pop("where")
    with where.executor(quiet=quiet or json) as executor:
        progress = False if quiet else None
        done = explore_samples(
            settings, out, progress=progress, executor=executor, keep=where.keep, **asked
        )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_samples(out, done.data, done.about)
    if json:
        print_json({"about": done.about, "samples": _rows(done.data["samples"])})
    elif not quiet:
        _print(done.data["samples"], done.about["summary"])
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)


def _rows(table: xr.Dataset) -> list[dict[str, Any]]:
    """The answers, one record for each student and p; what is not a finite number is null."""
    import numpy as np

    names = [
        f"{name}{end}" for name in ("needed", "ratio") for end in ("", "_low", "_high", "_kind")
    ]
    rows = []
    for student in table["student"].values.tolist():
        for p in table["features"].values.tolist():
            one = table.sel(student=student, features=p)
            row = {"student": student, "features": p}
            for name in [*names, "reached", "verdict"]:
                value = one[name].values.item()
                row[name] = None if isinstance(value, float) and not np.isfinite(value) else value
            rows.append(row)
    return rows


def _print(table: xr.Dataset, summary: list[str]) -> None:
    """A table of needed samples, then the answers in sentences."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    several = table.sizes["features"] > 1
    heads = [
        "student",
        *(["p"] if several else []),
        f"samples for {table.attrs['score']} {table.attrs['level']:g}",
    ]
    shown = Table(*heads, "ratio", "verdict")
    for row in _rows(table):
        needed = {
            "crossed": lambda r: f"{r['needed']:.3g}",
            "already met": lambda r: f"≤ {r['needed']:.3g}",
        }
        known = needed.get(row["needed_kind"], lambda r: str(r["needed_kind"]))(row)
        sign = {"at least": "≥ ", "at most": "≤ "}.get(row["ratio_kind"], "")
        ratio = "" if row["ratio"] is None else f"{sign}{row['ratio']:.3g}"
        cells = [escape(str(row["student"])), *([str(row["features"])] if several else [])]
        shown.add_row(*cells, known, ratio, row["verdict"])
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(shown)
    for sentence in summary:
        typer.echo(sentence)
