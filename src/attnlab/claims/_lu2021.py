"""Claims of Lu, Mao and Nayak, "On the Dynamics of Training Attention Models" (2021)."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies import REFERENCE


def _linear_heads(variable: str):
    return lambda data: data["reference"][variable].sel(head=["fixed", "linear"])


def _from_step_ten(variable: str, *heads: str):
    return lambda data: data["reference"][variable].sel(head=list(heads), step=slice(10, None))


def _late_ratio(data):
    last = data["reference"].isel(step=-1)
    return last.sen_error_refined.median("word") / last.sen_error.median("word")


def _quantiles(measure, prefix: str, bounds: tuple[float, float, float]) -> tuple[Criterion, ...]:
    names = ("median", "p95", "max")
    return tuple(
        Criterion(f"{prefix}, {name}", "bound", measure, bound, "<=", name)
        for name, bound in zip(names, bounds, strict=True)
    )


SEN = Claim(
    id="lu2021.sen",
    title="A word's score determines the norm of its embedding",
    statement="Along training, s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²) for every topic word, whatever the head.",
    source="Lu, Mao and Nayak (2021), section 4: score and embedding norm",
    studies=(REFERENCE,),
    criteria=(
        *_quantiles(_linear_heads("sen_error"), "relative error, fixed and linear head", (0.004, 0.008, 0.015)),
        Criterion("with I₁ from step 10, fixed and linear head, max", "bound",
                  _from_step_ten("sen_error_corrected", "fixed", "linear"), 0.005),
        Criterion("with I₁ from step 10, two-layer head, p95", "bound",
                  _from_step_ten("sen_error_corrected", "two_layer"), 0.005, "<=", "p95"),
        Criterion("with I₁ from step 10, two-layer head, max", "bound",
                  _from_step_ten("sen_error_corrected", "two_layer"), 0.04),
        Criterion("refined over plain error at the last step", "estimate", _late_ratio, 1.0, "<=", "median"),
    ),
    controls=(
        Control("|q| taken 1.2 times too large", "The relation must notice a wrong query.",
                _quantiles(_linear_heads("sen_error_wrong_query"), "relative error", (0.004, 0.008, 0.015))),
        Control("Adam", "The relation is one of gradient descent.",
                _quantiles(lambda d: d["Adam"].sen_error, "relative error, Adam",
                           (0.004, 0.008, 0.015))),
    ),
    how_measured=(
        "The topic words' scores and norms are recorded along training; |q||ν| predicted from the score alone is "
        "compared with the measured one wherever s > 0.05. I₁ is what discrete steps add; the refined form measures "
        "the other words' weight and mean context instead of assuming m and 0."
    ),
    refuted_by="Errors above the bounds, or a control (a wrong |q|, Adam) that passes them too.",
)  # fmt: skip

LU2021 = (SEN,)
