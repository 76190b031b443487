"""What a command about one configuration of one's own leaves in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xarray as xr

from attnlab._errors import AttnlabError
from attnlab._places import is_file, listed, place, reading, share, working_copy
from attnlab.studies._text_prepare import RECORD
from attnlab.sweeps import Results, load_record, save_record, stale_message

SCHEMA = 1
COMMANDS = {
    "claims": "attnlab reproduce",
    "dynamics": "attnlab dynamics",
    "samples": "attnlab samples",
    "digits": "attnlab digits",
    "landscape": "attnlab landscape",
    "study": "attnlab study",
    "compare": "attnlab compare",
}


@dataclass(frozen=True)
class Exploration:
    """Measured data and the answers in words, as they lie in a folder.

    - ``kind``: the command: ``"dynamics"``, ``"samples"``, ``"digits"``, ``"landscape"``,
      ``"study"`` or ``"compare"``; its record is ``<kind>.json``;
    - ``data``: labelled data sets by name; ``about``: settings, versions, ``summary`` (sentences)
      and ``cards``, and ``stale``, in words, where other code made some of the stored runs.
    """

    folder: Path
    data: dict[str, xr.Dataset]
    about: dict[str, Any] = field(default_factory=dict)
    interrupted: bool = False
    ok: bool = True
    kind: str = "dynamics"


def checked_folder(folder: str | Path, kind: str) -> Path:
    """The folder or URL for what a command writes; refused if it is a file, or holds what another
    command wrote.
    """
    out = place(folder)
    with reading(out):
        present = listed(out)
        is_taken = not present and is_file(out)
    if is_taken:
        raise AttnlabError(f"{out} is a file; expected a folder, or a name that is free")
    for other, command in COMMANDS.items():
        if other != kind and f"{other}.json" in present:
            raise AttnlabError(f"{out} holds what `{command}` wrote; give another folder (--out)")
    return out


def store_exploration(
    out: Path,
    kind: str,
    data: Mapping[str, xr.Dataset],
    about: Mapping[str, Any],
    results: Sequence[Results],
) -> Exploration:
    """Write the record and its data, and of the sweeps how many runs other code made, if any
    (``about["stale"]``).
    """
    stale = stale_message(results)
    about = dict(about) | ({"stale": stale} if stale else {})
    save_record(out, f"{kind}.json", SCHEMA, {"about": about}, data)
    return Exploration(out, dict(data), about, ok=all(each.ok for each in results), kind=kind)


def read_exploration(folder: str | Path) -> Exploration:
    """What a command about one configuration wrote. Nothing is computed."""
    out = place(folder)
    with reading(out):
        present = listed(out)
    kinds = [kind for kind in COMMANDS if kind != "claims" and f"{kind}.json" in present]
    kind = kinds[0] if kinds else "dynamics"
    record, data = load_record(
        out, f"{kind}.json", SCHEMA, {"about": {str: object}}, COMMANDS[kind]
    )
    return Exploration(out, data, record["about"], kind=kind)


def corpus_folder(out: Path) -> Path:
    """Where corpora are prepared, on this machine even where ``out`` is a URL: they are mapped into
    memory.
    """
    return working_copy(out / "corpus")


def shared_corpus(prepared: Path, out: Path) -> Path:
    """Where workers find a corpus that was prepared in ``corpus_folder(out)``."""
    try:
        return share(prepared, out / "corpus" / prepared.name, RECORD)
    except OSError as error:
        raise AttnlabError(
            f"cannot write to {out} ({error}): make it writable, then start again"
        ) from error


def card(
    label: str, text: str, headline: str = "", measure: str = "", verdict: str | None = None
) -> dict[str, Any]:
    """One answer at a glance; ``verdict`` is holds, fails, inconclusive, reported or none."""
    return {
        "label": label,
        "text": text,
        "headline": headline,
        "measure": measure,
        "verdict": verdict,
    }
