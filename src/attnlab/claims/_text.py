"""Claims of Lu, Mao and Nayak (2021) on real text: sentiment sentences (docs/theory.md#a7)."""

from __future__ import annotations

from attnlab.claims._claim import Claim, Control, Criterion, Measure, Relation
from attnlab.studies._study import Study
from attnlab.studies._text import ROTTEN_TOMATOES, WRONG_QUERY, text_parts
from attnlab.studies._text_claims import SEN_WORDS, named_source, text_study

_PAPER = "Lu, Mao and Nayak (2021), section 5: real-world data"
_HEADS = {"fixed": "fixed head", "linear": "linear head"}
_LEAST_ACCURACY = {"fixed": 0.79, "linear": 0.78}
_LEAST_EXCESS = 0.35
_LEAST_TREND = 0.9
_TRENDS: tuple[tuple[str, int, Relation], ...] = (("purity", 1, ">="), ("frequency", -1, "<="))


def text_claims(source: str = ROTTEN_TOMATOES) -> tuple[Claim, ...]:
    """The claims on one source: ``"rotten-tomatoes"``, a file, or a folder with training,
    validation and test file.

    Thresholds are those of SST-2: there the claims are judged. On any other text the same figures
    are reported, each beside SST-2's threshold, without a verdict on the whole. A path is read at
    once, so that a wrong one is told; Rotten Tomatoes are read when the study is planned.

    >>> [claim.id for claim in text_claims()]
    ['lu2021.text_sen', 'lu2021.text_purity', 'lu2021.text_excess', 'lu2021.text_accuracy']
    >>> {claim.table for claim in text_claims()}
    {True}
    """
    judged = source != ROTTEN_TOMATOES and text_parts(named_source(source)).is_sst2
    study = text_study(source)
    return tuple(make(study, judged) for make in (_sen, _purity, _excess, _accuracy))


def _of(arm: str, variable: str, ranks: int | None = None) -> Measure:
    """A variable of one arm; of a table of words the first so many ranks."""

    def measure(data):
        values = data[f"text {arm}"][variable]
        return values if ranks is None else values.isel(rank=slice(ranks))

    return measure


def _notes(judged: bool, *notes: str) -> tuple[str, ...]:
    return (
        notes
        if judged
        else ("The thresholds are those of SST-2; on this text the figures are reported.", *notes)
    )


def _sen(study: Study, judged: bool) -> Claim:
    def criteria(variable: str, note: str = "") -> tuple[Criterion, ...]:
        return tuple(
            Criterion(
                f"relative error, {name}, {statistic}{note}",
                "bound",
                _of(arm, variable, SEN_WORDS),
                bound,
                "<=",
                statistic,
            )
            for arm, name in _HEADS.items()
            for statistic, bound in (("median", 0.12), ("p90", 0.36))
        )

    return Claim(
        id="lu2021.text_sen",
        title="On real text, too, a word's score determines the norm of its embedding",
        statement=(
            "At the best validation loss, s + (e^s − 1)/m = ½|q|²(|ν|² − |ν₀|²) within some per "
            "cent for the 100 words "
            "of the highest score, m being the mean number of other words in the sentences of each."
        ),
        source=_PAPER,
        studies=(study,),
        criteria=criteria("sen_error"),
        controls=(
            Control(
                "wrong query",
                f"|q| taken {WRONG_QUERY} times too large must not fit.",
                criteria("sen_error_wrong_query", f", |q| × {WRONG_QUERY}"),
            ),
        ),
        how_measured=(
            "Relative error of the predicted |q||ν| in the plain form, words with s > 0.05, over "
            "words and seeds. At "
            "paper scale the refined form, with the other words measured, is recorded as well."
        ),
        refuted_by="An error above the bound, or a wrong |q| that fits as well.",
        notes=_notes(
            judged, "Scores on text are small (about 0.1 to 0.4), so that m matters little here."
        ),
        table=not judged,
    )


