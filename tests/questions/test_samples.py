"""``attnlab samples`` from Python: models and data of your own, mistakes, the page."""

from __future__ import annotations

import textwrap

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.lab import page, read_record
from attnlab.models import Baseline, BaselineConfig, make_teacher
from attnlab.questions import ask, questions
from attnlab.questions.samples import Samples

pytestmark = pytest.mark.slow

HERE = "tests.questions.test_samples"
TINY = {
    "sizes": (8, 16, 32),
    "steps": 20,
    "weight_decays": (0.1,),
    "seeds": 2,
    "processes": 0,
    "progress": False,
}


def dense(key):
    return make_teacher("dense", key=key, features=6)


class Gated(eqx.Module):
    """Attention that cannot help where every feature counts: a learned weight per feature before
    the head.
    """

    logits: jax.Array
    head: Baseline

    def __call__(self, x):
        return self.head(x * jax.nn.softmax(self.logits) * x.shape[0])


def gated(key, shape):
    return Gated(jnp.zeros(shape), BaselineConfig(shape[0], 8).init(key))


class Doubled:
    """y = 2·x₀, without noise."""

    def sample(self, n, *, key, noisy=True):
        x = np.random.default_rng(int(jax.random.bits(key)) % 2**32).standard_normal((n, 3))
        return x, 2 * x[:, 0]


def doubled(key):
    return Doubled()


def linear(key, shape):
    return eqx.nn.Linear(shape[0], "scalar", use_bias=False, key=key)


def test_a_useless_attention_model_has_no_advantage(tmp_path):
    record = ask(
        "samples",
        tmp_path,
        teacher=f"{HERE}:dense",
        students=("baseline", f"{HERE}:gated"),
        level=0.2,
        sizes=(16, 32, 64, 128),
        seeds=8,
        steps=500,
        widen=0,  # 8 seeds decide on the grid as it is given
        processes=0,
        progress=False,
    )
    mine = Samples.of(record.data).sel(student=f"{HERE}:gated").isel(features=0)
    assert mine[Samples.verdict].item() in ("no advantage", "costs")
    assert "no advantage" in mine[Samples.said].item()
    assert record.cards[0].verdict == mine[Samples.verdict].item()


def test_data_of_your_own(tmp_path):
    own = {"teacher": f"{HERE}:doubled", "students": (f"{HERE}:linear",), "level": 0.01}
    more = {**TINY, **own, "sizes": (4, 8, 32), "steps": 400, "step_sizes": (0.05,)}
    record = ask("samples", tmp_path, **more)
    assert float(Samples.error(record.data, size=32).max()) < 0.01
    drawn = page(questions()["samples"], record)
    # A single student has no ratio.
    assert [section.id for section in drawn.sections] == ["curves", "needed", "fits", "again"]
    with pytest.raises(AttnlabError, match="made for attnlab's teachers"):
        ask("samples", tmp_path / "named", **{**more, "students": ("baseline",)})


def test_a_record_is_stored_and_a_changed_file_is_run_again(tmp_path):
    file = tmp_path / "mine.py"
    text = textwrap.dedent(
        """
        import equinox as eqx

        def mine(key, shape):
            return eqx.nn.MLP(shape[0], "scalar", 4, 1, key=key)
        """
    )
    file.write_text(text)
    own = f"{file}:mine"
    asked = {**TINY, "students": ("baseline", own), "features": (8,), "relevant": 2}
    record = ask("samples", tmp_path / "out", **asked)
    assert record.ok
    table = Samples.of(record.data)
    Samples.check(table)
    assert table.student.values.tolist() == ["baseline", own]
    again = read_record(tmp_path / "out")
    assert np.array_equal(Samples.error(again.data), table[Samples.error])
    assert again.about == record.about
    runs = tmp_path / "out" / "runs"
    before = len(list(runs.iterdir()))
    ask("samples", tmp_path / "out", **asked)
    assert len(list(runs.iterdir())) == before
    file.write_text(text.replace("4, 1", "5, 1"))
    ask("samples", tmp_path / "out", **asked)
    assert len(list(runs.iterdir())) == before + 1


def test_every_part_is_on_the_page(tmp_path):
    students = ("baseline", "known-attention")
    record = ask("samples", tmp_path, **TINY, students=students, features=(8, 16), level=0.9)
    drawn = page(questions()["samples"], record)
    assert {s.id: [figure.id for figure in s.figures] for s in drawn.sections} == {
        "curves": ["learning_curves"],
        "needed": ["needed", "answers", "further"],
        "ratio": ["ratio"],
        "fits": ["tuning"],
        "again": [],
    }
    assert "not of a level" in drawn.sections[2].figures[0].caption
    assert drawn.question == "How many samples does each student need for an error of 0.9?"
    assert drawn.summary == ""  # the cards say it


def test_labels_have_their_words(tmp_path):
    asked = {"teacher": "self-attention", "classes": 2, "students": ("baseline",)}
    record = ask("samples", tmp_path, **TINY, **asked)
    drawn = page(questions()["samples"], record)
    assert drawn.question.endswith("need for a share of wrong labels of 0.1?")
    assert "share of wrong labels" in drawn.sections[0].statement
    y_axis = drawn.sections[0].figures[0].plotly["layout"]["yaxis"]
    assert y_axis["title"]["text"] == "share of wrong labels"
    facts = record.about["settings"]
    assert {"features", "relevant", "noise_std"}.isdisjoint(facts)
    assert (facts["batch_size"], facts["label_noise"]) == (32, 0.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"teacher": "statik-mask"}, "--teacher 'statik-mask': expected one of static-mask, gate"),
        ({"students": ("baseline", "known-weights")}, "the students are"),
        ({"students": ("baseline", "nowhere.py:mine")}, "does not exist"),
        ({"students": ("baseline", "baseline")}, "each once"),
        ({"features": (16, 16)}, "each once"),
        ({"against": "other"}, "none of the students"),
        ({"level": 0.0}, "between 0 and 1"),
        ({"seeds": 0}, "at least 1"),
        ({"sizes": (8, 8)}, "increasing positive numbers"),
        ({"teacher": "dense", "students": ("baseline", "known-attention")}, "no mask to know"),
    ],
)
def test_mistakes_are_told_before_any_run(tmp_path, given, message):
    with pytest.raises(AttnlabError, match=message):
        ask("samples", tmp_path, **given)
    assert not (tmp_path / "runs").exists()
