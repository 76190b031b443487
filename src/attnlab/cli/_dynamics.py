"""``attnlab dynamics``."""

from __future__ import annotations

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab._errors import AttnlabError
from attnlab._places import place
from attnlab.cli._reproduce import OUT, Quiet
from attnlab.cli._where import HERE, Where, anywhere

if TYPE_CHECKING:
    from attnlab.studies import TopicSettings


class HeadName(StrEnum):
    """The heads that have a name."""

    fixed = "fixed"
    linear = "linear"
    two_layer = "two_layer"
    deep = "deep"


class OptimizerName(StrEnum):
    """The optimisers that have a name."""

    descent = "descent"
    adam = "adam"


_TASK, _MODEL, _TRAINING, _OUTPUT = "Task", "Model", "Training", "Output"


def _option(help: str, panel: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, **more)


@anywhere
def dynamics(
    topics: Annotated[int, _option("Topics, which are the classes.", _TASK)] = 4,
    topic_words: Annotated[int, _option("Topic words of each topic.", _TASK)] = 2,
    topic_probabilities: Annotated[
        str, _option("Label frequencies, as 0.5,0.3,0.2; equal by default.", _TASK)
    ] = "",
    dictionary: Annotated[int, _option("Words without a topic.", _TASK)] = 5000,
    noise_words: Annotated[int, _option("Words beside the topic word in a sentence.", _TASK)] = 20,
    topic_words_in_sentence: Annotated[int, _option("Topic words in a sentence.", _TASK)] = 1,
    topic_noise: Annotated[
        float, _option("Chance that a noise word is a topic word.", _TASK)
    ] = 0.0,
    label_noise: Annotated[float, _option("Chance that a label is drawn anew.", _TASK)] = 0.0,
    sentences: Annotated[int, _option("Training sentences.", _TASK)] = 4000,
    head: Annotated[
        HeadName, _option("What turns a context into logits.", _MODEL)
    ] = HeadName.fixed,
    trained: Annotated[
        str,
        _option(
            "Parts that move, as keys,embeddings,head,query; the head's own choice by default.",
            _MODEL,
        ),
    ] = "",
    embedding_std: Annotated[
        float, _option("Standard deviation of initial embeddings.", _MODEL)
    ] = 1e-6,
    query_norm: Annotated[float | None, _option("|q|; drawn by default.", _MODEL)] = None,
    head_scale: Annotated[float, _option("Factor on the head's initial weights.", _MODEL)] = 1.0,
    reach: Annotated[
        int | None, _option("Attend to a convolution over so many neighbours to each side.", _MODEL)
    ] = None,
    optimizer: Annotated[
        OptimizerName, _option("How it is trained.", _TRAINING)
    ] = OptimizerName.descent,
    step_size: Annotated[float, _option("Step size.", _TRAINING)] = 0.1,
    momentum: Annotated[float, _option("Momentum.", _TRAINING)] = 0.0,
    weight_decay: Annotated[float, _option("Weight decay.", _TRAINING)] = 0.0,
    batch_size: Annotated[
        int | None, _option("Sentences a step; all by default.", _TRAINING)
    ] = None,
    steps: Annotated[int, _option("Steps.", _TRAINING)] = 5000,
    seeds: Annotated[
        int, _option("Runs, each with data and start of its own.", _TRAINING, min=1)
    ] = 4,
    predict_only: Annotated[
        bool, _option("Only predict: no data, no training.", _OUTPUT, "--predict-only")
    ] = False,
    until: Annotated[
        float, _option("How far the prediction goes, in time = steps × step size.", _OUTPUT)
    ] = 1e12,
    out: Annotated[str, _option(OUT, _OUTPUT, "--out", metavar="PATH|URL")] = "dynamics",
    where: Where = HERE,
    quiet: Quiet = False,
    json: Annotated[
        bool, _option("Print dynamics.json's answers instead of a text.", _OUTPUT, "--json")
    ] = False,
) -> None:
    """Train one configuration of your own and draw theory over it.

    The page shows scores, norms and attention against step, the score–norm relation, what the
    reduced model predicted before training, and the phases of each word. Interrupted and started
    again, it goes on where it was.

    Examples:

        attnlab dynamics --topics 4 --noise-words 20 --head fixed

        attnlab dynamics --head linear --embedding-std 0.3 --seeds 8 --out mine

        attnlab dynamics --noise-words 100 --predict-only
    """
    from attnlab.studies import TopicSettings

    settings = TopicSettings(
        topics=topics,
        topic_words=topic_words,
        topic_probabilities=_numbers(topic_probabilities),
        dictionary=dictionary,
        noise_words=noise_words,
        topic_words_in_sentence=topic_words_in_sentence,
        topic_noise=topic_noise,
        label_noise=label_noise,
        sentences=sentences,
        test_sentences=max(1, sentences // 4),
        head=head.value,
        trained=tuple(p.strip() for p in trained.split(",")) if trained else None,
        embedding_std=embedding_std,
        query_norm=query_norm,
        head_scale=head_scale,
        reach=reach,
        optimizer=optimizer.value,
        step_size=step_size,
        momentum=momentum,
        weight_decay=weight_decay,
        batch_size=batch_size,
        steps=steps,
        rows=200,
    )
    command = shlex.join(["attnlab", *sys.argv[1:]])
    _run(settings, seeds, until, place(out), where, quiet, json, predict_only, command)


def _numbers(text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(",")) if text else None
    except ValueError:
        raise AttnlabError(
            f"--topic-probabilities {text!r}: expected numbers like 0.5,0.3,0.2"
        ) from None


def _run(
    settings: TopicSettings,
    seeds: int,
    until: float,
    out: Path,
    where: Where,
    quiet: bool,
    json: bool,
    predict_only: bool,
    command: str,
) -> None:
    from attnlab.cli._show import print_json, print_stale
    from attnlab.report import write_dynamics
    from attnlab.studies import explore, foretell

    if predict_only:
        done = foretell(settings, out, seeds=seeds, until=until, command=command)
    else:
        with where.executor(quiet=quiet or json) as executor:
            progress = False if quiet else None
            done = explore(
                settings,
                out,
                seeds=seeds,
                until=until,
                executor=executor,
                progress=progress,
                command=command,
                keep=where.keep,
            )
    print_stale(done.about, quiet=quiet)
    if done.interrupted:
        typer.echo(
            "interrupted; what is finished is stored, the same command goes on from there", err=True
        )
        raise typer.Exit(130)
    page = write_dynamics(out, done.data, done.about)
    if json:
        print_json({"about": done.about})
    elif not quiet:
        for sentence in done.about["summary"]:
            typer.echo(sentence)
        typer.echo(f"page: {page}")
    if not done.ok:
        typer.echo(
            f"attnlab: too many runs failed; `attnlab runs {out}` groups them by cause", err=True
        )
        raise typer.Exit(1)
