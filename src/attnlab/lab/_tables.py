"""Declared variables: what a measurement records is named once, in code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

from attnlab._errors import AttnlabError

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]


class Variable(str):
    """The name of a variable, which also selects its values from measured data.

    It is a string, so that ``dataset[Losses.training]`` works; called with all data sets of a
    record it gives its values, ``Losses.training(data, head="fixed")``, at some labels.
    """

    table: str
    meaning: str
    optional: bool

    @classmethod
    def declared(cls, name: str, table: str, meaning: str, optional: bool) -> Self:
        """The variable ``name`` of the table with this label."""
        variable = cls(name)
        variable.table, variable.meaning, variable.optional = table, meaning, optional
        return variable

    def __call__(self, data: Data, /, **chosen: Any) -> xr.DataArray:
        """Its values in the measured data, at some labels of its dimensions."""
        return data[self.table][str(self)].sel(chosen)

    def at(self, **chosen: Any) -> Callable[[Data], xr.DataArray]:
        """The measurement of a criterion: its values at some labels, once there are data."""
        return lambda data: self(data, **chosen)


class _Declaration:
    def __init__(self, meaning: str, optional: bool):
        self.meaning, self.optional = meaning, optional


def variable(meaning: str, *, optional: bool = False) -> Variable:
    """Declare a variable in the body of a `Table`; ``optional`` if only some runs record it."""
    return cast(Variable, _Declaration(meaning, optional))


class Table:
    """A measured data set: its label, and its variables as attributes. Subclassed, never made.

    A subclass without a label is a group of variables that several tables share. An ``optional``
    table is measured from some grids only, such as those of paper scale.

    >>> class Losses(Table, label="losses"):
    ...     training = variable("cross-entropy on the training sentences")
    >>> Losses.training, Losses.label
    ('training', 'losses')
    """

    label: ClassVar[str]
    optional: ClassVar[bool] = False
    variables: ClassVar[dict[str, Variable]]
    _declared: ClassVar[dict[str, _Declaration]] = {}

    def __init_subclass__(cls, *, label: str = "", optional: bool = False, **more: Any):
        super().__init_subclass__(**more)
        own = {name: one for name, one in vars(cls).items() if isinstance(one, _Declaration)}
        taken = own.keys() & {"label", "optional", "variables", "of", "check"}
        if taken:
            raise AttnlabError(
                f"{cls.__name__} declares the variable {min(taken)!r}, which every table has as an "
                "attribute: name it otherwise"
            )
        cls._declared = {**cls._declared, **own}
        cls.label, cls.optional, cls.variables = label, optional, {}
        for name, one in cls._declared.items():
            cls.variables[name] = Variable.declared(name, label, one.meaning, one.optional)
            setattr(cls, name, cls.variables[name])

    @classmethod
    def of(cls, data: Data) -> xr.Dataset:
        """This table among the measured data sets."""
        return data[cls.label]

    @classmethod
    def check(cls, dataset: xr.Dataset) -> None:
        """Refuse a data set that lacks a declared variable or has one that is not declared."""
        names = {str(name) for name in dataset.data_vars}
        missing = {name for name, one in cls.variables.items() if not one.optional} - names
        unknown = names - set(cls.variables)
        if missing or unknown:
            parts = [f"lacks {', '.join(sorted(missing))}"] if missing else []
            parts += [f"has the undeclared {', '.join(sorted(unknown))}"] if unknown else []
            raise AttnlabError(
                f"the measured table {cls.label!r} {' and '.join(parts)}; declare each variable in "
                f"{cls.__name__}, and measure each that is declared"
            )
