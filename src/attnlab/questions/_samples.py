"""Teacher and student tried once before they are run: the work of ``attnlab samples`` with JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from attnlab._errors import AttnlabError
from attnlab.papers.liu2021.curve_runs import make_learner, make_source
from attnlab.papers.liu2021.curve_settings import SampleSettings


def check_student(s: SampleSettings) -> None:
    """Draw teacher and student once and let the student answer once; an error in words if that does
    not work.
    """
    key = jax.random.key(0)
    source = _called(f"teacher {s.teacher!r}", make_source, s, key)
    if not callable(getattr(source, "sample", None)):
        raise AttnlabError(
            f"teacher {s.teacher!r} returned a {type(source).__name__}; expected an object with "
            "sample(n, key=…, noisy=…) → inputs, labels"
        )
    x, y = _called(
        f"sample of the teacher {s.teacher!r}", lambda: source.sample(4, key=key, noisy=False)
    )
    student = _called(f"student {s.student!r}", make_learner, s, source, np.shape(x)[1:])
    model = _called(f"student {s.student!r}", student.start, key)
    given = jax.tree.map(lambda leaf: leaf[0], student.given(source, jnp.asarray(x)))
    answer = _called(f"the model of the student {s.student!r}", student.answer, model, given)
    regression = np.asarray(y).dtype.kind == "f"
    if np.ndim(answer) > (0 if regression else 1):
        expected = "() for two classes, (classes,) for more"
        if regression:
            expected = "(), one number, for regression"
        raise AttnlabError(
            f"the model of the student {s.student!r} answers an input with the shape "
            f"{np.shape(answer)}; expected {expected}"
        )


def _called(what: str, function: Callable[..., Any], *given: Any) -> Any:
    try:
        return function(*given)
    except AttnlabError:
        raise
    except Exception as error:
        raise AttnlabError(f"{what} raises {type(error).__name__}: {error}") from error
