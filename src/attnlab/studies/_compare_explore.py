"""Many variants of attention on one task, in a folder: which is best, which are equal, and what to
try.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.data import Prepared, TextSource, prepare_in
from attnlab.runs import AbstractExecutor, Event, Results, executor_for, provenance, run_plan
from attnlab.studies._compare_answers import (
    LONGER,
    advise,
    compare_longer,
    hopeless,
    measure_comparison,
    shown,
)
from attnlab.studies._compare_teachers import WORK as TEACHERS
from attnlab.studies._compare_words import WORK as WORDS
from attnlab.studies._exploration import (
    Exploration,
    card,
    checked_folder,
    store_exploration,
)
from attnlab.studies._study import arm_plan, split_arms

TASKS = ("hard", "dense", "relevant:R", "topic")
_VARIANTS = (
    "softmax",
    "softmax:0.25",
    "softmax:4",
    "sparsemax",
    "entmax15",
    "top1",
    "top2",
    "uniform",
)
_TOPIC_SIZES = (8, 16, 32, 64, 128, 256)
_TEXT_SIZES, _MOST = 3, 8192
_ALL_WORDS = 16
_FIRST = 8  # seeds after which a hopeless variant may be dropped
Stage = Callable[[str], None]


@dataclass(frozen=True)
class Comparison:
    """What to compare on what.

    - ``task``: ``"hard"`` (a teacher that attends to one of 16 words), ``"dense"`` (to all),
      ``"relevant:R"`` (to R), or ``"topic"``, sentences of the topic task; or ``source``, a user's
      texts.
    - ``variants``: as ``Variant.of`` takes them; ratios are to ``against``, the first one unless
      told otherwise.
    - ``samples``: numbers of training samples; ``level``: the error (accuracy) at which needed
      samples are compared. ``noise_std``: of a teacher. ``steps``, ``step_sizes``, ``weight_decays``:
      of each fit; all have defaults by task.
    - ``drop``: after 8 seeds, do not go on with a variant whose 99 % interval at the largest size
      proves it worse than the best.
    """

    task: str = "hard"
    source: TextSource | None = None
    variants: tuple[str, ...] = _VARIANTS
    samples: tuple[int, ...] = ()
    seeds: int = 16
    against: str | None = None
    level: float | None = None
    noise_std: float | None = None
    steps: int | None = None
    step_sizes: tuple[float, ...] = ()
    weight_decays: tuple[float, ...] = ()
    drop: bool = False

    def __post_init__(self):
        from attnlab.studies._compare_variants import Variant

        if not self.variants or len(set(self.variants)) < len(self.variants):
            raise AttnlabError(f"variants={list(self.variants)}: expected at least one, each once")
        for name in self.variants:
            Variant.of(name)
        if self.reference not in self.variants:
            raise AttnlabError(
                f"against={self.against!r} is none of the variants {', '.join(self.variants)}"
            )
        if self.seeds < 1:
            raise AttnlabError(
                f"seeds={self.seeds}: expected at least 1 (and at least 8 for intervals)"
            )
        if self.noise_std is not None and (self.source is not None or self.task == "topic"):
            raise AttnlabError(
                f"noise_std={self.noise_std}: has no meaning for sentences; only teachers have noise"
            )
        self.relevant()

    @property
    def reference(self) -> str:
        """The variant that others are compared with."""
        return self.variants[0] if self.against is None else self.against

    @property
    def score(self) -> str:
        """What is compared."""
        return "error" if self.relevant() else "accuracy"

    def relevant(self) -> int:
        """How many words a teacher attends to; 0 for sentences."""
        if self.source is not None or self.task == "topic":
            return 0
        fixed = {"hard": 1, "dense": _ALL_WORDS}
        if self.task in fixed:
            return fixed[self.task]
        name, _, count = self.task.partition(":")
        if name == "relevant" and count.isdigit() and 1 <= int(count) <= _ALL_WORDS:
            return int(count)
        raise AttnlabError(
            f"task={self.task!r}: expected one of {', '.join(TASKS)} with R from 1 to "
            f"{_ALL_WORDS}, or your own texts"
        )

    def words(self) -> str:
        """The task in words, as a sentence begins."""
        if self.source is not None:
            return "On these texts"
        if self.task == "topic":
            return "On the topic task"
        r = self.relevant()
        told = {1: "one word matters", _ALL_WORDS: "all words matter"}.get(
            r, f"{r} of {_ALL_WORDS} words matter"
        )
        return f"Where {told},"


def explore_compare(
    asked: Comparison,
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
    """Compare variants; writes ``compare.json`` and the data. Interrupted and called again, it goes
    on where it was.

    The data are those of ``measure_comparison``, ``"course"``, the training at the largest size
    (student, seed, step), ``"longer"``, what four times the steps change for the best variant and
    the reference, and with ``drop`` what ``hopeless`` found. ``keep`` as in ``run_plan``.
    """
    out, begun = checked_folder(folder, "compare"), time.monotonic()
    told: Stage = on_stage or (lambda _: None)
    prepared, folder = None, ""
    if asked.source is not None:
        told("reading the texts")
        prepared, folder = prepare_in(asked.source, str(out))
    work, base = _settings(asked, prepared, folder)
    with ExitStack() as stack:
        executor = stack.enter_context(executor_for(processes, executor))
        run = _Runner(out, work, base, executor, progress, on_event, keep)
        told("learning curves")
        counts = dict.fromkeys(
            asked.variants, min(asked.seeds, _FIRST) if asked.drop else asked.seeds
        )
        results, dropped = run(counts), None
        if asked.drop and not results.interrupted and asked.seeds > _FIRST:
            dropped = hopeless(split_arms(results.dataset()), score=asked.score)
            going_on = [str(name) for name in dropped.student.values[~dropped.dropped.values]]
            results = run(counts | dict.fromkeys([*going_on, asked.reference], asked.seeds))
        if results.interrupted:
            return Exploration(out, {}, interrupted=True, kind="compare")
        arms, data = _measured(asked, results, out)
        told(f"{LONGER} times the steps, for what is speed")
        ahead = dict.fromkeys(
            [asked.reference, str(data["ranking"].student.values[0])], asked.seeds
        )
        size = int(data["ranking"].attrs["size"])
        steps = int(_defaults(asked, base)["steps"])
        further = run(ahead, {"sizes": (size,), "steps": LONGER * steps, "course": False})
        if further.interrupted:
            return Exploration(out, {}, interrupted=True, kind="compare")
    longer = split_arms(further.dataset())
    if set(longer) == set(ahead):
        data["longer"] = compare_longer(
            arms, longer, score=asked.score, steps=steps, against=asked.reference
        )
    if dropped is not None:
        data["dropping"] = dropped.assign(dropped=dropped.dropped.astype(float))
    about = _about(asked, base, data, prepared, time.monotonic() - begun, command)
    return store_exploration(out, "compare", data, about, [results, further])


def _measured(
    asked: Comparison, results: Results, out: Path
) -> tuple[dict[str, xr.Dataset], dict[str, xr.Dataset]]:
    """What the variants' runs hold, and all answers from it."""
    arms = split_arms(results.dataset())
    missing = [name for name in asked.variants if name not in arms]
    if missing:
        raise AttnlabError(
            f"no run of {missing[0]} finished; `attnlab runs {out}` groups the failures by cause"
        )
    curves = {name: arms[name].drop_vars(_of_course(arms[name])) for name in asked.variants}
    data = measure_comparison(curves, score=asked.score, against=asked.reference, level=asked.level)
    return curves, data | _course({name: arms[name] for name in asked.variants})


