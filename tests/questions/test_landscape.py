"""``attnlab landscape``: its answers and its page, from two small problems and what is changed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.lab import Record, page
from attnlab.papers.liu2021.point_runs import make_problem
from attnlab.papers.liu2021.point_settings import PointSettings
from attnlab.questions import ask
from attnlab.questions._landscape import trained_path
from attnlab.questions.landscape import (
    Descent,
    LandscapeSettings,
    Points,
    Spectrum,
    Starts,
    question,
)
from attnlab.report import Section, render

pytestmark = pytest.mark.slow

EVIL = "<img src=x onerror=alert(1)>"
SMALL: dict[str, Any] = {"model": "known-attention", "samples": 16, "starts": 3, "seeds": 2}


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    folder: Path = tmp_path_factory.mktemp("landscape")
    return ask("landscape", folder, **SMALL, processes=0, progress=False)


@pytest.fixture(scope="module")
def sections(record) -> dict[str, Section]:
    return {section.id: section for section in page(question, record).sections}


def changed(record: Record, **data: Any) -> Record:
    return replace(record, data=record.data | data)


def test_all_points_are_told_with_what_is_proved(record):
    points = question.as_json(record)["points"]
    assert points[0]["kind"] == "minimum"
    assert 0 < points[0]["smallest"] < points[0]["largest"]
    assert sum(point["starts"] for point in points) == 3
    summary = record.about["summary"]
    assert "6 starts end: 6 at a minimum." in summary
    assert any("a minimum: Newton distance " in sentence for sentence in summary)
    assert record.about["settings"]["parameters"] == 36
    assert record.about["settings"]["noise_std"] == 0.2


def test_every_part_is_on_the_page(sections):
    figures = {name: [figure.id for figure in one.figures] for name, one in sections.items()}
    assert figures == {
        "points": ["distinct", "ends"],
        "certificate": ["spectrum"],
        "surface": ["surface"],
        "descent": ["descent", "descent_distance"],
        "path": figures["path"],
        "again": [],
    }
    labels = sections["points"].figures[1].table["label"]
    assert "start 1 of problem 1" in labels


def test_names_from_data_are_escaped(record):
    starts = Starts.of(record.data).copy()
    starts[Starts.kind] = starts[Starts.kind].astype(object).where(starts.start > 0, EVIL)
    spectrum = Spectrum.of(record.data).assign_attrs(certificate=f"A minimum {EVIL}.")
    text = render(page(question, changed(record, starts=starts, spectrum=spectrum)))
    assert EVIL not in text
    assert "A minimum &lt;img" in text


def test_eigenvalues_are_counted_in_words(record):
    attrs = {"zero_modes": 1, "delta": 1e-9, "l2": 1e-3, "certificate": "A minimum."}
    spectrum = Spectrum.of(record.data).isel(number=slice(4)).assign_attrs(attrs)
    spectrum[Spectrum.eigenvalue] = ("number", [2.0, 1e-3, 0.0, -0.5])
    drawn = page(question, changed(record, spectrum=spectrum))
    (text,) = next(section.body for section in drawn.sections if section.id == "certificate")
    assert "2 are positive, 1 negative and 1 zero" in text
    assert "1 equal the penalty" in text
    assert "1 zero modes come from symmetry" in text


def test_the_surface_has_a_along_x_and_its_centre_marked(record, sections):
    contour, centre = sections["surface"].figures[0].plotly["data"]
    loss = record.data["surface"].loss.transpose("b", "a")
    np.testing.assert_allclose(contour["z"][2], np.log10(loss[2]), atol=1e-4)
    assert (centre["x"], centre["y"]) == ([0], [0])


def test_a_long_table_is_cut_and_says_so(record):
    points = Points.of(record.data).isel(point=np.zeros(20, int))
    drawn = page(question, changed(record, points=points))
    table = drawn.sections[0].figures[0]
    assert table.grid is not None
    assert len(table.grid.rows) == 12
    assert "The first 12 of 20" in table.caption


def test_nothing_stationary_is_said_in_words(record):
    settings = LandscapeSettings(**SMALL, l2=0.0)
    starts = Starts.of(record.data).assign({Starts.kind: "not stationary"})
    starts[Starts.kind] = starts[Starts.kind].broadcast_like(starts[Starts.loss])
    starts[Starts.status] = starts[Starts.status].astype(object).where(False, "weights escape")
    data = {Starts.label: starts}
    answers = question.answers(settings, data, {})
    assert "6 nowhere stationary" in answers.cards[0].text
    assert "In 6 the weights escape" in answers.cards[0].text
    assert "the weights escape to ever larger norms" in answers.absent["points"]
    about = record.about | {"absent": answers.absent}
    drawn = page(question, replace(record, data=data, about=about))
    assert [section.id for section in drawn.sections] == ["points", "again"]
    assert drawn.sections[0].body == (f"There is no point to show: {answers.absent['points']}.",)


def test_a_single_minimum_has_no_path(record):
    data = record.data | {Points.label: Points.of(record.data).isel(point=[0])}
    data.pop("path", None)
    answers = question.answers(LandscapeSettings(**SMALL), data, {})
    assert answers.absent == {"path": "there are not two distinct certified minima"}


def test_a_training_path_is_drawn_with_its_distance_from_the_plane(record, sections):
    plane, distance = sections["descent"].figures
    descent = Descent.of(record.data)
    path = plane.plotly["data"][1]
    np.testing.assert_allclose(path["x"], descent[Descent.path_a], rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(path["y"], descent[Descent.path_b], rtol=1e-3, atol=1e-5)
    assert "distance from the plane" in path["text"][0]
    assert "at no certified point" in sections["descent"].body[0]
    lines = {trace["name"]: trace["y"] for trace in distance.plotly["data"]}
    assert len(lines["from the plane"]) == descent.sizes["step"]


def test_a_training_path_is_the_loss_of_its_own_steps():
    made = make_problem(
        PointSettings(model="known-attention", samples=40, starts=1), jax.random.key(0)
    )
    seen = trained_path(made.problem, made.starts[0], steps=200)
    assert float(seen.path_loss[0]) == pytest.approx(float(made.problem.value(made.starts[0])))
    assert float(seen.loss.sel(a=0, b=0)) == pytest.approx(float(seen.path_loss[-1]))
    assert float(seen.distance[-1]) == pytest.approx(0, abs=1e-9)
    # Pythagoras: what lies in the plane and what does not make up the whole distance.
    inside = seen.path_a**2 + seen.path_b**2
    np.testing.assert_allclose(inside + seen.distance**2, seen.away**2, atol=1e-9)
    assert 0.5 < seen.attrs["share"] <= 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"model": "transformer"}, "--model transformer: expected one of baseline"),
        ({"classes": 3}, "--classes 3: expected 0 or 2"),
        ({"classes": 2, "noise_std": 0.1}, "--noise-std has no meaning with --classes"),
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong, message):
    with pytest.raises(AttnlabError, match=message):
        LandscapeSettings(**wrong)
