"""Models and teachers: frozen Equinox modules, without training code."""

from attnlab.models._bags import Bags, bag_logits, bag_weights
from attnlab.models._contextual import ContextualAttention, ContextualConfig, contextual_logits
from attnlab.models._dense import (
    AbstractMask,
    Baseline,
    BaselineConfig,
    Gate,
    KnownAttention,
    KnownAttentionConfig,
    MovingBlock,
    StaticMask,
    VacuousMask,
    softplus,
    vec,
)
from attnlab.models._heads import AbstractHead, LinearHead, OwnHead, TwoLayerHead
from attnlab.models._incidence import Incidence, kernel
from attnlab.models._inputs import INPUTS, Inputs
from attnlab.models._normalisers import (
    NORMALISERS,
    AbstractNormaliser,
    Entmax15,
    Softmax,
    Sparsemax,
    TopK,
    Uniform,
    make_normaliser,
)
from attnlab.models._patches import (
    AttentionPooling,
    AttentionPoolingConfig,
    PatchAttention,
    PatchAttentionConfig,
    PatchGrid,
)
from attnlab.models._penalties import (
    attention_entropy,
    entropy_bound,
    entropy_penalty,
    query_l1,
    toward,
)
from attnlab.models._pooling import Tokens, guarded, pool, pool_fast, pool_tokens, too_wide
from attnlab.models._self_attention import (
    AttentionLayer,
    Frozen,
    KnownWeights,
    KnownWeightsConfig,
    MultiLayer,
    MultiLayerConfig,
    SelfAttention,
    SelfAttentionConfig,
    answers,
    trained_parts,
)
from attnlab.models._teachers import (
    TEACHER_ATTENTION,
    TEACHER_KINDS,
    LabelTeacher,
    Teacher,
    evaluate,
    make_label_teacher,
    make_teacher,
)
from attnlab.models._word_attention import (
    Part,
    WordAttention,
    WordAttentionConfig,
    attention_of,
    attention_weights,
    cast,
    literal_logits,
    moving_parts,
    pooled_logits,
    word_normaliser,
)

__all__ = [
    "Baseline",
    "BaselineConfig",
    "Gate",
    "Incidence",
    "Inputs",
    "KnownAttention",
    "KnownWeights",
    "MovingBlock",
    "MultiLayer",
    "SelfAttention",
    "SelfAttentionConfig",
    "StaticMask",
    "WordAttention",
    "WordAttentionConfig",
    "entropy_bound",
    "entropy_penalty",
    "kernel",
    "literal_logits",
    "make_normaliser",
    "make_teacher",
    "pool",
    "query_l1",
    "softplus",
    "toward",
    "answers",
]
