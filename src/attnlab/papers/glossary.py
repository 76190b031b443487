"""Symbols and words of both papers as our pages use them."""

from attnlab.report import Term

TERMS: tuple[Term, ...] = ()
