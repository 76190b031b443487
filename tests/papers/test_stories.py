"""The stories around the claims: their length, their symbols, the places of their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from attnlab.lab import Claim, fill, places
from attnlab.papers import ROTTEN_TOMATOES, claims
from attnlab.papers.book import BOOK
from attnlab.papers.glossary import TERMS
from attnlab.papers.lu2021.derivations import DERIVATIONS
from attnlab.report import Chapter, Story, Term

CLAIMS = claims(ROTTEN_TOMATOES)
CHAPTERS = [(story, chapter) for story in BOOK.stories for chapter in story.chapters]
MOST_WORDS = 1300
LONGEST_TITLE = 80

_FORMULA = re.compile(r"\$([^$]*)\$")
_PLACE = re.compile(r"\{[a-z0-9_]+\.[a-z0-9_]+[^{}]*\}")
_LETTER = re.compile(r"\\([A-Za-z]+)|([A-Za-z])")
_UPRIGHT = re.compile(r"\\(?:mathrm|mathbf|text)\{[^{}]*\}")
# Commands that are no symbols, and Euler's number.
_SIGNS = {"frac", "tfrac", "sum", "partial", "cdot", "left", "right", "qquad", "top", "in", "log"}
_EULER = "e"


def symbols(latex: str) -> Iterator[str]:
    """The letters of a formula, as LaTeX writes them, without those of upright words.

    >>> list(symbols(r"\\frac{\\mathrm{d}\\nu_0}{2} e^s"))
    ['\\\\nu', 's']
    """
    for command, letter in _LETTER.findall(_UPRIGHT.sub("", latex)):
        if command and command not in _SIGNS:
            yield f"\\{command}"
        elif letter and letter != _EULER:
            yield letter


TERM_OF = {term.latex: term for term in TERMS if term.latex}


def names(term: Term) -> list[str]:
    """How the words of a term's name begin: what stands before the colon of its meaning."""
    words = re.findall(r"[A-Za-z]+", term.meaning.partition(":")[0].lower())
    return [word[:5] for word in words if len(word) > 2]


def undefined(sentence: str, latex: str, known: set[str]) -> list[str]:
    """Symbols that a sentence uses for the first time without saying their names."""
    missing = []
    for symbol in dict.fromkeys(symbols(latex)):
        if symbol not in known and not any(one in sentence.lower() for one in names(_term(symbol))):
            missing.append(symbol)
        known.add(symbol)
    return missing


def _term(symbol: str) -> Term:
    assert symbol in TERM_OF, f"{symbol} is not in the glossary"
    return TERM_OF[symbol]


def sentences(paragraph: str) -> list[str]:
    """Split where a sentence ends; a colon goes on with the same thought."""
    return re.split(r"(?<=[.?!])\s+(?=[A-Z“])", _PLACE.sub("0", paragraph))


def count_words(text: str) -> int:
    """Formulas and numbers count as one word."""
    return len(_FORMULA.sub("x", _PLACE.sub("x", text)).split())


@pytest.mark.parametrize("story", BOOK.stories, ids=lambda story: story.id)
def test_a_story_is_short_and_says_why(story: Story):
    texts = [text for chapter in story.chapters for text in (chapter.title, *chapter.body)]
    assert sum(map(count_words, [story.title, story.question, *texts])) <= MOST_WORDS
    for chapter in story.chapters:
        assert "because" in " ".join(chapter.body).lower() or chapter.derivation
    assert story.question.endswith("?")


def test_the_stories_have_the_chapters_that_their_titles_promise():
    assert [len(story.chapters) for story in BOOK.stories] == [6, 5]


@pytest.mark.parametrize("story", BOOK.stories, ids=lambda story: story.id)
def test_no_symbol_is_used_before_its_definition(story: Story):
    known: set[str] = set()
    missing = []
    for chapter in story.chapters:
        for paragraph in chapter.body:
            for sentence in sentences(paragraph):
                for latex in _FORMULA.findall(sentence):
                    missing += undefined(sentence, latex, known)
        for line in chapter.derivation.lines if chapter.derivation else ():
            missing += undefined(line.words, line.latex, known)
            for latex in _FORMULA.findall(line.words):
                missing += undefined(line.words, latex, known)
    assert missing == []


def test_a_symbol_without_its_name_is_noticed():
    assert undefined("It rises with $s$.", "s", set()) == ["s"]
    assert undefined("It rises with the score $s$.", "s", set()) == []
    assert undefined("It rises with $s$.", "s", {"s"}) == []
    with pytest.raises(AssertionError, match="not in the glossary"):
        undefined("The xi $\\xi$.", r"\xi", set())


def test_every_symbol_of_a_derivation_is_in_the_glossary():
    for derivation in DERIVATIONS:
        for line in derivation.lines:
            for latex in (line.latex, *_FORMULA.findall(line.words)):
                for symbol in symbols(latex):
                    assert _term(symbol), f"{derivation.id}: {latex}"


