"""Whether two installations compute the same: versions of what results depend on."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping

from attnlab import __version__
from attnlab.runs._environment import processor
from attnlab.runs._record import origin

_PACKAGES = ("jax", "jaxlib", "numpy")


def versions() -> dict[str, str | None]:
    """What results depend on, as it is in this process; ``None`` where it is not known.

    >>> versions()["attnlab"] == __version__
    True
    """
    found: dict[str, str | None] = {"attnlab": __version__, "attnlab's commit": origin()["commit"]}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    # A third number of Python changes no bit of a result.
    return {**found, "python": ".".join(platform.python_version_tuple()[:2]), "processor": processor()}


def differences(here: Mapping[str, str | None], there: Mapping[str, str | None]) -> dict[str, tuple[str, str]]:
    """What is not the same, as (here, there). What one of the two does not know is not compared, nor is the processor.

    >>> differences({"jax": "0.7.0", "python": "3.11"}, {"jax": "0.6.2", "python": "3.11"})
    {'jax': ('0.7.0', '0.6.2')}
    """
    pairs = {name: (mine, there.get(name)) for name, mine in here.items() if name != "processor"}
    return {name: (a, b) for name, (a, b) in pairs.items() if a is not None and b is not None and a != b}
