"""The sides of a comparison: which launches were asked for, which others belong to them, and which were left out.

The one owner of what lies between two names and two groups of launches. A label means the launches that carry it; an
id or a file means that launch and those of its session with the same configuration and label, and labels that number
the launches of one name are one. Stored launches of other sessions, labels or compiled programs enter no side unasked:
they are counted, and show how far days lie apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from receipts.axes.configuration import configuration
from receipts.axes.difference import difference_under
from receipts.axes.lane import Lane
from receipts.axes.replicates import distinct_steps, replicates
from receipts.judging.verdict import OF_THIS_SESSION, LeftOut
from receipts.judging.witness import as_requested
from receipts.receipt import Parsed
from receipts.receipt.document import UNFAILED
from receipts.stats.sessions import APART, SPAN, sessions

if TYPE_CHECKING:
    from datetime import datetime

    from receipts.axes.configuration import Configuration
    from receipts.store import Store
    from receipts.store.query.replicates import AlikeLaunch, AlikeLaunches

Group = Sequence[Parsed]
Join = Literal["session", "label", "only", "all"]
MAX_HELD: Final = 1000  # configurations whose launches are held at once
MAX_JOINED_EACH: Final = 5  # of each kind, where a page of a launch asks: dozens tell nothing more
MAX_JOINED: Final = 200  # stored launches that are added to a side: each is read whole
# What one launch of a side says for all of them beside its axes; `compare` leaves open what differs in it.
AS_MEASURED = (
    "run.witness_for",
    "measurement.region",
    "measurement.timer",
    "measurement.synchronisation",
    "measurement.tokens_per_step",
    "data.kind",
    "data.dataset_digest",
)
PROGRAM: Final = "compile.program_digest"
_NUMBERED: Final = re.compile(r"(?P<name>.*\w)[\s/_#-]+(?P<number>\d{1,4})")


class StoredLaunches:
    """Stored launches by their configurations: each configuration is read once for many comparisons.

    None that ended after ``until``.
    """

    def __init__(self, store: Store, until: datetime | None = None) -> None:
        self.store = store
        self._until = until
        self._held: dict[tuple[object, ...], list[AlikeLaunch]] = {}

    def newest(self, head: Parsed, lane: Lane) -> list[AlikeLaunch]:
        """Launches of a receipt's configuration and kind, the newest first."""
        return self._newest(head, configuration(head, lane))

    def near(
        self, head: Parsed, lane: Lane, span: tuple[datetime, datetime], sessions: Collection[str]
    ) -> AlikeLaunches:
        """The same by whether they are in a span of time or of a declared session."""
        from receipts.store.query.replicates import MAX_ALIKE, AlikeLaunches

        own = configuration(head, lane)
        newest = self._newest(head, own)
        if len(newest) > MAX_ALIKE:
            return self.store.query.alike(head, own, span, sessions, self._until)
        return AlikeLaunches.of(newest, span, sessions)

    def _newest(self, head: Parsed, own: Configuration) -> list[AlikeLaunch]:
        run = head.receipt.run
        key = (own.whole, own.plain and own.plain.whole, run.kind, run.outcome, run.context)
        if key not in self._held:
            if len(self._held) >= MAX_HELD:
                del self._held[next(iter(self._held))]
            self._held[key] = self.store.query.newest_alike(head, own, self._until)
        return self._held[key]


class Asked(NamedTuple):
    """Both sides as they were asked for. ``history`` are stored launches of either configuration that were not."""

    a: list[Parsed]
    b: list[Parsed]
    left_out: tuple[LeftOut, ...] = ()
    history: tuple[tuple[AlikeLaunch, ...], tuple[AlikeLaunch, ...]] = ((), ())
    pooled: bool = False


def asked(
    stored: StoredLaunches | None,
    lane_of: Callable[[Parsed], Lane],
    a: Group,
    b: Group = (),
    *,
    labelled: Collection[str] = (),
    join: Join = "session",
    few: Callable[[AlikeLaunch], object] | None = None,
) -> Asked:
    """Both sides with the stored launches that belong to them.

    ``labelled`` are the ids of launches that a label or a pattern named: it means these, and no others. ``join``:
    *session* adds the launches of the session of those that were named by id, *label* also those of the other sessions
    that both labels have launches of, as if the labels had been named, *only* adds none, *all* pools every stored
    launch of the configurations. None is added that the other side names; where both sides are of one configuration
    and label nothing is, since what repeats one side repeats the other. ``few``: of the launches for which it gives one
    value, `MAX_JOINED_EACH` are added at most.
    """
    groups = (list(a), list(b))
    if stored is None or not any(groups):
        return Asked(*groups, pooled=join == "all")
    return _Sides(stored, lane_of, groups, frozenset(labelled)).joined(join, few)


