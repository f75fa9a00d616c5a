"""Where the leaves of a receipt come from: a file and its line, the job, a person, a published page, a witness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from receipts.ingest.leaves import parts
from receipts.publish.page import Section, Table, heads, row
from receipts.publish.readings import leaf
from receipts.receipt.route import WITNESSED
from receipts.receipt.written import intact

if TYPE_CHECKING:
    from receipts.publish.words import Words
    from receipts.receipt import Parsed

_PROGRAMS: Final = {"recorder": "job", "merge": "job", "ingest": "stated"}


class Origins:
    """The origin of every leaf of one receipt, in words."""

    def __init__(self, parsed: Parsed, say: Words) -> None:
        run = parsed.receipt.run
        written = run.recorded is not None and bool(intact(parsed))
        if run.provenance != "measured":
            self._else: str = run.provenance
        elif run.recorded is None or not written:
            self._else = say("origin_typed") if run.recorded is None else say("origin_edited")
        else:
            self._else = say(f"origin_{_PROGRAMS.get(run.recorded.by, 'job')}")
        self._read: dict[str, str] = {}
        for entry in (parsed.receipt.evidence or ()) if written else ():
            for path, where in (entry.read or {}).items():
                self._read.setdefault(path, say("origin_read", file=entry.uri or entry.kind, where=where))

    def of(self, path: str) -> str:
        """Where the leaf comes from."""
        return self._read.get(path) or self._read.get(f"{parts(path)[0]}.*") or self._else


def section(parsed: Parsed, lent: Mapping[str, str], say: Words) -> list[Section]:
    """What was seen of the path, each with its origin; ``lent`` are leaves by the witness that lends them."""
    origins = Origins(parsed, say)
    rows = [
        row(leaf(path), _short(value), say("origin_lent", id=lent[path][:12]) if path in lent else origins.of(path))
        for path, value in parsed.stated.items()
        if path.startswith(f"{WITNESSED}.")
    ]
    table = Table("", heads("path | value | from"), tuple(rows))
    return [Section("origins", say("origins"), tables=(table,))] if rows else []


def _short(value: object) -> str:
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value))[:60]
