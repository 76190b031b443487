"""A minimum is certified only where Newton's method ends at one nearby; oracles are closed forms
and brute force.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attnlab.landscape import Problem, certify, minimise
from attnlab.landscape._kantorovich import _derivatives, newton_path, place
from attnlab.papers.liu2021.point_runs import make_problem
from attnlab.papers.liu2021.point_settings import PointSettings

pytestmark = pytest.mark.slow


def _of(function, *point):
    return Problem.of(jnp.asarray(point, jnp.float64), lambda theta, _: function(*theta), None)


def _separable(norm, seed=0):
    """Logistic regression of two classes a margin apart, without a penalty, at a separating vector
    of this norm.
    """
    unit = np.array([0.6, 0.8])
    x = np.random.default_rng(seed).normal(size=(40, 2))
    side = np.sign(x @ unit)
    data = {"x": jnp.asarray(x + side[:, None] * unit), "y": jnp.asarray(side)}

    def loss(w, data):
        return jnp.mean(jax.nn.softplus(-data["y"] * (data["x"] @ w)))

    return Problem.of(jnp.asarray(norm * unit), loss, data)


ESCAPING = {
    "exp(-x) at 20": lambda: _of(lambda x: jnp.exp(-x), 20.0),
    "exp(-x) at 40": lambda: _of(lambda x: jnp.exp(-x), 40.0),
    "separable, |w| = 20": lambda: _separable(20.0),
    "separable, |w| = 40": lambda: _separable(40.0),
}


@pytest.mark.parametrize("name", ESCAPING)
def test_weights_that_escape_are_not_stationary(name):
    problem = ESCAPING[name]()
    certificate = certify(problem)
    assert certificate.gradient < 1e-8
    assert certificate.kind == "not stationary"
    assert not certificate.stationary
    assert "weights escape" in certificate.why
    assert certificate.distance is not None
    assert certificate.distance > 1
    assert f"Newton distance {certificate.distance:.2g}" in str(certificate)


def test_a_small_gradient_without_a_stationary_point_is_not_stationary():
    certificate = certify(_of(lambda x: x**3 + 1e-9 * x, 1e-5))
    assert certificate.gradient < 1e-8
    assert certificate.smallest.low > 0
    assert certificate.kind == "not stationary"
    assert "escape" not in certificate.why


def test_a_minimum_further_away_is_mentioned_with_its_distance():
    certificate = certify(_of(lambda x: 5e-9 * x + 5e-10 * x**2, 0.0))
    assert certificate.kind == "not stationary"
    assert certificate.distance == pytest.approx(5.0)
    assert "a minimum at distance 5" in str(certificate)
    assert certify(_of(lambda x: 5e-9 * x + 5e-10 * x**2, -5.0)).kind == "minimum"


@pytest.mark.parametrize(
    ("function", "point", "kind"),
    [
        (lambda x: x**4, (0.0,), "degenerate"),
        (lambda x, y: x**3 - 3 * x * y**2, (0.0, 0.0), "degenerate"),
        # Next to them the curvature is not zero, but Newton's method only halves the distance: h
        # stays above ½.
        (lambda x: x**4, (1e-9,), "no minimum can be certified"),
        (lambda x: x**3, (1e-9,), "no minimum can be certified"),
        (lambda x, y: x**3 - 3 * x * y**2, (1e-9, 0.0), "no minimum can be certified"),
        (lambda x: x**4, (1e-3,), "not stationary"),
    ],
)
def test_without_curvature_at_the_stationary_point_no_minimum_and_no_saddle(function, point, kind):
    certificate = certify(_of(function, *point))
    assert certificate.kind == kind
    assert certificate.gradient < 1e-8


@pytest.mark.parametrize("sign", [1, -1])
def test_a_slope_along_a_flat_direction_is_no_stationary_point(sign):
    certificate = certify(_of(lambda x, y: sign * y**2 + 1e-9 * x, 0.0, 0.0))
    assert certificate.kind == "not stationary"
    assert "directions without curvature" in certificate.why
    flat = certify(_of(lambda x, y: sign * y**2 + 0 * x, 0.0, 0.0))
    assert flat.kind == ("degenerate" if sign > 0 else "saddle")


def test_what_decides_has_the_scale_of_the_loss():
    """A gradient of 2000 next to a steep minimum; none of 1e-18 in a shallow one that is far away."""
    assert certify(_of(lambda x: 1e12 * x**2, 1e-9)).kind == "minimum"
    assert certify(_of(lambda x: 1e-18 * (x - 1) ** 2, 0.0)).kind == "not stationary"


@pytest.mark.parametrize(("offset", "kind"), [(3e-7, "minimum"), (3e-6, "not stationary")])
def test_the_word_is_about_the_point_that_was_given(offset, kind):
    certificate = certify(_of(lambda x: jnp.cosh(x), offset))
    assert certificate.kind == kind
    assert certificate.distance == pytest.approx(offset, rel=1e-3)
    # Far from zero, numbers themselves are coarser.
    assert certify(_of(lambda x: (x - 1e3) ** 2, 1e3 + 3e-4)).kind == "minimum"


def test_newton_steps_are_taken_where_the_first_proves_nothing():
    def function(x):
        return 1e-6 * x**2 + x**4

    problem = _of(function, 9e-4)
    path = newton_path(problem, problem.start)
    assert not path[0].proved
    assert path[-1].proved
    assert 1 < len(path) <= 6
    assert sum(each.radius for each in path) >= 9e-4 * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_the_distance_bounds_the_true_one(seed):
    keys = jax.random.split(jax.random.key(seed), 3)
    a = jax.random.normal(keys[0], (6, 6), jnp.float64)
    away = jax.random.normal(keys[1], (6,), jnp.float64)
    away = 10.0 ** -(1 + seed) * away / jnp.linalg.norm(away)

    def loss(theta, _):
        return jnp.sum(jnp.cosh(a @ theta)) + jnp.sum(theta**3) / 3  # stationary at 0

    path = newton_path(Problem.of(away, loss, None), away)
    assert path[-1].proved
    true, bound = float(jnp.linalg.norm(away)), sum(each.radius for each in path)
    assert true * (1 - 1e-12) <= bound <= 2 * true


@pytest.mark.parametrize("seed", range(3))
def test_the_lipschitz_constant_is_found_and_doubled(seed):
    """Against the largest ‖T[v, v]‖ of a cubic form over a fine grid of the circle."""
    c = np.random.default_rng(seed).normal(size=4)
    angles = np.linspace(0, np.pi, 20001)
    x, y = np.cos(angles), np.sin(angles)
    gradient = np.stack(
        [
            3 * c[0] * x**2 + 2 * c[1] * x * y + c[2] * y**2,
            c[1] * x**2 + 2 * c[2] * x * y + 3 * c[3] * y**2,
        ]
    )
    exact = 2 * np.linalg.norm(gradient, axis=0).max()
    problem = _of(
        lambda x, y: c[0] * x**3 + c[1] * x**2 * y + c[2] * x * y**2 + c[3] * y**3 + x**2 + y**2,
        1e-13,
        0.0,
    )
    found = place(problem, problem.start)
    # A step of 1e-13 makes no rounding of it.
    assert np.linalg.norm(found.step) == pytest.approx(1e-13, rel=1e-2)
    assert 0.99 * exact <= found.lipschitz / 2 <= exact * (1 + 1e-6)


def test_a_kink_within_the_step_is_seen():
    def function(x):
        return jnp.where(x > 0, x**2, 1e-3 * x**2 - 1e-6 * x)

    problem = _of(function, 1e-7)
    assert certify(problem).kind != "minimum"
    assert float(problem.hessian(problem.start)[0, 0]) > 0


TROUBLES = {
    "not a number": lambda: _of(lambda x: jnp.sqrt(x) ** 4, 0.0),
    "curvature is infinite": lambda: _of(lambda x: jnp.abs(x) ** 1.5, 0.0),
    "loss is infinite": lambda: _of(lambda x: x**2 + jnp.inf, 0.0),
    "curvature is denormal": lambda: _of(lambda x: 1e-300 * x**2, 0.0),
}


@pytest.mark.parametrize("words", TROUBLES)
def test_curvature_that_cannot_be_computed_with_has_words_of_its_own(words):
    certificate = certify(TROUBLES[words]())
    assert certificate.kind == "no minimum can be certified"
    assert words in str(certificate)
    assert "Newton distance unknown" in str(certificate)
    assert certificate.inertia is None
    assert not certificate.smallest.converged


def test_above_the_limit_a_curvature_that_is_not_finite_is_not_called_free_of_negative_directions():
    certificate = certify(_of(lambda x, y: jnp.abs(x) ** 1.5 + y**2, 0.0, 0.0), dense=1, depth=2)
    assert certificate.kind == "no minimum can be certified"
    assert "not finite" in certificate.why


@pytest.fixture(scope="module")
def problems():
    """Two problems of self-attention and the minima that nine starts end in."""
    made = [
        make_problem(
            PointSettings(seed=seed, test_points=2), jax.random.fold_in(jax.random.key(0), seed)
        )
        for seed in (0, 7)
    ]
    return [
        (each.problem, jnp.asarray(minimise(each.problem, each.starts).theta.values))
        for each in made
    ]


def test_every_start_of_self_attention_is_certified(problems):
    certificates = [certify(problem, theta) for problem, thetas in problems for theta in thetas]
    assert [each.kind for each in certificates] == ["minimum"] * 18
    assert {each.zero_modes for each in certificates} == {2}
    assert all(each.distance is not None and each.distance < 1e-7 for each in certificates)


def _hessian(problem, theta):
    return np.asarray(_derivatives(problem, theta)[2])


def test_zero_modes_must_be_left_out_of_the_step(problems):
    """Between two points where an eigenvalue of symmetry has opposite signs it vanishes, and
    ‖H⁻¹∇L‖ has no bound.
    """
    problem, theta = problems[0][0], problems[0][1][1]
    modes = place(problem, theta).modes
    generator = np.random.default_rng(0)

    def moved(direction):
        return theta + jnp.asarray(1e-6 * direction / np.linalg.norm(direction))

    def sign(direction):
        return np.linalg.slogdet(_hessian(problem, moved(direction)))[0]

    found = {}
    while len(found) < 2:
        direction = generator.normal(size=len(theta))
        direction -= modes.T @ (modes @ direction)
        found[sign(direction)] = direction
    low, high = found[-1.0], found[1.0]
    near, whole = theta, 0.0
    for _ in range(60):
        if whole > 0.29:
            break
        middle = (low + high) / 2
        near = moved(middle)
        _, gradient, hessian = (np.asarray(each) for each in _derivatives(problem, near))
        whole = float(np.linalg.norm(np.linalg.solve(hessian, gradient)))
        low, high = (middle, high) if sign(middle) < 0 else (low, middle)
    assert whole > 0.29
    certificate = certify(problem, near)
    assert certificate.distance is not None
    assert certificate.distance < 2e-6
    assert (certificate.kind, certificate.zero_modes) == ("minimum", 2)


def test_the_lipschitz_constant_is_sampled_within_twice_the_step(problems):
    """At some minima of self-attention sampling more widely would prove nothing; at which, differs
    between versions of JAX.
    """
    found = []
    for problem, thetas in problems:
        gradient = np.sign(np.random.default_rng(6).normal(size=thetas.shape[1]))
        for theta in thetas:
            away = np.linalg.pinv(_hessian(problem, theta), rcond=1e-9) @ gradient
            near = theta + jnp.asarray(1e-7 * away / np.linalg.norm(away))
            if place(problem, near).h < 0.25 and place(problem, near, radius=1.0).h > 1:
                found.append(certify(problem, near).kind)
    assert found
    assert set(found) == {"minimum"}


def test_a_small_gradient_is_not_where_minimise_stops(problems):
    """A gradient below 1e-8 leaves a point as far as 1e-5 from the minimum: minimise takes another
    step.
    """
    problem, thetas = problems[1]
    values, vectors = np.linalg.eigh(_hessian(problem, thetas[0]))
    soft = vectors[:, np.flatnonzero(values > 1e-6)[0]]
    start = thetas[0] + 5e-6 * jnp.asarray(soft)
    assert float(jnp.abs(_derivatives(problem, start)[1]).max()) < 1e-8
    assert certify(problem, start).kind == "not stationary"
    again = minimise(problem, jnp.tile(start, (9, 1)), method="bfgs")
    assert certify(problem, jnp.asarray(again.theta.values[0])).kind == "minimum"
