"""Combining all runs of a plan into one labelled data set."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.sweeps._plan import Plan
from attnlab.sweeps.store._stack import Column, Stack, merge

if TYPE_CHECKING:
    import xarray as xr

# A larger variable than this is refused if so many times more of it would be missing than present.
_MOST_BYTES, _MOST_EMPTY = 2**30, 1000


def combine(plan: Plan, stacks: Sequence[Stack]) -> xr.Dataset:
    """Every variable with the plan's dimensions before its own; values of missing runs are nan.

    - Integers and booleans become floats where runs are missing, strings become empty.
    - A coordinate that all runs share stays as it is; one that differs gets the plan's dimensions
      too.
    - Runs whose labels of a dimension differ are aligned on the union of the labels; without
      labels, shorter runs end in nan.
    - A variable or dimension of the runs that has the name of a field of the plan gets ``_in_run``
      appended to its name; if it only repeats the field's value, it is dropped.
    """
    import xarray as xr

    place = {run.hash: run.index for run in plan.runs}
    parts = [_Part(stack, place) for stack in merge(_asked(stack, place) for stack in stacks)]
    settings = _settings(plan)
    taken = set(plan.shape) | set(settings)
    parts = [_without_settings(part, plan, taken) for part in parts]
    parts.sort(key=lambda part: min(part.places))
    frame = _Frame(plan, parts)
    names = list(dict.fromkeys(name for part in parts for name in part.columns))
    variables = {name: frame.variable(name) for name in names if name not in frame.labels}
    coords = {
        name: variables.pop(name)
        for name in list(variables)
        if any(_is_coord(part, name) for part in parts)
    }
    coords |= {name: ((name,), labels) for name, labels in frame.labels.items()}
    return xr.Dataset(variables, {**coords, **settings}, _common(part.attrs for part in parts))


class _Part:
    """A stack and the places of its runs in the plan."""

    def __init__(self, stack: Stack, place: Mapping[str, int]):
        self.columns, self.hashes = dict(stack.columns), stack.hashes
        self.places = [place[run_hash] for run_hash in stack.hashes]
        self.attrs = _common(stack.attrs)

    def sizes(self) -> dict[str, int]:
        """The size of each dimension."""
        return {
            dim: size
            for column in self.columns.values()
            for dim, size in zip(column.dims, column.values.shape[1:], strict=True)
        }


class _Frame:
    """The dimensions that the runs have together: their labels, or only sizes."""

    def __init__(self, plan: Plan, parts: Sequence[_Part]):
        self._plan, self._parts = plan, parts
        self.labels: dict[str, np.ndarray] = {}
        self._sizes: dict[str, int] = {}
        for part in parts:
            for dim, size in part.sizes().items():
                self._sizes[dim] = max(size, self._sizes.get(dim, 0))
        for dim in self._sizes:
            having = [part for part in parts if dim in part.sizes()]
            labelled = [part.columns[dim] for part in having if dim in part.columns]
            if labelled and len(labelled) < len(having):
                raise AttnlabError(
                    f"dimension {dim!r} has labels in some runs and none in others: label it in all"
                )
            if labelled:
                self.labels[dim] = _union(dim, labelled)
                self._sizes[dim] = len(self.labels[dim])

    def variable(self, name: str) -> tuple[tuple[str, ...], np.ndarray, dict[str, Any]]:
        """One variable of all runs: dimensions, values, attributes."""
        columns = [(part, part.columns[name]) for part in self._parts if name in part.columns]
        dims = columns[0][1].dims
        if any(column.dims != dims for _, column in columns):
            found = sorted({str(column.dims) for _, column in columns})
            raise AttnlabError(
                f"variable {name!r} has dimensions {' and '.join(found)} in different runs: use "
                "one name each"
            )
        attrs = _common(column.attrs for _, column in columns)
        inner = tuple(self._sizes[dim] for dim in dims)
        shared = self._shared(columns, inner)
        if shared is not None:
            return dims, shared, attrs
        outer = tuple(self._plan.shape.values())
        flat = _empty((math.prod(outer), *inner), [column.values for _, column in columns], name)
        for part, column in columns:
            self._fill(flat, part, column)
        return (*self._plan.shape, *dims), flat.reshape(*outer, *inner), attrs

    def _shared(
        self, columns: Sequence[tuple[_Part, Column]], inner: tuple[int, ...]
    ) -> np.ndarray | None:
        """The values of a coordinate that is the same in all runs."""
        first = columns[0][1]
        if len(columns) < len(self._parts) or not first.is_coord or first.values.shape[1:] != inner:
            return None
        rows = [column.values[0] for _, column in columns]
        alike = all(_equal(row, rows[0]) for row in rows[1:])
        return rows[0] if alike and all(column.is_shared for _, column in columns) else None

    def _fill(self, flat: np.ndarray, part: _Part, column: Column) -> None:
        """Put the runs of one part where they belong."""
        picks = [self._positions(part, dim) for dim in column.dims]
        if all(pick.ndim == 1 for pick in picks):
            flat[np.ix_(np.asarray(part.places), *picks)] = column.values
            return
        for row, target in enumerate(part.places):
            own = [pick if pick.ndim == 1 else pick[row] for pick in picks]
            flat[np.ix_(np.asarray([target]), *own)] = column.values[row][None]

    def _positions(self, part: _Part, dim: str) -> np.ndarray:
        """Where a part's entries of a dimension lie: one list, or one for each run."""
        if dim not in self.labels:
            return np.arange(part.sizes()[dim])
        labels, column = self.labels[dim], part.columns[dim]
        if _equal(column.values[0], labels) and column.is_shared:
            return np.arange(len(labels))
        where = {label: position for position, label in enumerate(labels.tolist())}
        rows = column.values[:1] if column.is_shared else column.values
        found = np.array([[where[label] for label in row] for row in rows.tolist()], dtype=np.intp)
        return found[0] if len(found) == 1 else found


