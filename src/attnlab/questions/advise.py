"""``attnlab advise``: which attention to try on your own texts, in one paragraph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from attnlab._errors import AttnlabError
from attnlab.lab import Answers, Bench, Data, Experiment, Option, Settings
from attnlab.questions import compare
from attnlab.questions.compare import CompareSettings
from attnlab.report import Section

if TYPE_CHECKING:
    from attnlab.lab import Record

VARIANTS = ("softmax", "softmax:0.25", "sparsemax", "uniform")


@dataclass(frozen=True)
class AdviseSettings(Settings):
    """Whose texts, and how many seeds."""

    files: Annotated[
        tuple[str, ...],
        Option(
            "Labelled texts: CSV, TSV, JSON Lines, Parquet or “label text” lines, "
            "also compressed, also at URLs.",
            argument=True,
        ),
    ]
    text: Annotated[str | None, Option("The column with the texts.")] = None
    label: Annotated[str | None, Option("The column with the labels.")] = None
    seeds: Annotated[
        int, Option("Seeds of each variant; to tell 4 variants apart takes 8.", least=1)
    ] = 8

    def __post_init__(self):
        super().__post_init__()
        if not self.files:
            raise AttnlabError("no file was given: expected at least one with labelled texts")

    @property
    def folder(self) -> str | None:
        """Where the command writes if it is not told."""
        return "advice"

    @property
    def subject(self) -> dict[str, tuple[str, ...]]:
        """Which texts."""
        return self.comparison.subject

    @property
    def comparison(self) -> CompareSettings:
        """The comparison of which this is the short form."""
        return CompareSettings(
            files=self.files,
            text=self.text,
            label=self.label,
            variants=VARIANTS,
            seeds=self.seeds,
        )


class Advise(Experiment[AdviseSettings]):
    """Say which attention to try on your own labelled texts: the short form of `attnlab compare
    FILES`.

    Compares softmax, a cooler softmax, sparsemax and mean pooling on the texts and prints one
    paragraph, in which every number is measured. The page in OUT has the rest.

    Example:

        attnlab advise reviews.csv --text review --label sentiment
    """

    name = "advise"
    title = compare.question.title
    settings = AdviseSettings

    def measure(self, settings: AdviseSettings, bench: Bench) -> Data:
        """As `attnlab compare` measures."""
        return compare.question.measure(settings.comparison, bench)

    def answers(self, settings: AdviseSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """As `attnlab compare` answers."""
        return compare.question.answers(settings.comparison, data, found)

    def sections(self, record: Record) -> Sequence[Section]:
        """The page of the comparison."""
        return compare.question.sections(record)

    def shown(self, record: Record) -> Iterable[str]:
        """The paragraph alone."""
        yield " ".join(record.about["summary"])

    def as_json(self, record: Record) -> dict[str, Any]:
        """The answers, the advice in one string, and the ranking."""
        return compare.question.as_json(record)


question = Advise()
