"""Every command that asks a question, in the ways that all of them share."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from attnlab.cli import main
from attnlab.lab import Bench, Interrupted, options
from attnlab.questions import questions
from tests.golden import golden

pytestmark = pytest.mark.slow

CLAIM = """
from attnlab.lab import Claim, Control, Criterion, Grid, Sweep, every_run

sweep = Sweep(
    name="mine",
    work="attnlab.papers.lu2021.runs:flow_far",
    grid=lambda scale, seeds: Grid({"far": {"last": 1e3, "rows": 5}}, seeds),
    measure=lambda arms: arms,
)
rises = Criterion("last score", lambda data: data["far"].score.isel(time=-1), every_run >= 0.1)
falls = Criterion("last loss", lambda data: data["far"].loss.isel(time=-1), every_run >= 1.0)
claim = Claim(
    id="mine.rises",
    title="Scores rise",
    statement="Scores rise.",
    sweeps=(sweep,),
    criteria=(rises,),
    controls=(Control("loss", "The loss falls.", (falls,)),),
    how_measured="The last score.",
    refuted_by="A score that does not rise.",
)
"""
# A command without a line here is tested with its defaults.
LINES = {
    **golden.COMMANDS,
    "check": "mine.py --seeds 2",
    "reproduce": "beyond.entropy_bound --seeds 2",
}
NAMES = sorted(questions())


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the lines name; commands write beside them."""
    folder = tmp_path_factory.mktemp("home")
    golden.make_texts(folder / "texts.csv")
    (folder / "mine.py").write_text(CLAIM, "utf-8")
    (folder / "file").write_text("", "utf-8")
    return folder


@pytest.fixture
def call(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """A command as a user types it; returns exit code, output and errors."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["attnlab", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return run


Call = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize("name", NAMES)
def test_from_the_command_to_the_page_and_again(name: str, call: Call, home: Path):
    line = [name, *LINES.get(name, "").split(), "--processes", "0", "--out", name]
    code, out, err = call(*line)
    assert code in (0, 3), err  # two seeds may contradict what eight do not
    file = "index.html" if name == "reproduce" else "report.html"
    assert out.rstrip().endswith(f"page: {name}/{file}")
    page = home / name / file
    drawn = page.read_text("utf-8")
    assert f"attnlab {name}" in drawn
    assert "cannot be drawn" not in drawn
    page.unlink()
    assert call("report", name)[0] == 0
    assert page.read_text("utf-8") == drawn
    runs = {path: path.stat().st_mtime_ns for path in (home / name / "runs").rglob("*.zip")}
    assert runs
    code, out, err = call(*line, "--json", "--quiet")
    assert code in (0, 3), err
    assert json.loads(out)["about"]["command"].startswith(f"attnlab {name}")
    assert {p: p.stat().st_mtime_ns for p in (home / name / "runs").rglob("*.zip")} == runs
    if name in ("dynamics", "samples", "digits", "landscape", "compare"):
        before = json.loads((golden.STORED / f"{name}.json").read_text("utf-8"))["figures"]
        now = golden.of_command(home / name)["figures"]
        assert list(golden.differences(before, now, golden.DRAWN)) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_mistake_is_one_message_and_exit_code_2(name: str, call: Call):
    line = [name, *LINES.get(name, "").split(), "--processes", "0"]
    code, out, err = call(*line, "--out", "file")
    assert (code, out) == (2, "")
    assert err.startswith("attnlab: file is a file; expected a folder")
    assert err.count("\n") == 1
    code, out, err = call(*line, "--no-such-option")
    assert (code, out) == (2, "")
    assert "--no-such-option" in err
    for field in options(questions()[name].settings):
        if field.option.least is not None and not field.option.argument:
            code, out, err = call(*line, field.flag, "-1")
            assert (code, out) == (2, ""), field
            assert err.startswith(f"attnlab: {field.flag} -1"), field


@pytest.mark.parametrize("name", NAMES)
def test_ctrl_c_says_that_nothing_is_lost(name: str, call: Call, monkeypatch: pytest.MonkeyPatch):
    def interrupted(self: Bench, *rest: object, **more: object):
        raise Interrupted

    monkeypatch.setattr(Bench, "sweep", interrupted)
    line = [name, *LINES.get(name, "").split(), "--processes", "0", "--out", f"{name}-interrupted"]
    code, out, err = call(*line, "--quiet")
    assert (code, out) == (130, "")
    assert "the same command resumes from there" in err


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example_and_every_option(name: str, call: Call):
    code, out, _ = call(name, "--help")
    assert code == 0
    assert f"attnlab {name} " in out
    for field in options(questions()[name].settings):
        assert field.option.argument or field.flag in out
        for choice in field.option.choices or ():
            assert choice in out
    for shared in ("--out", "--json", "--quiet", "--processes", "--cluster", "--keep"):
        assert shared in out
