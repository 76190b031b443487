"""How many files of attnlab a command walks through: those whose functions run, and those loaded.

    python tools/journey.py reproduce lu2021.sen --seeds 1
    python tools/journey.py --list study reviews.csv --text review --label sentiment

The command runs in this process (``--processes 0`` is added), into a temporary folder. A reader who
follows it opens the files of the first number; ``--list`` prints them.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any


def main() -> None:
    """Run the command under a profiler that only notes file names."""
    words = sys.argv[1:]
    listed = words[:1] == ["--list"]
    words = words[1:] if listed else words
    walked: set[str] = set()
    code: object = None

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            walked.add(frame.f_code.co_filename)

    from attnlab.cli import main as attnlab

    with tempfile.TemporaryDirectory() as folder:
        sys.argv = ["attnlab", *words, "--processes", "0", "--out", folder, "--quiet"]
        sys.setprofile(note)
        try:
            attnlab()
        except SystemExit as ended:
            code = ended.code
        finally:
            sys.setprofile(None)
    import attnlab as package

    root = Path(package.__file__).parent
    files = sorted(str(Path(f).relative_to(root)) for f in walked if Path(f).is_relative_to(root))
    loaded = [name for name in sys.modules if name.split(".")[0] == "attnlab"]
    if listed:
        print(*files, sep="\n")
    print(f"exit code {code}: {len(files)} files run, {len(loaded)} loaded")


if __name__ == "__main__":
    main()
