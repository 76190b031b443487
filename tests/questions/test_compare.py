"""``attnlab compare`` and ``attnlab advise``: what they ask for, what they measure, what they draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from attnlab import AttnlabError
from attnlab.lab import Record, page
from attnlab.questions import ask, questions
from attnlab.questions import compare as module
from attnlab.questions._ranking import Compared, Longer, Ranking, seeds_needed
from attnlab.questions.advise import AdviseSettings
from attnlab.questions.compare import CompareSettings, Course, Dropping
from tests.papers.texts import sentences
from tests.questions.made_up import WORK

pytestmark = pytest.mark.slow

COMPARE = questions()["compare"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"task": "soft"}, "expected one of hard, dense"),
        ({"task": "relevant:17"}, "R from 1 to 16"),
        ({"variants": ("softmax", "softmax")}, "each once"),
        ({"variants": ("hardmax",)}, "normaliser 'hardmax'"),
        ({"against": "top3"}, "none of the variants"),
        ({"seeds": 0}, "--seeds 0: expected at least 1"),
        ({"samples": (64, 64)}, "--samples 64 64: expected increasing"),
        ({"task": "topic", "noise_std": 0.1}, "only teachers have noise"),
        ({"files": ("a.csv",), "task": "hard"}, "leave out --task"),
        ({"text": "review"}, "name columns of FILES"),
    ],
)
def test_mistakes_are_told(given: dict[str, Any], said: str):
    with pytest.raises(AttnlabError, match=said):
        CompareSettings(**given)


def test_a_penalty_without_meaning_is_refused_before_anything_runs(tmp_path: Path):
    with pytest.raises(AttnlabError, match="every word has its own score"):
        ask("compare", tmp_path, task="topic", variants=("softmax+l1:1",), processes=0)


def test_texts_have_variants_and_sizes_of_their_own():
    texts = CompareSettings(files=("a.csv",), text="review")
    assert (texts.score, texts.task_name, texts.reference) == ("accuracy", "own texts", "softmax")
    assert texts.compared == module.ON_TEXTS
    assert CompareSettings().compared == module.ON_TASKS
    assert CompareSettings().score == "error"


def test_advice_is_a_short_comparison_of_a_few_variants():
    settings = AdviseSettings(files=("my, a.csv",), text="review", label="sentiment")
    asked = settings.comparison
    assert (asked.files, asked.text, asked.label) == (("my, a.csv",), "review", "sentiment")
    assert asked.reference == "softmax"
    assert "uniform" in asked.compared
    assert asked.seeds >= seeds_needed(len(asked.compared))
    assert settings.folder == "advice"


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A comparison whose runs are made up."""
    monkeypatch.setattr(module, "TEACHER_WORK", WORK)

    def run(**settings: Any) -> Record:
        given = {"samples": (64, 128, 256, 512), **settings}
        return ask("compare", tmp_path / "out", processes=0, progress=False, **given)

    return run


def test_every_part_is_measured_and_stands_on_the_page(made_up):
    variants = ("softmax", "softmax:0.5", "softmax:3")
    record = made_up(variants=variants)
    assert set(record.data) == {t.label for t in (Compared, Ranking, Course, Longer)}
    ranking = Ranking.of(record.data)
    assert ranking["student"].values.tolist() == ["softmax:0.5", "softmax", "softmax:3"]
    assert ranking[Ranking.group].values.tolist() == ["A", "B", "C"]
    drawn = page(COMPARE, record)
    figures = {section.id: [figure.id for figure in section.figures] for section in drawn.sections}
    assert figures == {
        "ranking": ["ranking", "apart"],
        "curves": ["learning_curves", "entropy"],
        "needed": ["needed", "ratio", "answers"],
        "training": ["longer", "course", "onset"],
        "fits": ["tuning"],
        "again": [],
    }
    table = drawn.sections[0].figures[0].grid
    assert table is not None
    assert table.rows == ("softmax:0.5", "softmax", "softmax:3")
    assert [row[0] for row in table.cells] == ["A", "B", "C"]
    assert table.cells[1][2] == "1"
    assert table.cells[0][2].startswith("0.")
    assert [row[0] for row in table.tones] == ["good", "", ""]
    assert [card.link for card in record.cards] == ["ranking", "needed", "needed"]
    assert record.about["settings"]["sizes"] == [64, 128, 256, 512]
    assert record.about["settings"]["relevant"] == 1
    advice = COMPARE.as_json(record)["advice"]
    assert advice.startswith("Where one word matters, with 512 samples, softmax:0.5 has the lowest")
    assert "With 6000 instead of 1500 steps" in advice
    assert "part of the difference is speed" in advice