class _Sides:
    """Two sides, the stored launches of their configurations, and the sessions that all of these make."""

    def __init__(
        self,
        stored: StoredLaunches,
        lane_of: Callable[[Parsed], Lane],
        groups: tuple[list[Parsed], list[Parsed]],
        labelled: frozenset[str],
    ) -> None:
        self._store = stored.store
        self._lane_of = lane_of
        self._groups = groups
        self._stored = [self._alike(stored, group) if group else None for group in groups]
        self._labels = [
            {item.receipt.run.label for item in group}
            | _numbered_alike(group, stored.near if stored else ())
            | _numbered_alike(group, (*stored.near, *stored.others) if stored else ())  # numbered on over nights
            for group, stored in zip(groups, self._stored, strict=True)
        ]
        named = [item for group in groups for item in group]
        self._named = {item.id for item in named}
        self._launches = {item.receipt.run.launch for item in named}
        self._twins = all(groups) and replicates(groups[0][0], groups[1][0], lane_of(groups[0][0]))
        ambiguous = self._twins and bool(self._labels[0] & self._labels[1])
        self._open = [not ambiguous and any(item.id not in labelled for item in group) for group in groups]
        self._in_session = self._of_session(named)
        self._other_programs: list[set[str]] = [set(), set()]

    def _alike(self, stored: StoredLaunches, group: Group) -> AlikeLaunches:
        head, runs = group[0], [item.receipt.run for item in (*self._groups[0], *self._groups[1])]
        reach = timedelta(seconds=SPAN)
        span = min(run.started for run in runs) - reach, max(run.started for run in runs) + reach
        names = {run.session for run in runs if run.session is not None}
        return stored.near(head, self._lane_of(head), span, names)

    def _of_session(self, named: Group) -> frozenset[str]:
        """Ids of stored launches that are of a session of the named ones, spoilt ones among them.

        Those that count make the sessions; what is spoilt joins none to another, or submitting it would change a side.
        """
        rows = {
            row.id: row
            for stored, labels in zip(self._stored, self._labels, strict=True)
            for row in (stored.near if stored is not None else ())
            if row.label in labels and row.id not in self._named
        }
        sound = [row for row in rows.values() if row.sound and row.outcome in UNFAILED]
        times = [item.receipt.run.started.timestamp() for item in named] + [row.started.timestamp() for row in sound]
        names = [item.receipt.run.session for item in named] + [row.session for row in sound]
        numbers = sessions(times, names)
        ours = set(numbers[: len(named)])
        inside = [time for time, number in zip(times, numbers, strict=True) if number in ours]
        declared = {name for name, number in zip(names, numbers, strict=True) if name is not None and number in ours}
        joined = {row.id for row, number in zip(sound, numbers[len(named) :], strict=True) if number in ours}
        unsound = (row for row in rows.values() if row not in sound)
        near = (
            row.id
            for row in unsound
            if row.session in declared or any(abs(row.started.timestamp() - time) <= APART for time in inside)
        )
        return frozenset({*joined, *near})

    def joined(self, join: Join, few: Callable[[AlikeLaunch], object] | None) -> Asked:
        """Both sides as `asked` says."""
        belonging = set(self._in_session)
        if join == "label":  # and sound ones of the labels of both sides, of the sessions that have launches of both
            rows = [
                [
                    row
                    for row in self._rows(at)
                    if row.sound and row.outcome in UNFAILED and row.label is not None and row.label in self._labels[at]
                ]
                for at in (0, 1)
            ]
            every = [*rows[0], *rows[1]]
            numbers = sessions([row.started.timestamp() for row in every], [row.session for row in every])
            shared = set(numbers[: len(rows[0])]) & set(numbers[len(rows[0]) :])
            belonging |= {row.id for row, number in zip(every, numbers, strict=True) if number in shared}
        sides = [self._added(at, join, belonging, few) for at in (0, 1)]
        ids = {item.id for side in sides for item in side}
        left_out = (*self._left_out(0, "a", ids), *self._left_out(1, "b", ids))
        history = tuple(
            tuple(row for row in self._rows(at) if row.id not in ids and row.sound and row.outcome in UNFAILED)
            for at in (0, 1)
        )
        return Asked(sides[0], sides[1], left_out, (history[0], history[1]), pooled=join == "all")

    def _rows(self, at: int) -> Iterable[AlikeLaunch]:
        stored = self._stored[at]
        return (*stored.near, *stored.others) if stored is not None else ()

    def _added(
        self, at: int, join: Join, belonging: Collection[str], few: Callable[[AlikeLaunch], object] | None
    ) -> list[Parsed]:
        """A side with the stored launches that join it, the earliest first behind those that were named."""
        side = list(self._groups[at])
        if not side or join == "only" or not (self._open[at] if join != "all" else not self._twins):
            return side
        rows = sorted(self._rows(at), key=lambda row: (row.outcome != side[0].receipt.run.outcome, not row.sound))
        wanted = [row for row in rows if join == "all" or (row.id in belonging and row.label in self._labels[at])]
        steps = {own for item in side for own in distinct_steps(item)}
        added: list[Parsed] = []
        kinds = Counter[object]()
        for row in wanted:
            if len(added) >= MAX_JOINED:
                break
            if row.id in self._named or row.launch in self._launches:
                continue
            if few is not None and kinds[few(row)] >= MAX_JOINED_EACH:
                continue
            candidate = self._store.parsed(row.id)
            own_steps = distinct_steps(candidate)
            if steps.isdisjoint(own_steps) and self._joins(at, candidate):
                steps.update(own_steps)
                self._launches.add(row.launch)
                added.append(candidate)
                if few is not None:
                    kinds[few(row)] += 1
        return [*side, *sorted(added, key=lambda item: item.receipt.run.started)]

    def _joins(self, at: int, candidate: Parsed) -> bool:
        """Whether a launch of the configuration is one of the side: run, asked for and measured as its first one.

        One that was asked for another path and fell back to the side's was not asked for the same.
        """
        head = self._groups[at][0]
        lane = self._lane_of(head)
        programs = {item.stated.get(PROGRAM) for item in self._groups[at]} - {None}
        if programs and candidate.stated.get(PROGRAM) not in {*programs, None}:
            self._other_programs[at].add(candidate.id)
            return False
        # A launch that failed may not have come to say how it was measured.
        as_measured = AS_MEASURED if candidate.receipt.run.outcome == head.receipt.run.outcome else ()
        if any(head.stated.get(path) != candidate.stated.get(path) for path in as_measured):
            return False
        if not replicates(head, candidate, lane):
            return False
        return not difference_under(lane, as_requested(head), as_requested(candidate)).changed

    def _left_out(self, at: int, letter: Literal["a", "b"], ids: Collection[str]) -> Iterable[LeftOut]:
        """Sound stored launches of a side's configuration that are on no side, by why they are not."""
        counts: dict[str, int] = {}
        for row in self._rows(at):
            if row.id in ids or not row.sound or row.outcome not in UNFAILED:
                continue
            if row.id in self._other_programs[at]:
                which = "of another compiled program"
            elif row.label not in self._labels[at]:
                which = "of other labels"
            elif row.id in self._in_session:
                which = OF_THIS_SESSION
            else:
                which = "of other sessions"
            counts[which] = counts.get(which, 0) + 1
        stored = self._stored[at]
        if stored is not None and stored.more:
            counts["of other sessions"] = counts.get("of other sessions", 0) + stored.more
        return [LeftOut(letter, count, which) for which, count in counts.items()]


