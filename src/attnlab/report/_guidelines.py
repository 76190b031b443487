"""The figure of the claim about the entropy bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from attnlab.report._page import Figure
from attnlab.report._scatter import scatter_figure
from attnlab.report._text import number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]


def _entropy(data: Data) -> list[Figure]:
    rows = data["entropy bound"]
    words = rows["words"].values
    groups = {
        f"{int(t)} words": (rows["norm"].values[words == t], rows["entropy"].values[words == t])
        for t in sorted(set(words[np.isfinite(words)].tolist()))
    }
    figure = scatter_figure(
        groups,
        id="entropy_rows",
        title="Entropy of random rows against the norm of their logits",
        log_x=True,
        x_label="norm of the centred logits σ",
        y_label="entropy, nats",
        caption=f"Some of the rows. The least distance from the bound over all rows is "
        f"{number(float(rows['least'].min()))}, by rounding; with β 1.5 times too large it would "
        "be "
        f"{number(float(rows['wrong'].min()))}.",
    )
    return [figure]


GUIDELINE_FIGURES: dict[str, Callable[[Data], list[Figure]]] = {"beyond.entropy_bound": _entropy}
