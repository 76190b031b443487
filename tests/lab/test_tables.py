"""Declared tables: what a measurement may leave out, and names that a table needs itself."""

from __future__ import annotations

import pytest
import xarray as xr

from attnlab import AttnlabError
from attnlab.lab import Grid, Sweep, Table, variable


class Always(Table, label="always"):
    """Measured from every grid."""

    value = variable("a number")


class Sometimes(Table, label="sometimes", optional=True):
    """Measured from some grids."""

    value = variable("a number")


def _sweep(*labels: str) -> Sweep:
    found = {label: xr.Dataset({"value": 1.0}) for label in labels}
    return Sweep(
        "mine", "m:f", lambda scale, seeds: Grid({}, 1), lambda arms: found, (Always, Sometimes)
    )


def test_only_optional_tables_may_be_missing():
    assert list(_sweep("always").measured({})) == ["always"]
    assert list(_sweep("always", "sometimes").measured({})) == ["always", "sometimes"]
    for labels in (("sometimes",), ("always", "never")):
        with pytest.raises(AttnlabError, match="its tables are"):
            _sweep(*labels).measured({})


def test_a_variable_must_not_hide_what_a_table_has():
    with pytest.raises(AttnlabError, match="declares the variable 'label'"):
        type("Mine", (Table,), {"label": variable("the class")}, label="mine")
