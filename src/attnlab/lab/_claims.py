"""Claims as an experiment: run the sweeps that they need, measure, judge, draw."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import attnlab as al
from attnlab._errors import AttnlabError, MissingData
from attnlab.lab._claim import NOT_DISCRIMINATING, Claim, contradicts
from attnlab.lab._experiment import Answers, Bench, Experiment, TextTable
from attnlab.lab._fill import fill
from attnlab.lab._settings import Option, Settings
from attnlab.lab._sweep import Scale, Sweep
from attnlab.lab._tables import Data
from attnlab.report import (
    Book,
    ControlRow,
    CriterionRow,
    DotRow,
    Figure,
    Section,
    dots_figure,
    interval,
    number,
)

if TYPE_CHECKING:
    import xarray as xr

    from attnlab.lab._run import Record
    from attnlab.sweeps import Results

# Looks of `until="decided"`: seeds, and the share of wrong verdicts that may be spent up to there.
# The spending is Pocock's, α log(1 + (e − 1) t) at t = 1/8, 1/4, 1/2, 1 (Lan and DeMets 1983).
LOOKS = ((8, 0.0097), (16, 0.018), (32, 0.031), (64, 0.05))
_SEEDS: dict[Scale, int] = {"quick": 8, "paper": 16}
_VERDICTS = ("holds", "fails", "inconclusive", "reported", "not run")
Known = Callable[[], Mapping[str, Claim]]
_UNDECIDED = ("inconclusive", "not run", "reported")
_SIGNS = {"<=": "≤", ">=": "≥", "in": "in"}
_SUMMARY = ("claim", "verdict", "measured", "asked", "runs", "controls", "of what")
_BOUNDS = {"at least": "≥ ", "at most": "≤ ", "already met": "≤ "}


@dataclass(frozen=True)
class ClaimSettings(Settings):
    """How claims are put to the test."""

    scale: Annotated[
        Scale, Option("quick: smaller tasks, 8 seeds. paper: the papers' sizes, 16 seeds.")
    ] = "quick"
    seeds: Annotated[
        int | None, Option("Seeds per setting; intervals need at least 8.", least=1)
    ] = None
    first_seed: Annotated[
        int,
        Option(
            "Count seeds from here: others than those that a threshold was set after seeing.",
            least=0,
        ),
    ] = 0
    until: Annotated[
        str | None,
        Option(
            "decided: look at each claim with 8 seeds, then 16, 32 and 64 until it is decided, "
            "with intervals so wide that all looks together err in at most 5 % of cases.",
            choices=("decided",),
        ),
    ] = None
    strict: Annotated[
        bool, Option("Exit with code 4 while a claim is inconclusive, not run or only reported.")
    ] = False
    details: Annotated[
        bool, Option("Print every criterion and control, not one line for each claim.")
    ] = False

    def __post_init__(self):
        super().__post_init__()
        if self.until is not None and self.seeds is not None:
            raise AttnlabError(
                f"--seeds {self.seeds} with --until decided, which chooses the seeds: give one of "
                "the two"
            )

    @property
    def looks(self) -> list[tuple[int, float]]:
        """Seeds and confidence of each look; the errors of several looks add up to that of one.

        >>> looks = ClaimSettings(until="decided").looks
        >>> [(seeds, round(confidence, 4)) for seeds, confidence in looks]
        [(8, 0.9903), (16, 0.9917), (32, 0.987), (64, 0.981)]
        """
        if self.until is None:
            return [(self.seeds or _SEEDS[self.scale], al.stats.CONFIDENCE)]
        spent = [0.0, *(share for _, share in LOOKS)]
        return [
            (count, 1 - (share - before))
            for (count, share), before in zip(LOOKS, spent, strict=False)
        ]

    @property
    def folder(self) -> str | None:
        """Where a command writes if it is not told."""
        return "results"

    def claims(self, known: Known) -> Sequence[Claim]:
        """Which claims are asked about: all that are known, unless settings choose."""
        return list(known().values())

    def command(self, claim: Claim) -> str:
        """What to type to judge a claim again."""
        return f"attnlab reproduce {claim.id}{claim.options}{self.words}"

    @property
    def words(self) -> str:
        """The options of the command that asks the same."""
        seeds = "" if self.seeds is None else f" --seeds {self.seeds}"
        first = f" --first-seed {self.first_seed}" if self.first_seed else ""
        until = "" if self.until is None else " --until decided"
        return f" --scale {self.scale}{seeds}{first}{until}"


class Claims(Experiment[ClaimSettings]):
    """Some claims, judged together: a sweep that several of them need is run once.

    ``known`` gives all claims by id, of which settings choose; ``told`` what a site tells around
    them.
    """

    title = "attnlab: claims put to the test"

    def __init__(
        self,
        known: Known,
        *,
        name: str = "reproduce",
        settings: type[ClaimSettings] = ClaimSettings,
        help: str = "",
        detailed: bool = False,
        told: Callable[[], Book] | None = None,
    ):
        self.known, self.name, self.settings, self.help = known, name, settings, help
        self.detailed, self.told = detailed, told

    def bound(self, settings: ClaimSettings) -> Claims:
        """The claims that these settings choose."""
        chosen = {claim.id: claim for claim in settings.claims(self.known)}
        return Claims(
            lambda: chosen,
            name=self.name,
            settings=self.settings,
            help=self.help,
            detailed=settings.details,
            told=self.told,
        )

    def measure(self, settings: ClaimSettings, bench: Bench) -> Data:
        """Look at the claims until all are decided or no look is left, and judge them."""
        from attnlab.lab._run import stored_content

        claims = self.known()
        entries: dict[str, dict[str, Any]] = {}
        looks = {**stored_content(bench.folder, self.name).get("looks", {})}
        data: dict[str, xr.Dataset] = {}
        for seeds, confidence in settings.looks:
            open_claims = [
                claim
                for claim in claims.values()
                if entries.get(claim.id, {}).get("verdict") not in ("holds", "fails")
            ]
            look = _Look(settings.scale, seeds, settings.first_seed, confidence)
            for claim in look.run(open_claims, bench):
                entry = look.judge(claim)
                looks[claim.id] = _with_look(looks.get(claim.id, []), entry, look)
                entry |= {"command": settings.command(claim), "looks": looks[claim.id]}
                entries[claim.id] = entry
                data |= look.data()
                bench.stage(_line(entry))
                for caution in entry["cautions"]:
                    bench.stage(f"    caution: {caution}")
                judged = [entries[name] for name in claims if name in entries]
                bench.found |= {"claims": judged, "looks": looks}
                if left := len(claims) - len(judged):
                    bench.draft(data, f"{left} of {len(claims)} claims are still to be judged.")
        bench.found |= {"claims": [entries[name] for name in claims], "looks": looks}
        return data

    def answers(self, settings: ClaimSettings, data: Data, found: Mapping[str, Any]) -> Answers:
        """How many claims hold, and what is undecided or contradicts expectation."""
        entries = found["claims"]
        seeds = max((entry["looks"][-1]["seeds"] for entry in entries), default=0)
        asked = [entry for entry in entries if entry["verdict"] not in ("reported", "not run")]
        held = sum(entry["verdict"] == "holds" for entry in entries)
        of_all = f"{held} of {len(asked)} claims hold at {settings.scale} scale"
        summary = f"{of_all}, with {seeds} seeds unless a claim says otherwise."
        open_ = sum(entry["verdict"] == "inconclusive" for entry in entries)
        summary += f" {open_} of them {'is' if open_ == 1 else 'are'} undecided." if open_ else ""
        return Answers(
            question="Which claims about training attention models hold, when they are put to the "
            "test?",
            summary=tuple(filter(None, (summary, _false_verdicts(entries)))),
            facts={"scale": settings.scale, "seeds": seeds, "sweeps": self._sweep_names()},
        )

    def _sweep_names(self) -> list[str]:
        return list(_sweeps(list(self.known().values())))

    def sections(self, record: Record) -> list[Section]:
        """A section for each claim."""
        entries = _by_id(record)
        return [self.section(entry, record.data, entries) for entry in entries.values()]

    def book(self, record: Record) -> Book | None:
        """What is told around the claims, with the numbers of this record."""
        entries = _by_id(record)
        if self.told is None or not set(entries) & set(self.known()):
            return None
        book = self.told()

        def filled(texts: Sequence[str]) -> tuple[str, ...]:
            return tuple(fill(text, entries) for text in texts)

        stories = [
            replace(
                story,
                chapters=tuple(
                    replace(chapter, body=filled(chapter.body)) for chapter in story.chapters
                ),
            )
            for story in book.stories
        ]
        return replace(
            book,
            why=filled(book.why),
            open_intro=filled(book.open_intro),
            stories=tuple(stories),
        )

    def section(
        self,
        entry: Mapping[str, Any],
        data: Data,
        entries: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> Section:
        """One claim; a figure that cannot be drawn is replaced by a notice that says why."""
        notes = tuple(entry["notes"])
        try:
            figures = tuple(self.figures(entry, data))
        except Exception as error:
            figures = ()
            notes = (f"The figures cannot be drawn: {_where(error)}.", *notes)
        return _claim_section(entry, figures=figures, body=notes, entries=entries)

    def figures(self, entry: Mapping[str, Any], data: Data) -> Sequence[Figure]:
        """The claim's own figures, or every criterion's value run by run."""
        if entry["verdict"] == "not run":
            return ()
        claim = self.known().get(entry["id"])
        if claim is not None and claim.figures is not None:
            return claim.figures(data)
        return _criteria_figure(entry)

    def shown(self, record: Record) -> Iterable[str | TextTable]:
        """One line for each claim, and how many are decided."""
        if self.detailed:
            yield from self.details(record)
            return
        entries = record.content["claims"]
        under = {k: entry["cautions"] for k, entry in enumerate(entries) if entry["cautions"]}
        rows = tuple(map(_summary_row, entries))
        yield TextTable(_SUMMARY, rows, one_line=True, under=under)
        yield from _ending(entries, reasons=False)

    def details(self, record: Record) -> Iterable[str | TextTable]:
        """Every criterion and control of each claim, and how many claims are decided."""
        entries = record.content["claims"]
        yield _verdict_table(entries)
        yield from _ending(entries)

    def exit_code(self, settings: ClaimSettings, record: Record) -> int:
        """3 if a verdict contradicts what was expected, 4 if it should be decided and is not."""
        entries = record.content["claims"]
        if any(contradicts(entry) for entry in entries):
            return 3
        return 4 if settings.strict and any(e["verdict"] in _UNDECIDED for e in entries) else 0

    def failed_runs(self, record: Record) -> str:
        """How many runs failed."""
        failed = sum(entry["runs"]["failed"] for entry in record.content["claims"])
        return (
            f"too many runs failed ({failed}); `attnlab runs {record.folder}` groups them by cause"
        )


@dataclass(frozen=True)
class _Look:
    """One look at some claims: the runs of each sweep, what was measured, and why some was not."""

    scale: Scale
    seeds: int
    first_seed: int
    confidence: float
    results: dict[str, Results] = field(default_factory=dict)
    measured: dict[str, dict[str, xr.Dataset]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def run(self, claims: Sequence[Claim], bench: Bench) -> Iterator[Claim]:
        """Run and measure every sweep that the claims need; a claim is yielded after its last one."""
        sweeps, waiting = _sweeps(claims), list(claims)
        run = set[str]()
        for number_, (name, sweep) in enumerate(sweeps.items()):
            bench.stage(f"sweep {number_ + 1} of {len(sweeps)}: {name}")
            self._run_sweep(sweep, bench)
            run.add(name)
            ready = [claim for claim in waiting if run.issuperset(s.name for s in claim.sweeps)]
            waiting = [claim for claim in waiting if claim not in ready]
            yield from ready

    def _run_sweep(self, sweep: Sweep, bench: Bench) -> None:
        try:
            plan = sweep.plan(self.scale, self.seeds, self.first_seed)
        except MissingData as error:
            self.absent[sweep.name] = str(error)
            return
        fresh = f"-from-{self.first_seed}" if self.first_seed else ""
        folder = f"{al.sweeps.slug(sweep.name)}-{self.scale}{fresh}"
        results = self.results[sweep.name] = bench.sweep(plan, folder, required=False)
        try:
            arms = al.lab.split_arms(results.dataset(), keep_failed=True)
            self.measured[sweep.name] = sweep.measured(arms, self.confidence)
        except AttnlabError as error:
            self.absent[sweep.name] = f"the sweep {sweep.name!r} could not be measured: {error}"
        except Exception as error:
            raise AttnlabError(
                f"measuring the sweep {sweep.name!r} raises {_where(error)}"
            ) from error

    def data(self) -> dict[str, xr.Dataset]:
        """All measured data sets by name."""
        data: dict[str, xr.Dataset] = {}
        for name, parts in self.measured.items():
            twice = set(parts) & set(data)
            if twice:
                raise AttnlabError(
                    f"the sweep {name!r} measures {min(twice)!r}, as another sweep does: name it "
                    "otherwise"
                )
            data |= parts
        return data

    def judge(self, claim: Claim) -> dict[str, Any]:
        """The claim's entry in the record."""
        names = [sweep.name for sweep in claim.sweeps]
        runs = self._runs(names)
        missing = [name for name in names if name not in self.measured]
        try:
            if missing:
                absent = self.absent[missing[0]]
                return claim.judge(None, runs, absent=absent, confidence=self.confidence)
            data = {k: one for name in names for k, one in self.measured[name].items()}
            return claim.judge(data, runs, confidence=self.confidence)
        except AttnlabError:
            raise
        except Exception as error:
            raise AttnlabError(f"judging the claim {claim.id!r} raises {_where(error)}") from error

    def _runs(self, names: Sequence[str]) -> dict[str, Any]:
        """Counts of the runs behind a claim, and of what they died."""
        results = [self.results[name] for name in names if name in self.results]
        counts = {k: sum(getattr(r, k) for r in results) for k in ("asked", "finished", "failed")}
        runs: dict[str, Any] = counts
        for name in ("stale", "reused"):  # runs that other code made
            count = sum(getattr(one, name) for one in results)
            runs |= {name: count} if count else {}
        groups = [group for one in results for group in one.failures]
        runs["causes"] = [{"cause": group.cause, "count": group.count} for group in groups]
        return runs


