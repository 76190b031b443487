"""One thread, strict types and shapes: silent broadcasting and silent rounding are errors in tests."""

import os

os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

from jaxtyping import install_import_hook

install_import_hook(["attnlab.tasks", "attnlab.models", "attnlab.training", "attnlab.dynamics"], "beartype.beartype")

import jax  # noqa: E402

jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_numpy_rank_promotion", "raise")