def _numbered_alike(group: Group, stored: Iterable[AlikeLaunch]) -> set[str | None]:
    """Labels that number launches of one name with those of a side, as `math 1` to `math 5` do.

    A number counts launches where those of the configuration are 0 or 1 and on, without a gap; else it may be a
    setting that no leaf states, as in `workers 2` and `workers 8`.
    """
    own = {item.receipt.run.label for item in group}
    by_name: dict[str, dict[int, str]] = {}
    for label in own | {row.label for row in stored}:
        match = _NUMBERED.fullmatch(label or "")
        if match is not None:
            by_name.setdefault(match["name"], {})[int(match["number"])] = match[0]
    runs = (labels for labels in by_name.values() if sorted(labels) == list(range(min(labels), max(labels) + 1)))
    alike = [set(labels.values()) for labels in runs if min(labels) <= 1]
    return {label for labels in alike if labels & own for label in labels}


def groups(launches: Iterable[Parsed], lane: Lane) -> list[list[Parsed]]:
    """The launches that replicate one another, two and more together, in the order given; copies are left out."""
    from receipts.axes.configuration import typed_options
    from receipts.axes.replicates import SettingsCache

    session, by_configuration = SettingsCache(), dict[tuple[object, ...], list[Parsed]]()
    for parsed in launches:
        # Of two contexts nobody knows that they leave the same unsaid, even where each axis is stated.
        whole = session.settings(parsed).configuration(parsed, lane).whole
        key = (parsed.receipt.run.context, whole, typed_options(parsed, lane))
        by_configuration.setdefault(key, []).append(parsed)
    replicated = []
    for alike in by_configuration.values():
        # One configuration: any two of them differ as the first two do.
        if len(alike) < 2 or not replicates(alike[0], alike[1], lane):
            continue
        own, seen = list[Parsed](), set[tuple[float, ...]]()
        for parsed in alike:
            steps = distinct_steps(parsed)
            if seen.isdisjoint(steps):
                own.append(parsed)
            seen.update(steps)
        if len(own) > 1:
            replicated.append(own)
    return replicated
