"""A receipt while it is put together: its tree, where every leaf was found, and what stands against it.

`Options` are what the caller of ingesting decides: the lane, the kind, leaves by hand, and which lanes there are.
`Base` is a receipt among the files of a launch: what it states stands, and what the other files show is added to it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from receipts.axes.lane import Lane
from receipts.base.errors import UsageError, near
from receipts.base.untrusted_text import redacted
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import OPEN, alike, at, fitting, parts, put
from receipts.ingest.reading import Place, Reading
from receipts.receipt import parse, read
from receipts.receipt.load import MAX_BYTES
from receipts.receipt.names import NAMES, spelled
from receipts.receipt.parse import intact, upcast

MAX_MESSAGES = 500
NOWHERE = Place()
Kind = Literal["missing", "broken", "note"]


@dataclass(frozen=True, slots=True)
class Where:
    """A place in a file, for people: `run.log:12`, `trace.json traceEvents[17]`; or who said it (`--set`)."""

    file: str
    place: Place = NOWHERE

    def __str__(self) -> str:
        if self.place.record:
            return f"{self.file} {self.place.record}"
        return f"{self.file}:{self.place.line}" if self.place.line else self.file


@dataclass(frozen=True, slots=True)
class SourcedLeaf:
    """A leaf of the receipt, its value, where it stands, and by which source of evidence it was read."""

    path: str
    value: Any
    where: Where
    source: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two places that do not agree. ``stands`` is what the receipt holds of them; empty where it holds neither."""

    path: str
    what: str
    stands: str = ""


@dataclass(frozen=True, slots=True)
class MissingLeaf:
    """A leaf that was wanted and not found, and what would give it."""

    path: str
    get: str


@dataclass(frozen=True, slots=True)
class Message:
    """What a person should know of a file, or of what was made of it."""

    kind: Kind
    text: str
    where: Where | None = None


@dataclass
class ReceiptDraft:
    """The tree, and what is to be said of it.

    ``held`` are leaves that a person stated, and ``base`` is the receipt that the files add to: nothing else moves
    what they state. ``strangers`` are files of other launches, with the reason. ``shown`` are the leaves of which a
    file shows the value that the tree holds, whoever states it.
    """

    tree: dict[str, Any] = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    base: Base | None = None
    leaves: dict[str, SourcedLeaf] = field(default_factory=dict)
    shown: dict[str, SourcedLeaf] = field(default_factory=dict)
    contradictions: list[Contradiction] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    strangers: dict[str, str] = field(default_factory=dict)
    omitted: int = 0

    def get(self, path: str) -> Any:
        """What the tree holds at a path, or None."""
        return at(self.tree, path)

    def holder(self, path: str) -> str:
        """Who states a leaf that nothing else moves: `--set`, or the receipt by its name; empty where nobody does."""
        if path in self.held:
            return "--set"
        if self.base is None:
            return ""
        return self.base.name if self.base.get(path) is not None or self.base.excludes(path) else ""

    def put(
        self, path: str, value: Any, where: Where, source: str, text: str = "", *, beside_own: bool = False
    ) -> None:
        """State a leaf. What does not fit it is reported and left out.

        ``beside_own``: the value has what the receipt among the files states in it already, and takes its place.
        """
        value, text = redacted(value, parts(path)[-1]), redacted(text)
        kept = fitting(path, spelled(path, value))
        if kept is None:
            shown = str(value)[:60]
            self.tell("note", f"{path} reads {shown!r}, which the receipt has no such value for; left out", where)
            return
        if (holder := self.holder(path)) and not (beside_own and path not in self.held):
            stated = _plain(self.get(path))
            if alike(path, _plain(kept), stated):
                self.shown.setdefault(path, SourcedLeaf(path, kept, where, source, text))
            else:
                none = f"no such entry, as {holder} is complete"
                held = none if stated is None else f"{stated}, as {holder} states"
                self.contradict(path, f"{where} says {str(text or kept)[:80]}", held[:200])
            return
        unknown = path == "path.intended.attention" and path not in self.held and set(kept.split("+")) - NAMES.keys()
        if unknown and (hint := near(kept, NAMES)):
            self.tell("note", f"{path} is {kept}, a name that no reader gives{hint}", where)
        put(self.tree, path, kept)
        self.leaves[path] = self.shown[path] = SourcedLeaf(path, kept, where, source, text)

    def fill(self, path: str, value: Any, where: Where, source: str, text: str = "") -> None:
        """State a leaf that nothing states, and on which no two places disagree."""
        if self.get(path) is None and not self.torn(path):
            self.put(path, value, where, source, text)

    def torn(self, path: str) -> bool:
        """Whether two places disagree on a leaf, so that the receipt holds neither."""
        return any(item.path == path and not item.stands for item in self.contradictions)

    def contradict(self, path: str, what: str, stands: str = "") -> None:
        """Note that two places do not agree; what a person or the receipt among the files states stands."""
        if not stands and (holder := self.holder(path)):
            stands = f"{_plain(self.get(path))}"[:100] + f", as {holder} states"
        if len(self.contradictions) < MAX_MESSAGES:
            self.contradictions.append(Contradiction(path, redacted(what), redacted(stands)))
        else:
            self.omitted += 1

    def tell(self, kind: Kind, text: str, where: Where | None = None) -> None:
        """Say something once; a flood is cut at `MAX_MESSAGES` and counted."""
        entry = Message(kind, redacted(text), where)
        if len(self.messages) >= MAX_MESSAGES:
            self.omitted += 1
        elif entry not in self.messages:
            self.messages.append(entry)


