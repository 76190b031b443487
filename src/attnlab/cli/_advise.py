"""``attnlab advise``."""

from __future__ import annotations

from typing import Annotated

import typer

from attnlab._places import place
from attnlab.cli._reproduce import OUT, Quiet
from attnlab.cli._where import HERE, Where, anywhere


@anywhere
def advise(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Labelled texts: CSV, TSV, JSON Lines, Parquet or “label text” lines, also gzip’d."
        ),
    ],
    text: Annotated[str | None, typer.Option(help="The column with the texts.")] = None,
    label: Annotated[str | None, typer.Option(help="The column with the labels.")] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Seeds of each variant; to tell 4 variants apart takes 8.")
    ] = 8,
    out: Annotated[str, typer.Option("--out", help=OUT, metavar="PATH|URL")] = "advice",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the answers and the ranking as JSON.")
    ] = False,
) -> None:
    """Say which attention to try on your own labelled texts: the short form of `attnlab compare
    --file`.

    Compares softmax, a cooler softmax, sparsemax and mean pooling on the texts and prints one
    paragraph, in which every number is measured. The page in OUT has the rest.

    Example:

        attnlab advise reviews.csv --text review --label sentiment
    """
    from attnlab.cli._compare import run_comparison
    from attnlab.data import TextSource
    from attnlab.questions.texts import TRIED
    from attnlab.studies import Comparison

    source = TextSource(tuple(files), text=text, label=label)
    asked = Comparison(source=source, variants=TRIED, seeds=seeds)
    run_comparison(asked, place(out), where, quiet, json, short=True)
