"""A user's texts for ``attnlab compare``: read, split and stored where workers find them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from attnlab.studies._exploration import corpus_folder, shared_corpus
from attnlab.studies._text_prepare import TextSource, prepare_texts


@dataclass(frozen=True)
class StoredTexts:
    """Texts that lie in a ``folder``: the hash of their ``content``, how many train, how they were
    read.
    """

    folder: str
    content: str
    training: int
    source: dict[str, Any]
    reading: dict[str, Any]


def store_texts(
    files: tuple[str, ...], text: str | None, label: str | None, out: Path
) -> StoredTexts:
    """Read and split the files, and store the three parts in a folder of results."""
    source = TextSource(files, text=text, label=label)
    prepared = prepare_texts(source, folder=corpus_folder(out))
    folder = shared_corpus(prepared.save(corpus_folder(out)), out)
    return StoredTexts(
        str(folder), prepared.hash, len(prepared.train), asdict(source), prepared.reading
    )
