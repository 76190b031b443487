"""README, documentation and notebooks are executed, so that they cannot rot."""

import re
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"))
    if re.search(r"^```(python|\{code-cell\})", path.read_text("utf-8"), re.MULTILINE)
)
ELSEWHERE = {
    "docs/guides/own-claim.md": "its claim is checked by the command, in tests/cli/test_cli.py",
    "docs/ledger.md": "compares two folders of results: run in tests/lab/test_diff.py",
}
BLOCK = re.compile(r"^```(?:python|\{code-cell\} ipython3)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if page not in ELSEWHERE])
def test_the_examples_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    matplotlib.use("agg")
    blocks = BLOCK.findall((ROOT / page).read_text("utf-8"))
    assert blocks
    names: dict = {}
    for block in blocks:
        if not names or page.startswith(("README", "docs/guides")):  # each block stands alone
            names = {"__name__": "example"}
        named = re.match(r"# (\w+\.py)\n", block)
        if named:  # a file of the reader's, which later examples name
            Path(named[1]).write_text(block, "utf-8")
        exec(compile(block, page, "exec"), names)
    plt.close("all")


def test_what_is_executed_elsewhere_has_code():
    assert set(ELSEWHERE) <= set(PAGES)


def test_the_readme_example_is_short_and_what_it_shows_is_true():
    block = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))[0]
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
