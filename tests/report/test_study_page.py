"""The page of a user's own texts, from made-up data with words that try to break it."""

from __future__ import annotations

import csv
import json
import re
from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import render, shaded_figure, study_page, write_study
from attnlab.report._study_parts import shortened
from attnlab.report._study_words import pairs_figure
from attnlab.studies._text_try import what_to_try

EVIL = "<img src=x onerror=alert(1)>"
NASTY = (
    EVIL,
    "</script>",
    "שלום",
    "👩‍🚀",
    "x" * 1_000_000,
    "%{x} $a$",
    "\u202etxet",
    "nul\x00",
    "don't",
)
PLAIN = (
    "a",
    "stirring",
    "funny",
    "film",
    "that",
    "never",
    "bores",
    "and",
    "always",
    "moves",
    "terrible",
    "dull",
)
STUDENTS = ("attention-pooling", "mean-pooling", "tf-idf")
STEPS = np.arange(0, 12_001, 250)
SEEDS = 8


def reading() -> dict[str, Any]:
    dropped = [
        {"reason": "empty", "count": 3, "examples": [{"place": "reviews.csv, row 12", "text": ""}]},
        {
            "reason": f"duplicate {EVIL}",
            "count": 127,
            "examples": [{"place": f"row {k}", "text": word} for k, word in enumerate(NASTY)],
        },
    ]
    return {
        "files": [
            {"name": f"reviews {EVIL}.csv", "format": "csv", "encoding": "utf-8", "rows": 123_456},
            {"name": "caf\udce9.csv", "format": "csv", "encoding": None, "rows": 10},
        ],
        "rows": 123_466,
        "kept": 123_336,
        "classes": {
            "negative": {"train": 3310, "valid": 428, "test": 912},
            EVIL: {"train": 3610, "valid": 444, "test": 909},
        },
        "labels": {"0": "negative", "1": EVIL, "1.0": EVIL},
        "dropped": dropped,
        "leaks": [
            {
                "reason": "training text in test",
                "count": 2,
                "examples": [{"place": "row 7", "text": "again"}],
            }
        ],
        "vocabulary": {
            "size": 14_816,
            "left_out": 120,
            "unknown": {"train": 0.0, "valid": 0.041, "test": 0.043},
        },
        "lengths": {"median": 18, "p90": 32, "longest": 52},
    }


def about() -> dict[str, Any]:
    card = {
        "label": "labels",
        "text": f"Attention pooling saves labels {EVIL}.",
        "headline": "38 % [20, 51]",
        "measure": "labels saved",
        "verdict": "saves",
        "link": "pays",
    }
    return {
        "title": f"A study of {EVIL}",
        "summary": ["A sentence.", card["text"]],
        "cards": [
            card,
            card
            | {
                "label": "rows",
                "verdict": None,
                "text": "123 336 texts, two classes",
                "link": "data",
            },
            card
            | {
                "label": "deletion",
                "verdict": "holds",
                "text": "Attended words matter.",
                "link": "words",
            },
            card
            | {
                "label": "accuracy",
                "verdict": "reported",
                "text": "Where training stopped",
                "link": "good",
            },
        ],
        "settings": {"seeds": 8, "text": EVIL},
        "command": f"attnlab study {EVIL} caf\udce9.csv",
        "attnlab": "0.1.0",
        "jax": "0.7",
        "seconds": 312.0,
        "peak_memory": 1.5 * 2**30,
        "reading": reading(),
        "tuned": ["Every student was offered the same three step sizes."],
        "extrapolation": ["A further point of accuracy would cost about 2400 labels."],
    }


