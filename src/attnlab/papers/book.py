"""What the site tells around the claims: its first page, the stories and the glossary."""

from attnlab.papers.glossary import TERMS
from attnlab.papers.liu2021.story import STORY as LIU2021
from attnlab.papers.lu2021.story import STORY as LU2021
from attnlab.report import Book

BOOK = Book(
    question="How does attention learn which words matter, and what does it cost to learn it?",
    why=(),
    figure="lu2021.sen/sen_relation",
    stories=(LU2021, LIU2021),
    terms=TERMS,
)
