"""Where the leaves of a receipt come from: a file and its line, the job, a probe, a person, a page, a witness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from receipts.ingest.leaves import parts
from receipts.publish.page import Section, table_of
from receipts.publish.readings import leaf
from receipts.publish.words import words
from receipts.receipt.parse import intact
from receipts.receipt.route import WITNESSED

if TYPE_CHECKING:
    from receipts.receipt import Parsed

say = words("receipt")


class Origins:
    """The origin of every leaf of one receipt, in words."""

    def __init__(self, parsed: Parsed) -> None:
        run, self._of = parsed.receipt.run, dict[str, str]()
        if run.provenance != "measured":
            self._else: str = run.provenance
            return
        if run.recorded is None or not intact(parsed):
            self._else = say("origin_typed") if run.recorded is None else say("origin_edited")
            return
        sources = run.recorded.sources
        self._else = say("origin_stated" if run.recorded.by == "ingest" and sources is None else "origin_job")
        for entry in parsed.receipt.evidence or ():
            for path, where in (entry.read or {}).items():
                self._of.setdefault(path, say("origin_read", file=entry.uri or entry.kind, where=where))
        named = {"caller": say("origin_job"), "recorder": say("origin_recorder")}
        for path, name in (sources or {}).items():
            known = {} if path.endswith(".*") else self._of  # of a map's entries a file shows few
            who = named.get(name) or say("origin_probe", name=name)
            self._of[path] = known.get(path) or who
            self._of.setdefault(f"notes.{name}", who)
        held = (parsed.receipt.notes or {}).get("ingest.stated_by_user")
        self._of |= dict.fromkeys(held if isinstance(held, tuple) else (), say("origin_stated"))

    def of(self, path: str) -> str:
        """Where the leaf comes from."""
        known = self._of
        return known.get(path) or known.get(path.partition("[")[0]) or known.get(f"{parts(path)[0]}.*") or self._else


def section(parsed: Parsed, borrowed: Mapping[str, str]) -> Section:
    """What was seen of the path, each with its origin; ``lent`` are leaves by the witness that lends them."""
    origins = Origins(parsed)
    rows = [
        (
            leaf(path),
            _short(value),
            say("origin_lent", id=borrowed[path][:12]) if path in borrowed else origins.of(path),
        )
        for path, value in parsed.stated.items()
        if path.startswith(f"{WITNESSED}.")
    ]
    return Section("origins", say("origins"), tables=(table_of("", "path | value | from", rows),))


def _short(value: object) -> str:
    return (", ".join(map(str, value)) if isinstance(value, list) else str(value))[:60]
