"""The page of ``attnlab study``: does attention pay on a user's own texts, what does it attend to,
is it good?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attnlab.report._dynamics import again_section, card_of_entry
from attnlab.report._page import Card, Page, Section
from attnlab.report._render import write_folder
from attnlab.report._study_data import data_section
from attnlab.report._study_good import good_section
from attnlab.report._study_parts import harmless
from attnlab.report._study_pays import pays_section
from attnlab.report._study_try import try_section
from attnlab.report._study_words import words_section
from attnlab.report._text import number, told

if TYPE_CHECKING:
    import xarray as xr

Data = Mapping[str, "xr.Dataset"]
_ELSEWHERE = (
    "settings",
    "command",
    "summary",
    "cards",
    "absent",
    "title",
    "question",
    "reading",
    "tuned",
    "extrapolation",
    "seconds",
    "peak_memory",
    "advice",
    "verdicts",
)


def study_page(data: Data, about: Mapping[str, Any]) -> Page:
    """One page about a user's labelled texts; every data set may be missing, or have no entry.

    - ``lengths``: ``length`` (sentence). ``curves``: ``accuracy`` (student, seed, size), attribute
      ``target``. ``needed``: ``value``, ``low``, ``high``, ``kind`` (student), attribute
      ``target``.
    - ``sentences``: as ``shaded_figure`` takes them. ``words`` (rank): ``word``, ``score``,
      ``norm``, ``purity``, ``excess``, ``frequency``, ``leaning``, ``onset``, attribute ``step``.
      ``training`` (seed, step): ``attended_…``, ``loss…``, ``accuracy_…``, attribute ``best_step``.
      ``pairs``: ``weight``, ``score``, ``norm`` (pair, which, step), ``word`` (pair, which),
      ``sentence`` (pair). ``deletion``: ``top``, ``other`` with ``_low``, ``_high``. ``sen``
      (rank): ``word``, ``scaled_norm``, ``predicted_scaled_norm``, ``sen_error``.
    - ``ends`` (seed): ``accuracy_test``, ``gradient``, ``sharpness``, ``trace``. ``agreement``:
      ``share`` (seed, other). ``path``: ``loss`` (t), attributes ``barrier``, ``place``. ``polish``
      (seed): ``l2``, ``loss``, ``gradient``, ``accuracy_test``, ``kind``.
    - ``variants`` (student, other): a ranking as ``compare_page`` takes it.

    ``about`` as for ``dynamics_page``, and: ``reading``, what was read and dropped; ``tuned``,
    ``extrapolation`` and ``advice``, sentences; ``seconds`` and ``peak_memory`` (bytes, or words).
    ``absent`` says why something is not shown, by the name of the data set or of the section. A
    card stands at the top, and again in the section that it links to.

    >>> page = study_page({}, {"absent": {"pays": "there are 50 rows only"}})
    >>> [section.id for section in page.sections], page.sections[1].body[0][-40:]
    (['data', 'pays', 'words', 'good', 'try', 'again'], 'not shown, since there are 50 rows only.')
    """
    about, data = (
        harmless(about),
        {name: one for name, one in data.items() if all(one.sizes.values())},
    )
    absent = {key: str(value) for key, value in (about.get("absent") or {}).items()}
    cards = tuple(card_of_entry(entry) for entry in about.get("cards") or ())
    said = {card.text for card in cards}  # what a card says need not be said twice
    return Page(
        title=str(about.get("title", "attnlab: a study of your texts")),
        question=str(
            about.get(
                "question",
                "Does attention pay here, which words does it attend to, and is it good?",
            )
        ),
        summary=" ".join(str(each) for each in about.get("summary") or () if str(each) not in said),
        sections=(
            data_section(data, about.get("reading") or {}, absent, _own(cards, "data")),
            pays_section(data, about, absent, _own(cards, "pays")),
            words_section(data, absent, _own(cards, "words")),
            good_section(data, absent, _own(cards, "good")),
            try_section(data, about, absent, _own(cards, "try")),
            _again(about),
        ),
        cards=cards,
        provenance={str(k).capitalize(): told(v) for k, v in about.items() if k not in _ELSEWHERE},
    )


def write_study(folder: str | Path, data: Data, about: Mapping[str, Any]) -> Path:
    """Write ``report.html``, and each figure's drawing and data in ``figures/``."""
    return write_folder(study_page(data, about), folder)


def _own(cards: tuple[Card, ...], section: str) -> tuple[Card, ...]:
    """The cards of a section, without the link to where they stand."""
    return tuple(replace(card, link="") for card in cards if card.link == section)


def _again(about: Mapping[str, Any]) -> Section:
    section = again_section(about)
    used = {"time": _duration(about.get("seconds")), "peak memory": _size(about.get("peak_memory"))}
    return replace(
        section,
        statement="The same command on the same files gives the same numbers.",
        facts={name: text for name, text in used.items() if text} | section.facts,
    )


def _duration(seconds: Any) -> str:
    if seconds is None or isinstance(seconds, str):
        return seconds or ""
    return f"{number(seconds)} s" if seconds < 120 else f"{number(seconds / 60)} minutes"


def _size(size: Any) -> str:
    if size is None or isinstance(size, str):
        return size or ""
    return f"{number(size / 2**30)} GiB" if size >= 2**30 else f"{number(size / 2**20)} MiB"
