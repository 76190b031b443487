"""One variant of attention on a teacher that attends to some of 16 words (docs/theory.md#b5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import RunContext

WORK = "attnlab.studies._compare_teachers:fit_variant"
SIZES = (64, 128, 256, 512, 1024, 2048)


@dataclass(frozen=True)
class CompareSettings:
    """One variant fitted to one teacher at several sample sizes; the defaults are the protocol of
    docs/theory.md#b5.

    - ``seed`` draws teacher, samples and start, so that variants of equal seed are paired; ``arm``
      is only a label.
    - ``variant``: as ``Variant.of`` takes it.
    - The teacher attends with equal weights to those ``relevant`` of the ``words`` whose ``u·x_z``
      is largest, u being a unit vector on the first ``informative`` of ``embedding_dim`` coordinates:
      1 is the hard teacher, all words the dense one.
    - ``sizes``: numbers of training samples, out of ``drawn`` (the largest size by default).
    - ``step_sizes``, ``weight_decays``: all pairs are tried, and chosen by the loss on
      ``valid_points`` samples.
    - ``course``: whether one more training at the largest size is followed step by step.
    """

    arm: str = ""
    seed: int = 0
    variant: str = "softmax"
    relevant: int = 1
    noise_std: float = 0.2
    words: int = 16
    embedding_dim: int = 8
    informative: int = 2
    hidden: int = 16
    query_std: float = 0.1
    sizes: tuple[int, ...] = SIZES
    drawn: int | None = None
    steps: int = 1500
    batch_size: int = 64
    step_sizes: tuple[float, ...] = (0.01,)
    weight_decays: tuple[float, ...] = (0.0, 0.1)
    course: bool = False
    test_points: int = 2000
    valid_points: int = 500
    dtype: str = "float32"

    def __post_init__(self):
        from attnlab.studies._compare_variants import Variant

        Variant.of(self.variant)
        if not self.sizes or min(self.sizes) < 1 or (np.diff(self.sizes) <= 0).any():
            raise AttnlabError(
                f"sizes={list(self.sizes)}: expected increasing positive numbers of samples"
            )
        if not 1 <= self.relevant <= self.words:
            raise AttnlabError(
                f"relevant={self.relevant}: expected 1 (hard) to {self.words} (dense), the words"
            )
        if not 1 <= self.informative <= self.embedding_dim:
            raise AttnlabError(
                f"informative={self.informative}: expected 1 to {self.embedding_dim}, the "
                "coordinates of a word"
            )
        if min(self.test_points, self.valid_points) < 2 or self.noise_std < 0:
            raise AttnlabError(
                f"test_points={self.test_points}, valid_points={self.valid_points}, "
                f"noise_std={self.noise_std}: expected at "
                "least 2 points of each kind and noise_std ≥ 0"
            )


def fit_variant(s: CompareSettings, context: RunContext) -> xr.Dataset:
    """One variant's learning curve on one seed's teacher; labelled data, dimension ``size``.

    ``error`` is ``E(ŷ − g)²/Var g`` on noiseless points; ``entropy`` and ``attention`` (on the
    relevant words) say what the student attends to; ``valid_loss``, ``train_loss``, ``settling``
    and the chosen tuning stand beside. With a ``course`` also its curves (dimension ``step``),
    ``onset``, the step at which attention on the relevant words has gone half of its way (the
    error, if all are relevant), and ``sharpness``, λ_max of the training loss at its end.
    """
    import jax

    from attnlab.studies._compare_variants import StudentStart, Variant, VariantLoss, VariantMeasure
    from attnlab.studies._compare_variants import answer_words as answer
    from attnlab.studies._compare_variants import weigh_words as weigh
    from attnlab.training import Recipe, choose, fit_grid

    variant = Variant.of(s.variant)
    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    _, *draws, fit_key = jax.random.split(key, 5)
    source = word_source(context.root_seed, s)
    counts = (max(max(s.sizes), s.drawn or 0), s.valid_points, s.test_points)
    train, valid, test = (
        source.draw(n, draw, noisy, s.dtype)
        for n, draw, noisy in zip(counts, draws, (True, True, False), strict=True)
    )
    start = StudentStart(variant.normaliser, s.embedding_dim, s.hidden, s.query_std, s.dtype)
    loss, measure = (
        VariantLoss(answer, weigh, variant.penalty, variant.strength),
        VariantMeasure(answer, weigh),
    )
    fits = fit_grid(
        start,
        loss,
        measure,
        train,
        {"valid": valid, "test": test},
        sizes=s.sizes,
        key=fit_key,
        step_sizes=s.step_sizes,
        weight_decays=s.weight_decays,
        recipe=Recipe(s.steps, s.batch_size),
    )
    found = choose(fits)
    if not s.course:
        return found
    return found.merge(_course(s, start, loss, measure, train, test, found.isel(size=-1)))


def _course(
    s: CompareSettings,
    start: Any,
    loss: Any,
    measure: Any,
    train: Any,
    test: Any,
    chosen: xr.Dataset,
) -> xr.Dataset:
    """Followed at the largest size, with the tuning that was chosen there."""
    import jax

    from attnlab.landscape import Problem, extremes
    from attnlab.studies._compare_course import train_course
    from attnlab.studies._samples import SampleLoss

    own = jax.tree.map(lambda leaf: leaf[: max(s.sizes)], train)
    # With a dense teacher there is no word to find: training sets off when the error falls.
    names = (
        ("entropy", "error", "attention")
        if s.relevant < s.words
        else ("entropy", "attention", "error")
    )
    found, model = train_course(
        start,
        loss,
        measure,
        own,
        test,
        names=names,
        steps=s.steps,
        step_size=float(chosen.step_size),
        weight_decay=float(chosen.weight_decay),
        batch_size=s.batch_size,
        seed=s.seed,
        dtype=s.dtype,
    )
    problem = Problem.of(model, SampleLoss(loss.answer), own)
    outermost = extremes(problem, depth=32, max_depth=32, tolerance=1e-2, ends="largest").largest[0]
    return found.assign(sharpness=outermost.value if outermost.converged else np.nan)


@dataclass(frozen=True, eq=False)
class WordSource:
    """A teacher on words: its samples, and the weights it gives to words. ``teacher`` has outputs
    of unit variance.
    """

    teacher: Any
    model: Any

    def draw(self, n: int, key: Any, noisy: bool, dtype: str) -> dict[str, Any]:
        """Samples as students take them: words, the teacher's weights, and labels."""
        import jax
        import jax.numpy as jnp

        x, y = self.teacher.sample(n, key=key, noisy=noisy)
        given = jax.vmap(self.model.attention)(x)
        return jax.tree.map(
            lambda leaf: jnp.asarray(leaf, dtype), {"x": {"words": x, "given": given}, "y": y}
        )


