"""Build the compiled row-sum kernel; everything else is in ``pyproject.toml``.

The extension is optional: without a C++ compiler the package installs all the same and sums rows
with XLA's own gather and scatter, several times slower (``attnlab.models.kernel()`` says which one
is in use).
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
            extra_compile_args=["-std=c++17", "-O2", "-ffp-contract=off", "-w"],
            language="c++",
            optional=True,
        )
    ]
)
