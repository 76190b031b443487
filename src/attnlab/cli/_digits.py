"""``attnlab digits``."""

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

    from attnlab.studies import DigitsSettings

_IMAGES, _STUDENTS, _QUESTION, _TUNING, _OUTPUT = (
    "Images",
    "Students",
    "Question",
    "Training and tuning",
    "Output",
)
_SIZES, _STEPS = (39, 78, 312, 625, 1250), 200


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@anywhere
def digits(
    source: Annotated[
        str,
        _option(
            "Where digits come from: sklearn (8×8 pixels, always at hand), mnist (needs the extra "
            "attnlab[mnist]), or "
            "a folder with IDX files, train-images-idx3-ubyte and train-labels-idx1-ubyte (.gz or "
            "not).",
            _IMAGES,
            "--digits",
        ),
    ] = "sklearn",
    shrink: Annotated[
        int | None, _option("Average squares of so many pixels (1; 2 unless sklearn).", _IMAGES)
    ] = None,
    canvas: Annotated[
        int | None, _option("Pixels of an image's side (three digits).", _IMAGES)
    ] = None,
    spacing: Annotated[
        int | None,
        _option("A digit's place lies on a lattice of so many pixels (one digit).", _IMAGES),
    ] = None,
    fragments: Annotated[int, _option("Fragments of other digits in an image.", _IMAGES)] = 4,
    fragment_size: Annotated[
        int | None, _option("Pixels of a fragment's side (half a digit).", _IMAGES)
    ] = None,
    noise_std: Annotated[
        float, _option("Standard deviation of the noise on every pixel.", _IMAGES)
    ] = 0.1,
    students: Annotated[
        list[str] | None,
        _option(
            "What learns, as in A B C: baseline, known-mask, wrong-mask, patch-attention, "
            "attention-pooling (all).",
            _STUDENTS,
            metavar="NAME…",
        ),
    ] = None,
    against: Annotated[
        str, _option("The student that others are compared with.", _STUDENTS)
    ] = "baseline",
    patch: Annotated[
        int | None, _option("Pixels of a patch's side, for attention (one digit).", _STUDENTS)
    ] = None,
    stride: Annotated[
        int | None, _option("Pixels from patch to patch (half a digit).", _STUDENTS)
    ] = None,
    accuracy: Annotated[
        float, _option("The accuracy asked for, between 0 and 1.", _QUESTION)
    ] = 0.3,
    sizes: Annotated[
        list[int] | None,
        _option(
            "Numbers of training images, as in 39 78 312 (39 78 312 625 1250).",
            _QUESTION,
            metavar="N…",
        ),
    ] = None,
    attention_sizes: Annotated[
        list[int] | None,
        _option(
            "The same for students that attend, which cost more (the middle and the largest size).",
            _QUESTION,
            metavar="N…",
        ),
    ] = None,
    seeds: Annotated[
        int, _option("Seeds of each student; intervals need at least 8.", _QUESTION, min=1)
    ] = 8,
    steps: Annotated[
        int, _option("Steps of each fit (Adam, step size falling as a cosine).", _TUNING)
    ] = _STEPS,
    batch_size: Annotated[int, _option("Images a step.", _TUNING)] = 64,
    step_sizes: Annotated[
        list[float] | None,
        _option(
            "Step sizes to choose from (0.003 0.01), for all students alike.", _TUNING, metavar="X…"
        ),
    ] = None,
    weight_decays: Annotated[
        list[float] | None,
        _option(
            "Weight decays to choose from (0.1 1), for all students alike.", _TUNING, metavar="X…"
        ),
    ] = None,
    out: Annotated[str, _option(OUT, _OUTPUT, "--out", metavar="PATH|URL")] = "digits",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool,
        _option("Print digits.json's answers and numbers instead of a text.", _OUTPUT, "--json"),
    ] = False,
) -> None:
    """Read real digits among clutter: how many images does attention save, and where does it look?

    Every student reads the same images: one digit among fragments of others, under noise. One is
    told where the digit is, others find it out themselves. The page shows the images with each
    student's attention over them, learning curves, needed images with intervals, and ratios with a
    verdict (saves, no advantage, costs, inconclusive). About five minutes on one core. Interrupted
    and started again, it goes on where it was. Options shown with a … take several values,
    separated by spaces or commas.

    Examples:

        attnlab digits

        attnlab digits --students baseline known-mask --sizes 39 78 156 312 625 1250 --accuracy 0.5 --out masks

        attnlab digits --fragments 8 --noise-std 0.2 --out harder

        attnlab digits --digits mnist --out mnist
    """
    from attnlab.studies import DigitsSettings

    given = {
        "canvas": canvas,
        "spacing": spacing,
        "fragment_size": fragment_size,
        "patch": patch,
        "stride": stride,
    }
    shrink = (1 if source == "sklearn" else 2) if shrink is None else shrink
    settings = DigitsSettings(
        digits=source,
        shrink=shrink,
        fragments=fragments,
        noise_std=noise_std,
        sizes=tuple(sizes or _SIZES),
        steps=steps,
        batch_size=batch_size,
        step_sizes=tuple(step_sizes or DigitsSettings.step_sizes),
        weight_decays=tuple(weight_decays or DigitsSettings.weight_decays),
        **_sized(source, shrink, given),
    )
    asked = {
        "students": tuple(students) if students else None,
        "level": accuracy,
        "seeds": seeds,
        "against": against,
        "attention_sizes": attention_sizes,
        "where": where,
        "command": shlex.join(["attnlab", *sys.argv[1:]]),
    }
    _run(
        settings,
        place(out),
        {name: value for name, value in asked.items() if value is not None},
        quiet,
        json,
    )


