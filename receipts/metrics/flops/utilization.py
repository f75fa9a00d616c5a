"""MFU and its inverses: ``tokens_per_second · flops_per_token / (chips · peak)``.

Each answers None where a divisor is zero: no chips, no peak or no work make no figure.
"""

from __future__ import annotations


def mfu(tokens_per_second: float, flops_per_token: float, chips: int, peak: float) -> float | None:
    """Model FLOPs utilization as a fraction; tokens/s over all chips, peak in FLOP/s a chip."""
    return _ratio(tokens_per_second * flops_per_token, chips * peak)


def tflops_per_second_per_chip(tokens_per_second: float, flops_per_token: float, chips: int) -> float | None:
    """Model TFLOP/s a chip, as frameworks print it; tokens/s over all chips."""
    return _ratio(tokens_per_second * flops_per_token, chips * 1e12)


def flops_per_token_from_mfu(mfu: float, tokens_per_second: float, chips: int, peak: float) -> float | None:
    """FLOPs a token that a stated MFU stands on."""
    return _ratio(mfu * chips * peak, tokens_per_second)


def flops_per_token_from_tflops(
    tflops_per_second_per_chip: float, tokens_per_second: float, chips: int
) -> float | None:
    """FLOPs a token that a stated TFLOP/s a chip stands on."""
    return _ratio(tflops_per_second_per_chip * 1e12 * chips, tokens_per_second)


def peak_from_mfu(mfu: float, tokens_per_second: float, flops_per_token: float, chips: int) -> float | None:
    """Peak in FLOP/s a chip that a stated MFU was divided by."""
    return _ratio(tokens_per_second * flops_per_token, mfu * chips)


def tokens_per_second_from_mfu(mfu: float, flops_per_token: float, chips: int, peak: float) -> float | None:
    """Tokens/s over all chips that a stated MFU stands on."""
    return _ratio(mfu * chips * peak, flops_per_token)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None
