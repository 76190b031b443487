"""``attnlab check``: put your own claims to the test."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from attnlab._errors import AttnlabError
from attnlab.lab import Claim, Claims, ClaimSettings, Option

_HELP = """Put your own claim to the test: a file states it with the objects of attnlab's claims.

The file is run as Python, so check only files that you trust. docs/guides/own-claim.md has an example of
30 lines. The default folder is the file's name without .py.

Example:

    attnlab check my_claim.py --seeds 16
"""


@dataclass(frozen=True)
class CheckSettings(ClaimSettings):
    """The file with the claims, and how they are put to the test."""

    file: Annotated[
        str, Option("A Python file that defines one or more Claim objects.", argument=True)
    ] = ""

    @property
    def folder(self) -> str | None:
        """The file's name without .py."""
        return Path(self.file).stem

    def claims(self, known: Callable[[], Mapping[str, Claim]]) -> Sequence[Claim]:
        """The claims that the file defines."""
        file = Path(self.file)
        if not file.is_file():
            raise AttnlabError(
                f"{file} does not exist; expected a Python file that defines a Claim"
            )
        found = [value for value in _names_in(file).values() if isinstance(value, Claim)]
        if not found:
            raise AttnlabError(
                f"{file} defines no Claim; see docs/guides/own-claim.md for an example"
            )
        return found

    def command(self, claim: Claim) -> str:
        """What to type to judge a claim again."""
        return f"attnlab check {Path(self.file).name}{self.words}"


def _names_in(file: Path) -> dict[str, object]:
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
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame.lineno for frame in frames if Path(frame.filename).name == file.name]
        line = error.lineno if isinstance(error, SyntaxError) else own[-1] if own else "?"
        raise AttnlabError(
            f"{file} raises {type(error).__name__} at line {line}: {error}"
        ) from None
    return vars(module)


question = Claims(dict, name="check", settings=CheckSettings, help=_HELP)
