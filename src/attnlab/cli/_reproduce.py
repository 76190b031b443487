"""``attnlab reproduce``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attnlab._places import place
from attnlab.cli._where import HERE, Where, anywhere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attnlab.claims import Claim


class ScaleName(StrEnum):
    """How large the runs are."""

    quick = "quick"
    paper = "paper"


OUT = "Folder for page, figures and data, or a URL such as s3://bucket/folder."
Out = Annotated[str, typer.Option("--out", help=OUT, metavar="PATH|URL")]
Scale = Annotated[
    ScaleName,
    typer.Option(help="quick: smaller tasks, 8 seeds. paper: the papers' sizes, 16 seeds."),
]
Seeds = Annotated[int | None, typer.Option(help="Seeds per setting; intervals need at least 8.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")]
Text = Annotated[
    str | None,
    typer.Option(
        "--text",
        metavar="[PATH]",
        help="Add the claims about real text: alone, on Rotten Tomatoes sentences; with a path, "
        "on a file or on "
        "a folder with training, validation and test file (SST).",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print claims.json instead of a table.")]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict", help="Exit with code 4 while a claim is inconclusive, not run or only reported."
    ),
]


class UntilName(StrEnum):
    """When to stop adding seeds."""

    decided = "decided"


Until = Annotated[
    UntilName | None,
    typer.Option(
        help="decided: look at each claim with 8 seeds, then 16, 32 and 64 until it is decided, "
        "with intervals so "
        "wide that all looks together err in at most 5 % of cases."
    ),
]


@anywhere
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Groups (laws, lu2021, liu2021, beyond) or claims' ids."),
    ] = None,
    scale: Scale = ScaleName.quick,
    seeds: Seeds = None,
    out: Out = "results",
    where: Where = HERE,
    quiet: Quiet = False,
    json: AsJson = False,
    text: Text = None,
    until: Until = None,
    strict: Strict = False,
) -> None:
    """Run the studies of some claims (all by default), judge them, and write a page.

    Writes OUT/report.html, OUT/claims.json, the figures and the data. Interrupted at any moment and
    started again, it goes on where it was; started again when finished, it recomputes nothing.

    Examples:

        attnlab reproduce

        attnlab reproduce lu2021 --scale paper --out paper

        attnlab reproduce laws.identity --seeds 32

        attnlab reproduce liu2021.flatness_known --until decided

        attnlab reproduce lu2021 --text

        attnlab reproduce lu2021 --text folder-with-sst --out sst
    """
    from attnlab.claims import resolve

    run_claims(
        resolve(names or ()),
        scale,
        seeds,
        place(out),
        where,
        quiet,
        json,
        until=until,
        strict=strict,
    )


def run_claims(
    claims: Sequence[Claim],
    scale: ScaleName,
    seeds: int | None,
    out: Path,
    where: Where,
    quiet: bool,
    json: bool,
    command: str | None = None,
    until: UntilName | None = None,
    strict: bool = False,
) -> None:
    """Run, judge, write and print; exits with the documented code."""
    from attnlab.claims import SCHEMA, reproduce
    from attnlab.cli._show import print_ending, print_json, print_stale, print_verdicts
    from attnlab.report import write_report

    def told(study: str, number: int, count: int) -> None:
        if not quiet and not json:
            typer.echo(f"study {number} of {count}: {study}", err=True)

    with where.executor(quiet=quiet or json) as executor:
        done = reproduce(
            claims,
            out,
            scale=scale.value,
            seeds=seeds,
            until=None if until is None else "decided",
            executor=executor,
            on_study=told,
            progress=False if quiet else None,
            command=command,
            keep=where.keep,
        )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_report(out, done.claims, done.data, done.about)
    if json:
        print_json({"schema": SCHEMA, "about": done.about, "claims": done.claims})
    elif not quiet:
        print_verdicts(done.claims)
        print_ending(done.claims, done.contradictions, done.undecided)
        typer.echo(f"page: {page}")
    if not done.ok:
        failed = sum(e["runs"]["failed"] for e in done.claims)
        typer.echo(
            f"attnlab: too many runs failed ({failed}); `attnlab runs {out}` groups them by cause",
            err=True,
        )
        raise typer.Exit(1)
    if done.contradictions:
        raise typer.Exit(3)
    if strict and done.undecided:
        raise typer.Exit(4)
