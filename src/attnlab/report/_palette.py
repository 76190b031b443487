"""Colours: Okabe and Ito's palette, which people with any colour vision tell apart, and its twin
for dark pages.

Figures are declared in the light colours; the page swaps each for its twin when it is shown dark.
"""

from __future__ import annotations

INK = "#1c2230"
MUTED = "#5a6373"
GRID = "#e6e8ec"
PAPER = "#ffffff"
PANEL = "#f5f6f8"

BLUE = "#0072b2"
VERMILLION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
ORANGE = "#e69f00"
SKY = "#56b4e9"

SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK)
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot", "solid")
SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star", "x")

DARK = {
    INK: "#e7eaf0",
    MUTED: "#a5afbf",
    GRID: "#2c333f",
    PAPER: "#171b22",
    PANEL: "#1f252f",
    BLUE: "#5cb0ea",
    VERMILLION: "#ff8a47",
    GREEN: "#34c79a",
    PURPLE: "#e5a3c8",
    ORANGE: "#f2b638",
    SKY: "#a6dbf8",
}


def faded(color: str, share: float) -> str:
    """The colour with an opacity, as ``#rrggbbaa``.

    >>> faded("#0072b2", 0.5)
    '#0072b280'
    """
    return f"{color}{round(255 * share):02x}"
