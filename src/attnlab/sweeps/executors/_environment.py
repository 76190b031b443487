"""The environment of a worker process: one thread, and compiled code that is kept."""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from pathlib import Path

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


def usable_cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def worker_environment() -> dict[str, str]:
    """Environment variables of a worker, to be set before it imports JAX."""
    environment = {**os.environ, **_ONE_THREAD}
    flags = environment.get("XLA_FLAGS", "").split()
    environment["XLA_FLAGS"] = " ".join(
        [*flags, *(flag for flag in _XLA_FLAGS if flag not in flags)]
    )
    package = str(Path(__file__).resolve().parents[3])
    environment["PYTHONPATH"] = os.pathsep.join(
        filter(None, [package, environment.get("PYTHONPATH", "")])
    )
    cache = compilation_cache()
    if cache is not None:
        environment.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
        environment.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.05")
        environment.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    return environment


def compilation_cache() -> Path | None:
    """The folder where compiled code is kept between sweeps; ``None`` where there can be none.

    ``ATTNLAB_CACHE`` names another folder than the user's cache; empty, it turns the cache off.
    Code compiled for one processor may not run on another, so that each kind of processor has its
    own.
    """
    given = os.environ.get("ATTNLAB_CACHE")
    if given == "":
        return None
    base = (
        Path(given)
        if given
        else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attnlab"
    )
    folder = base.expanduser() / "jax" / processor()
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
        about += "".join(
            sorted({line for line in lines if line.startswith(("flags", "Features", "model name"))})
        )
    return f"{platform.machine()}-{hashlib.sha256(about.encode()).hexdigest()[:12]}"
