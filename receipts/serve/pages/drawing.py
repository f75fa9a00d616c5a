"""Two pictures that a page draws in a millisecond: the steps of a launch, and effects beside the margin δ.

SVG of plain shapes in the page's own colors. Every picture has a title that says what it shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from typing import NamedTuple

from markupsafe import escape

WIDTH, HEIGHT, LEFT, BELOW = 420.0, 150.0, 52.0, 22.0
MOST = 400  # points of a trace; of more steps the slowest of each stretch is drawn


def trace(name: str, seconds: Sequence[float], steady: Sequence[int]) -> str | None:
    """Seconds by step, the steady ones shaded; None for fewer than two steps."""
    if len(seconds) < 2 or max(seconds) <= 0:
        return None
    most, plot_width, plot_height = max(seconds), WIDTH - LEFT - 6, HEIGHT - BELOW - 10

    def x(step: float) -> float:
        return LEFT + plot_width * step / (len(seconds) - 1)

    def y(value: float) -> float:
        return 10 + plot_height * (1 - value / most)

    stretch = -(-len(seconds) // MOST)
    points = []
    for start in range(0, len(seconds), stretch):
        at = max(range(start, min(start + stretch, len(seconds))), key=seconds.__getitem__)
        points.append(f"{x(at):.1f},{y(seconds[at]):.1f}")
    parts = []
    stated = f"{len(seconds)} steps, the slowest {most * 1e3:.4g} ms"
    if steady:
        stated += f"; {len(steady)} of them are steady"
    for start, stop in _stretches(steady):
        shade = f'width="{max(1.0, x(stop) - x(start)):.1f}" height="{plot_height:.1f}" fill-opacity="0.15"'
        parts.append(f'<rect x="{x(start):.1f}" y="10" {shade} fill="var(--mark-1)"/>')
    parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="var(--mark-1)" stroke-width="1.5"/>')
    parts.append(_axis(plot_width, 10 + plot_height))
    parts += [_text(LEFT - 4, 16, f"{most * 1e3:.4g} ms", "end"), _text(LEFT - 4, 10 + plot_height, "0", "end")]
    parts += [_text(LEFT, HEIGHT - 6, "step 0", "start"), _text(WIDTH - 6, HEIGHT - 6, f"{len(seconds) - 1}", "end")]
    return _svg(name, stated, HEIGHT, parts)


def _stretches(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of steps that follow each other, each with its first and last."""
    start = 0
    for at in range(1, len(steps) + 1):
        if at == len(steps) or steps[at] != steps[at - 1] + 1:
            yield steps[start], steps[at - 1]
            start = at


class Interval(NamedTuple):
    """An effect: B over A with its 95 % interval."""

    name: str
    ratio: float
    low: float
    high: float


def forest(name: str, effects: Sequence[Interval], delta: float) -> str | None:
    """Ratios with their intervals on a log scale, the margin of *no change that matters* shaded; None without any."""
    if not effects:
        return None
    left, row = 130.0, 26.0
    height = 14 + row * len(effects) + BELOW
    reach = max(abs(log(end)) for item in effects for end in (item.low, item.high, 1 + 2 * delta)) * 1.1

    def x(ratio: float) -> float:
        return left + (WIDTH - left - 8) * (0.5 + log(ratio) / (2 * reach))

    low, high = x(1 / (1 + delta)), x(1 + delta)
    bottom = 14 + row * len(effects)
    parts = [
        f'<rect x="{low:.1f}" y="8" width="{high - low:.1f}" height="{bottom - 8:.1f}" fill="var(--line)"/>',
        f'<line x1="{x(1):.1f}" y1="8" x2="{x(1):.1f}" y2="{bottom:.1f}" stroke="var(--soft)"/>',
    ]
    for number, item in enumerate(effects):
        middle = 14 + row * (number + 0.5)
        parts += [
            _text(left - 8, middle + 4, item.name[:18], "end"),
            f'<line x1="{x(item.low):.1f}" y1="{middle:.1f}" x2="{x(item.high):.1f}" y2="{middle:.1f}" '
            'stroke="var(--mark-1)" stroke-width="3"/>',
            f'<circle cx="{x(item.ratio):.1f}" cy="{middle:.1f}" r="4" fill="var(--mark-1)"/>',
        ]
    ends = (1 / (1 + reach / 1.3), 1.0, 1 + reach / 1.3)
    parts += [_text(x(end), bottom + 16, f"{100 * (end - 1):+.3g} %".replace("-", "−"), "middle") for end in ends]
    stated = "; ".join(f"{item.name} {item.low:.4g} to {item.high:.4g}" for item in effects)
    return _svg(name, f"{stated}; the shaded margin is {100 * delta:.3g} %", height, parts)


def _axis(width: float, at: float) -> str:
    return f'<line x1="{LEFT}" y1="{at:.1f}" x2="{LEFT + width:.1f}" y2="{at:.1f}" stroke="var(--soft)"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="11" fill="var(--soft)" '
        f'font-family="system-ui, sans-serif">{escape(text)}</text>'
    )


def _svg(name: str, stated: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH:g} {height:g}" role="img" aria-labelledby="{name}-title">'
        f'<title id="{name}-title">{escape(stated)}</title>{"".join(parts)}</svg>'
    )
