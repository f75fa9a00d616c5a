"""Loss and gradient norm, as the job makes them: the root of each backward pass, and what clipping returns.

Nothing is read here: tensors are kept without their graph, and read when the run has ended.
"""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Kept:
    """Scalars of steps that have not ended yet, each counted from the start; what is no scalar counts, as None."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[Any] = []

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.count})"

    def keep(self, value: Any) -> None:
        """Keep one; a tensor without its graph."""
        self.count += 1
        self._waiting.append(value)

    def take(self, until: int) -> list[Any]:
        """Those up to number ``until``, which are then let go."""
        number = max(0, len(self._waiting) - (self.count - until))
        taken, self._waiting = self._waiting[:number], self._waiting[number:]
        return [item for item in taken if item is not None]


class Losses(Kept):
    """The roots of backward passes."""

    def __init__(self) -> None:
        super().__init__()
        self.divided: float | None = None
        self._scaled: tuple[int, Any] = (0, None)

    def scaled(self, product: Any, loss: Any) -> None:
        """GradScaler makes ``product`` of a loss, which the backward pass then begins at."""
        self._scaled = (id(product), loss)

    def backward(self, base: Any) -> None:
        """A backward pass begins."""
        if id(base) == self._scaled[0]:
            base = self._scaled[1]
        self._scaled = (0, None)
        if getattr(base, "numel", lambda: 0)() != 1:
            self.keep(None)
            return
        self.divided = divisor(base)
        self.keep(base.detach())


def divisor(root: Any) -> float | None:
    """What a loss was divided by as its last operation: a number, NaN for a tensor, None where it was not divided."""
    node = getattr(root, "grad_fn", None)
    name = type(node).__name__
    if not name.startswith(("DivBackward", "MulBackward")):
        return None
    other = getattr(node, "_saved_other", None)
    if isinstance(other, int | float) and other:
        return float(other) if name.startswith("Div") else 1 / other
    return math.nan


class StepLoss:
    """The loss over the micro-batches of a step: their sum where each was divided by their number, else their mean."""

    # Above guessing: what is summed up although nobody divided it.
    guessing = math.inf

    def __init__(self, micro: Sequence[Any], divided: float | None) -> None:
        self._micro, self._divided = micro, divided

    @classmethod
    def of(cls, micro: Sequence[Any], divided: float | None) -> Any:
        """One of several, or the only one itself."""
        return cls(micro, divided) if len(micro) > 1 else micro[0]

    def __call__(self) -> float:
        """Read it, which waits for its device."""
        values = [float(item) for item in self._micro]
        whole, mean = sum(values), sum(values) / len(values)
        if self._divided is None or (math.isnan(self._divided) and whole > 1.2 * StepLoss.guessing):
            return mean
        return whole

    def __repr__(self) -> str:
        return f"StepLoss({len(self._micro)} micro-batches)"


class StepNorm:
    """The norm over all gradients, also where the job clips groups of them apart.

    ``scaled``: what GradScaler finds not to be finite it skips, so that it is the norm of no step.
    """

    def __init__(self, parts: Sequence[Any], *, scaled: bool) -> None:
        self._parts, self._scaled = parts, scaled

    def __call__(self) -> float | None:
        """Read it, which waits for its device; None for a step that was skipped."""
        norm = math.sqrt(sum(float(item) ** 2 for item in self._parts))
        return None if self._scaled and not math.isfinite(norm) else norm

    def __repr__(self) -> str:
        return f"StepNorm({len(self._parts)} groups)"


def gradient_norm(torch: Any, optimizers: Sequence[Any]) -> Any:
    """The norm over the gradients that are there now, unread; None where they are sharded, sparse or gone.

    One read of all gradients. Where ranks hold parts of them, their sum would need a collective, which is the job's.
    """
    gradients = {}
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            gradients.update({id(item): item.grad for item in group["params"] if item.grad is not None})
    plain = [item.detach() for item in gradients.values() if type(item) is torch.Tensor and not item.is_sparse]
    if not plain or len(plain) < len(gradients) or len({item.device for item in plain}) > 1:
        return None
    norms = torch._foreach_norm(plain)
    return torch.linalg.vector_norm(torch.stack([item.float() for item in norms]))