def test_the_answers_are_json_and_the_ranking_is_in_them(made_up):
    record = made_up(variants=("softmax", "uniform"), seeds=2)
    answers = json.loads(json.dumps(COMPARE.as_json(record), allow_nan=False))
    assert {row["variant"] for row in answers["ranking"]} == {"softmax", "uniform"}
    assert set(answers["ranking"][0]["p"]) == {"softmax", "uniform"}
    assert answers["ranking"][0]["centre_low"] is None  # two seeds give no interval
    assert "takes 6 seeds, these are 2" in answers["advice"]


def test_one_variant_alone_has_no_pairs(made_up):
    record = made_up(variants=("softmax",), seeds=2)
    assert [f.id for f in COMPARE.sections(record)[0].figures] == ["ranking"]


def test_dropped_variants_keep_their_first_seeds(made_up):
    record = made_up(variants=("softmax", "softmax:3", "softmax:1"), seeds=9, drop=True)
    ranking = Ranking.of(record.data)
    runs = dict(zip(ranking["student"].values, ranking[Ranking.runs].values, strict=True))
    assert runs == {"softmax": 9, "softmax:1": 9, "softmax:3": 8}
    assert Dropping.dropped(record.data, student="softmax:3") == 1
    (told,) = COMPARE.sections(record)[0].body
    assert "softmax:3 was not continued" in told
    assert f"worse than {Dropping.of(record.data).attrs['best']}" in told


@pytest.mark.parametrize("against", ["top1", "top9"])
def test_more_variants_than_colours_are_ranked_but_not_all_drawn(made_up, against: str):
    variants = tuple(f"top{k}" for k in range(1, 10))
    record = made_up(variants=variants, against=against, seeds=2)
    sections = COMPARE.sections(record)
    ranked, curves = sections[0].figures[0], sections[1].figures[0]
    assert ranked.grid is not None
    assert len(ranked.grid.rows) == 9
    traces = curves.plotly["data"]
    drawn = {trace["name"] for trace in traces if "lines+markers" in trace.get("mode", "")}
    assert len(drawn) == 7
    assert against in drawn
    assert "since colours run out" in curves.caption
    for name in set(variants) - drawn:
        assert name in curves.caption


def test_the_ranking_stands_where_longer_training_fails(made_up, monkeypatch: pytest.MonkeyPatch):
    def failing(*rest: Any):
        raise AttnlabError("all 2 runs failed: out of memory")

    monkeypatch.setattr(module._Fits, "longer", failing)
    record = made_up(variants=("softmax", "uniform"), seeds=2)
    assert Longer.label not in record.data
    training = next(s for s in COMPARE.sections(record) if s.id == "training")
    assert "all 2 runs failed: out of memory" in training.body[0]


def test_your_own_texts_are_compared(tmp_path: Path):
    rows = [line.split(" ", 1) for line in sentences(200, 0)]
    file = tmp_path / "mine, all.csv"
    lines = [f"{label},{text}" for label, text in rows]
    file.write_text("\n".join(["label,review", *lines, ""]), "utf-8")
    record = ask(
        "compare",
        tmp_path / "out",
        processes=0,
        progress=False,
        files=(str(file),),
        text="review",
        label="label",
        variants=("softmax", "uniform"),
        seeds=2,
        samples=(40, 80),
        steps=30,
    )
    assert record.about["summary"][0].startswith("On these texts with 80 samples")
    assert record.content["texts"]["reading"]["kept"] > 100
    assert record.about["settings"]["files"] == [str(file)]
    assert Ranking.attention not in Ranking.of(record.data)
    assert Compared.of(record.data).attrs["score"] == "accuracy"
    curves = next(s for s in COMPARE.sections(record) if s.id == "curves")
    assert "share of right answers" in curves.statement
