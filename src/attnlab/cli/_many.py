"""Options that take several values: ``--features 16 32 64``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperCommand


class ManyCommand(TyperCommand):
    """A command without arguments, whose repeatable options take values separated by spaces or
    commas as well.

    Click knows only ``--features 16 --features 32``. This is what ``--features 16 32`` and
    ``--features 16,32`` are turned into before Click reads the line.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line."""
        return super().parse_args(ctx, _expanded(self, ctx, args, commas=True))


class FilesCommand(TyperCommand):
    """A command whose repeatable options take file names separated by spaces; a comma belongs to
    the name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line."""
        return super().parse_args(ctx, _expanded(self, ctx, args, commas=False))


class TextCommand(TyperCommand):
    """A command whose ``--text`` may stand alone, for the text that comes with attnlab's data
    extra.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the line."""
        return super().parse_args(ctx, completed(args))


def completed(args: Sequence[str]) -> list[str]:
    """``--text`` without a value gets its usual one.

    >>> completed(["lu2021", "--text", "--out", "mine"])
    ['lu2021', '--text', 'rotten-tomatoes', '--out', 'mine']
    """
    found: list[str] = []
    for word, following in zip(args, [*args[1:], "-"], strict=True):
        found += (
            [word, "rotten-tomatoes"] if word == "--text" and following.startswith("-") else [word]
        )
    return found


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
    """Each of several values gets its option's name; ``names``: as it is written → as it is called.

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
