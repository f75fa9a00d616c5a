"""One receipt: its document, what the rules say of it, and its steps.

The rulebook that a program's questions are answered under is the built-in one, with what a ``receipts.toml`` adds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.api.answer import Answer, Shown, frame_of_rows, frame_of_steps, with_sections
from receipts.base.environment import read_config
from receipts.base.errors import NothingToWrite, near
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook, configured
from receipts.judging.verdict import ReceiptVerdict, verdict_to_json
from receipts.publish.page import Page, Section
from receipts.receipt import Document, Parsed, parse, read
from receipts.receipt.leaves import by_path, find_leaf
from receipts.store.entry import Entry

if TYPE_CHECKING:
    import pandas as pd

    from receipts.api.session import Session
    from receipts.axes.lane import Lane
    from receipts.metrics import Launch
    from receipts.questions.answers import Answers
    from receipts.questions.corroboration import Reproduced, Signer
    from receipts.store import Decision, Store


VARIABLE = "RECEIPTS_CONFIG"


def rulebook() -> Rulebook:
    """The rulebook in force; with the lanes and rules of the file that ``RECEIPTS_CONFIG`` names. Raises UsageError."""
    return _read(os.environ.get(VARIABLE) or None)


@lru_cache(maxsize=1)
def _read(config: str | None) -> Rulebook:
    return configured(read_config(Path(config) if config else None))


@dataclass(frozen=True, eq=False, repr=False)
class Receipt(Answer):
    """A receipt with its verdict and the five answers. Indexing gives a stated leaf: ``receipt["batch.micro_batch"]``.

    ``facts`` are what is known beside its document: nothing for a file, what the store knows for a stored one.
    ``actor`` is who submitted it, where a store recorded that, ``signer`` who signed it, where a store trusts keys,
    and ``reproduced`` who else came to its result.
    """

    parsed: Parsed
    rulebook: Rulebook
    facts: Facts = field(default_factory=Facts)
    decisions: Sequence[Decision] = ()
    actor: str | None = None
    signer: Signer | None = None
    reproduced: Reproduced | None = None
    envelope: Callable[[], str | None] = lambda: None
    store: Store | None = None

    def file(self, name: str) -> bytes | str | None:
        """Its bytes as *raw*; the *envelope* with its signatures. Raises NothingToWrite where it has none."""
        if name == "raw":
            return self.raw
        signed = self.envelope()
        if signed is None:
            raise NothingToWrite(f"{self.id[:12]} is not signed; receipts submit FILE --sign KEY signs it")
        return signed

    @property
    def id(self) -> str:
        """SHA-256 of its bytes, in hex."""
        return self.parsed.id

    @property
    def raw(self) -> bytes:
        """Its bytes as they came."""
        return self.parsed.raw

    @property
    def status(self) -> str:
        """``valid``, ``open`` or ``invalid``, under the present rules."""
        return self.verdict.status

    @property
    def stated(self) -> Mapping[str, Any]:
        """Every stated leaf by its path; units are those of ``receipts axes``."""
        return self.parsed.stated

    def __getitem__(self, path: str) -> Any:
        if path not in self.stated:
            raise KeyError(
                f"{path} is not stated" if find_leaf(path) else f"there is no leaf {path}{near(path, by_path())}"
            )
        return self.stated[path]

    @property
    def _lane(self) -> Lane:
        return self.rulebook.lanes.of(self.parsed.receipt.run.lane)

    @cached_property
    def verdict(self) -> ReceiptVerdict:
        """What the rules find, and the status that follows."""
        return judge_receipt(self.parsed, self._lane, self.rulebook.rules, self.facts)

    @cached_property
    def answers(self) -> Answers:
        """The five answers that head every receipt."""
        from receipts.questions.answers import answers

        return answers(self.parsed, self._lane, self.verdict, self.facts, self.rulebook.rules)

    def to_dict(self) -> dict[str, Any]:
        """What ``receipts show --json`` prints: id, answers, verdict, stated leaves, memory by chip, decisions."""
        from receipts.metrics.chips import account
        from receipts.metrics.chips import account_json as memory_json

        fell = self.facts.superseded.get(self.id)
        return {
            "id": self.id,
            "answers": dict(self.answers.rows()),
            "verdict": verdict_to_json(self.verdict),
            "stated": dict(self.stated),
            "memory": memory_json(account(self.parsed)),
            "actor": self.actor,
            "signed": self.signer._asdict() if self.signer is not None else None,
            "reproduced": self.reproduced._asdict() if self.reproduced is not None else None,
            "decisions": [item._asdict() for item in self.decisions],
            "superseded": dict(zip(("by", "reason"), fell, strict=True)) if fell is not None else None,
        }

    def page(self, *, facts: bool = False, **_views: Any) -> Page:
        """The page that ``receipts show`` prints; with ``facts`` every leaf that the receipt states."""
        from receipts.publish import receipt as shown
        from receipts.questions.answers import work
        from receipts.questions.commands import of_receipt

        step_work = work(self.rulebook.launch(self.parsed), self.verdict.findings, self.rulebook.rules)
        deciding = of_receipt(self.parsed, self.verdict)
        by = (self.actor or "", str(self.signer or ""), str(self.reproduced or ""))
        judged = (self.parsed, self._lane, self.verdict, self.answers, self.facts, step_work)
        page = shown.page(shown.Shown(*judged, self.decisions, deciding, *by), stated=facts)
        return with_sections(page, "receipt", self.store, self.parsed)

    def frame(self) -> pd.DataFrame:
        """A row for each stated leaf: ``path`` and ``value``, a text (lists and maps as JSON)."""
        rows = [{"path": path, "value": item} for path, item in self.stated.items()]
        return frame_of_rows(rows, ("path", "value")).astype({"value": "string"})

    def steps(self) -> pd.DataFrame:
        """A row for each step: receipt, label, step (from 0), seconds, steady."""
        return frame_of_steps([self.rulebook.launch(self.parsed)])


@dataclass(frozen=True, eq=False, repr=False)
class Check(Answer):
    """What the rules say of a receipt beside its witnesses, with the proof of each error; nothing is stored."""

    receipt: Receipt
    verdict: ReceiptVerdict

    @property
    def status(self) -> str:
        """``valid``, ``open`` or ``invalid``."""
        return self.verdict.status

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 3 open."""
        return self.verdict.exit_code

    def to_dict(self) -> list[dict[str, Any]]:
        """What ``receipts check FILE --json`` prints: a list of one verdict (``schema/verdict-1.schema.json``)."""
        return [verdict_to_json(self.verdict)]

    def page(self, **_views: Any) -> Page:
        """The page of the receipt."""
        return self.receipt.page()

    def frame(self) -> pd.DataFrame:
        """A row for each finding: code, name, level (``E``, ``I``, ``W``), at, found, expected, do."""
        names = ("code", "name", "level", "at", "found", "expected", "do")
        rows = [{name: getattr(item, name) for name in names} for item in self.verdict.findings]
        return frame_of_rows(rows, names)


