"""The work function behind every learning curve of a teacher: one student, one seed, all sample
sizes and tunings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from attnlab._errors import AttnlabError
from attnlab.sweeps import RunContext, load_function

if TYPE_CHECKING:
    import jax

    from attnlab.studies._students import Source, Student
    from attnlab.training import Recipe

WORK = "attnlab.studies._samples:fit_samples"
SIZES = tuple(2**k for k in range(3, 13))
_BOUND_SAMPLES = 4096


@dataclass(frozen=True)
class SampleSettings:
    """One student fitted to one teacher at several sample sizes (docs/theory.md#b2); the defaults
    are the masks' protocol.

    - ``seed`` draws teacher, samples and initial parameters, so that students of equal seed are
      paired; ``arm`` is a label and nothing else.
    - ``teacher``: a kind of ``make_teacher``, or ``"file.py:function"``, a function of a key that
      returns an object with ``sample(n, key=…, noisy=…)``. ``classes`` 0 is regression, with
      noise of standard deviation ``noise_std``; 2 or more make the teacher label its inputs, of
      which a share ``label_noise`` is flipped.
    - ``student``: a name, or ``"file.py:function"``, a function of (key, shape) that returns an
      Equinox module. ``hidden``: units of the baseline (8 on vectors, 24 on matrices by
      default); ``depth``: layers of a multi-layer teacher or student.
    - ``sizes``: numbers of training samples, out of ``drawn`` (the largest size by default): runs
      with as many sizes and equally many drawn share one compiled program.
    - Tuning, the same for every student: all pairs of ``step_sizes`` and ``weight_decays``, chosen
      by the loss on ``valid_points`` further samples.
    - ``code``: a fingerprint of files that teacher or student are read from, so that a changed file
      is run anew.
    """

    arm: str = ""
    seed: int = 0
    teacher: str = "static-mask"
    student: str = "baseline"
    features: int = 16
    relevant: int = 4
    depth: int = 1
    noise_std: float = 0.2
    label_noise: float = 0.0
    classes: int = 0
    hidden: int | None = None
    sharpness: float = 4.0
    sizes: tuple[int, ...] = SIZES
    drawn: int | None = None
    steps: int = 1500
    batch_size: int = 64
    step_sizes: tuple[float, ...] = (0.02,)
    weight_decays: tuple[float, ...] = (0.0, 0.1)
    test_points: int = 2000
    valid_points: int = 500
    dtype: str = "float32"
    code: str = ""

    def __post_init__(self):
        if not self.sizes or min(self.sizes) < 1 or (np.diff(self.sizes) <= 0).any():
            raise AttnlabError(
                f"sizes={list(self.sizes)}: expected increasing positive numbers of samples"
            )
        if min(self.test_points, self.valid_points) < 2:
            raise AttnlabError(
                f"test_points={self.test_points}, valid_points={self.valid_points}: expected at "
                "least 2 of each"
            )
        if self.classes == 1 or self.classes < 0:
            raise AttnlabError(f"classes={self.classes}: expected 0 for regression, or at least 2")
        if self.label_noise and not self.classes:
            raise AttnlabError(
                f"label_noise={self.label_noise}: regression has no labels; give noise_std, or classes"
            )
        if self.dtype not in ("float32", "float64"):
            raise AttnlabError(f"dtype={self.dtype!r}: expected 'float32' or 'float64'")
        self.recipe()

    def recipe(self) -> Recipe:
        """How each fit is trained."""
        from attnlab.training import Recipe

        return Recipe(self.steps, self.batch_size)

    def source(self, key: jax.Array) -> Source:
        """The teacher that a key draws."""
        from attnlab.models import make_label_teacher, make_teacher

        if ":" in self.teacher:
            return load_function(self.teacher, "teacher")(key)
        more: dict[str, Any] = {}
        if self.teacher in ("static-mask", "gate", "moving-block", "dense"):
            more = {"features": self.features, "sharpness": self.sharpness}
        if self.teacher in ("static-mask", "gate", "moving-block"):
            more["relevant"] = self.relevant
        if self.teacher == "multi-layer":
            more["depth"] = self.depth
        if self.classes:
            return make_label_teacher(
                self.teacher, key=key, classes=self.classes, label_noise=self.label_noise, **more
            )
        return make_teacher(self.teacher, key=key, noise_std=self.noise_std, **more)

    def learner(self, source: Source, shape: tuple[int, ...]) -> Student:
        """The student for a teacher whose inputs have this shape."""
        from attnlab.studies._students import make_student, own_student

        if ":" in self.student:
            return own_student(load_function(self.student, "student"), shape)
        return make_student(
            self.student, source, hidden=self.hidden, depth=self.depth, sharpness=self.sharpness
        )


def fit_samples(s: SampleSettings, context: RunContext) -> xr.Dataset:
    """Fit one student to one seed's teacher at every size; labelled data, dimension ``size``.

    ``error`` is ``E(ŷ − g)²/Var g`` on noiseless points (the share of wrong labels for classes);
    ``valid_loss``, ``train_loss``, ``settling`` and the chosen ``step_size`` and ``weight_decay``
    stand beside it. Students that attend by a known rule also have ``predicted``, the bound
    calculators' ratios (dimension ``predictor``).
    """
    import jax

    key = jax.random.fold_in(jax.random.key(context.root_seed), s.seed)
    source_key, curve_key, bound_key = jax.random.split(key, 3)
    source = s.source(source_key)
    x, _ = source.sample(1, key=source_key)
    student = s.learner(source, np.shape(x)[1:])
    found = fit_curve(
        source,
        student,
        s.sizes,
        key=curve_key,
        recipe=s.recipe(),
        step_sizes=s.step_sizes,
        weight_decays=s.weight_decays,
        test_points=s.test_points,
        valid_points=s.valid_points,
        drawn=s.drawn,
        dtype=s.dtype,
    )
    ratios = predicted_ratios(source, student, bound_key)
    if not ratios:
        return found
    return found.assign(predicted=("predictor", list(ratios.values()))).assign_coords(
        predictor=list(ratios)
    )


def fit_curve(
    source: Source,
    student: Student,
    sizes: Sequence[int],
    *,
    key: jax.Array,
    recipe: Recipe | None = None,
    step_sizes: Sequence[float] = (0.02,),
    weight_decays: Sequence[float] = (0.0, 0.1),
    test_points: int = 2000,
    valid_points: int = 500,
    drawn: int | None = None,
    dtype: str = "float32",
) -> xr.Dataset:
    """One student's learning curve on one source: for each size the fit that validation chose.

    Samples are nested, and a function of ``key`` alone: other students see the same ones.
    Validation and test points are not counted in the sizes.

    >>> import jax
    >>> from attnlab.models import make_teacher
    >>> from attnlab.studies._students import make_student
    >>> from attnlab.training import Recipe
    >>> teacher = make_teacher("static-mask", key=jax.random.key(0), features=8, relevant=2)
    >>> student = make_student("known-attention", teacher)
    >>> curve = fit_curve(teacher, student, [8, 64], key=jax.random.key(1), recipe=Recipe(200))
    >>> curve.error.dims, bool(curve.error[1] < curve.error[0])
    (('size',), True)
    """
    import jax

    from attnlab.training import Recipe, choose, fit_grid

    *draws, fit_key = jax.random.split(key, 4)
    counts = (max(max(sizes), drawn or 0), valid_points, test_points)
    train, valid, test = (
        _drawn(source, student, n, draw, noisy, dtype)
        for n, draw, noisy in zip(counts, draws, (True, True, False), strict=True)
    )
    fits = fit_grid(
        _InType(student.start, dtype),
        SampleLoss(student.answer),
        SampleMeasure(student.answer),
        train,
        {"valid": valid, "test": test},
        sizes=sizes,
        key=fit_key,
        step_sizes=step_sizes,
        weight_decays=weight_decays,
        recipe=recipe or Recipe(),
    )
    return choose(fits)


def _drawn(
    source: Source, student: Student, n: int, key: jax.Array, noisy: bool, dtype: str
) -> dict[str, Any]:
    """What a student is given of ``n`` samples, and their labels; floats in one type."""
    import jax
    import jax.numpy as jnp

    x, y = source.sample(n, key=key, noisy=noisy)
    if len(x) != n or np.shape(y) != (n,):
        raise AttnlabError(
            f"the source gave inputs of shape {np.shape(x)} and labels of shape {np.shape(y)} for "
            f"n={n}; expected "
            f"({n}, …) and ({n},)"
        )

    def typed(leaf: Any) -> jax.Array:
        values = jnp.asarray(leaf)
        return values.astype(dtype) if jnp.issubdtype(values.dtype, jnp.floating) else values

    return jax.tree.map(typed, {"x": student.given(source, jnp.asarray(x)), "y": y})


@dataclass(frozen=True)
class _InType:
    """A start whose floating arrays have one type."""

    start: Callable[[Any], Any]
    dtype: str

    def __call__(self, key: Any) -> Any:
        import equinox as eqx
        import jax

        return jax.tree.map(
            lambda a: a.astype(self.dtype) if eqx.is_inexact_array(a) else a, self.start(key)
        )


@dataclass(frozen=True)
class SampleLoss:
    """Mean squared error; for whole-number labels cross-entropy, with one output for two classes."""

    answer: Callable[[Any, Any], Any]

    def __call__(self, model: Any, batch: Any) -> Any:
        """The mean over a batch."""
        import jax
        import jax.numpy as jnp
        import optax

        outputs, y = jax.vmap(self.answer, (None, 0))(model, batch["x"]), batch["y"]
        if jnp.issubdtype(y.dtype, jnp.floating):
            _expect(outputs.ndim == 1, "one number per input, for regression", outputs)
            return jnp.mean((outputs - y) ** 2)
        if outputs.ndim == 1:
            return jnp.mean(optax.sigmoid_binary_cross_entropy(outputs, y.astype(outputs.dtype)))
        _expect(outputs.ndim == 2, "one number per input, or one per class", outputs)
        return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(outputs, y))


@dataclass(frozen=True)
class SampleMeasure:
    """``valid_loss`` and the ``error`` on test points: ``E(ŷ − g)²/Var g``, or the share of wrong
    labels.
    """

    answer: Callable[[Any, Any], Any]

    def __call__(self, model: Any, checks: Any) -> dict[str, Any]:
        """Both for one model."""
        import jax
        import jax.numpy as jnp

        test = checks["test"]
        outputs, y = jax.vmap(self.answer, (None, 0))(model, test["x"]), test["y"]
        if jnp.issubdtype(y.dtype, jnp.floating):
            error = jnp.mean((outputs - y) ** 2) / jnp.var(y)
        else:
            found = outputs > 0 if outputs.ndim == 1 else jnp.argmax(outputs, axis=1)
            error = jnp.mean(found.astype(y.dtype) != y)
        return {"valid_loss": SampleLoss(self.answer)(model, checks["valid"]), "error": error}


def _expect(right: bool, expected: str, outputs: Any) -> None:
    if not right:
        raise AttnlabError(
            f"the model's outputs for a batch have shape {outputs.shape}; expected {expected}: "
            "does the model return "
            "an array of shape () for one input?"
        )


def predicted_ratios(source: Source, student: Student, key: jax.Array) -> dict[str, float]:
    """The bound calculators' ratios of raw against attended inputs; none for students that do not
    attend by a rule.
    """
    from attnlab.complexity import bound_ratios
    from attnlab.studies._students import Attended, Weights

    if not isinstance(student.given, Attended | Weights):
        return {}
    x, _ = source.sample(_BOUND_SAMPLES, key=key)
    given = student.given(source, x)
    seen = given if isinstance(student.given, Attended) else given[0] @ given[1][:, 0]
    return bound_ratios(x, seen).as_dict()
