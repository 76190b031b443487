"""Word attention with any normaliser, in the same coordinates as for softmax, on padded sentences."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attnlab.data import Corpus
from attnlab.models import AbstractNormaliser, Bags
from attnlab.training._objective import Frame, cross_entropy, head_gradient
from attnlab.training._problem import AbstractObjective, Evaluation, Trained


class BagObjective(AbstractObjective[Frame]):
    """Mean cross-entropy of word attention with ``a = norm(s)``, differentiated by JAX.

    All sentences are padded to the longest, so a single very long sentence is expensive.
    """

    bags: Bags
    normaliser: AbstractNormaliser = eqx.field(static=True)

    @classmethod
    def of(cls, corpus: Corpus, normaliser: AbstractNormaliser) -> BagObjective:
        """Copy a corpus to JAX."""
        return cls(Bags.of(corpus), normaliser)

    @property
    def examples(self) -> int:
        """Number of sentences."""
        return self.labels.shape[0]

    @property
    def labels(self) -> Int[Array, "sentences"]:
        """The class of each sentence."""
        return self.bags.labels

    def guarding(self, on: bool) -> BagObjective:
        """Itself: every sentence is shifted by its own maximum, which is always safe."""
        del on
        return self

    def weights(self, scores: Float[Array, "words"]) -> Float[Array, "sentences length"]:
        """Attention of every place."""
        return self.normaliser(self.bags.take(scores), self.bags.present)

    def loss(self, frame: Frame, trained: Trained) -> Float[Array, ""]:
        """Loss on all sentences."""
        return self.loss_and_logits(frame, trained)[0]

    def loss_and_logits(
        self, frame: Frame, trained: Trained
    ) -> tuple[Float[Array, ""], Float[Array, "sentences c"]]:
        """Loss and logits on all sentences."""
        pooled = _pool(
            frame.scores(trained), frame.valued.table(trained["values"]), self.bags, self.normaliser
        )
        logits = jax.vmap(frame.valued.head(trained["values"]).finish)(pooled)
        return cross_entropy(logits, self.labels), logits

    def evaluate(
        self, frame: Frame, trained: Trained, batch: Int[Array, "batch"] | None, *, context: bool
    ) -> Evaluation:
        """Loss and gradient, on all sentences or on a minibatch of them."""
        assert not context, "train checks that no probe needs softmax"
        scores, table = frame.scores(trained), frame.valued.table(trained["values"])
        bags = self.bags if batch is None else jax.tree.map(lambda leaf: leaf[batch], self.bags)
        pooled, pull = jax.vjp(lambda s, t: _pool(s, t, bags, self.normaliser), scores, table)
        loss, dpooled, dhead = head_gradient(
            pooled, frame.valued.head(trained["values"]), bags.labels
        )
        ds, dtable = pull(dpooled)
        gradient = {
            "scores": frame.keyed.gradient(trained["scores"], ds),
            "values": frame.valued.gradient(trained["values"], dtable, dhead),
        }
        return Evaluation(loss, gradient, None, jnp.zeros((), bool))


def _pool(
    scores: Float[Array, "words"],
    table: Float[Array, "words columns"],
    bags: Bags,
    normaliser: AbstractNormaliser,
) -> Float[Array, "sentences columns"]:
    weights = normaliser(bags.take(scores), bags.present)
    return jnp.einsum("nl,nlc->nc", weights, bags.take(table))
