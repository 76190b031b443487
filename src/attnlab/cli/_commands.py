"""Turns experiments into commands: options from their settings, and what all commands share."""

from __future__ import annotations

import inspect
import json as json_module
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer
from rich.box import HEAVY_HEAD, SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import attnlab as al
from attnlab.cli._where import HERE, Where
from attnlab.lab import Experiment, Field, Option, Settings, TextTable, options

OUT = "Folder for page, figures and data, or a URL such as s3://bucket/folder."
OVERWRITE = "Write to --out although it holds something else; nothing is deleted but files of the same names."
INTERRUPTED = "attnlab: interrupted; finished runs are stored, the same command resumes from there"
# Longer lists of choices would squeeze the other columns of --help.
_METAVAR_LENGTH = 20
_WIDTH = 120  # columns of a table without a terminal
_LEAST_CELL = 20  # characters to which a cell may be cut
_ENDLESS = 10_000  # a terminal so wide that no row is broken
_STYLES = {
    "holds": "green",
    "holds on average": "green",
    "fails": "red",
    "inconclusive": "yellow",
    "reported": "blue",
    "not run": "dim",
}


def command_of(experiment: Experiment[Any]) -> Callable[..., None]:
    """The function that typer turns into a command; its parameters are the settings' options."""

    def command(**given: Any) -> None:
        out, overwrite, quiet, json = (
            given.pop(name) for name in ("out", "overwrite", "quiet", "json")
        )
        where = Where(**{field.name: given.pop(field.name) for field in fields(Where)})
        # typer passes None for a list that was not given: leave it to the settings' default.
        known = {name: _plain(value) for name, value in given.items() if value is not None}
        settings = experiment.settings(**known)
        chosen = out or settings.folder or experiment.name
        carry_out(experiment, settings, chosen, where, overwrite=overwrite, quiet=quiet, json=json)

    asked = [_parameter(field) for field in options(experiment.settings)]
    hints = get_type_hints(Where, include_extras=True)
    shared = [_keyword(f.name, hints[f.name], f.default) for f in fields(Where)]
    last = [
        _keyword(
            "out", Annotated[str | None, typer.Option("--out", help=OUT, metavar="PATH|URL")], None
        ),
        _keyword("overwrite", Annotated[bool, typer.Option("--overwrite", help=OVERWRITE)], False),
        _keyword(
            "quiet",
            Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")],
            False,
        ),
        _keyword(
            "json",
            Annotated[bool, typer.Option("--json", help="Print the answers as JSON.")],
            False,
        ),
    ]
    parameters = [*asked, *last, *shared]
    # typer reads the parameters from the signature and their options from the annotations.
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters}
    command.__name__, command.__doc__ = (
        experiment.name,
        experiment.help or inspect.getdoc(type(experiment)),
    )
    return command


def carry_out(
    experiment: Experiment[Any],
    settings: Settings,
    out: str,
    where: Where = HERE,
    *,
    overwrite: bool = False,
    quiet: bool,
    json: bool,
) -> None:
    """Run an experiment, print its results, and exit with the documented code."""

    def on_stage(message: str) -> None:
        if not quiet and not json:
            typer.echo(message, err=True)

    try:
        with where.executor(quiet=quiet or json) as executor:
            record = al.lab.run(
                experiment,
                settings,
                out,
                executor=executor,
                progress=False if quiet else None,
                on_stage=on_stage,
                command=shlex.join(["attnlab", *sys.argv[1:]]),
                keep=where.keep,
                overwrite=overwrite,
            )
        if record.interrupted:
            raise KeyboardInterrupt
    except KeyboardInterrupt:
        typer.echo(INTERRUPTED, err=True)
        raise typer.Exit(130) from None
    if "stale" in record.about and not quiet:
        typer.echo(record.about["stale"], err=True)
    if json:
        print_json(experiment.as_json(record))
    elif not quiet:
        show(experiment.bound(settings).shown(record))
        typer.echo(f"page: {record.page}")
    if not record.ok:
        typer.echo(f"attnlab: {experiment.failed_runs(record)}", err=True)
        raise typer.Exit(1)
    code = experiment.exit_code(settings, record)
    if code:
        raise typer.Exit(code)