def sentences(count: int = 10, words: int = 14, steps: np.ndarray = STEPS) -> xr.Dataset:
    rng = np.random.default_rng(1)
    texts = np.array(
        [[str(w) for w in rng.choice(PLAIN, words)] for _ in range(count)], dtype=object
    )
    for k in range(min(count, len(NASTY))):
        texts[k, rng.integers(3)] = NASTY[k]
    if count > 3:
        texts[3] = ["זה", "סרט", "מצוין", "ומרגש", "מאוד", *[""] * (words - 5)]
        texts[2, words // 2 :] = ""
    known = rng.random((count, words)) > 0.15
    scores = rng.normal(size=(count, words))[..., None] * np.linspace(0, 2.5, len(steps))
    mass = np.exp(scores) * (known & (texts != ""))[..., None]
    weight = mass / mass.sum(1, keepdims=True)
    label = np.array(["negative", EVIL], dtype=object)[np.arange(count) % 2]
    right = np.linspace(0, 1, len(steps)) > rng.random((count, 1))
    predicted = np.where(right, label[:, None], "neither")
    probability = 0.5 + 0.4 * np.where(right, 1, -1) * np.linspace(0, 1, len(steps))
    grid, along = ("sentence", "place"), ("sentence", "step")
    return xr.Dataset(
        {
            "weight": ((*grid, "step"), weight),
            "word": (grid, texts),
            "known": (grid, known),
            "label": ("sentence", label),
            "predicted": (along, predicted),
            "probability": (along, probability),
        },
        {"step": steps},
    )


def words(count: int = 60) -> xr.Dataset:
    rng = np.random.default_rng(2)
    score = np.sort(rng.gamma(2, 0.6, count))[::-1]
    frequency = np.rint(np.geomspace(400, 1, count)[rng.permutation(count)])
    columns = {
        "word": np.array(
            [NASTY[k] if k < len(NASTY) else f"word{k}" for k in range(count)], dtype=object
        ),
        "score": score,
        "norm": np.sqrt(score) * 3,
        "purity": rng.random(count),
        "frequency": frequency,
        "excess": rng.uniform(-0.1, 1, count),
        "onset": np.where(rng.random(count) < 0.2, np.nan, 250.0 * rng.integers(1, 40, count)),
        "leaning": np.array(["negative", EVIL, ""], dtype=object)[rng.integers(3, size=count)],
    }
    return xr.Dataset(
        {name: ("rank", values) for name, values in columns.items()}, attrs={"step": 6000}
    )


def training() -> xr.Dataset:
    rng = np.random.default_rng(3)
    t = 1 - np.exp(-STEPS / 3000) + 0.01 * rng.normal(size=(SEEDS, len(STEPS)))
    columns = {
        "attended_purity": 0.3 + 0.6 * t,
        "attended_null": 0.13 + 0.3 * t,
        "attended_excess": 0.17 + 0.3 * t,
        "attended_frequency": 900 * np.exp(-3 * t),
        "loss": 0.69 - 0.6 * t,
        "loss_valid": 0.69 - 0.5 * t + 0.3 * t**4,
        "accuracy_valid": 0.5 + 0.3 * t,
        "accuracy_test": 0.5 + 0.29 * t,
    }
    return xr.Dataset(
        {name: (("seed", "step"), values) for name, values in columns.items()},
        {"seed": range(SEEDS), "step": STEPS},
        {"best_step": 5750},
    )


def pairs(count: int = 3) -> xr.Dataset:
    t = STEPS / STEPS[-1]
    path = np.stack([np.stack([(k + 1) * t * (1.2 - t), t**2]) for k in range(count)])
    columns: dict[str, Any] = {
        name: (("pair", "which", "step"), scale * path)
        for name, scale in (("weight", 0.5), ("score", 2.0), ("norm", 4.0))
    }
    columns["word"] = (
        ("pair", "which"),
        np.array([[EVIL, NASTY[4]], *[["dull", "moves"]] * (count - 1)], dtype=object),
    )
    columns["sentence"] = (
        "pair",
        np.array([f"a dull film that moves {EVIL}"] * count, dtype=object),
    )
    return xr.Dataset(columns, {"step": STEPS})


def made_up() -> dict[str, xr.Dataset]:
    rng = np.random.default_rng(0)
    sizes = np.array([100, 200, 400, 800, 1600, 3200])
    top = np.array([0.82, 0.79, 0.8])[:, None, None]
    accuracy = top - 2.5 / sizes**0.5 * 0.5 + 0.01 * rng.normal(size=(3, SEEDS, 6))
    needed = {
        "value": [900.0, 3200.0, np.nan],
        "low": [700.0, 3200.0, np.nan],
        "high": [1200.0, np.inf, np.nan],
        "kind": ["exact", "at least", "unknown"],
    }
    deletion = {
        "top": 0.41,
        "top_low": 0.38,
        "top_high": 0.44,
        "other": 0.03,
        "other_low": 0.02,
        "other_high": 0.04,
        "sentences": 1800,
        "left_out": 21,
    }
    norm, off = np.linspace(0.6, 3, 40), np.linspace(0.7, 1.05, 40)
    sen = {
        "word": np.array([*NASTY, *(f"word{k}" for k in range(40 - len(NASTY)))], dtype=object),
        "scaled_norm": norm,
        "predicted_scaled_norm": norm * off,
        "sen_error": np.abs(off - 1),
    }
    ends = {
        "accuracy_test": 0.79 + 0.01 * rng.random(SEEDS),
        "gradient": 10 ** rng.normal(-3, 0.2, SEEDS),
        "sharpness": rng.uniform(2, 4, SEEDS),
        "trace": rng.uniform(20, 30, SEEDS),
    }
    share = np.clip(0.9 + 0.05 * rng.random((SEEDS, SEEDS)) + np.eye(SEEDS), 0, 1)
    polish = {
        "l2": [1e-3] * 4,
        "loss": [0.31, 0.32, 0.31, 0.33],
        "gradient": [1e-9] * 4,
        "accuracy_test": [0.79] * 4,
        "kind": np.array(["minimum", "minimum", "saddle", EVIL], dtype=object),
    }
    t = np.linspace(0, 1, 21)
    return {
        "lengths": xr.Dataset({"length": ("sentence", rng.integers(1, 53, 900))}),
        "curves": xr.Dataset(
            {"accuracy": (("student", "seed", "size"), accuracy)},
            {"student": list(STUDENTS), "seed": range(SEEDS), "size": sizes},
            {"target": 0.78},
        ),
        "needed": xr.Dataset(
            {k: ("student", v) for k, v in needed.items()},
            {"student": list(STUDENTS)},
            {"target": 0.78},
        ),
        "sentences": sentences(),
        "words": words(),
        "training": training(),
        "pairs": pairs(),
        "deletion": xr.Dataset(deletion),
        "sen": xr.Dataset({k: ("rank", v) for k, v in sen.items()}),
        "ends": xr.Dataset({k: ("seed", v) for k, v in ends.items()}, {"seed": range(SEEDS)}),
        "agreement": xr.Dataset(
            {"share": (("seed", "other"), share)}, {"seed": range(SEEDS), "other": range(SEEDS)}
        ),
        "path": xr.Dataset(
            {"loss": ("t", 0.1 + 0.9 * t * (1 - t))}, {"t": t}, {"barrier": 0.225, "place": 0.5}
        ),
        "polish": xr.Dataset({k: ("seed", v) for k, v in polish.items()}, {"seed": range(4)}),
        "variants": variants(),
    }


def variants() -> xr.Dataset:
    """Three ways to attend, of which one is an unfriendly name and the best."""
    rng = np.random.default_rng(5)
    arms = {
        name: xr.Dataset(
            {
                "accuracy": (("seed", "size"), level + 0.002 * rng.normal(size=(SEEDS, 1))),
                "entropy": (("seed", "size"), np.full((SEEDS, 1), 1.5)),
            },
            {"seed": range(SEEDS), "size": [3200]},
        )
        for name, level in (("softmax", 0.8), (EVIL, 0.83), ("uniform", 0.7))
    }
    return what_to_try(arms, steps=600).ranking


FIGURES = {
    "data": ["classes", "files", "dropped", "leaks", "lengths"],
    "pays": ["accuracy_curves", "labels_needed"],
    "words": [
        "sentences",
        "words_by_score",
        "rarity",
        "attended_purity",
        "attended_frequency",
        "course_loss",
        "course_accuracy",
        "pairs",
        "deletion",
        "sen",
    ],
    "good": ["ends_accuracy", "ends_curvature", "ends", "agreement", "between_seeds", "polish"],
    "try": ["ranking", "apart"],
    "again": [],
}


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_study(tmp_path_factory.mktemp("study"), made_up(), about())


@pytest.fixture(scope="module")
def figures():
    return {
        figure.id: figure
        for section in study_page(made_up(), about()).sections
        for figure in section.figures
    }


def test_the_sections_stand_in_order_with_their_cards_and_figures():
    page = study_page(made_up(), about())
    assert {
        section.id: [figure.id for figure in section.figures] for section in page.sections
    } == FIGURES
    assert [section.title for section in page.sections] == [
        "Your data",
        "Does attention pay?",
        "What does it attend to, and since when?",
        "Is what I trained good?",
        "What to try",
        "Again",
    ]
    assert [[card.label for card in section.cards] for section in page.sections] == [
        ["rows"],
        ["labels"],
        ["deletion"],
        ["accuracy"],
        [],
        [],
    ]
    assert page.summary == "A sentence."
    facts = page.sections[-1].facts
    assert (facts["time"], facts["peak memory"], facts["seeds"]) == ("5.2 minutes", "1.5 GiB", "8")
    assert set(page.provenance) == {"Attnlab", "Jax"}


def test_the_file_is_text_without_anything_that_runs(path):
    text = path.read_text("utf-8")
    assert text == render(study_page(made_up(), about()))
    assert len(text) < 8e6, "a word of a megabyte is cut wherever it stands"
    assert "x" * 100 not in text
    outside = re.sub(r"<script[^>]*>.*?</script>", "", text, flags=re.DOTALL)
    assert "<img" not in outside
    assert "&lt;img src=x onerror=alert(1)&gt;" in outside
    assert not re.search("[\u202e\x00\udc00-\udfff]", text)
    assert text.count("</script") == 3 + 1 + sum(map(len, FIGURES.values()))
    with (path.parent / "figures" / "sentences.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows[0].keys() >= {"sentence", "word", "attention at step 0", "attention at step 12000"}
    for drawing in (path.parent / "figures").glob("*.json"):
        assert "<img" not in json.dumps(json.loads(drawing.read_text("utf-8"))), drawing.name


def test_an_empty_study_says_why_in_words():
    why = {
        "pays": f"there are 50 rows only {EVIL}.",
        "polish": "the certificate needs fewer parameters",
    }
    page = study_page({}, {"absent": why})
    body = {section.id: section.body for section in page.sections}
    assert body["pays"] == (
        f"Learning curves, labels needed for the target: not shown, since {why['pays']}",
    )
    assert body["good"][0] == f"Minima, from a polish with l2: not shown, since {why['polish']}."
    assert body["good"][1].endswith("the line between two seeds: not part of this study.")
    assert len(body["data"]) == 2
    assert EVIL not in render(page)


@pytest.mark.parametrize("lost", sorted(made_up()))
def test_any_data_set_may_be_missing(lost):
    data = made_up()
    del data[lost]
    page = study_page(data, about() | {"absent": {lost: "it was not asked for"}})
    assert any(
        "not shown, since it was not asked for." in line
        for section in page.sections
        for line in section.body
    )
    drawn = {figure.id for section in page.sections for figure in section.figures}
    assert drawn < {figure for own in FIGURES.values() for figure in own}


def test_data_without_entries_are_as_good_as_missing():
    empty = {
        name: one.isel({dim: slice(0) for dim in one.dims})
        for name, one in made_up().items()
        if one.dims
    }
    unknown = {"curves": made_up()["curves"] * np.nan}
    for data in (empty, unknown):
        page = study_page(data, {"absent": {"curves": "no fit ended"}})
        assert not any(section.figures for section in page.sections)
        assert page.sections[1].body[0] == "Learning curves: not shown, since no fit ended."


def test_what_was_read_is_told_in_numbers(figures):
    said = " ".join(study_page(made_up(), about()).sections[0].body)
    for part in (
        "123\u202f466 rows were read, 123\u202f336 are used, 130 are left out",
        "14\u202f816 words",
        "4.1\u00a0% of validation words",
        "nine in ten up to 32",
    ):
        assert part in said, part
    assert figures["classes"].table["training"] == [3610, 3310]
    assert figures["classes"].table["read from"] == ["1, 1.0", "0"]
    assert "right in 51.6\u00a0% of the rows" in figures["classes"].caption
    assert figures["dropped"].table["count"] == [127, 3]
    assert figures["dropped"].grid.cells[1] == ("3", "reviews.csv, row 12")
    assert "\u2068</script>\u2069" in figures["dropped"].grid.cells[0][1]


def test_bins_of_lengths_hold_whole_numbers_of_words(figures):
    table = figures["lengths"].table
    width = np.subtract(table["words to"], table["words from"])
    assert set(width.tolist()) == {2.0}
    lengths = made_up()["lengths"]["length"].values
    assert table["training texts: count"][0] == int((lengths <= 2).sum())
    assert sum(table["training texts: count"]) == len(lengths)


def test_students_stand_with_the_target_and_what_they_need(figures):
    traces = figures["accuracy_curves"].plotly["data"]
    target = next(trace for trace in traces if trace.get("name") == "target 78\u00a0%")
    assert target["y"] == [0.78, 0.78]
    met = [trace for trace in traces if trace.get("error_x")]
    assert [(trace["x"], trace["marker"]["symbol"]) for trace in met] == [
        ([900.0], "circle-open"),
        ([3200.0], "triangle-right-open"),
    ]
    needed = figures["labels_needed"]
    assert needed.title == "Labels needed for 78\u00a0% accuracy"
    assert needed.table["is"] == ["exact", "at least", "unknown"]
    assert needed.table["value"] == [900.0, 3200.0, None]


def test_shades_are_weights_over_the_largest_of_the_sentence():
    data = sentences()
    figure = shaded_figure(data, id="s", title="t")
    assert figure.shaded is not None
    assert figure.shaded.steps == tuple(map(str, STEPS))
    for k, shown in enumerate(figure.shaded.sentences):
        weight = np.nan_to_num(data["weight"].values[k][: len(shown.words)])
        assert np.abs(np.array(shown.shades).T - 100 * weight / weight.max()).max() <= 0.5 + 1e-9
        assert all(
            shade == 0
            for row in shown.shades
            for shade, known in zip(row, shown.known, strict=True)
            if not known
        )
        assert shown.right == tuple(
            (data["predicted"].values[k] == data["label"].values[k]).tolist()
        )
    assert len(figure.shaded.sentences[2].words) == 7
    row = [k for k, number in enumerate(figure.table["sentence"]) if number == 1]
    last = [figure.table["attention at step 12000"][k] for k in row]
    assert last == pytest.approx(data["weight"].values[0, :, -1], rel=1e-5)
    most = shortened(data["word"].values[0][int(np.argmax(last))])
    assert f"“\u2068{most}\u2069”" in figure.shaded.sentences[0].told[-1]


def test_long_texts_and_many_steps_are_cut_and_say_so():
    figure = shaded_figure(sentences(20, 100, np.arange(1000)), id="s", title="t")
    assert figure.shaded is not None
    first = figure.shaded.sentences[0]
    assert first.words[-1] == "… 20 more words"
    weight = sentences(20, 100, np.arange(1000))["weight"].values[0]
    whole = np.nansum(weight[80:, -1])
    column = figure.table["attention at step 999"]
    assert column[80] == pytest.approx(whole, rel=1e-5)
    assert (
        figure.note
        == "16 of 20 sentences are shown. 60 of 1000 recorded steps are shown and saved."
    )


def test_sentences_without_known_words_or_data():
    data = sentences(1, 3)
    lost = data.assign(known=data["known"] & False)
    figure = shaded_figure(lost, id="s", title="t")
    assert figure.shaded is not None
    assert figure.shaded.sentences[0].told[-1].endswith("it knows no word of this")
    assert set(figure.shaded.sentences[0].shades[-1]) == {0}
    even = data.assign(weight=data["weight"] * 0 + 1 / 3, known=data["known"] | True)
    shown = shaded_figure(even, id="s", title="t").shaded
    assert shown is not None
    assert shown.sentences[0].told[-1].endswith("3 words get most, 33.3\u00a0% each")
    same = even.assign(word=even["word"].copy(data=[["film", "film", "film"]]))
    shown = shaded_figure(same, id="s", title="t").shaded
    assert shown is not None
    assert (
        shown.sentences[0]
        .told[-1]
        .endswith("most on “\u2068film\u2069”, 33.3\u00a0% at each place")
    )
    with pytest.raises(AttnlabError, match="lacks word"):
        shaded_figure(data.drop_vars("word"), id="s", title="t")


def test_words_are_tinted_by_excess_and_wait_without_onset(figures):
    table, data = figures["words_by_score"], words()
    assert len(table.grid.rows) == 40
    assert "The first 40 of 60" in table.caption
    assert "at step 6000" in table.caption
    place = table.grid.columns.index("excess purity")
    for tones, excess in zip(table.grid.tones, data["excess"].values[:40], strict=True):
        assert tones[place] == (f"h{min(4, int(5 * excess))}" if excess > 0 else "")
    onset = data["onset"].values[:40]
    shown = [cells[table.grid.columns.index("since step")] for cells in table.grid.cells]
    assert [text == "–" for text in shown] == np.isnan(onset).tolist()
    groups = {trace["name"] for trace in figures["rarity"].plotly["data"]}
    assert groups == {
        "leans to negative",
        "leans to &lt;img src=x onerror=alert(1)&gt;",
        "leans to no class",
    }


def test_many_classes_are_grouped():
    data = words().assign(
        leaning=("rank", np.array([f"class {k % 20}" for k in range(60)], dtype=object))
    )
    page = study_page({"words": data}, {})
    rarity = next(figure for figure in page.sections[2].figures if figure.id == "rarity")
    assert len(rarity.plotly["data"]) == 7
    assert rarity.table["group"].count("leans to another class") == 60 - 6 * 3


def test_pairs_can_be_chosen_by_quantity():
    figure = pairs_figure(pairs(8), id="pairs")
    assert len(figure.choices) == 6 * 3
    assert figure.choices[4] == "2 · dull and moves: score s"
    assert "The first 6 of 8 pairs." in figure.caption
    numbered = pairs().assign(sentence=("pair", [4, 5, 6]))
    assert "in training text 5" in pairs_figure(numbered, id="pairs").caption


def test_tests_of_attention_say_what_came_out(figures):
    deletion = figures["deletion"]
    assert deletion.table["flips"] == [0.41, 0.03]
    assert deletion.plotly["data"][0]["error_x"]["array"] == pytest.approx([0.03])
    assert "21 of one known word are left out" in deletion.caption
    assert "Worst: “\u2068<img src=x onerror=alert(1)>\u2069” 30\u00a0%" in figures["sen"].caption


def test_what_was_trained_is_where_training_stopped_and_no_minimum():
    data = made_up()
    del data["polish"]
    good = study_page(data, {"absent": {"polish": "not asked for"}}).sections[3]
    text = render(study_page(data, {})).split('<section id="good"')[1].split("</section>")[0]
    assert "where training stopped" in text
    assert not re.search(
        "minim", " ".join(json.dumps(f.plotly) + f.caption + f.title for f in good.figures)
    )


def test_negative_curvature_is_left_to_the_table():
    data = made_up()
    data["ends"] = data["ends"].assign(trace=-data["ends"]["trace"])
    shown = {figure.id: figure for figure in study_page(data, {}).sections[3].figures}
    assert set(shown["ends_curvature"].table["row"]) == {"gradient norm", "largest curvature λ_max"}
    assert all(value < 0 for value in shown["ends"].table["trace of the curvature"])


STATE = (
    "(() => { const item = document.querySelectorAll('.shaded > li')[1]; return ["
    "[...item.querySelectorAll('.said > span')].map((s) => s.style.getPropertyValue('--shade')),"
    "item.querySelector('[data-told]').textContent, document.querySelector('#figure-sentences "
    "output').textContent,"
    "document.querySelector('#figure-sentences [data-frame]').getAttribute('aria-valuetext')]; })()"
)


def test_a_browser_shades_words_by_step(browser, path):
    browser.open(path)
    shown = shaded_figure(sentences(), id="s", title="t").shaded
    assert shown is not None
    entry = shown.sentences[1]
    known = [k for k, there in enumerate(entry.known) if there]

    def check(step: int) -> None:
        shades, told, name, value = browser.evaluate(STATE)
        assert [shades[k] for k in known] == [f"{entry.shades[step][k]}%" for k in known]
        assert (told, name, value) == (entry.told[step], str(STEPS[step]), str(STEPS[step]))

    check_last = "document.querySelector('#figure-sentences [data-frame]').value === '48'"
    assert browser.evaluate(check_last)
    browser.evaluate(
        "(slider => { slider.value = 10; slider.dispatchEvent(new Event('input')); })"
        "(document.querySelector('#figure-sentences [data-frame]'))"
    )
    check(10)
    browser.evaluate("dispatchEvent(new Event('beforeprint'))")
    check(48)
    browser.evaluate("dispatchEvent(new Event('afterprint'))")
    check(10)
    browser.evaluate("document.querySelector('#figure-sentences [data-play]').click()")
    browser.wait_for("document.querySelector('#figure-sentences output').textContent === '3000'")
    assert browser.evaluate("document.querySelectorAll('img').length") == 0
    assert browser.problems() == []


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_the_page_without_scrolling_aside(browser, path, dark):
    browser.open(path, width=390, height=800, dark=dark, mark="#all")
    total = sum(map(len, FIGURES.values()))
    assert browser.evaluate("document.body.dataset.drawn") == f"{total}/{total}"
    assert browser.evaluate("document.documentElement.scrollWidth") == 390
    assert browser.problems() == []
