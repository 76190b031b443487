"""Learning curves on noisy digits: variables and measurement that claim and command share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab import Data, Table, variable
from attnlab.papers.liu2021.curve_sweeps import Curves
from attnlab.papers.liu2021.digit_settings import ATTENTION

if TYPE_CHECKING:
    import xarray as xr

WORK = "attnlab.papers.liu2021.digit_runs:fit_digits"


class DigitCurves(Curves):
    """Learning curves of students that read digits (student, task, seed, size)."""

    attention_on_digit = variable("mean share of attention on the digit's square", optional=True)
    digit_area = variable("share of the image that is the digit's square: even attention's share")


class Pictures(Table):
    """Test images of one seed, what each student read, and where those that attend looked.

    Its attributes are the ``seed``, and the ``size`` with which students were fitted.
    """

    image = variable("pixels (example, row, column)")
    mask = variable("1 in the digit's square (example, row, column)")
    digit = variable("which digit it is (example)")
    predicted = variable("what a student reads (student, example)")
    attention_map = variable("its attention (attending, example, row, column)", optional=True)


def measure_curves(
    arms: Data, level: float, *, task: str, against: str, confidence: float | None = None
) -> xr.Dataset:
    """The table `DigitCurves` from the runs of each student; ``task`` labels these images."""
    by = {(student, task): arm for student, arm in arms.items()}
    return measure_tasks(by, level, against=against, confidence=confidence)


def measure_tasks(
    arms: Mapping[tuple[str, str], xr.Dataset],
    level: float,
    *,
    against: str,
    confidence: float | None = None,
) -> xr.Dataset:
    """The same from the runs of each student on several tasks."""
    question = al.complexity.Question(
        level, "accuracy", falling=False, statistic="mean", against=against
    )
    drawn = [str(name) for name in Pictures.variables]
    return al.complexity.tabulate(
        {pair: arm.drop_vars(drawn, errors="ignore") for pair, arm in arms.items()},
        question,
        dim="task",
        confidence=confidence or al.stats.CONFIDENCE,
    )


def measure_pictures(arms: Data, size: int) -> xr.Dataset:
    """The table `Pictures` of the first seed that every student finished, fitted with ``size``."""
    seed = _first_shared_seed(arms)
    first = {student: arm.sel(seed=seed) for student, arm in arms.items()}
    grid = ("example", "row", "column")
    one = next(iter(first.values()))
    read = [run[Pictures.predicted].values.astype(int) for run in first.values()]
    variables = {
        str(Pictures.image): (grid, one[Pictures.image].values),
        str(Pictures.mask): (grid, one[Pictures.mask].values),
        str(Pictures.digit): ("example", one[Pictures.digit].values.astype(int)),
        str(Pictures.predicted): (("student", "example"), np.array(read)),
    }
    pictures = al.lab.dataset(variables).assign_coords(student=list(first))
    attending = [student for student in first if student in ATTENTION]
    if attending:
        maps = np.array([first[student][Pictures.attention_map].values for student in attending])
        pictures = pictures.assign_coords(attending=attending)
        pictures = pictures.assign({str(Pictures.attention_map): (("attending", *grid), maps)})
    return pictures.assign_attrs(seed=seed, size=size)


def _first_shared_seed(arms: Mapping[str, xr.Dataset]) -> int:
    seeds = []
    for arm in arms.values():
        finished = arm[Pictures.predicted].notnull().all("example").values
        seeds.append(set(arm["seed"].values[finished].tolist()))
    shared = set.intersection(*seeds)
    if not shared:
        raise AttnlabError("no seed finished for all students: nothing can be shown side by side")
    return min(shared)
