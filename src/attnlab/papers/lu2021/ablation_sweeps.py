"""Which parts must be trained? The sweep that both claims about ablations share, and its measures."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import attnlab as al
from attnlab.lab import Criterion, Data, Grid, Measure, Scale, Sweep, Table, every_run, variable
from attnlab.papers.lu2021.sweeps import SMALL, WORK

if TYPE_CHECKING:
    import xarray as xr

EARLY, LATE = 3000, 6000  # steps at which losses are compared; training ends at the later one


class Trained(Table):
    """Training with some of the parts frozen; means are over the topic words."""

    loss = variable("training loss")
    accuracy_test = variable("test accuracy")
    mean_score = variable("mean score")
    mean_norm = variable("mean norm")
    mean_attention = variable("mean attention on a topic word in its own sentences")


class Ablation(Trained, label="ablation"):
    """Keys or embeddings frozen, along training."""


class Combinations(Trained, label="combinations"):
    """Each choice of trained parts, at the last step."""


PARTS = ("query", "keys", "embeddings", "head")
_TRAINED = {"fixed": ("keys", "embeddings"), "linear": ("keys", "embeddings", "head")}
_FROZEN = {"full": (), "keys frozen": ("keys",), "embeddings frozen": ("embeddings",)}


def _ablation_grid(scale: Scale, seeds: int) -> Grid:
    base = SMALL[scale] | {"record": "curves", "embedding_std": 0.1, "steps": LATE, "rows": 120}
    arms, counts = {}, {}
    for head in _TRAINED:
        for ablation in _FROZEN:
            label = f"{head} {ablation}"
            arms[label] = base | {"head": head, "trained": _kept(head, ablation)}
            counts[label] = seeds
    if scale == "paper":
        for head, parts in _other_combinations():
            label = f"{head}: {' + '.join(parts)}"
            arms[label] = base | {"head": head, "trained": parts}
            counts[label] = min(seeds, 4)
    return Grid(arms, counts)


def _kept(head: str, ablation: str) -> tuple[str, ...]:
    """The parts that an ablation still trains."""
    return tuple(part for part in _TRAINED[head] if part not in _FROZEN[ablation])


def _other_combinations() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Head and trained parts of all choices that are not ablations."""
    known = {(head, frozenset(_kept(head, name))) for head in _TRAINED for name in _FROZEN}
    for count in range(1, len(PARTS) + 1):
        for parts in combinations(PARTS, count):
            head = "linear" if "head" in parts else "fixed"
            if (head, frozenset(parts)) not in known:
                yield head, parts


def _measure_ablation(arms: Data) -> Data:
    curves = {label: _measure_trained(run) for label, run in arms.items()}
    heads = []
    for head in _TRAINED:
        each = [curves[f"{head} {ablation}"] for ablation in _FROZEN]
        heads.append(al.lab.side_by_side(each, "setting", _FROZEN))
    ends = [one.isel(step=-1, drop=True) for one in curves.values()]
    return {
        Ablation.label: al.lab.side_by_side(heads, "head", _TRAINED),
        Combinations.label: al.lab.side_by_side(ends, "setting", curves),
    }


def _measure_trained(run: xr.Dataset) -> xr.Dataset:
    return al.lab.dataset(
        {
            Trained.loss: run.loss,
            Trained.accuracy_test: run.accuracy_test,
            Trained.mean_score: run.score.mean("word"),
            Trained.mean_norm: run.norm.mean("word"),
            Trained.mean_attention: run.attention.mean("word"),
        }
    )


ablation = Sweep("ablation", WORK, _ablation_grid, _measure_ablation, (Ablation, Combinations))


def loss_ratio(head: str, above: str, below: str, step: int = LATE) -> Measure:
    """Loss of one setting over that of another, seed by seed."""

    def measure(data: Data) -> xr.DataArray:
        loss = Ablation.loss(data, head=head, step=step)
        return loss.sel(setting=above, drop=True) / loss.sel(setting=below, drop=True)

    return measure


def ratio_to_next_seed(head: str) -> Measure:
    """Loss of the full model of the next seed over that of the full model, at the last step."""

    def measure(data: Data) -> xr.DataArray:
        loss = Ablation.loss(data, head=head, step=LATE, setting="full")
        return loss.roll(seed=-1, roll_coords=False) / loss

    return measure


def order_is_kept(head: str) -> tuple[Criterion, ...]:
    """In every seed the loss is lowest if all is trained, highest with frozen embeddings."""
    pairs = (("keys frozen", "full"), ("embeddings frozen", "keys frozen"))
    return tuple(
        Criterion(
            f"loss, {above} over {below}, step {step}, smallest",
            loss_ratio(head, above, below, step),
            every_run >= 1.0,
        )
        for step in (EARLY, LATE)
        for above, below in pairs
    )
