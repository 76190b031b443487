"""Stacks: runs of one structure in common arrays, the form in which runs are stored and combined."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    import xarray as xr

RUN_DIM = "__run__"
_STORABLE = "biufcU"


@dataclass(frozen=True)
class Column:
    """One variable of all runs of a stack: ``values`` has shape (runs, *shape of dims)."""

    dims: tuple[str, ...]
    values: np.ndarray
    attrs: Mapping[str, Any]
    is_coord: bool

    @property
    def is_shared(self) -> bool:
        """Whether every run holds the same bits."""
        values = self.values
        if len(values) == 1 or values.strides[0] == 0:
            return True
        if values.dtype.kind == "U":
            return bool((values == values[:1]).all())
        first = np.ascontiguousarray(values[0]).tobytes()
        return all(np.ascontiguousarray(row).tobytes() == first for row in values[1:])


@dataclass(frozen=True)
class Stack:
    """Runs whose data sets have equal variables, dimensions, types and shapes; ``attrs`` holds each
    run's own.
    """

    hashes: tuple[str, ...]
    columns: Mapping[str, Column]
    attrs: tuple[Mapping[str, Any], ...]

    @classmethod
    def of_run(cls, run_hash: str, data: Any) -> Stack:
        """A stack of one run, from what its work function returned."""
        import xarray as xr

        if not isinstance(data, xr.Dataset):
            raise AttnlabError(
                f"the work function returned {type(data).__name__}: expected an xarray.Dataset"
            )
        columns = {
            _name(name): Column(
                tuple(_name(dim) for dim in variable.dims),
                _values(name, variable)[None],
                _plain(variable.attrs, f"attributes of {name!r}"),
                name in data.coords,
            )
            for name, variable in data.variables.items()
        }
        return cls((run_hash,), columns, (_plain(data.attrs, "attributes of the data set"),))

    @property
    def structure(self) -> tuple[Any, ...]:
        """What two stacks must share to be merged."""
        return tuple(
            (
                name,
                column.dims,
                column.values.shape[1:],
                _kind(column.values),
                column.is_coord,
                json.dumps(column.attrs, sort_keys=True),
            )
            for name, column in sorted(self.columns.items())
        )

    @property
    def nbytes(self) -> int:
        """Size of the values in memory."""
        return sum(column.values.nbytes for column in self.columns.values())

    def take(self, rows: Sequence[int]) -> Stack:
        """Some of the runs."""
        columns = {
            name: Column(c.dims, c.values[list(rows)], c.attrs, c.is_coord)
            for name, c in self.columns.items()
        }
        return Stack(
            tuple(self.hashes[row] for row in rows), columns, tuple(self.attrs[row] for row in rows)
        )

    def dataset(self, run_hash: str) -> xr.Dataset:
        """One run's data set, as its work function returned it."""
        import xarray as xr

        row = self.hashes.index(run_hash)
        variables = {
            name: (c.dims, c.values[row], dict(c.attrs)) for name, c in self.columns.items()
        }
        coords = {name: variables.pop(name) for name, c in self.columns.items() if c.is_coord}
        return xr.Dataset(variables, coords, dict(self.attrs[row]))


def merge(stacks: Iterable[Stack]) -> list[Stack]:
    """One stack for each structure, each run once."""
    alike: dict[tuple[Any, ...], list[Stack]] = {}
    for stack in _without_repeats(stacks):
        alike.setdefault(stack.structure, []).append(stack)
    return [same[0] if len(same) == 1 else _concatenate(same) for same in alike.values()]


def _without_repeats(stacks: Iterable[Stack]) -> Iterator[Stack]:
    seen: set[str] = set()
    for stack in stacks:
        new = [row for row, run_hash in enumerate(stack.hashes) if run_hash not in seen]
        seen.update(stack.hashes)
        if new:
            yield stack if len(new) == len(stack.hashes) else stack.take(new)


def _concatenate(stacks: list[Stack]) -> Stack:
    columns = {
        name: Column(
            c.dims,
            np.concatenate([stack.columns[name].values for stack in stacks]),
            c.attrs,
            c.is_coord,
        )
        for name, c in stacks[0].columns.items()
    }
    hashes = tuple(run_hash for stack in stacks for run_hash in stack.hashes)
    return Stack(hashes, columns, tuple(attrs for stack in stacks for attrs in stack.attrs))


def _kind(values: np.ndarray) -> str:
    """The type of values; strings of all lengths have the same one."""
    return "U" if values.dtype.kind == "U" else values.dtype.str


def _name(name: Any) -> str:
    if not isinstance(name, str) or not name or "/" in name or name == RUN_DIM:
        raise AttnlabError(
            f"a variable or dimension is named {name!r}: expected a plain name without '/'"
        )
    return name


def _values(name: Any, variable: xr.Variable) -> np.ndarray:
    values = np.asarray(variable.data)
    if values.dtype.kind in "OT" and all(
        isinstance(entry, str) for entry in values.ravel().tolist()
    ):
        values = np.array(values.tolist(), dtype=np.str_).reshape(values.shape)
    if values.dtype.kind not in _STORABLE or (
        values.dtype.itemsize > 16 and values.dtype.kind in "fc"
    ):
        raise AttnlabError(
            f"variable {name!r} has type {values.dtype}: expected numbers, booleans or strings, "
            "which can be stored without pickle; convert it in the work function"
        )
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _plain(attrs: Mapping[Any, Any], what: str) -> dict[str, Any]:
    """Attributes as plain JSON values: NumPy's numbers and arrays become Python's."""

    def convert(value: Any) -> Any:
        if isinstance(value, (np.generic, np.ndarray)):
            return value.tolist()
        raise TypeError(type(value).__name__)

    try:
        return json.loads(
            json.dumps({str(key): value for key, value in attrs.items()}, default=convert)
        )
    except (TypeError, ValueError) as error:
        raise AttnlabError(
            f"{what} hold a value of type {error}: expected numbers, strings and lists of them"
        ) from None
