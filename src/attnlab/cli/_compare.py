"""``attnlab compare``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.cli._many import expand
from attnlab.cli._reproduce import OUT, Quiet
from attnlab.cli._where import HERE, Where, anywhere

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.studies import Comparison

_TASK, _TEXTS, _VARIANTS, _TUNING, _OUTPUT = (
    "Task",
    "Your own texts",
    "Variants",
    "Training and tuning",
    "Output",
)
_COLUMNS = (
    "group",
    "centre",
    "centre_low",
    "centre_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "entropy",
    "attention",
    "onset",
    "sharpness",
    "runs",
)


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


class CompareCommand(TyperCommand):
    """Repeatable options take values separated by spaces or commas; of ``--file`` a comma belongs
    to the name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line."""
        names = {
            name: p.opts[0] for p in self.params if getattr(p, "multiple", False) for name in p.opts
        }
        files = {name: names.pop(name) for name in ("--file",)}
        try:
            return super().parse_args(ctx, expand(expand(args, names), files, commas=False))
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx) from error


@anywhere
def compare(
    task: Annotated[
        str | None,
        _option(
            "A teacher that attends to one of 16 words (hard, the default), to all (dense) or to "
            "R (relevant:R); or "
            "topic: sentences of the topic task.",
            _TASK,
        ),
    ] = None,
    noise_std: Annotated[
        float | None, _option("Standard deviation of a teacher's noise (0.2).", _TASK)
    ] = None,
    file: Annotated[
        list[str] | None,
        _option("Labelled texts, instead of a task; several by spaces.", _TEXTS, metavar="FILE…"),
    ] = None,
    text: Annotated[str | None, _option("The column with the texts.", _TEXTS)] = None,
    label: Annotated[str | None, _option("The column with the labels.", _TEXTS)] = None,
    variants: Annotated[
        list[str] | None,
        _option(
            "Normalisers: softmax, softmax:T, sparsemax, entmax15, topK, uniform; each with a "
            "penalty on request, "
            "+entropy:X, +l1:X, +prior:X, +wrong-prior:X, as in softmax+entropy:0.1.",
            _VARIANTS,
            metavar="NAME…",
        ),
    ] = None,
    against: Annotated[
        str | None, _option("The variant that others are compared with; the first.", _VARIANTS)
    ] = None,
    samples: Annotated[
        list[int] | None,
        _option(
            "Numbers of training samples (64 … 2048 by doubling; fewer for sentences).",
            _VARIANTS,
            metavar="N…",
        ),
    ] = None,
    seeds: Annotated[
        int, _option("Seeds of each variant; to tell 8 variants apart takes 11.", _VARIANTS, min=1)
    ] = 16,
    level: Annotated[
        float | None,
        _option(
            "Error or accuracy for which needed samples are compared; else what half the data "
            "reach.",
            _VARIANTS,
        ),
    ] = None,
    drop: Annotated[
        bool, _option("After 8 seeds, do not go on with variants that are proved worse.", _VARIANTS)
    ] = False,
    steps: Annotated[
        int | None, _option("Steps of each fit (1500; 600 for sentences).", _TUNING)
    ] = None,
    step_sizes: Annotated[
        list[float] | None,
        _option("Step sizes to choose from, for all variants alike.", _TUNING, metavar="X…"),
    ] = None,
    weight_decays: Annotated[
        list[float] | None,
        _option("Weight decays to choose from, for all variants alike.", _TUNING, metavar="X…"),
    ] = None,
    out: Annotated[str, _option(OUT, _OUTPUT, "--out", metavar="PATH|URL")] = "compare",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool,
        _option(
            "Print compare.json's answers and the ranking instead of a text.", _OUTPUT, "--json"
        ),
    ] = False,
) -> None:
    """Compare variants of attention on one task: which is best, which cannot be told apart, and
    what to try.

    Every variant is fitted to the same samples at every size, with the same tuning and seeds. The
    page has a ranking with groups of equals (paired tests, corrected for asking many), learning
    curves, needed samples, attention's entropy, when each variant sets off, and advice in words
    made from the numbers. Interrupted and started again, it goes on where it was. Options shown
    with a … take several values, separated by spaces or commas.

    Examples:

        attnlab compare --task hard --variants softmax softmax:0.25 sparsemax top2

        attnlab compare --task relevant:4 --variants softmax sparsemax --samples 128 256 512 --out four

        attnlab compare --file reviews.csv --text review --label sentiment --out reviews
    """
    from attnlab.studies import Comparison

    if file and (task is not None or noise_std is not None):
        raise AttnlabError(
            "--file: texts of your own are a task of their own; leave out --task and --noise-std"
        )
    if not file and (text is not None or label is not None):
        raise AttnlabError("--text and --label name columns of --file, which was not given")
    given: dict[str, Any] = {"variants": tuple(variants)} if variants else {}
    if file:
        given |= {"source": _source(tuple(file), text, label)}
        given |= (
            {}
            if variants
            else {"variants": ("softmax", "softmax:0.25", "sparsemax", "entmax15", "uniform")}
        )
    asked = Comparison(
        task=task or "hard",
        samples=tuple(samples or ()),
        seeds=seeds,
        against=against,
        level=level,
        noise_std=noise_std,
        steps=steps,
        step_sizes=tuple(step_sizes or ()),
        weight_decays=tuple(weight_decays or ()),
        drop=drop,
        **given,
    )
    run_comparison(asked, place(out), where, quiet, json)


def _source(files: tuple[str, ...], text: str | None, label: str | None) -> Any:
    from attnlab.data import TextSource

    return TextSource(files, text=text, label=label)


def run_comparison(
    asked: Comparison, out: Path, where: Where, quiet: bool, json: bool, *, short: bool = False
) -> None:
    """Compare, write the page and print; ``short`` prints the advice alone."""
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_compare
    from attnlab.studies import explore_compare

    def told(stage: str) -> None:
        if not quiet and not json:
            typer.echo(f"{stage} …", err=True)

    command = shlex.join(["attnlab", *sys.argv[1:]])
    with where.executor(quiet=quiet or json) as executor:
        progress = False if quiet or json else None
        done = explore_compare(
            asked,
            out,
            executor=executor,
            progress=progress,
            on_stage=told,
            command=command,
            keep=where.keep,
        )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_compare(out, done.data, done.about)
    if json:
        print_json({"schema": 1, "about": done.about, "ranking": _rows(done.data["ranking"])})
    elif not quiet:
        if not short:
            _print(done.data["ranking"])
        typer.echo(done.about["advice"])
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)


def _rows(ranking: xr.Dataset) -> list[dict[str, Any]]:
    """The variants from the best to the worst, a record each; what is not a finite number is null."""
    import numpy as np

    rows = []
    for name in ranking["student"].values.tolist():
        one = ranking.sel(student=name)
        row: dict[str, Any] = {"variant": name}
        row |= {column: one[column].values.item() for column in _COLUMNS if column in ranking}
        row = {
            k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in row.items()
        }
        row["p"] = dict(
            zip(ranking["other"].values.tolist(), one["p"].values.tolist(), strict=True)
        )
        rows.append(row)
    return rows


def _print(ranking: xr.Dataset) -> None:
    """The ranking as a table."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from attnlab.cli._show import number

    score, against = ranking.attrs["score"], ranking.attrs["against"]
    head = ["variant", "group", f"median {score}", f"error over {against}", "entropy"]
    head += ["sets off at"] if "onset" in ranking else []
    shown = Table(*head)
    for row in _rows(ranking):
        cells = [escape(row["variant"]), row["group"], _ended(row, "centre"), _ended(row, "ratio")]
        cells += [number(row["entropy"]), *([number(row["onset"])] if "onset" in ranking else [])]
        shown.add_row(*cells)
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(shown)
    typer.echo("Variants that share a letter cannot be told apart.")


def _ended(row: dict[str, Any], name: str) -> str:
    from attnlab.cli._show import number

    value, low, high = (row[f"{name}{end}"] for end in ("", "_low", "_high"))
    return number(value) if low is None else f"{number(value)} [{number(low)}, {number(high)}]"
