"""Derivations that the story of this paper shows."""

from attnlab.report import Derivation

DERIVATIONS: tuple[Derivation, ...] = ()
