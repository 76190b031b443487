"""Build the compiled row-sum kernel; everything else is in ``pyproject.toml``.

The extension is optional: without a C++ compiler the package installs all the same and sums rows
with XLA's own operations, several times slower (``attnlab.models.kernel()`` says which kernel is in
use, and why).
"""

from pathlib import Path

import jaxlib
from setuptools import Extension, setup

setup(
    ext_modules=[
        Extension(
            "attnlab.models._native",
            sources=["src/attnlab/models/_native.cc"],
            include_dirs=[str(Path(jaxlib.__file__).parent / "include")],
            # -O3: GCC 12 vectorises loops of unknown length only there. -ffp-contract=off: the same
            # results on every machine. -g0 and -s: a binary of 0.2 instead of 2.7 MB.
            extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=off", "-g0", "-w"],
            extra_link_args=["-s"],
            language="c++",
            optional=True,
        )
    ]
)