@dataclass(frozen=True)
class _Runner:
    """Runs arms of a comparison, one for each variant, in its folder."""

    out: Path
    work: str
    base: dict[str, Any]
    executor: AbstractExecutor
    progress: bool | None
    on_event: Callable[[Event], None] | None
    keep: bool

    def __call__(self, counts: dict[str, int], changed: dict[str, Any] | None = None) -> Results:
        """So many seeds of each variant, with the settings that all share, some of them changed."""
        base = self.base | (changed or {})
        name = hashlib.sha256(json.dumps([self.work, base], sort_keys=True).encode()).hexdigest()[
            :8
        ]
        arms = {variant: base | {"variant": variant} for variant in counts}
        results = run_plan(
            arm_plan(self.work, "compare", arms, counts),
            self.out / "runs" / name,
            executor=self.executor,
            progress=self.progress,
            on_event=self.on_event,
            keep=self.keep,
        )
        if not results.interrupted and results.finished == 0:
            raise AttnlabError(f"all {results.failed} runs failed: {results.failures[0].cause}")
        return results


def _settings(
    asked: Comparison, prepared: Prepared | None, folder: str
) -> tuple[str, dict[str, Any]]:
    """The work function, and the settings that all variants share."""
    given = {
        "steps": asked.steps,
        "step_sizes": asked.step_sizes,
        "weight_decays": asked.weight_decays,
        "sizes": asked.samples,
        "noise_std": asked.noise_std,
    }
    changed = {name: value for name, value in given.items() if value not in (None, ())} | {
        "course": True
    }
    if asked.relevant():
        return TEACHERS, {"relevant": asked.relevant(), **changed}
    if prepared is None:
        return WORDS, {"sizes": _TOPIC_SIZES, **changed}
    grid = {
        "step_sizes": (0.0028, 0.0046, 0.0077, 0.013),
        "weight_decays": (0.0,),
        "sizes": text_sizes(len(prepared.train)),
    }
    return WORDS, {"folder": folder, "data": prepared.hash, **grid, **changed}


