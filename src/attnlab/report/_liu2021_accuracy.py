"""Figures of the claims of Liu et al. (2021) about accuracy: noisy digits and pooling on the topic
task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attnlab.report._curves import learning_curves
from attnlab.report._digits import attention_pictures, looking_dots
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Figure
from attnlab.report._sample_tables import tuning_table

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]


def _digits(data: Data) -> list[Figure]:
    table = data["digits"]
    tuned = tuning_table(table, id="digits_tuning", title="What validation data chose")
    return [
        learning_curves(
            table, id="digits_curves", title="Accuracy on noisy digits against training images"
        ),
        ratio_figure(
            table, id="digits_ratio", title="How many times fewer images than without a mask"
        ),
        attention_pictures(data["digits pictures"], id="digits_pictures"),
        *looking_dots(table),
        *([] if tuned is None else [tuned]),
    ]


def _pooling(data: Data) -> list[Figure]:
    table = data["topic pooling"]
    tuned = tuning_table(table, id="pooling_tuning", title="What validation data chose")
    figures = [
        learning_curves(
            table,
            id="pooling_curves",
            title="Accuracy on the topic task against training sentences",
        ),
        needed_figure(table, id="pooling_needed", title="Sentences needed for an accuracy of 0.9"),
        *([] if tuned is None else [tuned]),
    ]
    if "topic pooling, descent" in data:
        plain = data["topic pooling, descent"]
        figures += [
            learning_curves(
                plain, id="pooling_descent", title="The same, trained by plain gradient descent"
            ),
            ratio_figure(
                plain,
                id="pooling_descent_ratio",
                title="Sentences saved under plain gradient descent",
            ),
        ]
    return figures


ACCURACY: dict[str, Callable[[Data], list[Figure]]] = {
    "liu2021.digits": _digits,
    "liu2021.topic_pooling": _pooling,
}
