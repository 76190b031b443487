"""What does attention do on real text? The sweeps behind Lu et al. (2021) on sentiment sentences
(docs/theory.md#a7).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import xarray as xr

from attnlab.studies._study import Data, Scale, Study, arm_plan
from attnlab.studies._text import ROTTEN_TOMATOES, WORK, text_parts
from attnlab.sweeps import Plan

SEN_WORDS = 100  # of the highest score, at the best validation loss

# Figures of the linear head hardly depend on d (20, 50 and 100 were tried); its best validation
# loss comes at about step 12 500 on SST-2 and 14 750 on Rotten Tomatoes.
_LINEAR: dict[Scale, dict[str, Any]] = {
    "paper": {"head": "linear", "embedding_dim": 100, "steps": 30_000},
    "quick": {"head": "linear", "embedding_dim": 50, "steps": 18_000},
}


def named_source(source: str) -> str:
    """A source as settings hold it: a path as a whole one, so that it means the same in every
    process.
    """
    return source if source == ROTTEN_TOMATOES else str(Path(source).expanduser().resolve())


@lru_cache(maxsize=8)
def text_study(source: str = ROTTEN_TOMATOES) -> Study:
    """The study of one source: ``"rotten-tomatoes"``, a file, or a folder with training, validation
    and test file.

    Its arms are the fixed head, the linear head, and the fixed head on permuted labels, the
    control. The source is read when the plan is made: what is absent is told then.
    """
    given = named_source(source)

    def plan(scale: Scale, seeds: int) -> Plan:
        base = {"source": given, "data": text_parts(given).hash, "surroundings": scale == "paper"}
        # The longest first, so that no process waits at the end.
        arms = {
            "linear": base | _LINEAR[scale],
            "fixed": base,
            "permuted": base | {"permuted": True},
        }
        few = {
            "linear": max(1, seeds // 2) if scale == "quick" else seeds,
            "permuted": max(1, seeds // 4),
        }
        return arm_plan(WORK, name, arms, dict.fromkeys(arms, seeds) | few)

    name = "text" if given == ROTTEN_TOMATOES else f"text {Path(given).name}"
    return Study(name, plan, _measure)


def _measure(arms: Data) -> Data:
    return {f"text {label}": measure_text(run) for label, run in arms.items()}


def measure_text(run: xr.Dataset) -> xr.Dataset:
    """All of the run, and with dimension ``seed`` what claims judge of it.

    - ``best_accuracy``, ``best_excess``, ``best_purity``: of the step of the lowest validation
      loss; ``highest_excess``: the highest excess purity of the attended word along training;
    - ``purity_trend``, ``frequency_trend``: Spearman's correlation with the step, from the first
      recorded step on at which attention is no longer even; ``least_…``: the same of the least
      attended word;
    - ``late_purity_rise``, ``late_excess_rise``: from the best step to the last; what the first has
      more is rarity.
    """
    from attnlab.dynamics import rank_agreement

    steps = run.step.astype(float)
    best = steps == run.best_step
    later = run.sel(step=slice(1, None))
    found: dict[str, xr.DataArray] = {"highest_excess": run.attended_excess.max("step")}
    for name, variable in (
        ("accuracy", "accuracy_test"),
        ("excess", "attended_excess"),
        ("purity", "attended_purity"),
    ):
        found[f"best_{name}"] = run[variable].where(best).max("step")
    for prefix, source in (("", "attended"), ("least_", "least_attended")):
        for name in ("purity", "frequency"):
            found[f"{prefix}{name}_trend"] = rank_agreement(
                later[f"{source}_{name}"], later.step.astype(float)
            )
    last = run.isel(step=-1, drop=True)
    for name in ("purity", "excess"):
        found[f"late_{name}_rise"] = last[f"attended_{name}"] - found[f"best_{name}"]
    return run.assign(found)
