"""``attnlab predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

import attnlab as al
from attnlab._csv import write_csv
from attnlab._errors import AttnlabError
from attnlab._places import absolute_name, is_file, is_folder, place, reading

if TYPE_CHECKING:
    from attnlab.data import Texts
    from attnlab.estimators import AttentionClassifier

_BATCH = 4096


def predict(
    files: Annotated[
        list[str],
        typer.Argument(
            help="Texts: CSV, TSV, JSON Lines, Parquet or lines, also compressed, also at URLs."
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="The folder of a model: OUT/model of `attnlab study`, or OUT itself.",
            metavar="PATH|URL",
        ),
    ] = "study",
    text: Annotated[str | None, typer.Option(help="The column with the texts.")] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, tsv, jsonl, parquet or lines; guessed by default.")
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Such as utf-8 or cp1252; detected by default.")
    ] = None,
    header: Annotated[bool, typer.Option(help="Whether the first row names the columns.")] = True,
    words: Annotated[
        int, typer.Option(min=0, help="How many of the most attended words to write per text.")
    ] = 3,
    tokenizer: Annotated[
        str | None,
        typer.Option(help="module:function, if the model was trained with your own tokeniser."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", help="CSV file to write; standard output by default.")
    ] = None,
) -> None:
    """Label texts with a trained model: label, probabilities and the words attended to, as CSV.

    A text without any known word gets the classes' shares in training; its words are empty.

    Examples:

        attnlab predict new.csv --text review --out labelled.csv

        attnlab predict lines.txt --format lines --model mine/model
    """

    folder = place(model)
    with reading(folder):
        folder = folder / "model" if is_file(folder / "model" / "model.json") else folder
        classifier = al.load_classifier(folder, tokenizer=tokenizer)
    texts = al.data.read_texts(
        files, text=text, format=format, encoding=encoding, header=header, labelled=False
    )
    for entry in texts.dropped:
        typer.echo(f"attnlab: left out: {entry}", err=True)
    for entry in texts.recoded:
        typer.echo(f"attnlab: lines: {entry}", err=True)
    with _opened(None if out is None else place(out), files) as target:
        _write(target, classifier, texts, words)
    if out is not None:
        typer.echo(f"{len(texts):,} texts: {out}", err=True)


@contextmanager
def _opened(out: Path | None, files: Sequence[str]) -> Iterator[TextIO]:
    if out is None:
        yield sys.stdout
        sys.stdout.flush()  # a full disk is an error here, not at the end of Python
        return
    if is_folder(out):
        raise AttnlabError(
            f"--out {out} is a folder; expected the name of a file such as {out / 'labels.csv'}"
        )
    if any(absolute_name(out) == absolute_name(place(file)) for file in files):
        raise AttnlabError(f"--out {out} is one of the files with the texts: give another name")
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise AttnlabError(
            f"cannot write {out} ({error}): free some space or make it writable, or give another "
            "name (--out)"
        ) from error


def _write(target: TextIO, classifier: AttentionClassifier, texts: Texts, words: int) -> None:
    """A row per text; texts are labelled in batches."""
    # JSON can hold half of a surrogate pair, UTF-8 cannot: write its code instead.
    classes = [
        str(name).encode("utf-8", "backslashreplace").decode() for name in classifier.classes_
    ]
    head: list[str] = ["file", "row", "label", *(f"p({name})" for name in classes)]
    write_csv(target, [head + (["words", "weights"] if words else [])])
    for start in range(0, len(texts), _BATCH):
        some = list(texts.texts[start : start + _BATCH])
        shares = classifier.predict_proba(some)
        labels = [classes[i] for i in shares.argmax(axis=1)]
        attended = classifier.attention(some) if words else []
        rows = []
        for i, label in enumerate(labels):
            place = start + i
            row: list[Any] = [texts.names[texts.files[place]], int(texts.rows[place]), label]
            row += [f"{share:.6g}" for share in shares[i]]
            rows.append(row + (_attended(attended[i], words) if words else []))
        write_csv(target, rows)


def _attended(weights: list[tuple[str, float]], words: int) -> list[str]:
    """The most attended words and their weights, occurrences of one word together."""
    total: dict[str, float] = {}
    for word, weight in weights:
        total[word] = total.get(word, 0.0) + weight
    top = sorted(total.items(), key=lambda pair: -pair[1])[:words]
    return [" ".join(word for word, _ in top), " ".join(f"{weight:.3f}" for _, weight in top)]
