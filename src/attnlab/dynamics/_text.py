"""Attention on real text (docs/theory.md#a7): attended words, their onsets, and SEN for them.

All functions take what ``train(..., words=None)`` recorded for *every* word, and the training
corpus. They work on sentences without padding, and keep other dimensions (``seed``, ``step``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float, Int
from numpy import ndarray

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.dynamics._rates import onset_time
from attnlab.dynamics._sen import sen_error, sen_norm
from attnlab.dynamics._text_purity import word_names

Triple = tuple[int, str, str]
_PURE_WORDS = 3  # words per class and sentence among which pairs are searched


def attended(
    score: xr.DataArray, corpus: Corpus, words: xr.Dataset, *, least: bool = False
) -> xr.Dataset:
    """Means over sentences of the values in ``words`` at each sentence's top-attended word, by step.

    The top-attended word of a sentence has the highest score, however often it occurs. Words of
    equal score share the place evenly, so the row of step 0, where all scores are equal, is that of
    a random word. ``words``: values per word, as from ``excess_purity``; those that are not numbers
    are ignored. ``least`` takes the least attended word instead, as a control.

    >>> corpus = Corpus.from_tokens([["good", "film"], ["bad", "film"]], labels=["pos", "neg"])
    >>> names = {"word": ["bad", "film", "good"]}
    >>> score = xr.DataArray([[0.0, 0.0, 0.0], [0.2, -0.5, 0.3]], names, ("step", "word"))
    >>> words = xr.Dataset({"purity": ("word", [1.0, 0.0, 1.0])}, names)
    >>> attended(score, corpus, words).purity.values.tolist()
    [0.5, 1.0]
    """
    rows = _whole(score, corpus).transpose(..., "word")
    names = [
        str(name)
        for name, values in words.data_vars.items()
        if np.issubdtype(values.dtype, np.number)
    ]
    if not names:
        raise AttnlabError(
            f"words holds no numbers, only {list(words)}: expected what excess_purity returns"
        )
    table = np.stack([_whole(words[name], corpus).values.astype(np.float64) for name in names])
    flat = rows.values.reshape(-1, rows.sizes["word"])
    means = np.stack([_mean_of_top(-row if least else row, corpus, table) for row in flat])
    coords = {name: value for name, value in rows.coords.items() if "word" not in value.dims}
    shape = rows.shape[:-1]
    found = {name: (rows.dims[:-1], means[:, i].reshape(shape)) for i, name in enumerate(names)}
    return xr.Dataset(found, coords)


def _mean_of_top(score: ndarray, corpus: Corpus, table: ndarray) -> Float[ndarray, "quantities"]:
    entries = score[corpus.words]
    top = np.maximum.reduceat(entries, corpus.offsets[:-1])
    at_top = entries == top[corpus.rows]
    shared = at_top / np.add.reduceat(at_top, corpus.offsets[:-1], dtype=np.float64)[corpus.rows]
    weight = np.bincount(corpus.words, weights=shared, minlength=len(corpus.vocabulary))
    chosen = weight > 0  # the purity of other words may be nan
    return table[:, chosen] @ weight[chosen] / len(corpus)


def competition(data: xr.Dataset, corpus: Corpus, triples: Sequence[Triple]) -> xr.Dataset:
    """Two words of one sentence during training: ``weight``, ``score``, ``norm``.

    ``weight`` is the attention of all occurrences of a word. ``triples``: (sentence, word, word), as
    from ``telling_pairs``. Dimensions (pair, side, …) before those of ``data``; ``competitor``
    (pair, side) holds the words and ``sentence`` (pair) the sentence's number.
    """
    _whole(data.score, corpus)
    weights, scores, norms = [], [], []
    for sentence, *pair in triples:
        span = slice(corpus.offsets[sentence], corpus.offsets[sentence + 1])
        numbers = corpus.word_ids(pair)
        absent = [
            word for word, n in zip(pair, numbers, strict=True) if n not in corpus.words[span]
        ]
        if absent:
            raise AttnlabError(
                f"the word {absent[0]!r} is not in sentence {sentence}: {corpus.sentence(sentence)}"
            )
        all_scores = data.score.isel(word=corpus.words[span])
        mass = xr.DataArray(corpus.counts[span], dims="word") * np.exp(
            all_scores - all_scores.max("word")
        )
        share = (mass / mass.sum("word")).isel(word=np.searchsorted(corpus.words[span], numbers))
        for found, values in (
            (weights, share),
            (scores, data.score.isel(word=numbers)),
            (norms, data.norm.isel(word=numbers)),
        ):
            found.append(values.drop_vars("word").rename(word="side").transpose("side", ...))
    if not triples:
        raise AttnlabError(
            "competition: no pair given; expected tuples (sentence, word, word), as from "
            "telling_pairs"
        )
    joined = {
        n: xr.concat(v, "pair")
        for n, v in (("weight", weights), ("score", scores), ("norm", norms))
    }
    return xr.Dataset(joined).assign(
        competitor=(("pair", "side"), np.asarray([pair for _, *pair in triples], dtype=np.str_)),
        sentence=("pair", np.asarray([sentence for sentence, *_ in triples])),
    )


def leads(
    data: xr.Dataset,
    corpus: Corpus,
    words: xr.Dataset,
    *,
    least_excess: float = 0.2,
    least_frequency: int = 10,
) -> xr.Dataset:
    """Of two words that compete in a sentence, which one has the higher score, along training?

    Pairs are words of different classes that stand in one sentence, as `telling_pairs` searches
    them, each pair once. The *pull* of a word is its purity times its frequency, for two classes
    ``|pos − neg|``. Dimensions are those of ``data`` without ``word``:

    - ``purer_leads``: among the pairs whose purer word has the smaller pull, the share in which the
      purer word has the higher score (ties count half); ``contested``: the number of these pairs;
    - ``clear_leads``: the same among the pairs whose purer word has the larger pull as well;
    - ``longer_leads``: among all ``pairs``, the share in which the word of the higher score has the
      longer embedding.

    >>> corpus = Corpus.from_tokens([["good", "dull"]] * 3 + [["dull"]] * 9, labels="pppnnnnnnnnp")
    >>> names = {"word": ["dull", "good"]}
    >>> words = xr.Dataset({"purity": ("word", [0.5, 1.0]), "excess": ("word", [0.4, 0.4]), "frequency":
    ...     ("word", [12, 3]), "leaning": ("word", ["n", "p"])}, names)
    >>> score = xr.DataArray([[0.0, 0.0], [0.2, 0.1], [0.2, 0.4]], names, ("step", "word"))
    >>> found = leads(xr.Dataset({"score": score, "norm": score}), corpus, words, least_frequency=3)
    >>> found.purer_leads.values.tolist(), found.longer_leads.values.tolist()
    ([0.5, 0.0, 1.0], [0.5, 1.0, 1.0])
    """
    keep = (words.excess.values >= least_excess) & (words.frequency.values >= least_frequency)
    purity = words.purity.values
    pull = purity * words.frequency.values
    found = {pair[1:] for pair in _pure_pairs(corpus, keep, purity, words.leaning.values)}
    a, b = np.array(sorted(found), np.int64).reshape(-1, 2).T
    purer = np.sign(purity[a] - purity[b])
    agreement = purer * np.sign(pull[a] - pull[b])

    def lead(name: str) -> xr.DataArray:
        values = _whole(data[name], corpus)
        first, second = (values.isel(word=n).drop_vars("word").rename(word="pair") for n in (a, b))
        return xr.apply_ufunc(np.sign, first - second)

    def share(signs: xr.DataArray, chosen: ndarray) -> xr.DataArray:
        return (1 + signs.isel(pair=np.flatnonzero(chosen)).mean("pair")) / 2

    score, norm = lead("score"), lead("norm")
    with_purity = score * xr.DataArray(purer, dims="pair")
    return xr.Dataset(
        {
            "purer_leads": share(with_purity, agreement < 0),
            "clear_leads": share(with_purity, agreement > 0),
            "longer_leads": share(score * norm, agreement == agreement),
            "pairs": len(a),
            "contested": int((agreement < 0).sum()),
        }
    )


def telling_pairs(
    score: xr.DataArray,
    corpus: Corpus,
    words: xr.Dataset,
    *,
    count: int = 4,
    least_excess: float = 0.2,
    least_frequency: int = 10,
) -> list[Triple]:
    """Sentences in which two pure words of different classes compete and their order changes.

    Among words with at least this excess purity and frequency (``words`` as from
    ``excess_purity``), the purest few of each class and sentence are paired. A pair is rated by the
    smaller of its two leads, ``max_t (s_a − s_b)`` and ``max_t (s_b − s_a)``. Returns the ``count``
    highest rated pairs that share no word, best first, as (sentence, earlier leader, later leader);
    fewer, or none, if no order changes.
    """
    path = _whole(score, corpus).transpose("step", "word").values
    keep = (words.excess.values >= least_excess) & (words.frequency.values >= least_frequency)
    found: dict[tuple[int, int], int] = {}
    for sentence, a, b in _pure_pairs(corpus, keep, words.purity.values, words.leaning.values):
        found.setdefault((a, b), sentence)
    if not found:
        return []
    pairs = np.asarray(list(found))
    lead = path[:, pairs[:, 0]] - path[:, pairs[:, 1]]
    telling = np.minimum(lead.max(axis=0), -lead.min(axis=0))
    chosen: list[Triple] = []
    taken: set[int] = set()
    for i in np.argsort(-telling, kind="stable"):
        a, b = (int(w) for w in pairs[i])
        if telling[i] <= 0 or len(chosen) == count:
            break
        if not {a, b} & taken:
            taken |= {a, b}
            first, later = (a, b) if np.argmax(lead[:, i]) < np.argmin(lead[:, i]) else (b, a)
            chosen.append((found[a, b], corpus.vocabulary[first], corpus.vocabulary[later]))
    return chosen


def _pure_pairs(
    corpus: Corpus, keep: ndarray, purity: ndarray, leaning: ndarray
) -> Iterator[tuple[int, int, int]]:
    """(sentence, word, word) of the purest words of different classes, word numbers ascending."""
    entries = np.flatnonzero(keep[corpus.words])
    bounds = np.searchsorted(entries, corpus.offsets)
    for sentence in np.flatnonzero(np.diff(bounds) > 1):
        inside = corpus.words[entries[bounds[sentence] : bounds[sentence + 1]]]
        ranked = inside[np.argsort(-purity[inside], kind="stable")]
        purest = [
            w
            for kind in np.unique(leaning[inside])
            for w in ranked[leaning[ranked] == kind][:_PURE_WORDS]
        ]
        for a in purest:
            for b in purest:
                if a < b and leaning[a] != leaning[b]:
                    yield int(sentence), int(a), int(b)


def text_sen(data: xr.Dataset, corpus: Corpus, *, step: int, words: int = 100) -> xr.Dataset:
    """The score–norm relation of the words with the highest scores at one step of one run.

    Takes a run with dimensions ``step`` and ``word``. Returns, along ``word``, highest score first:
    ``score``, ``others`` m (``corpus.mean_others``), ``scaled_norm`` |q||ν|,
    ``predicted_scaled_norm`` in the plain form, ``sen_error``, its relative error, and
    ``sen_error_corrected`` and ``sen_error_refined`` if ``SenTerms`` and ``Surroundings`` were
    recorded. Errors are nan for scores of at most 0.05.
    """
    numbers = top_words(data.score, corpus, step=step, words=words)
    rows = np.unique([0, step])
    chosen = data.isel(word=numbers).sel(step=rows)
    others = xr.DataArray(corpus.mean_others[numbers], {"word": chosen.word.values}, "word")
    start, end = chosen.sel(step=0, drop=True), chosen.sel(step=step, drop=True)
    found = {
        "score": end.score,
        "others": others,
        "scaled_norm": data.query_norm * end.norm,
        "predicted_scaled_norm": sen_norm(
            end.score, others=others, query_norm=data.query_norm, initial_norm=start.norm
        ),
        "sen_error": sen_error(chosen, others).sel(step=step, drop=True),
    }
    if "i1" in data:
        found["sen_error_corrected"] = sen_error(chosen, others, form="corrected").sel(
            step=step, drop=True
        )
    if "others_mass" in data:
        found["sen_error_refined"] = sen_error(chosen, others, form="refined").sel(
            step=step, drop=True
        )
    return xr.Dataset(found).drop_vars("time", errors="ignore")


def word_table(
    data: xr.Dataset, corpus: Corpus, words: xr.Dataset, *, step: int, top: int | None = 200
) -> xr.Dataset:
    """A table of the words with the highest scores at one step of one run.

    Along ``word``, highest score first: ``score``, ``norm``, ``onset`` (the first step at which the
    score reaches half of its value here; nan for a score that is not above zero), ``others`` m, and
    all variables of ``words`` (as from ``excess_purity``: purity, excess, frequency, leaning).
    ``top=None`` lists the whole vocabulary.
    """
    numbers = top_words(
        data.score, corpus, step=step, words=len(corpus.vocabulary) if top is None else top
    )
    chosen = data.isel(word=numbers)
    now = chosen.sel(step=step, drop=True)
    upto = chosen.score.sel(step=slice(0, step)).astype(np.float64)
    table = words.isel(word=numbers).assign(
        score=now.score,
        norm=now.norm,
        onset=onset_time(upto, time=upto.step.values),
        others=("word", corpus.mean_others[numbers]),
    )
    return table.drop_vars(["time", "step"], errors="ignore")


def top_words(score: xr.DataArray, corpus: Corpus, *, step: int, words: int) -> Int[ndarray, "top"]:
    """Numbers of the words with the highest scores at one step of one run, highest first."""
    row = _whole(score, corpus)
    if step not in row.step.values:
        raise AttnlabError(
            f"step {step} was not recorded; expected one of {len(row.step)} recorded steps, such as "
            f"{row.step.values[[0, 1, -1]].tolist()}"
        )
    values = row.sel(step=step).values
    if values.ndim != 1:
        raise AttnlabError(
            f"expected one run with the dimensions step and word, got {row.dims}: choose a seed "
            "first"
        )
    return np.argsort(-values, kind="stable")[:words]


def _whole(values: xr.DataArray, corpus: Corpus) -> xr.DataArray:
    """The values, checked to be those of all words of the corpus."""
    if values.sizes.get("word") != len(corpus.vocabulary) or not np.array_equal(
        values.word, word_names(corpus)
    ):
        raise AttnlabError(
            f"{values.name or 'values'} of {values.sizes.get('word', 0)} words; expected those of "
            f"all {len(corpus.vocabulary)} words of the corpus in its order: record every word, "
            "train(..., words=None)"
        )
    return values
