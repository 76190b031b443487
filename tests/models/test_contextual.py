import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab import AttnlabError
from attnlab.models import ContextualConfig, WordAttentionConfig, contextual_logits

pytestmark = pytest.mark.slow


def _shifted(logits):
    return logits - logits.mean(axis=1, keepdims=True)


@pytest.mark.parametrize("head", ["fixed", "linear", "two_layer"])
@pytest.mark.parametrize(("classes", "reach"), [(3, 1), (2, 1), (3, 2), (3, 0)])
def test_convolving_the_table_equals_convolving_each_sentence(head, classes, reach):
    base = WordAttentionConfig(
        12, classes, head=head, embedding_dim=4, key_dim=3, embedding_std=1.0, key_std=1.0
    )
    model = ContextualConfig(base, reach).init(jax.random.key(0))
    words = jax.random.randint(jax.random.key(1), (9, 6), 0, 12)
    # From the equation, in NumPy: one sentence, one position, one neighbour at a time.
    nu, kernel = np.asarray(model.embeddings), np.asarray(model.kernel)
    expected = []
    for sentence in np.asarray(words):
        e = np.exp(np.asarray(model.keys)[sentence] @ np.asarray(model.query))
        context = np.zeros(4)
        for i in range(6):
            for k in range(2 * reach + 1):
                j = i + k - reach
                if 0 <= j < 6:
                    context += e[i] / e.sum() * (nu[sentence[j]] @ kernel[k])
        expected.append(np.asarray(model.head(jnp.asarray(context))))
    assert np.allclose([model(w) for w in words], expected, rtol=0, atol=1e-12)
    assert np.allclose(
        _shifted(contextual_logits(model, words)), _shifted(np.array(expected)), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("reach", [1, 2])
def test_contextual_keys_pass_through_the_same_kernel(reach):
    base = WordAttentionConfig(12, 3, embedding_dim=4, key_dim=4, embedding_std=1.0, key_std=1.0)
    model = ContextualConfig(base, reach, contextual_keys=True).init(jax.random.key(0))
    words = jax.random.randint(jax.random.key(1), (5, 6), 0, 12)
    keys, kernel, query = (np.asarray(a) for a in (model.keys, model.kernel, model.query))
    expected = np.zeros((5, 6))
    for n, sentence in enumerate(np.asarray(words)):
        for i in range(6):
            for k in range(2 * reach + 1):
                j = i + k - reach
                if 0 <= j < 6:
                    expected[n, i] += keys[sentence[j]] @ kernel[k] @ query
    assert np.allclose(model.position_scores(words), expected, rtol=0, atol=1e-12)
    assert np.allclose(model.scores(), keys @ kernel[reach] @ query, rtol=0, atol=1e-12)
    logits = jnp.stack([model(sentence) for sentence in words])
    assert np.allclose(
        _shifted(contextual_logits(model, words)), _shifted(logits), rtol=0, atol=1e-12
    )


def test_contextual_keys_are_as_long_as_embeddings():
    base = WordAttentionConfig(5, 2, embedding_dim=4, key_dim=3)
    with pytest.raises(AttnlabError, match="contextual keys of 3 numbers, embeddings of 4"):
        ContextualConfig(base, contextual_keys=True)


def test_a_negative_reach_is_refused():
    with pytest.raises(AttnlabError, match="reach=-1"):
        ContextualConfig(WordAttentionConfig(5, 2), reach=-1)
