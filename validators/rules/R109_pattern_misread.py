"""# R109 pattern_misread

*Why.* A block pattern is the model. AEMEAEMEAEMR at depth 52 is 13 A, 13 M, 22 E and 4 R; counted by hand it was
written as other numbers, and FLOPs a token and memory were taken from those.

*Rejected.* A letter that the alphabet does not have. A family of `dense` for a pattern with expert blocks. `9 DSA + 3
MLA` for a pattern that tiles to 13 attention blocks. E blocks in a model of 0 experts. A pattern of an alphabet that
is written out whole, at a depth that is no multiple of its blocks.

*Accepted.* AEMEAEMEAEMR at 52 with `9 DSA + 4 MLA`, family hybrid or moe. No pattern, where the digest of the model's
parameters was seen: not every model is a stack of blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from receipts.judging.rule import Case, Offense, layout_rule
from receipts.metrics.degrees import degree
from receipts.receipt.patterns import ALPHABETS, ATTENDING, BlockKind, Pattern, contradiction, kind_counts, read_pattern

TEXT, ALPHABET, DEPTH, FAMILY = "model.pattern", "model.alphabet", "model.depth", "model.family"
ARCHITECTURE = "model.architecture"
KINDS, EXPERTS, MTP = "model.attention_kinds", "model.experts", "model.mtp_depth"
PIPELINE, VIRTUAL = "parallelism.pipeline", "parallelism.virtual_pipeline"
_COUNTS = re.compile(r"\b(\d+)\s*[×x]?\s*[A-Za-z]")
DO = "state the pattern, its alphabet and its depth as the model was built"


def _pattern(case: Case) -> Pattern | None:
    pattern = read_pattern(case.get(TEXT), case.get(ALPHABET)) if case.get(TEXT) else None
    return pattern if isinstance(pattern, Pattern) else None


def needs(case: Case) -> Iterable[str]:
    """The pattern, and what it can be held against; or the digest of the model in its place."""
    known = "" if case.get(TEXT) else f"|{ARCHITECTURE}"
    yield TEXT + known
    yield ALPHABET + known
    yield DEPTH + known
    pattern = _pattern(case)
    if pattern is None:
        return
    if pattern.kinds() & ATTENDING:
        yield KINDS
    if BlockKind.EXPERT in pattern.kinds():
        yield EXPERTS
    if pattern.mtp_depth:
        yield MTP
    if len(pattern.stages) > 1:
        yield PIPELINE
        yield VIRTUAL


@layout_rule("R109", "pattern_misread", needs)
def pattern_misread(case: Case) -> Iterator[Offense]:
    """Letters first; then depth, family, counts, MTP and stages against what the pattern says."""
    pattern = read_pattern(case.get(TEXT), case.get(ALPHABET)) if case.get(TEXT) else ()
    if not isinstance(pattern, Pattern):
        for problem in () if pattern and _reads_somehow(case) else pattern:
            yield Offense(at=problem.at, found=problem.what, expected="a pattern that reads", do=problem.do or DO)
        return
    depth, written = int(case.get(DEPTH) or len(pattern.blocks)), len(pattern.blocks)
    if depth % written and case.get(ALPHABET) and not ALPHABETS[pattern.alphabet].tiles:
        yield Offense(DEPTH, f"{depth}", f"{written}, or whole tiles of it, as {pattern.alphabet} patterns go", DO)
    wrong = contradiction(pattern, case.get(FAMILY)) if case.get(FAMILY) else ""
    if wrong:
        yield Offense(FAMILY, f"{case.get(FAMILY)} for {pattern.text}: {wrong}", "a family that the pattern shows", DO)
    yield from _counts(case, pattern, depth if case.get(DEPTH) else None)
    if pattern.mtp_depth and case.get(MTP) not in (None, pattern.mtp_depth):
        yield Offense(MTP, f"{case.get(MTP)}", f"{pattern.mtp_depth}, as the pattern has it", DO)
    pipeline, virtual = (degree(case.stated, case.lane, path) for path in (PIPELINE, VIRTUAL))
    stages = pipeline * virtual if pipeline and virtual else None
    if len(pattern.stages) > 1 and stages and len(pattern.stages) != stages:
        yield Offense(TEXT, f"{len(pattern.stages)} stages", f"{stages}: pipeline × virtual pipeline", DO)


def _reads_somehow(case: Case) -> bool:
    """Whether a text whose alphabet is not stated reads in one of them, so that nothing is wrong with it yet."""
    return case.get(ALPHABET) is None and any(
        isinstance(read_pattern(case.get(TEXT), name), Pattern) for name in ALPHABETS
    )


def _counts(case: Case, pattern: Pattern, depth: int | None) -> Iterator[Offense]:
    counts = kind_counts(pattern, depth)
    attending = sum(count for kind, count in counts.items() if kind in ATTENDING)
    attends = [int(number) for number in _COUNTS.findall(case.get(KINDS) or "")]
    if depth and attends and sum(attends) != attending:
        tiled = ", ".join(f"{count} {kind}" for kind, count in counts.items())
        yield Offense(KINDS, f"{sum(attends)} attention blocks: {case.get(KINDS)}", f"{attending}, of {tiled}", DO)
    if counts.get(BlockKind.EXPERT) and case.get(EXPERTS) == 0:
        yield Offense(EXPERTS, "0", f"experts for {counts[BlockKind.EXPERT]} expert blocks", DO)
