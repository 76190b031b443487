from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr

from attnlab.report import (
    Card,
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

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="session")
def evil() -> str:
    """A word that would run a script if any text were not escaped."""
    return EVIL


def claim(
    name: str, verdict: str, expected: str, word: str = "plain", **more: Any
) -> dict[str, Any]:
    record = {
        "id": name,
        "statement": f"The sum stays, {word}.",
        "source": f"A paper, section 4, https://example.org/paper?a=1&b=2 {word}",
        "verdict": verdict,
        "expected": expected,
        "criteria": [
            {
                "name": f"median {word}",
                "kind": "estimate",
                "statistic": 0.0021,
                "interval": [0.0018, 0.0025],
                "threshold": 0.05,
                "verdict": verdict,
            },
            {
                "name": "w",
                "kind": "bound",
                "statistic": None,
                "interval": None,
                "threshold": 1,
                "verdict": "not run",
            },
        ],
        "seeds": 8,
        "controls": [{"id": f"Adam {word}", "should": "reject", "verdict": "fails", "ok": True}],
        "runs": {"asked": 8, "finished": 7, "failed": 1},
        "reason": f"because {word}",
    }
    return record | more


@pytest.fixture(name="claim")
def claim_maker():
    """A record of claims.json."""
    return claim


def figures(word: str) -> list[Figure]:
    """One figure of each kind, with a word in every text."""
    rng = np.random.default_rng(0)
    x, runs = np.arange(50), 1 + rng.random((8, 50)).cumsum(1)
    names: dict[str, Any] = {"title": word, "caption": word, "alt": word}
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
            choice_label=word,
            **labels,
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
    first = Section.from_claim(
        claim("a.b", "fails", "holds", EVIL),
        title=EVIL,
        figures=drawn[:2],
        how_measured=EVIL,
        refuted_by=EVIL,
        command=f"echo {EVIL} </script>",
        body=[EVIL],
    )
    second = Section(
        "general", EVIL, body=(EVIL,), cards=(Card(EVIL, EVIL, None, EVIL, EVIL, EVIL),)
    )
    third = Section("more", EVIL, EVIL, figures=tuple(drawn[2:]))
    return Page(
        EVIL, EVIL, EVIL, (first, second, third), provenance={EVIL: f"{EVIL} \u2028 ]]> <!--"}
    )