# Of the row of a receipt; what a store numbers for itself is left out.
INTERNAL = frozenset({"seq", "generation", "geometry", "layout"})


@dataclass(frozen=True, eq=False, repr=False)
class Receipts(Answer):
    """Stored receipts that meet some conditions, in their order; iterating reads each as a `Receipt`.

    ``deciding`` are the commands that would decide the open ones, by receipt, where they were asked for. One that was
    rebuilt from rows that a server sent has no ``session``.
    """

    session: Session | None
    entries: Sequence[Entry]
    deciding: Mapping[str, str] | None = None
    notes: Sequence[str] = ()
    following: str | None = None
    nothing: bool = False  # there is no store yet

    @classmethod
    def from_rows(cls, rows: Sequence[Mapping[str, Any]], notes: Sequence[str] = ()) -> Receipts:
        """The receipts of the rows of ``receipts list --json``."""
        asked = any("next" in row for row in rows)
        deciding = {row["id"]: row["next"] for row in rows if row.get("next")} if asked else None
        entries = [Entry(**{name: _value(name, row[name]) for name in row if name != "next"}) for row in rows]
        return cls(None, entries, deciding, notes)

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Receipt]:
        return map(self._receipt, self.entries)

    def __getitem__(self, index: int) -> Receipt:
        return self._receipt(self.entries[index])

    def _receipt(self, entry: Entry) -> Receipt:
        assert self.session is not None
        return stored_receipt(self.session, entry.id)

    def _launch(self, entry: Entry) -> Launch:
        assert self.session is not None
        return self.session.rulebook.launch(self.session.store.parsed(entry.id))

    def to_dict(self) -> list[dict[str, Any]]:
        """What ``receipts list --json`` prints: the columns of each row."""
        if self.deciding is None:
            return [item._asdict() for item in self.entries]
        return [item._asdict() | {"next": self.deciding.get(item.id) or None} for item in self.entries]

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """The same."""
        return self.to_dict()

    def shown(self, *, by: bool = False, **_views: Any) -> Shown:
        """The table that ``receipts list`` prints; ``by``: with who submitted each."""
        from receipts.publish.tables import listed

        return None if self.nothing else listed(self.entries, self.deciding or {}, who=by)

    def page(self, *, by: bool = False, **_views: Any) -> Page:
        """The same as a page of its own."""
        from receipts.publish.tables import stored

        count = len(self.entries)
        headline = (f"{count:,} receipt{'' if count == 1 else 's'}",)
        return Page("Receipts", headline, sections=(Section("receipts", "", tables=(stored(self.entries, who=by),)),))

    def frame(self) -> pd.DataFrame:
        """A row for each receipt: the columns of a list, then the effective value of every axis, by its path.

        ``tokens_per_second`` is in tokens a second, times in seconds, memory in bytes, ``mfu`` a fraction. ``status``
        and ``path_answer`` are those of the verdict that the receipt was stored with. Reads every document.
        """
        columns = [name for name in Entry._fields if name not in INTERNAL]
        rows = [
            {**{name: getattr(item, name) for name in columns}, **self._launch(item).settings.effective}
            for item in self.entries
        ]
        return frame_of_rows(rows, columns)

    def steps(self) -> pd.DataFrame:
        """A row for each step of each receipt: receipt, label, step (from 0), seconds, steady."""
        return frame_of_steps(map(self._launch, self.entries))


