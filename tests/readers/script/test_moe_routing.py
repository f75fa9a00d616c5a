"""Observations of routers, and losses that are none."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.script.counters import MoeRoutingReader


def readings(*lines: str) -> list[Reading]:
    return scan(["\n".join((*lines, "")).encode()], [MoeRoutingReader])


@pytest.mark.parametrize(
    "line",
    [
        "step 3 layer 2 tokens_per_expert: [100, 50, 25, 25]",
        "tokens per expert = [100. 50. 25. 25.]",
        "num_tokens_per_expert=tensor([100, 50, 25, 25], device='cuda:0')",
        "{'tokens_per_expert': [100, 50, 25, 25]}",
    ],
)
def test_the_largest_load_is_told_over_the_mean(line: str) -> None:
    (reading,) = readings(line)
    assert reading.stated["measurement.routing.load_ratio"].value == 2.0


def test_the_worst_line_stands() -> None:
    (reading,) = readings("tokens_per_expert: [10, 10]", "tokens_per_expert: [15, 5]", "tokens_per_expert: [10, 10]")
    stated = reading.stated["measurement.routing.load_ratio"]
    assert (stated.value, stated.place.line) == (1.5, 2)


@pytest.mark.parametrize(
    ("line", "share"),
    [
        ("dropped tokens: 12 / 4,096", 12 / 4096),
        ("token drop rate: 0.25%", 0.0025),
        ("moe/drop_frac=0.125", 0.125),
        ("tokens_dropped: 0", 0.0),
    ],
)
def test_a_share_of_dropped_tokens_is_told(line: str, share: float) -> None:
    (reading,) = readings(line)
    assert reading.stated["measurement.routing.dropped_share"].value == pytest.approx(share)


@pytest.mark.parametrize(
    "line",
    [
        "load_balancing_loss: 1.03E-02 | moe_lb_loss: 0.01 | z_loss: 1e-4",
        "dropped tokens: 12",
        "tokens_per_expert: [12]",
        "tokens_per_expert: [0, 0]",
        "tokens_per_expert: [1, x]",
        "token drop rate: 7",
        'print(f"tokens_per_expert: {counts}")',
        "moe_token_drop_policy ......... probs",
    ],
)
def test_losses_settings_and_counts_without_a_whole_are_no_observation(line: str) -> None:
    assert readings(line) == []
