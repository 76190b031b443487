"""A user's labelled texts in a folder: does attention pay, what does it attend to, is what was
trained good?
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.studies import _text_answers as answers
from attnlab.studies._compare_words import WORK as VARIANTS
from attnlab.studies._exploration import (
    Exploration,
    checked_folder,
    corpus_folder,
    shared_corpus,
    store_exploration,
)
from attnlab.studies._study import arm_plan, split_arms
from attnlab.studies._text import WORK as TRAINING
from attnlab.studies._text_prepare import Prepared, TextSource, prepare_texts
from attnlab.studies._text_sample import LENGTHS
from attnlab.studies._text_shown import sampled
from attnlab.studies._text_stopped import compact_model, where_stopped
from attnlab.studies._text_students import TEXT_STUDENTS
from attnlab.studies._text_students import WORK as STUDENTS
from attnlab.studies._text_try import TRIED, Tried, try_arms, what_to_try
from attnlab.sweeps import AbstractExecutor, Event, Results, executor_for, provenance, run_plan

if TYPE_CHECKING:
    from attnlab.data import Tokenizer
    from attnlab.models import WordAttention

_SIZES = 7  # numbers of labels of a learning curve: the fewest from which one can be extrapolated
_FEWEST = 16
_MOST = 16_384  # labels of the largest size
_FULL_BATCH = 500_000  # distinct words of all sentences up to which every step sees all of them
_BATCH = 1024
Stage = Callable[[str], None]


@dataclass(frozen=True)
class TextStudy:
    """What to ask of some texts.

    - ``target``: the accuracy at which labels are compared; ``None`` takes what both kinds of
      pooling reach with all labels, less one point, rounded down to a whole percent.
    - ``sizes``: numbers of labels of the learning curves; seven by default, up to all training
      texts (16 384 at most). ``seeds``: of each curve; ``fit_steps``: Adam steps of each fit.
    - ``training_seeds``, ``training_steps``, ``embedding_dim``, ``head``: plain descent in the theory's
      setting (docs/theory.md#a7), whose best validation step is the model that is looked at and stored.
    - ``variants``: of attention, compared with all labels for "What to try" (``Variant.of`` says
      how they are named), the first being what others are compared with; none leaves that out.
    """

    source: TextSource
    target: float | None = None
    sizes: tuple[int, ...] = ()
    seeds: int = 8
    fit_steps: int = 600
    training_seeds: int = 4
    training_steps: int = 12_000
    embedding_dim: int = 200
    head: str = "fixed"
    variants: tuple[str, ...] = TRIED

    def __post_init__(self):
        if self.target is not None and not 0 < self.target < 1:
            raise AttnlabError(
                f"target={self.target}: expected an accuracy between 0 and 1, such as 0.8"
            )
        for name in ("seeds", "fit_steps", "training_seeds", "training_steps", "embedding_dim"):
            if getattr(self, name) < 1:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least 1")


def study_texts(
    study: TextStudy,
    folder: str | Path,
    *,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    on_stage: Stage | None = None,
    command: str = "",
    keep: bool = False,
) -> Exploration:
    """Study texts; writes ``study.json``, the data, the corpora and the trained model (``model/``)
    into the folder.

    Interrupted and called again, it goes on where it was; ``keep`` as in ``run_plan``. The data are
    as ``attnlab.report.study_page`` takes them.
    """
    out, begun = checked_folder(folder, "study"), time.monotonic()
    told: Stage = on_stage or (lambda _: None)
    told("reading the texts")
    prepared = prepare_texts(
        study.source, folder=corpus_folder(out), on_rows=lambda n: told(f"reading: {n:,} texts")
    )
    place = shared_corpus(prepared.save(corpus_folder(out)), out)
    sizes = study.sizes or default_sizes(len(prepared.train))
    with ExitStack() as stack:
        executor = stack.enter_context(executor_for(processes, executor))
        run = _Runner(out, prepared.hash, executor, progress, on_event, keep)
        found: dict[str, Results] = {}
        for stage, work, name, arms, seeds in _sweeps(study, place, prepared, sizes, found):
            told(stage)
            found[name] = run(work, name, arms, seeds)
            if found[name].interrupted:
                return Exploration(out, {}, interrupted=True, kind="study")
        executor.rest()  # what follows needs the memory that waiting processes hold
    told("looking at where training stopped")
    data = _curves(found["students"]) | {"lengths": _lengths(prepared)}
    trained = split_arms(found["training"].dataset())["training"]
    data |= _dynamics(trained, prepared, study.source.words())
    models = _models(trained, prepared)
    stopped = where_stopped(
        models,
        [float(q) for q in trained.query_norm],
        prepared.train,
        prepared.test,
        trained.seed.values.tolist(),
    )
    data |= stopped.data
    told("storing the model")
    _store_model(out, models[0], prepared, study.source)
    tried = _tried(study, found.get("variants"))
    about = _about(study, prepared, data, stopped.absent, sizes, command, tried) | _cost(begun)
    return store_exploration(out, "study", data, about, list(found.values()))


def default_sizes(available: int) -> tuple[int, ...]:
    """Seven numbers of labels, evenly spaced in the logarithm, up to all there are (16 384 at
    most).

    >>> default_sizes(6920)
    (108, 216, 432, 864, 1729, 3459, 6920)
    """
    most = min(available, _MOST)
    least = max(most // 64, min(_FEWEST, most))
    return tuple(dict.fromkeys(round(float(n)) for n in np.geomspace(least, most, _SIZES)))


@dataclass(frozen=True)
class _Runner:
    """Runs the arms of a work function in the study's folder."""

    out: Path
    hash: str
    executor: AbstractExecutor
    progress: bool | None
    on_event: Callable[[Event], None] | None
    keep: bool

    def __call__(
        self, work: str, name: str, arms: dict[str, dict[str, Any]], seeds: int
    ) -> Results:
        results = run_plan(
            arm_plan(work, name, arms, seeds),
            self.out / "runs" / f"{name}-{self.hash}",
            executor=self.executor,
            progress=self.progress,
            on_event=self.on_event,
            keep=self.keep,
        )
        if not results.interrupted and results.finished == 0:
            raise AttnlabError(
                f"all {results.failed} runs of {name} failed: {results.failures[0].cause}"
            )
        return results


def _sweeps(
    study: TextStudy,
    place: Path,
    prepared: Prepared,
    sizes: tuple[int, ...],
    found: dict[str, Results],
) -> Iterator[tuple[str, str, str, dict[str, dict[str, Any]], int]]:
    """What is run: a stage in words, the work function, a name, settings by arm, and seeds of each.

    ``found`` holds the results so far: variants of attention are tuned near what suited attention.
    """
    yield (
        "learning curves",
        STUDENTS,
        "students",
        _students(study, place, prepared.hash, sizes),
        study.seeds,
    )
    if study.variants:
        chosen = split_arms(found["students"].dataset())["attention-pooling"].step_size.isel(
            size=-1
        )
        arms = try_arms(
            study.variants,
            place,
            prepared.hash,
            available=len(prepared.train),
            steps=study.fit_steps,
            step_size=float(chosen.median()),
        )
        yield "variants of attention", VARIANTS, "variants", arms, study.seeds
    training = {"training": _training(study, place, prepared)}
    yield (
        "training along the theory's setting",
        TRAINING,
        "training",
        training,
        study.training_seeds,
    )


def _tried(study: TextStudy, results: Results | None) -> Tried | None:
    """What the comparison of variants says; nothing where none was asked for."""
    if results is None:
        return None
    arms = split_arms(results.dataset())
    return what_to_try(
        {name: arms[name] for name in study.variants if name in arms}, steps=study.fit_steps
    )


def _students(
    study: TextStudy, place: Path, content: str, sizes: tuple[int, ...]
) -> dict[str, dict[str, Any]]:
    common = {
        "folder": str(place),
        "data": content,
        "sizes": tuple(sizes),
        "steps": study.fit_steps,
    }
    return {student: {"student": student, **common} for student in TEXT_STUDENTS}


def _training(study: TextStudy, place: Path, prepared: Prepared) -> dict[str, Any]:
    large = len(prepared.train.words) > _FULL_BATCH
    return {
        "source": str(place),
        "data": prepared.hash,
        "head": study.head,
        "embedding_dim": study.embedding_dim,
        "steps": study.training_steps,
        "every": max(1, study.training_steps // 48),
        "keep": True,
        "batch_size": min(_BATCH, len(prepared.train)) if large else None,
    }


def _curves(students: Results) -> dict[str, xr.Dataset]:
    """Accuracy (student, seed, size) of seeds that every student has, and what was chosen."""
    arms = split_arms(students.dataset())
    missing = [name for name in TEXT_STUDENTS if name not in arms]
    if missing:
        raise AttnlabError(
            f"no run of {missing[0]} finished; `attnlab runs` groups the failures by cause"
        )
    shared = sorted(set.intersection(*(set(arm.seed.values.tolist()) for arm in arms.values())))
    names = ("accuracy", "step_size", "weight_decay", "strength", "settling")
    parts = [
        xr.Dataset({name: arms[student][name] for name in names if name in arms[student]}).sel(
            seed=shared
        )
        for student in TEXT_STUDENTS
    ]
    table = xr.concat(
        parts, xr.DataArray(list(TEXT_STUDENTS), dims="student", name="student"), join="outer"
    )
    return {"curves": table}


def _lengths(prepared: Prepared) -> xr.Dataset:
    lengths = prepared.train.lengths
    chosen = np.random.default_rng(0).permutation(len(lengths))[:LENGTHS]
    return xr.Dataset({"length": ("sentence", lengths[np.sort(chosen)])}).assign_attrs(
        of=len(lengths)
    )


def _dynamics(
    trained: xr.Dataset, prepared: Prepared, tokenizer: Tokenizer
) -> dict[str, xr.Dataset]:
    """What the page shows of training: curves of every seed, words and sentences of the first."""
    first = trained.isel(seed=0, drop=True)
    names = [name for name in trained.data_vars if trained[name].dims == ("seed", "step")]
    best = int(first.best_step)
    found = {"training": trained[names].assign_attrs(best_step=best)}
    words = first.sel(moment="best", drop=True)
    found["words"] = xr.Dataset(
        {
            name: ("rank", words[f"top_{name}"].values)
            for name in (
                "word",
                "score",
                "norm",
                "purity",
                "excess",
                "frequency",
                "leaning",
                "onset",
            )
        }
    )
    found["sen"] = xr.Dataset(
        {
            "word": ("rank", words.top_word.values),
            **{
                name: ("rank", first[name].values)
                for name in ("scaled_norm", "predicted_scaled_norm", "sen_error")
            },
        }
    ).isel(rank=slice(100))
    found |= shown_pairs(first)
    return found | _deletion(first) | {"sentences": _sentences(first, prepared, tokenizer)}


def shown_pairs(first: xr.Dataset) -> dict[str, xr.Dataset]:
    """Words that compete, in the first seed's texts; nothing where there are none.

    Seeds may have found different numbers of pairs: what this one lacks was filled up with nothing,
    and is left out.
    """
    pairs = {
        str(key)[len("pair_") :]: first[key]
        for key in first.data_vars
        if str(key).startswith("pair_")
    }
    if not pairs:
        return {}
    table = xr.Dataset(pairs).rename(side="which", competitor="word")
    return {
        "pairs": table.isel(pair=np.flatnonzero(np.isfinite(table.weight).all(("which", "step"))))
    }


def _sentences(first: xr.Dataset, prepared: Prepared, tokenizer: Tokenizer) -> xr.Dataset:
    """Some test texts, word by word in their own order, with attention and answer along training."""
    test, classes = prepared.test, np.asarray(prepared.test.classes, dtype=np.str_)
    numbers = first.shown_number.values.astype(int)
    cut = [tokenizer(prepared.texts["test"][int(n)]) for n in numbers]
    longest = max(len(words) for words in cut)
    shape = (len(numbers), longest)
    words, known = np.full(shape, "", dtype=object), np.zeros(shape, bool)
    weights = np.zeros((*shape, first.sizes["step"]))
    for row, (n, tokens) in enumerate(zip(numbers, cut, strict=True)):
        span = slice(test.offsets[n], test.offsets[n + 1])
        score = first.shown_score.values[:, row, : span.stop - span.start]
        each = np.exp(score - score.max(axis=1, keepdims=True))
        each = each / (each * test.counts[span]).sum(axis=1, keepdims=True)
        places = {test.vocabulary[w]: i for i, w in enumerate(test.words[span])}
        for place, token in enumerate(tokens):
            words[row, place] = token
            if token in places:
                known[row, place] = True
                weights[row, place] = each[:, places[token]]
    logits = first.shown_logits.transpose("sentence", "step", "class").values
    shares = np.exp(logits - logits.max(axis=2, keepdims=True))
    shares = shares / shares.sum(axis=2, keepdims=True)
    truth = test.labels[numbers]
    return xr.Dataset(
        {
            "weight": (("sentence", "place", "step"), weights),
            "word": (("sentence", "place"), words.astype(np.str_)),
            "known": (("sentence", "place"), known),
            "label": ("sentence", classes[truth]),
            "predicted": (("sentence", "step"), classes[logits.argmax(axis=2)]),
            "probability": (("sentence", "step"), shares[np.arange(len(truth)), :, truth]),
        },
        {"step": first.step.values},
    )


def _deletion(first: xr.Dataset) -> dict[str, xr.Dataset]:
    """Shares of answers that turn without the top-attended and without another word, with their
    intervals.
    """
    if "deletion_flips" not in first:
        return {}
    names = {"top": "top", "other": "random"}
    ends = {"": "deletion_flips", "_low": "deletion_flips_low", "_high": "deletion_flips_high"}
    shares = {
        f"{name}{end}": float(first[variable].sel(removed=removed))
        for name, removed in names.items()
        for end, variable in ends.items()
    }
    counts = {name: int(first[f"deletion_{name}"]) for name in ("sentences", "left_out")}
    return {"deletion": xr.Dataset({**shares, **counts})}


def _models(trained: xr.Dataset, prepared: Prepared) -> list[WordAttention]:
    """The model of each seed at its best validation step."""
    classes = len(prepared.train.classes)
    return [
        compact_model(one.kept_score.values, one.kept_table.values, classes)
        for one in (trained.isel(seed=k) for k in range(trained.sizes["seed"]))
    ]


def _store_model(out: Path, model: WordAttention, prepared: Prepared, source: TextSource) -> None:
    from attnlab.estimators import AttentionClassifier

    settings: dict[str, Any] = {
        "head": "linear",
        "embedding_dim": model.embeddings.shape[1],
        "optimizer": "descent",
    }
    settings |= {
        "lower": source.lower,
        "punctuation": source.punctuation,
        "tokenizer": source.tokenizer,
    }
    settings |= {"min_count": source.min_count, "max_words": source.max_words, "dtype": "float64"}
    classifier = AttentionClassifier.from_model(
        model,
        prepared.vocabulary,
        prepared.train.classes,
        prior=np.bincount(prepared.train.labels),
        **settings,
    )
    classifier.save(out / "model", overwrite=True)


def _about(
    study: TextStudy,
    prepared: Prepared,
    data: dict[str, xr.Dataset],
    absent: dict[str, str],
    sizes: tuple[int, ...],
    command: str,
    tried: Tried | None,
) -> dict[str, Any]:
    pays = answers.pays(data["curves"], study.target, prepared.reading)
    data["needed"] = pays.needed
    data["curves"] = data["curves"].assign_attrs(target=pays.target)
    cards = [
        answers.data_card(prepared.reading),
        *pays.cards,
        *answers.words_cards(data),
        *answers.good_cards(data),
    ]
    verdicts = {"pays": pays.record, **answers.records(data)}
    if tried is not None:
        data["variants"] = tried.ranking
        cards.append(tried.card)
        verdicts["try"] = tried.record
    settings = asdict(replace(study, sizes=tuple(sizes), target=pays.target))
    return {
        "title": "attnlab: a study of your texts",
        "question": "Does attention pay on these texts, what does it attend to, and is what was "
        "trained good?",
        "summary": [card["text"] for card in cards],
        "cards": cards,
        "verdicts": verdicts,
        "advice": [] if tried is None else tried.advice,
        "tuned": pays.tuned,
        "extrapolation": pays.extrapolation,
        "reading": prepared.reading
        | {"sampled": sampled(prepared, labels=max(sizes), variants=bool(study.variants))},
        "absent": absent,
        "settings": {**settings.pop("source"), **settings},
        "content": prepared.hash,
        "command": command,
    }


def _cost(begun: float) -> dict[str, Any]:
    """Time, and the largest memory of this process and of any one worker."""
    factor = 1 if sys.platform == "darwin" else 1024
    peaks = [
        resource.getrusage(who).ru_maxrss * factor
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    ]
    memory = f"{peaks[0] / 2**30:.2f} GiB here, {peaks[1] / 2**30:.2f} GiB in the largest worker"
    return provenance(time.monotonic() - begun) | {"peak_memory": memory}
