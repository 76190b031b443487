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
    at_loss,
    first_reached,
    phases,
    rank_agreement,
    separation,
    suppression,
)
from attnlab.dynamics._sen import SenTerms, Surroundings, identity_error, sen_error, sen_norm

__all__ = [
    "PHASES",
    "Balance",
    "QueryBalance",
    "ScoreSum",
    "SenTerms",
    "Separation",
    "Surroundings",
    "alignment",
    "at_loss",
    "balance_error",
    "first_reached",
    "identity_error",
    "order_in_step",
    "phases",
    "query_balance_error",
    "rank_agreement",
    "score_sum_error",
    "sen_error",
    "sen_norm",
    "separation",
    "suppression",
]
