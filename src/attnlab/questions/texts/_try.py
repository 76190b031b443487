"""What to try: variants of attention on a user's texts, ranked by accuracy with all labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from attnlab.questions._ranking import advise, apart, measure_comparison


def ranked(arms: Mapping[str, xr.Dataset], *, steps: int) -> tuple[xr.Dataset, dict[str, Any]]:
    """Variants by test accuracy, and a record of the advice; the first is what others are compared
    with.
    """
    ranking = measure_comparison(arms, score="accuracy", against=next(iter(arms)))["ranking"]
    ranking = ranking.assign_attrs(steps=steps)
    names = [str(name) for name in ranking.student.values]
    equals = [name for name in names if name == names[0] or not apart(ranking, names[0], name)]
    sentences = advise({"ranking": ranking}, what="On these texts")
    record = {
        "order": names,
        "best": equals,
        "advice": " ".join(sentences),
        "sentence": sentences[1],
        "accuracy": dict(zip(names, ranking.centre.values.tolist(), strict=True)),
    }
    return ranking, record
