"""scikit-learn's face of the models."""

from attnlab.estimators._classifier import AttentionClassifier, load_classifier

__all__ = ["AttentionClassifier", "load_classifier"]
