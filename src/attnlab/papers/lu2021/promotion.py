"""Mutual promotion: score and norm of a topic word rise together, and each makes the other rise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import Claim, Control, Criterion, Data, Measure, Provenance, Source, every_run
from attnlab.papers import PROTOTYPE
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.ablation_sweeps import Ablation, ablation
from attnlab.papers.lu2021.figures import BAND
from attnlab.papers.lu2021.sweeps import (
    LargerStart,
    LargestStart,
    Reference,
    head_name,
    reference,
    starts,
)
from attnlab.report import (
    DotRow,
    Figure,
    band_figure,
    dots_figure,
    menu_figure,
    paths_figure,
    scatter_figure,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab import Variable

_HALF = 0.5  # of its initial loss: when growth with a part frozen is compared with the full model's
_NORM, _SCORE = 0.9, 0.5  # growth with a part frozen, over that of the full model
_SET = Provenance(
    "after", "2026-11-19", "the runs of version 0.1, seeds 0 to 7", moved_from="Spearman ≥ 0.999"
)
_CAUSAL = Provenance("after", "2026-11-19", "the runs of version 0.1, seeds 0 to 7")
_QUANTITIES = {
    "norm": (Ablation.mean_norm, "keys frozen", _NORM),
    "score": (Ablation.mean_score, "embeddings frozen", _SCORE),
}


def growth(quantity: str, *, next_seed: bool = False) -> Measure:
    """Growth of a quantity with the other part frozen over the full model's, when the full model's
    loss has halved; or of the full model of the next seed over that of the full model.
    """
    variable, frozen, _ = _QUANTITIES[quantity]

    def measure(data: Data) -> xr.DataArray:
        gained = _gained(data, variable)
        full = gained.sel(setting="full", drop=True)
        other = gained.sel(setting=frozen, drop=True)
        if next_seed:
            other = full.roll(seed=-1, roll_coords=False)
        loss = Ablation.loss(data, setting="full").drop_vars("setting")
        return al.dynamics.at_loss(other / full, loss / loss.isel(step=0, drop=True), _HALF)

    return measure


def _gained(data: Data, variable: Variable) -> xr.DataArray:
    values = variable(data)
    return values - values.isel(step=0, drop=True)


def causal(note: str = "", *, next_seed: bool = False) -> tuple[Criterion, ...]:
    """What is asked of growth with one of the two parts frozen."""
    return tuple(
        Criterion(
            f"growth of the {quantity}, {note or frozen} over full, at half the loss",
            growth(quantity, next_seed=next_seed),
            every_run <= limit,
            provenance=_CAUSAL,
        )
        for quantity, (_, frozen, limit) in _QUANTITIES.items()
    )


def falls(table: type[Reference] | type[LargerStart], note: str = "") -> tuple[Criterion, ...]:
    """Neither score nor norm may fall between two rows."""
    return tuple(
        Criterion(
            f"share of negative increments of the {name}{note}",
            measured,
            every_run <= 0.0,
            provenance=_SET,
        )
        for name, measured in (("score", table.score_falls), ("norm", table.norm_falls))
    )


def figures(data: Data) -> list[Figure]:
    """Each word's path in the plane of norm and score, how often either falls, and what each does
    with the other frozen.
    """
    return [_paths(data), _falls(data), _frozen(data), _growth(data)]


def _paths(data: Data) -> Figure:
    runs, larger, largest = Reference.of(data), LargerStart.of(data), LargestStart.of(data)
    norm = runs[Reference.scaled_norm] / runs[Reference.query_norm]
    pairs = {}
    for head in runs["head"].values.tolist():
        score = runs[Reference.score].sel(head=head)
        pairs[f"std 1e-6, {head_name(head)}"] = (norm.sel(head=head), score)
    pairs["std 0.3, fixed head (control)"] = (larger[LargerStart.norm], larger[LargerStart.score])
    pairs["std 1.0, fixed head"] = (largest[LargestStart.norm], largest[LargestStart.score])
    drawn = {
        name: paths_figure(
            {"a word along training": pair},
            id="p",
            title=name,
            x_label="norm |ν|",
            y_label="score s",
            ends=True,
            most=16,
        )
        for name, pair in pairs.items()
    }
    return menu_figure(
        drawn,
        id="promotion_paths",
        title="Score and norm rise together",
        choice_label="Start",
        caption="Each thin line is a topic word of one seed from start to end of training (the "
        "dot). From small embeddings paths go up and to the right, but some under the two-layer head "
        "turn back for a while; from large ones they may first go back.",
        alt="Paths of topic words in the plane of norm and score.",
    )


def _falls(data: Data) -> Figure:
    runs = Reference.of(data)
    rows = []
    for name, of_runs, of_control in (
        ("score", Reference.score_falls, LargerStart.score_falls),
        ("norm", Reference.norm_falls, LargerStart.norm_falls),
    ):
        shares = {
            head_name(head): runs[of_runs].sel(head=head) for head in runs["head"].values.tolist()
        }
        shares["control: std 0.3"] = of_control(data)
        rows += [DotRow(f"{name}, {label}", one.max("word"), 0.0) for label, one in shares.items()]
    return dots_figure(
        rows,
        id="promotion_falls",
        title="How often score and norm fall",
        x_label="share of negative increments, worst word",
        caption="One dot per seed: of the word that falls most often, the share of increments "
        "between recorded steps that are negative. Zero: it only rises.",
    )


def _frozen(data: Data) -> Figure:
    runs = Ablation.of(data)
    drawn = {}
    for head in runs["head"].values.tolist():
        for quantity, (variable, frozen, _) in _QUANTITIES.items():
            gained = _gained(data, variable).sel(head=head)
            halved = _halved(runs[Ablation.loss].sel(head=head, setting="full"))
            drawn[f"{quantity}, {head_name(head)}"] = band_figure(
                runs["step"].values,
                {name: gained.sel(setting=name) for name in ("full", frozen)},
                id="f",
                title=quantity,
                y_label=f"growth of the mean {quantity} of topic words",
                marks={"loss halved": halved},
                singles=4,
            )
    return menu_figure(
        drawn,
        id="promotion_frozen",
        title="Without the one the other grows slower",
        choice_label="Show",
        caption=f"Embeddings start with standard deviation 0.1. {BAND} The upright line is where "
        "they are compared: the median step at which the full model's loss has halved. Later the "
        "full model has nothing left to learn, and the norm with frozen keys passes it: without "
        "attention only a longer embedding lowers the loss.",
        alt="Growth of mean score or norm against step, with a part frozen and without.",
    )


def _halved(loss: xr.DataArray) -> float:
    """The median step at which the loss has halved; the last step if it never has."""
    relative = loss / loss.isel(step=0, drop=True)
    steps = loss["step"].broadcast_like(loss).astype(float)
    found = float(al.dynamics.at_loss(steps, relative, _HALF).median())
    return found if found == found else float(loss["step"].values[-1])


def _growth(data: Data) -> Figure:
    norm, score = growth("norm")(data), growth("score")(data)
    other_norm, other_score = (growth(one, next_seed=True)(data) for one in ("norm", "score"))
    heads = norm["head"].values.tolist()
    groups = {head_name(head): (norm.sel(head=head), score.sel(head=head)) for head in heads}
    groups |= {
        f"control: another seed, {head_name(head)}": (
            other_norm.sel(head=head),
            other_score.sel(head=head),
        )
        for head in heads
    }
    return scatter_figure(
        groups,
        id="promotion_growth",
        title="Growth with a part frozen, over the full model's",
        x_label="growth of the norm, keys frozen over full",
        y_label="growth of the score, embeddings frozen over full",
        marks={f"{_NORM:g}": _NORM},
        lines={f"{_SCORE:g}": _SCORE},
        caption="One dot per seed, when the full model's loss has halved; left of the upright line "
        "and below the level one both grow slower. The control divides the growth of the next seed's "
        "full model by that of the full model.",
    )


claim = Claim(
    id="lu2021.promotion",
    rank=3,
    title="Score and norm of a topic word only rise, and each makes the other rise",
    statement="From small embeddings, a topic word's score and norm only ever rise; until the loss "
    "has halved, each rises slower where the other is frozen.",
    why="Each of the two feeds the other because attention is a factor of the embedding's "
    "gradient, and the embedding a factor of the score's: a higher score makes the embedding "
    "grow faster, a longer embedding the score. Freeze one, and until the loss has halved the "
    "other is slower. Never falling back is another matter: under the two-layer head all "
    "topics share the hidden units, and while one topic starts to rise, words of another can "
    "lose a little.",
    finding={
        "holds": "Score and norm of a topic word only rise, and each makes the other rise faster",
        "fails": "Score and norm promote each other, but not without setbacks",
        "inconclusive": "Whether score and norm only ever rise together is undecided",
    },
    source=Source("stated", PAPER, "section 4, mutual promotion"),
    provenance=PROTOTYPE,
    sweeps=(reference, starts, ablation),
    criteria=(*falls(Reference), *causal()),
    controls=(
        Control(
            "large embeddings",
            "From embeddings of standard deviation 0.3 misaligned words first lose both.",
            falls(LargerStart, ", std 0.3"),
        ),
        Control(
            "full against full",
            "Two full models of different seeds must not be told apart in this way.",
            causal("full of another seed", next_seed=True),
        ),
    ),
    how_measured="Increments between recorded steps of every topic word, in all runs and heads. "
    "The first step of a misaligned word lowers its score by some 1e-9, which rows 50 steps apart "
    "do not see. Growth is that of the topic words' mean since the start, from embeddings of "
    "standard deviation 0.1, fixed and linear head; settings of a seed share data and start.",
    refuted_by="One topic word of one run whose score or norm falls between two rows, or a part "
    "that grows as fast with the other frozen.",
    notes=(
        "Until version 0.1 the claim asked for a rank correlation of score and norm of at least "
        "0.999, which is 1 also where both fall: 76 % of the words that dip from std 0.3 had it.",
        "Seeds 1000 to 1003 refute the first half under the two-layer head, in two of four runs: while "
        "another topic starts to rise, words that are known already lose score and norm for 150 to 350 "
        "steps, by 0.02 to 0.09. Under the fixed and the linear head nothing ever fell.",
        "The comparison with frozen keys is for the time in which the loss falls. At the end of "
        "training the norm with frozen keys is the larger one, by a factor of 1.4 to 2.3.",
    ),
    figures=figures,
)
