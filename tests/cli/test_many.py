"""Options that take several values."""

from __future__ import annotations

import pytest
import typer
from typer.testing import CliRunner

from attnlab.cli._many import ManyCommand, expand

NAMES = {"--features": "--features", "--sizes": "--sizes", "-s": "--sizes"}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("--features 16 32 -q", "--features 16 --features 32 -q"),
        ("--features 16,32 --level 0.1", "--features 16 --features 32 --level 0.1"),
        ("--features=16 32 --sizes 8", "--features 16 --features 32 --sizes 8"),
        ("--features 16 --features 32", "--features 16 --features 32"),
        ("--level 0.1 -s 8 16, 24", "--level 0.1 --sizes 8 --sizes 16 --sizes 24"),
        ("--out 16 32", "--out 16 32"),
    ],
)
def test_several_values_become_repeated_options(line, expected):
    assert expand(line.split(), NAMES) == expected.split()


def test_an_option_without_a_value_does_not_swallow_the_next_one():
    app = typer.Typer()

    @app.command(cls=ManyCommand)
    def show(sizes: list[int] | None = None, name: str = "") -> None:
        typer.echo(f"{sizes} {name}")

    assert CliRunner().invoke(app, ["--sizes", "1", "2", "--name", "a"]).output == "[1, 2] a\n"
    wrong = CliRunner().invoke(app, ["--sizes", "--name", "a"])
    assert wrong.exit_code == 2
    assert "--sizes has no value" in wrong.output
