"""Training, validation and test sentences of a named source, for the claims about texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attnlab._errors import AttnlabError
from attnlab.data._corpus import Corpus
from attnlab.data._prepare import TextSource, prepare_texts
from attnlab.data._prepared import is_prepared, open_prepared

_ROTTEN_TOMATOES, _IMDB = "rotten-tomatoes", "imdb"
_NAMES = {"train": ("train",), "valid": ("dev", "valid", "val", "validation"), "test": ("test",)}
_SST2 = (6920, 872, 1821)
_WORDS = "attnlab.data:plain_words"


@dataclass(frozen=True, eq=False)
class TextParts:
    """Training, validation and test sentences over the training vocabulary, and their hash.

    ``sentences`` are the training sentences as they stood in the source, one for each of ``train``;
    ``leaks`` says what stands in two files of a given split.
    """

    train: Corpus
    valid: Corpus
    test: Corpus
    sentences: Sequence[str]
    hash: str
    leaks: tuple[str, ...] = ()

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
    """Read a source: Rotten Tomatoes, IMDB or one file, split 8 : 1 : 1, or a folder with three files.

    Words are those of ``plain_words``, all of them; IMDB's reviews, which are raw, have those of
    `TextSource`, the 20 000 most frequent. Three files are taken as they are, duplicates
    and all. A folder that ``Prepared.save`` wrote is opened as it is.
    """
    if is_prepared(source):
        train, valid, test, sentences, content = open_prepared(source)
        return TextParts(train, valid, test, sentences, content)
    prepared = prepare_texts(_asked(source))
    leaks = tuple(f"{leak['count']} {leak['reason']}" for leak in prepared.reading["leaks"])
    return TextParts(
        prepared.train,
        prepared.valid,
        prepared.test,
        prepared.texts["train"],
        prepared.hash,
        leaks,
    )


def _asked(source: str) -> TextSource:
    """A named source as files, and how claims read them."""
    if source == _IMDB:
        return TextSource((source,))
    folder = Path(source)
    if source == _ROTTEN_TOMATOES or not folder.is_dir():
        return TextSource((source,), tokenizer=_WORDS, max_words=None)
    train, valid, test = ((str(_part_file(folder, part)),) for part in _NAMES)
    return TextSource(train, valid, test, tokenizer=_WORDS, max_words=None, distinct=False)


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
