"""Lu 2021 in six figures."""

from attnlab.report import Story

STORY = Story(
    id="lu2021",
    title="Lu 2021 in six figures",
    question="",
    chapters=(),
)
