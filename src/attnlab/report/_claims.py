"""The page of a reproduction: a section per claim, with the figures that suit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._guidelines import GUIDELINE_FIGURES
from attnlab.report._laws import LAWS
from attnlab.report._liu2021 import SAMPLES
from attnlab.report._liu2021_accuracy import ACCURACY
from attnlab.report._liu2021_landscape import LANDSCAPE_FIGURES
from attnlab.report._lu2021 import RELATION
from attnlab.report._lu2021_course import COURSE
from attnlab.report._page import Figure, Page, Section
from attnlab.report._render import write_folder
from attnlab.report._text import told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
Recipe = Callable[[Data], list[Figure]]
RECIPES: dict[str, Recipe] = {
    **LAWS,
    **RELATION,
    **COURSE,
    **SAMPLES,
    **ACCURACY,
    **LANDSCAPE_FIGURES,
    **GUIDELINE_FIGURES,
}


def claims_page(entries: Sequence[Mapping[str, Any]], data: Data, about: Mapping[str, Any]) -> Page:
    """One page from the entries of ``claims.json`` and the measured data sets."""
    sections = []
    for entry in entries:
        figures = _figures(entry, data)
        sections.append(
            Section.from_claim(
                entry,
                title=entry.get("title", ""),
                figures=figures,
                command=entry.get("command", ""),
                body=entry.get("notes") or (),
            )
        )
    held = sum(entry["verdict"] == "holds" for entry in entries)
    question = "Which claims about training attention models hold, when they are put to the test?"
    asked = sum(entry["verdict"] not in ("reported", "not run") for entry in entries)
    summary = f"{held} of {asked} claims hold in {about.get('seeds', '?')} seeds at {about.get('scale', '?')} scale."
    open_ = sum(entry["verdict"] == "inconclusive" for entry in entries)
    summary += f" {open_} of them {'is' if open_ == 1 else 'are'} undecided." if open_ else ""
    provenance = {str(key).capitalize(): told(value) for key, value in about.items()}
    return Page(
        "attnlab: claims put to the test", question, summary, tuple(sections), provenance=provenance
    )


def write_report(
    folder: str | Path, entries: Sequence[Mapping[str, Any]], data: Data, about: Mapping[str, Any]
) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(claims_page(entries, data, about), folder)


def _figures(entry: Mapping[str, Any], data: Data) -> list[Figure]:
    """The claim's own figures, or every criterion's value per seed."""
    if entry["verdict"] == "not run":
        return []
    recipe = RECIPES.get(entry["id"])
    if recipe is not None:
        try:
            return recipe(data)
        except KeyError:  # a record from before the figure's data was stored
            pass
    rows = [_criterion_row(c) for c in entry["criteria"] if _has_dots(c)]
    rows += [
        _criterion_row(c, f"control {control['id']}: ")
        for control in entry["controls"]
        for c in control.get("criteria", ())
        if _has_dots(c)
    ]
    if not rows:
        return []
    name = f"{entry['id']}.criteria"
    return [dots_figure(rows, id=name, title="Every criterion, seed by seed", x_label="value")]


def _has_dots(criterion: Mapping[str, Any]) -> bool:
    """Whether every run has a number that an axis from zero can show."""
    values = criterion.get("by_seed") or ()
    return bool(values) and all(value is not None and value >= 0 for value in values)


def _criterion_row(criterion: Mapping[str, Any], prefix: str = "") -> DotRow:
    threshold = criterion["threshold"]
    good = "above" if criterion.get("relation") == ">=" else "below"
    limit = threshold[1] if isinstance(threshold, list) else threshold
    return DotRow(prefix + criterion["name"], criterion["by_seed"], limit, good)
