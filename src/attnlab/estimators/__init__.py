"""scikit-learn estimators."""

from attnlab.estimators._classifier import AttentionClassifier, load_classifier

__all__ = ["AttentionClassifier", "load_classifier"]
