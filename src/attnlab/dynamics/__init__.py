"""The dynamics lens: what theory says of training, as functions of what was recorded."""

from attnlab.dynamics._laws import (
    Balance,
    QueryBalance,
    ScoreSum,
    balance_error,
    order_in_step,
    query_balance_error,
    score_sum_error,
)
from attnlab.dynamics._phases import (
    PHASES,
    Separation,
    alignment,
    area_under_curve,
    at_loss,
    phases,
    rank_agreement,
    separation,
    suppression,
)
from attnlab.dynamics._rates import log_slope, loss_exponent, onset_time, score_rate, score_slowdown
from attnlab.dynamics._reduced import ReducedModel, reduced_descent, reduced_flow
from attnlab.dynamics._sen import SenTerms, Surroundings, identity_error, sen_error, sen_norm

__all__ = [
    "PHASES",
    "Balance",
    "QueryBalance",
    "ReducedModel",
    "ScoreSum",
    "SenTerms",
    "Separation",
    "Surroundings",
    "alignment",
    "area_under_curve",
    "at_loss",
    "balance_error",
    "identity_error",
    "log_slope",
    "loss_exponent",
    "onset_time",
    "order_in_step",
    "phases",
    "query_balance_error",
    "rank_agreement",
    "reduced_descent",
    "reduced_flow",
    "score_rate",
    "score_slowdown",
    "score_sum_error",
    "sen_error",
    "sen_norm",
    "separation",
    "suppression",
]
