"""Texts and labels in data frames of pandas, Polars and what else narwhals knows."""

from __future__ import annotations

from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.data._columns import Wanted, choose_columns


def frame_columns(
    frame: Any, text: str | None = None, label: str | None = None
) -> tuple[list[Any], list[Any]]:
    """The texts and labels of a data frame, ``None`` where one is missing; columns that are not
    named are guessed as those of a file.

    >>> import pandas
    >>> frame = pandas.DataFrame({"review": ["fine", None, "dull"], "stars": [5, 3, 1]})
    >>> frame_columns(frame, label="stars")
    (['fine', None, 'dull'], [5, 3, 1])
    """
    import narwhals.stable.v1 as nw

    try:
        table = nw.from_native(frame, eager_only=True)
    except (TypeError, ValueError) as error:
        raise AttnlabError(
            f"a {type(frame).__name__} cannot be read as a data frame ({error}): expected one of "
            "pandas or Polars that is in memory (collect() a lazy one) and whose columns have "
            "different names"
        ) from error
    wanted = Wanted(text, label, labelled=True, header=True)
    columns = choose_columns("the data frame", list(map(str, table.columns)), wanted)
    texts, labels = (_values(table[:, place]) for place in columns)
    return texts, labels


def _values(series: Any) -> list[Any]:
    missing = series.is_null().to_list()
    values = series.to_list()
    return [None if gone else value for value, gone in zip(values, missing, strict=True)]


def is_missing(value: Any) -> bool:
    """Whether a value of a list, array or column stands for none: ``None``, NaN, NaT, ``pandas.NA``.

    >>> [is_missing(value) for value in (None, float("nan"), "nan", 0)]
    [True, True, False, False]
    """
    if value is None:
        return True
    differs = value != value
    # pandas.NA differs from itself by pandas.NA, which is neither true nor false.
    return bool(differs) if isinstance(differs, bool | np.bool_) else True
