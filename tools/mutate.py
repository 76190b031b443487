"""Damage stored results at random and read them: python tools/mutate.py 1000 --seed 0

Makes a finished sweep, the folder of `attnlab dynamics` and a stored model in a temporary folder.
Each mutation changes one of them (bits, lengths, names, JSON values, members of ZIP files); then
the public readers look at it, and what they say is compared with what they said before. Half of the
mutations of JSON and ZIP files recompute all checksums, as somebody would who crafts a file: these
may be read as other data, but must end in words, soon and in little memory.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax.numpy as jnp
import numpy as np
from typer.testing import CliRunner

from attnlab import AttentionClassifier, load_classifier
from attnlab._errors import AttnlabError
from attnlab._json import checksum_of
from attnlab.cli._main import app
from attnlab.data import Vocabulary
from attnlab.lab import read_record
from attnlab.models import TwoLayerHead, WordAttention
from attnlab.sweeps import Plan, Results, Store, run_plan

SECONDS, GIBIBYTES = 10.0, 1.0
OUTCOMES = (
    "as before",
    "counted as not done",
    "refused in words",
    "other data",
    "traceback",
    "too long",
    "too large",
)
BAD = ("other data", "traceback", "too long", "too large")
_WORK = """
import numpy as np
import xarray as xr
from dataclasses import dataclass

@dataclass(frozen=True)
class Settings:
    seed: int
    label: str = "plain"
    widths: tuple[int, ...] = (1, 2)

def work(settings: Settings, context) -> xr.Dataset:
    if settings.seed == 5:
        raise RuntimeError("the model diverged")
    values = np.random.default_rng(settings.seed).normal(size=6)
    return xr.Dataset(
        {"value": ("step", values), "count": 2**40 + settings.seed, "flag": settings.seed % 2 == 0,
         "word": ("step", list("abcdef"))},
        {"step": np.arange(6)}, {"seed": settings.seed},
    )
