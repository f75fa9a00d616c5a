"""One value of a leaf out of what several files say of it. Each leaf declares its way: `files`, in `receipts.receipt`.

The strongest evidence decides. What ran stands above what a program printed of itself, that above what it was asked,
and that above what people wrote down. A wish in a program before it was optimized is weaker than any of these: it fills
a gap and contradicts nothing. Two equally strong sources that differ leave the leaf unstated: a pick would be a guess.

Leaves of one group come from one place or not at all: the bytes of two programs are those of no program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, NamedTuple

from pydantic import AwareDatetime, TypeAdapter

from receipts.emit.rank_join import JOINS
from receipts.ingest import vocabulary
from receipts.ingest.clock import first_stamp, last_stamp
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import alike, fitting, place
from receipts.ingest.reading import UNNAMED_FUNCTION, Reading
from receipts.receipt.leaf import AGREE
from receipts.receipt.leaves import find_leaf

INFERRED, NOTED, ASKED, PRINTED, RAN = range(5)
_STRENGTHS: Final = {"noted": NOTED, "asked": ASKED, "printed": PRINTED}
# Stated by some reader for others to use, and no leaf of the receipt.
READING_ONLY: Final = ("measurement.flops_per_step_per_chip", "measurement.target_tokens_per_step", "schema_version")
# Lists of rows that a reader makes whole.
_ROWS: Final = ("measurement.path_counters",)
# Which clock timed the steps: of a receipt's own steps no file beside it says.
_TIMER: Final = "measurement.timer"
WISHES: Final = {"posture": "compile.posture", "compute_dtype": "numerics.compute_dtype"}
_FIGURES: Final = {
    **{name: f"compile.{name}" for name in ("compiles", "cache_hits", "cache_misses", "graph_breaks")},
    **{name: f"compile.{name}" for name in ("program_digest", "argument_bytes", "output_bytes", "temp_bytes")},
    "seconds": "compile.compile_seconds",
}
_BOOLEANS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_CLOCK: Final = "measurement.health.clock_mhz"
_SPREAD: Final = "measurement.health.clock_spread"
_THROTTLED: Final = "measurement.health.throttle_reasons"
_MONITORED: Final = (_CLOCK, "measurement.health.power_watts", "measurement.health.temperature_celsius")
_MOMENT: Final = TypeAdapter(AwareDatetime)
_MAX_OPERATORS: Final = 1000
_MAX_SHOWN: Final = 4


class Fact(NamedTuple):
    """What one place says of one leaf."""

    leaf: str
    value: Any
    strength: int
    where: Where
    source: str
    text: str = ""

    @property
    def place(self) -> tuple[str, str]:
        """The file that says it, and by which source: leaves of one group have one."""
        return self.where.file, self.source

    @property
    def shown(self) -> str:
        """Its words, and the value where the words do not hold it."""
        text, value = self.text[:80], str(self.value)[:80]
        return text if value.lower() in text.lower() or not text else f"{value} ({text})"


def readings(files: Iterable[FileEvidence]) -> Iterator[tuple[FileEvidence, Reading]]:
    """Every reading with its file."""
    return ((file, reading) for file in files for reading in file.readings)


def stated(files: Iterable[FileEvidence], path: str) -> Fact | None:
    """The first statement of what readings have for others to use, by strength."""
    every = (fact for file, reading in readings(files) for fact in _stated(file, reading) if fact.leaf == path)
    return max(every, key=lambda fact: fact.strength, default=None)


def resolve(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State every leaf on which the strongest sources agree, or which has a way of its own to meet itself."""
    by_leaf: defaultdict[str, list[Fact]] = defaultdict(list)
    for file, reading in readings(files):
        for fact in (*_stated(file, reading), *_observed(file, reading)):
            if (kept := _fitting(draft, fact)) is not None:
                by_leaf[fact.leaf].append(kept)
    # Monitors of several hosts: how far their clocks are apart, and no throttling only where each of them looked.
    if clocks := by_leaf.get(_CLOCK):
        first = max(clocks, key=lambda fact: fact.strength)
        alike_clocks = {fact.where.file: fact.value for fact in clocks if fact.source == first.source}
        slowest, fastest = min(alike_clocks.values()), max(alike_clocks.values())
        clocked = [file for file in files if file.name in alike_clocks and len(alike_clocks) > 1 and fastest > 0]
        begins = [stamp.time for file in clocked if (stamp := first_stamp(file)) is not None]
        ends = [stamp.time for file in clocked if (stamp := last_stamp(file)) is not None]
        # Where some file begins after another has ended, they are parts of one monitor, or of attempts: no two hosts.
        if clocked and not (begins and ends and max(begins) > min(ends)):
            spread = first._replace(leaf=_SPREAD, value=(fastest - slowest) / fastest, text="medians of files")
            by_leaf.setdefault(_SPREAD, []).append(spread)
    reasons = by_leaf.get(_THROTTLED)
    if reasons and not any(fact.value for fact in reasons):
        monitors = {fact.place for path in _MONITORED for fact in by_leaf.get(path, ())}
        for name, source in sorted(monitors - {fact.place for fact in reasons}):
            del by_leaf[_THROTTLED]
            text = f"{name} shows no throttle reasons by {source}: that nothing throttled is shown of a part only"
            draft.tell("missing", text, Where(name))
            break
    chosen: dict[str, tuple[str, str]] = {}  # by group the place that gave its first leaf
    for path in sorted(by_leaf, key=place):
        leaf, facts = find_leaf(path), by_leaf[path]
        group = (leaf.group if leaf is not None else "") or path
        facts = [fact for fact in facts if chosen.get(group, fact.place) == fact.place]
        if not facts:
            continue
        strongest = max(fact.strength for fact in facts)
        sure = [fact for fact in facts if fact.strength != INFERRED]
        best = [fact for fact in sure if fact.strength == strongest]
        way = leaf.files if leaf is not None else AGREE
        if sure and way in _PICKS:
            _put(draft, _PICKS[way](best))
        elif sure:
            _WAYS[way](draft, path, sure, best)
        if wishes := [fact for fact in facts if fact.strength == INFERRED]:
            value = "+".join(dict.fromkeys(fact.value for fact in wishes))
            draft.fill(path, value, wishes[0].where, wishes[0].source)
        shown = draft.shown.get(path)
        chosen.setdefault(group, (shown.where.file, shown.source) if shown is not None else ("", ""))


