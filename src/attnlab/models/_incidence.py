"""The count matrix X of a corpus (sentences × words), and its products ``X @`` and ``Xᵀ @``."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import warnings
from collections.abc import Sequence
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import ShapedArray
from jax.experimental.sparse import BCSR
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

import attnlab._precision  # noqa: F401  (turns float64 on)
from attnlab._errors import AttnlabError
from attnlab.data import Corpus

KernelName = Literal["native", "xla"]


class Kernel(NamedTuple):
    """The kernel in use, and why it is this one."""

    name: KernelName
    why: str

    def __str__(self) -> str:
        return f"{self.name}: {self.why}"


@functools.cache
def _why_not_native() -> str:
    """Load the compiled kernel and register it with XLA; the reason if that fails, else empty."""
    # Found as a module, though it is none: so its C++ source belongs to the source of a run.
    spec = importlib.util.find_spec("attnlab.models._native")
    if spec is None or spec.origin is None:
        return (
            "the compiled kernel was not built: install a wheel that has it, or a C++ compiler and "
            "then attnlab again (pip install --force-reinstall --no-deps --no-cache-dir)"
        )
    try:
        library = ctypes.CDLL(spec.origin)
        for name in (
            f"attnlab_{call}_{kind}"
            for call in ("row_sums", "pool", "pool_gradient")
            for kind in ("f32", "f64")
        ):
            jax.ffi.register_ffi_target(
                name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu"
            )
    except Exception as error:
        # Built against a newer JAX: warn and use XLA's own operations, several times slower.
        why = f"the compiled kernel does not load ({error}): reinstall attnlab to rebuild it"
        warnings.warn(why, stacklevel=2)
        return why
    return ""


def kernel() -> Kernel:
    """The kernel that sums rows, ``"native"`` (compiled) or ``"xla"`` (slower).

    The environment variable ``ATTNLAB_KERNEL`` forces one of the two. Their results agree up to
    rounding, not bit for bit, so the name is stored with every training run.

    >>> kernel().name in ("native", "xla")
    True
    """
    asked = os.environ.get("ATTNLAB_KERNEL", "")
    if asked == "xla":
        return Kernel("xla", "forced by ATTNLAB_KERNEL=xla")
    if asked not in ("", "native"):
        raise AttnlabError(f"ATTNLAB_KERNEL={asked!r}: expected 'native' or 'xla'")
    backend = jax.default_backend()
    why_not = (
        _why_not_native()
        if backend == "cpu"
        else f"JAX runs on {backend!r}, and the compiled kernel only on the CPU"
    )
    if not why_not:
        forced = "forced by ATTNLAB_KERNEL=native" if asked else "the compiled kernel is installed"
        return Kernel("native", forced)
    if asked == "native":
        raise AttnlabError(f"ATTNLAB_KERNEL=native, but {why_not}")
    return Kernel("xla", why_not)


# From so many columns on, JAX's own sparse product is faster than XLA's gather and scatter. In ms, for
# 2000 rows, 5008 words and 42 000 entries (gather and scatter, BCSR):
# float32:  4 columns .43, .75;  8 columns .57, .21;  100 columns 5.2, 1.7;
# float64:  2 columns .41, .36;  8 columns .63, .29;  100 columns 27, 2.9.
_BCSR_COLUMNS = 8


class RowIndex(eqx.Module):
    """One direction of X: row ``r`` has the entries ``ids[offsets[r]:offsets[r + 1]]``.

    ``weights`` are the counts and ``rows`` is the row of each entry. The arrays are padded with
    entries of weight zero, so that corpora of similar size have equal shapes and share one compiled
    program.
    """

    offsets: Int[Array, "bounds"]
    ids: Int[Array, "entries"]
    rows: Int[Array, "entries"]
    weights: Float[Array, "entries"]

    @classmethod
    def of(
        cls, offsets: np.ndarray, ids: np.ndarray, counts: np.ndarray, dtype: DTypeLike
    ) -> RowIndex:
        """Copy one direction of a corpus to JAX."""
        if len(ids) >= 2**31 - 2**20:
            raise AttnlabError(
                f"{len(ids)} entries are too many for one index: train on parts of the corpus"
            )
        # Room for every token, as if no word came twice in a sentence: corpora that were drawn alike
        # have as many tokens, but not as many entries. Padding belongs to no row of `offsets`; for
        # XLA's kernel it adds zeros to the last row.
        tokens = int(counts.sum())
        slack = tokens - len(ids) + -tokens % (4096 if tokens > 4096 else 64)
        rows = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        return cls(
            offsets=jnp.asarray(offsets, jnp.int32),
            ids=jnp.asarray(np.pad(ids, (0, slack)), jnp.int32),
            rows=jnp.asarray(np.pad(rows, (0, slack), constant_values=len(offsets) - 2), jnp.int32),
            weights=jnp.asarray(np.pad(counts, (0, slack)), dtype),
        )

    @property
    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """The four arrays, in the order in which the product takes them."""
        return self.offsets, self.ids, self.rows, self.weights


def _native(name: str, shapes: Sequence[tuple[int, ...]], *operands: Array) -> Sequence[Array]:
    """Call the compiled kernel of the operands' type."""
    dtype = operands[-1].dtype
    kind = "f32" if dtype == jnp.float32 else "f64"
    outputs = [jax.ShapeDtypeStruct(shape, dtype) for shape in shapes]
    return jax.ffi.ffi_call(f"attnlab_{name}_{kind}", outputs, vmap_method="expand_dims")(*operands)


