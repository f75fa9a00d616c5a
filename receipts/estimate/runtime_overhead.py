"""The tail beyond arithmetic: the compiled program, the runtime's reserve and what the allocator wastes."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.base.units import MIB
from receipts.estimate.setup import Layer, Setup

# Machine code of a compiled step a distinct kind of block, and of the rest (libtpu 0.0.42 for v6e, measured).
_CODE_A_KIND = 4 * MIB
_CODE = 8 * MIB


def compile_peak(setup: Setup, which: Sequence[Layer], elements: float) -> float:
    """Bytes that a compiled step takes beside the arrays that it was given; 0 where nothing is compiled ahead.

    Its code: XLA loads the program into HBM (CompiledMemoryStats.generated_code_size_in_bytes), and a scanned stack is
    compiled once a kind of block, however deep it is. And the parameters of the stack in the compute type, where they
    are stored in a wider one: the cast does not depend on the loop over layers, so XLA moves it out of the loop and
    keeps the copy from forward to backward (WhileLoopInvariantCodeMotion; seen in the buffer assignments of libtpu
    0.0.42). ``elements`` are the stack's on this rank, as they are kept.
    """
    if not setup.framework.static:
        return 0.0
    code = _CODE + _CODE_A_KIND * len({kind for layer in which for kind in layer})
    narrower = setup.types.compute < setup.types.parameter and not setup.serving and not setup.pressed
    return code + (elements * setup.types.compute if narrower else 0.0)


def reserve(setup: Setup) -> float:
    """What the runtime takes outside the allocator: driver context, collective channels, workspaces."""
    return float(setup.framework.reserve_bytes)


def overhead(setup: Setup, coming_and_going: float) -> float:
    """The share of coming and going bytes that the allocator holds beyond what is live; a static plan has none."""
    return setup.framework.allocator_share * coming_and_going
