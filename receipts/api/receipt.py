"""One receipt: its document, what the rules say of it, and its steps.

The rulebook that a program's questions are answered under is the built-in one, with what a ``receipts.toml`` adds.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.api.answer import Answer
from receipts.base.environment import read_config
from receipts.base.errors import near
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook, configured
from receipts.receipt import Document, Parsed, parse, read
from receipts.receipt.leaves import by_path, find_leaf

if TYPE_CHECKING:
    import pandas as pd

    from receipts.axes.lane import Lane
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.publish.page import Page
    from receipts.questions.answers import Answers
    from receipts.questions.corroboration import Reproduced, Signer
    from receipts.store import Decision


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
        from receipts.judging.verdict import verdict_to_json
        from receipts.metrics.chips import account
        from receipts.metrics.chips.account import account_json as memory_json

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

    def page(self, *, stated: bool = False) -> Page:
        """The page that ``receipts show`` prints; with ``stated`` every leaf that the receipt states."""
        from receipts.publish.receipt import Shown, page
        from receipts.questions.next_command import of_receipt
        from receipts.questions.regime import work

        step_work = work(self.rulebook.launch(self.parsed), self.verdict.findings, self.rulebook.rules)
        deciding = of_receipt(self.parsed, self.verdict)
        by = (self.actor or "", str(self.signer or ""), str(self.reproduced or ""))
        judged = (self.parsed, self._lane, self.verdict, self.answers, self.facts, step_work)
        return page(Shown(*judged, self.decisions, deciding, *by), stated=stated)

    def frame(self) -> pd.DataFrame:
        """A row for each stated leaf: ``path`` and ``value``, a text (lists and maps as JSON)."""
        from receipts.api.answer import frame_of_rows

        rows = [{"path": path, "value": item} for path, item in self.stated.items()]
        return frame_of_rows(rows, ("path", "value")).astype({"value": "string"})

    def steps(self) -> pd.DataFrame:
        """A row for each step: receipt, label, step (from 0), seconds, steady."""
        from receipts.api.answer import frame_of_steps

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
        from receipts.judging.verdict import verdict_to_json

        return [verdict_to_json(self.verdict)]

    def page(self) -> Page:
        """The page of the receipt."""
        return self.receipt.page()

    def frame(self) -> pd.DataFrame:
        """A row for each finding: code, name, level (``E``, ``I``, ``W``), at, found, expected, do."""
        from receipts.api.answer import frame_of_rows

        names = ("code", "name", "level", "at", "found", "expected", "do")
        rows = [{name: getattr(item, name) for name in names} for item in self.verdict.findings]
        return frame_of_rows(rows, names)


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
