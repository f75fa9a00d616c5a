"""What a FLOPs formula is, what it answers, and what MFU makes of it; the formulas that count parameters.

MFU is ``tokens_per_second · flops_per_token / (chips · peak)``; it is None if a divisor is zero: no chips, no peak
or no work make no figure.

6N and its forms with an attention term count six FLOPs a parameter a token: two forward (multiply and add), four
backward. Attention adds 12·L·H·Q·T, with L layers, H heads of width Q and T tokens of sequence, or half of it where
the causal mask is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from receipts.metrics.flops.geometry import Geometry


@dataclass(frozen=True, slots=True)
class FlopsPerToken:
    """FLOPs a token for forward and backward, or None with the receipt paths that are not stated.

    `because` says in words what a formula cannot count at all; no further stated field would help then.
    """

    flops: float | None
    missing: tuple[str, ...] = ()
    because: str = ""


@dataclass(frozen=True, slots=True)
class FlopsFormula:
    """A convention for FLOPs a token. `framework` groups the eras of one framework's formula."""

    id: str
    describe: str
    source: str
    function: Callable[[Geometry], FlopsPerToken]
    framework: str = ""


def need(geometry: Geometry, *names: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """The named numbers, and the paths of those that are not stated; the numbers are whole only without paths."""
    values = tuple(getattr(geometry, name) for name in names)
    missing = tuple(geometry.path(name) for name, value in zip(names, values, strict=True) if value is None)
    return tuple(0 if value is None else value for value in values), missing


def missing(paths: Iterable[str]) -> FlopsPerToken:
    """No figure, for want of these fields; each once, in order."""
    return FlopsPerToken(None, tuple(dict.fromkeys(paths)))


def mfu(tokens_per_second: float, flops_per_token: float, chips: int, peak: float) -> float | None:
    """Model FLOPs utilization as a fraction; tokens/s over all chips, peak in FLOP/s a chip."""
    return _ratio(tokens_per_second * flops_per_token, chips * peak)


def tflops_per_second_per_chip(tokens_per_second: float, flops_per_token: float, chips: int) -> float | None:
    """Model TFLOP/s a chip, as frameworks print it; tokens/s over all chips."""
    return _ratio(tokens_per_second * flops_per_token, chips * 1e12)


def _ratio(above: float, below: float) -> float | None:
    return above / below if below > 0 else None


def _attention_term(geometry: Geometry) -> tuple[float, tuple[str, ...]]:
    if geometry.latent is not None:
        # Queries and keys are wider than values: torchtitan, models/deepseek_v3, counts the sum of both for 2·Q.
        (layers, heads, length), absent = need(geometry, "layers", "heads", "sequence_length")
        latent = geometry.latent
        return 6.0 * layers * heads * (latent.nope + latent.rope + latent.value) * length, absent
    (layers, heads, head_dim, length), absent = need(geometry, "layers", "heads", "head_dim", "sequence_length")
    return 12.0 * layers * heads * head_dim * length, absent


def six_n(geometry: Geometry) -> FlopsPerToken:
    """6·N with N all parameters."""
    (total,), absent = need(geometry, "parameters_total")
    return missing(absent) if absent else FlopsPerToken(6.0 * total)


def six_n_active(geometry: Geometry) -> FlopsPerToken:
    """6·N with N the parameters that a token uses."""
    active, absent = _active(geometry)
    return missing(absent) if absent else FlopsPerToken(6.0 * active)


def _with_attention(geometry: Geometry, share: float) -> FlopsPerToken:
    """6·N + 12·L·H·Q·T with N all parameters; a share of the attention term where the causal mask is counted."""
    (total,), absent = need(geometry, "parameters_total")
    attention, more = _attention_term(geometry)
    return missing(absent + more) if absent + more else FlopsPerToken(6.0 * total + share * attention)


def torchtitan(geometry: Geometry) -> FlopsPerToken:
    """6·(N - embedding) + 12·L·H·Q·T with N the active parameters.

    The table that looks tokens up does no matmul. A tied table is also the output matmul, so all of N counts then.
    """
    active, absent = _active(geometry)
    attention, more = _attention_term(geometry)
    (hidden, vocabulary, tied), also = need(geometry, "hidden", "vocabulary", "tied_embeddings")
    if absent + more + also:
        return missing(absent + more + also)
    embedding = 0 if tied else hidden * vocabulary
    return FlopsPerToken(6.0 * (active - embedding) + attention)


def _active(geometry: Geometry) -> tuple[int, tuple[str, ...]]:
    # Without experts every parameter is active, so a dense model need not state the number twice.
    dense = geometry.parameters_active is None and geometry.is_dense
    (active,), absent = need(geometry, "parameters_total" if dense else "parameters_active")
    return active, absent


PARAMETER_FORMULAS = (
    FlopsFormula(
        "6n", "6·N, all parameters, no attention term", "Kaplan et al. 2020, arXiv:2001.08361, section 2.1", six_n
    ),
    FlopsFormula(
        "6n_active",
        "6·N, active parameters, no attention term",
        "Kaplan et al. 2020, arXiv:2001.08361, with the parameters that a token visits",
        six_n_active,
    ),
    FlopsFormula(
        "palm",
        "6·N + 12·L·H·Q·T, full attention; also MaxText from June to November 2023",
        "Chowdhery et al. 2022, arXiv:2204.02311, appendix B",
        partial(_with_attention, share=1.0),
    ),
    FlopsFormula(
        "maxtext_2023_11",
        "6·N + 6·L·H·Q·T, causal half; MaxText from November 2023 to May 2024",
        "MaxText 64ee4e938 (2023-11-08), train.py",
        partial(_with_attention, share=0.5),
        framework="maxtext",
    ),
    FlopsFormula(
        "torchtitan_2024",
        "6·N + 12·L·H·Q·T, the embedding counted; torchtitan's first months",
        "torchtitan docs/performance.md, its A100 rows of 2024, which no later form reproduces",
        partial(_with_attention, share=1.0),
        framework="torchtitan",
    ),
    FlopsFormula(
        "torchtitan",
        "6·(N_active - embedding) + 12·L·H·Q·T, full attention",
        "torchtitan, get_dense_model_nparams_and_flops and get_moe_model_nparams_and_flops, models/utils.py",
        torchtitan,
        framework="torchtitan",
    ),
)
