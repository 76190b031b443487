"""Training: gradient descent and flow, probes that define what is recorded, and trajectories."""

from attnlab.training._bag_objective import BagObjective
from attnlab.training._drive import run_keys
from attnlab.training._fit import Recipe, choose, fit_grid
from attnlab.training._loop import EarlyStopping
from attnlab.training._model_objective import ModelFrame, ModelObjective
from attnlab.training._objective import Frame, WordObjective
from attnlab.training._optimizers import Adam, GradientDescent, GradientFlow, OptaxOptimizer
from attnlab.training._probes import (
    AbstractProbe,
    Accuracy,
    Attention,
    Elapsed,
    GradientNorm,
    InstantProbe,
    Loss,
    Measure,
    Moment,
    Norms,
    Scores,
    Transition,
)
from attnlab.training._problem import AbstractFrame, AbstractObjective, Evaluation
from attnlab.training._schedule import At, Every, Logarithmic
from attnlab.training._train import train
from attnlab.training._train_model import train_model
from attnlab.training._trajectory import Trajectory

__all__ = [
    "AbstractProbe",
    "Accuracy",
    "Adam",
    "At",
    "Attention",
    "EarlyStopping",
    "Elapsed",
    "Every",
    "GradientDescent",
    "GradientFlow",
    "GradientNorm",
    "InstantProbe",
    "Logarithmic",
    "Loss",
    "Measure",
    "Norms",
    "Scores",
    "Trajectory",
    "train",
    "train_model",
]
