"""What all requests share: the store's connections, the rulebook, limits, tokens and counts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from receipts.api.store import Store
from receipts.base.environment import Actor
from receipts.questions.comparisons import Floors
from receipts.serve.cache import Cache
from receipts.serve.limits import Busy, ComparisonSlots, Limits
from receipts.serve.metrics import Metrics
from receipts.serve.notices import Notices, Target
from receipts.serve.sites import LOCAL
from receipts.serve.writer import Writer
from receipts.store import Store as Opened
from receipts.store.database import Database
from receipts.store.query.reports import FacetCounts, facet_counts, store_state
from receipts.store.tokens import PREFIX, Token, Tokens

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.serve.workers import Workers

T = TypeVar("T")


class AccessDenied(Exception):
    """The caller may not do this: ``status`` 401 without a valid token, 403 with one of another scope."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


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

    def __init__(self, opened: Opened, rulebook: Rulebook, settings: Settings, to: Sequence[Target] = ()) -> None:
        self.opened = opened
        self.rulebook = rulebook
        self.settings = settings
        self.tokens = Tokens(opened.database)
        self.gate = ComparisonSlots(settings.limits.comparisons)
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
        return Store(opened, self.rulebook, self._floors())

    def cached(self, name: str, make: Callable[[], T]) -> T:
        """What follows from the whole store, made again by another thread where the store has changed.

        Who asks waits a moment for it, and is then given what was made last.
        """
        return self._cache.get(name, store_state(self.opened.database), make)

    def _floors(self) -> Floors:
        """Noise floors of the present state of the store, which requests share: reading one takes 0.2 s."""
        now = store_state(self.opened.database)
        if self._floors_of[0] != now:
            self._floors_of = (now, {})
        return self._floors_of[1]

    def counts(self) -> FacetCounts:
        """How many receipts stand, by lane, status and outcome."""
        return self.cached("counts", lambda: facet_counts(self.opened.database))

    def frontier(self) -> list[dict[str, Any]]:
        """The rows of the frontier."""
        rows: list[dict[str, Any]] = self.cached("frontier", lambda: self.store().frontier().to_dict())
        return rows

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
            if not all(passed):
                raise Busy(60)
            raise AccessDenied(401, "send a valid token: Authorization: Bearer rcp_…")
        if not (token.may(scope) or (scope == "submit" and token.lanes)):
            raise AccessDenied(403, f"{token.name} may {', '.join(token.scopes)}; this takes {scope}")
        return token