def print_json(value: Any) -> None:
    """Print a value as JSON on standard output."""
    typer.echo(json_module.dumps(value, ensure_ascii=False, indent=1))


def show(parts: Iterable[str | TextTable]) -> None:
    """Print sentences and tables."""
    for part in parts:
        if isinstance(part, str):
            typer.echo(part)
            continue
        console = Console()
        width = console.width if console.is_terminal else _WIDTH
        rows = _cut(part, width) if part.one_line else part.rows
        table = Table(*part.columns, box=SIMPLE_HEAD if part.one_line else HEAVY_HEAD)
        for row in rows:
            if not row:
                table.add_section()
                continue
            cells = [escape(cell) for cell in row]
            styled = [f"[{_STYLES[c]}]{c}[/]" if c in _STYLES else c for c in cells]
            table.add_row(*styled)
        if not part.under:
            Console(width=_ENDLESS if part.one_line else width).print(table)
            continue
        # Colours as the terminal has them: the caution goes between rows that Rich has drawn.
        wide = Console(width=_ENDLESS)
        with wide.capture() as drawn:
            wide.print(table)
        typer.echo("\n".join(_with_cautions(drawn.get().splitlines(), part.under, width)))


def _with_cautions(
    lines: list[str], under: Mapping[int, Sequence[str]], width: int
) -> Iterator[str]:
    """The lines of a table, and under each row what is to be said of it."""
    first = 1 + next(k for k, line in enumerate(lines) if "─" in line)
    for place, line in enumerate(lines, -first):
        yield line
        for caution in under.get(place, ()):
            yield from textwrap.wrap(
                f"caution: {caution}", width, initial_indent="    ", subsequent_indent="      "
            )


def _cut(part: TextTable, width: int) -> list[tuple[str, ...]]:
    """The rows with cells of the last column cut, so that a row fits into a line where it can."""
    *whole, _ = zip(part.columns, *part.rows, strict=True)
    taken = sum(max(map(len, cells)) + 2 for cells in whole) + 3
    room = max(width - taken, _LEAST_CELL)
    return [
        (*row, last if len(last) <= room else f"{last[: room - 1]}…") for *row, last in part.rows
    ]


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _parameter(field: Field) -> inspect.Parameter:
    """A field of settings as a parameter that typer understands."""
    option, kind = field.option, field.type
    many = _is_tuple(kind)
    if many:
        inner = next(a for a in get_args(many) if a is not Ellipsis)
        kind = list[inner] if not _allows_none(field.type) else list[inner] | None
    required = field.default is MISSING
    default = inspect.Parameter.empty if required else _listed(field.default)
    help, metavar = _with_choices(option)
    more: dict[str, Any] = {"help": help, "rich_help_panel": option.panel}
    if metavar is not None:
        more["metavar"] = metavar
    mark = typer.Argument(**more) if option.argument else typer.Option(*option.names, **more)
    if many and default == []:
        kind, default = kind | None if not _allows_none(field.type) else kind, None
    return _keyword(field.name, Annotated[kind, mark], default)


def _with_choices(option: Option) -> tuple[str, str | None]:
    """Help and metavar of an option; its choices are shown in one of them.

    >>> _with_choices(Option("The scale.", choices=("quick", "paper")))
    ('The scale.', 'quick|paper')
    """
    choices = option.choices or ()
    if all(choice in option.help for choice in choices):
        return option.help, option.metavar
    shown = "|".join(choices)
    if option.metavar is None and len(shown) <= _METAVAR_LENGTH:
        return option.help, shown
    return f"{option.help} One of: {', '.join(choices)}.", option.metavar


def _is_tuple(kind: Any) -> Any:
    """The tuple type in a type or in ``tuple | None``; ``None`` if there is none."""
    if get_origin(kind) is tuple:
        return kind
    if get_origin(kind) in (Union, UnionType):
        return next((arg for arg in get_args(kind) if get_origin(arg) is tuple), None)
    return None


def _allows_none(kind: Any) -> bool:
    return NoneType in get_args(kind)


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
