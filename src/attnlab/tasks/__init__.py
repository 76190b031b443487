"""Where data comes from: bags of words without padding, and generators whose truth is known."""

from attnlab.tasks._corpus import Corpus
from attnlab.tasks._topic import TopicTask

__all__ = ["Corpus", "TopicTask"]
