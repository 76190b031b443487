"""The sweep of the claims about labelled texts, and its declared variables (docs/theory.md#a7)."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attnlab as al
from attnlab.lab import Data, Grid, Provenance, Scale, Source, Sweep, Table, variable
from attnlab.papers import ROTTEN_TOMATOES
from attnlab.papers.lu2021 import PAPER
from attnlab.papers.lu2021.text_settings import TRAIN_TEXT

if TYPE_CHECKING:
    import xarray as xr

# Thresholds for Rotten Tomatoes were set after its seeds from 0 on; those for SST-2 are older.
PILOT = Provenance("after", "2026-11-19", "Rotten Tomatoes, seeds 0 to 5")
TEXT_SOURCE = Source("seen", PAPER, "section 5, real-world data")

# Figures of the linear head hardly depend on d (20, 50 and 100 were tried); its best validation
# loss comes at about step 12 500 on SST-2 and 14 750 on Rotten Tomatoes.
_LINEAR: dict[Scale, dict[str, Any]] = {
    "paper": {"head": "linear", "embedding_dim": 100, "steps": 30_000},
    "quick": {"head": "linear", "embedding_dim": 50, "steps": 18_000},
}


class Trained(Table):
    """Word attention trained on sentences, and what claims judge of it.

    Sentences are those of training unless it says otherwise; the best step is that of the lowest
    validation loss.
    """

    loss = variable("training loss along training")
    accuracy = variable("training accuracy")
    loss_valid = variable("loss on validation sentences")
    accuracy_valid = variable("accuracy on validation sentences")
    accuracy_test = variable("accuracy on test sentences")
    query_norm = variable("|q|")
    best_step = variable("the recorded step of the lowest validation loss")
    attended_purity = variable("purity of the top-attended word, mean over sentences")
    attended_null = variable("the purity that permuted labels give that word")
    attended_excess = variable("its purity less that null")
    attended_frequency = variable("number of sentences that contain it")
    least_attended_purity = variable("purity of the least attended word, mean over sentences")
    least_attended_null = variable("the purity that permuted labels give that word")
    least_attended_excess = variable("its purity less that null")
    least_attended_frequency = variable("number of sentences that contain it")
    top_word = variable("words of the highest score, at the best and at the last step")
    top_score = variable("their scores")
    top_norm = variable("norms of their embeddings")
    top_purity = variable("their purity")
    top_excess = variable("their excess purity")
    top_frequency = variable("numbers of sentences that contain them")
    top_leaning = variable("the classes that they lean to")
    top_onset = variable("steps at which their scores reach half of what they are here")
    top_others = variable("mean numbers of other words in their sentences")
    scaled_norm = variable("|q||ν| of the same words at the best step, measured")
    predicted_scaled_norm = variable("|q||ν| that the relation predicts from the score alone")
    sen_error = variable("relative error of the plain form, where s > 0.05")
    sen_error_wrong_query = variable("the same with |q| taken 1.2 times too large")
    sen_error_refined = variable("with the other words' weight measured", optional=True)
    deletion_flips = variable("share of test answers that turn without a word")
    deletion_flips_low = variable("low end of its interval")
    deletion_flips_high = variable("high end of its interval")
    deletion_only = variable("share that turns without this word and not without the other")
    deletion_sentences = variable("test sentences that were tested")
    deletion_left_out = variable("test sentences of one known word")
    deletion_preference = variable("share of turned answers that the top-attended word turns")
    deletion_preference_low = variable("low end of its interval")
    deletion_preference_high = variable("high end of its interval")
    purer_leads = variable("share of contested pairs whose purer word has the higher score")
    clear_leads = variable("the same share of pairs whose purer word has the larger pull as well")
    longer_leads = variable("share of pairs whose higher score belongs to the longer embedding")
    pairs = variable("pairs of words of different classes that stand in one sentence")
    contested = variable("pairs whose purer word has the smaller pull")
    pair_weight = variable("attention of two words that compete in a sentence", optional=True)
    pair_score = variable("their scores", optional=True)
    pair_norm = variable("norms of their embeddings", optional=True)
    pair_competitor = variable("the words", optional=True)
    pair_sentence = variable("the sentence", optional=True)
    best_accuracy = variable("test accuracy at the best step")
    best_excess = variable("excess purity of the top-attended word at the best step")
    best_purity = variable("its purity there")
    highest_excess = variable("the highest excess purity along training")
    least_contested = variable("least share of contested pairs led by the purer word, at any step")
    best_contested = variable("the same share at the best step")
    last_contested = variable("the same at the last step")
    best_clear = variable("share of the other pairs led by the purer word, at the best step")
    last_clear = variable("the same at the last step")
    purity_trend = variable("Spearman's correlation of step and purity, from the first step on")
    frequency_trend = variable("the same of frequency")
    least_purity_trend = variable("of the least attended word's purity")
    least_frequency_trend = variable("of the least attended word's frequency")
    late_purity_rise = variable("rise of purity from the best step to the last")
    late_excess_rise = variable("rise of excess purity; what purity rises more is rarity")


class Fixed(Trained, label="text fixed"):
    """Under the fixed head."""


class Linear(Trained, label="text linear"):
    """Under the linear head."""


class Permuted(Trained, label="text permuted"):
    """Under the fixed head, on training labels in random order: the control."""


class Padded(Trained, label="text padded", optional=True):
    """Under the fixed head, with the authors' trainable padding word; at paper scale."""


