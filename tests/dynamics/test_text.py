"""The lens on text against brute force over a small corpus, sentence by sentence and word by word."""

import dataclasses

import jax
import numpy as np
import pytest
import xarray as xr
from scipy.stats import hypergeom

from attnlab import AttnlabError
from attnlab.data import Corpus
from attnlab.dynamics import (
    Surroundings,
    attended,
    class_counts,
    competition,
    deletion_test,
    excess_purity,
    leads,
    purity,
    sen_error,
    telling_pairs,
    text_sen,
    word_table,
)
from attnlab.models import WordAttention, WordAttentionConfig, attention_of, literal_logits
from attnlab.training import Every, Loss, Norms, Scores, train


def random_sentences(classes=2, sentences=60, words=25, seed=0):
    """Tokens with repeats, of very unequal frequency, and labels that lean with the words."""
    rng = np.random.default_rng(seed)
    chances = 1 / np.arange(1, words + 1)
    tokens, labels = [], []
    for _ in range(sentences):
        drawn = rng.choice(words, rng.integers(1, 9), p=chances / chances.sum())
        tokens.append([f"w{w:02d}" for w in drawn])
        labels.append(f"c{(drawn.max() + (rng.random() < 0.3)) % classes}")
    return tokens, labels


@pytest.fixture(scope="module", params=[2, 3], ids=["two classes", "three classes"])
def case(request):
    tokens, labels = random_sentences(request.param)
    return tokens, labels, Corpus.from_tokens(tokens, labels)


@pytest.fixture(scope="module")
def run():
    tokens, labels = random_sentences()
    corpus = Corpus.from_tokens(tokens, labels)
    config = WordAttentionConfig.for_corpus(corpus, embedding_dim=4, query_norm=1.5)
    record = (Loss(), Scores(), Norms(), Surroundings())
    return corpus, train(config, corpus, steps=400, seeds=[3], record=record, when=Every(50))


def on_device(model: WordAttention) -> WordAttention:
    return jax.tree.map(jax.numpy.asarray, model)


def test_purity_counts_sentences(case):
    tokens, labels, corpus = case
    kinds = sorted(set(labels))
    for word, counts, found in zip(
        corpus.vocabulary, class_counts(corpus), purity(corpus).values, strict=True
    ):
        having = [
            sum(word in t and y == kind for t, y in zip(tokens, labels, strict=True))
            for kind in kinds
        ]
        assert counts.tolist() == having
        expected = (len(kinds) * max(having) / sum(having) - 1) / (len(kinds) - 1)
        assert found == pytest.approx(expected)
        if len(kinds) == 2:
            assert found == pytest.approx(abs(having[0] - having[1]) / sum(having))


def test_a_word_that_does_not_occur_has_no_purity():
    corpus = Corpus.from_tokens([["a"], ["a"]], [0, 1], vocabulary=["a", "b"])
    found = excess_purity(corpus, seed=0)
    assert np.isnan(found.purity.values).tolist() == [False, True]
    assert np.isnan(found.excess.values).tolist() == [False, True]


def test_the_null_of_two_classes_is_hypergeometric():
    corpus = Corpus.from_tokens(*random_sentences(words=80))
    found = excess_purity(corpus, seed=1, permutations=4000)
    positive = int(corpus.labels.sum())
    for n, null, spread in zip(
        found.frequency.values, found.null.values, found.spread.values, strict=True
    ):
        k = np.arange(n + 1)
        chance, delta = hypergeom.pmf(k, len(corpus), positive, n), abs(2 * k - n) / n
        mean = chance @ delta
        deviation = np.sqrt(chance @ (delta - mean) ** 2)
        assert null == pytest.approx(mean, abs=5 * deviation / np.sqrt(4000) + 1e-12)
        assert spread == pytest.approx(deviation, rel=0.1, abs=1e-6)
    rare = found.frequency.values == 1
    assert rare.any()
    np.testing.assert_array_equal(found.excess.values[rare], 0.0)
    np.testing.assert_allclose(found.excess, found.purity - found.null)