def test_every_greek_letter_of_a_claim_is_in_the_glossary():
    known = "".join(term.symbol for term in TERMS)
    for claim in CLAIMS.values():
        criteria = " ".join(criteria_of(claim))
        text = " ".join([claim.statement, claim.how_measured, claim.why, criteria, *claim.notes])
        assert set(re.findall("[α-ωΑ-Ω∇ℓ]", text)) <= set(known), claim.id


def test_a_derivation_is_of_a_claim():
    assert {derivation.id for derivation in DERIVATIONS} <= set(CLAIMS)
    assert BOOK.derivations == DERIVATIONS


def test_terms_are_unique_and_named():
    for field in ("symbol", "latex"):
        values = [getattr(term, field) for term in TERMS if getattr(term, field)]
        assert len(values) == len(set(values))
    for term in TERMS:
        assert names(term), term
        assert term.meaning.endswith("."), term
        assert term.meaning[0].isupper(), term


def all_texts() -> Iterator[tuple[str, str]]:
    """Every text with places for numbers, and where it stands."""
    for story, chapter in CHAPTERS:
        for paragraph in chapter.body:
            yield f"{story.id}/{chapter.id}", paragraph
    for text in (*BOOK.why, *BOOK.open_intro):
        yield "book", text


def test_every_place_is_a_criterion_of_its_claim():
    found = 0
    for where, text in all_texts():
        for place in places(text):
            claim = CLAIMS[place.claim]
            found += 1
            if place.criterion:
                assert place.criterion in criteria_of(claim), f"{where}: {place}"
        assert len(list(places(text))) == text.count("{") - _braces_of_formulas(text), where
    assert found > 30


def _braces_of_formulas(text: str) -> int:
    return sum(latex.count("{") for latex in _FORMULA.findall(text))


def criteria_of(claim: Claim) -> set[str]:
    own = {criterion.name for criterion in claim.criteria}
    return own | {c.name for control in claim.controls for c in control.criteria}


@pytest.mark.parametrize(("story", "chapter"), CHAPTERS, ids=lambda one: one.id)
def test_a_chapter_is_about_a_claim_and_shows_its_figure(story: Story, chapter: Chapter):
    assert chapter.claim in CLAIMS
    assert isinstance(chapter.figure, str)
    assert chapter.figure.partition("/")[0] == chapter.claim
    assert chapter.claim.startswith(story.id)


# Every claim


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=lambda claim: claim.id)
def test_a_claim_says_why_and_what_was_found(claim: Claim):
    assert 2 <= len(sentences(claim.why)) <= 4
    assert "because" in claim.why.lower()
    verdicts = {"holds", "fails", "inconclusive"} | ({"reported"} if claim.table else set())
    assert verdicts <= set(claim.finding)
    for title in claim.finding.values():
        assert 10 < len(title) <= LONGEST_TITLE
        assert not title.endswith(".")
    assert len(set(claim.finding.values())) == len(claim.finding)


# Numbers of a record


def _criterion(name: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "statistic": 0.0123,
        "interval": None,
        "threshold": 0.04,
        "bounded": "",
        "usable": 8,
    } | fields


_ENTRY: dict[str, Any] = {
    "verdict": "fails",
    "title": "as claimed",
    "finding": {"fails": "as found"},
    "criteria": [
        _criterion("loss"),
        _criterion("ratio", statistic=24.0, interval=[6.7, None], bounded="at least"),
        _criterion("samples", statistic=None, interval=[4096.0, None], bounded="not reached"),
        _criterion("rate", statistic=2.02, interval=[1.98, 2.06], threshold=[1.8, 2.2]),
    ],
    "controls": [{"criteria": [_criterion("|Σs| / m, of a control", statistic=0.5)]}],
}


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("a loss of {a.b:loss}, {a.b:loss!%}", "a loss of 0.0123, 1.23\u00a0%"),
        ("{a.b:rate!interval}", "2.02 [1.98, 2.06]"),
        ("{a.b:rate!threshold}, {a.b:loss!threshold}", "1.8 to 2.2, 0.04"),
        ("{a.b:ratio!interval}", "≥ 24 [6.7, ∞]"),
        ("{a.b:samples!interval}", "not reached"),
        ("{a.b:loss!interval}, {a.b:loss!seeds} seeds", "0.0123, 8 seeds"),
        ("{a.b:|Σs| / m, of a control}", "0.5"),
        ("{a.b}, {a.b!verdict}", "as found, fails"),
        ("{a.b:other}", "[not measured: other]"),
        ("{a.c:loss}, {a.c}", "[not run: a.c], [not run: a.c]"),
        (r"$\frac{1}{2}$ and {x}", r"$\frac{1}{2}$ and {x}"),
    ],
)
def test_places_are_filled(text: str, filled: str):
    assert fill(text, {"a.b": _ENTRY}) == filled


def test_a_claim_that_was_not_run_says_so():
    assert fill("{a.b:loss}", {"a.b": _ENTRY | {"verdict": "not run"}}) == "[not run: a.b]"


def test_an_unknown_form_is_an_error():
    with pytest.raises(Exception, match="unknown form 'percent'; expected one of '%'"):
        fill("{a.b:loss!percent}", {"a.b": _ENTRY})
