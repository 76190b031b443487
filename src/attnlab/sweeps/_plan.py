"""A plan: which runs of a work function are asked for."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab._json import mismatch
from attnlab.sweeps._context import RunContext
from attnlab.sweeps._settings import SettingsType, freeze
from attnlab.sweeps._work import load_work, work_identity

_MOST_RUNS = 1_000_000
_LIST: list[Any] = []
_SETTING = (None, bool, range(-(2**1023), 2**1023), float, str, _LIST)
_LIST.append(_SETTING)
_STORED = {
    "work": str,
    "version": int,
    "name": str,
    "root_seed": range(2**32),
    "base": {str: _SETTING},
    "grid": {str: [_SETTING]},
    "listed": (None, [{str: _SETTING}]),
}


@dataclass(frozen=True)
class Run:
    """One run: its index in the plan, all its settings, and their hash."""

    index: int
    settings: Mapping[str, Any]
    hash: str

    @cached_property
    def kind(self) -> str:
        """All settings but the seeds, as text: runs of one kind share compiled code."""
        others = {name: v for name, v in self.settings.items() if not name.endswith("seed")}
        return json.dumps(others, sort_keys=True)

    def context(self, root_seed: int) -> RunContext:
        """What the work function gets besides the settings."""
        return RunContext(root_seed=root_seed, index=self.index, hash=self.hash)


def run_hash(work: str, version: int, settings: Mapping[str, Any], root_seed: int) -> str:
    """SHA-256 of the canonical JSON of ``[work, version, settings, root_seed]``: the same on every
    machine and in every version of attnlab.
    """
    content = [work_identity(work), version, dict(settings), root_seed]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Plan:
    """The cross product of ``grid`` over ``base``, for a work function *settings → labelled data
    set*.

    ``work`` names an importable function ``work(settings, context)``, as
    ``"package.module:function"`` or ``"path/to/file.py:function"``; the annotation of its first
    parameter is a frozen dataclass (a list of them if ``batched``), whose fields ``base`` and
    ``grid`` give. Fields in neither take their defaults. After construction ``base`` holds them
    all.

    Each run has a hash of its settings (the work function's name, all settings, root seed), from
    which its random key is made. It does not depend on the rest of the plan, nor on the work
    function's code: a grid that grows keeps its finished runs, and an edit changes no random
    numbers. A hash of the code that made a run is stored with it, and ``run_plan`` computes runs
    again whose code was edited since.

    >>> plan = Plan("attnlab.sweeps._example:work", name="powers", base={"exponent": 2}, grid={"number": [1, 2, 3]})
    >>> [dict(run.settings) for run in plan.runs][-1]
    {'number': 3.0, 'exponent': 2}
    """

    work: str
    name: str
    base: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Any] = field(default_factory=dict)
    root_seed: int = 0
    listed: tuple[Mapping[str, Any], ...] | None = field(default=None, init=False)
    version: int = field(default=1, init=False)

    def __post_init__(self):
        _check_head(self.name, self.root_seed)
        loaded = load_work(self.work)
        grid = {name: _axis(loaded.settings, name, values) for name, values in self.grid.items()}
        twice = set(self.base) & set(grid)
        if twice:
            raise AttnlabError(
                f"{', '.join(sorted(twice))} given both in base and in grid: give each field once"
            )
        base = loaded.settings.complete(self.base, besides=grid)
        self._set(base=MappingProxyType(base), grid=MappingProxyType(grid), version=loaded.version)
        self._check_runs(loaded.settings)

    @classmethod
    def of_list(
        cls, work: str, name: str, settings: Sequence[Mapping[str, Any]], *, root_seed: int = 0
    ) -> Plan:
        """A plan of given runs, for designs that are not a product: one mapping of fields for each
        run.
        """
        _check_head(name, root_seed)
        loaded = load_work(work)
        listed = tuple(MappingProxyType(loaded.settings.complete(given)) for given in settings)
        if not listed:
            raise AttnlabError("settings is empty: expected at least one run")
        plan = cls._bare(work, name, root_seed, loaded.version, {}, {}, listed)
        plan._check_runs(loaded.settings)
        return plan

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All runs; of a product the last field of the grid varies fastest."""
        if self.listed is not None:
            settings = list(self.listed)
        else:
            points = itertools.product(*self.grid.values())
            settings = [
                {**dict(zip(self.grid, point, strict=True)), **self.base} for point in points
            ]
        return tuple(
            Run(
                index,
                MappingProxyType(dict(given)),
                run_hash(self.work, self.version, given, self.root_seed),
            )
            for index, given in enumerate(settings)
        )

    @property
    def shape(self) -> dict[str, int]:
        """The dimensions of the plan's results: the grid's fields, or ``run`` for a list."""
        if self.listed is not None:
            return {"run": len(self.listed)}
        return {name: len(values) for name, values in self.grid.items()}

    def to_json(self) -> dict[str, Any]:
        """All that is needed to rebuild the plan, without importing its work function."""
        return {
            "work": self.work,
            "version": self.version,
            "name": self.name,
            "root_seed": self.root_seed,
            "base": dict(self.base),
            "grid": {name: list(values) for name, values in self.grid.items()},
            "listed": None if self.listed is None else [dict(given) for given in self.listed],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that ``to_json`` wrote. The work function is not imported: reading results does
        not need the user's code.
        """
        wrong = mismatch(data, _STORED, "the stored plan")
        if wrong:
            raise AttnlabError(f"not a stored plan ({wrong}): expected what Plan.to_json writes")
        listed = data["listed"]
        if listed is not None and any(set(given) != set(listed[0]) for given in listed):
            raise AttnlabError(
                "not a stored plan (its runs have different settings): expected equal names in all"
            )
        plan = cls._bare(
            data["work"],
            data["name"],
            data["root_seed"],
            data["version"],
            {name: freeze(value) for name, value in data["base"].items()},
            {name: freeze(values) for name, values in data["grid"].items()},
            None
            if listed is None
            else tuple(
                MappingProxyType({name: freeze(value) for name, value in given.items()})
                for given in listed
            ),
        )
        plan._check_count()
        return plan

    @classmethod
    def _bare(
        cls,
        work: str,
        name: str,
        root_seed: int,
        version: int,
        base: dict[str, Any],
        grid: dict[str, Any],
        listed: Any,
    ) -> Plan:
        """A plan of fields that are known to be valid."""
        plan = object.__new__(cls)
        plan._set(
            work=work,
            name=name,
            root_seed=root_seed,
            version=version,
            base=MappingProxyType(base),
            grid=MappingProxyType(grid),
            listed=listed,
        )
        return plan

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_count(self) -> None:
        count = math.prod(self.shape.values())
        if not 1 <= count <= _MOST_RUNS:
            raise AttnlabError(
                f"the plan asks for {count:,} runs: expected 1 to {_MOST_RUNS:,}; make several "
                "plans"
            )

    def _check_runs(self, settings: SettingsType) -> None:
        """Build every run's settings, so that a mistake shows now and not in the middle of a sweep."""
        self._check_count()
        seen: dict[str, int] = {}
        for run in self.runs:
            settings.build(run.settings)
            if run.hash in seen:
                raise AttnlabError(
                    f"runs {seen[run.hash]} and {run.index} have equal settings "
                    f"({dict(run.settings)}): expected each run once; vary a seed to repeat a run"
                )
            seen[run.hash] = run.index


def _check_head(name: str, root_seed: int) -> None:
    if not isinstance(name, str) or not name.strip():
        raise AttnlabError(f"name={name!r}: expected a name for the plan")
    if type(root_seed) is not int or not 0 <= root_seed < 2**32:
        raise AttnlabError(f"root_seed={root_seed!r}: expected a whole number from 0 to 2³² − 1")


def _axis(settings: SettingsType, name: str, values: Any) -> tuple[Any, ...]:
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if not isinstance(values, (list, tuple, range)):
        raise AttnlabError(
            f"grid[{name!r}] is {values!r}: expected a list of values; a single one belongs in base"
        )
    if not values:
        raise AttnlabError(f"grid[{name!r}] is empty: expected at least one value")
    return tuple(settings.check(name, value) for value in values)
