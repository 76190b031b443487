"""The folder of an experiment: one question about one subject, and nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attnlab._errors import AttnlabError
from attnlab._json import seal, unseal
from attnlab._places import (
    is_file,
    is_folder,
    is_remote,
    listed,
    make_folder,
    place,
    read_bytes,
    reading,
    remove,
    write_atomically,
    writing,
)
from attnlab.sweeps import read_record

RECORD = "record.json"
SCHEMA = 1
FIELDS = {"experiment": str, "about": {str: object}, "content": {str: object}}
_OWNER, _OWNER_SCHEMA, _KIND = ".attnlab", 1, "attnlab folder"
_OTHERWISE = "give another folder (--out), or write there all the same (--overwrite)"
_SHOWN = 3


def take_folder(
    folder: str | Path, name: str, subject: Mapping[str, Sequence[str]], *, overwrite: bool = False
) -> Path:
    """The folder or URL to write to, marked as that of an experiment on a subject.

    Refused, unless ``overwrite``, are a folder with files that attnlab did not write, and one of
    another experiment or subject.
    """
    out = place(folder)
    own = {key: [_inside(value, out) for value in values] for key, values in subject.items()}
    with reading(out):
        present = listed(out)
        is_taken = not present and is_file(out)
    if is_taken:
        raise AttnlabError(f"{out} is a file; expected a folder, or a name that is free")
    if not overwrite:
        _check(out, present, name, own)
    with writing(out):
        if not overwrite and _OWNER in present:
            return out
        mark = seal(_KIND, _OWNER_SCHEMA, {"experiment": name, "subject": own})
        make_folder(out)
        write_atomically(out / _OWNER, mark)
    return out


@contextmanager
def taken_folder(
    folder: str | Path, name: str, subject: Mapping[str, Sequence[str]], *, overwrite: bool = False
) -> Iterator[Path]:
    """`take_folder` for a context; a mistake that ends it before anything is written leaves nothing."""
    is_new = not is_folder(place(folder))
    out = take_folder(folder, name, subject, overwrite=overwrite)
    try:
        with writing(out):
            yield out
    except AttnlabError:
        if set(listed(out)) == {_OWNER}:
            remove(out / _OWNER)
            if is_new and not is_remote(out):
                out.rmdir()
        raise


def _check(out: Path, present: Mapping[str, int], name: str, subject: dict[str, list[str]]) -> None:
    """Raise an error for a folder that is somebody else's."""
    if _OWNER in present:
        owner = _owner(out)
        if owner is not None:
            _check_same(out, owner["experiment"], name)
            if owner["subject"] != subject:
                raise AttnlabError(
                    f"{out} holds what `attnlab {name}` wrote about {_words(owner['subject'])}; "
                    f"you ask about {_words(subject)}: {_OTHERWISE}"
                )
    elif RECORD in present:
        _check_same(out, _experiment_of(out), name)
    else:
        # Hidden files are those of editors, version control and file managers.
        foreign = sorted(entry for entry in present if not entry.startswith("."))
        if foreign:
            more = f" and {len(foreign) - _SHOWN} more" if len(foreign) > _SHOWN else ""
            raise AttnlabError(
                f"{out} holds files that attnlab did not write ({', '.join(foreign[:_SHOWN])}"
                f"{more}): {_OTHERWISE}"
            )


def _check_same(out: Path, other: str | None, name: str) -> None:
    if other not in (None, name):
        raise AttnlabError(f"{out} holds what `attnlab {other}` wrote: {_OTHERWISE}")


def _owner(out: Path) -> dict[str, Any] | None:
    """Whose folder it is; ``None`` where that cannot be read."""
    shape = {"experiment": str, "subject": {str: [str]}}
    with reading(out):
        data = read_bytes(out / _OWNER)
    try:
        return unseal(
            data,
            out / _OWNER,
            kind=_KIND,
            schema=_OWNER_SCHEMA,
            what="the mark of a folder",
            again="",
            shape=shape,
        )
    except AttnlabError:
        return None


def _experiment_of(folder: Path) -> str | None:
    """Whose record lies in a folder; ``None`` where it cannot be read and will be written again."""
    try:
        return str(read_record(folder, RECORD, SCHEMA, FIELDS, "attnlab")["experiment"])
    except AttnlabError:
        return None


def _inside(value: str, out: Path) -> str:
    """A file within the folder by its name there: the folder may be moved."""
    return value.removeprefix(f"{out}/")


def _words(subject: Mapping[str, Sequence[str]]) -> str:
    parts = [f"{key} {', '.join(values)}" for key, values in subject.items() if values]
    return "; ".join(parts) or "no texts"
