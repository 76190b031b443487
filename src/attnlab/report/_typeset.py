"""Texts with mathematics and with terms of a glossary, as HTML; nothing is computed in the browser."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markupsafe import Markup, escape

from attnlab._errors import AttnlabError
from attnlab.report._page import VERDICTS
from attnlab.report._story import Term

_MATH = re.compile(r"\$([^$]+)\$")
_SPACE = "http://www.w3.org/1998/Math/MathML"
_AROUND = re.compile(r"\s*\([^)]*\)$")  # “τ (time)” stands as τ in a text
# Symbols and verdicts that are words of English, too: in a text they may mean something else.
_ALSO_WORDS = {"a", "A", "I", *VERDICTS}
_SMALL = "₀-₉⁰¹²³⁴-⁹"


def mathml(latex: str, *, display: bool = False) -> Markup:
    """LaTeX, without dollars, as MathML.

    >>> "<mi>ν</mi>" in mathml(r"\\nu^2")
    True
    """
    return Glossary(()).math(latex, display=display)


@cache
def _element(latex: str, display: bool) -> str:
    try:
        return convert(latex, display="block" if display else "inline")
    except Exception as error:
        raise AttnlabError(
            f"the formula ${latex}$ cannot be typeset ({type(error).__name__} {error}): expected "
            "LaTeX mathematics"
        ) from error


class Glossary:
    """Terms that are explained wherever they stand: in formulas by their LaTeX, in texts by their
    symbol.
    """

    def __init__(self, terms: Sequence[Term], page: str = "glossary.html"):
        self.terms, self.page = tuple(terms), page
        self.ids = _ids(self.terms)
        self._of_tree: dict[str, list[str]] = {}
        self._of_word: dict[str, list[str]] = {}
        for term, name in zip(self.terms, self.ids, strict=True):
            if term.latex and (key := _key(_core(term.latex))):
                self._of_tree.setdefault(key, []).append(name)
            word = _AROUND.sub("", term.symbol)
            if word and word not in _ALSO_WORDS:
                self._of_word.setdefault(word, []).append(name)
                if len(word) > 3:
                    self._of_word.setdefault(f"{word}s", []).append(name)
        self._words = self._pattern()
        self._made: dict[tuple[str, bool], Markup] = {}

    def math(self, latex: str, *, display: bool = False) -> Markup:
        """A formula; what the glossary explains in it is marked, and reached by keyboard with it."""
        if (latex, display) in self._made:
            return self._made[latex, display]
        root = ElementTree.fromstring(_element(latex, display))
        found: dict[str, None] = {}
        self._mark(root, found)
        ElementTree.register_namespace("", _SPACE)
        text = ElementTree.tostring(root, encoding="unicode")
        if found:
            text = f'<span class="math" tabindex="0" data-term="{" ".join(found)}">{text}</span>'
        self._made[latex, display] = Markup(text)
        return self._made[latex, display]

    def _mark(self, element: ElementTree.Element, found: dict[str, None]) -> None:
        """Give the names of its terms to each part that is a term; what it contains is none then."""
        for part in element:
            names = self._of_tree.get(_key(part))
            if names:
                part.set("data-term", " ".join(names))
                found.update(dict.fromkeys(names))
            else:
                self._mark(part, found)

    def prose(self, text: str) -> Markup:
        """Escaped text in which terms lead to the glossary."""
        if self._words is None or not text:
            return escape(text)
        parts, end, seen = [], 0, set()
        for match in self._words.finditer(text):
            word = match.group()
            names = self._of_word.get(word) or self._of_word[word[0].lower() + word[1:]]
            if len(word) > 3 and names[0] in seen:  # a word is explained once in a text
                continue
            seen.add(names[0])
            marked = Markup('<a class="term" href="{}#{}" data-term="{}">{}</a>').format(
                self.page, names[0], " ".join(names), word
            )
            parts += [escape(text[end : match.start()]), marked]
            end = match.end()
        return Markup("").join([*parts, escape(text[end:])])

    def typeset(self, text: str) -> Markup:
        """Text of ours: formulas between dollars, and terms that lead to the glossary."""
        parts = _MATH.split(text)
        texts = [self.math(part) if k % 2 else self.prose(part) for k, part in enumerate(parts)]
        return Markup("").join(texts)

    def _pattern(self) -> re.Pattern[str] | None:
        """Any symbol or word, the longest first; a word may stand at the start of a sentence, too."""
        words = set(self._of_word)
        words |= {w[0].upper() + w[1:] for w in words if len(w) > 3 and w[0].islower()}
        words -= {w for w in words if w not in self._of_word and w[0].lower() + w[1:] not in words}
        if not words:
            return None
        ordered = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
        before = rf"(?<![^\W{_SMALL}])(?<!['’^_\\/.-])"
        return re.compile(rf"{before}(?:{ordered})(?![^\W{_SMALL}])(?!-\w|\.\w)")


def plain_math(text: str) -> str:
    """Text of ours for a place that has no formulas, such as a page's title: without dollars."""
    return _MATH.sub(lambda found: found[1], text)


def _ids(terms: Sequence[Term]) -> tuple[str, ...]:
    """An anchor for each term, from its LaTeX or its letters."""
    names: dict[str, None] = {}
    for term in terms:
        raw = f"{term.symbol} {term.latex}" if len(term.symbol) < 4 else term.symbol
        name = "term-" + "-".join(re.findall(r"[A-Za-z0-9]+", raw))
        k = 2
        while (own := name if k == 2 else f"{name}-{k - 1}") in names:
            k += 1
        names[own] = None
    return tuple(names)


def _core(latex: str) -> ElementTree.Element:
    """What a formula consists of: its only part, or the formula itself."""
    (row,) = ElementTree.fromstring(_element(latex, False))
    while row.tag.endswith("mrow") and len(row) == 1:
        row = row[0]
    return row


def _key(element: ElementTree.Element) -> str:
    """The part as text, the same wherever it stands."""
    inner = "".join(map(_key, element))
    text = (element.text or "").strip()
    tag = element.tag.rpartition("}")[2]
    return f"<{tag}>{text}{inner}</{tag}>" if text or inner else ""
