"""A million texts: reading, indexing, one epoch, memory: ``python benchmarks/bench_corpus.py [rows
…]``.

Texts are made up: about 12 words each of a vocabulary of 50 000 by Zipf's law, two classes that
depend on the words. Every size is measured in a process of its own, whose memory is looked at while
it runs: ``build/corpus_memory.csv``, and a picture of it where Matplotlib is installed.
"""

from __future__ import annotations

import csv
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from _timing import ONE_THREAD, result, use_one_thread

HERE = Path(__file__).resolve()
BUILD = HERE.parent.parent / "build"
ROWS = (10_000, 100_000, 1_000_000)
_WORDS, _VOCABULARY, _BATCH = 12, 50_000, 1024
_STEPS = 3000  # of training, about, for a time that can be told from what a call costs at its start
_GIB = 2**30


def write_texts(path: Path, rows: int, seed: int = 0) -> None:
    """Made-up texts as Parquet, some thousand rows at a time."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    names = np.array([f"w{k}" for k in range(_VOCABULARY)], dtype=object)
    share = 1 / np.arange(1, _VOCABULARY + 1)
    upto = np.cumsum(share / share.sum())
    schema = pa.schema([("text", pa.string()), ("label", pa.string())])
    with pq.ParquetWriter(path, schema) as writer:
        for first in range(0, rows, 50_000):
            count = min(50_000, rows - first)
            ends = np.cumsum(rng.poisson(_WORDS - 1, count) + 1)
            words = np.minimum(np.searchsorted(upto, rng.random(int(ends[-1]))), _VOCABULARY - 1)
            parts = np.split(words, ends[:-1])
            labels = ["pos" if part.sum() % 3 == 0 or part[0] % 2 else "neg" for part in parts]
            writer.write_table(
                pa.table({"text": [" ".join(names[p]) for p in parts], "label": labels}, schema)
            )


def child(folder: Path) -> dict[str, float]:
    """Read and index a file, then train one epoch; CPU seconds of each, and the largest memory so
    far after each.
    """
    from attnlab.data import TextSource, prepare_texts

    def prepare(name: str) -> Any:
        # All words are known at every size: a limit below what is there would make large corpora
        # cheaper.
        source = TextSource((str(folder / f"{name}.parquet"),), max_words=_VOCABULARY)
        return prepare_texts(source, folder=folder / name, stream_bytes=0)

    write_texts(folder / "few.parquet", 2000)
    prepare("few")  # imports
    begun, clock = time.process_time(), time.perf_counter()
    prepared = prepare("texts")
    found = {
        "index": time.process_time() - begun,
        "index_clock": time.perf_counter() - clock,
        "index_peak": _peak(),
    }
    print(json.dumps({"stage": "training"}), flush=True)
    return found | {
        "epoch": _epoch(prepared.train),
        "peak": _peak(),
        "words": len(prepared.vocabulary),
    }


def _epoch(corpus: Any) -> float:
    """CPU seconds of one epoch of minibatches, without what a call costs at its start."""
    from attnlab.models import WordAttentionConfig
    from attnlab.training import Every, GradientDescent, train

    config = WordAttentionConfig.for_corpus(corpus, embedding_dim=200, embedding_std=1e-6)

    def seconds(steps: int) -> float:
        begun = time.process_time()
        train(
            config,
            corpus,
            steps=steps,
            seeds=[0],
            optimizer=GradientDescent(0.1),
            record=(),
            when=Every(steps),
            words=(),
            batch_size=_BATCH,
            dtype="float32",
            progress=False,
        )
        return time.process_time() - begun

    steps = len(corpus) // _BATCH
    epochs = max(1, _STEPS // steps)
    seconds(1)
    start = sorted(seconds(1) for _ in range(3))[1]
    return (seconds(1 + epochs * steps) - start) / epochs


def _peak() -> float:
    """The largest memory of this process so far, in bytes; what is mapped from files counts while
    it is there.
    """
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


def _memory(pid: int) -> tuple[float, float]:
    """Memory of a process now, and how much of it is its own rather than mapped from files; nan
    where not known.
    """
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return float("nan"), float("nan")
    sizes = {
        line.split(":")[0]: line.split()[1]
        for line in lines
        if line.startswith(("VmRSS:", "RssAnon:"))
    }
    total, own = (1024 * float(sizes.get(name, "nan")) for name in ("VmRSS", "RssAnon"))
    return total, own


def measure_size(rows: int) -> tuple[dict[str, float], list[tuple[float, float, float, str]]]:
    """What a process of its own measures of so many rows, and its memory over time."""
    with tempfile.TemporaryDirectory() as place:
        write_texts(Path(place) / "texts.parquet", rows)
        with open(Path(place) / "said", "w+") as said:
            process = subprocess.Popen(
                [sys.executable, str(HERE), "--child", place],
                stdout=said,
                env=os.environ | ONE_THREAD,
            )
            begun, course, stage = time.perf_counter(), [], "reading"
            while process.poll() is None:
                lines = Path(said.name).read_text().splitlines()
                stage = "training" if lines else stage
                course.append((time.perf_counter() - begun, *_memory(process.pid), stage))
                time.sleep(0.1)
            if process.returncode:
                raise SystemExit(
                    f"the process that measures {rows} rows ended with {process.returncode}"
                )
            return json.loads(Path(said.name).read_text().splitlines()[-1]), course


def _exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log seconds over log size, by least squares."""
    import numpy as np

    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def _written(course: list[tuple[float, float, float, str]], rows: int) -> None:
    """Memory over time as a table, and as a picture."""
    BUILD.mkdir(exist_ok=True)
    with open(BUILD / "corpus_memory.csv", "w", newline="") as file:
        csv.writer(file).writerows([("seconds", "resident_bytes", "own_bytes", "stage"), *course])
    try:
        import matplotlib
    except ModuleNotFoundError:
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    times, resident, own, stages = zip(*course, strict=True)
    figure, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.plot(times, [value / _GIB for value in resident], label="resident")
    axes.plot(
        times, [value / _GIB for value in own], label="of it not mapped from files", linestyle="--"
    )
    if "training" in stages:
        axes.axvline(
            times[stages.index("training")], color="grey", linestyle=":", label="training begins"
        )
    axes.axhline(6, color="tab:red", linewidth=0.8, label="limit")
    axes.set(
        xlabel="seconds", ylabel="GiB", ylim=(0, 6.5), title=f"Memory over time, {rows:,} texts"
    )
    axes.legend()
    figure.savefig(BUILD / "corpus_memory.png", dpi=120)
    plt.close(figure)


