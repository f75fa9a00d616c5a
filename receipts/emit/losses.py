"""Losses and gradient norms, read without making the job wait: numbers at once, what lies on a device at the end.

A series keeps some tens of values, evenly spread over the run: when it is full, every second one goes. Where nobody
gives them, they are kept as the job makes them: the root of each backward pass, and what clipping returns.
"""

from __future__ import annotations

import math

from receipts.emit import journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from receipts.emit.steps import StepTimer

KEPT = journal.TABLE
# Few: to keep a tensor without its graph costs more than all else in a step, and moves where the next ones lie.
WAITING = 32


class ScalarSeries:
    """One quantity over the steps. ``floats`` and ``gauges`` are words that survive the process (see `journal`)."""

    __slots__ = (
        "counter",
        "due",
        "finite",
        "first",
        "floats",
        "gauges",
        "given",
        "keep",
        "kept",
        "largest",
        "last",
        "latest",
        "lazy",
        "name",
        "numbers",
        "place",
        "places",
        "stride",
        "table",
        "unread",
        "wait_stride",
        "waited",
        "waiting",
    )

    def __init__(self, name: str, places: tuple[int, int, int], table: int) -> None:
        self.name = name
        self.places = places
        self.counter, self.place, _ = places
        self.table = table
        self.gauges: Any = None
        self.floats: Any = None
        self.given = 0
        self.numbers = 0
        self.unread = 0
        self.first: float | None = None
        self.last: float | None = None
        self.largest = -math.inf
        self.keep = 0
        self.finite = True
        self.kept: list[tuple[int, float]] = []
        self.stride = 1
        self.waiting: list[tuple[int, Any]] = []
        self.wait_stride = 1
        self.due = 1
        self.waited = 0
        self.lazy: type | None = None
        self.latest: Any = None

    def __repr__(self) -> str:
        return f"ScalarSeries({self.name!r}, given={self.given}, last={self.last}, finite={self.finite})"

    def add(self, steps: StepTimer, value: Any) -> None:
        """Take a step's value: a number, or what gives one when it is called or converted at the end."""
        self.given = given = self.given + 1
        kind = type(value)
        if kind is not float:
            if kind is self.lazy or not (isinstance(value, int | float) or kind.__module__ == "numpy"):
                # As it is, for the job's own variable holds it as long; what is kept longer loses its graph.
                self.lazy, self.latest = kind, value
                if given == self.due:
                    self.due = given + self.wait_stride
                    self.waiting.append((steps.current, _without_graph(value)))
                    self.waited = given
                    if len(self.waiting) >= WAITING:
                        self.waiting = self.waiting[::2]
                        self.wait_stride *= 2
                return
            value = float(value)
        # Here, and not in a call: every step comes by, with the processor's caches full of other things.
        self.last = value
        if self.gauges is not None:
            self.floats[self.place] = value
            self.gauges[self.counter] = given
        if self.numbers == self.keep or not value <= self.largest:
            self._number(steps.current, value)
        else:
            self.numbers += 1

    def _number(self, step: int, value: float) -> None:
        """Take a number that is kept, that is the largest, or that is not finite."""
        self.last = value
        if value - value != 0.0:
            self.finite = False
        elif value > self.largest:
            self.largest = value
        if not self.numbers and value - value == 0.0:
            self.first = value
        if self.gauges is not None:
            count, last, bad = self.places
            self.gauges[count], self.floats[last] = self.given, value
            if not self.finite:
                self.gauges[bad] = 1
            if self.table == journal.NORM_TABLE and self.largest > -math.inf:
                self.floats[journal.MAX_NORM] = self.largest
        kept = self.numbers == self.keep
        self.numbers += 1
        if kept:
            self.keep += self.stride
        if not kept or value - value != 0.0:
            return
        self.kept.append((step, value))
        if len(self.kept) < KEPT:
            self._write(len(self.kept) - 1)
            return
        self.kept = self.kept[::2]
        self.stride *= 2
        self.keep = self.numbers - 1 + self.stride
        for at in range(KEPT):
            self._write(at)

    def _write(self, at: int) -> None:
        """Put a kept value into the table that survives the process, or clear its place; the step last."""
        if self.gauges is None:
            return
        place = self.table + 2 * at
        step, value = self.kept[at] if at < len(self.kept) else (-1, 0.0)
        self.gauges[place] = 0
        self.floats[place + 1] = value
        self.gauges[place] = step + 1

    def read(self, last: int, fault: Callable[[str], None]) -> None:
        """Read what has waited; the run has ended with step ``last``, and what it waits for is its own last step."""
        waiting, self.waiting = self.waiting, []
        if self.latest is not None and self.waited != self.given:
            waiting.append((last, _without_graph(self.latest)))
        if waiting:
            self.unread = self.given - self.numbers - len(waiting)
        self.latest = None
        given = self.given
        for step, value in waiting:
            try:
                read = value() if callable(value) else value
                if read is None:
                    continue  # it turned out to be of no step
                number = float(read)
            except Exception as error:
                self.unread += 1
                fault(f"{self.name} of step {step} could not be read: {type(error).__name__}: {error}"[:500])
                continue
            self._number(step, number)
        self.given = given

    def drop(self) -> None:
        """Let go of what has waited without reading it: its device may never answer."""
        self.unread = self.given - self.numbers
        self.waiting, self.latest = [], None

    def gauged(self, gauges: Any, floats: Any) -> None:
        """Take what a journal's gauges hold."""
        count, last, bad = self.places
        table = range(self.table, self.table + 2 * KEPT, 2)
        # A value may stand twice where the process was killed while the table was thinned out.
        self.kept = sorted({gauges[at] - 1: floats[at + 1] for at in table if gauges[at] > 0}.items())
        if not gauges[count]:
            return
        self.given, self.last = gauges[count], floats[last]
        self.finite = not gauges[bad]
        self.first = self.kept[0][1] if self.kept else None
        largest = floats[journal.MAX_NORM]
        if self.table == journal.NORM_TABLE and largest > 0:
            self.largest = largest


def _without_graph(value: Any) -> Any:
    """A value that may be kept: a loss with its graph would keep a whole step's activations."""
    detach = getattr(value, "detach", None)
    return value if detach is None else detach()


class Kept:
    """Scalars of steps that have not ended yet, each counted from the start; what is no scalar counts, as None."""

    def __init__(self) -> None:
        self.count = 0
        self._waiting: list[Any] = []

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
