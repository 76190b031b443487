"""Drawings that stand still: well-formed, escaped, and where Plotly would put things."""

from __future__ import annotations

import base64
import re
import struct
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import xarray as xr

import attnlab as al
from attnlab._errors import AttnlabError
from attnlab.report import (
    Drawing,
    Figure,
    PictureRow,
    band_figure,
    heat_table,
    histogram_figure,
    menu_figure,
    paths_figure,
    pictures_figure,
    ratio_map,
    rows_figure,
    scatter_figure,
    surface_figure,
    svg,
)
from attnlab.report._rows import Mark

SVG = "{http://www.w3.org/2000/svg}"


def drawings(word: str) -> list[Figure]:
    """Figures of the kinds that the page of the other tests does not have."""
    cells = xr.DataArray([[1.0, 4.0], [0.5, np.nan]], {"p": [1, 2], "s": [3, 4]}, ("p", "s"))
    loss = xr.DataArray(
        np.add.outer(np.linspace(-1, 1, 7) ** 2, np.linspace(-1, 1, 9) ** 2) + 0.01,
        {"a": np.linspace(-1, 1, 7), "b": np.linspace(-1, 1, 9)},
        ("a", "b"),
    )
    image = np.eye(12)
    words: dict[str, Any] = {"title": word, "caption": word, "alt": word}
    return [
        ratio_map(cells, 0.9 * cells, 1.1 * cells, id="map", title=word, x_label=word, y_label="p"),
        surface_figure(loss, id="loss", x_label=word, y_label="b", centre=word, **words),
        histogram_figure({word: [1, 2, 2, 3], "b": [2]}, id="bars", title=word),
        scatter_figure({word: ([1, 10], [2, 20])}, id="dots", title=word, log_x=True, log_y=True),
        rows_figure(
            [Mark(word, 2.0, 1.0, np.inf, "at least"), Mark("b", 3.0, 2.0, 4.0)],
            id="rows",
            title=word,
            caption=word,
            x_label=word,
            lines={word: 2.5},
        ),
        pictures_figure(
            [PictureRow(image, image, (4 * image,), (word, word))],
            [word],
            id="pictures",
            table={},
            outline_label=word,
            heat_label=word,
            heat_unit=word,
            **words,
        ),
    ]


def parsed(figure: Figure) -> ElementTree.Element:
    return ElementTree.fromstring(svg(figure, standalone=True))


def test_every_kind_is_well_formed_and_escaped(evil, evil_page):
    drawn = [figure for section in evil_page.sections for figure in section.figures]
    for figure in [*drawn, *drawings(evil)]:
        root = parsed(figure)
        texts = "".join("".join(text.itertext()) for text in root.iter(f"{SVG}text"))
        assert evil in texts, figure.id
        assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
            *("svg", "g", "path", "rect", "circle", "text", "tspan", "image"),
            *("clipPath", "title", "desc"),
        }
        assert "NaN" not in svg(figure), figure.id
        assert "nan" not in re.sub('href="[^"]*"', "", svg(figure)), figure.id


def places(figure: Figure) -> list[tuple[float, float]]:
    return [
        (float(c.attrib["cx"]), float(c.attrib["cy"])) for c in parsed(figure).iter(f"{SVG}circle")
    ]


def test_dots_stand_where_their_numbers_are():
    x, y = [0.0, 1.0, 4.0], [10.0, 30.0, 20.0]
    dots = places(scatter_figure({"a": (x, y)}, id="f", title="t"))[:3]
    across = np.polyfit(x, [px for px, _ in dots], 1, full=True)
    up = np.polyfit(y, [py for _, py in dots], 1, full=True)
    assert across[0][0] > 0 > up[0][0]
    assert max(across[1].sum(), up[1].sum()) < 0.02  # rounded to tenths of a pixel


def test_a_logarithmic_axis_shows_ratios_as_distances():
    figure = scatter_figure({"a": ([1, 10, 100], [1, 1, 1])}, id="f", title="t", log_x=True)
    first, second, third = (px for px, _ in places(figure)[:3])
    assert second - first == pytest.approx(third - second, abs=0.2)
    labels = ["".join(text.itertext()) for text in parsed(figure).iter(f"{SVG}text")]
    assert {"1", "10", "100"} <= set(labels)