def _asked(stack: Stack, place: Mapping[str, int]) -> Stack:
    """Only the runs that the plan asks for."""
    rows = [row for row, run_hash in enumerate(stack.hashes) if run_hash in place]
    return stack if len(rows) == len(stack.hashes) else stack.take(rows)


def _without_settings(part: _Part, plan: Plan, taken: set[str]) -> _Part:
    """Drop what only repeats a setting, rename what else has the name of one."""
    for name in taken & (set(part.columns) | set(part.sizes())):
        column = part.columns.get(name)
        settings = [plan.runs[place].settings.get(name) for place in part.places]
        if (
            column is not None
            and (column.is_coord or name in column.dims)
            and column.values[0].size == 1
            and column.values.ravel().tolist() == settings
        ):
            del part.columns[name]
            if name in column.dims:
                part.columns = {key: _squeezed(other, name) for key, other in part.columns.items()}
        else:
            part.columns = {
                f"{name}_in_run" if key == name else key: _renamed(other, name, f"{name}_in_run")
                for key, other in part.columns.items()
            }
    return part


def _renamed(column: Column, dim: str, new: str) -> Column:
    dims = tuple(new if one == dim else one for one in column.dims)
    return Column(dims, column.values, column.attrs, column.is_coord)


def _squeezed(column: Column, dim: str) -> Column:
    if dim not in column.dims:
        return column
    values = column.values.squeeze(1 + column.dims.index(dim))
    return Column(tuple(d for d in column.dims if d != dim), values, column.attrs, column.is_coord)


def _settings(plan: Plan) -> dict[str, Any]:
    """The plan's own coordinates: the grid's values, or the settings of every listed run."""
    if plan.listed is None:
        return {name: ((name,), _labels(values)) for name, values in plan.grid.items()}
    names = list(plan.listed[0])
    return {name: (("run",), _labels([run.settings[name] for run in plan.runs])) for name in names}


def _labels(values: Sequence[Any]) -> np.ndarray:
    """Settings as an array; what is neither all numbers nor all strings becomes strings."""
    kinds = {type(value) for value in values}
    if kinds in ({bool}, {int}, {float}, {str}, {int, float}):
        return np.asarray(values)
    return np.asarray([str(value) for value in values])


def _union(dim: str, columns: Sequence[Column]) -> np.ndarray:
    """All labels of a dimension: numbers sorted, strings in order of appearance."""
    first = columns[0].values[0]
    if all(c.is_shared and _equal(c.values[0], first) for c in columns):
        return first
    rows = [row for c in columns for row in (c.values[:1] if c.is_shared else c.values).tolist()]
    if any(len(set(row)) < len(row) or any(label != label for label in row) for row in rows):
        raise AttnlabError(
            f"dimension {dim!r} repeats labels or has nan, and differs between runs: make labels "
            "unique"
        )
    labels = np.asarray(list(dict.fromkeys(label for row in rows for label in row)))
    return labels if labels.dtype.kind == "U" else np.sort(labels)


def _equal(one: np.ndarray, other: np.ndarray) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc" and other.dtype.kind in "fc")


def _empty(shape: tuple[int, ...], values: Sequence[np.ndarray], name: str) -> np.ndarray:
    """An array for the values of all runs, filled with what stands for a missing one."""
    kind = np.result_type(*(array.dtype for array in values))
    need = math.prod(shape) * kind.itemsize
    if need > max(_MOST_BYTES, _MOST_EMPTY * sum(array.nbytes for array in values)):
        raise AttnlabError(
            f"variable {name!r} of all runs would need {need / 2**30:.0f} GiB, nearly all of it "
            "for runs that are not stored: read runs one by one (results.run), or finish the sweep "
            "first"
        )
    if kind.kind == "U":
        return np.full(shape, "", kind)
    if kind.kind not in "fc" and sum(array.size for array in values) == math.prod(shape):
        return np.zeros(shape, kind)
    return np.full(shape, np.nan, kind if kind.kind in "fc" else np.float64)


def _common(all_attrs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The attributes on which all agree."""
    first, *rest = list(all_attrs) or [{}]
    return {
        key: value
        for key, value in first.items()
        if all(key in other and other[key] == value for other in rest)
    }


def _is_coord(part: _Part, name: str) -> bool:
    return name in part.columns and part.columns[name].is_coord
