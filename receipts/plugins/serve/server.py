"""What all requests share: the store's connections, the rulebook, limits, tokens, counts, and a cache.

The cache holds what follows from the whole store, made once for each state of it, while visitors go on with the last
one. Counts are OpenMetrics text.
"""

from __future__ import annotations

import platform
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from anyio import CapacityLimiter
from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from receipts import __version__
from receipts.api.lists import frontier_and_courses
from receipts.api.store import Store
from receipts.base.environment import Actor
from receipts.base.plugins import services
from receipts.plugins.serve.guard import LOCAL, AccessDenied, Busy, ComparisonSlots, Limits
from receipts.plugins.serve.notices import Notices
from receipts.plugins.serve.workers import Writer
from receipts.questions.comparisons import Floors
from receipts.store import Store as Opened
from receipts.store.credentials import PREFIX, Token, Tokens
from receipts.store.database import Database
from receipts.store.query import Condition
from receipts.store.query.reports import FacetCounts, FacetTable, facets, store_state
from receipts.store.sql import engine_of
from receipts.store.tables import HEAD
from receipts.workflows import spool

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.plugins.serve.workers import Workers
    from receipts.questions.week.frontier import LaneCourse


T = TypeVar("T")
FRESH: Final = 60.0  # seconds: some of it depends on the time of day, or on files beside the store
PATIENCE: Final = 0.1  # seconds that a visitor waits for a newer value than the last one
MAKERS: Final = 2  # values that are made at once
KEPT: Final = 64  # answers to costly questions


class _Value(NamedTuple):
    state: Hashable
    since: float
    value: Any


class Cache:
    """Values by name, each made once at a time, however many ask for it. What makes one may not ask for another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._last: dict[str, _Value] = {}
        self._coming: dict[str, Future[Any]] = {}
        self._pool = ThreadPoolExecutor(MAKERS, "cache")

    def get(self, name: str, state: Hashable, make: Callable[[], T]) -> T:
        """The value of a state of the store; the last one where making it takes longer than `PATIENCE`.

        The first value of a name is waited for. Raises what ``make`` does.
        """
        with self._lock:
            last = self._last.get(name)
            if last is not None and last.state == state and monotonic() - last.since <= FRESH:
                kept: T = last.value
                return kept
            coming: Future[T] | None = self._coming.get(name)
            if coming is None:
                coming = self._coming[name] = self._pool.submit(self._make, name, state, make)
        try:
            return coming.result(None if last is None else PATIENCE)
        except TimeoutError:
            if last is None:
                raise
            before: T = last.value
            return before

    def close(self) -> None:
        """Wait for what is being made."""
        self._pool.shutdown(cancel_futures=True)

    def _make(self, name: str, state: Hashable, make: Callable[[], T]) -> T:
        since = monotonic()
        try:
            value = make()
            with self._lock:
                self._last[name] = _Value(state, since, value)
            return value
        finally:
            with self._lock:
                del self._coming[name]


class Shared:
    """Answers by question and state of the store: who asks what another asked is given that answer, or waits for it.

    The newest `KEPT` are kept; a failure is shared with those who wait for it, and kept for nobody.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: OrderedDict[Hashable, tuple[float, Future[Any]]] = OrderedDict()

    def get(self, question: Hashable, make: Callable[[], T]) -> T:
        """The answer, made here where nobody makes it. Raises what ``make`` does."""
        with self._lock:
            since, answer = self._answers.get(question, (0.0, Future[Any]()))
            mine = question not in self._answers or (answer.done() and monotonic() - since > FRESH)
            if mine:
                self._answers[question] = monotonic(), (answer := Future())
                self._answers.move_to_end(question)
                if len(self._answers) > KEPT:
                    self._answers.popitem(last=False)
        if mine:
            try:
                answer.set_result(make())
            except BaseException as error:
                with self._lock:
                    self._answers.pop(question, None)
                answer.set_exception(error)
        value: T = answer.result()
        return value


METRICS_MEDIA: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
BUCKETS: Final = (0.005, 0.02, 0.05, 0.2, 1.0, 5.0)


