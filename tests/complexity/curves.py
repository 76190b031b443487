"""Curves whose needed samples are known."""

from typing import Any

import numpy as np
import xarray as xr

SIZES = 2.0 ** np.arange(4, 12)


def labelled(values, sizes: Any = SIZES, seeds=None):
    values = np.asarray(values, float)
    coords = {"size": sizes} if seeds is None else {"size": sizes, "seed": seeds}
    return xr.DataArray(values, dims=("seed", "size"), coords=coords)


def constant(curve, seeds=8, sizes: Any = SIZES):
    """The same curve for every seed."""
    return labelled(np.tile(np.asarray(curve, float), (seeds, 1)), sizes)


def noisy(curve, rng, *, seeds=16, own=0.3, shared: Any = 0.2):
    """Lognormal noise: one factor for a whole seed, one for every fit; the median of each size is
    the curve.
    """
    whole = rng.normal(0, shared, (seeds, 1)) if np.isscalar(shared) else shared
    return labelled(curve * np.exp(whole + rng.normal(0, own, (seeds, len(curve)))))
