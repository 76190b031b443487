"""Settings of an experiment: one frozen dataclass, whose annotated fields are also its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from attnlab._errors import AttnlabError


@dataclass(frozen=True)
class Option:
    """How a field of settings appears on the command line, and what it may be.

    - ``panel``: the heading in ``--help`` under which it stands;
    - ``names``: other words than ``--field-name``, such as ``--try/--no-try``;
    - ``least`` and ``most`` bound a number (each number of a tuple), ``above`` excludes its bound;
    - ``choices``: the words allowed; ``argument``: given by place, without a name;
    - ``commas``: several values may also be separated by commas (not where a value may hold one).
    """

    help: str
    panel: str | None = None
    names: tuple[str, ...] = ()
    metavar: str | None = None
    least: float | None = None
    above: float | None = None
    most: float | None = None
    choices: Sequence[str] | None = None
    argument: bool = False
    commas: bool = True

    def problem(self, value: Any) -> str | None:
        """In words what is expected instead of this value; ``None`` if it is allowed."""
        if value is None or isinstance(value, bool):
            return None
        if isinstance(value, tuple):
            return next((words for entry in value if (words := self.problem(entry))), None)
        if self.choices is not None and value not in self.choices:
            return f"expected one of {', '.join(self.choices)}"
        if isinstance(value, str):
            return None
        if self.above is not None and not value > self.above:
            return f"expected a number above {self.above:g}"
        if self.least is not None and not value >= self.least:
            return f"expected at least {self.least:g}"
        if self.most is not None and not value <= self.most:
            return f"expected at most {self.most:g}"
        return None


@dataclass(frozen=True)
class Field:
    """One field of settings: its name, plain type, default and option."""

    name: str
    type: Any
    default: Any
    option: Option

    @property
    def flag(self) -> str:
        """The word of the command line that gives it."""
        first = self.option.names[0].partition("/")[0] if self.option.names else ""
        return first or f"--{self.name.replace('_', '-')}"


@dataclass(frozen=True)
class Settings:
    """The base of all settings: every field with an `Option` is checked when they are made.

    >>> @dataclass(frozen=True)
    ... class Mine(Settings):
    ...     starts: Annotated[int, Option("Starts of each problem.", least=1)] = 9
    >>> Mine(starts=0)
    Traceback (most recent call last):
        ...
    attnlab._errors.AttnlabError: --starts 0: expected at least 1
    """

    @property
    def folder(self) -> str | None:
        """Where a command writes if it is not told; by default in a folder of its own name."""
        return None

    @property
    def subject(self) -> Mapping[str, Sequence[str]]:
        """What a folder of results is about, such as the user's files: results about another
        subject are not written over it.
        """
        return {}

    def __post_init__(self):
        for field in options(type(self)):
            value = getattr(self, field.name)
            words = field.option.problem(value)
            if words:
                shown = " ".join(map(str, value)) if isinstance(value, tuple) else value
                raise AttnlabError(f"{field.flag} {shown}: {words}")


def options(settings: type) -> list[Field]:
    """The fields of a settings class that have an `Option`, in their order."""
    hints = get_type_hints(settings, include_extras=True)
    found = []
    for field in fields(settings):
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            continue
        plain, *marks = get_args(hint)
        option = next((mark for mark in marks if isinstance(mark, Option)), None)
        if option is not None:
            words = get_args(plain) if get_origin(plain) is Literal else ()
            if words and option.choices is None:
                option = Option(**{**vars(option), "choices": words})
                plain = str
            found.append(Field(field.name, plain, field.default, option))
    return found