class Metrics:
    """Counts of requests and submits since the start."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._submits: Counter[str] = Counter()
        self._denied: Counter[int] = Counter()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answered request of a route's pattern."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds floats as well
            for bound in BUCKETS:
                if seconds <= bound:
                    self._within[route, bound] += 1

    def submit(self, outcome: str) -> None:
        """Count one document: valid, open, invalid, known or refused."""
        with self._lock:
            self._submits[outcome] += 1

    def denied(self, status: int) -> None:
        """Count one refusal: 401 without a valid token, 403 with one of another scope, 429 after too many of them."""
        with self._lock:
            self._denied[status] += 1

    def text(self, gauges: Mapping[str, int], build: Mapping[str, str], others: Sequence[str]) -> str:
        """Everything, with what is so now, by its name, what runs, and the lines of others."""
        with self._lock:
            return "\n".join([*self._lines(gauges, build), *others, "# EOF", ""])

    def _lines(self, gauges: Mapping[str, int], build: Mapping[str, str]) -> Iterator[str]:
        yield "# TYPE receipts_requests counter"
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'receipts_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        yield "# TYPE receipts_request_seconds histogram"
        yield "# UNIT receipts_request_seconds seconds"
        for route in sorted(self._seconds):
            count = sum(number for (_, of, _), number in self._requests.items() if of == route)
            for bound in BUCKETS:
                yield f'receipts_request_seconds_bucket{{route="{route}",le="{bound}"}} {self._within[route, bound]}'
            yield f'receipts_request_seconds_bucket{{route="{route}",le="+Inf"}} {count}'
            yield f'receipts_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'receipts_request_seconds_count{{route="{route}"}} {count}'
        yield "# TYPE receipts_submits counter"
        for outcome, count in sorted(self._submits.items()):
            yield f'receipts_submits_total{{outcome="{outcome}"}} {count}'
        yield "# TYPE receipts_auth_failures counter"
        for status in (401, 403, 429):
            yield f'receipts_auth_failures_total{{status="{status}"}} {self._denied[status]}'
        for name, value in gauges.items():
            yield from (f"# TYPE receipts_{name} gauge", f"receipts_{name} {value}")
        labels = ",".join(f'{name}="{value}"' for name, value in build.items())
        yield from ("# TYPE receipts_build info", f"receipts_build_info{{{labels}}} 1")


@dataclass(frozen=True)
class Settings:
    """How a server is set up. ``hosts`` are the names that it answers to, ``origins`` other sites that may ask.

    ``open`` lets everybody do everything: only for an address that this machine alone can reach.
    """

    hosts: tuple[str, ...] = LOCAL
    origins: tuple[str, ...] = ()
    open: bool = False
    limits: Limits = field(default_factory=Limits)


class Server:
    """The state of a running server. Every method may be called from any thread."""

    def __init__(self, opened: Opened, rulebook: Rulebook, settings: Settings, to: Sequence[Any] = ()) -> None:
        self.opened = opened
        self.rulebook = rulebook
        self.settings = settings
        self.tokens = Tokens(opened.database)
        self.gate = ComparisonSlots(settings.limits.comparisons, settings.limits.patience)
        self.queue = CapacityLimiter(settings.limits.queued)
        self._shared = Shared()
        self.metrics = Metrics()
        self._cache = Cache()
        self._floors_of: tuple[Hashable, Floors] = (None, {})
        self._limiter = FixedWindowRateLimiter(MemoryStorage())
        self._rate, self._failures = parse(settings.limits.rate), parse(settings.limits.failures)
        rulebook.rules, rulebook.lanes  # noqa: B018  # read now: a rule that does not load ends the start, not a request
        self.notices = Notices(self, to) if to else None
        self.workers: Workers | None = None
        self.writer = Writer(self.store, self.notices.stored if self.notices is not None else None)

    def close(self) -> None:
        """Finish what is being written, and close every connection."""
        self.writer.close()
        if self.workers is not None:
            self.workers.close()
        if self.notices is not None:
            self.notices.close()
        self._cache.close()
        self.opened.close()

    def store(self, token: Token | None = None) -> Store:
        """The store for one request: a state of its own over the shared connections; rows record the token's name."""
        database = self.opened.database
        actor = Actor("token", token.name) if token is not None else None
        opened = Opened(Database(database.engine, database.address, actor))
        # Noise floors of the present state of the store, which requests share: reading one takes 0.2 s.
        now = store_state(self.opened.database)
        if self._floors_of[0] != now:
            self._floors_of = (now, {})
        return Store(opened, self.rulebook, self._floors_of[1])

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """What follows from the whole store, made again by another thread where the store has changed.

        Who asks waits a moment for it, and is then given what was made last.
        """
        return self._cache.get(name, store_state(self.opened.database), make)

    def shared(self, question: Hashable, make: Callable[[], T]) -> T:
        """The answer to a costly question for everybody who asks it of this state of the store."""
        return self._shared.get((question, store_state(self.opened.database)), make)

    def facets(self, conditions: tuple[Condition, ...] = (), words: tuple[str, ...] = ()) -> FacetTable:
        """How many receipts meet conditions, by lane, status and outcome."""

        def counted() -> FacetTable:
            return facets(self.opened.database, conditions, words)

        return self.shared((conditions, words), counted) if conditions or words else self.cached("counts", counted)

    def counts(self) -> FacetCounts:
        """How many receipts stand, by lane, status and outcome."""
        return self.facets().of({})

    def frontier(self) -> list[dict[str, Any]]:
        """The rows of the frontier."""
        return self.leading()[0]

    def leading(self) -> tuple[list[dict[str, Any]], list[LaneCourse]]:
        """The rows of the frontier, and the course of each lane over the weeks."""
        return self.cached("frontier", lambda: frontier_and_courses(self.store().opened, self.rulebook))

    def measured(self) -> str:
        """Its metrics, as OpenMetrics text."""
        database = self.opened.database
        with database.reading() as connection:
            size = engine_of(connection).size(connection)
        gauges = {
            "comparisons_running": self.gate.running,
            "writer_queue_documents": self.writer.waiting,
            "store_bytes": size,
            "store_receipts": sum(count for _, count in self.counts()["lane"]),
            "spool_documents": spool.count(database.address.target),
            "notices_failed": self.notices.kept if self.notices is not None else 0,
        }
        build = {
            "version": __version__,
            "schema": HEAD,
            "rules": self.rulebook.rules.digest[:12],
            "python": platform.python_version(),
        }

        def of_plugins() -> list[str]:
            store = self.store().opened
            return [line for module in services("gauges") for line in module.gauges(store, self.rulebook)]

        return self.metrics.text(gauges, build, self._cache.get("gauges", int(monotonic() // FRESH), of_plugins))

    def admit(self, caller: str) -> None:
        """Count a request of a caller. Raises Busy beyond the rate."""
        if not self._limiter.hit(self._rate, "rate", caller):
            raise Busy(1)

    def authenticate(self, secret: str | None, scope: str | None, caller: str) -> Token | None:
        """The token of a secret, which may do what the scope names; None where nobody needs one.

        Raises AccessDenied, and Busy for an address that tries too many tokens, or a token that is tried too often. The
        right one is never held up by what others try.
        """
        if scope is None or self.settings.open:
            return None
        token = self.tokens.holder(secret) if secret else None
        if token is None:
            tried = [("address", caller), ("token", secret[:PREFIX])] if secret else []
            passed = [self._limiter.hit(self._failures, *item) for item in tried]  # each is counted
            self.metrics.denied(401 if all(passed) else 429)
            if not all(passed):
                raise Busy(60)
            raise AccessDenied(401, "send a valid token: Authorization: Bearer rcp_…")
        if not (token.may(scope) or (scope == "submit" and token.lanes)):
            self.metrics.denied(403)
            raise AccessDenied(403, f"{token.name} may {', '.join(token.scopes)}; this takes {scope}", token.name)
        return token
