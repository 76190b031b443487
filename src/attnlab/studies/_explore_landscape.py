"""The landscape of one problem in a folder: its stationary points, certified, and what lies around
the best of them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.stats import share_interval
from attnlab.studies._exploration import Exploration, card, checked_folder, store_exploration
from attnlab.studies._landscape import GOOD
from attnlab.studies._points import WORK, Made, PointSettings, make_problem
from attnlab.studies._study import arm_plan, split_arms
from attnlab.sweeps import AbstractExecutor, Event, provenance, run_plan

if TYPE_CHECKING:
    from attnlab.landscape import Certificate, Problem

_ELSEWHERE = ("arm", "seed", "flat", "keep", "drawn", "shuffled", "test_points")
_GRID = 31  # points of the surface in each direction
_PATH = 80  # recorded steps of a training path
_ESCAPE = (
    ": without a penalty (l2 = 0) the weights escape to ever larger norms and nothing is stationary"
)
_ENDS = {
    "minimum": "at a minimum",
    "saddle": "at a saddle",
    "degenerate": "at a degenerate point",
    "not stationary": "nowhere stationary",
    "no minimum can be certified": "where nothing can be certified",
}
_OF_POINT = (
    "kind",
    "error",
    "loss",
    "value",
    "norm",
    "gradient",
    "smallest",
    "largest",
    "zero_modes",
    "down",
)


def explore_landscape(
    settings: PointSettings,
    folder: str | Path,
    *,
    seeds: int = 1,
    processes: int | None = None,
    executor: AbstractExecutor | None = None,
    progress: bool | None = None,
    on_event: Callable[[Event], None] | None = None,
    command: str = "",
    keep: bool = False,
) -> Exploration:
    """Stationary points from many starts on ``seeds`` problems; writes ``landscape.json`` and the
    data.

    The data are ``"starts"``, where each start of each problem (seed, start) ended, as
    ``find_points`` returns it; and of the first problem: ``"points"``, the distinct stationary
    points, minima first and the lowest first, with the ``share`` of starts that ended in each;
    around the first of these ``"surface"`` (a, b), ``"spectrum"`` (all eigenvalues) and, if there
    are two distinct minima, ``"path"``, the straight line between the two best after alignment; and
    ``"descent"``, how Adam trains from the first of the starts that ended there: the plane in which
    its path varies most, the path projected on it, and its distance from the plane. What there is
    nothing to draw for is left out. Interrupted and called again, it goes on where it was; ``keep``
    as in ``run_plan``.
    """
    out = checked_folder(folder, "landscape")
    if seeds < 1 or settings.noise_std < 0:
        raise AttnlabError(f"seeds={seeds} must be ≥ 1, noise_std={settings.noise_std} must be ≥ 0")
    begun = time.monotonic()
    settings = replace(settings, keep=True, flat="all")
    default = asdict(PointSettings())
    changed = {
        k: v for k, v in asdict(settings).items() if v != default[k] and k not in ("arm", "seed")
    }
    name = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:8]
    plan = arm_plan(WORK, "landscape", {settings.model: changed}, seeds)
    results = run_plan(
        plan,
        out / "runs" / name,
        processes=processes,
        executor=executor,
        progress=progress,
        on_event=on_event,
        keep=keep,
    )
    if results.interrupted:
        return Exploration(out, {}, interrupted=True, kind="landscape")
    if results.finished == 0:
        raise AttnlabError(f"all {results.failed} runs failed: {results.failures[0].cause}")
    found = split_arms(results.dataset())[settings.model]
    data = {"starts": found.drop_vars("theta")}
    certificate = _look(settings, plan.root_seed, found, data)
    about = _about(settings, data, certificate, time.monotonic() - begun, command)
    return store_exploration(out, "landscape", data, about, [results])


def _look(
    s: PointSettings, root_seed: int, found: xr.Dataset, data: dict[str, xr.Dataset]
) -> Certificate | None:
    """Add to the data what there is to see at the first problem's points; the certificate of the
    best one.
    """
    import jax
    import jax.numpy as jnp

    from attnlab.landscape import certify

    first = found.isel(seed=0)
    points = distinct_points(first)
    if points.sizes["point"] == 0:
        return None
    data["points"] = points
    key = jax.random.fold_in(jax.random.key(root_seed), int(first.seed))
    made = make_problem(s, key)
    thetas = first.theta.values[points.first_start.values]
    best = float(np.nanmin(points.error.values))
    certificate = certify(
        made.problem, jnp.asarray(thetas[0]), error=float(points.error[0]), best=best
    )
    data["surface"], data["spectrum"] = _around(made, thetas[0], certificate)
    data["descent"] = trained_path(made.problem, made.starts[int(points.first_start[0])])
    if int((points.kind == "minimum").sum()) > 1:
        data["path"] = _between(made, thetas[0], thetas[1])
    return certificate


def distinct_points(starts: xr.Dataset) -> xr.Dataset:
    """One entry per group of equal stationary points, minima first, then by L; of ``find_points``
    of one problem.

    ``share`` is the share of these starts that ended there, ``first_start`` the first of them.

    >>> ends = {"kind": ["saddle", "minimum", "minimum", "not stationary"], "group": [0, 1, 1, -1],
    ...         "value": [3.0, 1.0, 1.0, 2.0]}
    >>> found = distinct_points(xr.Dataset({name: ("start", values) for name, values in ends.items()}))
    >>> found.kind.values.tolist(), found.share.values.tolist(), found.first_start.values.tolist()
    (['minimum', 'saddle'], [0.5, 0.25], [1, 0])
    """
    group = starts.group.values
    numbers = [number for number in dict.fromkeys(group.tolist()) if number >= 0]
    places = [np.flatnonzero(group == number) for number in numbers]
    places.sort(
        key=lambda at: (
            str(starts.kind.values[at[0]]) != "minimum",
            float(starts.value.values[at[0]]),
        )
    )
    firsts = np.array([at[0] for at in places], int)
    flat = [str(name) for name in starts.data_vars if str(name).startswith("flat_")]
    columns = {name: starts[name].values[firsts] for name in (*_OF_POINT, *flat) if name in starts}
    columns |= {"starts": np.array([len(at) for at in places], int), "first_start": firsts}
    columns["share"] = columns["starts"] / len(group)
    return xr.Dataset(
        {k: ("point", v) for k, v in columns.items()}, {"point": np.arange(1, len(firsts) + 1)}
    )


def _around(
    made: Made, theta: np.ndarray, certificate: Certificate
) -> tuple[xr.Dataset, xr.Dataset]:
    """The surface in a plane of two random filter-normalised directions, and all eigenvalues."""
    import jax.numpy as jnp

    from attnlab.landscape import exact_spectrum, filter_directions, surface

    point = jnp.asarray(theta)
    seen = surface(
        made.problem, point, directions=filter_directions(made.problem, point), points=_GRID
    )
    spectrum = exact_spectrum(made.problem, point)
    values = xr.Dataset(
        {"eigenvalue": ("number", spectrum.values[::-1].copy())},
        {"number": np.arange(1, len(spectrum.values) + 1)},
    )
    told = {
        "kind": certificate.kind,
        "zero_modes": certificate.zero_modes,
        "delta": certificate.delta,
    }
    told |= {"l2": float(made.problem.l2), "certificate": str(certificate)}
    return seen.data.assign_attrs(kind=certificate.kind), values.assign_attrs(told)


def trained_path(
    problem: Problem, start: Any, *, steps: int = 3000, step_size: float = 0.01
) -> xr.Dataset:
    """Training by Adam from a start, seen in the plane in which its path varies most about its end.

    - ``loss`` (a, b): L on the plane; ``path_a``, ``path_b`` (step): the path's nearest points on
      it; ``distance`` (step): how far from the plane it runs, ``away``: how far from its end;
      ``path_loss`` (step): L on the path;
    - attributes ``share``, of the path's squared extent that the plane holds, and ``gradient``,
      ‖∇L‖_∞ at its end.
    """
    import jax.numpy as jnp

    from attnlab.landscape import Parameters, path_directions, surface
    from attnlab.training import Adam, Logarithmic, Loss, train_model

    def loss(model: Any, _: Any) -> Any:
        return problem.value(problem.flatten(model))

    run = train_model(
        lambda key: problem.model(start),
        loss,
        jnp.zeros(1),
        steps=steps,
        optimizer=Adam(step_size),
        record=(Loss(), Parameters()),
        when=Logarithmic(_PATH),
        trained=lambda model: problem.trained,
        progress=False,
    )
    path = run.data.theta.isel(seed=0).values
    end, directions = jnp.asarray(path[-1]), path_directions(path)
    extent = np.abs((path - path[-1][None]) @ np.asarray(directions).T).max(axis=0)
    first, second = (float(1.15 * reach) or 1.0 for reach in np.maximum(extent, 0.1 * extent.max()))
    seen = surface(problem, end, directions=directions, span=(first, second), points=_GRID)
    along = seen.project(path).rename(point="step", a="path_a", b="path_b")
    found = seen.data.assign({str(name): along[name] for name in along.data_vars})
    found = found.assign(path_loss=("step", run.data.loss.isel(seed=0).values))
    found = found.assign_coords(step=run.data.step.values)
    away = float((along.away**2).sum())
    held = 1 - float((along.distance**2).sum()) / away if away else 1.0
    gradient = float(jnp.max(jnp.abs(problem.gradient(end))))
    return found.assign_attrs(share=held, gradient=gradient, steps=steps, step_size=step_size)


def _between(made: Made, a: np.ndarray, b: np.ndarray) -> xr.Dataset:
    """The loss on the straight line from a to the copy of b nearest to it."""
    import jax.numpy as jnp

    from attnlab.landscape import aligned, straight_path

    start = jnp.asarray(a)
    end = jnp.asarray(aligned(made.problem, jnp.asarray(b), start))
    path = straight_path(made.problem, start, end)
    told = {"barrier": path.barrier, "place": path.place, "height": path.height}
    told |= {
        "distance": float(np.linalg.norm(np.asarray(end) - a)),
        "unaligned": float(np.linalg.norm(b - a)),
    }
    return path.data.assign_attrs(told)


def _about(
    s: PointSettings,
    data: dict[str, xr.Dataset],
    certificate: Certificate | None,
    seconds: float,
    command: str,
) -> dict[str, Any]:
    starts = data["starts"]
    cards = [_ends_card(starts, s), _good_card(starts, s), *_point_cards(data), *_path_cards(data)]
    absent = {}
    if certificate is None:
        absent["points"] = "no start ended at a stationary point" + (_ESCAPE if s.l2 == 0 else "")
    elif "path" not in data:
        absent["path"] = "there are not two distinct certified minima"
    summary = [each["text"] for each in cards]
    if certificate is not None:
        summary.insert(
            1,
            "The point of the lowest loss with penalty: "
            f"{str(certificate)[0].lower()}{str(certificate)[1:]}",
        )
    looked = "stationary points of any kind" if s.saddles else "minima"
    given = {k: v for k, v in asdict(s).items() if k not in _ELSEWHERE}
    return {
        "title": "attnlab: the landscape of one problem",
        "question": f"Which {looked} does {s.model} with {s.samples} samples have, how good are "
        "they and how flat?",
        "summary": summary,
        "cards": cards,
        "absent": absent,
        "settings": {
            **{k: list(v) if isinstance(v, tuple) else v for k, v in given.items()},
            "parameters": int(np.nanmax(starts.parameters.values)),
            "problems": starts.sizes["seed"],
        },
        "command": command,
        **provenance(seconds),
    }


def _ends_card(starts: xr.Dataset, s: PointSettings) -> dict[str, Any]:
    """How many starts were certified, and as what."""
    kinds = starts.kind.values.ravel()
    proved = int(np.isin(kinds, ["minimum", "saddle"]).sum())
    listed = [
        f"{int((kinds == kind).sum())} {_ENDS.get(kind, kind)}"
        for kind in sorted(set(kinds.tolist()))
    ]
    text = f"{kinds.size} starts end: {', '.join(listed)}."
    escaped = starts.status.values.ravel() == "weights escape"
    if escaped.any():
        norm = float(np.median(starts.norm.values.ravel()[escaped]))
        text += f" In {int(escaped.sum())} the weights escape (l2 = 0; median norm {norm:.3g}): no point to certify."
    elif s.l2 == 0:
        text += " Without a penalty (l2 = 0) the weights escape in general; a point found here is the exception."
    headline = f"{proved} of {kinds.size}"
    return card("certified", text, headline, "starts end at a certified point") | {"link": "points"}


def _good_card(starts: xr.Dataset, s: PointSettings) -> dict[str, Any]:
    minimum = (starts.kind == "minimum").transpose("seed", "start").values
    good = minimum & (starts.error.transpose("seed", "start").values <= GOOD)
    count, found = int(minimum.sum()), minimum.any(axis=1)
    what = "share of wrong labels" if s.classes else "prediction error"
    if count == 0:
        return card(
            "good minima", f"No start ended at a certified minimum, so no {what} can be counted."
        )
    text = f"{int(good.sum())} of {count} starts at a certified minimum have a {what} ≤ {GOOD:g}"
    shares = good.sum(axis=1)[found] / minimum.sum(axis=1)[found]
    headline = f"{shares.mean():.2g}"
    if len(starts.seed) == 1:
        # Starts of one problem share its data: they say nothing about other problems.
        text += ". All are starts of one problem, so there is no interval; more problems (--seeds) give one."
    else:
        share = share_interval(float(shares.sum()), len(shares), unknown=int((~found).sum()))
        text += f"; exact 95\u00a0% interval over {len(found)} problems, each with its own share."
        headline += f" [{share.low:.2f}, {share.high:.2f}]"
    return card(
        "good minima", text, headline, f"of the minima reached have an error ≤ {GOOD:g}"
    ) | {"link": "points"}


def _point_cards(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    """How many points differ, of the first problem."""
    if "points" not in data:
        return []
    points, starts = data["points"], data["starts"].sizes["start"]
    minima = points.isel(point=np.flatnonzero(points.kind.values == "minimum"))
    others = points.sizes["point"] - minima.sizes["point"]
    count = minima.sizes["point"]
    text = f"{starts} starts of the first problem: {count} distinct {'minimum' if count == 1 else 'minima'}"
    text += f", {others} other stationary points" if others else ""
    if count:
        errors = minima.error.values
        text += (
            f"; the lowest has error {errors[0]:.3g} and {float(minima.share[0]):.0%} of the starts"
        )
        text += f", all have {errors.min():.3g} to {errors.max():.3g}" if count > 1 else ""
    headline = str(count)
    return [
        card("distinct minima", f"{text}.", headline, "after symmetries are undone")
        | {"link": "points"}
    ]


def _path_cards(data: dict[str, xr.Dataset]) -> list[dict[str, Any]]:
    if "path" not in data:
        return []
    barrier, losses = float(data["path"].attrs["barrier"]), data["path"].loss.values
    higher = barrier / max(losses[0], losses[-1])
    text = (
        f"Straight between the two lowest minima, aligned, the loss rises by {barrier:.3g}, "
        f"{higher:.2g} times the "
        f"higher of their losses {losses[0]:.4g} and {losses[-1]:.4g}."
    )
    return [
        card("barrier", text, f"{barrier:.3g}", "between the two lowest minima") | {"link": "path"}
    ]