def word_source(root_seed: int, s: CompareSettings) -> WordSource:
    """The teacher of one seed; the head is that of the teachers of docs/theory.md#b2: 4 units,
    signs ±, the first layer × 2.
    """
    from attnlab.models import Teacher

    quiet, model = _noiseless(
        root_seed, s.seed, s.relevant, s.words, s.embedding_dim, s.informative
    )
    return WordSource(Teacher(quiet.model, quiet.deviation, s.noise_std, quiet.shape), model)


@lru_cache(maxsize=512)
def _noiseless(
    root_seed: int, seed: int, relevant: int, words: int, embedding_dim: int, informative: int
) -> tuple[Any, Any]:
    """Drawn once for all variants of a seed: finding its variance takes as long as a short fit."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    from attnlab.models import BaselineConfig, Teacher
    from attnlab.studies._compare_teacher_model import AttendingTeacher

    key = jax.random.split(jax.random.fold_in(jax.random.key(root_seed), seed), 5)[0]
    direction_key, head_key, scale_key = jax.random.split(key, 3)
    drawn = jax.random.normal(direction_key, (informative,))
    direction = jnp.zeros(embedding_dim).at[:informative].set(drawn)
    head = BaselineConfig(embedding_dim, 4, init_scale=2.0).init(head_key)
    head = eqx.tree_at(lambda h: h.w2, head, jnp.asarray([[1.0], [-1.0], [1.0], [-1.0]]))
    model = AttendingTeacher(direction / jnp.linalg.norm(direction), head, relevant)
    return Teacher.of(model, key=scale_key, shape=(embedding_dim, words), noise_std=0.0), model
