"""attnlab: the laboratory for the theory of attention.

The most used names; each is loaded on first access, so that ``import attnlab`` is fast. Everything
else is in the subpackages: ``attnlab.data``, ``models``, ``training``, ``dynamics``,
``complexity``, ``landscape``, ``estimators``, ``stats``, ``sweeps``, ``lab``, ``papers``,
``questions``, ``report``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from attnlab import (
        complexity,
        data,
        dynamics,
        estimators,
        lab,
        landscape,
        models,
        papers,
        questions,
        report,
        stats,
        sweeps,
        training,
    )
    from attnlab._errors import AttnlabError
    from attnlab.data import Corpus, TopicTask, read_texts
    from attnlab.dynamics import (
        ReducedModel,
        identity_error,
        reduced_descent,
        reduced_flow,
        sen_error,
        sen_norm,
    )
    from attnlab.estimators import AttentionClassifier, load_classifier
    from attnlab.lab import Claim, Control, Criterion, reproduce
    from attnlab.landscape import certify
    from attnlab.models import WordAttention, WordAttentionConfig, attention_of
    from attnlab.papers.lu2021.settings import TopicSettings
    from attnlab.questions import figure
    from attnlab.questions._dynamics import reduced_prediction
    from attnlab.questions.texts import study_texts
    from attnlab.sweeps import Plan, run_plan
    from attnlab.training import Adam, GradientDescent, GradientFlow, Trajectory, train, train_model

_ROOMS = {
    "AttnlabError": "_errors",
    "Corpus": "data",
    "TopicTask": "data",
    "read_texts": "data",
    "WordAttention": "models",
    "WordAttentionConfig": "models",
    "attention_of": "models",
    "train": "training",
    "train_model": "training",
    "Trajectory": "training",
    "GradientDescent": "training",
    "Adam": "training",
    "GradientFlow": "training",
    "sen_norm": "dynamics",
    "sen_error": "dynamics",
    "identity_error": "dynamics",
    "ReducedModel": "dynamics",
    "reduced_flow": "dynamics",
    "reduced_descent": "dynamics",
    "certify": "landscape",
    "AttentionClassifier": "estimators",
    "load_classifier": "estimators",
    "TopicSettings": "papers.lu2021.settings",
    "reduced_prediction": "questions._dynamics",
    "figure": "questions",
    "study_texts": "questions.texts",
    "Plan": "sweeps",
    "run_plan": "sweeps",
    "Claim": "lab",
    "Control": "lab",
    "Criterion": "lab",
    "reproduce": "lab",
}

_LAZY_ROOMS = (
    "complexity",
    "dynamics",
    "estimators",
    "lab",
    "landscape",
    "models",
    "papers",
    "questions",
    "report",
    "sweeps",
    "stats",
    "data",
    "training",
)

__all__ = [  # noqa: RUF022  (in the order of the rooms)
    # rooms
    "complexity",
    "dynamics",
    "estimators",
    "lab",
    "landscape",
    "models",
    "papers",
    "questions",
    "report",
    "sweeps",
    "stats",
    "data",
    "training",
    # what is used most
    "AttnlabError",
    "Corpus",
    "TopicTask",
    "read_texts",
    "WordAttention",
    "WordAttentionConfig",
    "attention_of",
    "train",
    "train_model",
    "Trajectory",
    "GradientDescent",
    "Adam",
    "GradientFlow",
    "sen_norm",
    "sen_error",
    "identity_error",
    "ReducedModel",
    "reduced_flow",
    "reduced_descent",
    "certify",
    "AttentionClassifier",
    "load_classifier",
    "TopicSettings",
    "reduced_prediction",
    "figure",
    "study_texts",
    "Plan",
    "run_plan",
    "Claim",
    "Control",
    "Criterion",
    "reproduce",
]


def __getattr__(name: str) -> object:
    if name in _LAZY_ROOMS:
        return importlib.import_module(f"attnlab.{name}")
    if name in _ROOMS:
        return getattr(importlib.import_module(f"attnlab.{_ROOMS[name]}"), name)
    raise AttributeError(f"module 'attnlab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