def _with_look(
    earlier: list[dict[str, Any]], entry: Mapping[str, Any], now: _Look
) -> list[dict[str, Any]]:
    """The looks at a claim with this one, unless it is the last one again."""
    look = {
        "scale": now.scale,
        "seeds": now.seeds,
        "first_seed": now.first_seed,
        "confidence": entry["confidence"],
        "verdict": entry["verdict"],
        "statistics": [criterion["statistic"] for criterion in entry["criteria"]],
    }
    if earlier and {key: earlier[-1].get(key) for key in look} == look:
        return earlier
    return [*earlier, look | {"date": time.strftime("%Y-%m-%d")}]


def _look_words(look: Mapping[str, Any]) -> str:
    fresh = f" from {look['first_seed']} on" if look.get("first_seed") else ""
    return f"{look['seeds']} seeds{fresh}: {look['verdict']}"


def _sweeps(claims: Sequence[Claim]) -> dict[str, Sweep]:
    """The sweeps of some claims, each once; two of one name would overwrite each other's runs."""
    sweeps: dict[str, Sweep] = {}
    for sweep in (sweep for claim in claims for sweep in claim.sweeps):
        if sweeps.setdefault(sweep.name, sweep) is not sweep:
            raise AttnlabError(f"two sweeps are named {sweep.name!r}: give each its own name")
    return sweeps


