"""The steps of one launch, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from receipts.publish.pictures import inline
from receipts.publish.pictures.canvas import Canvas
from receipts.publish.pictures.legend import WIDTH
from receipts.publish.pictures.marks import MARKS
from receipts.publish.pictures.panel import BELOW, Panel, Scale, below, frame, nice, upward

HEIGHT: Final = 180.0
MOST: Final = 400  # points; of more steps the slowest of each stretch is drawn
_LEFT: Final = 60.0
_TOP: Final = 30.0


def picture(seconds: Sequence[float], steady: Sequence[int], *, name: str, title: str) -> str | None:
    """Milliseconds by step, the steady ones shaded; None for fewer than two steps."""
    if len(seconds) < 2 or max(seconds) <= 0:
        return None
    alt = f"{len(seconds)} steps, the slowest {max(seconds) * 1e3:.4g} ms"
    if steady:
        alt += f"; {len(steady)} of them are steady"
    stretch = -(-len(seconds) // MOST)
    starts = range(0, len(seconds), stretch)
    slowest = [max(range(at, min(at + stretch, len(seconds))), key=seconds.__getitem__) for at in starts]

    def paint(canvas: Canvas) -> None:
        ticks = upward([seconds[at] * 1e3 for at in slowest])
        size = (WIDTH - _LEFT - 12.0, HEIGHT - _TOP - BELOW)
        plot = Panel(_LEFT, _TOP, *size, Scale(0.0, len(seconds) - 1.0), Scale(0.0, max(ticks)))
        ends = [(plot.at(start, 0.0)[0], plot.at(stop, 0.0)[0]) for start, stop in _stretches(steady)]
        shades = [(left, plot.top, max(1.0, right - left), plot.height) for left, right in ends]
        canvas.boxes(shades, fill=MARKS[0].light, alpha=0.15)
        frame(canvas, plot, title="step time, ms", ticks=ticks)
        canvas.line([plot.at(at, seconds[at] * 1e3) for at in slowest], colour=MARKS[0].light)
        steps = [at for at in nice(0.0, len(seconds) - 1.0, 6) if at < len(seconds) and at == int(at)]
        below(canvas, plot, [(at, f"{at:,.0f}") for at in steps], "step")

    return inline.svg(paint, name=name, width=WIDTH, height=HEIGHT, title=title, alt=alt)


def _stretches(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of steps that follow each other, each with its first and last."""
    start = 0
    for at in range(1, len(steps) + 1):
        if at == len(steps) or steps[at] != steps[at - 1] + 1:
            yield steps[start], steps[at - 1]
            start = at
