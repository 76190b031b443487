"""Sentences shaded by attention, with words that try to break the page."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.report import shaded_figure, shortened

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
STEPS = np.arange(0, 12_001, 250)


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
    assert f"“\u2068{most}\u2069”" in figure.shaded.sentences[0].remarks[-1]


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
    assert figure.shaded.sentences[0].remarks[-1].endswith("it knows no word of this")
    assert set(figure.shaded.sentences[0].shades[-1]) == {0}
    even = data.assign(weight=data["weight"] * 0 + 1 / 3, known=data["known"] | True)
    shown = shaded_figure(even, id="s", title="t").shaded
    assert shown is not None
    assert shown.sentences[0].remarks[-1].endswith("3 words get most, 33.3\u00a0% each")
    same = even.assign(word=even["word"].copy(data=[["film", "film", "film"]]))
    shown = shaded_figure(same, id="s", title="t").shaded
    assert shown is not None
    assert (
        shown.sentences[0]
        .remarks[-1]
        .endswith("most on “\u2068film\u2069”, 33.3\u00a0% at each place")
    )
    with pytest.raises(AttnlabError, match="lacks word"):
        shaded_figure(data.drop_vars("word"), id="s", title="t")