HEADS: dict[str, type[Trained]] = {"fixed head": Fixed, "linear head": Linear}


def corpus_path(corpus: str) -> str:
    """A corpus as settings hold it: a path as a whole one, so that it means the same in every
    process.
    """
    return corpus if corpus == ROTTEN_TOMATOES else str(Path(corpus).expanduser().resolve())


@lru_cache(maxsize=8)
def text_sweep(corpus: str = ROTTEN_TOMATOES) -> Sweep:
    """Training on one corpus: ``"rotten-tomatoes"``, a file, or a folder with training, validation
    and test file.

    The corpus is read when the plan is made: what is absent is told then.
    """
    source = corpus_path(corpus)

    def grid(scale: Scale, seeds: int) -> Grid:
        content = al.data.text_parts(source).hash
        base = {"source": source, "data": content, "surroundings": scale == "paper"}
        # The longest first, so that no process waits at the end.
        arms = {
            "linear": base | _LINEAR[scale],
            "fixed": base,
            "permuted": base | {"permuted": True},
        }
        if scale == "paper":
            arms["padded"] = base | {"padding": True}
        counts = {
            "linear": max(1, seeds // 2) if scale == "quick" else seeds,
            "fixed": max(1, seeds // 2) if scale == "quick" else seeds,
            "permuted": max(1, seeds // 4),
            "padded": max(1, seeds // 4),
        }
        return Grid(arms, counts)

    return Sweep(
        name="text" if source == ROTTEN_TOMATOES else f"text {Path(source).name}",
        work=TRAIN_TEXT,
        grid=grid,
        measure=_measure,
        tables=(Fixed, Linear, Permuted, Padded),
    )


def _measure(arms: Data) -> Data:
    return {f"text {label}": judged_part(run) for label, run in arms.items()}


def judged_part(run: xr.Dataset) -> xr.Dataset:
    """All of a run, and with dimension ``seed`` what claims judge of it."""
    at_best = run["step"].astype(float) == run[Trained.best_step]
    later = run.sel(step=slice(1, None))  # before the first step attention is even
    found: dict[str, xr.DataArray] = {
        Trained.highest_excess: run[Trained.attended_excess].max("step")
    }
    for name, curve in (
        (Trained.best_accuracy, Trained.accuracy_test),
        (Trained.best_excess, Trained.attended_excess),
        (Trained.best_purity, Trained.attended_purity),
    ):
        found[name] = run[curve].where(at_best).max("step")
    for name, curve in (
        (Trained.purity_trend, Trained.attended_purity),
        (Trained.frequency_trend, Trained.attended_frequency),
        (Trained.least_purity_trend, Trained.least_attended_purity),
        (Trained.least_frequency_trend, Trained.least_attended_frequency),
    ):
        found[name] = al.dynamics.rank_agreement(later[curve], later["step"].astype(float))
    last = run.isel(step=-1, drop=True)
    for kind, curve in (("contested", Trained.purer_leads), ("clear", Trained.clear_leads)):
        best, end = (Trained.variables[f"{moment}_{kind}"] for moment in ("best", "last"))
        found[best] = run[curve].where(at_best).max("step")
        found[end] = last[curve]
    found[Trained.least_contested] = later[Trained.purer_leads].min("step")
    found[Trained.late_purity_rise] = last[Trained.attended_purity] - found[Trained.best_purity]
    found[Trained.late_excess_rise] = last[Trained.attended_excess] - found[Trained.best_excess]
    return run.assign(found)


def is_judged(corpus: str) -> bool:
    """Whether the claims have a verdict on a corpus: on Rotten Tomatoes and SST-2, for which they
    have thresholds.

    A path is read at once, so that a wrong one is told; Rotten Tomatoes when runs are planned.
    """
    return corpus == ROTTEN_TOMATOES or al.data.text_parts(corpus_path(corpus)).is_sst2


def leak_notes(corpus: str) -> tuple[str, ...]:
    """What stands in two files of a given split; a split that is made here has no leaks."""
    if corpus == ROTTEN_TOMATOES:
        return ()
    leaks = al.data.text_parts(corpus_path(corpus)).leaks
    return (f"The files are taken as they are, with {'; '.join(leaks)}.",) if leaks else ()


def notes_on(judged: bool, *notes: str) -> tuple[str, ...]:
    """Notes of a claim; where it is not judged it says why."""
    if judged:
        return notes
    return (
        "The thresholds were set on Rotten Tomatoes and SST-2; on this text the figures are reported.",
        *notes,
    )