def _purity(study: Study, judged: bool) -> Claim:
    def criteria(prefix: str, note: str = "") -> tuple[Criterion, ...]:
        return tuple(
            Criterion(
                f"Spearman of step and {quantity}, {name}{note}",
                "every run",
                _of(arm, f"{prefix}{quantity}_trend"),
                sign * _LEAST_TREND,
                relation,
            )
            for arm, name in _HEADS.items()
            for quantity, sign, relation in _TRENDS
        )

    return Claim(
        id="lu2021.text_purity",
        title="Along training attention goes to purer and rarer words",
        statement="The purity of the top-attended word of a sentence rises along training, and "
        "its frequency falls.",
        source=_PAPER,
        studies=(study,),
        criteria=criteria(""),
        controls=(
            Control(
                "least attended",
                "The least attended word of each sentence must not grow purer and rarer.",
                criteria("least_", ", least attended word"),
            ),
        ),
        how_measured=(
            "Purity |pos − neg|/(pos + neg) over the training sentences that contain a word, and "
            "their number, of the "
            "word of the highest score in each training sentence; means over sentences, from the "
            "first recorded step "
            "to the last. The worst seed counts."
        ),
        refuted_by="A seed in which the attended word does not grow purer, or not rarer.",
        notes=_notes(
            judged,
            "Trained on permuted labels, where there is nothing to learn, attention goes to purer "
            "and rarer words as "
            "well: rare words are pure by chance. The excess over chance tells the two apart "
            "(lu2021.text_excess).",
        ),
        table=not judged,
    )


def _excess(study: Study, judged: bool) -> Claim:
    return Claim(
        id="lu2021.text_excess",
        title="The words attended to are purer than chance makes them",
        statement="At the best validation loss the top-attended word's purity exceeds a "
        "label-permutation null by far.",
        source="attnlab; the paper reports purity alone",
        studies=(study,),
        criteria=tuple(
            Criterion(
                f"excess purity at the best validation loss, {name}",
                "every run",
                _of(arm, "best_excess"),
                _LEAST_EXCESS,
                ">=",
            )
            for arm, name in _HEADS.items()
        ),
        controls=(
            Control(
                "labels permuted",
                "Trained on permuted labels the excess must stay small at every step.",
                (
                    Criterion(
                        "highest excess purity along training, labels permuted",
                        "bound",
                        _of("permuted", "highest_excess"),
                        _LEAST_EXCESS,
                        ">=",
                        "max",
                    ),
                ),
            ),
        ),
        how_measured=(
            "Purity less its mean over 200 random permutations of the training labels, word by "
            "word; mean over the "
            "top-attended words of the training sentences. The worst seed counts. What purity "
            "gains after the best "
            "validation loss (late_purity_rise) and how much of it is excess (late_excess_rise) "
            "is kept with the data: "
            "the rest is rarity."
        ),
        refuted_by="A seed whose attended words are hardly purer than chance, or permuted labels "
        "that give as much.",
        notes=_notes(
            judged,
            "With permuted labels the excess is not 0: attention looks for the words that are "
            "pure by chance.",
        ),
        table=not judged,
    )


def _accuracy(study: Study, judged: bool) -> Claim:
    return Claim(
        id="lu2021.text_accuracy",
        title="One attention over words classifies real sentences",
        statement="Test accuracy at the best validation loss is about 0.8, with the fixed head as "
        "with the linear one.",
        source=_PAPER,
        studies=(study,),
        criteria=tuple(
            Criterion(
                f"test accuracy, {name}",
                "every run",
                _of(arm, "best_accuracy"),
                _LEAST_ACCURACY[arm],
                ">=",
            )
            for arm, name in _HEADS.items()
        ),
        controls=(
            Control(
                "labels permuted",
                "Trained on permuted labels it must not classify.",
                (
                    Criterion(
                        "test accuracy, labels permuted",
                        "bound",
                        _of("permuted", "best_accuracy"),
                        _LEAST_ACCURACY["fixed"],
                        ">=",
                        "max",
                    ),
                ),
            ),
        ),
        how_measured=(
            "Full-batch descent with step 0.1; the step of the lowest validation loss among every "
            "250th. Unknown words "
            "of a test sentence are left out of its softmax; the worst seed counts."
        ),
        refuted_by="A seed below the bound.",
        notes=_notes(judged),
        table=not judged,
    )
