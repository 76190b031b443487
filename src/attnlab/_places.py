"""Files in folders on this machine, and at URLs of any file system that fsspec knows.

Everything that is stored or read goes through ``place``: a local path stays a ``pathlib.Path``, a URL
becomes a path object with the same methods. The functions below are those that differ between the
two, or must not trust a cached listing; ``write_atomically`` is how all files are written.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any
from urllib.parse import parse_qs, unquote, urlsplit

from attnlab._errors import AttnlabError

TEMPORARY = ".tmp-"  # how the names of files begin that are being written
_SETTLED_SECONDS = 60.0
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_COLLAPSED = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_SECRET = re.compile(r"(^|[-_])(sig|signature|token|credential|secret|password|api[-_]?key)$", re.I)
# What is about reading a file rather than about its content.
_VOLATILE = ("atime", "time")
# Errors of a disk that is full, and of a place that cannot be written to, rather than of a program.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS}
_DISK = _FULL | {
    *(errno.EACCES, errno.EPERM, errno.EIO),
    *(errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG),
}
# Folders are only parts of names there: to make one would, at the top, make a bucket of a mistyped
# name.
_FLAT = {"memory", "s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "oss", "oci"}


def place(given: str | Path) -> Path:
    """The path object of a path or URL: a ``pathlib.Path`` on this machine, and what behaves like
    one elsewhere.

    ``file://`` is this machine. Other schemes (``s3://``, ``gs://``, ``memory://``, …) need
    ``attnlab[remote]``, and most of them the file system's own package; credentials are taken from
    where that package looks for them.

    >>> place("results"), place("file:///tmp/results")
    (PosixPath('results'), PosixPath('/tmp/results'))
    >>> str(place("memory://results") / "plan.json")
    'memory://results/plan.json'
    """
    if isinstance(given, Path):
        if given.parts and _COLLAPSED.fullmatch(given.parts[0]):
            raise AttnlabError(
                f"{given} looks like a URL that was made a Path: give URLs as strings, 'scheme://…'"
            )
        return given
    if not isinstance(given, str) and hasattr(
        given, "fs"
    ):  # a URL already, perhaps with options of its own
        return given
    text = str(given)
    if "://" not in text:
        return Path(text)
    found = _URL.fullmatch(text)
    if found is None:
        raise AttnlabError(
            f"{text!r} is not a URL: expected 'scheme://…', such as s3://bucket/folder"
        )
    scheme, rest = found[1].lower(), found[2]
    if scheme == "file":
        return _local(text, rest)
    if _holds_password(text):
        # Commands and folders are written into records and pages: a password in a URL would be
        # published with them.
        raise AttnlabError(
            f"the {scheme}:// URL holds a password or a signature, which would be written into "
            "records: leave it out, and give it to the file system's package by its environment "
            "variables or fsspec's configuration, or download the file first"
        )
    return _remote_path(f"{scheme}://{rest.rstrip('/')}", scheme)


def is_remote(path: Path) -> bool:
    """Whether a place is a URL."""
    return not isinstance(path, Path)


def is_private(path: Path) -> bool:
    """Whether only this process sees what is stored there."""
    return is_remote(path) and str(path).startswith("memory://")


def absolute_name(path: Path) -> str:
    """The name under which another process of this machine finds the same place."""
    return str(path) if is_remote(path) else str(path.resolve())


def make_folder(path: Path) -> None:
    """Make a folder and those above it; nothing to do where folders are only parts of names."""
    if not is_remote(path):
        path.mkdir(parents=True, exist_ok=True)
        return
    fs, scheme, name = _fs(path)
    if scheme not in _FLAT:
        with errors_of(path):
            fs.makedirs(name, exist_ok=True)


def is_file(path: Path) -> bool:
    """Whether there is a file now; cached listings are not used."""
    if not is_remote(path):
        return path.is_file()
    fs, _, name = _fs(path)
    with errors_of(path):
        fs.invalidate_cache()
        try:
            return fs.info(name)["type"] == "file"
        except (FileNotFoundError, NotADirectoryError):
            return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder now; where folders are only parts of names, whether it holds
    anything. Cached listings are not used.
    """
    if not is_remote(path):
        return path.is_dir()
    fs, _, name = _fs(path)
    with errors_of(path):
        fs.invalidate_cache()
        return bool(fs.isdir(name))


