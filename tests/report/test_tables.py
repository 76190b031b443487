"""Tables with tinted cells, plain columns, maps of ratios."""

from __future__ import annotations

import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import heat_table, plain_table, ratio_map


def test_a_table_is_tinted_by_tone_or_by_size():
    by_tone = heat_table(
        ["GD"], ["Σs", "SEN"], [["kept", 0.2]], id="f", title="t", tones=[["good", ""]]
    )
    assert by_tone.grid is not None
    assert by_tone.grid.cells == (("kept", "0.2"),)
    by_size = heat_table(["GD"], ["a", "b", "c"], [[1e-9, 0, "word"]], id="f", title="t")
    assert by_size.grid is not None
    assert by_size.grid.tones == (("h0", "", ""),)


def test_columns_are_shown_in_words_and_saved_as_numbers():
    figure = plain_table(
        ["a", "b"],
        {"share": [0.5, None], "name": ["x", "y"]},
        id="f",
        title="t",
        shown={"share": ["50 %", "–"]},
        tones={"share": ["h3", ""]},
    )
    assert figure.grid is not None
    assert figure.grid.cells == (("50 %", "x"), ("–", "y"))
    assert figure.grid.tones == (("h3", ""), ("", ""))
    assert figure.table == {"": ["a", "b"], "share": [0.5, None], "name": ["x", "y"]}


def test_ratios_whose_interval_excludes_one_are_bold():
    grid = {"noise": [0.0, 1.0], "words": [1, 2]}
    ratio = xr.DataArray([[0.5, 1.0], [2.0, 8.0]], grid, ("noise", "words"))
    figure = ratio_map(
        ratio, 0.9 * ratio, 1.1 * ratio, id="f", title="t", x_label="words", y_label="noise"
    )
    (heat,) = figure.plotly["data"]
    assert heat["text"] == [["<b>0.5</b>", "1"], ["<b>2</b>", "<b>8</b>"]]
    assert heat["z"] == [[-1.0, 0.0], [1.0, 2.0]]
    assert heat["customdata"][0][1] == "1 [0.9, 1.1]"
    assert figure.table["words"] == [1, 2, 1, 2]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: heat_table(["a"], ["b"], [[1, 2]], id="f", title="t"), "do not fit"),
        (
            lambda: heat_table(["a"], ["b"], [[1]], id="f", title="t", tones=[["fine"]]),
            "got the tone",
        ),
    ],
)
def test_mistakes_are_named(draw, message):
    with pytest.raises(AttnlabError, match=message):
        draw()
