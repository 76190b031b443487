"""The entropy bound (docs/theory.md#c5)."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion
from attnlab.studies._compare_entropy import ENTROPY

ENTROPY_BOUND = Claim(
    id="beyond.entropy_bound",
    title="Attention cannot collapse faster than the norm of its logits allows",
    statement=(
        "The entropy of a softmax over T words with logits of norm σ is never below log(1 + "
        "(T−1)β) + "
        "σ√(T(T−1)) β/(1 + (T−1)β), β = e^{−σ√(T/(T−1))}, and reaches it at one row of logits."
    ),
    source="Zhai et al. (2023), arXiv 2303.06296",
    studies=(ENTROPY,),
    criteria=(
        Criterion(
            "least of entropy − bound over 60 000 random rows",
            "every run",
            lambda d: d["entropy bound"].least,
            -1e-12,
            ">=",
        ),
        Criterion(
            "relative difference at the extremal point",
            "every run",
            lambda d: d["entropy bound"].tight,
            1e-6,
            "<=",
        ),
    ),
    controls=(
        Control(
            "β too large",
            "A bound whose β is 1.5 times too large must be violated.",
            (
                Criterion(
                    "least of entropy − wrong bound",
                    "every run",
                    lambda d: d["entropy bound"].wrong,
                    -1e-12,
                    ">=",
                ),
            ),
        ),
    ),
    how_measured=(
        "Centred rows of 2 to 256 logits with norms from 0.01 to 30: normal ones, peaked ones, "
        "and ones near the "
        "extremal point, in float64. The extremal point at 60 norms from 0.1 to 8 for each number "
        "of words."
    ),
    refuted_by="One row below the bound by more than rounding, or a bound that the extremal row "
    "does not reach.",
)

ENTROPY_CLAIMS = (ENTROPY_BOUND,)
