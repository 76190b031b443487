"""Dynamics of training: the theory's laws and predictions as functions of recorded data."""

from attnlab.dynamics._context import InContext
from attnlab.dynamics._laws import (
    Balance,
    QueryBalance,
    ScoreSum,
    balance_error,
    order_in_step,
    query_balance_error,
    score_sum_error,
)
from attnlab.dynamics._normalised import AttentionEntropy, saturation, sen_norm_under, sen_potential
from attnlab.dynamics._phases import (
    PHASES,
    Separation,
    alignment,
    area_under_curve,
    at_loss,
    falling_share,
    phases,
    rank_agreement,
    separation,
    suppression,
)
from attnlab.dynamics._rates import (
    at_times,
    log_slope,
    loss_exponent,
    onset_time,
    score_rate,
    score_slowdown,
)
from attnlab.dynamics._reduced import ReducedModel, reduced_descent, reduced_flow
from attnlab.dynamics._sen import SenTerms, Surroundings, identity_error, sen_error, sen_norm
from attnlab.dynamics._text import (
    attended,
    competition,
    leads,
    telling_pairs,
    text_sen,
    top_words,
    word_table,
)
from attnlab.dynamics._text_deletion import deletion_test
from attnlab.dynamics._text_purity import class_counts, excess_purity, purity

__all__ = [
    "Balance",
    "InContext",
    "QueryBalance",
    "ReducedModel",
    "ScoreSum",
    "SenTerms",
    "Separation",
    "Surroundings",
    "alignment",
    "at_loss",
    "at_times",
    "attended",
    "balance_error",
    "competition",
    "excess_purity",
    "falling_share",
    "identity_error",
    "leads",
    "loss_exponent",
    "onset_time",
    "order_in_step",
    "phases",
    "purity",
    "rank_agreement",
    "query_balance_error",
    "reduced_descent",
    "reduced_flow",
    "score_rate",
    "score_slowdown",
    "score_sum_error",
    "sen_error",
    "sen_norm",
    "sen_potential",
    "suppression",
    "text_sen",
]