def test_the_null_permutes_labels(case, monkeypatch):
    """The sparse product, few permutations at a time, against purity of corpora whose labels were
    permuted.
    """
    _, _, corpus = case
    monkeypatch.setattr("attnlab.dynamics._text_purity._BATCH", 7 * len(corpus))
    found = excess_purity(corpus, seed=5, permutations=20)
    rng = np.random.default_rng(5)
    drawn = []
    for count in (7, 7, 6):
        for labels in rng.permuted(np.repeat(corpus.labels[None, :], count, axis=0), axis=1):
            drawn.append(purity(dataclasses.replace(corpus, labels=labels)).values)
    np.testing.assert_allclose(found.null, np.mean(drawn, axis=0), atol=1e-12)
    np.testing.assert_allclose(found.spread, np.std(drawn, axis=0, ddof=1), atol=1e-7)
    assert set(found.leaning.values.tolist()) <= {"", *corpus.classes}


@pytest.mark.parametrize("least", [False, True])
def test_attended_against_a_loop_over_sentences(run, least):
    corpus, trained = run
    words = excess_purity(corpus, seed=0)
    score = trained.data.score
    found = attended(score, corpus, words, least=least)
    assert found.excess.dims == ("seed", "step")
    assert "leaning" not in found
    for i in range(score.sizes["step"]):
        means = []
        for n in range(len(corpus)):
            ids = corpus.word_ids(corpus.sentence(n))
            row = score.values[0, i, ids]
            best = ids[row == (row.min() if least else row.max())]
            means.append(words.excess.values[best].mean())
        assert float(found.excess[0, i]) == pytest.approx(np.mean(means), abs=1e-12)


def test_competition_shows_the_attention_that_the_model_gives(run):
    corpus, trained = run
    data, model = trained.data.isel(seed=0), on_device(trained.model(3))
    sentence = int(np.argmax(np.diff(corpus.offsets)))
    a, b = list(corpus.sentence(sentence))[:2]
    found = competition(data, corpus, [(sentence, a, b), (sentence, b, a)])
    weights = dict(attention_of(model, corpus, sentence))
    np.testing.assert_allclose(
        found.weight.isel(pair=0, step=-1), [weights[a], weights[b]], rtol=1e-10
    )
    np.testing.assert_array_equal(found.weight[0], found.weight[1][::-1])
    np.testing.assert_array_equal(found.score[0, 1], data.score.sel(word=b))
    np.testing.assert_array_equal(found.norm[0, 0], data.norm.sel(word=a))
    assert found.competitor.values.tolist() == [[a, b], [b, a]]
    absent = next(w for w in corpus.vocabulary if w not in corpus.sentence(sentence))
    with pytest.raises(AttnlabError, match=f"{absent!r} is not in sentence {sentence}"):
        competition(data, corpus, [(sentence, a, absent)])


def test_telling_pairs_change_their_order():
    tokens = [
        ["good", "bad", "film"],
        ["good", "fine", "film"],
        ["bad", "dull", "fine"],
        ["dull", "film"],
    ]
    corpus = Corpus.from_tokens(tokens, ["pos", "pos", "neg", "neg"])
    names = list(corpus.vocabulary)  # bad dull film fine good
    words = xr.Dataset(
        {
            "excess": ("word", [0.5, 0.5, 0.0, 0.5, 0.5]),
            "purity": ("word", [0.9, 0.9, 0.0, 0.9, 0.9]),
            "frequency": ("word", [20] * 5),
            "leaning": ("word", ["neg", "neg", "", "pos", "pos"]),
        },
        {"word": names},
    )
    path = np.array([[0, 0, 0, 0, 0], [0.1, 0.9, 5, 0.25, 0.5], [0.6, 0.2, -5, 0.25, 0.4]])
    score = xr.DataArray(path, {"step": [0, 10, 20], "word": names}, ("step", "word"))
    # bad and good: leads of .4 and .2. bad and fine: .15 and .35. dull and fine: .65 and .05. good
    # and fine lean alike.
    assert telling_pairs(score, corpus, words) == [(0, "good", "bad"), (2, "dull", "fine")]
    assert telling_pairs(score, corpus, words, count=1) == [(0, "good", "bad")]
    assert telling_pairs(score, corpus, words, least_frequency=21) == []
    assert telling_pairs(score.isel(step=[0, 1]), corpus, words) == []  # nobody overtakes anybody