def listed(folder: Path) -> dict[str, int]:
    """The names in a folder, and the size of each; empty where there is no folder. Cached listings
    are not used.
    """
    if not is_remote(folder):
        return _listed_here(folder)
    fs, _, name = _fs(folder)
    with errors_of(folder):
        fs.invalidate_cache()
        try:
            found = fs.ls(name, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return {}
    # Some stores list a marker of the folder itself.
    inner = [entry for entry in found if entry["name"].strip("/") != name.strip("/")]
    return {
        entry["name"].rstrip("/").rpartition("/")[2]: int(entry.get("size") or 0) for entry in inner
    }


def leads_outside(path: Path, folder: Path) -> bool:
    """Whether a file of this machine is, or is below, a link that leads out of a folder."""
    return not is_remote(path) and not path.resolve().is_relative_to(folder.resolve())


def read_bytes(path: Path) -> bytes:
    """The content of a file."""
    if not is_remote(path):
        return path.read_bytes()
    fs, _, name = _fs(path)
    with errors_of(path):
        return fs.cat_file(name)


def read_if_any(path: Path) -> bytes | None:
    """The content of a file, or ``None`` where there is none, or it cannot be read.

    A URL that cannot be reached is an error: its content may be intact.
    """
    try:
        return read_bytes(path)
    except OSError as error:
        if is_remote(path) and not isinstance(error, FileNotFoundError):
            raise
        return None


def checksum(path: Path) -> str:
    """SHA-256 of a file."""
    if is_remote(path):
        return hashlib.sha256(read_bytes(path)).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_atomically(path: Path, data: bytes, *, sync_folder: bool = True) -> None:
    """Write a file that is complete or as it was before, at every moment and after a crash.

    Without ``sync_folder`` a loss of power may undo the rename, until something else is written to
    the folder with it. At a URL the file is written under its own name, since object stores show
    it complete or not at all.
    """
    if is_remote(path):
        put_bytes(path, data)
        return
    with atomic_file(path) as file:
        file.write(data)
    if sync_folder:
        _sync_folder(path.parent)


@contextmanager
def atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file of this machine to write to: under a temporary name in its folder, flushed to disk and
    renamed at the end.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_file(Path(folder) / "a") as file:
    ...         _ = file.write(b"text")
    ...         exists = (Path(folder) / "a").exists()
    ...     exists, (Path(folder) / "a").read_bytes()
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


def put_bytes(path: Path, data: bytes) -> None:
    """Write a file at a URL under its name: object stores show it complete or not at all."""
    fs, scheme, name = _fs(path)
    with errors_of(path):
        try:
            fs.pipe_file(name, data)
        except FileNotFoundError:
            if scheme in _FLAT:
                raise
            fs.makedirs(_fs(path.parent)[2], exist_ok=True)
            fs.pipe_file(name, data)


def remove(path: Path) -> None:
    """Remove a file, if it is still there."""
    with errors_of(path):
        path.unlink(missing_ok=True)


def move(path: Path, target: Path) -> None:
    """Rename a file in its folder."""
    if not is_remote(path):
        os.replace(path, target)
        return
    with errors_of(path):
        _fs(path)[0].mv(_fs(path)[2], _fs(target)[2])


def set_aside(path: Path) -> Path:
    """Rename a damaged or foreign file to ``*.bad``; nothing is deleted or overwritten."""
    present = listed(path.parent)
    aside = path.with_name(path.name + ".bad")
    number = 1
    while aside.name in present:
        number += 1
        aside = path.with_name(f"{path.name}.{number}.bad")
    move(path, aside)
    return aside


def is_settled(path: Path) -> bool:
    """Whether a file is old enough that no orphaned process can still be working on it."""
    written = _modified(path)
    return written is not None and time.time() - written > _SETTLED_SECONDS


def remove_temporaries(folder: Path) -> None:
    """Remove half-written files of ``write_atomically`` that a killed process left behind."""
    for name in listed(folder):
        if name.startswith(TEMPORARY) and is_settled(folder / name):
            remove(folder / name)


def cache_folder() -> Path:
    """The user's folder for what can be made again: ``ATTNLAB_CACHE``, or the system's cache
    folder.
    """
    given = os.environ.get("ATTNLAB_CACHE")
    if given == "":
        # On Windows the folder of temporary files is the user's own.
        user = "" if sys.platform == "win32" else f"-{os.getuid()}"
        return Path(tempfile.gettempdir()) / f"attnlab{user}"
    base = (
        Path(given)
        if given
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"
    )
    return base.expanduser()


def local_copy(folder: str | Path, last: str) -> Path:
    """A folder whose files must be mapped into memory: itself on this machine, its copy in the
    cache for a URL.

    ``last`` is the file that is written last. A folder must never change under its name (a content
    hash is part of it): a copy that exists is not compared again.
    """
    source = place(folder)
    if not is_remote(source):
        return source
    copy = copy_of(source)
    if not (copy / last).is_file():
        fs, _, name = _fs(source)
        with errors_of(source), _arriving(copy) as arriving:
            fs.invalidate_cache()
            for file in fs.find(name):
                target = arriving.joinpath(*_parts(file[len(name) :]))
                target.parent.mkdir(parents=True, exist_ok=True)
                fs.get_file(file, str(target))
    return copy


def local_file(given: str | Path) -> Path:
    """A file that can be read many times: itself on this machine, its copy in the cache for a URL.

    A copy is used again as long as size, time and checksum that the file system states are the
    same.
    """
    source = place(given)
    if not is_remote(source):
        return source
    about = _about(source)
    if about.get("type") == "directory":
        raise AttnlabError(f"{given} is a folder: give the files in it that are to be read")
    stated = sorted((key, repr(value)) for key, value in about.items() if key not in _VOLATILE)
    copies = cache_folder() / "inputs" / _short_hash(str(source))
    copy = copies / f"{_short_hash(str(stated))}-{source.name[-80:]}"
    if copy.is_file():
        return copy
    arriving = copies / f"{TEMPORARY}{uuid.uuid4().hex}"
    try:
        copies.mkdir(parents=True, exist_ok=True)
        _download(source, arriving, about.get("size"))
        os.replace(arriving, copy)
        for old in copies.iterdir():
            if old != copy and not old.name.startswith(TEMPORARY):
                old.unlink(missing_ok=True)
    except OSError as error:
        raise AttnlabError(
            f"cannot keep a copy of {given} in {copies} ({error}): free some space or make it "
            "writable, or name another folder by ATTNLAB_CACHE"
        ) from error
    finally:
        with suppress(OSError):
            arriving.unlink()
    return copy


def _download(source: Path, target: Path, size: int | None) -> None:
    """Copy a file at a URL to this machine; an ``OSError`` is about this machine's disk."""
    fs, _, name = _fs(source)
    try:
        with errors_of(source):
            fs.get_file(name, str(target))
    except OSError as error:
        if error.errno in _FULL:
            raise
        with reading(source):
            raise
    got = target.stat().st_size
    if size not in (None, got):
        raise AttnlabError(f"{source} has {size:,} bytes, but {got:,} arrived: try again")


def _about(source: Path) -> dict[str, Any]:
    """What a file system states about a file at a URL."""
    fs, _, name = _fs(source)
    with reading(source), errors_of(source):
        fs.invalidate_cache()
        try:
            return fs.info(name)
        except (FileNotFoundError, NotADirectoryError):
            raise AttnlabError(f"{source}: there is no such file") from None


def _short_hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def copy_of(folder: Path) -> Path:
    """Where ``local_copy`` puts the copy of a folder at a URL: the same names, in the user's cache."""
    scheme, _, name = str(folder).partition("://")
    return cache_folder().joinpath("copies", scheme, *_parts(name))


def working_copy(folder: Path) -> Path:
    """Where to write a folder whose files must be mapped into memory; at a URL, ``share`` it
    afterwards.
    """
    return copy_of(folder) if is_remote(folder) else folder


def share(copy: Path, folder: Path, last: str) -> Path:
    """Upload a folder that was written to ``working_copy(folder)`` to its URL. Returns where others
    find it.

    The file ``last`` is uploaded last; where it exists, nothing is done, nor on this machine.
    """
    if not is_remote(folder):
        return copy
    if not is_file(folder / last):
        files = [path for path in sorted(copy.rglob("*")) if path.is_file()]
        with errors_of(folder):
            for path in sorted(files, key=lambda path: path == copy / last):
                target = folder.joinpath(*path.relative_to(copy).parts)
                make_folder(target.parent)
                _fs(target)[0].put_file(str(path), _fs(target)[2])
    return folder


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """The one message for a place that cannot be read."""
    try:
        yield
    except OSError as error:
        raise AttnlabError(
            f"cannot read {folder} ({error}): check its name, the connection and your permissions "
            "there"
        ) from error


def disk_error(folder: Path, error: OSError | str) -> AttnlabError:
    """The one message for a place that cannot be written to."""
    advice = (
        "check the connection and your permissions"
        if is_remote(folder)
        else "free some space or make it writable"
    )
    return AttnlabError(
        f"cannot write to {folder} ({error}): all runs that finished before are kept; {advice}, "
        "then start the same command again"
    )


def is_disk_error(error: OSError) -> bool:
    """Whether an error is about a full disk or a place that cannot be written to."""
    return error.errno in _DISK


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """The one message for a disk that is full or a place that cannot be written to.

    Other errors of the operating system are not about the place, and pass.
    """
    try:
        yield
    except OSError as error:
        if is_remote(folder) or is_disk_error(error):
            raise disk_error(folder, error) from error
        raise


@contextmanager
def errors_of(path: Path) -> Iterator[None]:
    """Turn a file system's own kinds of errors into ``OSError``, as on this machine."""
    try:
        yield
    except (OSError, AttnlabError):
        raise
    except Exception as error:
        if not is_remote(path):
            raise
        raise OSError(f"{type(error).__name__}: {error}") from error


@contextmanager
def _arriving(copy: Path) -> Iterator[Path]:
    """A folder next to ``copy`` that takes its name when it is complete; another process may have
    been faster.
    """
    arriving = copy.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
    arriving.mkdir(parents=True)
    try:
        yield arriving
        with suppress(OSError):
            arriving.rename(copy)
    finally:
        shutil.rmtree(arriving, ignore_errors=True)


def _parts(name: str) -> list[str]:
    """The parts of a name within a folder; none that leads out of it."""
    parts = [part for part in name.split("/") if part]
    if ".." in parts:
        raise AttnlabError(f"{name!r} leads out of its folder: attnlab writes no such names")
    return parts


def _listed_here(folder: Path) -> dict[str, int]:
    sizes = {}
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # it may have been removed in the meantime
                sizes[entry.name] = entry.stat().st_size
    return sizes


def _modified(path: Path) -> float | None:
    """When a file was written, in seconds since 1970; ``None`` where that is not known."""
    try:
        if not is_remote(path):
            return path.stat().st_mtime
        fs, _, name = _fs(path)
        return fs.modified(name).timestamp()
    except Exception:  # not every file system knows, and each has its own error for that
        return None


def _sync_folder(folder: Path) -> None:
    """Make a rename survive a loss of power."""
    if sys.platform == "win32":  # which opens no folders
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _local(text: str, rest: str) -> Path:
    host, slash, path = rest.partition("/")
    if host not in ("", "localhost") or not slash:
        raise AttnlabError(
            f"{text!r}: expected file:///absolute/path; another machine's files need their own "
            "scheme"
        )
    return Path("/" + unquote(path))


def _holds_password(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return bool(parts.password) or any(map(_SECRET.search, parse_qs(parts.query)))
    except ValueError:  # it has no valid host, and so no password
        return False


def _remote_path(url: str, scheme: str) -> Path:
    try:
        import fsspec
        from upath import UPath
    except ImportError as error:
        raise AttnlabError(
            f"{url}: files at URLs need `pip install 'attnlab[remote]'` ({error})"
        ) from None
    try:
        fsspec.get_filesystem_class(scheme)
    except ImportError as error:
        package = re.search(r"[Ii]nstall (?:the )?([a-z0-9_-]+)", str(error))
        advice = f"`pip install {package[1]}`" if package else "its package"
        raise AttnlabError(f"{url}: {scheme}:// needs {advice} as well ({error})") from None
    except ValueError:
        raise AttnlabError(
            f"{url}: unknown file system {scheme!r}; expected one that fsspec knows, such as "
            "s3, gs or memory"
        ) from None
    found: Any = UPath(url)
    return found


def _fs(path: Any) -> tuple[Any, str, str]:
    """The file system of a URL, its scheme, and the name that it has there."""
    with errors_of(path):
        return path.fs, path.protocol, path.path
