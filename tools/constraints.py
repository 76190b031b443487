"""Write ``constraints.txt``: exact versions for Python 3.11 and for 3.12 and later, which resolve
differently.

Run with two interpreters: ``python tools/constraints.py python3.11 python3.12``. Each installs the
package with all extras but PyTorch into a temporary environment; packages whose versions agree get
one line, others one per marker.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

_ROOT = Path(__file__).resolve().parent.parent
_MARKERS = ('python_version < "3.12"', 'python_version >= "3.12"')
_EXTRAS = "dev"


def resolve(python: str) -> dict[str, str]:
    """Names and versions that a fresh environment of this interpreter gets."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([python, "-m", "venv", folder], check=True)
        pip = [f"{folder}/bin/python", "-m", "pip", "--disable-pip-version-check"]
        subprocess.run([*pip, "install", "-q", "-U", "pip", "setuptools", "jaxlib"], check=True)
        subprocess.run(
            [*pip, "install", "-q", "--no-build-isolation", f"{_ROOT}[{_EXTRAS}]"], check=True
        )
        listed = subprocess.run(
            [*pip, "list", "--format=freeze"], check=True, capture_output=True, text=True
        ).stdout
    pairs = (line.split("==") for line in listed.split())
    return {
        re.sub(r"[-_.]+", "-", name).lower(): version
        for name, version in pairs
        if name.lower() != "attnlab"
    }


def main() -> None:
    """Resolve with both interpreters and write the file."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python tools/constraints.py PYTHON3.11 PYTHON3.12-OR-LATER")
    found = [resolve(python) for python in sys.argv[1:]]
    lines = [
        "# Exact versions of a tested installation, by tools/constraints.py; names and versions "
        "only."
    ]
    for name in sorted({*found[0], *found[1]}):
        versions = [f.get(name) for f in found]
        if versions[0] == versions[1]:
            lines.append(f"{name}=={versions[0]}")
            continue
        lines += [
            f"{name}=={v} ; {m}" for v, m in zip(versions, _MARKERS, strict=True) if v is not None
        ]
    (_ROOT / "constraints.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
