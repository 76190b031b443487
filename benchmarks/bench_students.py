"""Many small dense students, fitted one after the other, against a plain PyTorch loop over the same
students.
"""

from __future__ import annotations

import time

from _timing import result, use_one_thread

use_one_thread()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import torch  # pyright: ignore[reportMissingImports]  # noqa: E402

from attnlab.models import SelfAttention, SelfAttentionConfig, answers  # noqa: E402
from attnlab.training import Recipe, fit_grid  # noqa: E402

_CONFIG = SelfAttentionConfig(embedding_dim=8, words=16, key_dim=4, value_dim=4, hidden=32)
_SAMPLES, _STUDENTS, _STEPS, _STEP_SIZE = 1000, 64, 1000, 0.01


def _data() -> dict[str, np.ndarray]:
    """A teacher of the same kind, with noise, in float32."""
    x = jax.random.normal(jax.random.key(1), (_SAMPLES, _CONFIG.embedding_dim, _CONFIG.words))
    y = jax.vmap(_CONFIG.init(jax.random.key(2)))(x) + 0.1 * jax.random.normal(
        jax.random.key(3), (_SAMPLES,)
    )
    return {"x": np.asarray(x, np.float32), "y": np.asarray(y, np.float32)}


def _init(key: jax.Array) -> SelfAttention:
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), _CONFIG.init(key))


def _loss(model: SelfAttention, batch: dict[str, jax.Array]) -> jax.Array:
    return jnp.mean((answers(model, batch["x"]) - batch["y"]) ** 2)


def _nothing(model: SelfAttention, checks: None) -> dict[str, jax.Array]:
    del model, checks
    return {}


def ours(data: dict[str, np.ndarray], seed: int, steps: int, batch_size: int | None) -> float:
    """Fit one student with attnlab; its loss on all samples."""
    fitted = fit_grid(
        _init,
        _loss,
        _nothing,
        data,
        None,
        sizes=[_SAMPLES],
        key=jax.random.key(seed),
        step_sizes=[_STEP_SIZE],
        recipe=Recipe(steps, batch_size, end_share=1.0),
    )
    return float(fitted.train_loss.squeeze())


class Student(torch.nn.Module):
    """The same model as a research script writes it."""

    def __init__(self, start: SelfAttention):
        super().__init__()
        layer, head = start.layer, start.head
        self.query, self.key, self.value, self.first, self.second = (
            torch.nn.Parameter(torch.tensor(np.asarray(w)))
            for w in (layer.w_query, layer.w_key, layer.w_value, head.w1, head.w2)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query @ x, self.key @ x, self.value @ x
        a = torch.softmax(k.transpose(1, 2) @ q / q.shape[1] ** 0.5, dim=1)
        words = (v @ a).transpose(1, 2).flatten(1)
        return (torch.nn.functional.softplus(words @ self.first, beta=4.0) @ self.second).squeeze(1)


def plain(data: dict[str, np.ndarray], seed: int, steps: int, batch_size: int | None) -> float:
    """Fit the student of the same start with PyTorch; its loss on all samples."""
    student = Student(_start(seed))
    x, y = torch.tensor(data["x"]), torch.tensor(data["y"])
    optimizer = torch.optim.Adam(student.parameters(), lr=_STEP_SIZE)
    for _ in range(steps):
        places = slice(None) if batch_size is None else torch.randint(0, len(x), (batch_size,))
        optimizer.zero_grad()
        torch.mean((student(x[places]) - y[places]) ** 2).backward()
        optimizer.step()
    with torch.no_grad():
        return float(torch.mean((student(x) - y) ** 2))


def _start(seed: int) -> SelfAttention:
    """The start that ``fit_grid`` draws from this seed's key."""
    return jax.jit(_init)(jax.random.split(jax.random.key(seed))[0])


def _contest(students: int, batch_size: int | None) -> dict[str, list[tuple[float, float]]]:
    """CPU seconds and last loss of every student, per contestant; in turns, compiled and warmed up
    before.
    """
    data = _data()
    contestants = {"ours": ours, "plain": plain}
    ours(data, 0, _STEPS, batch_size)
    plain(data, 0, 5, batch_size)
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in contestants}
    for seed in range(students):
        for name, fit in contestants.items():
            begun = time.process_time()
            loss = fit(data, seed, _STEPS, batch_size)
            found[name].append((time.process_time() - begun, loss))
    return found


def _same_work() -> None:
    """Both train the same model: after 100 steps, in which the loss falls far, every student's
    losses agree.
    """
    data = _data()
    for seed in range(4):
        start = float(_loss(_start(seed), jax.tree.map(jnp.asarray, data)))
        mine, other = (fit(data, seed, 100, None) for fit in (ours, plain))
        assert abs(mine - other) < 1e-4 * other, (seed, mine, other)
        assert other < start / 2, (seed, start, other)


def _line(
    name: str, students: int, batch_size: int | None, target: float | None
) -> dict[str, object]:
    found = {who: np.array(rows) for who, rows in _contest(students, batch_size).items()}
    seconds = {who: float(rows[:, 0].sum()) for who, rows in found.items()}
    losses = {who: float(np.median(rows[:, 1])) for who, rows in found.items()}
    # Far below the noise a constant step size makes the loss jump by factors; that both train the
    # same model is shown by `_same_work`, before that.
    if batch_size is None:
        assert 0.1 < losses["ours"] / losses["plain"] < 10, losses
    return result(
        name,
        "plain PyTorch loop",
        seconds["plain"] / seconds["ours"],
        target,
        cpu_seconds=seconds,
        ms_per_step={who: seconds[who] / students / _STEPS * 1e3 for who in seconds},
        median_losses=losses,
    )


def measure() -> list[dict[str, object]]:
    """Speed per model of fitting one dense student."""
    torch.set_num_threads(1)
    _same_work()
    return [
        _line(f"fit of {_STUDENTS} dense students, {_STEPS} steps", _STUDENTS, None, 2.5),
        _line(f"fit of 8 dense students, {_STEPS} steps of 64 samples", 8, 64, 6.0),
    ]


if __name__ == "__main__":
    for line in measure():
        print(line)
