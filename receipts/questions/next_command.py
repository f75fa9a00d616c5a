"""What would decide an open verdict: one command to run next.

A fact that is missing is stated, a path that nothing shows gets a profile, both on the receipt that is stored already;
what no document can give, another launch gives.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Final

from receipts.axes.effective import OPEN_MAPS
from receipts.judging.verdict import STATE, Comparison, Finding, Level, Question, ReceiptVerdict
from receipts.receipt import Parsed
from receipts.receipt.leaves import find_leaf

SHORT: Final = 12
_SEEN: Final = ("path.witnessed.", "evidence")
_MEASURED: Final = ("measurement.", "memory.", "run.exit_code", "run.finished", "compile.compiles_after_warmup")
_OTHERWISE: Final = re.compile(r",? or ")  # before another way to answer than to state these leaves
_WHOLE: Final = frozenset(f"{name}.complete" for name in OPEN_MAPS)  # the whole set is stated, or it is not
# Of the letters that a shell takes for itself a placeholder has none.
UNKNOWN: Final = "VALUE"
PROFILE: Final = "PROFILE"


def of_receipt(parsed: Parsed, verdict: ReceiptVerdict) -> str:
    """The command that would decide a receipt's open verdict; empty where it is not open."""
    if verdict.status != "open":
        return ""
    open_findings = [item for item in verdict.findings if _is_open(item)]
    return _amend(parsed, _leaves(open_findings), _unseen(open_findings)) or _repeat(parsed)


def of_pair(comparison: Comparison, a: Parsed, b: Parsed) -> str:
    """The command that would decide an inconclusive comparison; empty for any other. ``a`` and ``b`` head its sides.

    One command moves one side: what is unknown comes before what nobody saw, and both before another launch.
    """
    if comparison.status != "inconclusive":
        return ""
    open_questions = {Question.COMPARABLE} if comparison.comparable == "unknown" else set()
    open_questions |= {Question.PATH} if comparison.path == "unwitnessed" else set()
    open_findings = [item for item in comparison.findings if _is_open(item)]
    if any(path.startswith(_MEASURED) for path in _leaves(open_findings)):
        return _repeat(_weaker(comparison, open_findings, a, b))
    lacking, open_findings = open_findings, [item for item in open_findings if item.question in open_questions]
    gaps = comparison.difference.unknown if Question.COMPARABLE in open_questions else ()
    for side, parsed in (("a", a), ("b", b)):
        own = [item for item in open_findings if item.subject in (side, "pair")]
        unknown = [member.path for gap in gaps if gap.missing in (side, "both") for member in gap.members]
        stated = [path for path in (*unknown, *_leaves(own)) if path in _WHOLE or not parsed.states(path)]
        unseen = _unseen([item for item in open_findings if item.subject == side])
        if command := _amend(parsed, stated, unseen, comparison.a if side == "a" else comparison.b):
            return command
    return _repeat(_weaker(comparison, lacking, a, b))


def _weaker(comparison: Comparison, open_findings: Iterable[Finding], a: Parsed, b: Parsed) -> Parsed:
    """The head of the side that another launch helps: the only one that lacks something, else the smaller one."""
    lacking = {item.subject for item in open_findings} & {"a", "b"}
    if len(lacking) == 1:
        return a if "a" in lacking else b
    result = comparison.headline  # of the launches that were named, those that count come first
    samples = (result.a.launches, result.b.launches) if result is not None else (0, 0)
    return a if (samples[0], len(comparison.a)) < (samples[1], len(comparison.b)) else b


def _is_open(item: Finding) -> bool:
    return item.level is Level.OPEN and item.waived is None


def _leaves(findings: Iterable[Finding]) -> list[str]:
    """The leaves that findings ask a person to state."""
    asked = (_OTHERWISE.split(item.do.removeprefix(STATE))[0] for item in findings if item.do.startswith(STATE))
    return list(dict.fromkeys(path for text in asked for path in text.split(", ") if find_leaf(path) is not None))


def _unseen(findings: Iterable[Finding]) -> bool:
    """Whether some finding waits for what a file would show of the path."""
    return any(
        item.at.startswith(_SEEN) or (item.question is Question.PATH and not item.do.startswith(STATE))
        for item in findings
    )


def _amend(parsed: Parsed, leaves: Iterable[str], unseen: bool, every: Sequence[str] = ()) -> str:
    """The stored receipt with facts that a person states, and with a profile; of ``every`` launch of its side.

    Empty where nothing is to be added, and where something was not measured: that is nothing to state by hand.
    """
    leaves = list(leaves)
    if any(path.startswith(_MEASURED) for path in leaves):
        return ""
    stated = [path for path in dict.fromkeys(leaves) if not path.startswith(_SEEN)]
    words = [f"--set {path}=true" for path in stated if path in _WHOLE]
    words += [f"--set {shlex.quote(path)}={UNKNOWN}" for path in stated if find_leaf(path) and path not in _WHOLE]
    reason = "stated later"
    if unseen:
        words.append(f"--evidence {PROFILE}")
        reason = "its profile" if not stated else "stated later, with its profile"
    if not words:
        return ""
    name = parsed.id[:SHORT]
    if parsed.source != name:  # a file, which no store may hold
        return f"receipts submit {shlex.quote(parsed.source)} {' '.join(words)}"
    if len(every) < 2 or unseen:  # a profile is of one launch
        return f"receipts show {name} --raw | receipts submit - {' '.join(words)} --supersede '{reason}'"
    ids = " ".join(item[:SHORT] for item in every)
    each = f"receipts show $id --raw | receipts submit - {' '.join(words)} --supersede '{reason}'"
    return f"for id in {ids}; do {each}; done"


def _repeat(parsed: Parsed) -> str:
    """One more launch of the configuration, by the receipt's own command where it states one."""
    name = parsed.source if parsed.source == parsed.id[:SHORT] else shlex.quote(parsed.source)
    command = parsed.receipt.run.command
    return f"receipts run --plan {name} -- {command}" if command else f"receipts repro {name}"
