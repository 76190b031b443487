"""One thread, one cache of compiled programs, strict types and shapes: silent broadcasting and silent
rounding are errors in tests.
"""

import gc
import os
import shutil
import signal
from pathlib import Path

from attnlab.sweeps.executors._environment import processor

# A process that a shell starts in the background ignores Ctrl-C; the tests of Ctrl-C would wait for
# ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests compile thousands of programs and run each of them briefly: optimising them takes most of the
# time. JAX_DISABLE_MOST_OPTIMIZATIONS=false compiles them as users do, which `make lowest` and the
# golden numbers need.
os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "true")
OPTIMISED = os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"].lower() in ("0", "false", "no", "off")
FLAGS = [] if OPTIMISED else ["--xla_cpu_use_fusion_emitters=false"]
# The flag without dashes comes last: XLA reads none behind it.
FLAGS += ["--xla_cpu_multi_thread_eigen=false", "intra_op_parallelism_threads=1"]
os.environ["XLA_FLAGS"] = " ".join(FLAGS)
# What one process compiles, the others of this run, those that tests start and the next run read.
# A program is found by its content, the version of its compiler and the flags; `make clean`
# forgets them all.
PROGRAMS = Path(__file__).resolve().parents[1] / "build" / "programs" / processor()
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(PROGRAMS))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

from jaxtyping import install_import_hook  # noqa: E402

install_import_hook(
    ["attnlab.data", "attnlab.models", "attnlab.training", "attnlab.dynamics"], "beartype.beartype"
)

import jax  # noqa: E402
import pytest  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_collection_finish() -> None:
    """All that is loaded by now stays: the garbage collector need not look at it time and again."""
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _forget_programs():
    """Compiled programs of one file are of no use to the next, and thousands of them fill the
    memory.
    """
    yield
    jax.clear_caches()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory):
    """A headless Chromium for all tests that look at a page."""
    program = (
        shutil.which("chromium")
        or shutil.which("chromium-browser")
        or shutil.which("google-chrome")
    )
    if program is None:
        pytest.skip("no chromium on PATH: pages are not opened (Debian: apt-get install chromium)")
    from tests.headless import Browser

    browser = Browser(program, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()
