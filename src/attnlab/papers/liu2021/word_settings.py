"""Settings of learning curves on sentences: of the topic task, or of labelled texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from attnlab._errors import AttnlabError
from attnlab.papers.liu2021.curve_settings import FitSettings
from attnlab.papers.liu2021.variant_settings import Variant

FIT_WORDS = "attnlab.papers.liu2021.word_runs:fit_words"
# Students by the normaliser that weighs the words of a sentence.
POOLING = {"mean-pooling": "uniform", "attention-pooling": "softmax"}
COUNTS, TF_IDF = "topic-counts", "tf-idf"
STUDENTS = (*POOLING, COUNTS, TF_IDF)
# So near to each other because the number of steps is fixed: a step size is also how early a fit
# stops, and a grid by threes misses the best by more than the two kinds of pooling differ. Each fit
# goes on from here to where its validation loss is least, from about 0.0002 to 0.3.
TEXT_STEP_SIZES, TEXT_WIDEN = (0.0046, 0.0077, 0.013), 6


def on_texts(folder: str, data: str) -> dict[str, Any]:
    """Settings that all students on texts share: where the texts are, and the tuning.

    ``folder``, ``data``: a source as ``text_parts`` takes it, and the hash of its content.
    """
    return {
        "folder": folder,
        "data": data,
        "step_sizes": TEXT_STEP_SIZES,
        "widen": TEXT_WIDEN,
        "weight_decays": (0.0,),
    }


@dataclass(frozen=True)
class WordSettings(FitSettings):
    """One student at several numbers of labelled sentences; `FitSettings` has what is not said here.

    - ``student``: ``"attention-pooling"`` learns a weight for each word and takes their softmax,
      ``"mean-pooling"`` weighs all words of a sentence alike; any variant of attention as
      ``Variant.of`` takes it, such as ``"sparsemax"``. A penalty on the query has no meaning, since
      every word has its own score. ``"topic-counts"`` is a two-layer network of ``hidden`` units on
      the counts of the topic words: it is told which words matter. ``"tf-idf"`` is logistic
      regression, which chooses from ``strengths`` (C).
    - ``folder``, ``data``: texts, see `on_texts`; without a folder the sentences of a topic task of
      ``topics`` … ``noise_words``. Of texts, ``drawn`` are all that there are, and as many are
      looked at as `attnlab.data.thinning` says.
    - ``resplit``: every seed draws its own training, validation and test texts out of all of them,
      so that intervals over seeds include the draw of the texts.
    - ``embedding_dim``, ``embedding_std``: of students that pool.
    - ``answers``: whether what the student of the largest size says of each test text is kept.
    - ``course``: whether one more training at the largest size is followed step by step.
    """

    counted: ClassVar[str] = "sentences"

    student: str = "attention-pooling"
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    steps: int = 600
    step_sizes: tuple[float, ...] = (0.03, 0.1)
    strengths: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    folder: str = ""
    data: str = ""
    resplit: bool = False
    topics: int = 4
    topic_words: int = 2
    dictionary: int = 2000
    noise_words: int = 20
    embedding_dim: int = 10
    embedding_std: float = 1e-6
    hidden: int = 10
    course: bool = False
    answers: bool = False

    def __post_init__(self):
        super().__post_init__()
        variant = self.variant
        if variant is None:
            if self.course:
                raise AttnlabError(f"student={self.student!r}: only pooling has a course")
            if self.folder and self.student == COUNTS:
                raise AttnlabError(
                    f"student={self.student!r}: nobody knows which words of a text matter; take the "
                    "topic task, or another student"
                )
            return
        if variant.penalty == "l1" or (self.folder and "prior" in variant.penalty):
            why = (
                "every word has its own score"
                if variant.penalty == "l1"
                else "nobody knows which words of a text matter"
            )
            raise AttnlabError(
                f"variant {self.student!r}: the penalty {variant.penalty!r} has no meaning here, "
                f"since {why}; leave it out, or take a teacher (--task hard)"
            )

    @property
    def variant(self) -> Variant | None:
        """How the words of a sentence are weighed; ``None`` for students that do not pool them."""
        if self.student in (COUNTS, TF_IDF):
            return None
        try:
            return Variant.of(POOLING.get(self.student, self.student))
        except AttnlabError as error:
            raise AttnlabError(
                f"student={self.student!r}: expected one of {', '.join(STUDENTS)}, or a variant of "
                f"attention ({error})"
            ) from None
