"""The landscape against plain PyTorch: spectral density, surface; seconds of curvature with word
attention on text.
"""

from __future__ import annotations

import time

from _timing import interleaved, result, use_one_thread

use_one_thread()

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
from bench_engine import text_corpus  # noqa: E402

from attnlab.landscape import (  # noqa: E402
    Problem,
    density,
    extremes,
    filter_directions,
    squared_error,
    surface,
    trace,
    word_problem,
)
from attnlab.models import BaselineConfig, WordAttentionConfig  # noqa: E402

_PROBES, _DEPTH, _POINTS = 8, 64, 51


def _problem() -> Problem:
    """A baseline of 2016 parameters in float32 on 500 samples."""
    model = BaselineConfig(numbers=62, hidden=32).init(jax.random.key(0))
    x, y = (
        jax.random.normal(jax.random.key(1), (500, 62)),
        jax.random.normal(jax.random.key(2), (500,)),
    )

    def single(tree):
        return jax.tree.map(lambda a: a.astype("float32") if eqx.is_array(a) else a, tree)

    return Problem.of(single(model), squared_error, single({"x": x, "y": y}))


class _Torch:
    """The same model, loss and data in plain PyTorch."""

    def __init__(self, problem: Problem):
        import torch  # pyright: ignore[reportMissingImports]

        torch.set_num_threads(1)
        self.torch, model = torch, problem.model(problem.start)
        self.x, self.y = (torch.tensor(np.asarray(problem.data[name])) for name in ("x", "y"))
        self.weights = [
            torch.tensor(np.asarray(w), requires_grad=True) for w in (model.w1, model.w2)
        ]

    def loss(self, w1, w2):
        hidden = self.torch.nn.functional.softplus(self.x @ w1, beta=4.0, threshold=100)
        return ((hidden @ w2)[:, 0] - self.y).pow(2).mean()

    def split(self, v):
        w1, w2 = self.weights
        return v[: w1.numel()].view_as(w1), v[w1.numel() :].view_as(w2)

    def density(self, again: bool) -> np.ndarray:
        """Lanczos with double backward; ``again``: every vector made orthogonal to all before it,
        as PyHessian does.
        """
        torch = self.torch
        gradient = torch.autograd.grad(self.loss(*self.weights), self.weights, create_graph=True)
        tops = []
        for _ in range(_PROBES):
            v = torch.randn(sum(w.numel() for w in self.weights))
            v, before, beta, alphas, betas = v / v.norm(), torch.zeros_like(v), 0.0, [], []
            basis = [v]
            for _ in range(_DEPTH):
                parts = torch.autograd.grad(
                    gradient, self.weights, grad_outputs=self.split(v), retain_graph=True
                )
                w = torch.cat([part.reshape(-1) for part in parts]) - beta * before
                alpha = torch.dot(w, v)
                w = w - alpha * v
                if again:
                    q = torch.stack(basis)
                    w = w - (q @ w) @ q
                beta = w.norm()
                before, v = v, w / beta
                alphas.append(alpha)
                betas.append(beta)
                basis.append(v)
            off = torch.stack(betas[:-1])
            t = torch.diag(torch.stack(alphas)) + torch.diag(off, 1) + torch.diag(off, -1)
            values, _ = torch.linalg.eigh(t)
            tops.append(float(values[-1]))
        return np.array(tops)

    def surface(self, directions: np.ndarray, places: np.ndarray) -> np.ndarray:
        torch = self.torch
        values = np.zeros((len(places), len(places)))
        (a1, a2), (b1, b2) = (self.split(torch.tensor(d)) for d in directions)
        with torch.no_grad():
            w1, w2 = self.weights
            for i, a in enumerate(places):
                for j, b in enumerate(places):
                    values[i, j] = self.loss(w1 + a * a1 + b * b1, w2 + a * a2 + b * b2)
        return values


def _spectrum(problem: Problem, torch: _Torch) -> list[dict[str, object]]:
    ours = density(problem, probes=_PROBES, depth=_DEPTH).data.node.values[:, -1]
    np.testing.assert_allclose(
        ours, torch.density(True), rtol=1e-4
    )  # every probe finds the same λ_max
    seconds = interleaved(
        {
            "ours": lambda: density(problem, probes=_PROBES, depth=_DEPTH),
            "plain": lambda: torch.density(False),
            "again": lambda: torch.density(True),
        },  # pyright: ignore[reportArgumentType]
        repeats=5,
    )
    ms = seconds["ours"] * 1e3
    what = f"spectral density, {problem.parameters} parameters"
    return [
        result(
            what,
            "PyTorch Lanczos, reorthogonalised",
            seconds["again"] / seconds["ours"],
            3.0,
            ms=ms,
        ),
        result(
            what,
            "PyTorch Lanczos, bare recurrence",
            seconds["plain"] / seconds["ours"],
            None,
            ms=ms,
        ),
    ]


def _plane(problem: Problem, torch: _Torch) -> dict[str, object]:
    directions = filter_directions(problem)
    found = surface(problem, directions=directions, points=_POINTS)
    theirs = torch.surface(found.directions, found.loss.a.values)
    np.testing.assert_allclose(found.loss.values, theirs, rtol=1e-5)
    seconds = interleaved(
        {
            "ours": lambda: surface(problem, directions=directions, points=_POINTS),
            "torch": lambda: torch.surface(found.directions, found.loss.a.values),
        },  # pyright: ignore[reportArgumentType]
        repeats=5,
    )
    error = float(np.abs(found.loss.values / theirs - 1).max())
    ratio = seconds["torch"] / seconds["ours"]
    return result(
        "51 × 51 surface",
        "PyTorch loop",
        ratio,
        2.5,
        ms=seconds["ours"] * 1e3,
        largest_difference=error,
    )


def _words() -> dict[str, object]:
    """CPU seconds of λ_max and a trace of 16 probes, compilation included."""
    name, corpus = text_corpus()
    config = WordAttentionConfig.for_corpus(
        corpus,
        embedding_std=0.1,
        key_std=0.1,
        head="linear",
        query_norm=1.0,
        trained=("embeddings", "keys", "query", "head"),
    )
    problem = word_problem(config.init(jax.random.key(0), jnp.float32), corpus)
    begun = time.process_time()
    top, total = extremes(problem, ends="largest"), trace(problem, probes=16)
    seconds = time.process_time() - begun
    assert top.largest[0].converged
    return result(
        f"λ_max and trace, word attention on {name}, {problem.parameters} parameters (s)",
        "1 s",
        seconds,
        60.0,
        at_most=True,
        largest=top.largest[0].value,
        trace=total.estimate,
        trace_error=total.standard_error,
    )


def measure() -> list[dict[str, object]]:
    """Every ratio that the landscape promises."""
    problem = _problem()
    torch = _Torch(problem)
    return [*_spectrum(problem, torch), _plane(problem, torch), _words()]


if __name__ == "__main__":
    for line in measure():
        print(line)
