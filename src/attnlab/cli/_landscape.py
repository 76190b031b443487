"""``attnlab landscape``."""

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

    from attnlab.studies import PointSettings

_PROBLEM, _SEARCH, _OUTPUT = "Problem", "Search", "Output"
_SHOWN = (
    "kind",
    "starts",
    "share",
    "error",
    "loss",
    "value",
    "smallest",
    "largest",
    "flat_trace",
    "flat_adaptive_sam",
    "flat_petzka",
)


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@anywhere
def landscape(
    model: Annotated[
        str,
        _option(
            "On 8 numbers, of which a gate lets 2 through: baseline, known-attention. On 3 words "
            "of dimension 2: "
            "words-baseline, known-weights, known-weights-plain, self-attention, multi-layer.",
            _PROBLEM,
        ),
    ] = "self-attention",
    samples: Annotated[int, _option("Training samples.", _PROBLEM)] = 128,
    noise: Annotated[
        float | None,
        _option(
            "Standard deviation of the noise on the outputs (0.2); not with --classes.", _PROBLEM
        ),
    ] = None,
    classes: Annotated[
        int, _option("2: label by the sign of the output; 0: regression.", _PROBLEM)
    ] = 0,
    l2: Annotated[
        float,
        _option("λ of the penalty ½λ‖θ‖². With 0 weights mostly escape, which is said.", _PROBLEM),
    ] = 1e-3,
    starts: Annotated[
        int, _option("Starts of each problem, at the scales 0.1, 1 and 3 in turn.", _SEARCH)
    ] = 32,
    saddles: Annotated[
        bool, _option("Look for stationary points of any kind, not minima.", _SEARCH)
    ] = False,
    seeds: Annotated[
        int, _option("Problems; the first is shown in full, all are counted.", _SEARCH)
    ] = 1,
    out: Annotated[str, _option(OUT, _OUTPUT, "--out", metavar="PATH|URL")] = "landscape",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool,
        _option(
            "Print landscape.json's answers and the points instead of a text.", _OUTPUT, "--json"
        ),
    ] = False,
) -> None:
    """Find the stationary points of one problem, certify them, and look at what lies around the
    best.

    Searches from many starts until the gradient vanishes, then proves from all eigenvalues what
    each point is: minimum, saddle or degenerate. Points that are equal up to symmetry are counted
    once, each with its error, flatness and the share of starts that end there. The page also shows
    the surface around the lowest minimum, its spectrum, and the barrier on the way to the second
    lowest. Interrupted and started again, it goes on where it was.

    Examples:

        attnlab landscape --model known-attention --starts 9

        attnlab landscape --model self-attention --samples 128 --starts 32

        attnlab landscape --model self-attention --saddles --out saddles
    """
    from attnlab.studies import PointSettings

    if classes and noise is not None:
        raise AttnlabError(
            "--noise has no meaning with --classes: labels are the sign of the teacher's output"
        )
    noise = PointSettings.noise if noise is None else noise
    settings = PointSettings(
        model=model,
        samples=samples,
        noise=noise,
        classes=classes,
        l2=l2,
        starts=starts,
        saddles=saddles,
    )
    asked = {"seeds": seeds, "where": where, "command": shlex.join(["attnlab", *sys.argv[1:]])}
    _run(settings, place(out), asked, quiet, json)


def _run(
    settings: PointSettings, out: Path, asked: dict[str, Any], quiet: bool, json: bool
) -> None:
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_landscape
    from attnlab.studies import explore_landscape

    where = asked.pop("where")
    with where.executor(quiet=quiet or json) as executor:
        progress = False if quiet else None
        done = explore_landscape(
            settings, out, progress=progress, executor=executor, keep=where.keep, **asked
        )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_landscape(out, done.data, done.about)
    points = done.data.get("points")
    if json:
        print_json({"about": done.about, "points": [] if points is None else _rows(points)})
    elif not quiet:
        _print(points, done.about["summary"])
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)


def _rows(points: xr.Dataset) -> list[dict[str, Any]]:
    """The distinct points, a record each; what is not a finite number is null."""
    import numpy as np

    rows = []
    for k in range(points.sizes["point"]):
        row = {"point": k + 1} | {
            name: points[name].values[k].item() for name in _SHOWN if name in points
        }
        rows.append(
            {k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()}
        )
    return rows


def _print(points: xr.Dataset | None, summary: list[str]) -> None:
    """A table of the distinct points, then the answers in sentences."""
    from rich.console import Console
    from rich.table import Table

    if points is not None:
        shown = Table(
            "point", "kind", "starts", "error", "training loss", "λ_min", "λ_max", "trace"
        )
        for row in _rows(points):
            numbers = (row[name] for name in ("error", "loss", "smallest", "largest", "flat_trace"))
            told = ("–" if value is None else f"{value:.3g}" for value in numbers)
            shown.add_row(
                str(row["point"]), row["kind"], f"{row['starts']} ({row['share']:.0%})", *told
            )
        console = Console()
        console = console if console.is_terminal else Console(width=120)
        console.print(shown)
    for sentence in summary:
        typer.echo(sentence)
