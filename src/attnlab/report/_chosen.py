"""Several drawings of one kind in one figure, of which the reader chooses one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from attnlab._errors import AttnlabError
from attnlab.report._page import Figure
from attnlab.report._prepare import log_ticks, of_choice


def chosen(
    figures: Mapping[str, Figure],
    *,
    id: str,
    title: str,
    caption: str = "",
    alt: str = "",
    choice_label: str = "Show",
) -> Figure:
    """One figure from several on the same axes; a menu says which is shown.

    All of the layout but the axes' titles is the first one's.

    >>> from attnlab.report import band_figure
    >>> each = {name: band_figure([0, 1], [[1.0, 2.0]], id="f", title="t") for name in ("score", "norm")}
    >>> both = chosen(each, id="f", title="Score or norm")
    >>> both.choices, list(both.table)
    (('score', 'norm'), ['step', 'score · value: seed 0', 'norm · value: seed 0'])
    """
    if not figures:
        raise AttnlabError(
            f"figure {id!r} has nothing to choose from; expected at least one drawing"
        )
    first = next(iter(figures.values()))
    if len(figures) == 1:
        traces, choices = first.plotly["data"], ()
    else:
        traces = [
            of_choice(t, k)
            for k, figure in enumerate(figures.values())
            for t in figure.plotly["data"]
        ]
        choices = tuple(str(name) for name in figures)
    notes = dict.fromkeys(figure.note for figure in figures.values() if figure.note)
    return Figure(
        id=id,
        title=title,
        caption=caption or first.caption,
        alt=alt or f"{title}. One of {', '.join(figures)}, as chosen.",
        plotly={"data": traces, "layout": _layout(list(figures.values()), traces)},
        table=_tables(figures) if choices else first.table,
        note=" ".join(
            [*list(notes)[:1], *(["Likewise in the other drawings."] if len(notes) > 1 else [])]
        ),
        choices=choices,
        choice_label=choice_label,
    )


def _layout(figures: list[Figure], traces: list[dict[str, Any]]) -> dict[str, Any]:
    """The first layout, with logarithmic ticks that serve all drawings, and each drawing's own axis
    titles.
    """
    first = figures[0].plotly["layout"]
    axes = [key for key in first if key.startswith(("xaxis", "yaxis"))]
    titles = [
        {f"{a}.title.text": f.plotly["layout"][a]["title"]["text"] for a in axes} for f in figures
    ]
    style = first | (
        {"meta": {"titles": titles}} if any(each != titles[0] for each in titles) else {}
    )
    for name in (
        key for key in axes if first[key].get("type") == "log" and not _same_ticks(figures, key)
    ):
        side, short = name[0], name.replace("axis", "")
        own = [t.get(side, ()) for t in traces if t.get(f"{side}axis", side) == short]
        values = [np.array([v for v in row if v is not None], dtype=float) for row in own]
        bare = {
            k: v
            for k, v in first[name].items()
            if k not in ("dtick", "tickmode", "tickvals", "ticktext")
        }
        style[name] = bare | log_ticks(values, fine=3.5)
    return style


def _same_ticks(figures: list[Figure], name: str) -> bool:
    """Whether all drawings name the same ticks, which then serve all."""
    ticks = [figure.plotly["layout"][name].get("tickvals") for figure in figures]
    return ticks[0] is not None and all(each == ticks[0] for each in ticks)


def _tables(figures: Mapping[str, Figure]) -> dict[str, list[Any]]:
    """All columns side by side under their choice's name; a first column that all share stands
    once.
    """
    table: dict[str, list[Any]] = {}
    for choice, figure in figures.items():
        for place, (name, values) in enumerate(figure.table.items()):
            if place == 0 and table.setdefault(name, values) == values:
                continue
            table[f"{choice} · {name}"] = values
    return table
