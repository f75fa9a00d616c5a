"""The terminal sessions of a page: each command, and the output that the page shows."""

from __future__ import annotations

import re
from dataclasses import dataclass

BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ELLIPSIS = "…"


@dataclass(frozen=True)
class Step:
    """One command of a session with the output that the README shows; a line of `…` stands for any lines."""

    command: str
    shown: tuple[str, ...]


def sessions(text: str) -> list[list[Step]]:
    """The console blocks of a page, in order."""
    found = []
    for block in BLOCK.findall(text):
        steps: list[Step] = []
        command, shown = "", []
        for line in [*block.splitlines(), "$ "]:
            if line.startswith("$ "):
                if command:
                    steps.append(Step(command, tuple(shown)))
                command, shown = line[2:], []
            elif command.endswith("\\") and not shown:
                command = f"{command[:-1].rstrip()} {line.strip()}"
            else:
                shown.append(line)
        found.append(steps)
    return found


def pattern(shown: tuple[str, ...]) -> str:
    """A regular expression for the output: lines as they stand, `…` alone for any lines, within one for any text."""
    parts = []
    for line in shown:
        if line.strip() == ELLIPSIS:
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(re.escape(line.rstrip()).replace(re.escape(ELLIPSIS), ".*?") + r"[ ]*\n")
    return "".join(parts)
