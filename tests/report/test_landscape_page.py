"""The page of a landscape, from made-up points."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from attnlab.report import landscape_page, render, write_landscape

EVIL = "<img src=x onerror=alert(1)>"
ABOUT: dict[str, Any] = {
    "cards": [{"label": "certified", "text": EVIL, "headline": "2 of 3", "link": "points"}],
    "summary": ["A sentence."],
    "command": "attnlab landscape",
    "settings": {"l2": 0.001},
    "attnlab": "0.1.0",
}


def starts(kinds: list[str], seeds: int = 1) -> xr.Dataset:
    count = len(kinds)
    numbers = np.tile(np.linspace(0.01, 0.5, count), (seeds, 1))
    columns = {"kind": np.array([kinds] * seeds), "error": numbers, "loss": 2 * numbers}
    data = {name: (("seed", "start"), values) for name, values in columns.items()}
    return xr.Dataset(data, {"seed": range(seeds), "start": range(count)})


def made_up(points: int = 2) -> dict[str, xr.Dataset]:
    names = ("error", "loss", "value", "smallest", "largest", "share", "flat_trace", "flat_petzka")
    columns: dict[str, Any] = {name: np.linspace(0.1, 0.2, points) for name in names}
    columns |= {"kind": ["minimum"] * points, "starts": np.ones(points, int)}
    table = xr.Dataset(
        {name: ("point", values) for name, values in columns.items()},
        {"point": range(1, points + 1)},
    )
    a = np.linspace(-1, 1, 5)
    t = np.linspace(0, 1, 5)
    told = {"certificate": f"A minimum {EVIL}.", "zero_modes": 1, "delta": 1e-9, "l2": 1e-3}
    return {
        "starts": starts(["minimum", "minimum", EVIL]),
        "points": table,
        "surface": xr.Dataset(
            {"loss": (("a", "b"), 1 + a[:, None] ** 2 + 2 * a**2)}, {"a": a, "b": a}
        ),
        "spectrum": xr.Dataset(
            {"eigenvalue": ("number", [2.0, 1e-3, 0.0, -0.5])}, {"number": range(1, 5)}, told
        ),
        "descent": xr.Dataset(
            {
                "loss": (("a", "b"), 1 + a[:, None] ** 2 + 2 * a**2),
                **{
                    name: ("step", [1.0, 0.5, 0.0])
                    for name in ("path_a", "path_b", "away", "path_loss")
                },
                "distance": ("step", [0.2, 0.1, 0.0]),
            },
            {"a": a, "b": a, "step": [0, 10, 100]},
            {"share": 0.9, "gradient": 1e-4, "steps": 100, "step_size": 0.01},
        ),
        "path": xr.Dataset(
            {"loss": ("t", 1 + t * (1 - t))}, {"t": t}, {"barrier": 0.25, "place": 0.5}
        ),
    }


def test_every_part_is_on_the_page_and_names_are_escaped(tmp_path):
    data = made_up()
    page = landscape_page(data, ABOUT)
    figures = {section.id: [figure.id for figure in section.figures] for section in page.sections}
    assert figures == {
        "points": ["distinct", "ends"],
        "certificate": ["spectrum"],
        "surface": ["surface"],
        "descent": ["descent", "descent_distance"],
        "path": ["line"],
        "again": [],
    }
    text = render(page)
    assert EVIL not in text
    assert "2 are positive, 1 negative and 1 zero" in text
    assert "1 equal the penalty" in text
    assert "1 zero modes come from symmetry" in text
    assert write_landscape(tmp_path, data, ABOUT).read_text("utf-8") == text


def test_the_surface_has_a_along_x_and_its_centre_marked():
    figure = next(
        s for s in landscape_page(made_up(), ABOUT).sections if s.id == "surface"
    ).figures[0]
    contour, centre = figure.plotly["data"]
    assert np.allclose(contour["z"][2], np.log10(1 + np.linspace(-1, 1, 5) ** 2), atol=1e-5)
    assert (centre["x"], centre["y"]) == ([0], [0])


def test_a_long_table_is_cut_and_says_so():
    figure = landscape_page(made_up(20), ABOUT).sections[0].figures[0]
    assert figure.grid is not None
    assert len(figure.grid.rows) == 12
    assert "The first 12 of 20" in figure.caption


def test_nothing_stationary_is_said_in_words():
    about = ABOUT | {"absent": {"points": "the weights escape"}}
    page = landscape_page({"starts": starts(["not stationary"] * 3, seeds=2)}, about)
    assert [section.id for section in page.sections] == ["points", "again"]
    assert page.sections[0].body == ("There is no point to show: the weights escape.",)
    assert "start 1 of problem 1" in page.sections[0].figures[0].table["label"]


def test_a_training_path_is_drawn_with_its_distance_from_the_plane():
    section = next(s for s in landscape_page(made_up(), ABOUT).sections if s.id == "descent")
    plane, distance = section.figures
    path = plane.plotly["data"][1]
    assert (path["x"], path["y"]) == ([1.0, 0.5, 0.0], [1.0, 0.5, 0.0])
    assert "distance from the plane 0.2" in path["text"][0]
    assert "at no certified point" in section.body[0]
    lines = {trace["name"]: trace["y"] for trace in distance.plotly["data"]}
    assert lines["from the plane"] == [0.2, 0.1, 0.0]
