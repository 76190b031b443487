"""What learns: frozen Equinox modules, with no training code in them."""

from attnlab.models._contextual import ContextualAttention, ContextualConfig, contextual_logits
from attnlab.models._heads import AbstractHead, LinearHead, OwnHead, TwoLayerHead
from attnlab.models._incidence import Incidence, kernel
from attnlab.models._pooling import Tokens, guarded, pool, pool_fast, pool_tokens, too_wide
from attnlab.models._word_attention import (
    Part,
    WordAttention,
    WordAttentionConfig,
    attention_of,
    attention_weights,
    cast,
    literal_logits,
    pooled_logits,
)

__all__ = [
    "AbstractHead",
    "ContextualAttention",
    "ContextualConfig",
    "Incidence",
    "LinearHead",
    "OwnHead",
    "Part",
    "Tokens",
    "TwoLayerHead",
    "WordAttention",
    "WordAttentionConfig",
    "attention_of",
    "attention_weights",
    "cast",
    "contextual_logits",
    "guarded",
    "kernel",
    "literal_logits",
    "pool",
    "pool_fast",
    "pool_tokens",
    "pooled_logits",
    "too_wide",
]
