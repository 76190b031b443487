"""The exact laws (docs/theory.md#a4) as claims."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies import HEAD_LAWS, OPTIMIZERS, STEP_SIZES

_SOURCE = "attnlab, exact laws of training word attention (beyond Lu et al. 2021)"
_DESCENT = ["gradient descent", "SGD", "momentum 0.9", "weight decay 1e-3"]


def _rule(variable: str, *rules: str):
    return lambda data: data["optimizers"][variable].sel(rule=list(rules))


def _head(variable: str, head: str):
    return lambda data: data["laws"][variable].sel(head=head)


SCORE_SUM = Claim(
    id="laws.score_sum",
    title="Descent conserves the sum of all scores",
    statement="With a frozen query, gradient descent never changes the sum of the scores of all "
    "words.",
    source=_SOURCE,
    studies=(HEAD_LAWS,),
    criteria=(
        Criterion(
            "|Σs| / Σ|s|, float64, all heads",
            "every run",
            lambda d: d["laws"].score_sum_error,
            1e-13,
        ),
        Criterion(
            "|Σs| / Σ|s|, float32, fixed head",
            "every run",
            lambda d: d["float32"].score_sum_error,
            1e-5,
        ),
    ),
    controls=(
        Control(
            "Adam",
            "Adam rescales every coordinate by itself, which breaks the law.",
            (
                Criterion(
                    "|Σs| / Σ|s|, Adam",
                    "every run",
                    lambda d: d["laws under Adam"].score_sum_error,
                    1e-13,
                ),
            ),
        ),
    ),
    how_measured=(
        "The sum over the whole vocabulary is recorded along training with the fixed, linear and "
        "two-layer head; its "
        "change is compared with the sum of absolute scores. The worst row of all runs counts."
    ),
    refuted_by="A change of the sum above rounding error in any run.",
)

BALANCE = Claim(
    id="laws.balance",
    title="Embeddings and the head's first layer stay in balance",
    statement=(
        "With a trained first layer W, EᵀE − WWᵀ is conserved by the flow; descent drifts in "
        "proportion to its step."
    ),
    source=_SOURCE,
    studies=(HEAD_LAWS, STEP_SIZES),
    criteria=(
        Criterion(
            "drift / ‖WWᵀ‖, linear head, step 0.1",
            "every run",
            _head("balance_error", "linear"),
            3e-4,
        ),
        Criterion(
            "drift / ‖WWᵀ‖, two-layer head, step 0.1",
            "every run",
            _head("balance_error", "two_layer"),
            1e-3,
        ),
        *(
            Criterion(
                f"exponent of the drift in the step, {head.replace('_', '-')} head",
                "estimate",
                lambda d, head=head: d["step sizes"].slope.sel(head=head),
                (0.9, 1.1),
                "in",
                "mean",
            )
            for head in ("linear", "two_layer")
        ),
    ),
    controls=(
        Control(
            "fixed head",
            "Nothing balances a head that does not move.",
            (
                Criterion(
                    "drift / ‖WWᵀ‖, fixed head",
                    "bound",
                    _head("balance_error", "fixed"),
                    0.5,
                    "<=",
                    "min",
                ),
            ),
        ),
    ),
    how_measured=(
        "Frobenius norm of the change of EᵀE − WWᵀ at the last step over the final ‖WWᵀ‖, on the "
        "reference task; and "
        "the exponent fitted to that drift at the steps 0.1, 0.05 and 0.025 over equal training "
        "time."
    ),
    refuted_by="A drift above the bound, or one that does not shrink in proportion to the step.",
)

QUERY_BALANCE = Claim(
    id="laws.query_balance",
    title="A trained query stays in balance with the keys and keeps its direction",
    statement=(
        "With a trained query, KᵀK − qqᵀ is conserved by the flow and Σκ exactly; from zero keys, "
        "q keeps its "
        "direction."
    ),
    source=_SOURCE,
    studies=(STEP_SIZES,),
    criteria=(
        Criterion(
            "exponent of the drift in the step",
            "estimate",
            lambda d: d["trained query"].slope,
            (0.9, 1.1),
            "in",
            "mean",
        ),
        Criterion("1 − cos(q, q₀)", "every run", lambda d: d["trained query"].query_turn, 1e-12),
        Criterion(
            "largest coordinate of |Σκ|", "every run", lambda d: d["trained query"].key_sum, 1e-13
        ),
    ),
    controls=(
        *(
            Control(
                f"Adam: {what}",
                f"Adam loses {what} in every seed.",
                (
                    Criterion(
                        f"{what}, Adam",
                        "bound",
                        lambda d, n=name: d["trained query"][n],
                        bound,
                        "<=",
                        "min",
                    ),
                ),
            )
            for what, name, bound in (
                ("the balance", "query_balance_error_adam", 0.05),
                ("the direction of the query", "query_turn_adam", 1e-12),
                ("the sum of the keys", "key_sum_adam", 1e-13),
            )
        ),
    ),
    how_measured=(
        "Query, keys and embeddings are trained under a fixed head at the steps 0.1, 0.05 and "
        "0.025 over equal time; "
        "the worst recorded row of all runs counts for the exact laws."
    ),
    refuted_by="A query that turns, keys whose sum moves, or a drift that is not proportional to "
    "the step.",
)

IDENTITY = Claim(
    id="laws.identity",
    title="An exact identity ties a word's score to its embedding, step by step",
    statement="s(T) − s(0) = |q|²[½(|ν(T)|² − |ν(0)|²) − I₁ − I₂] holds exactly for gradient "
    "descent.",
    source=_SOURCE,
    studies=(HEAD_LAWS, OPTIMIZERS),
    criteria=(
        Criterion(
            "relative error, all heads", "every run", lambda d: d["laws"].identity_error, 1e-12
        ),
    ),
    controls=(
        Control(
            "momentum",
            "With momentum a step is no longer the gradient of its own moment.",
            (
                Criterion(
                    "relative error, momentum",
                    "every run",
                    _rule("identity_error", "momentum 0.9"),
                    1e-12,
                ),
            ),
        ),
    ),
    how_measured=(
        "I₁ and I₂ are summed inside the loop at every step for the topic words; the identity's "
        "two sides are compared "
        "at every recorded step with |s| > 0.001."
    ),
    refuted_by="A relative difference above rounding error.",
)

WHO_KEEPS_WHAT = Claim(
    id="laws.optimizers",
    title="Which optimiser keeps which law",
    statement=(
        "Descent, SGD, momentum and weight decay from zero keep the sum of scores, Adam does not; "
        "the exact identity "
        "is kept by descent and SGD alone."
    ),
    source=_SOURCE,
    studies=(OPTIMIZERS,),
    criteria=(
        Criterion(
            "score sum: descent, SGD, momentum, decay",
            "every run",
            _rule("score_sum_error", *_DESCENT),
            1e-13,
        ),
        Criterion(
            "score sum: Adam breaks it",
            "every run",
            lambda d: d["optimizers"].score_sum_error.sel(rule="Adam").max("step"),
            0.1,
            ">=",
        ),
        Criterion(
            "identity: descent and SGD",
            "every run",
            _rule("identity_error", "gradient descent", "SGD"),
            1e-12,
        ),
        *(
            Criterion(
                f"identity: {rule} breaks it",
                "every run",
                lambda d, rule=rule: (
                    d["optimizers"].identity_error.sel(rule=rule).max(["step", "word"])
                ),
                1e-3,
                ">=",
            )
            for rule in ("momentum 0.9", "weight decay 1e-3", "Adam")
        ),
    ),
    controls=(
        Control(
            "Adam called a descent",
            "The criterion must notice when Adam is put among those that keep the sum.",
            (
                Criterion(
                    "score sum, with Adam among them",
                    "every run",
                    _rule("score_sum_error", *_DESCENT, "Adam"),
                    1e-13,
                ),
            ),
        ),
        Control(
            "momentum called a descent",
            "Likewise for the identity.",
            (
                Criterion(
                    "identity, with momentum among them",
                    "every run",
                    _rule("identity_error", "gradient descent", "momentum 0.9"),
                    1e-12,
                ),
            ),
        ),
    ),
    how_measured=(
        "The same task and seeds with a trained linear head under five rules: descent 0.1, SGD "
        "with 100 sentences a "
        "step, momentum 0.9, weight decay 0.001, Adam 0.01. Breaking means breaking in every seed."
    ),
    refuted_by="A rule that keeps what it should break, or breaks what it should keep.",
)

LAWS = (SCORE_SUM, BALANCE, QUERY_BALANCE, IDENTITY, WHO_KEEPS_WHAT)
