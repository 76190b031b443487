"""``attnlab study``."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.cli._reproduce import Quiet
from attnlab.cli._where import HERE, Where, anywhere

if TYPE_CHECKING:
    from attnlab.studies import TextStudy

_TEXTS, _WORDS, _COST, _OUTPUT = "Texts", "Words", "How much to run", "Output"
_NUMBERS = {"quick": {}, "thorough": {"seeds": 16, "fit_steps": 1500, "training_seeds": 8}}


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@anywhere
def study(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            help="Labelled texts: CSV, TSV, JSON Lines, Parquet or “label text” lines, also gzip’d."
        ),
    ] = None,
    text: Annotated[str | None, _option("The column with the texts.", _TEXTS)] = None,
    label: Annotated[str | None, _option("The column with the labels.", _TEXTS)] = None,
    train: Annotated[
        list[str] | None, _option("Training files, instead of FILES; several by spaces.", _TEXTS)
    ] = None,
    valid: Annotated[
        list[str] | None, _option("Validation files; without them a tenth is held out.", _TEXTS)
    ] = None,
    test: Annotated[
        list[str] | None, _option("Test files; without them the split is 8 : 1 : 1.", _TEXTS)
    ] = None,
    format: Annotated[
        str | None, _option("csv, tsv, jsonl, parquet or lines; else guessed.", _TEXTS)
    ] = None,
    encoding: Annotated[
        str | None, _option("Such as utf-8 or cp1252; else found out.", _TEXTS)
    ] = None,
    header: Annotated[
        bool, _option("Whether the first row of CSV and TSV names the columns.", _TEXTS)
    ] = True,
    lower: Annotated[bool, _option("Make words lower case.", _WORDS)] = True,
    punctuation: Annotated[bool, _option("Keep punctuation marks as words.", _WORDS)] = False,
    tokenizer: Annotated[
        str | None, _option("A tokeniser of your own, module:function, from text to words.", _WORDS)
    ] = None,
    min_count: Annotated[int, _option("Rarer words are unknown and dropped.", _WORDS)] = 1,
    max_words: Annotated[int, _option("The most frequent words that are known.", _WORDS)] = 20_000,
    target: Annotated[
        float | None,
        _option("Accuracy at which labels are compared; else what both poolings reach.", _COST),
    ] = None,
    scale: Annotated[
        str, _option("quick (8 seeds) or thorough (16 seeds, longer fits).", _COST)
    ] = "quick",
    seeds: Annotated[
        int | None, _option("Seeds of the learning curves; an interval needs 8.", _COST)
    ] = None,
    variants: Annotated[
        bool,
        _option("Compare variants of attention too, for “What to try”.", _COST, "--try/--no-try"),
    ] = True,
    split_seed: Annotated[int, _option("Draws the split.", _COST)] = 0,
    out: Annotated[
        str,
        _option(
            "Folder or URL for page, verdicts, data and model.",
            _OUTPUT,
            "--out",
            metavar="PATH|URL",
        ),
    ] = "study",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool, _option("Print study.json’s answers instead of a text.", _OUTPUT, "--json")
    ] = False,
) -> None:
    """Study your own labelled texts: does attention pay, what does it attend to, is what was
    trained good?

    Learning curves of attention pooling, mean pooling and TF-IDF say how many labels each needs;
    training along the theory's setting says which words get attention and since when, and where
    training stopped; a comparison of variants of attention says what to try. Writes
    OUT/report.html, OUT/study.json, the data and the trained model (OUT/model, for `attnlab
    predict`). Interrupted and started again, it goes on where it was.

    Examples:

        attnlab study reviews.csv --text review --label sentiment

        attnlab study --train train.tsv --valid dev.tsv --test test.tsv --out mine
    """
    from attnlab.studies import TextSource, TextStudy

    if bool(files) == bool(train):
        raise AttnlabError(
            "give the texts as FILES or as --train (with --valid and --test), and not as both"
        )
    if scale not in _NUMBERS:
        raise AttnlabError(f"--scale {scale}: expected {' or '.join(_NUMBERS)}")
    source = TextSource(
        tuple(files or train or ()),
        tuple(valid or ()),
        tuple(test or ()),
        text=text,
        label=label,
        format=format,
        encoding=encoding,
        header=header,
        lower=lower,
        punctuation=punctuation,
        tokenizer=tokenizer,
        min_count=min_count,
        max_words=max_words,
        split_seed=split_seed,
    )
    numbers: dict[str, Any] = _NUMBERS[scale] | ({} if seeds is None else {"seeds": seeds})
    numbers |= {} if variants else {"variants": ()}
    _run(TextStudy(source, target=target, **numbers), place(out), where, quiet, json)


def _run(asked: TextStudy, out: Path, where: Where, quiet: bool, json: bool) -> None:
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_study
    from attnlab.studies import study_texts

    def told(stage: str) -> None:
        if not quiet and not json:
            typer.echo(f"{stage} …", err=True)

    command = shlex.join(["attnlab", *sys.argv[1:]])
    progress = False if quiet or json else None
    with where.executor(quiet=quiet or json) as executor:
        done = study_texts(
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
    page = write_study(out, done.data, done.about)
    if json:
        print_json({"schema": 1, "about": done.about})
    elif not quiet:
        for entry in done.about["cards"]:
            typer.echo(f"{entry['label']}: {entry['text']}")
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)