def _where(error: Exception) -> str:
    """An exception in words, with its place outside of installed libraries, if there is one."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


def _by_id(record: Record) -> dict[str, Mapping[str, Any]]:
    return {entry["id"]: entry for entry in record.content["claims"]}


def _claim_section(
    entry: Mapping[str, Any],
    *,
    figures: Sequence[Figure] = (),
    body: Sequence[str] = (),
    entries: Mapping[str, Mapping[str, Any]] | None = None,
) -> Section:
    """The section of a claim's entry in a record; ``entries`` of all, which its texts may quote."""
    entries = entries or {entry["id"]: entry}
    tags = {"paper": _paper(entry), "section": entry["section"], "source": entry["source_kind"]}
    return Section(
        id=entry["id"],
        title=entry["title"],
        statement=entry["statement"],
        verdict=entry["verdict"],
        expected=entry["expected"],
        body=tuple(body),
        figures=tuple(figures),
        criteria=tuple(_criterion_row(criterion) for criterion in entry["criteria"]),
        controls=tuple(
            ControlRow(control["id"], control["should"], control["verdict"], control["ok"])
            for control in entry["controls"]
        ),
        how_measured=entry["how_measured"],
        refuted_by=entry["refuted_by"],
        command=entry["command"],
        source=_by_words(entry, "source") or entry["source"],
        reason=entry["reason"],
        cautions=tuple(entry["cautions"]),
        reading=entry["reading"],
        facts=_claim_facts(entry),
        finding=fill(entry["finding"].get(entry["verdict"], ""), entries),
        why=fill(entry["why"], entries),
        tags={name: word for name, word in tags.items() if word},
    )