def _value(name: str, value: Any) -> Any:
    return datetime.fromisoformat(value) if name in ("started", "finished", "submitted_at") and value else value


def stored_receipt(session: Session, name: str) -> Receipt:
    """A stored receipt by its id, with what the store knows of it."""
    from receipts.questions.comparisons import Comparisons
    from receipts.questions.corroboration import reproduced, signer

    store, rulebook = session.store, session.rulebook
    one = store.get(name)

    def signed() -> str | None:
        envelope = store.signing.envelope(one.id, store.document(one.id))
        return f"{envelope.to_json().rstrip()}\n" if envelope is not None else None

    return Receipt(
        one,
        rulebook,
        facts=store.query.facts([one]),
        decisions=store.published.decisions([one.id]),
        actor=store.entry(one.id).actor,
        signer=signer(store, one),
        reproduced=reproduced(Comparisons(store, rulebook, floors=session.floors), store, one),
        envelope=signed,
        store=store,
    )


def read_given(given: Any, kind: str) -> Any:
    """What Python gives for a document of a kind: a word stays, since the store knows it; anything else is read."""
    if kind in ("claims", "lines"):
        # A `claims.toml`, or lines: a path, or bytes, which name no files of this machine.
        from receipts.judging.claim import ClaimFile, parse_claims, read_claims_file

        if not isinstance(given, bytes):
            return read_claims_file(given) if kind == "claims" else read(os.fspath(given))
        if kind == "lines":
            return Document(given, "the lines")
        return ClaimFile("the claims", None, parse_claims(given, "the claims"), given)
    if isinstance(given, str):
        return given
    if kind == "plan":
        from receipts.questions.plan import parse_plan

        return parsed(given, parse_plan)
    return parsed(given)


def load(path: str | os.PathLike[str]) -> Receipt:
    """The receipt in a file. Raises InputError with every problem, each with its path in the document."""
    return Receipt(parse(read(os.fspath(path))), rulebook())


def parsed(given: Any, parser: Callable[[Document], Parsed] = parse) -> Parsed:
    """A receipt, the path of its file, its bytes, or its document as a mapping, checked. Raises InputError."""
    if isinstance(given, Receipt | Parsed):
        return given.parsed if isinstance(given, Receipt) else given
    if isinstance(given, Mapping):
        given = json.dumps(given).encode()
    return parser(Document(given, "the document") if isinstance(given, bytes) else read(os.fspath(given)))


def check(receipt: Any, *, witnesses: Iterable[Any] = ()) -> Check:
    """Check a receipt (or the path, bytes or mapping of one) against the rules of its lane; nothing is stored.

    ``witnesses`` are profiled launches that name it in ``run.witness_for``. Raises InputError, and UsageError for a
    witness of another launch.
    """
    from receipts.api.comparison import refuse_strangers

    rules, one = rulebook(), parsed(receipt)
    others = [parsed(item) for item in witnesses]
    refuse_strangers(others, [one])
    facts = replace(Facts.among([one, *others]), now=datetime.now(UTC))
    verdict = judge_receipt(one, rules.lanes.of(one.receipt.run.lane), rules.rules, facts, prove=True)
    return Check(Receipt(one, rules, facts), verdict)
