"""How results and progress show in a notebook."""

from __future__ import annotations

import html
import re
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import jax
import numpy as np
import pytest
import xarray as xr

import attnlab as al
from attnlab import _progress
from attnlab._html import card, interval_bar, shares_bar, sparkline
from attnlab.lab import Record
from attnlab.landscape import Problem, certify
from attnlab.stats import Interval
from attnlab.sweeps import Plan, run_plan

TROUBLE = '<script>alert("x")</script>'


def parsed(text: str) -> ET.Element:
    """The markup, which must be well formed and must not set colours of its own."""
    assert not re.search(r"(?<!&)#", text)
    assert "background" not in text
    return ET.fromstring(text)


def words(element: ET.Element) -> str:
    return " ".join(element.itertext())


def points(element: ET.Element) -> list[list[tuple[float, float]]]:
    """The places of every drawn line."""
    return [
        [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", ""))]
        for path in element.iter("path")
    ]


def test_text_is_escaped_everywhere():
    shown = card(TROUBLE, {TROUBLE: TROUBLE}, sparkline([([0, 1], [0, 1])], label=TROUBLE), TROUBLE)
    assert "<script" not in shown
    assert words(parsed(shown)).count(TROUBLE) == 4


def test_a_sparkline_goes_up_where_the_numbers_do():
    (line,) = points(
        ET.fromstring(sparkline([([1, 10, 100], [0.0, 2.0, 1.0])], label="", log_x=True))
    )
    (x0, y0), (x1, y1), (x2, y2) = line
    assert y1 < y2 < y0
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)


def test_a_sparkline_leaves_gaps_and_nothing_for_nothing():
    nan = float("nan")
    drawn = ET.fromstring(sparkline([([0, 1, 2, 3], [1.0, nan, 2.0, 3.0])], label=""))
    path = next(drawn.iter("path")).get("d", "")
    assert path.count("M") == 2
    assert sparkline([([0, 1], [nan, nan])], label="") == ""


def test_an_interval_shows_its_ends_in_order():
    drawn = ET.fromstring(interval_bar(1.0, 2.0, 5.0, label="a"))
    centre = float(next(drawn.iter("circle")).get("cx", "nan"))
    ends = [float(re.findall(r"[\d.]+", p.get("d", ""))[0]) for p in list(drawn.iter("path"))[1:]]
    assert ends[0] < centre < ends[1]
    assert centre - ends[0] == pytest.approx((ends[1] - ends[0]) / 4, abs=0.2)
    assert interval_bar(float("nan"), 1.0, 2.0, label="") == ""
    assert "circle" in interval_bar(1.0, 2.0, float("inf"), label="")


def test_an_interval_in_a_notebook():
    shown = parsed(Interval(low=0.9, high=1.2, estimate=1.0)._repr_html_())
    assert "1 [0.9, 1.2]" in words(shown)
    assert "95 %" in words(shown)
    nan = float("nan")
    missing = Interval(low=nan, high=nan, estimate=1.0, reason=TROUBLE)
    assert TROUBLE in words(parsed(missing._repr_html_()))


def test_needed_samples_in_a_notebook():
    sizes = [10, 100, 1000]
    errors = xr.DataArray([[1.0, 0.4, 0.2]] * 8, dims=("seed", "size"), coords={"size": sizes})
    shown = parsed(al.complexity.needed_samples(errors, 0.3)._repr_html_())
    assert "0.3 is reached with 316 samples" in words(shown)
    curve, level = points(shown)[0], next(p for p in shown.iter("path") if "H" in p.get("d", ""))
    height = float(re.findall(r"[\d.]+", level.get("d", ""))[1])
    assert curve[1][1] < height < curve[2][1]


