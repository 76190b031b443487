"""Tokenisers: one Unicode-aware regular expression, or a user-defined function."""

from __future__ import annotations

import functools
import importlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from attnlab._errors import AttnlabError

_JOINERS = "'-"
_INVISIBLE = "\u200c\u200d"  # joiners that Persian, Hindi and others write within a word
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001f1e5\U0001f200-\U0001f3fa\U0001f400-\U0001faff"
_MODIFIERS = "\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"


LONGEST = 100  # characters of a word


@dataclass(frozen=True)
class Tokenizer:
    """Splits a text into words.

    A word is a run of letters, digits and their combining marks, with apostrophes and single
    hyphens inside (``don't``, ``re-imagining``); a number keeps its points and commas (``3.5``); an
    emoji is a word. Scripts without spaces give one word per run. Text is first normalised to NFC,
    and ``’`` to ``'``; a run of more than 100 characters is cut.

    - ``lower``: convert to lower case. ``punctuation``: every other visible character is a word;
      otherwise it is dropped.
    - ``function``: a user-defined function text → words instead; see ``from_function``.

    >>> Tokenizer()("Don't miss it: 3.5 stars, a re-imagining! 👍🏽")
    ["don't", 'miss', 'it', '3.5', 'stars', 'a', 're-imagining', '👍🏽']
    >>> Tokenizer(lower=False, punctuation=True)("So good!!")
    ['So', 'good', '!', '!']
    """

    lower: bool = True
    punctuation: bool = False
    function: Callable[[str], Iterable[str]] | None = None
    name: str | None = field(default=None)

    @classmethod
    def from_function(cls, given: str | Callable[[str], Iterable[str]]) -> Tokenizer:
        """A user-defined tokeniser: a function text → words, or its name ``"module:function"``.

        The function gets the text as in the file. A function without such a name cannot be stored
        with a model.

        >>> Tokenizer.from_function("builtins:str.split")("a b  c")
        ['a', 'b', 'c']
        """
        if isinstance(given, str):
            return cls(lower=False, function=_imported(given), name=given)
        if not callable(given):
            raise AttnlabError(
                f"tokenizer={given!r}: expected a function text → words, or its name "
                "'module:function'"
            )
        return cls(lower=False, function=given, name=_name_of(given))

    def __call__(self, text: str) -> list[str]:
        """The words of a text, in order."""
        if self.function is not None:
            return _cut(_checked(self.function(text), self.name))
        if self.lower:
            text = text.lower()
        if text.isascii():
            return _cut(_ascii_words(self.punctuation).findall(text))
        # Typographic apostrophes and hyphens would split a word: replace them by ASCII ones.
        plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2010", "-")
        return _cut(_words(self.punctuation).findall(plain))

    def record(self) -> dict[str, Any]:
        """Settings for JSON, the input of ``from_record``."""
        if self.function is None:
            return {"lower": self.lower, "punctuation": self.punctuation}
        if self.name is None:
            raise AttnlabError(
                f"the tokeniser {self.function!r} has no name 'module:function' by which it could "
                "be found again; define it at the top level of a module that can be imported"
            )
        return {"function": self.name}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Tokenizer:
        """The tokeniser of a record.

        >>> Tokenizer.from_record(Tokenizer(punctuation=True).record()) == Tokenizer(punctuation=True)
        True
        """
        if set(record) == {"function"} and isinstance(record["function"], str):
            return cls.from_function(record["function"])
        if set(record) == {"lower", "punctuation"} and all(
            isinstance(value, bool) for value in record.values()
        ):
            return cls(record["lower"], record["punctuation"])
        raise AttnlabError(
            f"tokeniser {dict(record)!r}: expected lower and punctuation (true or false), or "
            "function"
        )


def _word_pattern(letter: str) -> str:
    return rf"{letter}+(?:(?:[{_JOINERS}]|(?<=\d)[.,](?=\d)){letter}+)*"


@functools.cache
def _ascii_words(punctuation: bool) -> re.Pattern[str]:
    """The same as ``_words`` for ASCII text, three times as fast."""
    other = r"|[!-/:-@\[-^`{-~]" if punctuation else ""
    return re.compile(r"\w+(?:(?:['-]|(?<=\d)[.,](?=\d))\w+)*" + other, re.ASCII)


@functools.cache
def _words(punctuation: bool) -> re.Pattern[str]:
    letter = rf"[\w{_marks()}{_INVISIBLE}]"
    emoji = rf"[{_EMOJI}][{_MODIFIERS}]*(?:\u200d[{_EMOJI}][{_MODIFIERS}]*)*"
    # An emoji goes first: the joiner inside one is also a joiner of letters.
    pattern = rf"{_FLAG}|{emoji}|(?=\w){_word_pattern(letter)}"
    if punctuation:
        pattern += (
            r"|[^\s\w\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
        )
    return re.compile(pattern)


def _marks() -> str:
    """All combining marks as ranges for a character class; Python's ``\\w`` has none of them."""
    numbers = [
        n
        for n in range(0x300, 0x20000)
        if unicodedata.category(chr(n))[0] == "M" and not 0xFE00 <= n <= 0xFE0F
    ]
    ranges: list[list[int]] = []
    for n in numbers:
        if ranges and ranges[-1][1] == n - 1:
            ranges[-1][1] = n
        else:
            ranges.append([n, n])
    return "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in ranges)


def _cut(words: list[str]) -> list[str]:
    """Words of bounded length: word names are stored in arrays as wide as the longest."""
    if words and max(map(len, words)) > LONGEST:
        return [word[:LONGEST] for word in words]
    return words


def _checked(words: Any, name: str | None) -> list[str]:
    found = None if isinstance(words, str) else list(words)
    if found is None or any(not isinstance(word, str) for word in found):
        got = f"{type(words).__name__} {str(words)[:40]!r}"
        raise AttnlabError(
            f"the tokeniser {name or 'given'} returned {got}; expected a list of words"
        )
    return found


def _imported(name: str) -> Callable[[str], Iterable[str]]:
    module, _, path = name.partition(":")
    try:
        start = importlib.import_module(module) if module and path else None
        found: Any = functools.reduce(getattr, path.split("."), start)
    except (ImportError, AttributeError) as error:
        raise AttnlabError(
            f"tokenizer={name!r} cannot be imported ({error}); expected 'module:function'"
        ) from error
    if not callable(found):
        raise AttnlabError(
            f"tokenizer={name!r} is not a function: expected 'module:function', a function text → "
            "words"
        )
    return cast("Callable[[str], Iterable[str]]", found)


def _name_of(function: Callable[..., Any]) -> str | None:
    """``"module:function"``, if that name resolves to this function."""
    name = f"{getattr(function, '__module__', '')}:{getattr(function, '__qualname__', '')}"
    if name.startswith(("__main__:", ":")) or name.endswith(":"):
        return None
    try:
        return name if _imported(name) is function else None
    except AttnlabError:
        return None
