"""The entry: train many seeds, get one labelled data set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Key
from rich.progress import Progress

import attnlab
from attnlab._errors import AttnlabError
from attnlab.models import WordAttention, WordAttentionConfig, cast, kernel
from attnlab.tasks import Corpus
from attnlab.training._flow import solve_flow
from attnlab.training._loop import (
    NON_FINITE,
    RUNNING,
    EarlyStopping,
    Fixed,
    Rules,
    Run,
    Shared,
    advance,
    start,
)
from attnlab.training._objective import Frame, WordObjective
from attnlab.training._optimizers import Descent, GradientDescent, GradientFlow, as_optimizer
from attnlab.training._probes import AbstractProbe, Loss, Norms, Scores
from attnlab.training._progress import Interrupt, interruptible, progress_bar
from attnlab.training._schedule import Every, Schedule
from attnlab.training._trajectory import Recorder, Trajectory, to_host

_SECONDS_PER_CALL = 0.25  # how long Ctrl-C may have to wait
_BYTES_PER_CALL = 32 * 2**20  # rows kept on the device before they move to the host
_BYTES_OF_RECORD = 4 * 2**30  # a larger record is refused before training starts

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
    width: int | Literal["auto"] = 1,
    coordinates: Literal["auto", "explicit"] = "auto",
    progress: bool | None = None,
) -> Trajectory:
    """Train one model per seed and record what the probes ask for.

    - ``init``: a configuration, or a function from a JAX key to a model. Run ``k`` gets the key
      ``fold_in(key(root_seed), k)``, so that it is the same run alone and in any company.
    - ``seeds``: how many runs, or their numbers. ``steps``: length of each.
    - ``optimizer``: ``GradientDescent``, ``Adam``, any Optax optimiser, or ``GradientFlow``.
    - ``record``, ``when``, ``words``: what is recorded, at which steps, of which words (all by default).
    - ``splits``: further corpora by name, for ``Loss("test")``, ``Accuracy("test")`` and early stopping.
    - ``batch_size``: sentences a step, drawn without replacement in each epoch; ``None`` for all.
    - ``width``: runs trained together in one compiled call; ``"auto"`` measures and stores its choice. A run is equal
      bit for bit whenever the width, machine and thread count are equal; across widths to rounding.
    - ``coordinates``: ``"auto"`` keeps only what descent moves (exact, and much faster), ``"explicit"`` every number.
    - ``progress``: a bar on standard error; by default where that is a terminal.

    Ctrl-C ends the call early and returns what has been recorded. A run whose loss is no longer finite is marked and
    ends; the others go on.

    >>> from attnlab.tasks import TopicTask
    >>> task = TopicTask(topics=2, topic_words=1, dictionary=30, noise_words=4)
    >>> corpus = task.sample(200, key=jax.random.key(1))
    >>> config = WordAttentionConfig.for_corpus(corpus, query_norm=1.0)
    >>> run = train(config, corpus, steps=300, seeds=2, when=Every(100), words=task.topic_word_ids)
    >>> dict(run.data.score.sizes), bool((run.data.loss[:, -1] < run.data.loss[:, 0]).all())
    ({'seed': 2, 'step': 4, 'word': 2}, True)
    """
    rule = as_optimizer(optimizer)
    numbers = list(range(int(seeds))) if isinstance(seeds, int | np.integer) else [int(s) for s in seeds]
    _check(numbers, steps, batch_size, len(corpus), stop, splits or {}, rule, record)
    _check_words(when, width, coordinates, dtype, splits or {}, corpus)
    if stop is not None and Loss(stop.split) not in record:
        record = (*record, Loss(stop.split))
    kind = jnp.dtype(dtype)
    chosen = corpus.word_ids(words)
    shared = Shared(
        WordObjective.of(corpus, kind, batch_size),
        {name: WordObjective.of(part, kind) for name, part in (splits or {}).items()},
        jnp.asarray(chosen, jnp.int32),
    )
    linear = isinstance(rule, GradientFlow) or rule.linear
    job = _Job(init, kind, root_seed, corpus, reduced=coordinates == "auto" and linear)
    dims = _dims(record)
    recorded = when.steps(steps)
    _check_size(dims, len(numbers), len(recorded), len(chosen), kind)
    recorder = Recorder(numbers, recorded)
    attrs: dict[str, Any] = {
        "attnlab": attnlab.__version__, "jax": jax.__version__, "kernel": kernel(), "dtype": str(kind),
        "optimizer": repr(rule), "step_size": float(rule.step_size), "root_seed": root_seed,
        "coordinates": "reduced" if job.reduced else "explicit", "corpus": corpus.content_hash,
    }  # fmt: skip
    with (
        interruptible() as interrupt,
        progress_bar(progress, "training", len(numbers) * max(steps, 1)) as bar,
    ):
        if isinstance(rule, GradientFlow):
            attrs["width"] = 1
            _flow_all(rule, tuple(record), job, shared, recorder, bar, interrupt)
        else:
            rules = Rules(rule, tuple(record), batch_size, stop, _rows_per_call(dims, len(chosen)), 1)
            if width == "auto":
                width, cost = propose_width(rules, job, shared, len(numbers))
                attrs["width_cost"] = repr(cost)
            attrs["width"] = width
            _descend_all(rules, int(width), job, shared, recorder, bar, interrupt)
    names = [corpus.vocabulary[w] for w in chosen] if any("word" in d for d in dims.values()) else []
    return Trajectory(recorder.dataset(dims, names, attrs), recorder.models)


class _Job:
    """How the run of a seed begins."""

    def __init__(self, init: Init, dtype: jnp.dtype, root_seed: int, corpus: Corpus, *, reduced: bool):
        self.init, self.dtype, self.root, self.reduced = init, dtype, jax.random.key(root_seed), reduced
        self.words, self.classes = len(corpus.vocabulary), len(corpus.classes)

    def fixed(self, seed: int) -> Fixed:
        """Frame and minibatch key of one run."""
        model_key, batch_key = jax.random.split(jax.random.fold_in(self.root, seed))
        return Fixed(Frame.of(self._model(model_key), reduced=self.reduced), batch_key)

    def _model(self, key: Key[Array, ""]) -> WordAttention:
        model = self.init.init(key) if isinstance(self.init, WordAttentionConfig) else self.init(key)
        if not isinstance(model, WordAttention):
            raise AttnlabError(f"init returned {type(model).__name__}, expected a WordAttention")
        rows = {"embeddings": model.embeddings.shape[0], "keys": model.keys.shape[0]}
        wrong = [name for name, count in rows.items() if count != self.words]
        if wrong:
            raise AttnlabError(
                f"the model has {wrong[0]} of {rows[wrong[0]]} words but the corpus has {self.words}; "
                "WordAttentionConfig.for_corpus(corpus) makes one that fits"
            )
        logits = jax.eval_shape(model.head, jax.ShapeDtypeStruct(model.embeddings.shape[1:], model.embeddings.dtype))
        if logits.shape != (self.classes,):
            raise AttnlabError(
                f"the head gives logits of shape {logits.shape} but the corpus has {self.classes} classes"
            )
        return cast(model, self.dtype)


def _query_norm(fixed: Fixed) -> float:
    """|q| at the start."""
    _, query = fixed.frame.keyed.restore(fixed.frame.initial()["scores"])
    return float(jnp.linalg.norm(query))


def _stacked(fixeds: Sequence[Fixed]) -> Fixed:
    try:
        return jax.tree.map(lambda *leaves: jnp.stack(leaves), *fixeds)
    except ValueError:
        raise AttnlabError(
            "the models of one batch differ in more than numbers (a head's function made anew for each seed?); "
            "define such functions once, or train with width=1"
        ) from None


def _descend_all(
    rules: Rules,
    width: int,
    job: _Job,
    shared: Shared,
    recorder: Recorder,
    bar: Progress,
    interrupt: Interrupt,
) -> None:
    """Train all runs, ``width`` at a time; a last group that is too small is filled up with copies."""
    rules = _with_width(rules, width)
    for first in range(0, len(recorder.seeds), width):
        if interrupt.pressed:
            return
        positions = list(range(first, min(first + width, len(recorder.seeds))))
        bar.update(bar.task_ids[0], runs=f"run {first + 1} of {len(recorder.seeds)}")
        filled = [recorder.seeds[p] for p in positions] + [recorder.seeds[positions[-1]]] * (width - len(positions))
        fixeds = [job.fixed(seed) for seed in filled]
        fixed = fixeds[0] if width == 1 else _stacked(fixeds)
        for position, one in zip(positions, fixeds, strict=False):
            recorder.note(position, query_norm=_query_norm(one))
        run = _descend_group(rules, fixed, shared, recorder, positions, bar, interrupt)
        _finish_group(rules, run, fixed, recorder, positions)


def _descend_group(
    rules: Rules,
    fixed: Fixed,
    shared: Shared,
    recorder: Recorder,
    positions: list[int],
    bar: Progress,
    interrupt: Interrupt,
) -> Run:
    """Train one group from row to row, in calls short enough for Ctrl-C."""
    run = start(rules, fixed, shared)
    steps = recorder.steps
    row, at, budget = 0, 0, 1
    while row < len(steps) and not interrupt.pressed:
        stops, places, rows, reached = _slots(steps, row, at, budget, rules.rows)
        begun = time.perf_counter()
        run, values = advance(rules, run, fixed, shared, *_padded(stops, places, rules.rows))
        host = to_host(values)
        status = np.atleast_1d(np.asarray(run.status))
        elapsed = time.perf_counter() - begun
        for i, position in enumerate(positions):
            recorder.write(position, row, {n: (v if rules.width == 1 else v[i])[:rows] for n, v in host.items()})
        moved = reached - at
        # Grow by steps: the first call compiles and says nothing about the rate, and a short one says little.
        budget = max(1, min(8 * budget, int(max(moved, 1) * _SECONDS_PER_CALL / max(elapsed, 1e-6))))
        row, at = row + rows, reached
        bar.update(bar.task_ids[0], advance=moved * len(positions))
        if (status != RUNNING).all():
            break
    return run


def _slots(steps: np.ndarray, row: int, at: int, budget: int, most_rows: int) -> tuple[list[int], list[int], int, int]:
    """The slots of one call: which steps to train to, where their rows go, how many rows, the step reached.

    The row of step ``at`` is due when ``steps[row] == at``; a long way to the next row is cut where the budget ends.
    """
    stops: list[int] = []
    places: list[int] = []
    rows, end = 0, at + budget
    while row + rows < len(steps) and len(stops) < most_rows:
        due = steps[row + rows] == at
        if not due and stops:
            break
        places.append(rows if due else most_rows)
        rows += int(due)
        following = int(steps[row + rows]) if row + rows < len(steps) else at
        at = max(at, min(following, max(end, at + 1)))
        stops.append(at)
        if at >= end:
            break
    return stops, places, rows, at


def _padded(stops: list[int], places: list[int], size: int) -> tuple[Array, Array, Array]:
    count = len(stops)
    stop_array, place_array = np.zeros(size, np.int64), np.full(size, size, np.int64)
    stop_array[:count], place_array[:count] = stops, places
    return jnp.asarray(stop_array), jnp.asarray(place_array), jnp.asarray(count)


def _finish_group(rules: Rules, run: Run, fixed: Fixed, recorder: Recorder, positions: list[int]) -> None:
    """Note how each run of a group ended, and keep its model."""
    last = int(recorder.steps[-1])
    for i, position in enumerate(positions):
        one, frame = run, fixed.frame
        if rules.width > 1:
            one, frame = jax.tree.map(lambda leaf, i=i: leaf[i], (run, fixed.frame))
        step, status = int(one.step), int(one.status)
        best = None if one.best is None else int(one.best.step)
        if status == NON_FINITE:
            ended = int(one.ended)
            reason = f"the loss was no longer finite at step {ended}"
            recorder.end(position, "non-finite", reason, ended, best)
        elif status != RUNNING:
            reason = (
                f"no lower loss on {rules.stopping.split!r} for {rules.stopping.patience} rows"
                if rules.stopping
                else ""
            )
            recorder.end(position, "stopped early", reason, int(one.ended), best)
        elif step < last:
            recorder.end(position, "interrupted", f"interrupted at step {step}", step, best)
        else:
            recorder.end(position, "finished", "all steps done", last, best)
        trained = one.trained if one.best is None else one.best.trained
        recorder.models[recorder.seeds[position]] = to_host(frame.model(trained))


def _flow_all(
    flow: GradientFlow,
    probes: tuple[AbstractProbe, ...],
    job: _Job,
    shared: Shared,
    recorder: Recorder,
    bar: Progress,
    interrupt: Interrupt,
) -> None:
    """Integrate all runs, one after the other."""
    times = jnp.asarray(recorder.steps, job.dtype) * flow.step_size
    last = int(recorder.steps[-1])
    for position, seed in enumerate(recorder.seeds):
        if interrupt.pressed:
            return
        fixed = job.fixed(seed)
        rows, final, evaluations, succeeded = to_host(solve_flow(flow, probes, fixed, shared, times))
        recorder.write(position, 0, rows)
        model = fixed.frame.model(jax.tree.map(jnp.asarray, final))
        recorder.note(position, query_norm=_query_norm(fixed), gradient_evaluations=float(evaluations))
        if succeeded:
            recorder.end(position, "finished", "all steps done", last)
        else:
            finite = np.ones(len(recorder.steps), bool)
            for values in rows.values():
                finite &= np.isfinite(values.reshape(len(values), -1).sum(1))
            reached = int(recorder.steps[int(finite.sum()) - 1]) if finite.any() else 0
            reason = f"the integrator gave up after {int(evaluations)} gradient evaluations, near step {reached}"
            recorder.end(position, "non-finite", reason, reached + 1)
        recorder.models[seed] = to_host(model)
        bar.update(bar.task_ids[0], advance=last)


def propose_width(
    rules: Rules, job: _Job, shared: Shared, runs: int, candidates: Sequence[int] = (1, 2, 4, 8)
) -> tuple[int, dict[int, float]]:
    """Measure the CPU time of one step of one run at several widths; one is kept unless another gains 10 %.

    Returns the width, and milliseconds per step and run by width.
    """
    cost: dict[int, float] = {}
    for width in (w for w in candidates if w == 1 or w <= runs):
        chosen = _with_width(rules, width)
        fixed = job.fixed(0) if width == 1 else _stacked([job.fixed(k) for k in range(width)])
        run = start(chosen, fixed, shared)
        run, _ = advance(chosen, run, fixed, shared, *_padded([10], [0], rules.rows))
        jax.block_until_ready(run)
        begun = time.process_time()
        run, _ = advance(chosen, run, fixed, shared, *_padded([60], [rules.rows], rules.rows))
        jax.block_until_ready(run)
        cost[width] = (time.process_time() - begun) * 1e3 / 50 / width
    best = min(cost, key=lambda w: cost[w])
    return (best if cost[best] < 0.9 * cost[1] else 1), cost


def _with_width(rules: Rules, width: int) -> Rules:
    return Rules(rules.optimizer, rules.probes, rules.batch_size, rules.stopping, rules.rows, width)


def _dims(record: Sequence[AbstractProbe]) -> dict[str, tuple[str, ...]]:
    dims: dict[str, tuple[str, ...]] = {}
    for probe in record:
        for name, axes in probe.dims.items():
            if name in dims:
                raise AttnlabError(f"two probes record the name {name!r}; give each its own")
            dims[name] = axes
    return dims


def _row_bytes(dims: Mapping[str, tuple[str, ...]], words: int, size: int = 8) -> int:
    return max(sum(size * (words if "word" in axes else 1) for axes in dims.values()), 1)


def _rows_per_call(dims: Mapping[str, tuple[str, ...]], words: int) -> int:
    return int(np.clip(_BYTES_PER_CALL // _row_bytes(dims, words), 1, 512))


def _check_size(dims: Mapping[str, tuple[str, ...]], runs: int, rows: int, words: int, dtype: jnp.dtype) -> None:
    need = runs * rows * _row_bytes(dims, words, dtype.itemsize)
    if need > _BYTES_OF_RECORD:
        raise AttnlabError(
            f"recording {rows} rows of {words} words in {runs} runs needs {need / 2**30:.1f} GiB of memory, more than "
            f"{_BYTES_OF_RECORD / 2**30:.0f}; choose words=…, or record fewer steps with when=Every(k) or Logarithmic()"
        )


def _check_words(
    when: object, width: object, coordinates: str, dtype: DTypeLike, splits: Mapping[str, Corpus], corpus: Corpus
) -> None:
    """Refuse words and sizes that mean nothing here."""
    if not isinstance(when, Schedule):
        raise AttnlabError(f"when={when!r}: expected Every(k), Logarithmic(count) or At(steps)")
    if width != "auto" and (not isinstance(width, int | np.integer) or isinstance(width, bool) or width < 1):
        raise AttnlabError(f"width={width!r}: expected a whole number ≥ 1 or 'auto'")
    if coordinates not in ("auto", "explicit"):
        raise AttnlabError(f"coordinates={coordinates!r}: expected 'auto' or 'explicit'")
    if str(dtype) not in ("float32", "float64") and dtype not in (jnp.float32, jnp.float64):
        raise AttnlabError(f"dtype={dtype!r}: expected 'float32' or 'float64'")
    for name, part in splits.items():
        if part.vocabulary != corpus.vocabulary or part.classes != corpus.classes:
            raise AttnlabError(
                f"the split {name!r} has {len(part.vocabulary)} words and {len(part.classes)} classes that are not "
                f"those of the training data ({len(corpus.vocabulary)} and {len(corpus.classes)}); build both over one "
                "vocabulary, or use corpus.split"
            )


def _check(
    numbers: Sequence[int],
    steps: int,
    batch_size: int | None,
    sentences: int,
    stop: EarlyStopping | None,
    splits: Mapping[str, Corpus],
    rule: Descent | GradientFlow,
    record: Sequence[AbstractProbe],
) -> None:
    if steps < 0:
        raise AttnlabError(f"steps={steps}: expected a number ≥ 0")
    if not numbers or len(set(numbers)) != len(numbers) or min(numbers) < 0:
        raise AttnlabError(f"seeds={numbers}: expected at least one run, distinct numbers ≥ 0")
    if batch_size is not None and not 1 <= batch_size <= sentences:
        raise AttnlabError(f"batch_size={batch_size}: expected 1 to {sentences}, the number of sentences")
    if stop is not None and stop.split not in splits:
        raise AttnlabError(f"early stopping watches the split {stop.split!r}, which is not among {sorted(splits)}")
    if math.isnan(rule.step_size) and any(p.needs_context for p in record):
        raise AttnlabError("SenTerms needs the step size: give OptaxOptimizer(rule, step_size=…), not the bare rule")
    if isinstance(rule, GradientFlow):
        every = [type(p).__name__ for p in record if p.every_step]
        if every or batch_size is not None or stop is not None:
            what = f"the probe {every[0]}" if every else "batch_size" if batch_size is not None else "early stopping"
            raise AttnlabError(f"a gradient flow has no steps: {what} needs GradientDescent or another descent")