def _sum_rows(
    table: Array, offsets: Array, ids: Array, rows: Array, weights: Array, *, which: KernelName
) -> Array:
    """``out[..., r, :] = Σ_k weights[k] · table[..., ids[k], :]`` over the entries k of row r."""
    shape = (*table.shape[:-2], offsets.shape[0] - 1, table.shape[-1])
    if which == "native":
        return _native("row_sums", (shape,), offsets, ids, weights, table)[0]
    if table.shape[-1] >= _BCSR_COLUMNS:
        # One run after the other, so that a run's sums are those of the run alone.
        if table.ndim > 2:
            return jax.lax.map(
                lambda one: _sum_rows(one, offsets, ids, rows, weights, which=which), table
            )
        matrix = BCSR((weights, ids, offsets), shape=(shape[0], table.shape[0]))
        return matrix @ table
    gathered = table.at[..., ids, :].get(mode="promise_in_bounds")
    gathered = gathered * jnp.broadcast_to(weights[:, None], gathered.shape)
    return (
        jnp.zeros(shape, table.dtype)
        .at[..., rows, :]
        .add(gathered, indices_are_sorted=True, mode="promise_in_bounds")
    )


# The product is a JAX primitive: the compiled kernel has no derivative, and JAX would turn that of a
# gather into a scatter. It is linear in the table, its transpose is the product with the index of the
# other direction, and a batch of tables shares one pass over the index. Operands: the table, then the
# four arrays of the direction that is summed, then the four of the other.
_row_sums_p = Primitive("attnlab_row_sums")


def _row_sums(table: Array, *index: Array, which: KernelName) -> Array:
    return _sum_rows(table, *index[:4], which=which)


def _row_sums_shape(table, *index, which):
    del which
    return ShapedArray((*table.shape[:-2], index[0].shape[0] - 1, table.shape[-1]), table.dtype)


def _row_sums_transpose(cotangent, table, *index, which):
    del table
    if type(cotangent) is ad.Zero:
        return (cotangent, *(None,) * 8)
    return (_row_sums_p.bind(cotangent, *index[4:], *index[:4], which=which), *(None,) * 8)


def _row_sums_batch(args, axes, *, which):
    table, *index = args
    # The usual case, many runs on one corpus: the kernel takes leading axes of the table itself.
    if all(axis is None for axis in axes[1:]):
        return _row_sums_p.bind(jnp.moveaxis(table, axes[0], 0), *index, which=which), 0
    # Different corpora in one batch: one after the other.
    moved = [
        arg if axis is None else jnp.moveaxis(arg, axis, 0)
        for arg, axis in zip(args, axes, strict=True)
    ]
    size = next(arg.shape[0] for arg, axis in zip(moved, axes, strict=True) if axis is not None)
    whole = [
        jnp.broadcast_to(arg, (size, *arg.shape)) if axis is None else arg
        for arg, axis in zip(moved, axes, strict=True)
    ]
    return jax.lax.map(lambda one: _row_sums_p.bind(*one, which=which), tuple(whole)), 0


_row_sums_p.def_impl(jax.jit(_row_sums, static_argnames="which"))
_row_sums_p.def_abstract_eval(_row_sums_shape)
ad.defjvp(
    _row_sums_p,
    lambda dot, _, *index, which: _row_sums_p.bind(dot, *index, which=which),
    *(None,) * 8,
)
ad.primitive_transposes[_row_sums_p] = _row_sums_transpose
batching.primitive_batchers[_row_sums_p] = _row_sums_batch
mlir.register_lowering(_row_sums_p, mlir.lower_fun(_row_sums, multiple_results=False))


