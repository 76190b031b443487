"""The digits' work function at a tiny scale: contents, pairing, and that students of one kind share
a program.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.data import load_digits
from attnlab.lab import along
from attnlab.papers.liu2021 import digit_runs
from attnlab.papers.liu2021.digit_runs import fit_digits
from attnlab.papers.liu2021.digit_settings import ATTENTION, STUDENTS, DigitFitSettings
from attnlab.papers.liu2021.digit_sweeps import measure_pictures
from attnlab.sweeps import RunContext
from attnlab.training import _fit

pytestmark = pytest.mark.slow

TINY = DigitFitSettings(
    sizes=(20, 60),
    steps=30,
    batch_size=16,
    step_sizes=(0.01,),
    weight_decays=(0.0, 0.1),
    canvas=16,
    valid_points=20,
    test_points=30,
    hidden=4,
    embedding_dim=4,
    patch=8,
    stride=8,
    pictures=3,
)
CONTEXT = RunContext(root_seed=0, index=0, hash="0" * 64)


@pytest.fixture(scope="module")
def found():
    return {student: fit_digits(replace(TINY, student=student), CONTEXT) for student in STUDENTS}


@pytest.mark.parametrize("student", STUDENTS)
def test_every_student_gives_the_same_names(found, student):
    data = found[student]
    for name in ("accuracy", "valid_loss", "train_loss", "settling", "step_size", "weight_decay"):
        assert data[name].dims == ("size",)
        assert np.isfinite(data[name]).all()
    assert data.image.shape == data["mask"].shape == (3, 16, 16)
    assert data.digit.shape == data.predicted.shape == (3,)
    assert float(data.digit_area) == pytest.approx(64 / 256)
    attends = student in ATTENTION
    assert ("attention_map" in data) == ("attention_on_digit" in data) == attends
    if attends:
        assert data.attention_map.dims == ("example", "row", "column")
        np.testing.assert_allclose(data.attention_map.sum(("row", "column")), 1, rtol=1e-5)
        assert ((data.attention_on_digit > 0) & (data.attention_on_digit < 1)).all()


def test_students_of_a_seed_see_the_same_images(found):
    for student in STUDENTS[1:]:
        for name in ("image", "mask", "digit"):
            np.testing.assert_array_equal(found[student][name], found["baseline"][name])
    other = fit_digits(replace(TINY, seed=1), CONTEXT)
    assert not np.array_equal(other.image, found["baseline"].image)


def test_a_run_is_the_same_again_and_does_not_depend_on_larger_sizes(found):
    again = fit_digits(replace(TINY, arm="again"), CONTEXT)
    assert again.identical(found["baseline"])
    alone = fit_digits(replace(TINY, sizes=(20,)), CONTEXT)
    np.testing.assert_allclose(alone.valid_loss[0], found["baseline"].valid_loss[0], rtol=1e-5)


def test_dense_students_and_seeds_share_one_program(found):
    program: Any = _fit._fit_all
    before = program._cache_size()
    for seed, student in enumerate(STUDENTS, start=5):
        fit_digits(replace(TINY, seed=seed, student=student), CONTEXT)
    assert program._cache_size() == before


def test_a_mask_helps_where_nothing_else_can():
    """Strong clutter, two hundred images: what the mask leaves is readable, the image is not, nor
    is another mask.
    """
    loud = replace(
        TINY, test_points=300, sizes=(200,), steps=200, hidden=16, fragments=12, noise_std=0.3
    )
    accuracy = {
        student: float(fit_digits(replace(loud, student=student), CONTEXT).accuracy[0])
        for student in ("baseline", "known-mask", "wrong-mask")
    }
    assert accuracy["known-mask"] > 1.5 * max(accuracy["baseline"], accuracy["wrong-mask"])


def test_training_validation_and_test_digits_differ():
    parts = load_digits().split(key=digit_runs._keys(0, 0)[1])
    seen = [{image.tobytes() for image in part.images} for part in parts]
    assert not seen[0] & seen[1]
    assert not seen[0] & seen[2]
    assert not seen[1] & seen[2]


def test_unknown_students_and_empty_grids_are_refused():
    with pytest.raises(AttnlabError, match="known-mask"):
        DigitFitSettings(student="mask")
    with pytest.raises(AttnlabError, match="sizes"):
        DigitFitSettings(sizes=())


def test_pictures_are_of_the_first_seed_that_all_students_finished(found):
    few = [s for s in STUDENTS if s != "attention-pooling"]
    arms = {s: along([found[s], found[s] + 1], "seed", [3, 7]) for s in few}
    arms["baseline"]["predicted"] = arms["baseline"].predicted.where(arms["baseline"].seed != 3)
    pictures = measure_pictures(arms, 60)
    assert pictures.attrs == {"seed": 7, "size": 60}
    assert pictures.attending.values.tolist() == ["patch-attention"]
    assert pictures.predicted.sel(student="baseline").values.tolist() == (
        (found["baseline"].predicted.values + 1).tolist()
    )
    with pytest.raises(AttnlabError, match="no seed finished for all students"):
        measure_pictures({s: arm.isel(seed=[0]) for s, arm in arms.items()}, 60)
