"""``train``: word attention on a corpus, many seeds, one labelled data set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Key

from attnlab._errors import AttnlabError
from attnlab.data import Corpus
from attnlab.models import (
    AbstractNormaliser,
    Softmax,
    WordAttention,
    WordAttentionConfig,
    cast,
    kernel,
    word_normaliser,
)
from attnlab.training._bag_objective import BagObjective
from attnlab.training._drive import AbstractJob, Settings, drive, run_keys
from attnlab.training._loop import EarlyStopping, Fixed, Shared
from attnlab.training._mapped import MappedObjective, can_stay_on_disk
from attnlab.training._objective import Frame, WordObjective
from attnlab.training._optimizers import GradientDescent, GradientFlow
from attnlab.training._probes import AbstractProbe, Loss, Norms, Scores, no_softmax
from attnlab.training._schedule import Every, Schedule
from attnlab.training._trajectory import Trajectory

Init = WordAttentionConfig | Callable[[Array], WordAttention]
_DEFAULT_PROBES: tuple[AbstractProbe, ...] = (Loss(), Scores(), Norms())


def train(
    init: Init,
    corpus: Corpus,
    *,
    steps: int,
    seeds: int | Iterable[int] = 1,
    optimizer: Any = GradientDescent(0.1),  # noqa: B008  (frozen)
    record: Sequence[AbstractProbe] = _DEFAULT_PROBES,
    when: Schedule = Every(10),  # noqa: B008  (frozen)
    words: Iterable[str | int | np.integer] | None = None,
    splits: Mapping[str, Corpus] | None = None,
    batch_size: int | None = None,
    stop: EarlyStopping | None = None,
    root_seed: int = 0,
    dtype: DTypeLike = "float64",
    batch_of_runs: int | Literal["auto"] = 1,
    coordinates: Literal["auto", "explicit"] = "auto",
    progress: bool | None = None,
) -> Trajectory[WordAttention]:
    """Train one model per seed and record what the probes measure.

    - ``init``: a configuration, or a function from a JAX key to a model. Run ``k`` gets the key
      ``fold_in(key(root_seed), k)``, so it does not depend on the other runs. Normalisers other
      than softmax are computed on padded sentences, without fast pooling.
    - ``seeds``: the number of runs, or their seeds. ``steps``: the length of each run.
    - ``optimizer``: ``GradientDescent``, ``Adam``, any Optax optimiser, or ``GradientFlow``.
    - ``record``, ``when``, ``words``: what is recorded, at which steps, of which words (all by
      default).
    - ``splits``: further corpora by name, for ``Loss("test")``, ``Accuracy("test")`` and early
      stopping.
    - ``batch_size``: sentences per step, drawn without replacement in each epoch; ``None`` for all.
      With a batch size, a corpus of ``Corpus.open`` stays on disk and may be larger than memory,
      unless a probe needs all of it at once.
    - ``batch_of_runs``: how many runs are trained together in one compiled call; ``"auto"``
      measures and stores its choice. A run is equal bit for bit whenever ``batch_of_runs``, machine
      and thread count are equal; otherwise it agrees to rounding.
    - ``coordinates``: ``"auto"`` trains only the coordinates that descent changes (exact, and much
      faster), ``"explicit"`` all parameters.
    - ``progress``: a bar on standard error; by default on a terminal or in a notebook.

    Ctrl-C ends the call early and returns what has been recorded. A run whose loss is no longer
    finite ends and is marked; the other runs are unaffected.

    >>> from attnlab.data import TopicTask
    >>> task = TopicTask(topics=2, topic_words=1, dictionary=30, noise_words=4)
    >>> corpus = task.sample(200, key=jax.random.key(1))
    >>> config = WordAttentionConfig.for_corpus(corpus, query_norm=1.0)
    >>> run = train(config, corpus, steps=300, seeds=2, when=Every(100), words=task.topic_word_ids)
    >>> dict(run.data.score.sizes), bool((run.data.loss[:, -1] < run.data.loss[:, 0]).all())
    ({'seed': 2, 'step': 4, 'word': 2}, True)
    """
    parts = dict(splits or {})
    settings = Settings.of(
        steps=steps,
        seeds=seeds,
        optimizer=optimizer,
        record=record,
        when=when,
        batch_size=batch_size,
        stop=stop,
        root_seed=root_seed,
        dtype=dtype,
        batch_of_runs=batch_of_runs,
        progress=progress,
        examples=(len(corpus), "sentences"),
        splits=list(parts),
    )
    _check_corpora(coordinates, parts, corpus)
    chosen, kind = corpus.word_ids(words), settings.dtype
    linear = isinstance(settings.rule, GradientFlow) or settings.rule.linear
    job = _WordJob(init, kind, root_seed, corpus, reduced=coordinates == "auto" and linear)
    normaliser = job.normaliser(settings.seeds[0])
    _check_probes(normaliser, record)

    def objective(
        part: Corpus, batch: int | None = None
    ) -> WordObjective | BagObjective | MappedObjective:
        softmax = normaliser == Softmax()
        if softmax and batch is not None and can_stay_on_disk(part, settings.probes):
            return MappedObjective.of(part, batch)
        return WordObjective.of(part, kind, batch) if softmax else BagObjective.of(part, normaliser)

    shared = Shared(
        objective(corpus, batch_size),
        {name: objective(part) for name, part in parts.items()},
        jnp.asarray(chosen, jnp.int32),
        settings.step_size,
    )
    attrs = {
        "kernel": kernel().name,
        "coordinates": "reduced" if job.reduced else "explicit",
        "corpus": corpus.content_hash,
        "normaliser": normaliser.name,
        "sentences": "read from disk"
        if isinstance(shared.objective, MappedObjective)
        else "in memory",
    }
    return drive(settings, job, shared, words=[corpus.vocabulary[w] for w in chosen], attrs=attrs)


class _WordJob(AbstractJob[WordAttention]):
    """Word attention that fits a corpus."""

    def __init__(
        self, init: Init, dtype: np.dtype, root_seed: int, corpus: Corpus, *, reduced: bool
    ):
        self.init, self.dtype, self.root_seed, self.reduced = init, dtype, root_seed, reduced
        self.words, self.classes = len(corpus.vocabulary), len(corpus.classes)
        self._first: dict[int, WordAttention] = {}

    def normaliser(self, seed: int) -> AbstractNormaliser:
        """The normaliser, which all runs share with the run of this seed."""
        if isinstance(self.init, WordAttentionConfig):
            return word_normaliser(self.init.normaliser)
        # Keep the model for its run: a user's function may have side effects, so call it once per
        # seed.
        self._first[seed] = self._model(run_keys(self.root_seed, seed)[0])
        return self._first[seed].normaliser

    def fixed(self, seed: int) -> Fixed:
        """Frame and minibatch key of one run."""
        model_key, batch_key = run_keys(self.root_seed, seed)
        model = self._first.pop(seed) if seed in self._first else self._model(model_key)
        return Fixed(Frame.of(model, reduced=self.reduced), batch_key)

    def notes(self, fixed: Fixed) -> dict[str, float]:
        """``query_norm``: |q| at the start."""
        assert isinstance(fixed.frame, Frame)
        _, query = fixed.frame.keyed.restore(fixed.frame.initial()["scores"])
        return {"query_norm": float(jnp.linalg.norm(query))}

    def _model(self, key: Key[Array, ""]) -> WordAttention:
        model = (
            self.init.init(key) if isinstance(self.init, WordAttentionConfig) else self.init(key)
        )
        if not isinstance(model, WordAttention):
            raise AttnlabError(f"init returned {type(model).__name__}, expected a WordAttention")
        rows = {"embeddings": model.embeddings.shape[0], "keys": model.keys.shape[0]}
        wrong = [name for name, count in rows.items() if count != self.words]
        if wrong:
            raise AttnlabError(
                f"the model has {wrong[0]} of {rows[wrong[0]]} words but the corpus has "
                f"{self.words}; WordAttentionConfig.for_corpus(corpus) has matching sizes"
            )
        logits = jax.eval_shape(
            model.head, jax.ShapeDtypeStruct(model.embeddings.shape[1:], model.embeddings.dtype)
        )
        if logits.shape != (self.classes,):
            raise AttnlabError(
                f"the head returns logits of shape {logits.shape}; expected ({self.classes},), one "
                "per class of the corpus"
            )
        return cast(model, self.dtype)


def _check_probes(normaliser: AbstractNormaliser, record: Sequence[AbstractProbe]) -> None:
    """Raise an error for probes that need softmax if the attention is another."""
    for probe in record:
        if normaliser != Softmax() and probe.needs_context:
            raise no_softmax(probe, f"the model's attention is {normaliser.name}")


def _check_corpora(coordinates: str, splits: Mapping[str, Corpus], corpus: Corpus) -> None:
    """Raise an error for unknown coordinates, and for splits that do not match the corpus."""
    if coordinates not in ("auto", "explicit"):
        raise AttnlabError(f"coordinates={coordinates!r}: expected 'auto' or 'explicit'")
    for name, part in splits.items():
        if part.vocabulary != corpus.vocabulary or part.classes != corpus.classes:
            raise AttnlabError(
                f"the split {name!r} has {len(part.vocabulary)} words and {len(part.classes)} "
                "classes that are not those of the training data "
                f"({len(corpus.vocabulary)} and {len(corpus.classes)}); build both over one "
                "vocabulary, or use corpus.split"
            )
