"""Installed distributions as `pip freeze` and `pip list` print them: the versions that a lineage is shown by.

Source: pip `operations/freeze.py` (``name==version``, ``name @ url``, ``-e url#egg=name``) and `commands/list.py`
(columns under dashes). Other files hold such lines too (requirements, commands, logs): here nearly all lines are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

MAX_DISTRIBUTIONS: Final = 5_000
_NAME: Final = r"[A-Za-z0-9](?:[\w.\-]{0,98}[A-Za-z0-9])?"
_FROZEN: Final = re.compile(rf"({_NAME})===?([\w.!+\-]{{1,100}})")
_FROM: Final = re.compile(rf"({_NAME}) @ (\S{{1,1000}})")
_EDITABLE: Final = re.compile(r"-e \S{1,1000}")
_WHEEL: Final = re.compile(r"/[\w.]{1,100}-([\w.!+]{1,100})-[\w.]{1,60}-[\w.]{1,60}-[\w.]{1,100}\.whl")
_HEAD: Final = re.compile(r"Package +Version(?: +Editable project location)?")
_ROW: Final = re.compile(rf"({_NAME}) +([0-9][\w.!+\-]{{0,100}})(?: +/\S{{1,1000}})?")
# A handful of pins is what somebody asked for, and not what an environment holds.
_MIN_PACKAGES: Final = 5
_SHARE: Final = 0.9


class PipFreezeReader(FileReader):
    """A file that holds the list of an environment's distributions, and nothing else."""

    source: ClassVar[str] = "pip-freeze"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        text = head.decode("utf-8", "replace").splitlines()
        lines = [line for _, line in _listed(enumerate(text if len(head) < 60_000 else text[:-1]))]
        if lines and _HEAD.fullmatch(lines[0]):
            return len(lines) > 2 and set(lines[1]) <= {"-", " "} and _ROW.fullmatch(lines[2]) is not None
        known = sum(1 for line in lines if _known(line))
        return known >= _MIN_PACKAGES and known >= _SHARE * len(lines) and any("==" in line for line in lines)

    def read(self, source: Source) -> list[Reading]:
        reading = Reading(self.source)
        strange = 0
        for number, line in _listed(source.lines()):
            match = _FROZEN.fullmatch(line) or _ROW.fullmatch(line)
            name, version = (match[1], match[2]) if match else (None, None)
            if match is None and (built := _FROM.fullmatch(line)) is not None:
                wheel = _WHEEL.search(built[2])
                name, version = built[1], wheel[1] if wheel else None
            if name is None or version is None:
                strange += not _HEAD.fullmatch(line) and bool(set(line) - {"-", " "})
                continue
            if reading.records >= MAX_DISTRIBUTIONS:
                reading.remark(
                    "missing", f"more than {MAX_DISTRIBUTIONS:,} distributions; the rest was left out", number
                )
                break
            reading.records += 1
            reading.state(f"wheels.{name.lower()}", version, line, number)
        if strange:
            reading.remark("note", f"{strange} lines name no version (built from a checkout, or no distribution)")
        return [reading] if reading.records else []


def _known(line: str) -> bool:
    return any(pattern.fullmatch(line) is not None for pattern in (_FROZEN, _FROM, _EDITABLE))


def _listed(lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """The lines that may name a distribution, by their numbers."""
    for number, line in lines:
        if (text := line[:4096].strip()) and not line.startswith(("#", "WARNING: ")):
            yield number, text


READERS = (PipFreezeReader,)
