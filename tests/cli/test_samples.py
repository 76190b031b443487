"""``attnlab samples`` as a user meets it: own files, mistakes, what is printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

MINE = """
import equinox as eqx
import jax
import numpy as np


class Source:
    def sample(self, n, *, key, noisy=True):
        x = np.random.default_rng(np.asarray(jax.random.key_data(key))).normal(size=(n, 3))
        return x, 2 * x[:, 0]


def source(key):
    return Source()


def line(key, shape):
    return eqx.nn.Linear(shape[0], "scalar", key=key)


def raising(key, shape):
    raise ValueError("no such width")


def vague(key, shape):
    return eqx.nn.Linear(shape[0], shape[0], use_bias=False, key=key)


def bare(key):
    return 3
"""
TINY = [
    "--steps",
    "20",
    "--sizes",
    "8",
    "16",
    "32",
    "--weight-decays",
    "0.1",
    "--seeds",
    "2",
    "--processes",
    "0",
]


@pytest.fixture(autouse=True)
def mine(tmp_path: Path):
    """Files of the user's: one that works and one that does not."""
    (tmp_path / "mine.py").write_text(MINE, "utf-8")
    (tmp_path / "broken.py").write_text("x = (\n", "utf-8")


def test_the_help_says_what_takes_several_values(run):
    code, out, _ = run("samples", "--help")
    assert code == 0
    assert "--features 16 32 64 128" in out
    assert "separated by spaces or commas" in " ".join(out.split())
    assert "mine.py:model" in out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--teacher nope", "--teacher 'nope': expected one of static-mask, gate"),
        ("--students base", "the students are baseline, known-attention, vacuous-mask"),
        ("--teacher mlp --students known-attention", "the students are baseline, known-weights"),
        (
            "--teacher mlp --features 16 32",
            "--features 16 32: has no meaning for the teacher 'mlp'",
        ),
        ("--teacher dense --relevant 2", "--relevant 2: has no meaning for the teacher 'dense'"),
        ("--depth 2", "--depth 2: has no meaning"),
        ("--classes 2 --noise-std 0.1", "--noise-std has no meaning with --classes"),
        ("--label-noise 0.1", "label_noise=0.1: regression has no labels"),
        (
            "--students baseline --against other",
            "--against 'other' is none of the students baseline",
        ),
        ("--students baseline nowhere.py:f", "student file nowhere.py does not exist"),
        ("--students baseline mine.py:lin", "mine.py has no function 'lin'"),
        (
            "--students mine.py:raising",
            "student 'mine.py:raising' raises ValueError: no such width",
        ),
        ("--students broken.py:f", "student 'broken.py:f' raises SyntaxError"),
        ("--teacher mine.py:source", "--students: name your own as file.py:function"),
        ("--teacher mine.py:source --students baseline", "give 'file.py:function'"),
        (
            "--teacher mine.py:bare --students mine.py:line",
            "returned a int; expected an object with sample",
        ),
        ("--level 1.5", "--level 1.5: expected a share between 0 and 1"),
        ("--features 2 --relevant 4", "relevant"),
        ("--sizes 64 32", "expected increasing positive numbers of samples"),
        ("--features 16 many", "--features"),
        ("--features --quiet", "--features has no value"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(run, line, message):
    code, out, err = run("samples", *line.split())
    assert code == 2, out + err
    assert message in err
    assert "Traceback" not in out + err
    assert not Path("samples").exists()


def test_the_answers_are_a_table_and_sentences(run):
    line = ["samples", "--relevant", "2", "--features", "4", "8", "--level", "0.5", *TINY]
    code, out, err = run(*line)
    assert code == 0, err
    assert "samples for error 0.5" in out
    assert "known-attention against baseline, p = 8: inconclusive" in out
    code, out, _ = run(*line, "--quiet", "--json")
    shown = json.loads(out)
    assert [(row["student"], row["features"]) for row in shown["samples"]][:2] == [
        ("baseline", 4),
        ("baseline", 8),
    ]
    assert {"needed", "needed_kind", "ratio", "verdict"} <= set(shown["samples"][0])
    assert shown["about"]["settings"]["relevant"] == 2


def test_a_teacher_and_students_of_ones_own(run):
    code, _, err = run(
        "samples",
        "--teacher",
        "mine.py:source",
        "--students",
        "mine.py:line",
        "mine.py:vague",
        *TINY,
    )
    assert code == 2
    assert "'mine.py:vague' answers an input with the shape (3,); expected (), one number" in err
    code, out, err = run(
        "samples",
        "--teacher",
        "mine.py:source",
        "--students",
        "mine.py:line",
        "--out",
        "own",
        "-q",
        *TINY,
        "--step-sizes",
        "0.1,0.3",
    )
    assert (code, out) == (0, ""), err
    assert "mine.py:line" in Path("own/report.html").read_text("utf-8")
