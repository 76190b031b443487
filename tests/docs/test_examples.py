"""README and documentation are executed, so that they cannot rot."""

import re
from pathlib import Path

import matplotlib
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    "README.md",
    "docs/training.md",
    "docs/sweeps.md",
    "docs/dynamics.md",
    "docs/samples.md",
    "docs/digits.md",
    "docs/landscape.md",
    "docs/text.md",
    "docs/compare.md",
    "docs/cluster.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        named = re.match(r"# (\w+\.py)\n", block)
        if named:  # a file of the reader's, which later examples name
            Path(named[1]).write_text(block, "utf-8")
        exec(compile(block, page, "exec"), {"__name__": "example"})


def test_the_readme_example_is_short_and_what_it_shows_is_true():
    block = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[
        0
    ]
    lines = [line for line in block.splitlines() if line.strip() and not line.startswith("import")]
    assert len(lines) <= 10
    names: dict = {"__name__": "example"}
    quick = block.replace("seeds=16", "seeds=2").replace("steps=3000", "steps=1500")
    exec(compile(quick, "README.md", "exec"), names)
    data = names["data"]
    assert data.score.dims == ("seed", "step", "word")
    late = data.score > 0.05
    error = (abs(names["theory"] - names["measured"]) / names["measured"]).where(late)
    assert bool(late.any())
    assert float(error.median()) < 0.004
