"""Arithmetic that a claim's record gives, done again with the product's own readings of the two receipts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from receipts import metrics
from receipts.metrics import Launch
from receipts.receipt.accelerators import find_accelerator

# A rate's record is in the unit that the notebook prints: its factor from SI.
PRINTED = {
    "step_seconds": 1e3,
    "mfu": 100.0,
    "peak_bytes": 1.0,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One figure: what the record gives, and what follows from the receipts; None where they do not give it."""

    claim: str
    figure: str
    recorded: float
    found: float | None

    @property
    def agrees(self) -> bool:
        """Within half the last digit of the record, or the noise of two roundings."""
        if self.found is None:
            return False
        text = repr(self.recorded)
        digits = len(text.partition(".")[2]) if "." in text else 0
        slack = 0.5 * 10.0**-digits * 1.001
        return abs(self.found - self.recorded) <= max(slack, 1e-9 * abs(self.recorded))


def checks(claim: Mapping[str, Any], a: Launch, b: Launch, metric: str) -> Iterator[Check]:
    """Every number of the claim's ``arithmetic.auto``."""
    auto = (claim.get("arithmetic") or {}).get("auto") or {}
    for side, launch in (("a", a), ("b", b)):
        recorded = auto.get(side) or {}
        computed = _side(launch, recorded.get("seq_len_assumed"))
        for figure, value in recorded.items():
            # The assumption is the record's own input, and no result.
            if isinstance(value, int | float) and figure != "seq_len_assumed":
                found = computed.get(figure)
                if figure == "gflop_per_token" and found:
                    found = min(_by_rate(launch, found), key=lambda item: abs(item - value))
                yield Check(claim["id"], f"{side}.{figure}", value, found)
    values = [_printed(launch, metric) for launch in (a, b)]
    for number, value in enumerate(auto.get("values") or ()):
        if isinstance(value, int | float):
            yield Check(claim["id"], f"values[{number}]", value, values[number])
    change = auto.get("change_a_vs_b_pct")
    if isinstance(change, int | float):
        va, vb = values
        found = (va / vb - 1) * 100 if va is not None and vb else None
        yield Check(claim["id"], "change_a_vs_b_pct", change, found)


def _printed(launch: Launch, metric: str) -> float | None:
    value = launch.read(metrics.get(metric)).value
    return value * PRINTED.get(metric, 1.0) if value is not None else None


def _stated(launch: Launch, name: str) -> float | None:
    value = launch.stated.get(f"measurement.stated.{name}")
    return float(value) if value is not None else None


def _by_rate(launch: Launch, found: float) -> list[float]:
    """FLOPs a token by each rate that a row states: one of all chips and one a chip are rounded apart."""
    tflops, each = _stated(launch, "tflops_per_second_per_chip"), _stated(launch, "tokens_per_second_per_chip")
    return [found, tflops * 1e3 / each] if tflops and each else [found]


def _side(launch: Launch, assumed_length: int | None) -> Mapping[str, float | None]:
    tokens = launch.tokens_per_step
    batch = launch.stated.get("batch.global_batch")
    if tokens is None and assumed_length is not None and batch is not None:
        tokens = int(batch) * assumed_length
    seconds, rate = _stated(launch, "step_seconds"), _stated(launch, "tokens_per_second")
    tflops, mfu = _stated(launch, "tflops_per_second_per_chip"), _stated(launch, "mfu")
    chips, each = launch.stated.get("hardware.chips"), _stated(launch, "tokens_per_second_per_chip")
    derived = tokens / seconds if tokens is not None and seconds else None
    whole = each * chips if each is not None and chips else None
    total = next((value for value in (rate, whole, derived) if value is not None), None)
    machine = find_accelerator(launch.stated.get("hardware.accelerator", ""))
    peak = machine.dense_peak_flops_per_second.get("bf16") if machine is not None else None
    return {
        "tok_per_s_from_iter": derived,
        "tok_per_s_stated": rate,
        "tok_per_s_off_pct": (rate / derived - 1) * 100 if rate is not None and derived else None,
        "gflop_per_token": tflops * 1e3 * chips / total if tflops and chips and total else None,
        "mfu_pct_bf16_peak_989": tflops * 1e14 / peak if tflops and peak else None,
        "mfu_pct_stated": mfu * 100 if mfu is not None else None,
    }