def _stated(file: FileEvidence, reading: Reading) -> Iterator[Fact]:
    strength = _STRENGTHS[vocabulary.source(reading.source).strength]
    for path, first in reading.stated.items():
        for claim in (first, *reading.others.get(path, ())):
            yield Fact(path, claim.value, strength, Where(file.name, claim.place), reading.source, claim.text)


def _observed(file: FileEvidence, reading: Reading) -> Iterator[Fact]:
    """The path by levels of evidence (an argument asks, a backend says, a kernel ran), and what the reader counted."""
    for seen in reading.seen:
        where = Where(file.name, seen.place)
        if seen.level == "intent":
            path = WISHES.get(seen.leaf, f"path.intended.{seen.leaf}")
            if find_leaf(path) is not None:
                yield Fact(path, seen.value, INFERRED, where, reading.source)
        elif seen.leaf not in ("framework", "frameworks"):
            value: Any = [seen.value] * bool(seen.value) if seen.leaf == "replicated" else seen.value
            value = _BOOLEANS.get(seen.value.lower()) if seen.leaf == "cuda_graphs" else value
            strength = RAN if seen.level == "kernels" else PRINTED
            yield Fact(f"path.witnessed.{seen.leaf}", value, strength, where, reading.source, seen.level)

    where = Where(file.name)
    for name, path in _FIGURES.items():
        if (figure := getattr(reading.compile, name)) is not None and figure != "":
            yield Fact(path, round(figure, 6) if isinstance(figure, float) else figure, RAN, where, reading.source)
    if reading.fallbacks is not None:
        operators = {
            name: max(min(count, 2**62), 0) for name, count in reading.fallbacks.items() if 0 < len(name) <= 500
        }
        yield Fact("path.witnessed.fallbacks", operators, RAN, where, reading.source)


def _fitting(draft: ReceiptDraft, fact: Fact) -> Fact | None:
    """The fact with its value as the leaf takes it; None, and a note, where the receipt has no such leaf or value."""
    path, base = fact.leaf, draft.base
    timed = path == _TIMER and base is not None and base.get("measurement.step_durations_seconds")
    if path in READING_ONLY or timed:
        return None
    words = (fact.text or str(fact.value))[:80]
    if path not in _ROWS and (find_leaf(path) is None or "[]" in path):
        draft.tell("note", f"{path} is {words}; the receipt has no such leaf", fact.where)
        return None
    if (value := fitting(path, fact.value)) is None:
        draft.tell("note", f"{path} reads {words!r}, which is not a value for it", fact.where)
        return None
    return fact._replace(value=value)


Way = Callable[[ReceiptDraft, str, Sequence[Fact], Sequence[Fact]], None]


