"""MFU: ``tokens_per_second · flops_per_token / (chips · peak)``.

Each answers None where a divisor is zero: no chips, no peak or no work make no figure.
"""

from __future__ import annotations


def mfu(tokens_per_second: float, flops_per_token: float, chips: int, peak: float) -> float | None:
    """Model FLOPs utilization as a fraction; tokens/s over all chips, peak in FLOP/s a chip."""
    return _ratio(tokens_per_second * flops_per_token, chips * peak)


def tflops_per_second_per_chip(tokens_per_second: float, flops_per_token: float, chips: int) -> float | None:
    """Model TFLOP/s a chip, as frameworks print it; tokens/s over all chips."""
    return _ratio(tokens_per_second * flops_per_token, chips * 1e12)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None