def _sized(source: str, shrink: int, given: dict[str, int | None]) -> dict[str, Any]:
    """Lengths that were not given, measured in digits."""
    from attnlab.data import load_digits

    side = load_digits(source, shrink=shrink).images.shape[1]
    half = max(1, side // 2)
    usual = {
        "canvas": 3 * side,
        "spacing": side,
        "fragment_size": half,
        "patch": side,
        "stride": half,
    }
    return usual | {name: value for name, value in given.items() if value is not None}


def _run(
    settings: DigitsSettings, out: Path, asked: dict[str, Any], quiet: bool, json: bool
) -> None:
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_digits
    from attnlab.studies import explore_digits

    if not 0 < asked["level"] < 1:
        raise AttnlabError(
            f"--accuracy {asked['level']:g}: expected a share between 0 and 1, such as 0.3"
        )
    where = asked.pop("where")
    with where.executor(quiet=quiet or json) as executor:
        progress = False if quiet else None
        done = explore_digits(
            settings, out, progress=progress, executor=executor, keep=where.keep, **asked
        )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_digits(out, done.data, done.about)
    if json:
        print_json({"about": done.about, "digits": _rows(done.data["digits"])})
    elif not quiet:
        _print(done.data["digits"], done.about["summary"])
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)


def _rows(table: xr.Dataset) -> list[dict[str, Any]]:
    """The answers, one record for each student; accuracy and attention with the most images, means
    over seeds.

    What is not a finite number is null.
    """
    import numpy as np

    names = [
        f"{name}{end}" for name in ("needed", "ratio") for end in ("", "_low", "_high", "_kind")
    ]
    rows = []
    for student in table["student"].values.tolist():
        one = table.sel(student=student).isel(task=0)
        last = one.isel(size=-1)
        row = {"student": student} | {
            name: one[name].values.item() for name in [*names, "reached", "verdict"]
        }
        row |= {
            name: float(last[name].mean())
            for name in ("accuracy", "attention_on_digit")
            if name in last
        }
        rows.append(
            {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}
        )
    return rows


def _print(table: xr.Dataset, summary: list[str]) -> None:
    """A table of needed images, then the answers in sentences."""
    from rich.console import Console
    from rich.table import Table

    largest, signs = int(table["size"].values[-1]), {"at least": "≥ ", "at most": "≤ "}
    shown = Table(
        "student",
        f"images for {table.attrs['level']:.0%}",
        "ratio",
        "verdict",
        f"accuracy, n = {largest}",
    )
    for row in _rows(table):
        kind = row["needed_kind"]
        sign = {"crossed": "", "already met": "≤ "}.get(kind)
        needed = kind if sign is None else f"{sign}{row['needed']:.3g}"
        ratio = (
            "" if row["ratio"] is None else f"{signs.get(row['ratio_kind'], '')}{row['ratio']:.3g}"
        )
        reads = "–" if row["accuracy"] is None else f"{row['accuracy']:.1%}"
        shown.add_row(row["student"], needed, ratio, row["verdict"], reads)
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(shown)
    for sentence in summary:
        typer.echo(sentence)
