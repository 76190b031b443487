"""The environment of a worker process: one thread, a cache of compiled code, and the versions that
results depend on.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from attnlab import __version__
from attnlab._places import cache_folder

# XLA reads the size of its thread pool from NPROC; the two flags alone leave it at the number of
# cores.
_ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NPROC": "1",
    "JAX_PLATFORMS": "cpu",
}
_XLA_FLAGS = ("--xla_cpu_multi_thread_eigen=false", "intra_op_parallelism_threads=1")
_PACKAGES = ("jax", "jaxlib", "numpy")


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_environment() -> dict[str, str]:
    """The environment variables of a worker, to be set before it imports JAX."""
    environment = {**os.environ, **_ONE_THREAD}
    flags = environment.get("XLA_FLAGS", "").split()
    flags += [flag for flag in _XLA_FLAGS if flag not in flags]
    environment["XLA_FLAGS"] = " ".join(flags)
    package = str(Path(__file__).resolve().parents[3])
    given = environment.get("PYTHONPATH", "")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [package, given]))
    cache = compilation_cache()
    if cache is not None:
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
        environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        environment.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    return environment


def compilation_cache() -> Path | None:
    """The folder of compiled code that is kept between sweeps; ``None`` where there can be none.

    ``ATTNLAB_CACHE`` names another folder than the user's cache; empty, it turns this cache off.
    Code compiled for one processor may not run on another, so that each kind of processor has a
    folder of its own.
    """
    if os.environ.get("ATTNLAB_CACHE") == "":
        return None
    folder = cache_folder() / "jax" / processor()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return folder


def processor() -> str:
    """A name for this kind of processor."""
    about = platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        kinds = {line for line in lines if line.startswith(("flags", "Features", "model name"))}
        about += "".join(sorted(kinds))
    return f"{platform.machine()}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"


def versions() -> dict[str, str]:
    """The versions that results depend on, in this process.

    >>> versions()["attnlab"] == __version__
    True
    """
    found: dict[str, str] = {"attnlab": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    # Patch releases of Python change no bit of a result.
    found["python"] = ".".join(platform.python_version_tuple()[:2])
    found["processor"] = processor()
    return found


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What is not the same, as (here, there); the processor is not compared.

    >>> differences({"jax": "0.7.0", "python": "3.11"}, {"jax": "0.6.2", "python": "3.11"})
    {'jax': ('0.7.0', '0.6.2')}
    """
    pairs = {name: (mine, there.get(name, "unknown")) for name, mine in here.items()}
    pairs.pop("processor", None)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
