from collections import Counter

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Corpus, Tokenizer, Vocabulary, index_texts


def random_texts(seed: int, count: int, words: int = 30) -> list[str]:
    rng = np.random.default_rng(seed)
    # Zipf-like, so that some words are rare; some texts are empty.
    return [
        " ".join(f"w{int(w)}" for w in rng.geometric(0.15, rng.integers(0, 12)) % words)
        for _ in range(count)
    ]


def test_indexing_agrees_with_counting_word_by_word():
    train, other = random_texts(0, 700), random_texts(1, 600, words=60)
    vocabulary = Vocabulary.of(train, min_count=3)
    labels = ["neg" if len(text) % 2 else "pos" for text in other]
    indexed = index_texts(other, labels, vocabulary)
    tokens = [[w for w in text.split() if w in vocabulary.numbers] for text in other]
    kept = [i for i, words in enumerate(tokens) if words]
    expected = Corpus.from_tokens(
        [tokens[i] for i in kept],
        [labels[i] for i in kept],
        vocabulary=vocabulary.words,
        classes=["neg", "pos"],
    )
    assert indexed.corpus == expected
    assert indexed.kept.tolist() == kept
    assert indexed.wordless.tolist() == [i for i, words in enumerate(tokens) if not words]
    assert indexed.known == sum(map(len, tokens))
    assert indexed.known + indexed.unknown == sum(len(text.split()) for text in other)
    assert indexed.unknown_share == pytest.approx(
        indexed.unknown / (indexed.known + indexed.unknown)
    )


@pytest.mark.parametrize(
    ("min_count", "max_size"), [(1, None), (4, None), (1, 7), (3, 5), (2, 1000)]
)
def test_the_vocabulary_keeps_what_it_says(min_count, max_size):
    texts = random_texts(2, 200)
    vocabulary = Vocabulary.of(texts, min_count=min_count, max_size=max_size)
    counted = Counter(word for text in texts for word in text.split())
    often = sorted((w for w in counted if counted[w] >= min_count), key=lambda w: (-counted[w], w))
    assert list(vocabulary.words) == sorted(often[:max_size])
    assert vocabulary.counts.tolist() == [counted[w] for w in vocabulary.words]
    assert vocabulary.left_out == len(counted) - len(vocabulary)


def test_encoding_keeps_the_order_of_the_text():
    texts = random_texts(3, 1500)  # several chunks, with empty texts among them
    vocabulary = Vocabulary.of(texts[:50], max_size=10)
    encoded = vocabulary.encode(texts)
    for i, text in enumerate(texts):
        span = encoded.words[encoded.offsets[i] : encoded.offsets[i + 1]]
        words = text.split()
        assert [vocabulary.words[w] for w in span] == [w for w in words if w in vocabulary.numbers]
        assert encoded.unknown[i] == len(words) - len(span)
    assert vocabulary.encode([]).offsets.tolist() == [0]


def test_a_tokeniser_is_used_in_both_places():
    tokenizer = Tokenizer(lower=False, punctuation=True)
    vocabulary = Vocabulary.of(["A b!", "c A"], tokenizer=tokenizer)
    assert vocabulary.words == ("!", "A", "b", "c")
    indexed = index_texts(["A !", "a b"], ["x", "y"], vocabulary, tokenizer=tokenizer)
    assert [indexed.corpus.sentence(n) for n in (0, 1)] == [{"!": 1, "A": 1}, {"b": 1}]
    assert indexed.unknown == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Vocabulary.of(["one one", "one"]), "1 different words, 1 of them"),
        (lambda: Vocabulary.of(["a b", "c d"], min_count=2), "0 of them 2 times or more"),
        (lambda: Vocabulary.of(["a b"], min_count=0), "expected min_count ≥ 1"),
        (
            lambda: index_texts(["x"], ["p"], Vocabulary.of(["a b"])),
            "none of the 1 texts has a word of the vocabulary",
        ),
        (lambda: index_texts(["a"], ["p", "q"], Vocabulary.of(["a b"])), "1 texts but 2 labels"),
        (
            lambda: index_texts(["a", "b"], ["p", "q"], Vocabulary.of(["a b"]), classes=["p", "r"]),
            "text 2: the label 'q'",
        ),
    ],
)
def test_bad_input_is_refused_in_words(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()
