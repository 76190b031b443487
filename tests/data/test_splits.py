import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Texts, drop_duplicates, leaks, split_texts


def many(seed: int = 0, count: int = 600) -> Texts:
    """Texts with repeats that differ in white space and in Unicode's form."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, count // 2, count)
    forms = ["tre\u0300s {}", "très  {}", " très {}\n"]
    texts = [forms[int(rng.integers(3))].format(n) for n in numbers]
    return Texts.of(texts, ["abc"[n % 3] for n in numbers])


def plain(text: str) -> str:
    return " ".join(text.replace("e\u0300", "è").split())


@pytest.mark.parametrize("fractions", [(0.8, 0.1, 0.1), (0.5, 0.5), (0.34, 0.33, 0.33)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_split_is_a_stratified_partition_without_leaks(fractions, seed):
    texts = many(seed)
    parts = split_texts(texts, fractions=fractions, seed=seed)
    rows = np.concatenate([part.rows for part in parts])
    assert sorted(rows.tolist()) == texts.rows.tolist()
    sides = [{plain(text) for text in part.texts} for part in parts]
    assert sum(map(len, sides)) == len(set.union(*sides))
    for fraction, side in zip(fractions, sides, strict=True):
        for remainder in range(3):  # every class by its own share of different texts
            whole = {
                plain(t)
                for t, c in zip(texts.texts, texts.labels, strict=True)
                if c == "abc"[remainder]
            }
            assert abs(len(side & whole) - fraction * len(whole)) <= 1
    assert all((np.diff(part.rows) > 0).all() for part in parts)


def test_a_split_is_a_function_of_its_seed():
    texts = many()
    one, same, other = (split_texts(texts, seed=seed)[0].rows.tolist() for seed in (3, 3, 4))
    assert one == same
    assert one != other


def test_further_texts_move_no_other_but_next_to_a_cut():
    parts: dict[str, int] = {}
    for count in range(30, 130, 2):
        texts = Texts.of([f"text {i}" for i in range(count)], ["pos", "neg"] * (count // 2))
        found = split_texts(texts, seed=0)
        now = {text: k for k, part in enumerate(found) for text in part.texts}
        moved = [text for text, part in parts.items() if now[text] != part]
        assert len(moved) <= 4  # one further text of each of two classes, which have two cuts each
        assert all(abs(now[text] - parts[text]) == 1 for text in moved)
        parts = now


def test_files_and_order_play_no_part_in_a_split():
    texts = many()
    order = np.random.default_rng(1).permutation(len(texts))
    one, other = split_texts(texts, seed=0), split_texts(texts.take(order), seed=0)
    for part, same in zip(one, other, strict=True):
        assert sorted(part.rows.tolist()) == sorted(same.rows.tolist())


def test_small_classes_are_in_every_part():
    texts = Texts.of([f"t{i}" for i in range(103)], ["big"] * 100 + ["small"] * 3)
    assert [part.class_counts["small"] for part in split_texts(texts, seed=0)] == [1, 1, 1]


def test_texts_without_labels_are_split_too():
    parts = split_texts(Texts.of([f"t{i}" for i in range(10)]), fractions=(0.5, 0.5), seed=0)
    assert [len(part) for part in parts] == [5, 5]


@pytest.mark.parametrize(
    ("texts", "fractions", "message"),
    [
        (
            Texts.of(["a", "b", "c", "d", "d "], ["x", "x", "x", "y", "y"]),
            (0.8, 0.1, 0.1),
            r"class 'y' has 1 different",
        ),
        (Texts.of(["a", "b"], ["x", "y"]), (0.8, 0.1), "sum to 1"),
        (Texts.of(["a", "b"], ["x", "y"]), (1.5, -0.5), "positive numbers that sum to 1"),
    ],
)
def test_splits_that_cannot_be_are_refused(texts, fractions, message):
    with pytest.raises(AttnlabError, match=message):
        split_texts(texts, fractions=fractions, seed=0)


def test_duplicates_are_kept_once_unless_they_contradict():
    texts = many(5)
    noisy = Texts.of([*texts.texts, "très  0", "new"], [*texts.labels, "b", "a"])
    kept = drop_duplicates(noisy)
    labels: dict[str, set[str]] = {}
    for text, label in zip(noisy.texts, noisy.labels, strict=True):
        labels.setdefault(plain(text), set()).add(label)
    agreed = {text for text, found in labels.items() if len(found) == 1}
    assert [plain(text) for text in kept.texts] == [
        t for t in dict.fromkeys(map(plain, noisy.texts)) if t in agreed
    ]
    assert len(kept) + sum(entry.count for entry in kept.dropped) == len(noisy)
    contradictory = next(
        entry for entry in kept.dropped if entry.reason == "contradictory duplicate"
    )
    assert contradictory.count == sum(plain(text) not in agreed for text in noisy.texts)
    assert drop_duplicates(kept).texts == kept.texts
    with pytest.raises(AttnlabError, match="all 2 texts occur with several labels"):
        drop_duplicates(Texts.of(["a", "a "], ["x", "y"]))


def test_leaks_are_found_and_shown():
    train, other = (
        Texts.of(["one text", "two"]),
        Texts.of(["three", "one  text", "ONE TEXT", "two "]),
    )
    found = leaks(train, other)
    assert (found.count, found.share, found.places.tolist()) == (2, 0.5, [1, 3])
    assert [str(example) for example in found.examples] == ["text 2: 'one text'", "text 4: 'two'"]
    train, test = split_texts(many(), fractions=(0.7, 0.3), seed=0)
    assert leaks(train, test).count == 0