def test_the_relation_of_the_top_words(run):
    corpus, trained = run
    data = trained.data.isel(seed=0)
    found = text_sen(data, corpus, step=300, words=6)
    order = np.argsort(-data.score.sel(step=300).values)[:6]
    assert found.word.values.tolist() == [corpus.vocabulary[w] for w in order]
    for word in found.word.values.tolist():
        lengths = [
            sum(corpus.sentence(n).values())
            for n in range(len(corpus))
            if word in corpus.sentence(n)
        ]
        one = data.sel(word=word)
        error = sen_error(one, np.mean(lengths) - 1).sel(step=300)
        assert float(found.sen_error.sel(word=word)) == pytest.approx(
            float(error), rel=1e-10, nan_ok=True
        )
        both = found.sel(word=word)
        if float(both.score) > 0.05:
            miss = abs(float(both.predicted_scaled_norm) / float(both.scaled_norm) - 1)
            assert miss == pytest.approx(float(error), rel=1e-10)
    assert found.sen_error.notnull().any()
    refined = sen_error(data, 1.0, form="refined").sel(step=300).isel(word=order)
    np.testing.assert_allclose(found.sen_error_refined, refined)


def test_word_table_says_when_a_score_set_off(run):
    corpus, trained = run
    data, words = trained.data.isel(seed=0), excess_purity(corpus, seed=0)
    table = word_table(data, corpus, words, step=400, top=5)
    assert (np.diff(table.score) <= 0).all()
    for word in table.word.values.tolist():
        row = table.sel(word=word)
        assert float(row.excess) == float(words.excess.sel(word=word))
        assert float(row.norm) == float(data.norm.sel(word=word, step=400))
        path, steps = data.score.sel(word=word).values, data.step.values
        after = int(np.argmax(path >= path[-1] / 2))
        assert steps[after - 1] <= float(row.onset) <= steps[after]
    assert word_table(data, corpus, words, step=400, top=None).sizes["word"] == len(
        corpus.vocabulary
    )


def test_deletion_against_literal_logits(run):
    corpus, trained = run
    found = deletion_test(trained.model(3), corpus, seed=4)
    model = on_device(trained.model(3))
    flips, lengths = {"top": [], "random": []}, np.diff(corpus.offsets)
    long = np.flatnonzero(lengths > 1)
    drawn = np.random.default_rng(4).integers(0, lengths[long] - 1)
    scores = np.asarray(model.scores())
    for n, place in zip(long.tolist(), drawn.tolist(), strict=True):
        ids = corpus.words[corpus.offsets[n] : corpus.offsets[n + 1]]
        top = ids[np.argmax(scores[ids])]
        others = [w for w in ids if w != top]
        for name, gone in (("top", top), ("random", others[place])):
            flips[name].append(_prediction(model, corpus, n) != _prediction(model, corpus, n, gone))
    top, other = (np.asarray(flips[name]) for name in ("top", "random"))
    assert found.flips.values.tolist() == [top.mean(), other.mean()]
    assert found.only.values.tolist() == [(top & ~other).sum(), (other & ~top).sum()]
    assert (int(found.sentences), int(found.left_out)) == (len(long), len(corpus) - len(long))
    assert int(found.left_out) > 0
    assert top.sum() > other.sum()  # attention means something here
    assert float(found.preference) == (top & ~other).sum() / (
        (top & ~other).sum() + (other & ~top).sum()
    )
    assert (found.flips_low < found.flips).all()


