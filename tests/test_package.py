"""What an installation needs: versions, extras, packaged files, workflows; imports without POSIX."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import attnlab
from attnlab._errors import AttnlabError
from attnlab.sweeps.executors._worker_process import WorkerProcess

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS = PROJECT["optional-dependencies"]


def bound(requirement: str) -> tuple[str, str]:
    """Name and version of ``name[extra]>=version`` or ``name==version``."""
    found = re.match(r"([a-z0-9-]+)(?:\[[a-z,]+\])?[>=]=([0-9.]+)", requirement)
    assert found, f"{requirement!r} has no lower bound"
    return found[1], found[2]


def test_the_version_is_written_once():
    assert "version" not in PROJECT
    assert PYPROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "attnlab.__version__"}
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == attnlab.__version__
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]


def test_the_kernel_is_built_against_the_oldest_jax():
    oldest = dict(map(bound, PROJECT["dependencies"]))["jax"]
    pins = dict(map(bound, reversed(PYPROJECT["build-system"]["requires"])))
    assert pins["jaxlib"].startswith(oldest)


def test_every_requirement_is_declared_once():
    own = {name: given for name, given in EXTRAS.items() if name not in ("all", "dev")}
    everything = [*PROJECT["dependencies"], *(one for given in own.values() for one in given)]
    tools = [one for one in EXTRAS["dev"] if not one.startswith("attnlab[")]
    names = [bound(one)[0] for one in [*everything, *tools]]
    assert len(names) == len(set(names))
    included = {name: re.findall(r"[a-z]+", EXTRAS[name][0])[1:] for name in ("all", "dev")}
    assert set(included["all"]) == set(own) - {"bench", "docs"}
    assert set(included["dev"]) <= set(included["all"])


def test_constraints_pin_every_requirement():
    lines = (ROOT / "constraints.txt").read_text("utf-8").splitlines()
    pinned = {line.split("==")[0] for line in lines if "==" in line}
    asked = [*PROJECT["dependencies"], *(one for name in EXTRAS for one in EXTRAS[name])]
    names = {bound(one)[0] for one in asked if not one.startswith(("attnlab[", "torch=="))}
    assert names <= pinned


def test_extras_that_messages_recommend_exist():
    sources = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        extra
        for path in sources
        for given in re.findall(r"attnlab\[([a-z,]+)\]", path.read_text("utf-8"))
        for extra in given.split(",")
    }
    assert named
    assert named <= set(EXTRAS)


def test_packaged_files_exist():
    package = ROOT / "src" / "attnlab"
    for pattern in PYPROJECT["tool"]["setuptools"]["package-data"]["attnlab"]:
        assert list(package.glob(pattern)), pattern
    code = {".py", ".pyc", ".so"}
    others = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in code
    }
    matched = {
        path.relative_to(package).as_posix()
        for pattern in PYPROJECT["tool"]["setuptools"]["package-data"]["attnlab"]
        for path in package.glob(pattern)
    }
    assert others == matched


def test_the_source_distribution_names_what_exists():
    for line in (ROOT / "MANIFEST.in").read_text("utf-8").splitlines():
        verb, *names = line.split()
        if verb in ("include", "graft"):
            assert [name for name in names if not (ROOT / name).exists()] == []


def test_workflows_run_commands_that_exist():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    classifiers = {c.rpartition(" ")[2] for c in PROJECT["classifiers"] if "Python :: 3." in c}
    asked = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text("utf-8"))
        assert workflow[True], "YAML reads `on` as true"
        for job in workflow["jobs"].values():
            for step in job.get("steps", []):
                for words in re.findall(r"^ *make ([a-z ]+)", step.get("run", ""), re.MULTILINE):
                    asked |= set(words.split())
            tested = job.get("strategy", {}).get("matrix", {}).get("python")
            assert tested is None or set(tested) == classifiers
    assert asked
    assert asked <= targets


WITHOUT_POSIX = """
import importlib, os, pkgutil, sys
from types import SimpleNamespace

def load():
    package = importlib.import_module("attnlab")
    names = [found.name for found in pkgutil.walk_packages(package.__path__, "attnlab.")]
    others = ("attnlab.__main__", "attnlab.models._native")  # a command, and a library for XLA
    return [importlib.import_module(name) for name in names if name not in others]

load()  # what other packages do on Windows is not the question: they are loaded here, as they are
for name in [name for name in sys.modules if name.split(".")[0] == "attnlab"]:
    del sys.modules[name]
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name in ("getuid", "set_blocking", "sched_getaffinity", "fork", "sysconf"):
    delattr(os, name)
sys.modules["msvcrt"] = SimpleNamespace()
sys.platform = "win32"
assert len(load()) > 200
"""


@pytest.mark.slow
def test_everything_imports_without_posix():
    """Windows, as far as it can be tried elsewhere: modules and functions that it does not have."""
    words = [sys.executable, "-W", "ignore", "-c", WITHOUT_POSIX]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_worker_processes_on_windows_name_the_way_out(monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(AttnlabError, match="do not run on Windows: use attnlab in WSL"):
        WorkerProcess({})


def test_the_lock_of_windows(tmp_path, monkeypatch):
    """It excludes others, leaves the holder's name readable, and ends with the file."""
    fcntl = pytest.importorskip("fcntl")
    locked_at = []

    def locking(handle: int, mode: int, size: int) -> None:
        assert (mode, size) == (2, 1)
        locked_at.append(os.lseek(handle, 0, os.SEEK_CUR))
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PermissionError(13, "Permission denied") from None

    spec = importlib.util.find_spec("attnlab.sweeps.store._lock")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as windows:
        windows.setattr(sys, "platform", "win32")
        windows.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
        spec.loader.exec_module(module)
    first, second = module.FolderLock(tmp_path), module.FolderLock(tmp_path)
    first.acquire()
    with pytest.raises(AttnlabError, match=r"is in use by process \d+ on"):
        second.acquire()
    with pytest.raises(AttnlabError, match=r"is in use by process \d+ on .* stop it instead"):
        second.clear()
    assert min(locked_at) > 10_000
    assert (tmp_path / "lock").stat().st_size < 1000
    first.release()
    second.acquire()
    second.release()
    assert (tmp_path / "lock").read_bytes() == b""
