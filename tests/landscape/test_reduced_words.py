"""Certificates of word attention: reduced coordinates against the whole model, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import TopicTask
from attnlab.landscape import certify, exact_spectrum, minimise, reduced_problem, word_problem
from attnlab.models import BaselineConfig, WordAttentionConfig

pytestmark = pytest.mark.slow

CORPUS = TopicTask(topics=2, topic_words=2, dictionary=12, noise_words=3, label_noise=0.2).sample(
    60, key=jax.random.key(0)
)
L2 = 3e-3


def words(head: str, **settings):
    config = WordAttentionConfig.for_corpus(
        CORPUS,
        embedding_dim=3,
        key_dim=2,
        embedding_std=0.5,
        key_std=0.5,
        query_norm=1.5,
        head=head,
        **settings,
    )
    return config.init(jax.random.key(1))


@pytest.fixture(scope="module", params=["fixed", "linear"])
def ended(request):
    """A problem in reduced coordinates, and the word attention at a minimum of it."""
    problem = reduced_problem(words(request.param), CORPUS, l2=L2)
    found = minimise(problem, problem.start[None])
    assert found.status.values.tolist() == ["stationary"]
    theta = jnp.asarray(found.theta.values[0])
    return problem, theta, problem.model(theta).expand()


def test_a_reduced_point_is_a_stationary_point_of_the_whole_model_with_the_same_loss(ended):
    problem, theta, model = ended
    whole = word_problem(model, CORPUS, l2=L2)
    assert float(whole.value(whole.start)) == pytest.approx(float(problem.value(theta)), rel=1e-12)
    assert float(jnp.abs(whole.gradient(whole.start)).max()) <= 1e-8


def test_what_is_left_out_has_the_penaltys_curvature_and_no_other(ended):
    """The whole spectrum is the reduced one and l2, as often as there are directions left out."""
    problem, theta, model = ended
    whole = word_problem(model, CORPUS, l2=L2)
    left = whole.parameters - problem.parameters
    assert left > 0
    expected = np.sort(np.concatenate([exact_spectrum(problem, theta).values, np.full(left, L2)]))
    np.testing.assert_allclose(exact_spectrum(whole).values, expected, atol=1e-10)


def test_the_model_is_certified_where_it_is(ended):
    problem, _, model = ended
    certificate = certify(model, CORPUS, l2=L2)
    assert certificate.kind == "minimum"
    assert certificate.parameters == problem.parameters
    assert certificate.inertia is not None
    assert sum(certificate.inertia) == problem.parameters - certificate.zero_modes
    # Embeddings of rank one at a minimum of two classes: of three planes, the two that hold their
    # direction turn.
    assert certificate.zero_modes == (2 if "head" in model.trained else 0)


def test_a_trained_query_turns_with_its_keys():
    model = words("fixed", trained=("embeddings", "keys", "query"))
    problem = reduced_problem(model, CORPUS, l2=L2)
    found = minimise(problem, problem.start[None])
    model = problem.model(jnp.asarray(found.theta.values[0])).expand()
    certificate = certify(model, CORPUS, l2=L2)
    assert certificate.kind == "minimum"
    assert certificate.zero_modes == 1


def test_without_a_penalty_nothing_is_stationary(ended):
    _, _, model = ended
    certificate = certify(model, CORPUS, tolerance=10.0)  # even if the gradient were small
    assert certificate.kind == "not stationary"


def test_a_trained_model_is_not_stationary_and_says_its_gradient(ended):
    _, _, model = ended
    moved = eqx.tree_at(lambda m: m.keys, model, model.keys + 1e-3)
    certificate = certify(moved, CORPUS, l2=L2)
    assert certificate.kind == "not stationary"
    assert certificate.gradient > 1e-8
    assert f"{certificate.gradient:.1g}" in str(certificate)


def test_products_alone_end_where_the_whole_matrix_ends():
    problem = reduced_problem(words("fixed"), CORPUS, l2=L2)
    free = minimise(problem, problem.start[None], method="krylov")
    assert free.status.values.tolist() == ["stationary"]
    assert certify(problem, jnp.asarray(free.theta.values[0])).kind == "minimum"
    again = minimise(problem, jnp.asarray(free.theta.values), method="newton")
    assert float(free.value[0]) == pytest.approx(float(again.value[0]), rel=1e-10)


def test_data_alone_say_which_loss():
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (30, 3), jnp.float64)
    model = BaselineConfig(numbers=3, hidden=2).init(keys[1])
    data = {"x": x, "y": x[:, 0]}
    found = certify(model, data, l2=0.1)
    assert found.kind == "not stationary"
    assert found.value == pytest.approx(
        float(jnp.mean((jax.vmap(model)(x) - x[:, 0]) ** 2)) + 0.05 * found.norm**2
    )
    classes = eqx.nn.Linear(3, 2, dtype=jnp.float64, key=keys[2])
    labels = (x[:, 0] > 0).astype(int)
    expected = -jnp.mean(jax.nn.log_softmax(jax.vmap(classes)(x))[jnp.arange(30), labels])
    assert certify(classes, {"x": x, "y": labels}).value == pytest.approx(float(expected))
    with pytest.raises(AttnlabError, match="expected"):
        certify(model, {"inputs": x})
