"""Noisy digits in a folder: how many images each student needs, and what those that attend look at."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.complexity import Question, tabulate
from attnlab.data import load_digits
from attnlab.stats import interval_of
from attnlab.studies._digits import ATTENTION, STUDENTS, WORK, DigitsSettings
from attnlab.studies._exploration import Exploration, card, checked_folder, store_exploration
from attnlab.studies._explore_samples import _fit_card, _ratio_card
from attnlab.studies._study import arm_plan, split_arms
from attnlab.sweeps import AbstractExecutor, Event, provenance, run_plan

_TASK = "noisy digits"
_GRID = ("example", "row", "column")
PICTURES = ("image", "mask", "label", "predicted", "attention_map")
_ELSEWHERE = ("arm", "seed", "student", "drawn")
_PERCENT = "\u00a0%"  # stays with its number at the end of a line
_INTERVAL = 8  # seeds from which on there is an interval


def explore_digits(
    settings: DigitsSettings,
    folder: str | Path,
    *,
    students: Sequence[str] = STUDENTS,
    attention_sizes: Sequence[int] | None = None,
    level: float = 0.30,
    seeds: int = 8,
    against: str = "baseline",
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: str = "",
    keep: bool = False,
) -> Exploration:
    """How many images some students need for an accuracy of ``level``; writes ``digits.json`` and
    the data.

    ``settings`` say all but student and seed. Students that attend cost more: they are fitted at
    ``attention_sizes``, by default the largest of ``settings.sizes`` and the middle one. The data
    are ``"digits"``, what ``tabulate`` returns, and ``"pictures"``: of the first seed and the
    largest size some test ``image`` (example, row, column) with ``mask``, ``label``, ``predicted``
    (student, example) and ``attention_map`` (attending, example, row, column). Interrupted and
    called again, it goes on where it was; ``keep`` as in ``run_plan``.
    """
    out = checked_folder(folder, "digits")
    question = Question(level, "accuracy", falling=False, statistic="mean", against=against)
    few = _few(settings.sizes) if attention_sizes is None else tuple(attention_sizes)
    settings = _named(settings)
    mark = _checked(settings, students, few, question, seeds)
    begun = time.monotonic()
    default = asdict(DigitsSettings())
    changed = {
        k: v
        for k, v in asdict(settings).items()
        if v != default[k] and k not in ("arm", "seed", "student")
    }
    arms = {
        student: {**changed, "student": student, "sizes": settings.sizes} for student in students
    }
    arms |= {student: arm | {"sizes": few} for student, arm in arms.items() if student in ATTENTION}
    name = hashlib.sha256((json.dumps(changed, sort_keys=True) + mark).encode()).hexdigest()[:8]
    results = run_plan(
        arm_plan(WORK, "digits", arms, seeds),
        out / "runs" / name,
        processes=processes,
        executor=executor,
        progress=progress,
        on_event=on_event,
        keep=keep,
    )
    if results.interrupted:
        return Exploration(out, {}, interrupted=True, kind="digits")
    if results.finished == 0:
        raise AttnlabError(f"all {results.failed} runs failed: {results.failures[0].cause}")
    found = split_arms(results.dataset())
    curves = {
        (student, _TASK): data.drop_vars(PICTURES, errors="ignore")
        for student, data in found.items()
    }
    table = tabulate(curves, question, dim="task")
    about = _about(settings, table, question, few, time.monotonic() - begun, command)
    data = {"digits": table, "pictures": pictures_of(found, max(settings.sizes))}
    return store_exploration(out, "digits", data, about, [results])


def _few(sizes: Sequence[int]) -> tuple[int, ...]:
    """The middle and the largest size.

    >>> _few((39, 78, 312, 625, 1250)), _few((20, 40)), _few((100,))
    ((312, 1250), (20, 40), (100,))
    """
    return tuple(dict.fromkeys((sizes[(len(sizes) - 1) // 2], sizes[-1]))) if sizes else ()


def _named(settings: DigitsSettings) -> DigitsSettings:
    """With a folder of digits named in full, so that the settings mean the same from everywhere."""
    known = settings.digits in ("sklearn", "mnist")
    return (
        settings
        if known
        else replace(settings, digits=str(Path(settings.digits).expanduser().resolve()))
    )


def _checked(
    settings: DigitsSettings,
    students: Sequence[str],
    few: Sequence[int],
    question: Question,
    seeds: int,
) -> str:
    """A mark of the digits themselves; whatever is wrong with the settings is told before any run
    starts.
    """
    if seeds < 1:
        raise AttnlabError(
            f"seeds={seeds}: expected at least 1 (and at least {_INTERVAL} for intervals)"
        )
    if not 0 < question.level < 1:
        raise AttnlabError(
            f"level={question.level}: expected an accuracy between 0 and 1, such as 0.3"
        )
    if not students or len(set(students)) < len(students):
        raise AttnlabError(f"students={list(students)}: expected at least one, each once")
    for student in students:
        replace(settings, student=student)  # refuses a name that is none
    if question.against not in students:
        raise AttnlabError(
            f"against={question.against!r} is none of the students {', '.join(students)}"
        )
    for what, sizes in (("sizes", settings.sizes), ("attention_sizes", few)):
        if not sizes or min(sizes) < 1 or any(b <= a for a, b in pairwise(sizes)):
            raise AttnlabError(
                f"{what}={list(sizes)}: expected increasing positive numbers of images"
            )
    if few[-1] != settings.sizes[-1]:
        raise AttnlabError(
            f"attention_sizes={list(few)}: expected to end with the largest size, "
            f"{settings.sizes[-1]}"
        )
    digits = load_digits(settings.digits, shrink=settings.shrink)
    settings.task().sample(digits, 2, key=jax.random.key(0))
    for student in students:
        replace(settings, student=student).config(digits.classes)
    return hashlib.sha256(digits.images.tobytes() + digits.labels.tobytes()).hexdigest()


def pictures_of(found: Mapping[str, xr.Dataset], size: int) -> xr.Dataset:
    """Test images of the first seed that every student has, what each student read, and where it
    looked.
    """
    shared = set.intersection(*(set(data.seed.values.tolist()) for data in found.values()))
    if not shared:
        raise AttnlabError("no seed finished for all students: nothing can be shown side by side")
    first = {student: data.sel(seed=min(shared)) for student, data in found.items()}
    attending = [student for student in found if student in ATTENTION]
    one = next(iter(first.values()))
    pictures = xr.Dataset(
        {
            "image": (_GRID, one["image"].values),
            "mask": (_GRID, one["mask"].values),
            "label": ("example", one["label"].values.astype(int)),
            "predicted": (
                ("student", "example"),
                np.array([d["predicted"].values.astype(int) for d in first.values()]),
            ),
        },
        {"student": list(first)},
        {"seed": min(shared), "size": size},
    )
    if not attending:
        return pictures
    maps = np.array([first[student]["attention_map"].values for student in attending])
    return pictures.assign_coords(attending=attending).assign(
        attention_map=(("attending", *_GRID), maps)
    )


def _about(
    settings: DigitsSettings,
    table: xr.Dataset,
    question: Question,
    few: Sequence[int],
    seconds: float,
    command: str,
) -> dict[str, Any]:
    names = [str(student) for student in table.student.values]
    others = sorted(
        (s for s in names if s != question.against), key=lambda student: student != "known-mask"
    )
    attending = [student for student in names if student in ATTENTION]
    asked = table.rename(
        task="features"
    )  # the cards of `attnlab samples` tell one setting without its name
    cards = [_ratio_card(asked, student, question) for student in others]
    cards += [
        _accuracy_card(table),
        *(_attention_card(table, student) for student in attending),
        _fit_card(table),
    ]
    said = {student: str(table.said.sel(student=student).values[0]) for student in others}
    given = {k: v for k, v in asdict(settings).items() if k not in _ELSEWHERE}
    return {
        "title": "attnlab: noisy digits",
        "question": f"How many images does each student need to read {question.level * 100:.3g} % "
        "of the digits, and "
        "where does it look?",
        "summary": [
            *(f"{student} against {question.against}: {said[student]}." for student in others),
            *(_looks(table, student) for student in attending),
            _depends(settings),
        ],
        "cards": cards,
        "protocol": {
            "images": _made(settings),
            "sizes": _sizes_told(settings, few, attending),
            "depends": _depends(settings),
        },
        "settings": {
            "students": names,
            "level": question.level,
            "against": question.against,
            "seeds": table.sizes["seed"],
            "attention_sizes": list(few),
            **{k: list(v) if isinstance(v, tuple) else v for k, v in given.items()},
        },
        "command": command,
        **provenance(seconds),
    }


def _accuracy_card(table: xr.Dataset) -> dict[str, Any]:
    last = table.accuracy.isel(task=0, size=-1).mean("seed")
    said = [
        f"{student} {100 * float(last.sel(student=student)):.0f}{_PERCENT}"
        for student in table.student.values
    ]
    label = f"accuracy with {int(table['size'].values[-1])} images"
    return card(label, f"{', '.join(said)}.", measure="mean over seeds, all test images") | {
        "link": "curves"
    }


def _attention_card(table: xr.Dataset, student: str) -> dict[str, Any]:
    """The share of attention on the digit with the most images, beside that of even attention."""
    values, even = _on_digit(table, student)
    found = interval_of(values, "mean")
    mean = found.estimate
    bounds = f" [{100 * found.low:.1f}, {100 * found.high:.1f}]" if found.exists else ""
    text = f"Even attention would have {_percent(even)} there, the share of the image that the digit's square is."
    measure = "of the attention is on the digit, mean over seeds"
    return card(f"where {student} looks", text, f"{_percent(mean)}{bounds}", measure) | {
        "link": "pictures"
    }


def _looks(table: xr.Dataset, student: str) -> str:
    values, even = _on_digit(table, student)
    return (
        f"{student} has {_percent(float(values.mean()))} of its attention on the digit with "
        f"{int(table['size'].values[-1])} images; even attention would have {_percent(even)}."
    )


def _on_digit(table: xr.Dataset, student: str) -> tuple[np.ndarray, float]:
    one = table.sel(student=student).isel(task=0, size=-1)
    return one.attention_on_digit.dropna("seed").values, float(one.digit_area.mean())


def _made(settings: DigitsSettings) -> str:
    s = settings
    source = {"sklearn": "scikit-learn", "mnist": "MNIST"}.get(s.digits, s.digits)
    return (
        f"Each image is {s.canvas}×{s.canvas} pixels and shows one real digit ({source}) whose "
        "place lies on a lattice "
        f"of {s.spacing} pixels. Clutter: {s.fragments} fragments of other digits, "
        f"{s.fragment_size}×{s.fragment_size} "
        f"pixels each, at any place, and Gaussian noise of standard deviation {s.noise_std:g} on "
        "every pixel. "
        "Training, validation and test images show different digits."
    )


def _sizes_told(settings: DigitsSettings, few: Sequence[int], attending: Sequence[str]) -> str:
    every = f"Students are fitted with {', '.join(map(str, settings.sizes))} images"
    if not attending or tuple(few) == tuple(settings.sizes):
        return f"{every}, {settings.steps} steps each."
    return (
        f"{every}, {settings.steps} steps each; {' and '.join(attending)}, which cost more, only "
        "with "
        f"{', '.join(map(str, few))}. Where these meet the level is therefore known less finely, "
        "or only as a bound."
    )


def _depends(settings: DigitsSettings) -> str:
    s = settings
    fits = (
        f" Patches of {s.patch} pixels every {s.stride} lie on that lattice, which helps attention."
    )
    return (
        "The ratio is a property of these images, not of attention alone: it changes with the "
        "clutter and with the "
        f"lattice of places ({s.spacing} pixels here), and a known mask gives away where the "
        "digit is."
        f"{fits if s.spacing % s.stride == 0 else ''}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}{_PERCENT}"
