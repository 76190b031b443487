"""The fifth section of a study's page: which attention to try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from attnlab.report._page import Card, Section
from attnlab.report._study_parts import counted, missing

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_WANTED = {"variants": "Variants of attention"}


def try_section(
    data: Data, about: Mapping[str, Any], absent: Mapping[str, str], cards: tuple[Card, ...]
) -> Section:
    """Variants of attention from the best to the worst, and the advice that follows."""
    from attnlab.questions._ranking import apart_table, rank_table

    statement, figures = "Other ways to make scores into attention, on the same texts.", []
    if "variants" in data:
        ranking = data["variants"]
        statement = (
            f"Ways to make scores into attention, each with {counted(ranking.attrs['size'])} "
            "labels, "
            f"{int(ranking.attrs['steps'])} steps and the same tuning, over "
            f"{int(ranking.attrs['seeds'])} seeds."
        )
        figures.append(rank_table(ranking))
        if ranking.sizes["student"] > 1:
            figures.append(apart_table(ranking))
    advice = [str(each) for each in about.get("advice") or ()]
    return Section(
        "try",
        "What to try",
        statement,
        body=(
            *missing(_WANTED, data, absent, section="try"),
            *([" ".join(advice)] if advice else []),
        ),
        cards=cards,
        figures=tuple(figures),
        how_measured="Uniform is mean pooling. “attnlab compare FILES” has the long form: more "
        "variants, learning "
        "curves, the labels that each needs, and what is only speed.",
    )
