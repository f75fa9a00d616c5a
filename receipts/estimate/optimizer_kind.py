"""What an optimizer keeps a parameter: states by element, read from the name that people write."""

from __future__ import annotations

import re
from dataclasses import dataclass

_EIGHT_BIT = re.compile(r"8[ _-]?bit|int8|\bq8\b|_8bit|quantized")
# Block-wise quantization keeps one fp32 scale for 256 values (bitsandbytes, functional.quantize_blockwise).
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class OptimizerKind:
    """States an element and bytes a state. ``matrices_only``: whether it takes hidden matrices and nothing else.

    ``workspace`` are transient copies of the largest matrix while it is updated, in elements of 2 bytes.
    """

    name: str
    states: int
    state_bytes: float
    matrices_only: bool = False
    workspace: float = 0.0
    source: str = ""

    @property
    def bytes_per_element(self) -> float:
        """Bytes of state a parameter."""
        return self.states * self.state_bytes


_KNOWN: tuple[tuple[str, int, bool, float, str], ...] = (
    # Newton–Schulz keeps the matrix, its Gram matrix and one product in bf16.
    ("muon", 1, True, 3.0, "Jordan et al. 2024, Muon: one momentum, for hidden matrices; the rest by AdamW"),
    ("lion", 1, False, 0.0, "Chen et al. 2023, arXiv:2302.06675: one momentum"),
    ("adafactor", 0, False, 0.0, "Shazeer and Stern 2018, arXiv:1804.04235: rows and columns, sublinear in parameters"),
    ("adagrad", 1, False, 0.0, "Duchi et al. 2011, JMLR 12: one sum of squares"),
    ("rmsprop", 1, False, 0.0, "torch.optim.RMSprop: one mean of squares"),
    ("lamb", 2, False, 0.0, "You et al. 2020, arXiv:1904.00962: two moments"),
    ("sgd", 1, False, 0.0, "torch.optim.SGD with momentum: one buffer"),
    ("adam", 2, False, 0.0, "Kingma and Ba 2015, arXiv:1412.6980: two moments"),
)


def optimizer_of(name: str, state_bytes: float) -> OptimizerKind | None:
    """The optimizer that a name means, with states of ``state_bytes``; None where it names none.

    A name that says 8 bit (``adam8bit``, ``lion8bit``) keeps one byte and a scale for each block, whatever the type.
    """
    lowered = name.lower()
    for word, states, matrices, workspace, source in _KNOWN:
        if word in lowered:
            size = 1.0 + 4.0 / _BLOCK if _EIGHT_BIT.search(lowered) else state_bytes
            return OptimizerKind(word, states, size, matrices, workspace, source)
    return None
