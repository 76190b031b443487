from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab.report import (
    Card,
    ControlRow,
    CriterionRow,
    DotRow,
    Figure,
    Page,
    Section,
    band_figure,
    dots_figure,
    heat_table,
    relation_figure,
    theory_figure,
)

EVIL = "=<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def evil() -> str:
    """A word that would run a script if any text were not escaped, and is a formula to a spreadsheet."""
    return EVIL


def judged(name: str, verdict: str, expected: str, word: str = "plain", **more: Any) -> Section:
    """A section with a verdict, and with a word in every text."""
    given: dict[str, Any] = {
        "title": f"The sum {word}",
        "statement": f"The sum stays, {word}.",
        "criteria": (
            CriterionRow(
                f"median {word}", "estimate", 0.0021, (0.0018, 0.0025), 0.05, verdict, "≤"
            ),
            CriterionRow("w", "bound", threshold=1),
        ),
        "controls": (ControlRow(f"Adam {word}", "reject", "fails", True),),
        "source": f"A paper, section 4, https://example.org/paper?a=1&b=2 {word}",
        "reason": f"because {word}",
        "facts": {"Runs": f"8 asked, 7 finished, 1 failed {word}"},
    }
    return Section(name, verdict=verdict, expected=expected, **(given | more))


@pytest.fixture(scope="session", name="judged")
def judged_maker():
    """Makes sections with a verdict."""
    return judged


def figures(word: str) -> list[Figure]:
    """One figure of each kind, with a word in every text."""
    rng = np.random.default_rng(0)
    x, runs = np.arange(50), 1 + rng.random((8, 50)).cumsum(1)
    names: dict[str, Any] = {"title": word, "caption": word}
    labels: dict[str, Any] = names | {"x_label": f"x {word}", "y_label": f"y {word}"}
    coords = {"seed": [3, 4], "step": [0, 10, 20], "word": ["good", word]}
    score = xr.DataArray(rng.random((2, 3, 2)), dims=("seed", "step", "word"), coords=coords)
    chosen = {"good": runs, word: 2 * runs}
    rows = [DotRow(word, 10.0 ** rng.normal(-15, 1, 8), 1e-12), DotRow("zero", [0.0, 1.0], 1e-12)]
    return [
        band_figure(
            x,
            {word: runs, "b": runs},
            id="band",
            lines={word: 2.0},
            marks={word: 9.0},
            log_y=True,
            **labels,
        ),
        theory_figure(
            x,
            chosen,
            {key: v * 1.01 for key, v in chosen.items()},
            id="theory",
            y_label=f"y {word}",
            **names,
        ),
        relation_figure(score, score + 1, ([0, 1], [1, 2]), id="relation", **labels),
        dots_figure(rows, id="dots", x_label=word, **names),
        heat_table(
            [word, "b"], [word], [[word], ["x"]], id="heat", tones=[["good"], ["bad"]], **names
        ),
    ]


@pytest.fixture(scope="session")
def evil_page() -> Page:
    """A page with the evil word in every text that it has."""
    drawn = figures(EVIL)
    first = judged(
        "a.b",
        "fails",
        "holds",
        EVIL,
        figures=tuple(drawn[:2]),
        how_measured=EVIL,
        refuted_by=EVIL,
        command=f"echo {EVIL} </script>",
        body=(EVIL,),
    )
    second = Section(
        "general", EVIL, body=(EVIL,), cards=(Card(EVIL, EVIL, None, EVIL, EVIL, EVIL),)
    )
    third = Section("more", EVIL, EVIL, figures=tuple(drawn[2:]))
    return Page(
        EVIL, EVIL, EVIL, (first, second, third), provenance={EVIL: f"{EVIL} \u2028 ]]> <!--"}
    )
