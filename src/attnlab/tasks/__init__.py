"""Where data comes from: users' texts, bags of words without padding, digits, and generators whose
truth is known.
"""

from attnlab.tasks._corpus import Corpus
from attnlab.tasks._digits import Canvases, CanvasTask, Digits, load_digits
from attnlab.tasks._movies import MissingData, load_movie_reviews
from attnlab.tasks._read import class_name, read_texts
from attnlab.tasks._splits import Leaks, leaks, split_texts
from attnlab.tasks._stream import ReadPart, StoredTexts, Streamed, index_stream
from attnlab.tasks._texts import Dropped, Example, LabelValue, Texts, drop_duplicates
from attnlab.tasks._tokens import Tokenizer
from attnlab.tasks._topic import TopicTask
from attnlab.tasks._vocabulary import Encoded, Indexed, Vocabulary, index_texts

__all__ = [
    "CanvasTask",
    "Canvases",
    "Corpus",
    "Digits",
    "Dropped",
    "Encoded",
    "Example",
    "Indexed",
    "LabelValue",
    "Leaks",
    "MissingData",
    "ReadPart",
    "StoredTexts",
    "Streamed",
    "Texts",
    "Tokenizer",
    "TopicTask",
    "Vocabulary",
    "class_name",
    "drop_duplicates",
    "index_stream",
    "index_texts",
    "leaks",
    "load_digits",
    "load_movie_reviews",
    "read_texts",
    "split_texts",
]
