"""Golden numbers, and ``tools/golden.py`` as a module."""

import importlib.util
from pathlib import Path

_FILE = Path(__file__).parents[2] / "tools" / "golden.py"
_SPEC = importlib.util.spec_from_file_location("golden", _FILE)
assert _SPEC is not None
assert _SPEC.loader is not None
golden = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(golden)
