"""What claims about learning curves share: the best of several students, and cautions."""

import numpy as np
import xarray as xr

from attnlab.papers.liu2021.curve_sweeps import Curves, best_of, tuning_cautions


class Toy(Curves, label="toy"):
    """Curves (student, task, seed, size)."""


def _student(loss, error, at_end=False):
    loss = np.asarray(loss, float)
    columns = {
        "valid_loss": loss,
        "error": np.full(loss.shape, error),
        "at_end": np.full(loss.shape, at_end),
    }
    return xr.Dataset(
        {name: (("seed", "size"), values) for name, values in columns.items()},
        {"seed": np.arange(2), "size": [8, 16]},
    )


def test_the_best_student_is_chosen_seed_by_seed_and_size_by_size():
    small = _student([[1.0, 3.0], [1.0, np.nan]], 0.1)
    large = _student([[2.0, 2.0], [np.nan, np.nan]], 0.2)
    found = best_of([small, large], "hidden", [24, 96])
    np.testing.assert_array_equal(found.error, [[0.1, 0.2], [0.1, 0.1]])
    np.testing.assert_array_equal(found.hidden, [[24, 96], [24, np.nan]])
    np.testing.assert_array_equal(found.at_end[0], [False, True])  # 96 is the last


def test_cautions_name_students_of_which_more_than_a_few_fits_are_concerned():
    def table(ends, falls):
        shape = (2, 1, 10, 2)
        columns = {
            "valid_loss": np.ones(shape),
            "train_loss": np.ones(shape),
            "at_end": np.zeros(shape, bool),
            "settling": np.zeros(shape),
        }
        columns["at_end"][0, 0, :ends, 0] = True
        columns["settling"][1, 0, :falls, 0] = 0.5
        columns["valid_loss"][0, 0, 9] = np.nan  # a run that failed
        names = ("student", "task", "seed", "size")
        labels = {"student": ["plain", "careful"], "task": ["t"], "size": [8, 16]}
        return xr.Dataset({name: (names, values) for name, values in columns.items()}, labels)

    cautions = tuning_cautions({"": Toy})
    assert cautions({"toy": table(0, 1)}) == []  # 1 of 20 is not more than 5 %
    assert cautions({"toy": table(3, 2)}) == [
        "tuning ended at an end of its grid in these fits: plain 3 of 18",
        "the loss was still falling in the last fifth of the steps in these fits: careful 2 of 20",
    ]
    assert tuning_cautions({"a task": Toy})({"toy": table(10, 0)}) == [
        "tuning ended at an end of its grid in these fits: plain 9 of 18 (a task)"
    ]
    assert tuning_cautions({"absent": Toy})({}) == []
