"""Build the compiled row-sum kernel; everything else is in ``pyproject.toml``.

The kernel is optional: without a C++ compiler the package installs all the same and sums rows with
XLA's own operations, several times slower (``attnlab.models.kernel()`` says which kernel is in use,
and why).

It is a shared library that XLA calls, not a Python module: one wheel serves every version of
Python. XLA refuses handlers built against newer headers than its own, so that the build takes those
of the oldest supported jaxlib (``pyproject.toml``), and one wheel serves every later version of JAX.
"""

from pathlib import Path

import jaxlib
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext


class BuildLibrary(build_ext):
    """Builds ``_native.so``, whose name says nothing of Python's ABI."""

    def get_ext_filename(self, fullname: str) -> str:
        """The path of the library in the package."""
        return str(Path(*fullname.split("."))) + ".so"


class PlatformWheel(bdist_wheel):
    """A wheel for one platform and all versions of Python."""

    def get_tag(self) -> tuple[str, str, str]:
        """The tag ``py3-none-PLATFORM``."""
        return "py3", "none", super().get_tag()[2]


setup(
    cmdclass={"build_ext": BuildLibrary, "bdist_wheel": PlatformWheel},
    ext_modules=[
        Extension(
            "attnlab.models._native",
            sources=["src/attnlab/models/_native.cc"],
            depends=["setup.py", "pyproject.toml"],
            include_dirs=[str(Path(jaxlib.__file__).parent / "include")],
            # -O3: GCC 12 vectorises loops of unknown length only there. -ffp-contract=off: the same
            # results on every machine. -g0 and -s: a binary of 0.2 instead of 2.7 MB.
            extra_compile_args=["-std=c++17", "-O3", "-ffp-contract=off", "-g0", "-w"],
            extra_link_args=["-s"],
            language="c++",
            optional=True,
        )
    ],
)
