"""The two PyTorch references: a module as a research script writes it, and one with attnlab's own
algebra.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from attnlab.data import Corpus
from attnlab.models import LinearHead, TwoLayerHead, WordAttention


def _tensor(array: object) -> torch.Tensor:
    return torch.tensor(np.asarray(array), dtype=torch.float32)


class PlainModule(torch.nn.Module):
    """Two embedding tables gathered over a padded rectangle, softmax, matmul, autograd."""

    def __init__(self, model: WordAttention):
        super().__init__()
        self.embeddings = torch.nn.Embedding.from_pretrained(
            _tensor(model.embeddings), freeze=False
        )
        self.keys = torch.nn.Embedding.from_pretrained(_tensor(model.keys), freeze=False)
        self.register_buffer("query", _tensor(model.query))
        head = model.head
        if isinstance(head, LinearHead):
            linear = torch.nn.Linear(head.weight.shape[0], head.weight.shape[1], bias=False)
            linear.weight.data = _tensor(head.weight).T.contiguous()
            linear.weight.requires_grad_("head" in model.trained)
            self.head: torch.nn.Module = linear
        else:
            assert isinstance(head, TwoLayerHead)
            first = torch.nn.Linear(head.weight1.shape[0], head.weight1.shape[1])
            second = torch.nn.Linear(head.weight2.shape[0], head.weight2.shape[1])
            first.weight.data, first.bias.data = (
                _tensor(head.weight1).T.contiguous(),
                _tensor(head.bias1),
            )
            second.weight.data, second.bias.data = (
                _tensor(head.weight2).T.contiguous(),
                _tensor(head.bias2),
            )
            self.head = torch.nn.Sequential(first, torch.nn.ReLU(), second)

    def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = (self.keys(words) @ self.query).masked_fill(~mask, float("-inf"))
        attention = torch.softmax(scores, dim=1)
        context = (attention.unsqueeze(1) @ self.embeddings(words)).squeeze(1)
        return self.head(context)


def plain_steps(model: WordAttention, corpus: Corpus, step_size: float) -> Callable[[int], float]:
    """A function that takes so many steps of the plain module and returns the last loss."""
    tokens = np.repeat(corpus.words, corpus.counts)
    lengths = corpus.lengths
    words = np.zeros((len(corpus), int(lengths.max())), np.int64)
    mask = np.arange(words.shape[1]) < lengths[:, None]
    words[mask] = tokens
    module = PlainModule(model)
    data = (
        torch.from_numpy(words),
        torch.from_numpy(mask),
        torch.tensor(corpus.labels, dtype=torch.int64),
    )
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], lr=step_size)

    def run(steps: int) -> float:
        loss = torch.zeros(())
        for _ in range(steps):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(module(data[0], data[1]), data[2])
            loss.backward()
            optimizer.step()
        return float(loss.detach())

    return run


class _Product(torch.autograd.Function):
    """X @ table, with Xᵀ stored for the way back."""

    @staticmethod
    def forward(ctx, table, matrix, transposed):
        ctx.transposed = transposed
        return matrix @ table

    @staticmethod
    def backward(ctx, *gradients):
        return ctx.transposed @ gradients[0], None, None


def algebra_steps(model: WordAttention, corpus: Corpus, step_size: float) -> Callable[[int], float]:
    """The same with sparse CSR products, projection before pooling and the reduced coordinates of
    attnlab.
    """
    values = torch.tensor(corpus.counts, dtype=torch.float32)
    shape = (len(corpus), len(corpus.vocabulary))
    by_word = corpus.by_word
    matrix = torch.sparse_csr_tensor(
        torch.tensor(corpus.offsets), torch.tensor(corpus.words).long(), values, shape
    )
    transposed = torch.sparse_csr_tensor(
        torch.tensor(by_word.offsets),
        torch.tensor(by_word.sentences).long(),
        torch.tensor(by_word.counts, dtype=torch.float32),
        (shape[1], shape[0]),
    )
    labels = torch.tensor(corpus.labels, dtype=torch.int64)
    start, query = _tensor(model.embeddings), _tensor(model.query)
    along = torch.zeros(shape[1])
    metric = query @ query
    head = [_tensor(leaf) for leaf in _leaves(model.head)]
    trained = "head" in model.trained
    projection = _projection(head)
    table0, square = start @ projection, projection.T @ projection
    coordinates = start.clone() if trained else torch.zeros_like(table0)

    def run(steps: int) -> float:
        nonlocal along, coordinates, head
        loss = torch.zeros(())
        for _ in range(steps):
            first = _projection(head)
            scores = (metric * along).requires_grad_()
            table = (
                coordinates @ first if trained else table0 + coordinates @ square
            ).requires_grad_()
            rest = [leaf.detach().requires_grad_() for leaf in head[1:]]
            e = torch.exp(scores - scores.max().detach()).unsqueeze(1)
            z = _Product.apply(torch.cat([e, e * table], dim=1), matrix, transposed)
            logits = _finish(z[:, 1:] / z[:, :1], rest, model)  # pyright: ignore[reportOptionalSubscript]
            loss = torch.nn.functional.cross_entropy(logits, labels)
            ds, dtable, *drest = torch.autograd.grad(loss, [scores, table, *rest])
            along = along - step_size * ds
            if trained:
                dfirst = coordinates.T @ dtable
                coordinates = coordinates - step_size * dtable @ first.T
                binary = head[0].shape[1] == 2
                moved = torch.cat([dfirst, -dfirst], dim=1) if binary else dfirst
                head = [
                    head[0] - step_size * moved,
                    *(h - step_size * d for h, d in zip(rest, drest, strict=True)),
                ]
            else:
                coordinates = coordinates - step_size * dtable
        return float(loss.detach())

    return run


def _leaves(head: object) -> list[object]:
    if isinstance(head, LinearHead):
        return [head.weight]
    assert isinstance(head, TwoLayerHead)
    return [head.weight1, head.bias1, head.weight2, head.bias2]


def _projection(head: list[torch.Tensor]) -> torch.Tensor:
    first = head[0]
    return first[:, :1] - first[:, 1:] if len(head) == 1 and first.shape[1] == 2 else first


def _finish(pooled: torch.Tensor, rest: list[torch.Tensor], model: WordAttention) -> torch.Tensor:
    if rest:
        return torch.relu(pooled + rest[0]) @ rest[1] + rest[2]
    if pooled.shape[1] == 1:
        return torch.cat([pooled, torch.zeros_like(pooled)], dim=1)
    return pooled