def _paper(entry: Mapping[str, Any]) -> str:
    """The group of a claim: what stands before the dot of its id."""
    return entry["id"].partition(".")[0]


def _criterion_row(criterion: Mapping[str, Any]) -> CriterionRow:
    value, ends = _value_and_interval(criterion)
    threshold = criterion["threshold"]
    return CriterionRow(
        name=criterion["name"],
        kind=" ".join(filter(None, (criterion["kind"], criterion["of"]))),
        statistic=value,
        interval=ends,
        threshold=tuple(threshold) if isinstance(threshold, list) else threshold,
        verdict=criterion["verdict"],
        relation=_SIGNS[criterion["relation"]],
        unit=criterion["unit"],
        reading=criterion["reading"],
        runs=criterion["exceptions"],
    )


def _value_and_interval(
    criterion: Mapping[str, Any],
) -> tuple[float | str | None, tuple[float, float] | None]:
    """What was measured, in words where it is only a bound, and its interval with open ends
    infinite.

    >>> _value_and_interval({"statistic": 52.0, "interval": [40.0, None], "bounded": "at least"})
    ('≥ 52', (40.0, inf))
    """
    value, bounded = criterion["statistic"], criterion["bounded"]
    if bounded == "not reached":
        value = "not reached"
    elif bounded in _BOUNDS and value is not None:
        value = f"{_BOUNDS[bounded]}{number(value)}"
    if criterion["interval"] is None:
        return value, None
    low, high = criterion["interval"]
    return value, (-math.inf if low is None else low, math.inf if high is None else high)


