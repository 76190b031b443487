"""The command line. Importing it loads neither JAX nor xarray: a command imports what it needs."""

from attnlab.cli._main import main

__all__ = ["main"]
