"""The command line as a user meets it: help, exit codes, no traceback for a mistake."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
ENV = os.environ | {"COLUMNS": "120", "NO_COLOR": "1", "TERM": "dumb"}


def attnlab(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "attnlab", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=cwd, env=ENV, timeout=300, check=False
    )


def own_claim(tmp_path: Path) -> Path:
    """The example of docs/guides/own-claim.md, as written there."""
    text = (ROOT / "docs/guides/own-claim.md").read_text("utf-8")
    found = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    (tmp_path / "my_claim.py").write_text(found.group(1), "utf-8")
    return tmp_path / "my_claim.py"


def test_help_has_an_example_for_every_command(run):
    top = attnlab("--help")
    assert top.returncode == 0
    for command in ("reproduce", "report", "runs", "claims", "check", "diff"):
        assert command in top.stdout
        code, out, _ = run(command, "--help")
        assert code == 0
        assert f"attnlab {command}" in out
    assert re.fullmatch(r"attnlab \d+\.\d+\.\d+\n", attnlab("--version").stdout)


def test_help_does_not_import_jax():
    code = "import sys; sys.argv = ['attnlab', '--help']; import attnlab.cli._main; print('jax' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "laws.identiy"], "did you mean 'laws.identity'"),
        (["reproduce", "--scale", "huge"], "huge"),
        (["reproduce", "--seeds", "0"], "--seeds 0: expected at least 1"),
        (["report", "nowhere"], "has no record.json"),
        (["runs", "nowhere"], "is not a folder"),
        (["runs", "."], "holds no sweep"),
        (["check", "nowhere.py"], "does not exist"),
        (["check", "broken.py"], "broken.py raises ZeroDivisionError at line 2"),
        (["check", "empty.py"], "defines no Claim"),
        (["check", "syntax.py"], "syntax.py raises SyntaxError at line 2"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(tmp_path, run, arguments, message):
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    (tmp_path / "empty.py").write_text("x = 1\n")
    (tmp_path / "syntax.py").write_text("x = 1\ny = (\n")
    code, out, err = run(*arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err + out


def test_a_mistake_ends_the_process_without_a_traceback(tmp_path):
    done = attnlab("report", "nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "has no record.json" in done.stderr
    assert "Traceback" not in done.stderr + done.stdout


def test_claims_can_be_read_by_people_and_programs(run):
    assert "refuted by" in run("claims", "laws")[1]
    listed = json.loads(run("claims", "--json")[1])
    described = {"id", "title", "statement", "source", "how_measured", "refuted_by"}
    committed = {"source_kind", "provenance", "expected", "expected_provenance", "of_criteria"}
    assert set(listed[0]) == described | committed | {"criteria", "controls", "hash"}


def test_a_claim_of_ones_own_from_file_to_page(tmp_path, run):
    file = own_claim(tmp_path)
    assert len(file.read_text("utf-8").splitlines()) <= 45
    done = attnlab("check", file.name, "--seeds", "8", "--processes", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mine.keys_help" in done.stdout
    assert "holds" in done.stdout
    out = tmp_path / "my_claim"
    page = (out / "report.html").read_text("utf-8")
    assert "Training the keys lowers the loss" in page
    assert list((out / "figures").glob("*.csv"))
    entry = json.loads((out / "record.json").read_text("utf-8"))["content"]["claims"][0]
    assert entry["controls"][0] | {"criteria": []} == {
        "id": "a short query",
        "should": "reject",
        "verdict": "fails",
        "ok": True,
        "criteria": [],
        "statement": "keys that can do nothing must not be found to help",
        "reason": "",
    }
    (out / "report.html").unlink()
    assert run("report", "my_claim")[0] == 0
    assert (out / "report.html").read_text("utf-8") == page
    listed = json.loads(run("runs", "my_claim", "--json")[1])
    assert [(r["asked"], r["finished"], r["failed"]) for r in listed] == [(32, 32, 0)]
    shown = json.loads(run("check", file.name, "--seeds", "8", "--json")[1])
    assert shown["claims"][0]["verdict"] == "holds"


def test_exit_codes_for_contradiction_and_failed_runs(tmp_path, run):
    text = own_claim(tmp_path).read_text("utf-8")
    text = text.replace('"sentences": 300', '"sentences": 150')
    (tmp_path / "opposite.py").write_text(
        text.replace('refuted_by="A', 'expected="fails",\n    refuted_by="A')
    )
    code, out, err = run("check", "opposite.py", "--seeds", "8", "--processes", "0")
    assert code == 3, out + err
    assert "contradiction: mine.keys_help was expected to be 'fails'" in out
    (tmp_path / "failing.py").write_text(text.replace('"rows": 20', '"rows": 20, "topics": 1'))
    code, out, err = run("check", "failing.py", "--seeds", "8", "--processes", "0")
    assert code == 1
    assert "too many runs failed" in err
    assert "32 × " in run("runs", "failing")[1]


def test_ctrl_c_keeps_what_is_finished(tmp_path, run):
    file = own_claim(tmp_path)
    command = [
        sys.executable,
        "-m",
        "attnlab",
        "check",
        file.name,
        "--seeds",
        "40",
        "--processes",
        "1",
    ]
    process = subprocess.Popen(command, cwd=tmp_path, env=ENV, stderr=subprocess.PIPE, text=True)
    blocks = tmp_path / "my_claim" / "runs"
    until = time.monotonic() + 120
    while not list(blocks.rglob("*.zip")) and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command resumes from there" in errors
    assert "Traceback" not in errors
    finished = json.loads(run("runs", "my_claim", "--json")[1])[0]["finished"]
    assert 0 < finished <= 160
