"""The command line: one file per command, thin. Nothing heavy is imported before a command runs."""

from attnlab.cli._main import main

__all__ = ["main"]
