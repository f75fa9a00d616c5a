"""Functions from values to values that meet long input: `python -m benchmarks pure`.

A megabyte of prose is linted, and the steady part of 10,000 steps is found and summarized (bar: 0.1 s). Each stands
beside a floor over the same input in the same process: finding every number in the text, and sorting the steps. CPU of
this process, the least of a few rounds in turns.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable

from benchmarks.result import Result

STEPS_SECONDS = 0.1
STEPS = 10_000
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def prose(megabytes: float) -> list[str]:
    """Paragraphs of which each says one number of interest at its end, as lines of a Markdown page."""
    text = (
        "Paragraph {0} speaks of layers, experts and 8 chips at length, and says nothing that was ever measured; "
        "its seed was {0}.\nOnly at the end does run {0} reach 98k tok/s.\n\n"
    )
    every = (text.format(number) for number in range(int(megabytes * 1e6 / len(text))))
    return "".join(every).splitlines(keepends=True)


def least(rounds: int, *works: Callable[[], object]) -> list[float]:
    """CPU seconds of each of the works, the least of ``rounds`` that take turns."""
    taken = [float("inf")] * len(works)
    for _ in range(rounds):
        for place, work in enumerate(works):
            start = time.process_time()
            work()
            taken[place] = min(taken[place], time.process_time() - start)
    return taken


def measure(quick: bool) -> list[Result]:
    """Prose and steps, each beside its floor; ``quick`` takes fewer rounds."""
    from receipts.plugins.lint.page import page
    from receipts.stats.steady import steady_segment, summarize

    lines = prose(1.0)
    draw = random.Random(1)
    steps = [draw.gauss(2.6, 0.02) for _ in range(STEPS)]
    lint, numbers = least(
        1 if quick else 5,
        lambda: sum(1 for _ in page("".join(lines), "page.md")),
        lambda: sum(1 for line in lines for _ in _NUMBER.finditer(line)),
    )
    summary, ordered = least(3 if quick else 9, lambda: summarize(steps, steady_segment(steps)), lambda: sorted(steps))
    return [
        Result("lint of 1 MB of prose", lint, "s", "every number in it", numbers),
        Result(f"steady part of {STEPS:,} steps", summary, "s", "sorting them", ordered, STEPS_SECONDS, "value"),
    ]
