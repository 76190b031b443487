"""What the site tells around the claims: its first page, the stories and the glossary."""

from attnlab.papers.glossary import TERMS
from attnlab.papers.liu2021.story import STORY as LIU2021
from attnlab.papers.lu2021.derivations import DERIVATIONS
from attnlab.papers.lu2021.story import STORY as LU2021
from attnlab.report import Book

BOOK = Book(
    question="How does attention learn which words matter, and what does it cost to learn it?",
    why=(
        "Only some words of a sentence tell its label: their gradients add up over all sentences, "
        "while those of other words, which occur with every label, cancel.",
        "What adds up moves a word's embedding and its attention score together, because both follow "
        "the same forces; so one determines the other, with a median error of {lu2021.sen:relative "
        "error, fixed and linear head, median!%}.",
        "Knowing where to look saves samples, because less is left to learn; learning it works, too, "
        "but from some starts it ends in a bad minimum.",
    ),
    figure="lu2021.sen/sen_relation",
    stories=(LU2021, LIU2021),
    terms=TERMS,
    derivations=DERIVATIONS,
    open_intro=(
        "A claim that does not hold is a finding. Each entry says what was found instead, and why.",
        "Refuted: a measured quantity lies surely on the wrong side of its threshold, or one certified "
        "counterexample contradicts a statement about all cases. Undecided: the interval contains the "
        "threshold, so that more seeds are needed, or a control did not come out as it should.",
    ),
)
