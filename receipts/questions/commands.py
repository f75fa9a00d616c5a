"""Commands to run: what would decide an open verdict, and what it takes to run a receipt again.

A fact that is missing is stated, a path that nothing shows gets a profile, both on the receipt that is stored already;
what no document can give, another launch gives. A recipe has command, code, wheels and flags, and what the receipt does
not say.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from receipts.axes.effective import OPEN_MAPS
from receipts.emit.launch_values import THEN, text_of
from receipts.judging.verdict import STATE, Comparison, Finding, Level, Question, ReceiptVerdict
from receipts.receipt import Parsed
from receipts.receipt.document import COMPLETE, Flag, Inputs, Wheel
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
    open_findings = [item for item in verdict.findings if item.level is Level.OPEN and item.waived is None]
    return _amend(parsed, _leaves(open_findings), _unseen(open_findings)) or _repeat(parsed)


def of_pair(comparison: Comparison, a: Parsed, b: Parsed) -> str:
    """The command that would decide an inconclusive comparison; empty for any other. ``a`` and ``b`` head its sides.

    One command moves one side: what is unknown comes before what nobody saw, and both before another launch.
    """
    if comparison.status != "inconclusive":
        return ""
    open_questions = {Question.COMPARABLE} if comparison.comparable == "unknown" else set()
    open_questions |= {Question.PATH} if comparison.path == "unwitnessed" else set()
    open_findings = [item for item in comparison.findings if item.level is Level.OPEN and item.waived is None]
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


# A name and a version as packaging spells them (PyPA, names and PEP 440): nothing that pip could take for an option.
_WHEEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9._+!-]*\Z")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@dataclass(frozen=True, slots=True)
class Recipe:
    """Parts of a reproduction, each empty where the receipt does not state it. ``missing`` says what to find out."""

    command: str
    checkout: tuple[str, ...]
    wheels: tuple[str, ...]
    environment: tuple[str, ...]
    options: tuple[str, ...]
    machine: str
    missing: tuple[str, ...]

    def script(self) -> str:
        """The recipe as a shell script that a person reads before running it."""
        lines = ["#!/bin/sh", "set -eu"]
        lines += [_comment(f"machine: {self.machine}")] if self.machine else []
        lines += [_comment(f"not stated: {item}") for item in self.missing]
        steps = list(self.checkout)
        if self.wheels:
            steps.append("pip install -- \\\n  " + " \\\n  ".join(shlex.quote(item) for item in self.wheels))
        steps += [f"export {item}" for item in self.environment]
        steps += [_comment(f"option: {item}") for item in self.options]
        steps += [self.command] if self.command else []
        return "\n".join([*lines, *map(_readable, steps)])


def _readable(step: str) -> str:
    """A step as it is; one with control characters, which a terminal would hide from who reads it, is not run."""
    if all(sign.isprintable() or sign in "\n\t" for sign in step):
        return step
    return _comment(f"control characters, left to you: {step}")


def _comment(text: str) -> str:
    """A line that a shell passes over, whatever a receipt put into it."""
    return "# " + "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)


def recipe(parsed: Parsed) -> Recipe:
    """The recipe of one receipt. Nothing is guessed: what is not stated is listed as missing."""
    receipt, stated = parsed.receipt, parsed.stated
    environment, options = _flags(receipt.flags or {})
    stated_wheels = {
        name: str(entry.version if isinstance(entry, Wheel) else entry)
        for name, entry in (receipt.wheels or {}).items()
        if name != COMPLETE and not isinstance(entry, bool)
    }
    wheels = [f"{name}=={version}" for name, version in stated_wheels.items() if _WHEEL.match(f"{name}=={version}")]
    strange = [name for name, version in stated_wheels.items() if not _WHEEL.match(f"{name}=={version}")]
    checkout: list[str] = []
    code = receipt.code
    if code is not None and code.commit and not code.commit.startswith("-"):
        if code.repository:
            checkout.append(f"git clone -- {shlex.quote(code.repository)} code && cd code")
        checkout.append(f"git checkout --detach {shlex.quote(code.commit)}")
    missing = [
        title
        for title, absent in (
            ("the command line (run.command)", receipt.run.command is None and not _line_of(receipt.inputs)),
            ("the commit (code.commit)", code is None or code.commit is None),
            ("the diff of a dirty work tree (code.dirty)", bool(code and code.dirty)),
            ("the wheels", not wheels),
            ("the whole set of wheels (wheels.complete)", bool(wheels) and not stated.get("wheels.complete")),
            ("the whole set of flags (flags.complete)", not stated.get("flags.complete")),
            ("the seed (numerics.seed)", "numerics.seed" not in stated),
            ("the dataset (data.dataset)", "data.dataset" not in stated),
        )
        if absent
    ]
    missing += [f"a wheel that pip can be given by name and version (wheels.{name})" for name in strange]
    machine = " × ".join(
        str(stated[path]) for path in ("hardware.chips", "hardware.accelerator") if stated.get(path) is not None
    )
    variables = (receipt.inputs.environment if receipt.inputs is not None else None) or {}
    environment += [
        f"{name}={shlex.quote(text_of(value))}" for name, value in variables.items() if _VARIABLE.match(name)
    ]
    files = (receipt.inputs.files if receipt.inputs is not None else None) or ()
    options += [f"{item.name} with SHA-256 {item.sha256}" for item in files if item.sha256 is not None]
    return Recipe(
        command=receipt.run.command or _line_of(receipt.inputs),
        checkout=tuple(checkout),
        wheels=tuple(sorted(wheels)),
        environment=tuple(environment),
        options=tuple(options),
        machine=machine,
        missing=tuple(missing),
    )


def _line_of(inputs: Inputs | None) -> str:
    """The launch by its inputs, where no command is stated."""
    if inputs is None or inputs.program is None:
        return ""
    words = (
        ["python", *inputs.program.split(" ", 1)] if inputs.program.startswith("-m ") else ["python", inputs.program]
    )
    for key, value in (inputs.options or {}).items():
        for text in text_of(value).split(THEN):
            words += [text] if key.startswith("#") else [f"--{key}={text}"]
    return shlex.join(words)


def _flags(flags: object) -> tuple[list[str], list[str]]:
    """Environment variables, with sub-flags joined again (``XLA_FLAGS.--xla_x`` → one XLA_FLAGS), and options."""
    environment: dict[str, list[str]] = {}
    options: list[str] = []
    entries = flags if isinstance(flags, dict) else {}
    for name, entry in entries.items():
        if name == COMPLETE and entry is True:
            continue
        value = entry.value if isinstance(entry, Flag) else entry
        head, _, rest = name.partition(".")
        if name.startswith("-") or not _VARIABLE.match(head):
            options.append(f"{name}={value}" if value is not True else name)
        elif rest:
            sub = rest if rest.startswith("-") else f"--{rest}"
            environment.setdefault(head, []).append(f"{sub}={str(value).lower() if isinstance(value, bool) else value}")
        else:
            environment[head] = [str(value)]
    return [f"{name}={shlex.quote(' '.join(parts))}" for name, parts in environment.items()], options
