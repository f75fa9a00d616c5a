"""What it takes to run a receipt again: command, code, wheels, flags, and what the receipt does not say."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from receipts.emit.launch_values import THEN, text_of
from receipts.receipt import Parsed
from receipts.receipt.document import COMPLETE, Flag, Inputs, Wheel

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
    environment += _variables(receipt.inputs)
    options += _files(receipt.inputs)
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


def _variables(inputs: Inputs | None) -> list[str]:
    """Variables that the program reads and that no flag is."""
    known = (inputs.environment or {}) if inputs is not None else {}
    return [f"{name}={shlex.quote(text_of(value))}" for name, value in known.items() if _VARIABLE.match(name)]


def _files(inputs: Inputs | None) -> list[str]:
    """Files that the launch was started with, and the bytes that they had."""
    known = (inputs.files or ()) if inputs is not None else ()
    return [f"{item.name} with SHA-256 {item.sha256}" for item in known if item.sha256 is not None]


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
