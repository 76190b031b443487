"""Where data comes from: bags of words without padding, digits on canvases, and generators whose truth is known."""

from attnlab.tasks._corpus import Corpus
from attnlab.tasks._digits import Canvases, CanvasTask, Digits, load_digits
from attnlab.tasks._topic import TopicTask

__all__ = ["CanvasTask", "Canvases", "Corpus", "Digits", "TopicTask", "load_digits"]
