"""What follows from the whole store, made once for each state of it, while visitors go on with the last one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

T = TypeVar("T")
FRESH: Final = 60.0  # seconds: some of it depends on the time of day, or on files beside the store
PATIENCE: Final = 0.1  # seconds that a visitor waits for a newer value than the last one
MAKERS: Final = 2  # values that are made at once


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
