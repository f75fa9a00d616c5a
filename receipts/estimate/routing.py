"""Routing scratch of expert blocks: counts, receive and combine buffers, as the capacity factor sizes them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from receipts.metrics.arithmetic import capacity


@dataclass(frozen=True, slots=True)
class RoutingScratch:
    """Scratch of one expert block on a rank, in bytes. ``rows`` are token copies that this rank's experts take.

    ``capacity`` is rows of an expert from one of ``sources`` ranks, ``local_experts`` the experts of this rank.
    """

    capacity: int
    rows: float
    counts: float
    receive: float
    combine: float
    local_experts: int = 1
    sources: int = 1

    @property
    def total(self) -> float:
        """All three together."""
        return self.counts + self.receive + self.combine

    @property
    def one_source(self) -> RoutingScratch:
        """What the tokens of one rank alone need: the exchange of an expert degree of 1."""
        ways = self.sources
        return replace(self, rows=self.rows / ways, receive=self.receive / ways, combine=self.combine / ways, sources=1)


def routing(
    *,
    tokens: int,
    top_k: int,
    experts: int,
    local_experts: int,
    hidden: int,
    element_bytes: float,
    capacity_factor: float | None = None,
    sources: int = 1,
) -> RoutingScratch:
    """Counts in 4-byte integers a routed token; receive and combine: capacity · hidden · local experts · bytes.

    With a capacity factor every local expert takes `capacity` rows from each of ``sources`` ranks, filled or not (the
    padded all-to-all of GShard, section 3.2). Without one nothing is dropped and nothing padded, and at even routing a
    rank takes as many rows as it sends (Gale et al. 2022, MegaBlocks, arXiv:2211.15841).
    """
    if capacity_factor is None:
        rows = tokens * top_k / experts * local_experts * sources
        each = math.ceil(tokens * top_k / experts)
    else:
        each = capacity(tokens, top_k, experts, capacity_factor)
        rows = float(each * local_experts * sources)
    buffer = rows * hidden * element_bytes
    return RoutingScratch(each, rows, tokens * top_k * 4.0, buffer, buffer, local_experts, sources)
