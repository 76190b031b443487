import re
import unicodedata

import numpy as np
import pytest

from attnlab._errors import AttnlabError
from attnlab.data import Tokenizer
from attnlab.data._tokens import _ascii_words, _words


def split_on_e(text: str) -> list[str]:
    return text.split("e")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Don't PANIC -- it's re-imagined", ["don't", "panic", "it's", "re-imagined"]),
        ("don’t and don't", ["don't", "and", "don't"]),
        ("rock 'n' roll's 'quoted'", ["rock", "n", "roll's", "quoted"]),
        ("costs 1,000.50 or 3.5; v2.x, 10.", ["costs", "1,000.50", "or", "3.5", "v2", "x", "10"]),
        ("Crème BRÛLÉE", ["crème", "brûlée"]),
        ("cre\u0300me", ["cr\u00e8me"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("映画は最高。すごい", ["映画は最高", "すごい"]),
        (
            "so 😀😀 👍🏽 👩\u200d💻 🇫🇷 ❤\ufe0f",
            ["so", "😀", "😀", "👍🏽", "👩\u200d💻", "🇫🇷", "❤\ufe0f"],
        ),
        ("nul\0byte <br /> a_b", ["nul", "byte", "br", "a_b"]),
        ("...!?", []),
        ("", []),
    ],
)
def test_words_of_many_scripts(text, words):
    assert Tokenizer()(text) == words


def test_case_and_punctuation_are_options():
    assert Tokenizer(lower=False)("Good Film") == ["Good", "Film"]
    assert Tokenizer(punctuation=True)("well... 'so' «très» bon!\0") == [
        "well",
        ".",
        ".",
        ".",
        "'",
        "so",
        "'",
        "«",
        "très",
        "»",
        "bon",
        "!",
    ]


@pytest.mark.parametrize("punctuation", [False, True])
def test_the_fast_pattern_agrees_with_the_general_one(punctuation):
    rng = np.random.default_rng(0)
    characters = list("ab19 '-.,_!?<>\t\0{}~^`@/")
    for _ in range(500):
        text = "".join(rng.choice(characters, 40))
        assert _ascii_words(punctuation).findall(text) == _words(punctuation).findall(text)


def test_with_punctuation_no_visible_character_is_lost():
    rng = np.random.default_rng(1)
    letters = [
        chr(n) for n in rng.integers(32, 0x3000, 4000) if unicodedata.category(chr(n))[0] in "LNPS"
    ]
    text = " ".join("".join(rng.choice(letters, 5)) for _ in range(200))
    plain = unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u2010", "-")
    assert "".join(Tokenizer(lower=False, punctuation=True)(text)) == re.sub(r"\s+", "", plain)


def test_a_tokeniser_of_ones_own():
    own = Tokenizer.from_function(split_on_e)
    assert own("a few Examples") == ["a f", "w Exampl", "s"]
    assert own.record() == {"function": f"{__name__}:split_on_e"}
    assert Tokenizer.from_record(own.record())("one") == ["on", ""]
    assert Tokenizer.from_function(f"{__name__}:split_on_e") == own


@pytest.mark.parametrize("settings", [{}, {"lower": False}, {"punctuation": True}])
def test_records_come_back(settings):
    assert Tokenizer.from_record(Tokenizer(**settings).record()) == Tokenizer(**settings)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Tokenizer.from_function(lambda text: text.split()).record(),
            "has no name 'module:function'",
        ),
        (lambda: Tokenizer.from_function("nowhere_at_all:split"), "cannot be imported"),
        (lambda: Tokenizer.from_function("re:nothing"), "cannot be imported"),
        (lambda: Tokenizer.from_function("split"), "expected 'module:function'"),
        (lambda: Tokenizer.from_function("re:__name__"), "is not a function"),
        (
            lambda: Tokenizer.from_function(lambda text: text)("abc"),
            "returned str 'abc'; expected a list of words",
        ),
        (lambda: Tokenizer.from_function("builtins:str.encode")("abc"), "expected a list of words"),
        (lambda: Tokenizer.from_record({"lower": "yes"}), "expected lower and punctuation"),
    ],
)
def test_bad_tokenisers_are_refused_in_words(make, message):
    with pytest.raises(AttnlabError, match=message):
        make()
