"""``attnlab check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attnlab._places import place
from attnlab.cli._reproduce import AsJson, Quiet, Scale, ScaleName, Seeds, Strict, Until, run_claims
from attnlab.cli._where import HERE, Where, anywhere


@anywhere
def check(
    file: Annotated[
        Path, typer.Argument(help="A Python file that defines one or more Claim objects.")
    ],
    scale: Scale = ScaleName.quick,
    seeds: Seeds = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", help="Folder or URL; else the file's name without .py.", metavar="PATH|URL"
        ),
    ] = None,
    where: Where = HERE,
    quiet: Quiet = False,
    json: AsJson = False,
    until: Until = None,
    strict: Strict = False,
) -> None:
    """Put a claim of your own to the test: the file states it with the same objects as attnlab's
    own claims.

    The file is run as Python, so check only files that you trust. docs/own-claim.md has an example
    of 30 lines.

    Example:

        attnlab check my_claim.py --seeds 16
    """
    from attnlab._errors import AttnlabError
    from attnlab.claims import Claim

    if not file.is_file():
        raise AttnlabError(f"{file} does not exist; expected a Python file that defines a Claim")
    found = [value for value in _names_in(file).values() if isinstance(value, Claim)]
    if not found:
        raise AttnlabError(f"{file} defines no Claim; see docs/own-claim.md for an example")
    command = f"attnlab check {file.name}"
    run_claims(
        found,
        scale,
        seeds,
        place(out or file.stem),
        where,
        quiet,
        json,
        command,
        until=until,
        strict=strict,
    )


def _names_in(file: Path) -> dict[str, object]:
    import importlib.util
    import sys
    import traceback

    from attnlab._errors import AttnlabError

    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise AttnlabError(f"{file} is not a Python file (its name must end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except AttnlabError:
        raise
    except Exception as error:
        own = [
            f.lineno
            for f in traceback.extract_tb(error.__traceback__)
            if Path(f.filename).name == file.name
        ]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1] if own else "?"
        raise AttnlabError(
            f"{file} raises {type(error).__name__} at line {line}: {error}"
        ) from None
    return vars(module)