"""
_ODD: list[Any] = [
    None,
    True,
    False,
    -1,
    0,
    7,
    2**31,
    10**30,
    -0.5,
    1e-320,
    1e308,
    float("nan"),
    float("inf"),
    "",
    "x",
    "\ud800",
    "../../etc/passwd",
    "/etc/passwd",
    "s3://bucket/x",
    "x" * 1000,
    [],
    {},
    [[]],
    [1, "a", None],
    {"a": {"b": []}},
    "<script>",
    "2020-13-45",
    "float64",
    "[red]",
    "%s{}",
    "2",
    ["x"] * 3,
]


@dataclass
class Subject:
    """Stored results, and how they are read: ``read`` gives parts by name, of which fewer may be
    there later.
    """

    name: str
    folder: Path
    read: Callable[[], dict[str, Any]]
    files: dict[str, bytes] = field(default_factory=dict)
    before: dict[str, Any] = field(default_factory=dict)

    def keep(self, *patterns: str) -> Subject:
        """Remember the files that may be changed, and what is read from them."""
        paths = sorted({path for pattern in patterns for path in self.folder.glob(pattern)})
        self.files = {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in paths
            if path.is_file()
        }
        self.before = self.read()
        return self

    def restore(self) -> None:
        """Undo a mutation."""
        for name, data in self.files.items():
            path = self.folder / name
            if path.is_dir():
                shutil.rmtree(path)
            if not path.is_file() or path.read_bytes() != data:
                path.write_bytes(data)


def make_subjects(folder: Path) -> list[Subject]:
    """A finished sweep, the record of a command and a model, each with its readers."""
    return [_sweep(folder), _record(folder / "record"), _model(folder)]


def _sweep(folder: Path) -> Subject:
    (folder / "mutated.py").write_text(_WORK)
    with patch.object(Store, "consolidate", lambda self: None):
        for seeds in (4, 9):
            plan = Plan(
                f"{folder / 'mutated.py'}:work", name="mutated", grid={"seed": list(range(seeds))}
            )
            run_plan(plan, folder / "sweep", processes=0, progress=False)

    def read() -> dict[str, Any]:
        results = Results.read(folder / "sweep")
        listed = json.loads(_command("runs", folder / "sweep", "--json"))[0]
        assert listed["missing"] == results.missing, "`attnlab runs` counts otherwise"
        data = results.dataset()
        parts: dict[str, Any] = {"plan": results.plan.to_json(), "asked": results.asked}
        for run in results.plan.runs:
            with suppress(AttnlabError):
                parts[f"run {run.index}"] = _bits(results.run(run.index))
        there = [f"run {index}" in parts for index in range(results.asked)]
        assert sum(there) == results.finished == data.attrs["finished"], (
            "the counts contradict the data"
        )
        for group in results.failures:
            parts |= {f"failure {index}": (group.cause, group.traceback) for index in group.runs}
        if all(there):
            parts["data"] = _bits(data)
        return parts

    return Subject("sweep", folder / "sweep", read).keep("plan.json", "blocks/*", "failures/*")


def _record(folder: Path) -> Subject:
    line = "dynamics --sentences 60 --dictionary 30 --steps 20 --reach 1 --seeds 2 --processes 0"
    _command(*line.split(), "--out", folder, "--quiet")

    def read() -> dict[str, Any]:
        stored = read_record(folder)
        _command("report", folder)
        data = {name: _bits(one) for name, one in stored.data.items()}
        return {
            "about": json.dumps(stored.about),
            **data,
            "page": (folder / "report.html").read_bytes(),
        }

    return Subject("record", folder, read).keep("*.json", "data/*")


def _model(folder: Path) -> Subject:
    texts = ["a good film", "good fun", "so good", "a bad film", "bad fun", "so bad"]
    vocabulary = Vocabulary.of(texts)
    rng = np.random.default_rng(0)
    shapes = [(len(vocabulary), 4), (len(vocabulary), 1), (1,), (4, 10), (10,), (10, 2), (2,)]
    arrays = [jnp.asarray(rng.normal(size=shape), "float32") for shape in shapes]
    embeddings, keys, query, *head = arrays
    model = WordAttention(embeddings, keys, query, TwoLayerHead(*head))
    settings: dict[str, Any] = {
        "embedding_dim": 4,
        "head": "two_layer",
        "class_weight": {"pos": 2.0, "neg": 1.0},
    }
    classifier = AttentionClassifier.from_model(
        model, vocabulary, ["neg", "pos"], prior=[1, 2], **settings
    )
    classifier.save(folder / "model")
    (folder / "lines.txt").write_text("\n".join([*texts, "unknown"]))

    def read() -> dict[str, Any]:
        loaded = load_classifier(folder / "model")
        labelled = _command(
            "predict", folder / "lines.txt", "--format", "lines", "--model", folder / "model"
        )
        state = [
            loaded.classes_.tolist(),
            loaded.vocabulary_.counts.tolist(),
            loaded.n_iter_,
            loaded.stop_reason_,
        ]
        state += [
            loaded.vocabulary_.words,
            loaded.vocabulary_.left_out,
            loaded.class_prior_.tolist(),
            loaded.model_.trained,
        ]
        settings = {name: repr(value) for name, value in loaded.get_params().items()}
        return {
            "answers": loaded.predict_proba(texts).tobytes(),
            "state": repr(state),
            **settings,
            "csv": labelled,
        }

    return Subject("model", folder / "model", read).keep("*")


def _command(*words: Any) -> str:
    """What a command prints."""
    done = CliRunner().invoke(app, [str(word) for word in words])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def _bits(data: Any) -> str:
    parts = {
        str(name): (v.dims, str(v.dtype), hashlib.sha256(_raw(v)).hexdigest(), repr(v.attrs))
        for name, v in sorted(data.variables.items())
    }
    return repr((parts, sorted(data.coords), data.attrs))


def _raw(variable: Any) -> bytes:
    values = variable.values
    return values.tobytes() if values.dtype.kind not in "OT" else repr(values.tolist()).encode()


# ---- mutations: each changes the files of a subject, and says how in words, or gives None where it
# does not apply


def mutate(subject: Subject, rng: random.Random) -> tuple[str, bool]:
    """Change a subject at random; how, and whether all checksums were recomputed."""
    while True:
        name = rng.choice(list(subject.files))
        kinds: list[Callable[..., tuple[str, bool] | None]] = [_damage]
        kinds += [_change_json] * 2 if name.endswith(".json") else []
        kinds += [_change_zip] * 2 if name.endswith(".zip") else []
        done = rng.choice(kinds)(subject, name, rng)
        if done is not None:
            return f"{subject.name}, {name}: {done[0]}", done[1]


def _damage(subject: Subject, name: str, rng: random.Random) -> tuple[str, bool] | None:
    """What happens to any file."""
    path, data = subject.folder / name, bytearray(subject.files[name])
    at, length = rng.randrange(len(data)), rng.randrange(1, 64)
    how = rng.choice(
        [
            "flip",
            "flip",
            "flip",
            "cut",
            "append",
            "remove",
            "swap",
            "blank",
            "repeat",
            "empty",
            "folder",
        ]
    )
    if how == "flip":
        for _ in range(rng.choice([1, 1, 1, 2, 8])):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif how == "cut":
        del data[at:]
    elif how == "append":
        data += rng.randbytes(length)
    elif how == "blank":
        data[at : at + length] = bytes(len(data[at : at + length]))
    elif how == "repeat":
        data[at:at] = data[at : at + length]
    elif how == "empty":
        data.clear()
    elif how == "swap":
        other = rng.choice(list(subject.files))
        (subject.folder / other).write_bytes(data)
        data = bytearray(subject.files[other])
        how = f"swap with {other}"
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "remove":
        path.write_bytes(data)
    return f"{how} at {at}", False


def _change_json(subject: Subject, name: str, rng: random.Random) -> tuple[str, bool]:
    """Another value, a missing or a further key, numbers that no float holds; with or without a
    right checksum.
    """
    record, crafted = json.loads(subject.files[name]), rng.random() < 0.5
    words = _change_value(record, rng)
    text = _sealed(record) if crafted else json.dumps(record)
    textual = rng.choice(
        ["", "", "", "1e345", "-1e345", "[" * 3000 + "]" * 3000, "Infinity", "1" * 5000]
    )
    if textual:
        text = text.replace(
            ": ", f": {textual}, " if rng.random() < 0.2 else f': {textual}, "x": ', 1
        )
        words = f"{textual[:8]} before the first value"
    (subject.folder / name).write_text(text, "utf-8", "surrogatepass")
    return f"{words}{', checksum recomputed' if crafted else ''}", crafted


def _change_value(record: Any, rng: random.Random) -> str:
    """Change one value somewhere in a JSON object."""
    places = [place for place in _places(record) if place[1] != "sha256"]
    inner, key = rng.choice(places)
    how = rng.choice(["value", "value", "value", "remove", "rename", "nest"])
    if how == "remove":
        del inner[key]
    elif how == "rename" and isinstance(inner, dict):
        inner[f"{key}x"] = inner.pop(key)
    elif how == "nest":
        for _ in range(rng.choice([1, 70, 900])):
            inner[key] = [inner[key]]
    else:
        inner[key] = rng.choice(_ODD)
    return f"{how} of {key!r}"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    entries = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in entries:
        yield value, key
        yield from _places(inner)


def _change_zip(subject: Subject, name: str, rng: random.Random) -> tuple[str, bool]:
    """Another archive: members that are missing, changed, packed, of Zarr 2, or metadata that say
    something else.
    """
    crafted = rng.random() < 0.7
    with zipfile.ZipFile(io.BytesIO(subject.files[name])) as archive:
        members = {member: archive.read(member) for member in archive.namelist()}
    member, packing = rng.choice(list(members)), zipfile.ZIP_STORED
    how = rng.choice(
        ["metadata", "metadata", "metadata", "remove", "bytes", "rename", "deflate", "zarr 2"]
    )
    if how == "metadata":
        member = rng.choice([name for name in members if name.endswith("zarr.json")])
        metadata = json.loads(members[member])
        how = _change_value(metadata, rng)
        members[member] = json.dumps(metadata).encode()
    elif how == "remove":
        del members[member]
    elif how == "bytes":
        data = bytearray(members[member] or b"x")
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        members[member] = bytes(data)
    elif how == "rename":
        members[member + "x"] = members.pop(member)
    elif how == "deflate":
        packing = zipfile.ZIP_DEFLATED
    else:
        members[f"{member.rpartition('/')[0]}/.zarray"] = (
            b'{"zarr_format": 2, "filters": [{"id": "pickle"}]}'
        )
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", packing) as archive:
        for key, data in members.items():
            archive.writestr(key, data)
    (subject.folder / name).write_bytes(buffer.getvalue())
    if crafted:
        _recompute(subject, name, buffer.getvalue())
    return f"{how} of {member}{', checksums recomputed' if crafted else ''}", crafted


def _recompute(subject: Subject, name: str, data: bytes) -> None:
    """Make the record that names a ZIP file fit to it."""
    digest = hashlib.sha256(data).hexdigest()
    for record_name in (name for name in subject.files if name.endswith(".json")):
        record = json.loads(subject.files[record_name])
        if record.get("stem") == Path(name).stem:
            record |= {"sha256_of_block": digest, "size": len(data)}
        for about in record.get("data", {}).values():
            if about["file"] == name:
                about |= {"sha256": digest, "bytes": len(data)}
        (subject.folder / record_name).write_text(_sealed(record))


def _sealed(record: dict[str, Any]) -> str:
    return json.dumps({**record, "sha256": checksum_of(record)})


# ---- what the readers say


def judge(subject: Subject) -> tuple[str, str]:
    """What reading a changed subject leads to, and details."""
    start, memory = time.monotonic(), _peak()
    outcome, details = "as before", ""
    try:
        with _alarm(3 * SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = subject.read()
        if now != subject.before:
            fewer = all(subject.before.get(name) == part for name, part in now.items())
            outcome = "counted as not done" if fewer and subject.name == "sweep" else "other data"
            details = str([name for name, part in now.items() if subject.before.get(name) != part])
    except AttnlabError as error:
        outcome, details = "refused in words", str(error)
    except TimeoutError as error:
        outcome, details = "too long", str(error)
    except BaseException:
        outcome, details = "traceback", traceback.format_exc()
    if time.monotonic() - start > SECONDS:
        outcome = "too long"
    if _peak() - memory > GIBIBYTES:
        outcome = "too large"
    return outcome, details


def _peak() -> float:
    """The most memory that this process has had, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        2**30 if sys.platform == "darwin" else 2**20
    )


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        raise TimeoutError(f"still reading after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(count: int, seed: int, folder: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """Mutate and read ``count`` times; outcomes by kind of mutation, and everything that must not
    happen, in words.
    """
    rng, subjects = random.Random(seed), make_subjects(folder)
    counts: dict[str, Counter[str]] = {}
    wrong = []
    for number in range(count):
        subject = subjects[number % len(subjects)]
        how, crafted = mutate(subject, rng)
        outcome, details = judge(subject)
        counts.setdefault(
            f"{subject.name}{', checksums recomputed' if crafted else ''}", Counter()
        )[outcome] += 1
        if outcome in BAD and not (crafted and outcome == "other data"):
            wrong.append(f"{number}: {outcome} after {how}\n{details}")
        subject.restore()
    return counts, wrong


def main() -> int:
    """The table of outcomes; 1 if there is one that must not be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="attnlab-") as folder:
        counts, wrong = run(asked.count, asked.seed, Path(folder))
    print("\n" + "\n\n".join(wrong))
    print(f"{'':30}" + "".join(f"{outcome:>21}" for outcome in OUTCOMES))
    for name, found in sorted(counts.items()):
        print(f"{name:30}" + "".join(f"{found[outcome]:>21}" for outcome in OUTCOMES))
    print(
        f"{asked.count} mutations, seed {asked.seed}: {len(wrong)} that must not be; at most "
        f"{_peak():.2f} GiB"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