def _prediction(model: WordAttention, corpus: Corpus, n: int, without: int | None = None) -> int:
    words = [w for w, c in corpus.sentence(n).items() for _ in range(c)]
    kept = [w for w in words if without is None or w != corpus.vocabulary[without]]
    alone = Corpus.from_tokens(
        [kept], [corpus.classes[0]], vocabulary=corpus.vocabulary, classes=corpus.classes
    )
    return int(np.argmax(np.asarray(literal_logits(model, alone))))


def test_what_cannot_be_looked_at_is_refused(run):
    corpus, trained = run
    data, words = trained.data, excess_purity(corpus, seed=0)
    with pytest.raises(AttnlabError, match=r"score of 3 words; expected those of all"):
        attended(data.score.isel(word=[0, 1, 2]), corpus, words)
    with pytest.raises(AttnlabError, match="expected those of all"):
        attended(data.score.isel(word=slice(None, None, -1)), corpus, words)
    with pytest.raises(AttnlabError, match="purity of 2 words"):
        attended(data.score, corpus, words.isel(word=[0, 1]))
    with pytest.raises(AttnlabError, match=r"no numbers, only \['leaning'\]"):
        attended(data.score, corpus, words[["leaning"]])
    with pytest.raises(AttnlabError, match="step 7 was not recorded"):
        word_table(data.isel(seed=0), corpus, words, step=7)
    with pytest.raises(AttnlabError, match="choose a seed first"):
        text_sen(data, corpus, step=50)
    with pytest.raises(AttnlabError, match="permutations=1"):
        excess_purity(corpus, seed=0, permutations=1)
    with pytest.raises(AttnlabError, match="no pair given"):
        competition(data.isel(seed=0), corpus, [])
    single = Corpus.from_tokens([["a"], ["b"]], [0, 1])
    model = WordAttentionConfig.for_corpus(single).init(jax.random.key(0))
    with pytest.raises(AttnlabError, match="only one word"):
        deletion_test(model, single, seed=0)


def test_leads_are_counted_pair_by_pair(run):
    """Against a loop over sentences and pairs; the run has two classes."""
    corpus, trained = run
    words = excess_purity(corpus, seed=0, permutations=20)
    data = trained.data.isel(seed=0)
    found = leads(data, corpus, words, least_excess=-0.3, least_frequency=2)
    table = {str(w): words.sel(word=w) for w in words.word.values}
    kept = {w for w, row in table.items() if row.excess >= -0.3 and row.frequency >= 2}
    pairs = set()
    for n in range(len(corpus)):
        inside = [w for w in corpus.sentence(n) if w in kept]
        ranked = sorted(inside, key=lambda w: (-float(table[w].purity), w))
        purest = [
            w
            for kind in {str(table[w].leaning.values) for w in inside}
            for w in [v for v in ranked if str(table[v].leaning.values) == kind][:3]
        ]
        pairs |= {
            (a, b)
            for a in purest
            for b in purest
            if a < b and str(table[a].leaning.values) != str(table[b].leaning.values)
        }
    assert int(found.pairs) == len(pairs) > 10
    for step in data.step.values:
        shares = {"contested": [], "clear": [], "longer": []}
        for pair in pairs:
            score, norm = (
                np.sign(float(np.diff(data[name].sel(word=list(pair), step=step).values)[0]))
                for name in ("score", "norm")
            )
            purer = np.sign(float(table[pair[1]].purity - table[pair[0]].purity))
            pull = np.sign(
                float(
                    table[pair[1]].purity * table[pair[1]].frequency
                    - table[pair[0]].purity * table[pair[0]].frequency
                )
            )
            shares["longer"].append((1 + score * norm) / 2)
            if purer * pull:
                kind = "contested" if purer * pull < 0 else "clear"
                shares[kind].append((1 + score * purer) / 2)
        at = found.sel(step=step)
        assert int(found.contested) == len(shares["contested"]) > 0
        assert float(at.purer_leads) == pytest.approx(np.mean(shares["contested"]))
        assert float(at.clear_leads) == pytest.approx(np.mean(shares["clear"]))
        assert float(at.longer_leads) == pytest.approx(np.mean(shares["longer"]))