def _plain(value: Any) -> Any:
    """The value of a flag, and the version of a wheel, that is stated with more than itself."""
    return value.get("value", value.get("version", value)) if isinstance(value, dict) else value


RECEIPT: Final = "receipt"
_BEGINS: Final = re.compile(rb'\s*\{\s*"schema_version"\s*:')
_WORDS: Final = (b'"schema_version"', b'"run"', b'"launch"', b'"outcome"', b'"provenance"')


@dataclass(frozen=True, slots=True)
class Base:
    """A receipt's own tree, by the name of its file. ``raw`` are its bytes as they came.

    ``recorded``: a program wrote it, and nobody edited it since.
    """

    name: str
    raw: bytes
    tree: dict[str, Any]
    recorded: bool = False

    def get(self, path: str) -> Any:
        """What it states at a path, or None."""
        return at(self.tree, path)

    def excludes(self, path: str) -> bool:
        """Whether a path is an entry that a map, which the receipt says is complete, does not have."""
        section = parts(path)[0]
        return section in OPEN and self.get(f"{section}.complete") is True and self.get(path) is None


def receipt_file(path: Path, name: str) -> FileEvidence | None:
    """A file that is a receipt, as evidence of itself; None for any other file. It may still hold errors."""
    if path.stat().st_size > MAX_BYTES:
        return None
    with path.open("rb") as stream:
        raw = stream.read(1024)
        if not raw.lstrip().startswith(b"{"):
            return None
        raw += stream.read()
    if not all(word in raw for word in _WORDS):
        return None
    # It has the run of a receipt, its keys in any order, or is the beginning of one. A plan has no outcome, and a
    # verdict, a report or a record of another program has no run.
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        is_receipt = _BEGINS.match(raw) is not None
    else:
        run = document.get("run") if isinstance(document, dict) else None
        is_receipt = isinstance(run, dict) and run.keys() >= {"launch", "outcome", "provenance"}
    if not is_receipt:
        return None
    return FileEvidence(path, name, hashlib.sha256(raw).hexdigest(), len(raw), (Reading(RECEIPT, records=1),), ())


def base_of(files: Iterable[FileEvidence]) -> Base | None:
    """The receipt among the files, or None. Raises InputError with all its errors, UsageError where it is not one."""
    receipts = [file for file in files if file.readings and file.readings[0].source == RECEIPT]
    if len(receipts) > 1:
        names = ", ".join(file.name for file in receipts[:3]) + ", …" * (len(receipts) > 3)
        raise UsageError(
            f"{len(receipts)} receipts ({names}); ingest takes the files of one launch, submit takes receipts"
        )
    for file in receipts:
        parsed = parse(read(file.path))
        return Base(file.name, parsed.raw, upcast(json.loads(parsed.raw), file.name), intact(parsed) is True)
    return None


@dataclass(frozen=True, slots=True)
class Options:
    """``settings`` are leaves that the caller states; they stand above whatever a file says.

    Without ``lane`` one of ``lanes`` is proposed by framework and accelerator.
    """

    lane: str | None = None
    kind: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    lanes: Sequence[Lane] = ()