class Incidence(eqx.Module):
    """X, the sentences × words matrix of counts, stored by sentence and by word.

    With both orders stored, neither ``X @ table`` nor ``Xᵀ @ values`` needs a scatter.

    >>> corpus = Corpus.from_tokens([["a", "b", "b"], ["c"]], labels=[0, 1])
    >>> X = Incidence.of(corpus, jnp.float64)
    >>> X.sentence_sums(jnp.eye(3)).tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]]
    """

    by_sentence: RowIndex
    by_word: RowIndex
    labels: Int[Array, "sentences"]
    kernel: KernelName = eqx.field(static=True)

    @classmethod
    def of(cls, corpus: Corpus, dtype: DTypeLike) -> Incidence:
        """Copy a corpus to JAX; ``dtype`` is the type of the tables to be summed."""
        words = corpus.by_word
        return cls(
            by_sentence=RowIndex.of(corpus.offsets, corpus.words, corpus.counts, dtype),
            by_word=RowIndex.of(words.offsets, words.sentences, words.counts, dtype),
            labels=jnp.asarray(corpus.labels, jnp.int32),
            kernel=kernel().name,
        )

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return self.labels.shape[0]

    @property
    def words(self) -> int:
        """Size of the vocabulary."""
        return self.by_word.offsets.shape[0] - 1

    def sentence_sums(
        self, table: Float[Array, "words columns"]
    ) -> Float[Array, "sentences columns"]:
        """``X @ table``; differentiable to any order, forward or reverse."""
        return _row_sums_p.bind(
            table, *self.by_sentence.arrays, *self.by_word.arrays, which=self.kernel
        )

    def word_sums(self, values: Float[Array, "sentences columns"]) -> Float[Array, "words columns"]:
        """``Xᵀ @ values``."""
        return _row_sums_p.bind(
            values, *self.by_word.arrays, *self.by_sentence.arrays, which=self.kernel
        )

    def pool(
        self, e: Float[Array, "words"], table: Float[Array, "words columns"]
    ) -> tuple[Float[Array, "sentences columns"], Float[Array, "sentences"]]:
        """``Σ_w e_w table_w / Σ_w e_w`` and ``Σ_w e_w`` of each sentence, in one pass.

        Not differentiable by JAX: ``pool_gradient`` is its derivative.
        """
        n = self.sentences
        # One column: a row of two numbers, (e, e·table), is gathered in one load from one place.
        if self.kernel == "native" and table.shape[1] > 1:
            pooled, mass = _native(
                "pool", ((n, table.shape[1]), (n,)), *self._native_index("by_sentence"), e, table
            )
            return pooled, mass
        z = self.sentence_sums(jnp.concatenate([e[:, None], e[:, None] * table], axis=1))
        return z[:, 1:] / z[:, :1], z[:, 0]

    def pool_gradient(
        self,
        e: Float[Array, "words"],
        table: Float[Array, "words columns"],
        pooled: Float[Array, "sentences columns"],
        mass: Float[Array, "sentences"],
        dpooled: Float[Array, "sentences columns"],
    ) -> tuple[Float[Array, "words"], Float[Array, "words columns"]]:
        """Derivatives with respect to ``log e`` (the scores) and the table, in one pass.

        ``dpooled`` is the derivative with respect to the pooled rows.
        """
        # With pooled = Z/m, Z = Σ e_w table_w and m = Σ e_w (the mass), the chain rule gives
        # dZ = dpooled/m =: r and dm = −r·pooled =: t. Both are summed over a word's sentences.
        r = dpooled / mass[:, None]
        t = -jnp.sum(r * pooled, axis=1)
        # One column: a row of two numbers, (e, e·table), is gathered in one load from one place.
        if self.kernel == "native" and table.shape[1] > 1:
            ds, dtable = _native(
                "pool_gradient",
                (e.shape, table.shape),
                *self._native_index("by_word"),
                e,
                table,
                t,
                r,
            )
            return ds, dtable
        y = self.word_sums(jnp.concatenate([t[:, None], r], axis=1))
        return e * (y[:, 0] + jnp.sum(table * y[:, 1:], axis=1)), e[:, None] * y[:, 1:]

    def _native_index(
        self, direction: Literal["by_sentence", "by_word"]
    ) -> tuple[Array, Array, Array]:
        index: RowIndex = getattr(self, direction)
        return index.offsets, index.ids, index.weights
