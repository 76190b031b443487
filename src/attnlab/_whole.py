"""Files that are whole or as they were before, never half written."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from attnlab._places import is_remote, put_bytes

TEMPORARY = ".tmp-"


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A file of this machine to write to: under a temporary name in its folder, flushed to disk and
    renamed at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(Path(folder) / "a") as file:
    ...         _ = file.write(b"text")
    ...         there = (Path(folder) / "a").exists()
    ...     there, (Path(folder) / "a").read_bytes()
    (False, b'text')
    """
    temporary = path.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_whole(path: Path, data: bytes) -> None:
    """Write all at once; at a URL under the file's own name, since object stores show it whole or
    not at all.
    """
    if is_remote(path):
        put_bytes(path, data)
        return
    with whole_file(path) as file:
        file.write(data)
