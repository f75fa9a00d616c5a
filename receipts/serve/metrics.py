"""What the server counts of itself, as OpenMetrics text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from threading import Lock
from typing import Final

MEDIA: Final = "application/openmetrics-text; version=1.0.0; charset=utf-8"
BUCKETS: Final = (0.005, 0.02, 0.05, 0.2, 1.0, 5.0)


class Metrics:
    """Counts of requests and submits since the start."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._within: Counter[tuple[str, float]] = Counter()
        self._submits: Counter[str] = Counter()

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

    def text(self, running: int) -> str:
        """Everything, with how many comparisons run now."""
        with self._lock:
            return "\n".join([*self._lines(running), "# EOF", ""])

    def _lines(self, running: int) -> Iterator[str]:
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
        yield "# TYPE receipts_comparisons_running gauge"
        yield f"receipts_comparisons_running {running}"
