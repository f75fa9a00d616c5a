"""Published results as a page: the spread of each submission, pairs one axis apart, two submissions axis by axis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from receipts.questions.published import Submission, SubmissionPair

SHOWN_AXES = 6
SHOWN_PAIRS = 40


def page(listed: Sequence[Submission], compared: Sequence[SubmissionPair]) -> str:
    """Markdown of all submissions and of the pairs that are nearest to each other."""
    lines = [
        "# Published results",
        "",
        "*Published, not yours.* Step time is the median launch; the spread is that of launches.",
        "",
    ]
    for (benchmark, accelerator), group in groupby(listed, key=lambda item: (item.benchmark, item.accelerator)):
        lines += [f"## {benchmark} on {accelerator}", "", *_spreads(list(group)), ""]
    lines += ["## What differs between two submissions", "", *_pairs(compared), ""]
    return "\n".join(lines)


def pair_page(pair: SubmissionPair) -> str:
    """Markdown of two submissions, axis by axis."""
    lines = [f"# {pair.b.context}", "", f"against {pair.a.context}: {_effect(pair)}", ""]
    lines += ["| axis | A | B |", "| --- | --- | --- |"]
    for change in pair.apart.changed:
        lines += [f"| {member.path} | {_cell(member.a)} | {_cell(member.b)} |" for member in change.members]
    if pair.lopsided:
        lines += ["", f"One side alone states: {', '.join(pair.lopsided)}."]
    neither = sorted({item.axis for item in pair.apart.unknown} - set(pair.lopsided))
    if neither:
        lines += ["", f"Neither states: {', '.join(neither)}."]
    count = len(pair.apart.changed)
    if pair.one_axis:
        axis = pair.apart.axes[0]
        verdict = f"One stated axis differs, {axis}: the effect is its, or that of an axis which neither states."
    elif not count and not pair.lopsided:
        verdict = "No stated axis differs: the effect is that of the machines, or of an axis which neither states."
    else:
        verdict = f"{count} axes differ and {len(pair.lopsided)} may: no axis alone explains the effect."
    return "\n".join([*lines, "", verdict, ""])


def _spreads(group: Sequence[Submission]) -> Iterator[str]:
    yield "| submission | chips | launches | global batch | step (s) | spread |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for item in group:
        stated = item.like.stated
        step = f"{item.location:.4g}" if item.location is not None else "~"
        spread = f"{item.spread:.2%}" if item.spread is not None else "~"
        counted = f"{len(item.seconds)} of {len(item.launches)}"
        yield (
            f"| {item.context} | {stated.get('hardware.chips', '~')} | {counted} "
            f"| {stated.get('batch.global_batch', '~')} | {step} | {spread} |"
        )


def _pairs(compared: Sequence[SubmissionPair]) -> Iterator[str]:
    single = [pair for pair in compared if pair.one_axis]
    yield f"{len(single)} of {len(compared)} pairs on one accelerator are one axis apart, by what both state."
    yield "An axis that one side alone states may differ; what neither states is not counted."
    if not compared:
        return
    yield ""
    yield "| A | B | B over A | differs | may differ |"
    yield "| --- | --- | --- | --- | ---: |"
    for pair in compared[:SHOWN_PAIRS]:
        axes = pair.apart.axes
        more = f" and {len(axes) - SHOWN_AXES} more" if len(axes) > SHOWN_AXES else ""
        changed = ", ".join(axes[:SHOWN_AXES]) + more or "nothing that is stated"
        yield f"| {pair.a.context} | {pair.b.context} | {_effect(pair)} | {changed} | {len(pair.lopsided)} |"


def _effect(pair: SubmissionPair) -> str:
    effect = pair.effect
    if effect is None or effect.ratio is None or effect.low is None or effect.high is None:
        return "~ (fewer than three launches on a side)"
    return f"{effect.ratio:.3f} ({effect.low:.3f} to {effect.high:.3f})"


def _cell(value: object) -> str:
    return "not stated" if value is None else str(value).replace("|", "\\|")[:80]