def measure(sizes: tuple[int, ...] = ROWS) -> list[dict[str, object]]:
    """All of it, as ``run.py`` takes it; exponents are judged on an idle machine only."""
    idle = os.getloadavg()[0] <= 0.5
    found = []
    for rows in sizes:
        one, course = measure_size(rows)
        found.append(one)
        print(json.dumps({"rows": rows, **one}), flush=True)
        _written(course, rows)
    most, last = sizes[-1], found[-1]
    lines = [
        result(
            f"texts a second, {most:,} read and indexed", "1 text", most / last["index"], 20_000
        ),
        result(
            f"peak memory of {most:,} texts, indexed and trained",
            "1 GiB",
            last["peak"] / _GIB,
            6.0,
            at_most=True,
        ),
        result(f"peak memory of {most:,} texts, indexed", "1 GiB", last["index_peak"] / _GIB, None),
    ]
    if len(sizes) > 1:
        for name in ("index", "epoch"):
            slope = _exponent(list(sizes), [one[name] for one in found])
            lines.append(
                result(
                    f"exponent of {name} in the number of texts ({slope:.2f}), off 1 by",
                    "1",
                    abs(slope - 1),
                    0.1,
                    at_most=True,
                    judged=idle,
                    exponent=slope,
                )
            )
    return lines


def main() -> None:
    """Measure the sizes that were named, all by default, and print one record a line."""
    use_one_thread()
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(child(Path(sys.argv[2]))), flush=True)
        return
    for record in measure(tuple(int(rows) for rows in sys.argv[1:]) or ROWS):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
