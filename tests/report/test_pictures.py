"""Images side by side with heat over them, from made-up images."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.report import Page, PictureRow, Section, pictures_figure, render, write_folder

EVIL = "<img src=x onerror=alert(1)>"
SIDE, HEAT = 6, 5.5
WORDS = {
    "title": "Images",
    "caption": "Some images.",
    "alt": "Some images.",
    "outline_label": "its square",
    "heat_label": "heat",
    "heat_unit": "degrees",
}


def made_up(count: int) -> list[PictureRow]:
    """Images with a square of 2 × 2 pixels that is hot."""
    square = np.zeros((SIDE, SIDE))
    square[2:4, 1:3] = 1
    image = np.full((SIDE, SIDE), 0.5)
    return [
        PictureRow(image, square, (HEAT * square, square), (f"a {k}", EVIL, "right"))
        for k in range(count)
    ]


def figure(count: int = 5):
    table = {"image": list(range(count))}
    return pictures_figure(made_up(count), [EVIL, "even-one"], id="pictures", table=table, **WORDS)


def test_each_image_stands_beside_itself_under_heat_with_words_above():
    drawn = figure()
    assert drawn.choices == ("1 to 4", "5 to 5")
    shown = [trace for trace in drawn.plotly["data"] if trace["visible"]]
    maps = [trace for trace in shown if trace["type"] == "heatmap"]
    assert len(maps) == 4 * (3 + 2)  # the image three times, and two heats over it
    heat = maps[-2]
    assert heat["z"][2][1] == HEAT
    assert (heat["zmin"], heat["zmax"]) == (1, HEAT)
    assert [trace["showscale"] for trace in maps].count(True) == 1
    box, words = shown[-2:]
    assert box["x"][:4] == pytest.approx([1 / 6, 3 / 6, 3 / 6, 1 / 6], abs=1e-5)
    assert box["y"][0] - maps[0]["y0"] == pytest.approx(2 / 6 - 0.5 / 6, abs=1e-5)
    assert words["text"][:3] == [
        "<b>image</b>",
        "<b>&lt;img src=x onerror=alert(1)&gt;</b>",
        "<b>even-<br>one</b>",
    ]
    assert words["text"][3:6] == ["a 0", "&lt;img src=x onerror=alert(1)&gt;", "right"]


def test_weak_heat_stays_pale():
    square = np.ones((SIDE, SIDE))
    row = PictureRow(square, square, (1.1 * square,), ("", ""))
    drawn = pictures_figure([row], ["weak"], id="pictures", table={}, **WORDS)
    assert drawn.plotly["data"][2]["zmax"] == 4


def test_few_images_need_no_choice_and_none_is_refused():
    assert figure(3).choices == ()
    with pytest.raises(AttnlabError, match="no picture to draw"):
        pictures_figure([], ["heat"], id="pictures", table={}, **WORDS)


def test_words_of_data_are_escaped_on_the_page_and_in_the_files(tmp_path):
    page = Page("Images", "", sections=(Section(id="a", title="A", figures=(figure(),)),))
    assert EVIL not in render(page)
    write_folder(page, tmp_path)
    stored = (tmp_path / "figures" / "pictures.svg").read_text("utf-8")
    assert "<img" not in stored
    assert "&lt;img" in stored
