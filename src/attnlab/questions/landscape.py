"""``attnlab landscape``: the stationary points of one problem, certified, and what lies around."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.lab import (
    Answers,
    Bench,
    Data,
    Experiment,
    Grid,
    Option,
    Settings,
    Table,
    TextTable,
    digest,
    variable,
)
from attnlab.papers.liu2021.point_settings import GOOD, MODELS, PointSettings
from attnlab.papers.liu2021.point_sweeps import WORK
from attnlab.report import (
    Card,
    Figure,
    Section,
    band_figure,
    barrier_figure,
    heat_table,
    number,
    scatter_figure,
    surface_figure,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Record

_EQUAL = 1e-6  # an eigenvalue is the penalty's if it differs by no more than this share
_ROWS = 12  # points that the page's table shows
_ENDS = {  # where a start ended, in words, by what `certify` calls it
    "minimum": "at a minimum",
    "saddle": "at a saddle",
    "degenerate": "at a degenerate point",
    "not stationary": "nowhere stationary",
    "no minimum can be certified": "where nothing can be certified",
}


class Starts(Table, label="starts"):
    """Where each start of each problem ended (seed, start): of what is found there, what is shown."""

    kind = variable("minimum, saddle, degenerate, not stationary …, as `certify` calls it")
    error = variable("prediction error there")
    loss = variable("training loss without the penalty")
    norm = variable("norm of the parameters")
    status = variable("how the search ended")
    parameters = variable("how many parameters the model has")


class Points(Table, label="points"):
    """The distinct stationary points of the first problem, minima first, the lowest at the top."""

    kind = variable("what was certified")
    starts = variable("how many starts ended there")
    share = variable("their share of all starts")
    error = variable("prediction error")
    loss = variable("training loss without the penalty")
    smallest = variable("smallest eigenvalue, zero modes of symmetry left out")
    largest = variable("largest eigenvalue")
    flat_trace = variable("trace of the Hessian of the loss alone")
    flat_adaptive_sam = variable("adaptive SAM's measure of flatness")
    flat_petzka = variable("Petzka's measure of flatness")


class Spectrum(Table, label="spectrum"):
    """All eigenvalues at the lowest point, from the largest down, and its certificate."""

    eigenvalue = variable("eigenvalue of the Hessian of the loss with penalty")


class Surface(Table, label="surface"):
    """A plane through the lowest point, along two random directions (a, b)."""

    loss = variable("loss with penalty")


class Descent(Table, label="descent"):
    """Training by Adam, on the plane in which its path varies most (a, b), step by step."""

    loss = variable("loss with penalty on the plane")
    path_a = variable("first coordinate of the path's nearest point on the plane")
    path_b = variable("second coordinate")
    path_loss = variable("loss with penalty on the path itself")
    distance = variable("distance of the path from the plane")
    away = variable("distance of the path from its end")


class Path(Table, label="path"):
    """The straight line between the two lowest minima (t)."""

    loss = variable("loss with penalty")


_COLUMNS = {  # of the page's table
    Points.kind: "kind",
    Points.starts: "starts",
    Points.error: "error",
    Points.loss: "training loss",
    Points.smallest: "λ_min",
    Points.largest: "λ_max",
    Points.flat_trace: "trace",
    Points.flat_adaptive_sam: "adaptive SAM",
    Points.flat_petzka: "Petzka",
}
_PRINTED = (Points.error, Points.loss, Points.smallest, Points.largest, Points.flat_trace)


@dataclass(frozen=True)
class LandscapeSettings(Settings):
    """One kind of problem, and how its stationary points are searched for."""

    model: Annotated[
        str,
        Option(
            "On 8 numbers, of which a gate lets 2 through: baseline, narrow-baseline (given these 2 "
            "alone), known-attention. On 3 words of dimension 2: words-baseline, known-weights, "
            "known-weights-plain, self-attention, multi-layer.",
            "Problem",
            choices=MODELS,
        ),
    ] = "self-attention"
    samples: Annotated[int, Option("Training samples.", "Problem", least=1)] = 128
    noise_std: Annotated[
        float | None,
        Option(
            "Standard deviation of the noise on the outputs (0.2); not with --classes.",
            "Problem",
            least=0,
        ),
    ] = None
    classes: Annotated[
        int, Option("2: label by the sign of the output; 0: regression.", "Problem")
    ] = 0
    l2: Annotated[
        float,
        Option(
            "λ of the penalty ½λ‖θ‖². With 0 the weights mostly escape, and the answer says so.",
            "Problem",
            least=0,
        ),
    ] = 1e-3
    starts: Annotated[
        int,
        Option("Starts of each problem, at the scales 0.1, 1 and 3 in turn.", "Search", least=1),
    ] = 32
    saddles: Annotated[
        bool, Option("Look for stationary points of any kind, not minima.", "Search")
    ] = False
    seeds: Annotated[
        int, Option("Problems; the first is shown in full, all are counted.", "Search", least=1)
    ] = 1

    def __post_init__(self):
        super().__post_init__()
        if self.classes not in (0, 2):
            raise AttnlabError(f"--classes {self.classes}: expected 0 or 2")
        if self.classes and self.noise_std is not None:
            raise AttnlabError(
                "--noise-std has no meaning with --classes: labels are the sign of the teacher's output"
            )

    def points(self) -> PointSettings:
        """The settings of a run; what is stored of its points is what the page shows."""
        given = {k: v for k, v in asdict(self).items() if k != "seeds" and v is not None}
        return PointSettings(**given, keep=True, flat="all")


class Landscape(Experiment[LandscapeSettings]):
    """Find the stationary points of one problem, certify them, and look at what surrounds the best.

    Searches from many starts until the gradient vanishes, then proves from all eigenvalues what
    each point is: minimum, saddle or degenerate. Points that are equal up to symmetry are counted
    once, each with its error, flatness and the share of starts that end there. The page also shows
    the surface around the lowest minimum, its spectrum, and the barrier on the way to the second
    lowest.

    Examples:

        attnlab landscape --model known-attention --starts 9

        attnlab landscape --model self-attention --samples 128 --starts 32

        attnlab landscape --model self-attention --saddles --out saddles
    """

    name = "landscape"
    title = "attnlab: the landscape of one problem"
    settings = LandscapeSettings

    def measure(self, settings: LandscapeSettings, bench: Bench) -> Data:
        """Where every start ended, and the surroundings of the first problem's points."""
        from attnlab.questions._landscape import surroundings

        asked = settings.points()
        default = asdict(PointSettings())
        changed = {k: v for k, v in asdict(asked).items() if v != default[k]}
        plan = Grid({settings.model: changed}, settings.seeds).plan(WORK, self.name)
        results = bench.sweep(plan, digest(changed))
        found = al.lab.split_arms(results.dataset())[settings.model]
        bench.stage("surroundings of the lowest point")
        around = surroundings(asked, plan.root_seed, found.isel(seed=0))
        return {Starts.label: found.drop_vars("theta"), **around}

    def answers(self, settings: LandscapeSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """How many starts are certified, how many minima are good, how many differ, the barrier."""
        starts = Starts.of(data)
        cards = (
            _ends_card(starts, settings),
            _good_card(starts, settings),
            *_point_cards(data),
            *_path_cards(data),
        )
        summary = [card.text for card in cards]
        if Spectrum.label in data:
            certificate = str(Spectrum.of(data).attrs["certificate"])
            lowest = f"{certificate[0].lower()}{certificate[1:]}"
            summary.insert(1, f"The point of the lowest loss with penalty: {lowest}")
        looked = "stationary points of any kind" if settings.saddles else "minima"
        found_in_runs = {
            "noise_std": settings.points().noise_std,
            "parameters": int(np.nanmax(starts[Starts.parameters].values)),
        }
        return Answers(
            question=f"Which {looked} does {settings.model} with {settings.samples} samples have, "
            "how good are they and how flat?",
            cards=cards,
            summary=tuple(summary),
            absent=_absent(settings, data),
            facts=asdict(settings) | found_in_runs,
        )

    def sections(self, record: Record) -> Sequence[Section]:
        """The points, what is proved of the lowest, what surrounds it, and the way to the next."""
        data, absent = record.data, record.about["absent"]
        sections = [_points_section(data, absent)]
        if Points.label in data:
            sections += [
                _certificate(Spectrum.of(data)),
                _surface(Surface.of(data)),
                _descent(Descent.of(data)),
                _between(data, absent),
            ]
        return sections

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """A table of the distinct points, then the answers in sentences."""
        if Points.label in record.data:
            titles = ("point", "kind", "starts", *(_COLUMNS[name] for name in _PRINTED))
            rows = []
            for row in _rows(Points.of(record.data)):
                starts = f"{row[Points.starts]} ({row[Points.share]:.0%})"
                numbers = [number(row[name]) for name in _PRINTED]
                rows.append((str(row["point"]), row[Points.kind], starts, *numbers))
            yield TextTable(titles, tuple(rows))
        yield from record.about["summary"]

    def as_json(self, record: Record) -> dict[str, Any]:
        """The answers and the distinct points."""
        found = Points.label in record.data
        return {"about": record.about, "points": _rows(Points.of(record.data)) if found else []}


def _absent(s: LandscapeSettings, data: Data) -> dict[str, str]:
    """Why there is nothing to show of points, or of a path between two of them."""
    if Points.label not in data:
        reason = "no start ended at a stationary point"
        if s.l2 == 0:
            reason += ": without a penalty (l2 = 0) the weights escape to ever larger norms and "
            reason += "nothing is stationary"
        return {"points": reason}
    if Path.label not in data:
        return {"path": "there are not two distinct certified minima"}
    return {}


def _rows(points: xr.Dataset) -> list[dict[str, Any]]:
    """The distinct points, a record each; what is not a finite number is null."""
    rows = []
    for k in range(points.sizes["point"]):
        row: dict[str, Any] = {"point": k + 1}
        for name in Points.variables:
            value = points[name].values[k].item()
            row[name] = None if isinstance(value, float) and not np.isfinite(value) else value
        rows.append(row)
    return rows


def _ends_card(starts: xr.Dataset, s: LandscapeSettings) -> Card:
    """How many starts were certified, and as what."""
    kinds = starts[Starts.kind].values.ravel()
    proved = int(np.isin(kinds, ["minimum", "saddle"]).sum())
    listed = [
        f"{int((kinds == kind).sum())} {_ENDS.get(kind, kind)}"
        for kind in sorted(set(kinds.tolist()))
    ]
    text = f"{kinds.size} starts end: {', '.join(listed)}."
    escaped = starts[Starts.status].values.ravel() == "weights escape"
    if escaped.any():
        norm = float(np.median(starts[Starts.norm].values.ravel()[escaped]))
        text += (
            f" In {int(escaped.sum())} the weights escape (l2 = 0; median norm {norm:.3g}): no "
            "point to certify."
        )
    elif s.l2 == 0:
        text += (
            " Without a penalty (l2 = 0) the weights escape in general; a point found here is the "
            "exception."
        )
    return Card(
        label="certified",
        text=text,
        headline=f"{proved} of {kinds.size}",
        measure="starts end at a certified point",
        link="points",
    )


def _good_card(starts: xr.Dataset, s: LandscapeSettings) -> Card:
    """The share of minima that are good; over several problems with an interval."""
    minimum = (starts[Starts.kind] == "minimum").transpose("seed", "start").values
    good = minimum & (starts[Starts.error].transpose("seed", "start").values <= GOOD)
    count, found = int(minimum.sum()), np.atleast_1d(minimum.any(axis=1))
    what = "share of wrong labels" if s.classes else "prediction error"
    if count == 0:
        text = f"No start ended at a certified minimum, so no {what} can be counted."
        return Card(label="good minima", text=text)
    text = f"{int(good.sum())} of {count} starts at a certified minimum have a {what} ≤ {GOOD:g}"
    shares = good.sum(axis=1)[found] / minimum.sum(axis=1)[found]
    headline = f"{shares.mean():.2g}"
    if len(starts.seed) == 1:
        # Starts of one problem share its data: they say nothing about other problems.
        text += (
            ". All are starts of one problem, so there is no interval; more problems (--seeds) "
            "give one."
        )
    else:
        unknown = int((~found).sum())
        share = al.stats.share_interval(float(shares.sum()), len(shares), unknown=unknown)
        text += f"; exact 95\u00a0% interval over {len(found)} problems, each with its own share."
        headline += f" [{share.low:.2f}, {share.high:.2f}]"
    return Card(
        label="good minima",
        text=text,
        headline=headline,
        measure=f"of the minima reached have an error ≤ {GOOD:g}",
        link="points",
    )


def _point_cards(data: Data) -> list[Card]:
    """How many points differ, of the first problem."""
    if Points.label not in data:
        return []
    points, starts = Points.of(data), Starts.of(data).sizes["start"]
    minima = points.isel(point=np.flatnonzero(points[Points.kind].values == "minimum"))
    count = minima.sizes["point"]
    others = points.sizes["point"] - count
    text = f"{starts} starts of the first problem: {count} distinct "
    text += "minimum" if count == 1 else "minima"
    text += f", {others} other stationary points" if others else ""
    if count:
        errors, share = minima[Points.error].values, float(minima[Points.share][0])
        text += f"; the lowest has error {errors[0]:.3g} and {share:.0%} of the starts"
        text += f", all have {errors.min():.3g} to {errors.max():.3g}" if count > 1 else ""
    return [
        Card(
            label="distinct minima",
            text=f"{text}.",
            headline=str(count),
            measure="after symmetries are undone",
            link="points",
        )
    ]


def _path_cards(data: Data) -> list[Card]:
    """The barrier between the two lowest minima."""
    if Path.label not in data:
        return []
    barrier, losses = float(Path.of(data).attrs["barrier"]), Path.loss(data).values
    higher = barrier / max(losses[0], losses[-1])
    text = (
        f"Straight between the two lowest minima, aligned, the loss rises by {barrier:.3g}, "
        f"{higher:.2g} times the higher of their losses {losses[0]:.4g} and {losses[-1]:.4g}."
    )
    return [
        Card(
            label="barrier",
            text=text,
            headline=f"{barrier:.3g}",
            measure="between the two lowest minima",
            link="path",
        )
    ]


def _points_section(data: Data, absent: Mapping[str, str]) -> Section:
    figures, body = [_ends_figure(Starts.of(data))], ()
    if Points.label in data:
        figures = [_points_table(Points.of(data)), *figures]
    else:
        body = (f"There is no point to show: {absent['points']}.",)
    return Section(
        id="points",
        title="Which points are there?",
        statement="Where the search ended from each start, certified, and counted once if equal up "
        "to symmetry.",
        body=body,
        figures=tuple(figures),
    )


def _points_table(points: xr.Dataset) -> Figure:
    """The distinct points, a row each."""
    shown = points.isel(point=slice(_ROWS))
    rows = [f"{label}" for label in shown["point"].values]
    cells = [[_cell(shown.isel(point=k), name) for name in _COLUMNS] for k in range(len(rows))]
    count = points.sizes["point"]
    more = f" The first {_ROWS} of {count}; all are in the folder's data." if count > _ROWS else ""
    return heat_table(
        rows,
        list(_COLUMNS.values()),
        cells,
        id="distinct",
        title="The distinct stationary points of the first problem",
        tones=[["" for _ in row] for row in cells],
        caption="Minima first, the lowest loss with penalty at the top. Points that differ by the "
        "order of hidden units or by turning a hidden space are one. Starts: how many of those "
        "tried ended there, no measure of all there could be. λ_min and λ_max are of the loss with "
        "penalty, zero modes of symmetry left out; trace, adaptive SAM and Petzka's measure are of "
        f"the loss alone, at minima only, and smaller is flatter.{more}",
    )


def _cell(point: xr.Dataset, name: str) -> Any:
    if name == Points.starts:
        return f"{int(point[Points.starts])} ({100 * float(point[Points.share]):.3g}\u00a0%)"
    return str(point[name].values) if name == Points.kind else float(point[name])


def _ends_figure(starts: xr.Dataset) -> Figure:
    """Error against training loss, one dot per start."""
    ends = starts.transpose("seed", "start")
    kinds, losses, errors = (ends[n].values for n in (Starts.kind, Starts.loss, Starts.error))
    labels = np.array([[_start_name(starts, seed, k) for k in ends.start] for seed in ends.seed])
    groups = {}
    for kind in sorted({str(kind) for kind in kinds.ravel()}):
        at = kinds == kind
        x, y = (al.lab.labelled(values[at], start=labels[at]) for values in (losses, errors))
        groups[kind] = (x, y)
    known = errors[np.isfinite(errors)]
    wide = known.size > 0 and bool(known.min() > 0) and bool(known.max() > 5 * known.min())
    return scatter_figure(
        groups,
        id="ends",
        title="Error against training loss, one dot per start",
        x_label="training loss (without penalty)",
        y_label="prediction error",
        lines={"good": GOOD},
        log_y=wide,
        caption="The symbol says what was certified. Below the dotted line a point is called good "
        f"(error ≤ {GOOD:g}). Dots of equal points lie on each other.",
    )


def _start_name(starts: xr.Dataset, seed: Any, start: Any) -> str:
    of = f" of problem {int(seed)}" if starts.sizes["seed"] > 1 else ""
    return f"{int(start)}{of}"


def _certificate(spectrum: xr.Dataset) -> Section:
    return Section(
        id="certificate",
        title="What is proved of the lowest point?",
        statement=str(spectrum.attrs["certificate"]),
        body=(_spectrum_words(spectrum),),
        figures=(_spectrum_figure(spectrum),),
    )


def _spectrum_words(spectrum: xr.Dataset) -> str:
    values, attrs = spectrum[Spectrum.eigenvalue].values, spectrum.attrs
    delta, modes, l2 = float(attrs["delta"]), int(attrs["zero_modes"]), float(attrs["l2"])
    up, down = int((values > delta).sum()), int((values < -delta).sum())
    zero = int((np.abs(values) <= delta).sum())
    words = f"Of {len(values)} eigenvalues {up} are positive, {down} negative and {zero} zero to "
    words += f"within δ = {number(delta, 1)}. "
    alone = int((np.abs(values - l2) <= max(delta, _EQUAL * l2)).sum()) if l2 else 0
    if alone:
        words += f"{alone} equal the penalty's λ = {number(l2)}: these directions the data do not "
        words += "see. "
    if modes:
        words += f"{modes} zero modes come from symmetry: along them the model stays the same "
        words += "function."
    else:
        words += "No continuous symmetry leaves a direction flat."
    return words


def _spectrum_figure(spectrum: xr.Dataset) -> Figure:
    """All eigenvalues by size, on a log scale; zeros are left to the words."""
    values, rank = spectrum[Spectrum.eigenvalue].values, spectrum["number"].values
    delta, l2 = float(spectrum.attrs["delta"]), float(spectrum.attrs["l2"])
    up, down = values > delta, values < -delta
    groups: dict[str, tuple[Any, Any]] = {"positive": (rank[up], values[up])}
    if down.any():
        groups["negative (its size)"] = (rank[down], -values[down])
    lines, caption = None, "Of the loss with penalty, from the dense matrix."
    if l2:
        lines = {"penalty λ": l2}
        caption += " The dotted line is the penalty's own curvature: the data do not bend "
        caption += "directions on it."
    return scatter_figure(
        groups,
        id="spectrum",
        title="All eigenvalues of the curvature",
        x_label="number, from the largest",
        y_label="eigenvalue",
        log_y=True,
        lines=lines,
        caption=f"{caption} Zeros are not drawn.",
    )


def _surface(surface: xr.Dataset) -> Section:
    loss = surface[Surface.loss]
    centre, low, high = float(loss.sel(a=0.0, b=0.0)), float(loss.min()), float(loss.max())
    words = f"The loss is {number(centre, 4)} at the centre and up to {number(high)} in this "
    words += "picture. "
    if low < centre:
        words += f"A point of the plane is lower than the centre ({number(low, 4)})."
    else:
        words += "Nothing in this plane is lower; other planes may show what this one does not."
    return Section(
        id="surface",
        title="What lies around it?",
        statement="The loss in a plane through the lowest point found, along two random directions.",
        body=(words,),
        figures=(_surface_figure(loss),),
    )


def _surface_figure(loss: xr.DataArray) -> Figure:
    """Contours of the loss around the lowest point."""
    return surface_figure(
        loss,
        id="surface",
        title="The loss around the lowest point found",
        caption="Loss with penalty; lines are even steps of its logarithm. Each direction is "
        "random, with what feeds each neuron as long as at the point itself (filter-normalised), "
        "so that 1 is a change as large as the weights. Cross: the point.",
        alt=f"Contours of the loss on {loss.sizes['a']} × {loss.sizes['b']} points,",
        x_label="a, first direction",
        y_label="b, second direction",
        centre="the point",
    )


def _descent(descent: xr.Dataset) -> Section:
    attrs = descent.attrs
    words = (
        f"After {int(attrs['steps'])} steps of size {number(attrs['step_size'])} the largest entry "
        f"of the gradient is {number(attrs['gradient'], 2)}: training stopped here, at no certified "
        f"point. The plane holds {100 * float(attrs['share']):.3g}\u00a0% of the path's squared "
        "extent; where the distance from it is large, the heights under the path are not those "
        "that training met."
    )
    return Section(
        id="descent",
        title="How does training get there?",
        statement="Adam from the first start that the search took there, in the plane in which its "
        "path varies most.",
        body=(words,),
        figures=(_descent_figure(descent), _distance_figure(descent)),
    )


def _descent_figure(descent: xr.Dataset) -> Figure:
    """The plane of a training path with the path projected on it."""
    steps = descent["step"].values
    losses, off = descent[Descent.path_loss].values, descent[Descent.distance].values
    remarks = [
        f"step {step}\nloss there {number(loss)}\ndistance from the plane {number(distance)}"
        for step, loss, distance in zip(steps, losses, off, strict=True)
    ]
    return surface_figure(
        descent[Descent.loss],
        id="descent",
        title="Training on the plane of its path",
        caption="Loss with penalty on the plane through the end of training; the line is the "
        "path's nearest points on the plane, a dot per recorded step (evenly spaced in log time). "
        "Cross: where training stopped. Axes are distances between weights.",
        alt=f"The path of {len(steps)} recorded steps over contours",
        x_label="a, along the path's widest direction",
        y_label="b, along the next",
        centre="where training stopped",
        path=(descent[Descent.path_a].values, descent[Descent.path_b].values, remarks),
    )


def _distance_figure(descent: xr.Dataset) -> Figure:
    """How far from the plane the path runs."""
    return band_figure(
        np.maximum(descent["step"].values.astype(float), 0.5),
        {
            "from the plane": descent[Descent.distance].expand_dims("seed"),
            "from its end": descent[Descent.away].expand_dims("seed"),
        },
        id="descent_distance",
        title="How far the path is from the plane",
        x_label="step",
        y_label="distance between weights",
        log_x=True,
        singles=0,
        caption="Step 0 is drawn at one half. Where the two lines are near each other, the picture "
        "above says little of what training met.",
    )


def _between(data: Data, absent: Mapping[str, str]) -> Section:
    title = "Are the lowest minima connected?"
    if Path.label not in data:
        return Section(id="path", title=title, statement=f"Not shown: {absent['path']}.")
    figure = barrier_figure(
        Path.of(data),
        id="line",
        title="The loss on the straight line between the two lowest minima",
        caption="The second is first brought as near to the first as symmetry allows, so that the "
        "barrier is no matter of relabelling.",
        ends="the two minima",
        x_label="t, from the lowest (0) to the next (1)",
        y_label="loss with penalty",
    )
    return Section(
        id="path",
        title=title,
        statement="The straight line between the two distinct minima of the lowest loss with "
        "penalty.",
        figures=(figure,),
    )


question = Landscape()
