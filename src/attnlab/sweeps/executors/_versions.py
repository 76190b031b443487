"""Whether two installations compute the same: versions of what results depend on."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping

from attnlab import __version__
from attnlab.sweeps.executors._environment import processor

_PACKAGES = ("jax", "jaxlib", "numpy")


def versions() -> dict[str, str]:
    """What results depend on, as it is in this process.

    >>> versions()["attnlab"] == __version__
    True
    """
    found: dict[str, str] = {"attnlab": __version__}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    # A third number of Python changes no bit of a result.
    return {
        **found,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "processor": processor(),
    }


def differences(here: Mapping[str, str], there: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """What is not the same, as (here, there); the processor is not compared.

    >>> differences({"jax": "0.7.0", "python": "3.11"}, {"jax": "0.6.2", "python": "3.11"})
    {'jax': ('0.7.0', '0.6.2')}
    """
    pairs = {
        name: (mine, there.get(name, "unknown"))
        for name, mine in here.items()
        if name != "processor"
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
