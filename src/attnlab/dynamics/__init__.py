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
from attnlab.dynamics._sen import SenTerms, Surroundings, identity_error, sen_error, sen_norm

__all__ = [
    "Balance",
    "QueryBalance",
    "ScoreSum",
    "SenTerms",
    "Surroundings",
    "balance_error",
    "identity_error",
    "order_in_step",
    "query_balance_error",
    "score_sum_error",
    "sen_error",
    "sen_norm",
]
