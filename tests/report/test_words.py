"""Numbers and users' texts in words."""

from __future__ import annotations

import numpy as np
import pytest

from attnlab.report import Mark, number, rows_figure


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.5, "−0.5"),
        (99999, "99999"),
        (123456, "1.23 × 10⁵"),
        (1e-15, "1 × 10⁻¹⁵"),
        (0.00099999, "1 × 10⁻³"),
        (1234.56, "1235"),
        (np.float64("nan"), "–"),
        (True, "yes"),
        ("kept", "kept"),
    ],
)
def test_numbers_read_well(value, text):
    assert number(value) == text


def test_labels_cannot_speak_plotlys_language():
    evil = "<a href='x'>%{x}</a>&lt;$"
    figure = rows_figure(
        [Mark(evil, 1.0, 0.5, 2.0, said=evil)], id="f", title="t", caption="", x_label="x"
    )
    safe = "&lt;a href='x'&gt;&#37;{x}&lt;/a&gt;&amp;lt;&#36;"
    assert figure.plotly["data"][0]["text"] == [f"{safe}<br>{safe}"]
