"""Needed samples of any students on any teacher: by name and in a folder, or with models and data
of one's own.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import Question, choices, tabulate
from attnlab.studies._exploration import Exploration, card, checked_folder, store_exploration
from attnlab.studies._measure import axis
from attnlab.studies._samples import SIZES, WORK, SampleSettings, fit_curve
from attnlab.studies._study import arm_plan, split_arms
from attnlab.sweeps import AbstractExecutor, Event, provenance, run_plan

if TYPE_CHECKING:
    from attnlab.studies._students import Source, Student
    from attnlab.training import Recipe

_SEPARATOR = " at "
_ELSEWHERE = ("arm", "seed", "student", "features", "code")
_USED_BY = {
    "features": ("static-mask", "gate", "moving-block", "dense"),
    "relevant": ("static-mask", "gate", "moving-block"),
}
_TUNED = {"weight_decay": "weight decay", "step_size": "step size"}


def explore_samples(
    settings: SampleSettings,
    folder: str | Path,
    *,
    students: Sequence[str] = ("baseline", "known-attention"),
    features: Sequence[int] = (16,),
    level: float = 0.1,
    seeds: int = 8,
    against: str | None = None,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: str = "",
    keep: bool = False,
) -> Exploration:
    """How many samples some students need for an error of ``level``; writes ``samples.json`` and
    the data.

    ``settings`` say all but student, features and seed. Ratios are those of the student ``against``
    (the first one) to each other one. Interrupted and called again, it goes on where it was;
    ``keep`` as in ``run_plan``.
    """
    out = checked_folder(folder, "samples")
    question = _checked(settings, students, features, level, seeds, against)
    settings = replace(settings, code=_fingerprint(settings.teacher, *students))
    begun = time.monotonic()
    default = asdict(SampleSettings())
    changed = {
        k: v
        for k, v in asdict(settings).items()
        if v != default[k] and k not in ("arm", "seed", "student")
    }
    arms = {
        f"{student}{_SEPARATOR}{p}": {**changed, "student": student, "features": int(p)}
        for student in students
        for p in features
    }
    name = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:8]
    results = run_plan(
        arm_plan(WORK, "samples", arms, seeds),
        out / "runs" / name,
        processes=processes,
        executor=executor,
        progress=progress,
        on_event=on_event,
        keep=keep,
    )
    if results.interrupted:
        return Exploration(out, {}, interrupted=True, kind="samples")
    if results.finished == 0:
        raise AttnlabError(f"all {results.failed} runs failed: {results.failures[0].cause}")
    found = {}
    for label, data in split_arms(results.dataset()).items():
        student, _, p = label.rpartition(_SEPARATOR)
        found[student, int(p)] = data
    table = tabulate(found, question, further=True)
    about = _about(settings, table, question, time.monotonic() - begun, command)
    return store_exploration(out, "samples", {"samples": table}, about, [results])


def _checked(
    settings: SampleSettings,
    students: Sequence[str],
    features: Sequence[int],
    level: float,
    seeds: int,
    against: str | None,
) -> Question:
    """The question; whatever is wrong with teacher or students is told before any run starts."""
    if seeds < 1:
        raise AttnlabError(f"seeds={seeds}: expected at least 1 (and at least 8 for intervals)")
    if not level > 0:
        raise AttnlabError(f"level={level}: expected an error above 0")
    for what, given in (("students", students), ("features", features)):
        if not given or len(set(given)) < len(given):
            raise AttnlabError(f"{what}={list(given)}: expected at least one, each once")
    chosen = students[0] if against is None else against
    if chosen not in students:
        raise AttnlabError(f"against={chosen!r} is none of the students {', '.join(students)}")
    for p in features:
        for student in students:
            check_student(replace(settings, student=student, features=int(p)))
    return Question(level, against=chosen)


def check_student(settings: SampleSettings) -> None:
    """Draw teacher and student once and let the student answer once; an error in words if that does
    not work.
    """
    import jax

    key = jax.random.key(0)
    source = _called(f"teacher {settings.teacher!r}", settings.source, key)
    if not callable(getattr(source, "sample", None)):
        raise AttnlabError(
            f"teacher {settings.teacher!r} returned a {type(source).__name__}; expected an object "
            "with "
            "sample(n, key=…, noisy=…) → inputs, labels"
        )
    x, y = _called(
        f"sample of the teacher {settings.teacher!r}",
        lambda: source.sample(4, key=key, noisy=False),
    )
    student = _called(f"student {settings.student!r}", settings.learner, source, np.shape(x)[1:])
    model = _called(f"student {settings.student!r}", student.start, key)
    given = jax.tree.map(lambda leaf: leaf[0], student.given(source, jax.numpy.asarray(x)))
    answer = _called(f"the model of the student {settings.student!r}", student.answer, model, given)
    regression = np.asarray(y).dtype.kind == "f"
    if np.ndim(answer) > (0 if regression else 1):
        expected = (
            "(), one number, for regression"
            if regression
            else "() for two classes, (classes,) for more"
        )
        raise AttnlabError(
            f"the model of the student {settings.student!r} answers an input with the shape "
            f"{np.shape(answer)}; "
            f"expected {expected}"
        )


def _called(what: str, function: Callable[..., Any], *given: Any) -> Any:
    try:
        return function(*given)
    except AttnlabError:
        raise
    except Exception as error:
        raise AttnlabError(f"{what} raises {type(error).__name__}: {error}") from error


def _fingerprint(*names: str) -> str:
    """Of the files that names point into; empty if there is none."""
    files = [Path(name.rpartition(":")[0]) for name in names if ":" in name and ".py:" in name]
    if not files:
        return ""
    return hashlib.sha256(b"\0".join(file.expanduser().read_bytes() for file in files)).hexdigest()[
        :16
    ]


def measure_samples(
    source: Callable[[Any], Source],
    students: Mapping[str, str | Student | Callable[..., Any]],
    *,
    level: float = 0.1,
    sizes: Sequence[int] = SIZES,
    seeds: int = 8,
    against: str | None = None,
    recipe: Recipe | None = None,
    step_sizes: Sequence[float] = (0.02,),
    weight_decays: Sequence[float] = (0.0, 0.1),
    root_seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> xr.Dataset:
    """Needed samples of one's own models on one's own data, in this process; what ``tabulate``
    says, for one setting.

    - ``source(key)``: an object with ``sample(n, key=…, noisy=…) → (x, y)``, drawn anew for each
      seed;
    - ``students``: by label, a function of (key, shape) that returns any Equinox module, which is
      called with one input; or the name of a student of attnlab, if the source is one of its
      teachers.

    >>> import equinox as eqx, jax
    >>> from attnlab.models import make_teacher
    >>> from attnlab.training import Recipe
    >>> def linear(key, shape):
    ...     return eqx.nn.Linear(shape[0], "scalar", key=key)
    >>> found = measure_samples(
    ...     lambda key: make_teacher("static-mask", key=key, features=8, relevant=2),
    ...     {"baseline": "baseline", "linear": linear}, level=0.1, sizes=[16, 64, 256], seeds=2, recipe=Recipe(300),
    ... )
    >>> found.needed_kind.sel(student="linear").item(), sorted(found.error.dims)
    ('not reached', ['seed', 'size', 'student'])
    """
    import jax

    if not students or seeds < 1:
        raise AttnlabError(
            f"{len(students)} students, {seeds} seeds: expected at least one of each"
        )
    question = Question(level, against=next(iter(students)) if against is None else against)
    if question.against not in students:
        raise AttnlabError(f"against={against!r} is none of the students {', '.join(students)}")
    rows: dict[str, list[xr.Dataset]] = {label: [] for label in students}
    for seed in range(seeds):
        source_key, curve_key = jax.random.split(
            jax.random.fold_in(jax.random.key(root_seed), seed)
        )
        drawn = source(source_key)
        for label, student in students.items():
            rows[label].append(
                fit_curve(
                    drawn,
                    _resolved(student, drawn, source_key),
                    sizes,
                    key=curve_key,
                    recipe=recipe,
                    step_sizes=step_sizes,
                    weight_decays=weight_decays,
                )
            )
            if progress is not None:
                progress(f"seed {seed + 1} of {seeds}: {label}")
    arms = {
        (label, 0): xr.concat(curves, dim=axis("seed", range(seeds)))
        for label, curves in rows.items()
    }
    return tabulate(arms, question, dim="setting", further=True).isel(setting=0, drop=True)


def _resolved(student: Any, source: Any, key: Any) -> Student:
    from attnlab.studies._students import Student, make_student, own_student

    if isinstance(student, str):
        return make_student(student, source)
    if isinstance(student, Student):
        return student
    x, _ = source.sample(1, key=key)
    return own_student(student, np.shape(x)[1:])


def _about(
    settings: SampleSettings, table: xr.Dataset, question: Question, seconds: float, command: str
) -> dict[str, Any]:
    others = [str(student) for student in table.student.values if student != question.against]
    cards = [_ratio_card(table, student, question) for student in others]
    cards += ([_growth_card(table)] if "exponent" in table else []) + [_fit_card(table)]
    given = {k: v for k, v in asdict(settings).items() if v is not None and k not in _ELSEWHERE}
    given = {"features": [int(p) for p in table.features.values]} | given
    unused = {name for name, teachers in _USED_BY.items() if settings.teacher not in teachers}
    unused.add("noise_std" if settings.classes else "label_noise")
    what = "error" if not settings.classes else "share of wrong labels"
    return {
        "title": "attnlab: how many samples does attention save?",
        "question": "How many samples does each student need for "
        f"{'an' if what == 'error' else 'a'} {what} of "
        f"{question.level:g}?",
        "summary": [_sentence(table, student, question) for student in others],
        "cards": cards,
        "settings": {
            "students": [str(s) for s in table.student.values],
            "level": question.level,
            "against": question.against,
            "seeds": table.sizes["seed"],
            **{
                k: list(v) if isinstance(v, tuple) else v
                for k, v in given.items()
                if k not in unused
            },
        },
        "command": command,
        **provenance(seconds),
    }


def _sentence(table: xr.Dataset, student: str, question: Question) -> str:
    """The answer about one student at the largest p."""
    last = table.sel(student=student).isel(features=-1)
    where = f", p = {int(last.features)}" if table.sizes["features"] > 1 else ""
    return f"{student} against {question.against}{where}: {last.said.values or 'not run'}."


def _ratio_card(table: xr.Dataset, student: str, question: Question) -> dict[str, Any]:
    """A student against the other one: its verdict at the largest p, and whether it is another one
    elsewhere.
    """
    mine = table.sel(student=student)
    verdicts = [str(v) or "not run" for v in mine.verdict.values]
    last = mine.isel(features=-1)
    where = f" at p = {int(last.features)}" if len(verdicts) > 1 else ""
    text = str(last.said.values).split(" (ratio ")[0].removeprefix(f"{verdicts[-1]}: ")
    text = text.replace("the baseline", question.against).replace("the other model", student)
    text = f"{text[:1].upper()}{text[1:]}{where if verdicts[-1] in ('saves', 'costs') else ''}."
    others = [
        f"{v} at {int(p)}"
        for p, v in zip(mine.features.values, verdicts, strict=True)
        if v != verdicts[-1]
    ]
    note = f"{'; '.join(others)}" if others else "at every p" if where else ""
    value, kind = float(last.ratio), str(last.ratio_kind.values)
    ends = [float(last.ratio_low), float(last.ratio_high)]
    sign = {"at least": "≥ ", "at most": "≤ "}.get(kind, "")
    known = f"{sign}{value:.3g} [{ends[0]:.3g}, {'∞' if np.isinf(ends[1]) else f'{ends[1]:.3g}'}]"
    headline = "unknown" if np.isnan(value) else known
    verdict = str(last.verdict.values) or None
    found = card(
        f"{student} against {question.against}",
        text,
        headline,
        f"times fewer samples{where}",
        verdict,
    )
    return found | {"note": note, "link": "ratio"}


def _growth_card(table: xr.Dataset) -> dict[str, Any]:
    said = []
    for student in table.student.values:
        one = table.sel(student=student)
        sign = {"at least": "at least ", "at most": "at most "}.get(
            str(one.exponent_kind.values), ""
        )
        known = (
            f"{sign}p^{float(one.exponent):.2f}" if np.isfinite(float(one.exponent)) else "unknown"
        )
        said.append(f"{student} {known}")
    return card("growth with p", f"Needed samples grow like: {', '.join(said)}.") | {
        "link": "needed"
    }


def _fit_card(table: xr.Dataset) -> dict[str, Any]:
    """What was tuned, and how many fits were still falling."""
    offered = [f"{name} {_told(choices(table, key))}" for key, name in _TUNED.items()]
    text = f"Tuned alike for all students, chosen on validation data: {'; '.join(offered)}."
    late = f"{100 * float(table.unsettled.mean()):.0f} %"
    return card("fits", text, late, "of the fits were still falling at their last step") | {
        "link": "fits"
    }


def _told(counts: dict[float, int]) -> str:
    """The values that were chosen, with their counts if there are several."""
    return ", ".join(
        f"{value:.3g}" + (f" ({count}×)" if len(counts) > 1 else "")
        for value, count in counts.items()
    )