def _false_verdicts(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many verdicts of criteria and controls may be expected to be false, in words; empty where
    no interval was judged.

    The error rate of an interval is what its confidence leaves, summed over all looks at its claim.
    """
    rates: dict[str, float] = {}
    for entry in entries:
        rate = min(1.0, sum(1 - look["confidence"] for look in entry["looks"]))
        controls = [c for control in entry["controls"] for c in control["criteria"]]
        for criterion in (*entry["criteria"], *controls):
            if criterion["interval"] is not None:
                key = _same_interval(criterion)
                rates[key] = max(rate, rates.get(key, 0.0))
    if not rates:
        return ""
    return (
        f"At most {number(sum(rates.values()))} of the verdicts on {len(rates)} intervals are "
        "expected to be false: the sum of their error rates. It assumes that runs are independent "
        "draws and, as the worst case, that every true value lies at its threshold, but not that "
        "intervals are independent of each other. One that several claims share counts once; "
        "criteria without an interval (every run, pooled statistics) are not counted."
    )


def _same_interval(criterion: Mapping[str, Any]) -> str:
    """What is equal for two criteria that judge the same numbers in the same way."""
    fields = ("kind", "of", "relation", "threshold", "statistic", "interval", "by_seed", "seeds")
    return repr([criterion[field] for field in fields])


def _by_words(entry: Mapping[str, Any], field: str) -> str:
    """What the criteria of an entry state under ``field``; their names only where they differ."""
    named: dict[str, list[str]] = {}
    for criterion in entry["criteria"]:
        if criterion[field]:
            named.setdefault(criterion[field], []).append(criterion["name"])
    if len(named) == 1:
        return next(iter(named))
    return "; ".join(f"{', '.join(names)}: {words}" for words, names in named.items())


def _claim_facts(entry: Mapping[str, Any]) -> dict[str, str]:
    """How many seeds and runs there were, who states it, when thresholds and expectation were set,
    what tells nothing apart, and every look if there were several.
    """
    counts = entry["runs"]
    runs = ", ".join(f"{count} {name}" for name, count in counts.items() if name != "causes")
    causes = "; ".join(f"{one['count']} × {one['cause']}" for one in counts["causes"])
    facts = {"Seeds": str(entry["seeds"]), "Runs": f"{runs} ({causes})" if causes else runs}
    if thresholds := _by_words(entry, "provenance"):
        facts["Thresholds"] = thresholds
    if since := entry["expected_provenance"]:
        facts["Expectation"] = f"“{entry['expected']}”, {since}"
    if blind := [c["name"] for c in entry["criteria"] if not c["discriminates"]]:
        facts[NOT_DISCRIMINATING.capitalize()] = f"{', '.join(blind)}: holds in every control, too"
    looks = entry["looks"]
    if len(looks) > 1:
        facts["Looks"] = "; ".join(map(_look_words, looks))
    return facts


def _criteria_figure(entry: Mapping[str, Any]) -> list[Figure]:
    """Every criterion of a claim without figures of its own, run by run."""
    rows = [_dot_row(c) for c in entry["criteria"] if _has_dots(c)]
    rows += [
        _dot_row(c, f"control {control['id']}: ")
        for control in entry["controls"]
        for c in control["criteria"]
        if _has_dots(c)
    ]
    if not rows:
        return []
    name = f"{entry['id']}.criteria"
    return [dots_figure(rows, id=name, title="Every criterion, seed by seed", x_label="value")]


def _has_dots(criterion: Mapping[str, Any]) -> bool:
    """Whether every run has a number that an axis from zero can show."""
    values = criterion["by_seed"]
    return bool(values) and all(value is not None and value >= 0 for value in values)


def _dot_row(criterion: Mapping[str, Any], prefix: str = "") -> DotRow:
    threshold = criterion["threshold"]
    good = "above" if criterion["relation"] == ">=" else "below"
    limit = threshold[1] if isinstance(threshold, list) else threshold
    return DotRow(prefix + criterion["name"], criterion["by_seed"], limit, good)


def _summary_row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """A claim in one line: id, verdict, headline number, runs within its threshold, controls."""
    said, controls = _claim_section(entry).headline, entry["controls"]
    if said is None:
        return entry["id"], entry["reading"], "", "", "", "", entry["reason"]
    criterion = next(c for c in entry["criteria"] if c["name"] == said.name)
    within, count = criterion["within"], len(criterion["by_seed"])
    runs = "" if within is None else f"{within}/{count}"
    passed = f"{sum(control['ok'] for control in controls)}/{len(controls)}"
    numbers = _measured(criterion), _asked(criterion), runs, passed
    return entry["id"], entry["reading"], *numbers, said.name


def _line(entry: Mapping[str, Any]) -> str:
    """A claim's verdict as it is reported when it is known."""
    name, reading, measured, asked, *_, what = _summary_row(entry)
    found = f": {what} {measured} ({asked})" if measured else f": {what}"
    return f"  {name} {reading}{found}"


def _verdict_table(entries: Sequence[Mapping[str, Any]]) -> TextTable:
    """Verdict, and every criterion with its number and threshold."""
    rows: list[tuple[str, ...]] = []
    for entry in entries:
        heads = [(entry["id"], entry["reading"]), *[("", "")] * len(entry["criteria"])]
        if not entry["criteria"]:
            rows.append((*heads[0], entry["reason"], "", ""))
        for head, c in zip(heads, entry["criteria"], strict=False):
            marks = [] if c["reading"] == "holds" else [c["reading"]]
            marks += [] if c["discriminates"] else [NOT_DISCRIMINATING]
            mark = f" ({', '.join(marks)})" if marks else ""
            runs = f"\n{c['exceptions']}" if c["exceptions"] else ""
            rows.append((*head, c["name"] + mark + runs, _measured(c), _asked(c)))
        rows += [("", "", f"caution: {caution}", "", "") for caution in entry["cautions"]]
        for ok, words in ((True, "controls as they should"), (False, "controls that failed")):
            named = [c["id"] for c in entry["controls"] if c["ok"] is ok]
            rows += [("", "", f"{words}: {', '.join(named)}", "", "")] if named else []
        rows.append(())
    return TextTable(("claim", "verdict", "criterion", "measured", "asked"), tuple(rows))


def _measured(criterion: Mapping[str, Any]) -> str:
    value, ends = _value_and_interval(criterion)
    return number(value) if ends is None else f"{number(value)} {interval(ends)}"


def _asked(criterion: Mapping[str, Any]) -> str:
    threshold = criterion["threshold"]
    if isinstance(threshold, list):
        return f"{number(threshold[0])} … {number(threshold[1])}"
    return f"{_SIGNS[criterion['relation']]} {number(threshold)}"


def _ending(entries: Sequence[Mapping[str, Any]], *, reasons: bool = True) -> Iterable[str]:
    """How many claims are decided, what was left undecided, and what contradicts expectation."""
    undecided = [entry for entry in entries if entry["verdict"] in _UNDECIDED]
    against = [entry for entry in entries if contradicts(entry)]
    counts = [f"{n} {v}" for v in _VERDICTS if (n := sum(e["verdict"] == v for e in entries))]
    decided = len(entries) - len(undecided)
    yield f"{decided} of {len(entries)} claims are decided: {', '.join(counts)}"
    for verdict in ("inconclusive", "not run"):
        named = [entry for entry in entries if entry["verdict"] == verdict]
        if named and reasons:
            yield f"{verdict}: " + "; ".join(f"{e['id']} ({e['reason']})" for e in named)
        elif named:
            yield f"{verdict} (--details says why): " + ", ".join(e["id"] for e in named)
    if entries and not undecided and not against:
        yield "none contradicts what was expected"
    for entry in against:
        yield (
            f"contradiction: {entry['id']} was expected to be {entry['expected']!r} and came out "
            f"{entry['verdict']!r}"
        )


def reproduce(
    claims: Sequence[Claim],
    folder: str | Path,
    *,
    scale: Scale = "quick",
    seeds: int | None = None,
    first_seed: int = 0,
    until: str | None = None,
    **more: Any,
) -> Record:
    """Put claims to the test in a folder; ``more`` as for `attnlab.lab.run`.

    ``seeds`` is 8 at quick and 16 at paper scale unless given, counted from ``first_seed``.
    ``until="decided"`` looks at a claim with 8 seeds and, as long as it is undecided, with 16, 32
    and 64. Its intervals are wider for that: the chances of a wrong verdict at all looks together
    add up to 5 %. More seeds by hand until a verdict turns have no such guarantee; every look is
    recorded.
    """
    from attnlab.lab._run import run

    known = {claim.id: claim for claim in claims}
    settings = ClaimSettings(scale=scale, seeds=seeds, first_seed=first_seed, until=until)
    return run(Claims(lambda: known), settings, folder, **more)
