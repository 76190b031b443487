"""The page of noisy digits, from made-up curves and pictures."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab.complexity import Question, tabulate
from attnlab.report import attention_pictures, digits_page, render, write_digits

EVIL = "<img src=x onerror=alert(1)>"
SIZES = np.array([40, 80, 160])
SIDE, COUNT = 6, 5
ABOUT: dict[str, Any] = {
    "cards": [
        {"label": "known-mask against baseline", "text": EVIL, "verdict": "saves", "link": "ratio"}
    ],
    "protocol": {
        "images": f"Made so {EVIL}.",
        "sizes": "Attention has fewer sizes.",
        "depends": "On clutter.",
    },
    "summary": ["A sentence."],
    "command": "attnlab digits",
    "attnlab": "0.1.0",
    "settings": {"step_sizes": [0.01], "weight_decays": [0.1]},
}


def arm(rise: float, looks: float | None = None, sizes: np.ndarray = SIZES) -> xr.Dataset:
    """What one student's fits leave: accuracy that rises like ``rise`` × n."""
    rng = np.random.default_rng(0)
    accuracy = np.clip(rise * sizes + 0.005 * rng.normal(size=(8, len(sizes))), 0, 1)
    data = {
        "accuracy": accuracy,
        "valid_loss": 1 - accuracy,
        "train_loss": 1 - accuracy,
        "settling": 0 * accuracy,
        "step_size": 0 * accuracy + 0.01,
        "weight_decay": 0 * accuracy + 0.1,
        "attention_on_digit": 0 * accuracy + (np.nan if looks is None else looks),
    }
    found = xr.Dataset(
        {name: (("seed", "size"), v) for name, v in data.items()}, {"seed": range(8), "size": sizes}
    )
    return found.assign(digit_area=("seed", np.full(8, 0.11)))


def made_up(attending: tuple[str, ...] = (EVIL,), images: int = COUNT) -> dict[str, xr.Dataset]:
    arms = {("baseline", "digits"): arm(0.002), ("known-mask", "digits"): arm(0.01)}
    arms |= {(name, "digits"): arm(0.004, 0.4, SIZES[1:]) for name in attending}
    question = Question(0.3, "accuracy", falling=False, statistic="mean")
    names = ["baseline", "known-mask", *attending]
    mask = np.zeros((images, SIDE, SIDE))
    mask[:, 2:4, 1:3] = 1
    grid = ("example", "row", "column")
    pictures = xr.Dataset(
        {
            "image": (grid, np.full(mask.shape, 0.5)),
            "mask": (grid, mask),
            "label": ("example", np.arange(images)),
            "predicted": (("student", "example"), np.zeros((len(names), images), int)),
        },
        {"student": names},
        {"seed": 0, "size": 160},
    )
    if attending:
        maps = np.stack([0.75 * mask / 4 + 0.25 / SIDE**2] * len(attending))
        pictures = pictures.assign_coords(attending=list(attending)).assign(
            attention_map=(("attending", *grid), maps)
        )
    return {"digits": tabulate(arms, question, dim="task"), "pictures": pictures}


def test_every_part_is_on_the_page_and_names_are_escaped(tmp_path):
    data = made_up()
    page = digits_page(data, ABOUT)
    figures = {section.id: [figure.id for figure in section.figures] for section in page.sections}
    assert figures == {
        "pictures": ["pictures", "on_digit", "read"],
        "curves": ["learning_curves"],
        "needed": ["needed", "answers"],
        "ratio": ["ratio"],
        "fits": ["tuning"],
        "again": [],
    }
    text = render(page)
    assert EVIL not in text
    for word in ("Attention has fewer sizes.", "On clutter.", "attnlab digits", "pill saves"):
        assert word in text, word
    assert write_digits(tmp_path, data, ABOUT).read_text("utf-8") == text
    assert "<img" not in json.dumps(
        json.loads((tmp_path / "figures" / "pictures.json").read_text("utf-8"))
    )


def test_each_image_stands_beside_its_attention_with_truth_and_answer():
    figure = attention_pictures(made_up()["pictures"], id="pictures")
    assert figure.choices == ("1 to 4", "5 to 5")
    shown = [trace for trace in figure.plotly["data"] if trace["visible"]]
    maps = [trace for trace in shown if trace["type"] == "heatmap"]
    assert len(maps) == 4 * 3  # the image, the image again, and the heat over it
    heat = maps[-1]
    assert heat["z"][2][1] == pytest.approx(0.75 * SIDE**2 / 4 + 0.25)
    assert heat["zmin"] == 1
    box, words = shown[-2:]
    assert box["x"][:4] == pytest.approx([1 / 6, 3 / 6, 3 / 6, 1 / 6], abs=1e-5)
    assert box["y"][0] - maps[0]["y0"] == pytest.approx(2 / 6 - 0.5 / 6, abs=1e-5)
    share = 100 * (0.75 + 0.25 * 4 / 36)
    assert words["text"][2:6] == [
        "a 0",
        f"reads 0 ✓ · {share:.0f} %",
        "a 1",
        f"reads 0 ✗ · {share:.0f} %",
    ]


def test_the_table_and_the_words_say_what_the_pictures_show():
    figure = attention_pictures(made_up()["pictures"], id="pictures")
    assert figure.table["digit"] == [0, 1, 2, 3, 4]
    assert figure.table["read as"] == [0] * 5
    assert figure.table["attention on the digit"] == pytest.approx([0.777778] * 5)
    assert figure.table["even attention"] == pytest.approx([4 / 36] * 5, abs=1e-5)
    assert "1 of 5 read right, 78% of the attention on the digit" in figure.alt


def test_dots_stand_against_even_attention():
    page = digits_page(made_up(("patch-attention",)), ABOUT)
    dots = page.sections[0].figures[1]
    assert set(dots.table["row"]) == {"patch-attention, 80 images", "patch-attention, 160 images"}
    assert set(dots.table["good"]) == {"yes"}
    assert {trace["name"] for trace in dots.plotly["data"]} == {
        "more than even attention",
        "median",
    }


def test_few_images_need_no_choice_and_no_attention_no_maps():
    assert attention_pictures(made_up(images=3)["pictures"], id="pictures").choices == ()
    page = digits_page(made_up(()), {})
    assert [figure.id for figure in page.sections[0].figures] == ["read"]
    assert "No student of this run attends" in page.sections[0].body[0]
    assert render(page)
