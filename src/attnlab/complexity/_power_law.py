"""Power laws with a floor, fitted to many curves at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

RATES = (0.02, 5.0)
_GRID, _ZOOM, _ZOOMS = 64, 9, 12


@dataclass(frozen=True, eq=False)
class PowerLaws:
    """``e(n) = floor + scale · (n / unit)^(−rate)``, one per curve; arrays of shape (curves,)."""

    floor: np.ndarray
    scale: np.ndarray
    rate: np.ndarray
    unit: float

    def at(self, sizes: np.ndarray) -> np.ndarray:
        """e(n): shape (curves, sizes)."""
        return (
            self.floor[:, None] + self.scale[:, None] * (sizes / self.unit) ** -self.rate[:, None]
        )

    def size_for(self, level: float) -> np.ndarray:
        """The n with e(n) = level: shape (curves,); infinite if the floor is at or above the level."""
        above = level - self.floor
        reached = (above > 0) & (self.scale > 0)
        ratio = np.where(reached, above, 1.0) / np.where(reached, self.scale, 1.0)
        with np.errstate(over="ignore"):
            return np.where(reached, self.unit * np.exp(-np.log(ratio) / self.rate), np.inf)

    @property
    def at_edge(self) -> np.ndarray:
        """Whether the rate lies at an end of the search range: the curve is then not a power law."""
        return (self.rate < RATES[0] * 1.01) | (self.rate > RATES[1] / 1.01)


def fit_power_laws(sizes: np.ndarray, curves: np.ndarray, floor: float | None) -> PowerLaws:
    """Minimise ``Σ_n ((e(n) − curve) / curve)²`` with scale ≥ 0 and a known or fitted floor ≥ 0.

    For a given rate the model is linear in floor and scale, so only the rate is searched: on a grid
    over [0.02, 5], then on finer grids around the best. There is no initial guess, and all curves,
    shape (curves, sizes), are fitted together.
    """
    unit = float(np.exp(np.log(sizes).mean()))
    x = np.log(sizes / unit)
    logs = np.broadcast_to(
        np.linspace(np.log(RATES[0]), np.log(RATES[1]), _GRID), (len(curves), _GRID)
    )
    step = logs[0, 1] - logs[0, 0]
    each = np.arange(len(curves))
    for _ in range(_ZOOMS):
        best = logs[each, np.argmin(_profile(x, curves, np.exp(logs), floor)[0], axis=1)]
        logs = np.clip(best[:, None] + step * np.linspace(-1, 1, _ZOOM), *np.log(RATES))
        step = step * 2 / (_ZOOM - 1)
    cost, floors, scales = _profile(x, curves, np.exp(logs), floor)
    best = np.argmin(cost, axis=1)
    return PowerLaws(floors[each, best], scales[each, best], np.exp(logs)[each, best], unit)


def _profile(
    x: np.ndarray, curves: np.ndarray, rates: np.ndarray, floor: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best cost, floor and scale for each of ``rates``, shape (curves, rates)."""
    # Relative deviations are floor·u + scale·v − 1 with u = 1/curve: the normal equations of two
    # unknowns, by sums over sizes.
    u = 1 / curves[:, None, :]
    v = np.exp(-rates[:, :, None] * x) * u
    vv, uv, v1 = (v * v).sum(-1), (u * v).sum(-1), v.sum(-1)
    uu, u1 = (u * u).sum(-1), u.sum(-1)
    if floor is not None:
        floors = np.full(rates.shape, floor)
    else:
        free = uu * vv - uv**2
        floors = np.where(
            free > 1e-14 * uu * vv, (u1 * vv - v1 * uv) / np.where(free > 0, free, 1.0), 0.0
        )
        # The cost is convex: if its minimum violates floor ≥ 0 or scale ≥ 0, the constrained one
        # lies on the boundary, floor 0 or scale 0. At scale 0 the floor is u1 / uu.
        floors = np.clip(floors, 0.0, u1 / uu)
    scales = np.maximum((v1 - floors * uv) / vv, 0.0)
    cost = ((floors[..., None] * u + scales[..., None] * v - 1) ** 2).sum(-1)
    return cost, floors, scales
