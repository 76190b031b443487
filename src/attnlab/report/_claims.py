"""The page of a reproduction: a section per claim, with the figures that suit it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from attnlab.report._bands import band_figure, theory_figure
from attnlab.report._dots import DotRow, dots_figure
from attnlab.report._heat import heat_table
from attnlab.report._page import Figure, Page, Section
from attnlab.report._relation import relation_figure
from attnlab.report._render import write_page
from attnlab.report._text import number

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
Recipe = Callable[[Data], list[Figure]]
_HEAD_NAMES = {"fixed": "fixed head", "linear": "linear head", "two_layer": "two-layer head"}


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
    summary = (
        f"{held} of {len(entries)} claims hold in {about.get('seeds', '?')} seeds at {about.get('scale', '?')} scale."
    )
    provenance = {str(key).capitalize(): _told(value) for key, value in about.items()}
    return Page("attnlab: claims put to the test", question, summary, tuple(sections), provenance=provenance)


def write_report(
    folder: str | Path, entries: Sequence[Mapping[str, Any]], data: Data, about: Mapping[str, Any]
) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    out = Path(folder)
    page = claims_page(entries, data, about)
    path = write_page(page, out / "report.html")
    figures = out / "figures"
    figures.mkdir(exist_ok=True)
    for figure in (f for section in page.sections for f in section.figures):
        if figure.plotly:
            (figures / f"{figure.id}.json").write_text(json.dumps(figure.plotly, ensure_ascii=False) + "\n", "utf-8")
        with (figures / f"{figure.id}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(figure.table)
            writer.writerows(zip(*figure.table.values(), strict=False))
    return path


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


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
    rows = [_criterion_row(c) for c in entry["criteria"] if c.get("by_seed") and min(c["by_seed"]) >= 0]
    rows += [
        _criterion_row(c, f"control {control['id']}: ")
        for control in entry["controls"]
        for c in control.get("criteria", ())
        if c.get("by_seed") and min(c["by_seed"]) >= 0
    ]
    if not rows:
        return []
    name = f"{entry['id']}.criteria"
    return [dots_figure(rows, id=name, title="Every criterion, seed by seed", x_label="value")]


def _criterion_row(criterion: Mapping[str, Any], prefix: str = "") -> DotRow:
    threshold = criterion["threshold"]
    good = "above" if criterion.get("relation") == ">=" else "below"
    limit = threshold[1] if isinstance(threshold, list) else threshold
    return DotRow(prefix + criterion["name"], criterion["by_seed"], limit, good)


def _per_seed(values: xr.DataArray, *, largest: bool = True) -> np.ndarray:
    others = [d for d in values.dims if d != "seed"]
    reduced = values.max(others) if largest else values.median(others)
    return reduced.values


def _score_sum(data: Data) -> list[Figure]:
    reference, single, adam = data["reference"], data["float32"], data["Adam"]
    rows = [
        DotRow(_HEAD_NAMES[h], _per_seed(reference.score_sum_error.sel(head=h)), 1e-13)
        for h in reference["head"].values.tolist()
    ]
    rows.append(DotRow("fixed head, float32", _per_seed(single.score_sum_error), 1e-5))
    rows.append(DotRow("control: Adam", _per_seed(adam.score_sum_error), 1e-13))
    return [
        dots_figure(
            rows, id="score_sum", title="The sum of scores stays where it was, to rounding error",
            x_label="largest |Σs| / Σ|s| of a run",
            caption="One dot per seed: the worst recorded step. Adam, the control, moves the sum as far as the scores.",
        )
    ]  # fmt: skip


def _balance(data: Data) -> list[Figure]:
    sizes = data["step sizes"].balance_error
    series = {
        _HEAD_NAMES[h]: sizes.sel(head=h).transpose("seed", "step_size").values for h in sizes["head"].values.tolist()
    }
    reference = data["reference"].balance_error
    limits = {"fixed": 0.5, "linear": 3e-4, "two_layer": 1e-3}
    rows = [
        DotRow(("control: " if h == "fixed" else "") + _HEAD_NAMES[h], reference.sel(head=h).values, limits[h])
        for h in ("linear", "two_layer", "fixed")
    ]
    return [
        band_figure(
            sizes.step_size.values, series, id="balance_step", title="Half the step, half the drift",
            x_label="step size", y_label="drift / ‖WWᵀ‖", log_x=True, log_y=True,
            caption="Drift of EᵀE − WWᵀ after equal training time; a line of slope one is proportional to the step.",
        ),
        dots_figure(
            rows, id="balance_drift", title="Drift at the last step of the reference runs", x_label="drift / ‖WWᵀ‖",
            caption="With a fixed head nothing is conserved: the control.",
        ),
    ]  # fmt: skip


def _query_balance(data: Data) -> list[Figure]:
    query = data["trained query"]
    drift = query.query_balance_error
    rows = [
        DotRow("1 − cos(q, q₀)", _per_seed(query.query_turn), 1e-12),
        DotRow("largest |Σκ|", _per_seed(query.key_sum), 1e-13),
        DotRow("control: 1 − cos(q, q₀), Adam", query.query_turn_adam.values, 1e-12),
        DotRow("control: largest |Σκ|, Adam", query.key_sum_adam.values, 1e-13),
    ]
    return [
        band_figure(
            drift.step_size.values, {"trained query": drift.transpose("seed", "step_size").values}, id="query_step",
            title="The drift of KᵀK − qqᵀ is proportional to the step", x_label="step size", y_label="drift / |q|²",
            log_x=True, log_y=True,
        ),
        dots_figure(
            rows, id="query_exact", title="Direction of the query, sum of the keys", x_label="largest value of a run",
            caption="Both are kept to rounding error by descent and lost by Adam.",
        ),
    ]  # fmt: skip


def _identity(data: Data) -> list[Figure]:
    reference, rules = data["reference"], data["optimizers"]
    rows = [
        DotRow(_HEAD_NAMES[h], _per_seed(reference.identity_error.sel(head=h)), 1e-12)
        for h in reference["head"].values.tolist()
    ]
    rows.append(DotRow("control: momentum", _per_seed(rules.identity_error.sel(rule="momentum 0.9")), 1e-12))
    return [
        dots_figure(
            rows, id="identity", title="Both sides of the identity agree to rounding error",
            x_label="largest relative difference of a run",
        )
    ]  # fmt: skip


def _optimizers(data: Data) -> list[Figure]:
    rules = data["optimizers"]
    quantities = [
        ("sum of scores, worst", rules.score_sum_error, True, 1e-13),
        ("exact identity, worst", rules.identity_error, True, 1e-12),
        ("score–norm relation, median", rules.sen_error, False, 0.004),
        ("EᵀE − WWᵀ, worst over time", rules.balance_error, True, 1e-3),
    ]
    names = rules.rule.values.tolist()
    cells, tones = [], []
    for name in names:
        row = [
            float(np.nanmax(v.sel(rule=name).values) if top else np.nanmedian(v.sel(rule=name).values))
            for _, v, top, _ in quantities
        ]
        cells.append([number(value) for value in row])
        tones.append(
            ["good" if v <= q[3] else "mixed" if v <= 0.05 else "bad" for v, q in zip(row, quantities, strict=True)]
        )
    loss = {name: rules.loss.sel(rule=name).transpose("seed", "step").values for name in names}
    return [
        heat_table(
            names, [q[0] for q in quantities], cells, id="who_keeps_what", title="Which optimiser keeps which law",
            tones=tones, caption="Relative errors over all seeds; kept (to the claim's bound), roughly kept, lost.",
        ),
        band_figure(
            rules.step.values, loss, id="optimizers_loss", title="Training loss under each rule", y_label="loss",
            log_y=True, caption="Keeping or breaking a law says nothing about how fast the loss falls.",
        ),
    ]  # fmt: skip


def _sen(data: Data) -> list[Figure]:
    reference = data["reference"]
    fixed = reference.sel(head="fixed")
    words = fixed.word.values.tolist()[:4]
    measured = {w: fixed.scaled_norm.sel(word=w).transpose("seed", "step").values for w in words}
    predicted = {w: fixed.predicted_norm.sel(word=w).transpose("seed", "step").values for w in words}
    curve = np.linspace(0, float(np.nanmax(reference.score.values)), 200)
    theory = np.sqrt(2 * (curve + np.expm1(curve) / 20))
    errors = {
        _HEAD_NAMES[h]: 100 * reference.sen_error.sel(head=h).median("word").transpose("seed", "step").values
        for h in reference["head"].values.tolist()
    }
    return [
        relation_figure(
            fixed.score, fixed.scaled_norm, (curve, theory), id="sen_relation",
            title="Every word moves along one curve", x_label="score s", y_label="|q||ν|",
            caption="Topic words of all seeds under the fixed head; move the slider through training.",
        ),
        theory_figure(
            fixed.step.values, measured, predicted, id="sen_theory", title="The norm predicted from the score alone",
            y_label="|q||ν|", caption="Measured norms (band over seeds), the prediction, and the residual below.",
        ),
        band_figure(
            reference.step.values, errors, id="sen_error", title="Error of the relation along training",
            y_label="error in %, median word", lines={"bound on the median": 0.4},
            caption="Only words with s > 0.05 count; bands are seeds.",
        ),
    ]  # fmt: skip


RECIPES: dict[str, Recipe] = {
    "laws.score_sum": _score_sum,
    "laws.balance": _balance,
    "laws.query_balance": _query_balance,
    "laws.identity": _identity,
    "laws.optimizers": _optimizers,
    "lu2021.sen": _sen,
}
