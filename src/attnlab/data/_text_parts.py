"""Training, validation and test sentences of a named source, for the claims about texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attnlab._errors import AttnlabError
from attnlab.data._corpus import Corpus
from attnlab.data._movies import load_movie_reviews
from attnlab.data._prepare import SPLIT
from attnlab.data._prepared import content_of, is_prepared, open_prepared
from attnlab.data._read import read_texts
from attnlab.data._splits import split_texts
from attnlab.data._texts import Texts
from attnlab.data._vocabulary import Vocabulary, index_texts

_ROTTEN_TOMATOES = "rotten-tomatoes"
_NAMES = {"train": ("train",), "valid": ("dev", "valid", "val", "validation"), "test": ("test",)}
_SST2 = (6920, 872, 1821)
_SPLIT_SEED = 0  # the split of a source without one is part of the source, the same for all runs


@dataclass(frozen=True, eq=False)
class TextParts:
    """Training, validation and test sentences over the training vocabulary, and their hash.

    ``sentences`` are the training sentences as they were in the source, one for each of ``train``;
    ``dropped``: the number of sentences of each part without a known word, which are left out;
    ``unknown``: the share of unknown words.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    sentences: Sequence[str]
    dropped: tuple[int, int, int]
    unknown: tuple[float, float, float]
    hash: str

    @property
    def is_sst2(self) -> bool:
        """Whether this is SST-2 with its own split (by its sizes), on which thresholds were set."""
        sizes = tuple(len(part) for part in (self.train, self.valid, self.test))
        return len(self.train.classes) == 2 and sizes == _SST2

    def require(self, content: str, source: str) -> None:
        """Raise an error if the content differs from the one that runs were planned for."""
        if content and content != self.hash:
            raise AttnlabError(
                f"the texts of {source!r} are not those that the plan was made for (content "
                f"{self.hash}, expected {content}): start again with the changed files"
            )


def plain_words(text: str) -> list[str]:
    """The words of a sentence that is already tokenised, punctuation stripped.

    >>> plain_words("it 's not bad , really ... 10/10 !")
    ['it', "'s", 'not', 'bad', 'really', '10/10']
    """
    return [word for word in text.split() if any(c.isalnum() for c in word)]


@lru_cache(maxsize=2)
def text_parts(source: str) -> TextParts:
    """Read a source: Rotten Tomatoes or one file (a fixed split 8 : 1 : 1), or a folder with three.

    A folder written by ``Prepared.save`` is opened as it is.
    """
    if is_prepared(source):
        train, valid, test, sentences, content = open_prepared(source)
        return TextParts(train, valid, test, sentences, (0, 0, 0), (0.0, 0.0, 0.0), content)
    texts = _texts(source)
    vocabulary = Vocabulary.of(texts[0].texts, tokenizer=plain_words)
    indexed = [
        index_texts(
            part.texts, part.labels, vocabulary, classes=texts[0].classes, tokenizer=plain_words
        )
        for part in texts
    ]
    train, valid, test = (one.corpus for one in indexed)
    return TextParts(
        train,
        valid,
        test,
        sentences=tuple(texts[0].texts[i] for i in indexed[0].kept),
        dropped=(len(indexed[0].wordless), len(indexed[1].wordless), len(indexed[2].wordless)),
        unknown=(indexed[0].unknown_share, indexed[1].unknown_share, indexed[2].unknown_share),
        hash=content_of(train, valid, test),
    )


def _texts(source: str) -> tuple[Texts, Texts, Texts]:
    if source == _ROTTEN_TOMATOES:
        whole = load_movie_reviews(source)
    elif Path(source).is_dir():
        files = {part: _part_file(Path(source), part) for part in _NAMES}
        train = read_texts(files["train"])
        valid, test = (read_texts(files[part], classes=train.classes) for part in ("valid", "test"))
        return train, valid, test
    else:
        whole = read_texts(source)
    train, valid, test = split_texts(whole, fractions=SPLIT, seed=_SPLIT_SEED)
    return train, valid, test


def _part_file(folder: Path, part: str) -> Path:
    """The only file of a folder with this part in its name."""
    names = sorted(
        file for file in folder.iterdir() if file.is_file() and not file.name.startswith(".")
    )
    found = [
        file for file in names if set(re.split(r"[._\-\s]", file.name.lower())) & set(_NAMES[part])
    ]
    if len(found) != 1:
        shown = ", ".join(file.name for file in (found or names)[:8]) or "nothing"
        raise AttnlabError(
            f"{folder}: expected one file with {' or '.join(map(repr, _NAMES[part]))} in its name "
            f"(stsa.binary.train, …), found {len(found)}: {shown}"
        )
    return found[0]
