"""Liu 2021 in five."""

from attnlab.report import Story

STORY = Story(
    id="liu2021",
    title="Liu 2021 in five",
    question="",
    chapters=(),
)