def _put(draft: ReceiptDraft, fact: Fact, value: Any = None, *, beside_own: bool = False) -> None:
    value = fact.value if value is None else value
    draft.put(fact.leaf, value, fact.where, fact.source, fact.text, beside_own=beside_own)


def _agree(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    first = best[0]
    others: list[Fact] = []
    for fact in facts:
        if not any(alike(path, fact.value, other.value) for other in (first, *others)):
            others.append(fact)
    torn = any(fact.strength == first.strength for fact in others)
    if others:
        what = "; ".join(f"{fact.where} says {fact.shown}" for fact in [first, *others][:_MAX_SHOWN])
        draft.contradict(path, what, "" if torn else first.shown)
    if not torn:
        _put(draft, first)


def _time(fact: Fact) -> float:
    return _MOMENT.validate_python(fact.value).timestamp()


def _first_source(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    """The largest that the first source has: reports of a run count on, ranks work side by side, and one source counts
    graphs where another counts programs."""
    by_source: dict[str, Fact] = {}
    for fact in best:
        known = by_source.setdefault(fact.source, fact)
        by_source[fact.source] = max(known, fact, key=lambda item: item.value)
    for fact in by_source.values():
        if (stands := draft.get(path)) is None:
            _put(draft, fact)
        elif stands != fact.value and path == "compile.compiles":
            text = f"{fact.where} counts {fact.value:,} compiles by {fact.source}, and {stands:,} stand"
            draft.tell("note", text, fact.where)


def _one(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    """Several values are those of several programs, and no contradiction: none stands."""
    distinct = {fact.value: fact for fact in reversed(best)}
    if len(distinct) == 1:
        _put(draft, best[0])
        return
    names = ", ".join(str(fact.where) for fact in list(reversed(distinct.values()))[:_MAX_SHOWN])
    draft.tell("note", f"{len(distinct)} compiled programs ({names}): no one digest stands for the step")


def _joined(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    """Every name that the strongest evidence shows, beside those that a receipt among the files has."""
    first, value = best[0], JOINS["joined"]([fact.value for fact in best])
    own = draft.base.get(path) if draft.base is not None else None
    whole = value
    if isinstance(own, str):
        if not set(value.split("+")) <= set(own.split("+")):
            assert draft.base is not None
            draft.contradict(path, f"{draft.base.name} says {own}, {first.where} shows {value}", "both")
        whole = JOINS["joined"]([own, value])
    _put(draft, first, whole, beside_own=True)
    weaker = [fact for fact in facts if fact.strength < first.strength]
    others = dict.fromkeys(fact.value for fact in weaker)
    if set(others) - {fact.value for fact in best}:
        by_its_log = f"{' and '.join(others)} by its log ({weaker[0].where})"
        draft.contradict(path, f"{by_its_log}, {value} by what ran ({first.where})", value)


def _last(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    """What was off at the start and is on later was on; a receipt's own word stands."""
    own = draft.base.get(path) if draft.base is not None else None
    _put(draft, best[0], best[-1].value if own is None else own, beside_own=True)


def _most_each(draft: ReceiptDraft, path: str, facts: Sequence[Fact], best: Sequence[Fact]) -> None:
    """By name the largest count: reports of one run count on."""
    own = draft.base.get(path) if draft.base is not None else None
    operators: dict[str, int] = dict(own or {})
    for fact in best:
        for name, count in fact.value.items():
            if len(operators) < _MAX_OPERATORS:
                operators[name] = max(count, operators.get(name, 0))
    if sum(name.startswith("torch.compile:") for name in operators) > 1:
        operators.pop(UNNAMED_FUNCTION, None)
    _put(draft, best[0], operators, beside_own=True)


# Nothing is to be said of these. Of what each rank has its own, the first stands; a union of no items is a statement.
_PICKS: Final[Mapping[str, Callable[[Sequence[Fact]], Fact]]] = {
    "earliest": lambda best: min(best, key=_time),
    "first": lambda best: best[0],
    "latest": lambda best: max(best, key=_time),
    "max": lambda best: max(best, key=lambda fact: fact.value),
    "median": lambda best: best[0]._replace(value=median(fact.value for fact in best)),
    "union": lambda best: best[0]._replace(value=list(dict.fromkeys(item for fact in best for item in fact.value))),
}
_WAYS: Final[Mapping[str, Way]] = {
    "agree": _agree,
    "first_source": _first_source,
    "joined": _joined,
    "last": _last,
    "most_each": _most_each,
    "one": _one,
}
WAYS: Final = _WAYS.keys() | _PICKS.keys()
