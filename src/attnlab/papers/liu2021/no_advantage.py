"""Where attention cannot help, the measurement says so."""

from __future__ import annotations

from attnlab.lab import Claim, Control, Criterion, Data, Source, given_interval
from attnlab.papers import PROTOTYPE
from attnlab.papers.liu2021 import PAPER
from attnlab.papers.liu2021.curve_sweeps import end, tuning_cautions
from attnlab.papers.liu2021.sample_sweeps import (
    FEATURES,
    HOW,
    SMALLEST,
    OnMlp,
    StaticMask,
    self_attention,
    static_mask,
)
from attnlab.report import Figure, learning_curves, ratio_rows

_SAVING = 1.25  # a ratio from which on a saving is worth anything
_NO_SAVING = given_interval <= _SAVING


def figures(data: Data) -> list[Figure]:
    """The ratios in rows, and the learning curves behind them."""
    masks, other = StaticMask.of(data), OnMlp.of(data)
    at_p = masks.sel(features=SMALLEST)
    wrong = masks.sel(student="wrong-mask")
    ratios = {
        **{
            f"wrong mask, p = {p}": wrong.sel(features=p) for p in wrong["features"].values.tolist()
        },
        "self-attention on an MLP teacher": other.sel(student="self-attention", teacher="mlp"),
        f"control: the true mask, p = {SMALLEST}": at_p.sel(student="known-attention"),
    }
    return [
        ratio_rows(
            ratios,
            id="none_ratio",
            title="Samples saved where nothing can be saved",
            x_label="ratio of needed samples",
            lines={"": 1.0, f"{_SAVING:g}": _SAVING},
            caption=f"Left of the line at 1 samples are lost, right of {_SAVING:g} a saving is "
            "worth having. Bars: 95 % intervals over paired seeds.",
        ),
        learning_curves(
            masks.sel(features=[SMALLEST], student=["baseline", "known-attention", "wrong-mask"]),
            id="none_curves",
            title="A mask that cannot help, beside the one that does",
        ),
        learning_curves(other, id="none_mlp", title="Self-attention on an MLP teacher"),
    ]


claim = Claim(
    id="liu2021.no_advantage",
    rank=6,
    title="Where attention cannot help, the measurement says so",
    statement="A wrong mask, and self-attention on an MLP's data, save no samples.",
    why="Attention saves samples by taking work off the network, and here it takes none: a wrong "
    "mask hides the features that matter, and an MLP as the teacher attends to nothing. It can "
    "even cost samples, because what it adds has to be undone or learned.",
    finding={
        "holds": "Where attention cannot help, it saves no samples",
        "fails": "Some samples are saved where attention cannot help",
        "inconclusive": "Whether attention saves samples where it cannot help is undecided",
    },
    source=Source("ours", note=f"cases in which the argument of {PAPER} gives no advantage"),
    provenance=PROTOTYPE,
    sweeps=(static_mask, self_attention),
    criteria=(
        *(
            Criterion(
                f"ratio, wrong mask, p = {p}",
                end(StaticMask, StaticMask.ratio, student="wrong-mask", features=p),
                _NO_SAVING,
            )
            for p in FEATURES["quick"]
        ),
        Criterion(
            "ratio, self-attention on an MLP teacher",
            end(OnMlp, OnMlp.ratio, student="self-attention", teacher="mlp"),
            _NO_SAVING,
        ),
    ),
    controls=(
        Control(
            "true mask",
            "The true mask must not be called useless.",
            (
                Criterion(
                    f"ratio, known mask at p = {SMALLEST}",
                    end(StaticMask, StaticMask.ratio, student="known-attention", features=SMALLEST),
                    _NO_SAVING,
                ),
            ),
        ),
    ),
    how_measured=f"{HOW} “No advantage” means that the ratio's interval excludes a saving of "
    f"{_SAVING:g}× or more.",
    refuted_by="An interval that allows a saving where there can be none.",
    notes=(
        "A vacuous mask, which lets everything through, is the baseline's own program: its ratio is "
        "exactly 1, which the tests check.",
    ),
    cautions=tuning_cautions({"masks": StaticMask, "MLP teacher": OnMlp}),
    figures=figures,
)
