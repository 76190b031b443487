"""Float64 is available everywhere in attnlab: conservation laws are checked to rounding error.

JAX only has float64 behind a process-wide switch. Importing a room that computes turns it on; every
array of attnlab then states its own type, so that float32 runs stay float32.
"""

import jax

jax.config.update("jax_enable_x64", True)
