"""Settings of one student on labelled texts."""

from __future__ import annotations

from dataclasses import dataclass

from attnlab._errors import AttnlabError

FIT_TEXT_STUDENT = "attnlab.papers.liu2021.text_runs:fit_text_student"
TF_IDF = "tf-idf"
STUDENTS = ("attention-pooling", "mean-pooling", TF_IDF)
# So near to each other because the number of steps is fixed: a step size is also how early a fit
# stops, and a grid by threes misses the best by more than the two kinds of pooling differ.
STEP_SIZES = (0.001, 0.0017, 0.0028, 0.0046, 0.0077, 0.013, 0.022, 0.036, 0.06, 0.1)
STRENGTHS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


@dataclass(frozen=True)
class TextStudentSettings:
    """One student on prepared texts at several numbers of labels.

    - ``folder``, ``data``: a source as ``text_parts`` takes it, mostly what ``Prepared.save``
      wrote, and its hash.
    - ``seed`` draws the order of the labels, the start and the minibatches, the same for every
      student; ``arm`` is a label and nothing else. ``student``: one of ``STUDENTS``.
    - ``step_sizes``, ``weight_decays``: tried for both kinds of pooling at every size;
      ``strengths`` (C) for logistic regression. What is least in loss on validation sentences is
      kept.
    """

    arm: str = ""
    seed: int = 0
    student: str = "attention-pooling"
    folder: str = ""
    data: str = ""
    sizes: tuple[int, ...] = ()
    steps: int = 600
    embedding_dim: int = 10
    step_sizes: tuple[float, ...] = STEP_SIZES
    weight_decays: tuple[float, ...] = (0.0,)
    strengths: tuple[float, ...] = STRENGTHS

    def __post_init__(self):
        if self.student not in STUDENTS:
            raise AttnlabError(f"student={self.student!r}: expected one of {', '.join(STUDENTS)}")
