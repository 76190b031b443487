"""A figure in Python: as SVG, as columns, in Plotly's terms, in a notebook, in a file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._pdf import pdf
from attnlab.report._site import csv_of
from attnlab.report._svg import svg

_FORMS = (".svg", ".pdf", ".csv")


@dataclass(frozen=True)
class Drawing:
    """A figure of a page, for a paper or a notebook.

    >>> from attnlab.report import band_figure
    >>> drawing = Drawing(band_figure([0, 1], [[1.0, 2.0]], id="f", title="Loss"))
    >>> drawing.table["step"], drawing.svg[:4], list(drawing.plotly)
    ([0, 1], '<svg', ['data', 'layout'])
    """

    figure: Figure

    @property
    def svg(self) -> str:
        """The drawing as the text of an SVG file; figures with a menu show their first choice."""
        if not self.figure.plotly:
            raise AttnlabError(
                f"the figure {self.figure.id!r} is text on a page and has no drawing; its numbers are "
                "in `table`"
            )
        return svg(self.figure, standalone=True)

    @property
    def table(self) -> dict[str, list[Any]]:
        """Column name → values: what is drawn, to 6 significant digits."""
        return self.figure.table

    @property
    def plotly(self) -> dict[str, Any]:
        """Data and layout in Plotly's terms."""
        return self.figure.plotly

    def save(self, path: str | Path) -> Path:
        """Write it as ``.svg``, ``.pdf`` (with the extra ``plot``) or ``.csv``, as the name ends."""
        path = Path(path)
        form = path.suffix.lower()
        if form not in _FORMS:
            raise AttnlabError(
                f"cannot save a figure as {path.name!r}: expected a name that ends in "
                f"{', '.join(_FORMS)}"
            )
        content = {
            ".svg": lambda: self.svg.encode(),
            ".pdf": lambda: pdf(self.svg),
            ".csv": lambda: csv_of(self.figure).encode(),
        }[form]()
        try:
            path.write_bytes(content)
        except OSError as error:
            raise AttnlabError(
                f"cannot write {path} ({error}): expected a file in a folder that exists and can be "
                "written to"
            ) from error
        return path

    def _repr_html_(self) -> str:
        return self.svg