def test_a_certificate_in_a_notebook():
    problem = Problem.of(
        jax.numpy.ones(3),
        lambda theta, data: jax.numpy.sum(theta**2 * data),
        np.array([1.0, 2.0, 3.0]),
    )
    at = certify(problem, jax.numpy.zeros(3))
    assert at.kind == "minimum"
    shown = parsed(at._repr_html_())
    assert "3 up, 0 flat, 0 down" in words(shown)
    widths = [float(r.get("width", "0")) for r in shown.iter("rect")]
    assert widths == [240.0, 0.0, 0.0]


def test_a_trajectory_in_a_notebook():
    task = al.TopicTask(topics=2, topic_words=1, dictionary=30, noise_words=3)
    corpus = task.sample(40, key=jax.random.key(0))
    run = al.train(al.WordAttentionConfig.for_corpus(corpus), corpus, steps=20, seeds=3)
    shown = parsed(run._repr_html_())
    assert "3 finished" in words(shown)
    assert "steps 0 to 20" in words(shown)
    lines = points(shown)
    assert len(lines) == 3
    assert all(line[0][1] < line[-1][1] for line in lines), "the loss falls"


def test_the_results_of_a_sweep_in_a_notebook(tmp_path):
    plan = Plan(
        "attnlab.sweeps._example:work", name=TROUBLE[1:7], grid={"number": [1, 2], "exponent": [2]}
    )
    shown = parsed(run_plan(plan, tmp_path / "sweep", processes=0)._repr_html_())
    assert "2 finished, 0 failed, 0 missing, of 2" in words(shown)


def test_a_record_in_a_notebook(tmp_path):
    answer = {"label": TROUBLE, "text": "saves 38 %"}
    about = {"title": "How many samples?", "summary": ["Saves.", TROUBLE], "cards": [answer]}
    shown = parsed(Record("samples", tmp_path, {}, about)._repr_html_())
    for text in ("How many samples?", "Saves.", "saves 38 %", tmp_path.name):
        assert text in words(shown)
    assert words(shown).count(TROUBLE) == 2


def test_counts_share_a_bar():
    drawn = ET.fromstring(shares_bar({"finished": 3, "failed": 1, "missing": 0}, label=""))
    assert [float(r.get("width", "0")) for r in drawn.iter("rect")] == [180.0, 60.0, 0.0]
    assert shares_bar({"finished": 0}, label="") == ""


class Screen:
    """What a kernel displays: every display and every update of it."""

    def __init__(self):
        self.shown: list[str] = []

    def display(self, content, *, raw, display_id):
        assert raw
        assert display_id
        self._show(content)
        return SimpleNamespace(update=lambda new, raw: self._show(new))

    def _show(self, content):
        plain = content["text/plain"]
        assert content["text/html"] == (f"<pre>{html.escape(plain)}</pre>" if plain else "")
        self.shown.append(plain)


@pytest.fixture
def kernel(monkeypatch):
    screen = Screen()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=screen.display))
    return screen


def test_a_kernel_shows_one_line_that_ends_empty(kernel, monkeypatch):
    monkeypatch.setattr(_progress, "_PAUSE", 0.0)
    with _progress.progress_bar(None) as bar:
        task = bar.add_task("training", total=10, runs="run 1 of 2")
        bar.update(task, advance=5)
        bar.update(task, advance=5, runs="run 2 of <2>")
    assert [text.split("  ")[:3] for text in kernel.shown[:2]] == [
        ["training", "50 %", "run 1 of 2"],
        ["training", "100 %", "run 2 of <2>"],
    ]
    assert kernel.shown[-1] == ""


def test_updates_of_the_line_are_few(kernel):
    with _progress.progress_bar(None) as bar:
        task = bar.add_task("training", total=1000)
        for _ in range(1000):
            bar.update(task, advance=1)
    assert len(kernel.shown) < 20


def test_progress_false_shows_nothing_in_a_kernel_either(kernel):
    with _progress.progress_bar(False) as bar:
        bar.update(bar.add_task("training", total=1), advance=1)
    assert kernel.shown == []


def test_an_ordinary_process_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not _progress.in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not _progress.in_notebook()
