"""Options that take several values: ``--features 16 32 64``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand


class ManyCommand(TyperCommand):
    """A command whose repeatable options take several values, separated by spaces or commas.

    Click only knows ``--features 16 --features 32``. ``--features 16 32`` and ``--features 16,32``
    are rewritten to that before Click parses the line.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the line."""
        return super().parse_args(ctx, _expanded(self, ctx, args, commas=True))


class FilesCommand(TyperCommand):
    """The same with values separated by spaces only: a comma may be part of a file name."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the line."""
        return super().parse_args(ctx, _expanded(self, ctx, args, commas=False))


def _expanded(command: TyperCommand, ctx: Any, args: list[str], *, commas: bool) -> list[str]:
    names = {
        name: param.opts[0]
        for param in command.params
        if getattr(param, "multiple", False)
        for name in param.opts
    }
    try:
        return expand(args, names, commas=commas)
    except ValueError as error:
        raise typer.BadParameter(str(error), ctx=ctx) from error


def expand(args: Sequence[str], names: Mapping[str, str], *, commas: bool = True) -> list[str]:
    """Repeat an option's name before each of its values.

    ``names`` maps every spelling of a repeatable option to the one that is written out.

    >>> expand(["--features", "16", "32,64", "--quiet"], {"--features": "--features"})
    ['--features', '16', '--features', '32', '--features', '64', '--quiet']
    """
    found: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if name not in names:
            found.append(word)
            continue
        values = [value] if sign else []
        while rest and not rest[0].startswith("-"):
            values.append(rest.pop(0))
        cut = [part for text in values for part in (text.split(",") if commas else [text])]
        parts = [part.strip() for part in cut if part.strip()]
        if not parts:
            raise ValueError(f"{name} has no value; expected one or several, as in {name} A B C")
        found += [word for part in parts for word in (names[name], part)]
    return found
