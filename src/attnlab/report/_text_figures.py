"""Figures of the claims about real text: relation, purity with its null, accuracy, labels needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from attnlab.report._bands import band_figure
from attnlab.report._curves import learning_curves
from attnlab.report._needed import needed_figure, ratio_figure
from attnlab.report._page import Figure
from attnlab.report._sample_tables import tuning_table
from attnlab.report._scatter import scatter_figure

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_HEADS = {"text fixed": "fixed head", "text linear": "linear head"}
_TOP = 100
_OVER = "Line: median over seeds. Band: 10–90 % of seeds."


def _course(data: Data, variable: str, *, control: bool = False) -> dict[str, xr.DataArray]:
    """A variable along training by head, and on permuted labels if asked."""
    names = _HEADS | ({"text permuted": "permuted labels"} if control else {})
    return {name: data[key][variable] for key, name in names.items() if key in data}


def _bands(
    data: Data, variables: Mapping[str, str], *, id: str, title: str, label: str, caption: str
) -> Figure:
    """Variables of the fixed head along training."""
    table = data["text fixed"]
    series = {name: table[variable] for variable, name in variables.items()}
    return band_figure(
        table["step"].values,
        series,
        id=id,
        title=title,
        y_label=label,
        caption=f"{caption} {_OVER}",
        singles=0,
    )


def _sen(data: Data) -> list[Figure]:
    top = slice(_TOP)
    groups = {
        name: (
            data[key]["scaled_norm"].isel(rank=top),
            data[key]["predicted_scaled_norm"].isel(rank=top),
        )
        for key, name in _HEADS.items()
    }
    return [
        scatter_figure(
            groups,
            id="text_relation",
            title="Measured and predicted |q||ν| of the 100 words of the highest score",
            x_label="measured |q||ν|",
            y_label="predicted from the score",
            identity=True,
            caption="At the best validation loss, one dot per word and seed. On the line theory "
            "is right.",
        )
    ]


def _purity(data: Data) -> list[Figure]:
    return [
        _bands(
            data,
            {
                "attended_purity": "most attended word",
                "least_attended_purity": "least attended word",
            },
            id="text_purity_course",
            title="Purity of the word that a sentence attends to",
            label="topic purity",
            caption="Mean over training sentences, fixed head. The least attended word is the "
            "control.",
        ),
        _bands(
            data,
            {
                "attended_frequency": "most attended word",
                "least_attended_frequency": "least attended word",
            },
            id="text_frequency_course",
            title="How frequent that word is",
            label="sentences with the word",
            caption="Mean over training sentences, fixed head.",
        ),
    ]


def _excess(data: Data) -> list[Figure]:
    steps = data["text fixed"]["step"].values
    shared = {
        name: values.sel(step=[s for s in steps if s in set(values["step"].values.tolist())])
        for name, values in _course(data, "attended_excess", control=True).items()
    }
    first = {name: values for name, values in shared.items() if values.sizes["step"] == len(steps)}
    return [
        band_figure(
            steps,
            first,
            id="text_excess_course",
            title="Excess purity over a label-permutation null",
            y_label="excess purity of the attended word",
            lines={"0.35": 0.35},
            singles=0,
            caption="What is left of purity when chance, which makes rare words pure, is taken "
            f"off. {_OVER}",
        ),
        _bands(
            data,
            {
                "attended_purity": "purity",
                "attended_null": "what chance gives",
                "attended_excess": "excess",
            },
            id="text_null_course",
            title="Purity, its null and the excess",
            label="purity",
            caption="The late rise of purity is mostly rarity: the null rises with it.",
        ),
    ]


def _accuracy(data: Data) -> list[Figure]:
    table = data["text fixed"]
    return [
        band_figure(
            table["step"].values,
            {
                "training": table["accuracy"],
                "validation": table["accuracy_valid"],
                "test": table["accuracy_test"],
            },
            id="text_accuracy_course",
            title="Accuracy along training, fixed head",
            y_label="accuracy",
            singles=0,
            caption="Judged is the test accuracy at the step of the lowest validation loss. "
            f"{_OVER}",
        )
    ]


def _pooling(data: Data) -> list[Figure]:
    table = data["text pooling"]
    tuned = tuning_table(table, id="text_pooling_tuning", title="What validation data chose")
    return [
        learning_curves(table, id="text_pooling_curves", title="Accuracy against labelled texts"),
        needed_figure(table, id="text_pooling_needed", title="Labels needed"),
        ratio_figure(
            table, id="text_pooling_ratio", title="How many times fewer labels than mean pooling"
        ),
        *([] if tuned is None else [tuned]),
    ]


TEXT: dict[str, Callable[[Data], list[Figure]]] = {
    "lu2021.text_sen": _sen,
    "lu2021.text_purity": _purity,
    "lu2021.text_excess": _excess,
    "lu2021.text_accuracy": _accuracy,
    "liu2021.text": _pooling,
}