def text_sizes(available: int) -> tuple[int, ...]:
    """Three numbers of labels by doubling, up to all there are (8192 at most).

    >>> text_sizes(6920)
    (1730, 3460, 6920)
    """
    most = min(available, _MOST)
    return tuple(dict.fromkeys(max(1, most // 2**k) for k in reversed(range(_TEXT_SIZES))))


def _of_course(arm: xr.Dataset) -> list[str]:
    return [str(name) for name in arm.data_vars if str(name).startswith("course_")]


def _course(arms: dict[str, xr.Dataset]) -> dict[str, xr.Dataset]:
    """The training at the largest size (student, seed, step)."""
    parts = [
        arm[_of_course(arm)].rename({n: n.removeprefix("course_") for n in _of_course(arm)})
        for arm in arms.values()
    ]
    named = xr.DataArray(list(arms), dims="student", name="student")
    return {"course": xr.concat(parts, named, join="outer").drop_vars("size", errors="ignore")}


def _defaults(asked: Comparison, base: dict[str, Any]) -> dict[str, Any]:
    """All settings that the variants share."""
    from attnlab.studies._compare_teachers import CompareSettings
    from attnlab.studies._compare_words import WordSettings

    return asdict(CompareSettings() if asked.relevant() else WordSettings()) | base


def _about(
    asked: Comparison,
    base: dict[str, Any],
    data: dict[str, xr.Dataset],
    prepared: Prepared | None,
    seconds: float,
    command: str,
) -> dict[str, Any]:
    settings = _defaults(asked, base)
    hidden = {"arm", "seed", "variant", "folder", "data", "course", "drawn", "dtype"}
    hidden |= (
        {"topics", "topic_words", "dictionary", "noise_words"} if prepared is not None else set()
    )
    advice = advise(data, what=asked.words())
    task = "own texts" if prepared is not None else asked.task
    return {
        "title": "attnlab: which attention for which data",
        "question": f"Which variant of attention is best on this task ({task}), and which cannot "
        "be told apart?",
        "summary": advice,
        "advice": " ".join(advice),
        "cards": _cards(asked, data),
        "settings": {
            "task": task,
            "variants": list(asked.variants),
            "against": asked.reference,
            "seeds": asked.seeds,
            **({} if asked.source is None else asdict(asked.source)),
            **{
                k: list(v) if isinstance(v, tuple) else v
                for k, v in settings.items()
                if k not in hidden
            },
        },
        **({} if prepared is None else {"reading": prepared.reading, "content": prepared.hash}),
        "command": command,
        **provenance(seconds),
    }


def _cards(asked: Comparison, data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    table, ranking = data["compare"], data["ranking"]
    names = [str(name) for name in ranking.student.values]
    equals = [
        name
        for name in names
        if ranking.p.sel(student=names[0], other=name) >= ranking.attrs["level"]
    ]
    best = ranking.sel(student=names[0])
    low, high = float(best.centre_low), float(best.centre_high)
    ends = f" [{shown(low)}, {shown(high)}]" if np.isfinite(low) else ""
    text = f"Best: {', '.join(equals)}." + (
        " These cannot be told apart." if len(equals) > 1 else ""
    )
    cards = [
        card(
            "ranking",
            text,
            f"{shown(float(best.centre))}{ends}",
            f"median {asked.score} of {names[0]}",
        )
    ]
    cards[0]["link"] = "ranking"
    for name in names:
        if name == asked.reference:
            continue
        one = table.sel(student=name).isel(task=0)
        ratio = ranking.sel(student=name)
        value, low, high = (float(ratio[f"ratio{end}"]) for end in ("", "_low", "_high"))
        told = shown(value) + (f" [{shown(low)}, {shown(high)}]" if np.isfinite(low) else "")
        verdict = str(one.verdict.values) or None
        said = {
            "saves": "It needs fewer samples",
            "costs": "It needs more samples",
            "no advantage": "It saves no samples",
        }
        text = f"{said.get(str(verdict), 'Whether it saves samples is not known')}, compared with {asked.reference}."
        cards.append(
            card(name, text, told, f"error over that of {asked.reference}", verdict)
            | {"link": "needed"}
        )
    return cards
