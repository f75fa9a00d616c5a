"""What is asked of a store: each question often, and each time of another launch, drawn over the whole store."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy import func, select

from benchmarks.scaling.documents import Size
from benchmarks.scaling.launches import BASES, CENTRE, STATES, Kind, Launch, Point
from benchmarks.scaling.rows import Maker
from receipts.axes.configuration import Configuration, configuration
from receipts.axes.lane import Lane
from receipts.axes.shape import sign
from receipts.judging.rulebook import Rulebook
from receipts.plugins.study.bridge import bridge
from receipts.plugins.track.line import history_of
from receipts.plugins.track.watch import watch
from receipts.questions.neighbours import MAX_COMPARED, neighbours
from receipts.questions.preflight import preflight
from receipts.receipt import Document, Parsed, parse
from receipts.store import Filters, Store, condition
from receipts.store.tables import receipts

LISTED: Final = 51  # rows: as many as `receipts list` asks for
OF_A_STATE: Final = 1900  # launches of one state of the code, and a few more
# Neighbours of one axis, as many as every store of the series has: ten thousand launches are five states of the code,
# and one that is asked for has four others. What more of them there are in larger stores is answered, and takes time.
ALIKE: Final = 4
ALIKE_NAME: Final = f"neighbours, look-up, the newest {ALIKE} of an axis"
NEAR_MS, BRIDGE_MS, PREFLIGHT_MS = 20.0, 200.0, 50.0
HISTORY_MS, WATCH_MS = 100.0, 10_000.0
WEEK: Final = timedelta(days=7)
COMMON_MS, PAIR_MS = 50.0, 1000.0
# One filter on an axis, or two that many receipts meet.
COMMON: Final[Mapping[str, Sequence[str]]] = {
    "a flag": ("flags.SCALE_FIRST=1",),
    "a data set": ("data.dataset=corpus-3",),
    "a data set that nobody has": ("data.dataset=none",),
    "a bucket that few have": ("parallelism.bucket_bytes=100005",),
    "lane and outcome, nearly all of the lane": ("lane=cpu-torch", "outcome=ok"),
    "lane and length": ("lane=tpu-torch-xla", "sequence_length=4096"),
    "length and micro batch": ("sequence_length=4096", "micro_batch=8"),
    "a flag and micro batch": ("flags.SCALE_FIRST=1", "micro_batch=8"),
    "two flags": ("flags.SCALE_FIRST=1", "flags.SCALE_SECOND=1"),
}
# Any two filters: selective ones and others, axes that are no column, a commit, patterns, what nobody has, what many
# have and nobody together, and what was long ago.
PAIRS: Final[Mapping[str, Sequence[str]]] = {
    "lane and outcome, few": ("lane=nvidia-megatron", "outcome=oom"),
    "a flag and outcome": ("flags.SCALE_FIRST=1", "outcome=oom"),
    "a bucket that few have, and a flag": ("parallelism.bucket_bytes=100005", "flags.SCALE_FIRST=0"),
    "data set and learning rate": ("data.dataset=corpus-3", "numerics.learning_rate=0.0003"),
    "lane, and data set": ("lane=cpu-torch", "data.dataset=corpus-3"),
    "status and data set": ("status=valid", "data.dataset=corpus-3"),
    "a flag, and a data set of long ago": ("flags.SCALE_FIRST=1", "data.dataset=corpus-2"),
    "lane, and the files imported": ("lane=cpu-torch", "code.imported_digest={imported}"),
    "lane, and commit": ("lane=cpu-torch", "code.commit={commit}"),
    "commit, and a flag": ("code.commit={commit}", "flags.SCALE_FIRST=1"),
    "a commit's pattern, and outcome": ("code.commit={start}*", "outcome=ok"),
    "host and outcome": ("host=host-07", "outcome=oom"),
    "host and a flag": ("host=host-07", "flags.SCALE_FIRST=1"),
    "a lane's pattern, and a host's": ("lane=tpu-*", "host=host-1*"),
    "context and status": ("context=nvidia-megatron-base-4", "status=open"),
    "lane, and a label's pattern": ("lane=cpu-torch", "label=b3-mb8-*"),
    "outcome, and since a day": ("outcome=oom", "started>=2025-01-07"),
    "rate, and share of the peak": ("tokens_per_second>1000", "mfu>0.1"),
    "lane, and a share of the peak that it never states": ("lane=cpu-torch", "mfu>0.1"),
    "chips, and a share of the peak that few reach": ("chips>=8", "mfu>0.5035"),
    "a share of the peak that nobody has, and outcome": ("mfu>5", "outcome=ok"),
    "a length that nobody has, and micro batch": ("sequence_length=777", "micro_batch=8"),
    "a host that there is not, and outcome": ("host=nowhere", "outcome=ok"),
    "a context that there is not, and outcome": ("context=none", "outcome=ok"),
    "a commit that there is not, and outcome": ("code.commit=none", "outcome=ok"),
    "a label that there is not, and outcome": ("label=none*", "outcome=ok"),
    "lane, and a status that nobody has": ("lane=cpu-torch", "status=invalid"),
    "lane, and a provenance that nobody has": ("lane=cpu-torch", "provenance=quoted"),
}
# What no index answers where nobody has it: every receipt is passed by, so that there is no bar.
SCANS: Final[Mapping[str, Sequence[str]]] = {
    "a pattern without a beginning that no label has, by all": ("label=*none", "outcome=ok"),
}


@dataclass(frozen=True)
class Ask:
    """A question; ``calls`` ask it once each. ``bar`` is the most that its median may take, in milliseconds."""

    name: str
    calls: Sequence[Callable[[], object]]
    bar: float | None = None


class Drawn:
    """Launches of a store of so many, drawn at random, and questions on them."""

    def __init__(self, store: Store, count: int, size: Size, rounds: int) -> None:
        self._store = store
        self._rulebook = Rulebook()
        self._maker = Maker(size)
        self._rounds = rounds
        self._count = count
        self._draw = random.Random(count)
        self._states = max(1, count // OF_A_STATE - 1)
        self.numbers = self._draw.sample(range(1, count + 1), min(rounds, count))

    def __repr__(self) -> str:
        return f"Drawn({self._store!r})"

    def asks(self) -> Iterator[Ask]:
        """Every question."""
        parsed = [self._store.parsed(name) for name in self._ids()]
        lanes = [self._lane(one) for one in parsed]
        yield from self._near(parsed, lanes)
        yield from self._lists()
        yield from self._bridges()
        made = [sign(one, lane) for one, lane in zip(parsed, lanes, strict=True)]
        store = self._store
        yield Ask("preflight, by signature", [partial(store.query.same_signature, one) for one in made], PREFLIGHT_MS)
        yield Ask("preflight, by base", [partial(store.query.dominating, one) for one in made], PREFLIGHT_MS)
        whole = [partial(preflight, one, lane, store) for one, lane in zip(parsed, lanes, strict=True)]
        yield Ask("preflight, whole answer", whole, PREFLIGHT_MS)
        yield from self._over_time(parsed)
        new = [self._launch(at, Kind(0, at % BASES, CENTRE, 0), self._states) for at in range(self._rounds)]
        yield Ask("facts for a submit", [partial(store.query.facts_of_new, [one]) for one in new])

    def _over_time(self, parsed: Sequence[Parsed]) -> Iterator[Ask]:
        kept = [one for one in parsed if "measurement.step_durations_seconds" in one.stated] or parsed
        calls = [partial(history_of, self._store, one, self._lane(one), "step_seconds") for one in kept]
        yield Ask("history of a line", calls, HISTORY_MS)
        with self._store.database.reading() as connection:
            newest = connection.execute(select(func.max(receipts.c.submitted_at))).scalar_one()
        yield Ask("watch over a week", [partial(watch, self._store, self._rulebook, newest - WEEK)] * 2, WATCH_MS)

    def _ids(self) -> list[str]:
        with self._store.database.reading() as connection:
            query = select(receipts.c.id).where(receipts.c.seq.in_(self.numbers)).order_by(receipts.c.seq)
            return list(connection.execute(query).scalars())

    def _lane(self, one: Parsed) -> Lane:
        return self._rulebook.lanes.of(one.receipt.run.lane)

    def _near(self, parsed: Sequence[Parsed], lanes: Sequence[Lane]) -> Iterator[Ask]:
        both = [(one, configuration(one, lane)) for one, lane in zip(parsed, lanes, strict=True)]
        store, query = self._store, self._store.query
        yield Ask(
            "neighbours, look-up",
            [partial(query.neighbours, *item, None, MAX_COMPARED) for item in both],
            NEAR_MS,
        )
        yield Ask(ALIKE_NAME, [partial(query.neighbours, *item, None, ALIKE) for item in both], NEAR_MS)
        yield Ask("neighbours in the code alone", [partial(query.neighbours, *item, "code") for item in both], NEAR_MS)
        yield Ask("launches of one configuration", [partial(query.replicate_candidates, *item) for item in both])
        well = [one for one in parsed if one.receipt.run.outcome == "ok"][: max(2, self._rounds // 40)]
        compared = [partial(neighbours, store, one, self._rulebook) for one in well]
        yield Ask("neighbours, each compared", compared)

    def _lists(self) -> Iterator[Ask]:
        one = self._store.parsed(self._ids()[0]).stated
        commit = one["code.commit"]
        words = {"imported": one["code.imported_digest"], "commit": commit, "start": commit[:4]}
        for lists, bar in ((COMMON, COMMON_MS), (PAIRS, PAIR_MS), (SCANS, None)):
            for name, texts in lists.items():
                asked = Filters(tuple(condition(text.format(**words)) for text in texts), limit=LISTED)
                calls = [partial(self._listed, asked)] * max(3, self._rounds // 10)
                yield Ask(f"list: {name}", calls, bar)

    def _listed(self, filters: Filters) -> int:
        return len(list(self._store.find(filters)))

    def _bridges(self) -> Iterator[Ask]:
        ends = [self._ends(at) for at in range(max(4, self._rounds // 5))]
        ran = [(configuration(a, self._lane(a)), configuration(b, self._lane(b))) for a, b in ends]
        yield Ask("bridge over 3 axes, look-ups", [partial(self._between, *item) for item in ran], BRIDGE_MS)
        whole = [partial(bridge, self._store, *item, self._rulebook) for item in ends[:6]]
        # The bar is that of a million; smaller stores hold documents with every step and chip, which are read whole.
        bar = BRIDGE_MS if self._count >= 1_000_000 else None
        yield Ask("bridge over 3 axes, every hop compared", whole, bar)

    def _between(self, a: Configuration, b: Configuration) -> int:
        axes = sorted(a.apart(b))
        mixed = self._store.query.mixtures(a, b, axes, "training")
        return len(mixed) + len(self._store.query.mixtures(a, b, axes, "training", beyond=True))

    def _ends(self, at: int) -> tuple[Parsed, Parsed]:
        """Launches of a base that keeps its steps in every store; they differ in micro batch and both flags."""
        base, state = (3, 7)[at % 2], self._draw.randrange(self._states)
        one, other = Point(2, 2048, 0, 0), Point(8, 2048, 1, 1)
        period = state // STATES
        return (
            self._launch(2 * at, Kind(period, base, one, 0), state),
            self._launch(2 * at + 1, Kind(period, base, other, 0), state),
        )

    def _launch(self, at: int, kind: Kind, state: int) -> Parsed:
        """A launch that is not stored."""
        number = 10**9 + at
        raw = self._maker.made(Launch(number, number, kind._replace(period=state // STATES), state, 1234))[1]
        return parse(Document(raw, "scale"))