def test_ticks_are_round_and_inside():
    figure = band_figure([0, 7300], [[0.0, 1.0]], id="f", title="t")
    labels = ["".join(text.itertext()) for text in parsed(figure).iter(f"{SVG}text")]
    assert {"0", "2000", "4000", "6000"} <= set(labels)
    assert "8000" not in labels


def test_gaps_stay_gaps_and_hidden_runs_are_not_drawn():
    y = xr.DataArray(
        [[0.0, 1.0, np.nan, 2.0, 3.0]], {"seed": [3], "step": range(5)}, ("seed", "step")
    )
    figure = paths_figure({"a": (y.step, y)}, id="f", title="t")
    lines = [p.attrib["d"] for p in parsed(figure).iter(f"{SVG}path") if p.get("fill") == "none"]
    assert lines[0].count("M") == 2
    band = svg(band_figure([0, 1], np.arange(16.0).reshape(8, 2), id="f", title="t"))
    assert "single runs" not in band


def test_a_menu_shows_its_first_choice():
    each = {
        name: band_figure([0, 1], [[1.0, 2.0]], id="f", title="t", y_label=name) for name in "ab"
    }
    figure = menu_figure(each, id="f", title="t")
    assert svg(figure).count("<path") == svg(each["a"]).count("<path")


def test_a_heat_map_is_a_picture_of_its_values(tmp_path):
    figure = drawings("w")[-1]
    images = list(parsed(figure).iter(f"{SVG}image"))
    if not images:  # small pictures are drawn cell by cell
        assert len(list(parsed(figure).iter(f"{SVG}rect"))) > 100
    surface = next(one for one in drawings("w") if one.id == "loss")
    (image,) = parsed(surface).iter(f"{SVG}image")
    data = base64.b64decode(image.attrib["href"].partition(",")[2])
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (160, 160)


def test_a_table_keeps_its_words_within_its_columns():
    figure = heat_table(["a"], ["b"], [["x" * 400]], id="f", title="t", tones=[["good"]])
    labels = ["".join(text.itertext()) for text in parsed(figure).iter(f"{SVG}text")]
    assert any(label.endswith("…") and len(label) < 150 for label in labels)


def test_saved_in_each_form_and_refused_in_others(tmp_path):
    pytest.importorskip("matplotlib")
    for figure in drawings("ν ≤ ½ & <b>"):
        drawing = Drawing(figure)
        path = drawing.save(tmp_path / f"{figure.id}.pdf")
        assert path.read_bytes().startswith(b"%PDF")
        assert path.read_bytes() == drawing.save(tmp_path / "again.pdf").read_bytes()
        ElementTree.parse(drawing.save(tmp_path / f"{figure.id}.svg"))
        assert drawing.save(tmp_path / "f.csv").read_text("utf-8")
        assert drawing._repr_html_() == drawing.svg
    with pytest.raises(AttnlabError, match=r"'f\.png': expected a name that ends in \.svg"):
        Drawing(drawings("w")[0]).save(tmp_path / "f.png")
    with pytest.raises(AttnlabError, match="cannot write"):
        Drawing(drawings("w")[0]).save(tmp_path / "nowhere" / "f.svg")


def test_a_figure_of_a_stored_result(tmp_path):
    from tests.lab.test_claim import toy_claim, toy_sweep

    al.reproduce([toy_claim(toy_sweep(tmp_path))], tmp_path / "out", processes=0)
    entry = al.lab.read_record(tmp_path / "out").content["claims"][0]
    drawing = al.figure(entry["id"], tmp_path / "out")
    assert drawing.figure.id == f"{entry['id']}.criteria"
    assert al.figure(f"{entry['id']}/{drawing.figure.id}", tmp_path / "out").svg == drawing.svg
    stored = (tmp_path / "out" / "figures" / f"{drawing.figure.id}.svg").read_text("utf-8")
    assert stored == drawing.svg
    with pytest.raises(AttnlabError, match=r"no figure under 'x\.y': .* has "):
        al.figure("x.y", tmp_path / "out")
    with pytest.raises(AttnlabError, match=r"no figure under 'other': .* has the figures"):
        al.figure(f"{entry['id']}/other", tmp_path / "out")
    with pytest.raises(AttnlabError, match="nowhere"):
        al.figure("x.y", Path(tmp_path / "nowhere"))
