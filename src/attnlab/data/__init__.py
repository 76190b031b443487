"""Data: users' texts, corpora (bags of words without padding), digits, and generators."""

from attnlab.data import thinning
from attnlab.data._corpus import Corpus
from attnlab.data._digits import Canvases, CanvasTask, Digits, load_digits
from attnlab.data._frames import frame_columns, is_missing
from attnlab.data._movies import load_movie_reviews
from attnlab.data._prepare import TextSource, prepare_in, prepare_texts
from attnlab.data._prepared import Prepared, is_prepared
from attnlab.data._read import class_name, named_files, read_texts
from attnlab.data._splits import Leaks, leaks, split_texts
from attnlab.data._stream import ReadPart, StoredTexts, Streamed, index_stream
from attnlab.data._text_parts import TextParts, plain_words, text_parts
from attnlab.data._texts import Dropped, Example, LabelValue, Texts, drop_duplicates
from attnlab.data._tokens import Tokenizer
from attnlab.data._topic import TopicTask
from attnlab.data._vocabulary import Encoded, Indexed, Vocabulary, index_texts

__all__ = [
    "CanvasTask",
    "Corpus",
    "TextSource",
    "Texts",
    "Tokenizer",
    "TopicTask",
    "index_stream",
    "load_digits",
    "load_movie_reviews",
    "read_texts",
]
