"""Several files' readings put together into the tree of one receipt, and the tree as text.

`assemble` gives the tree with the place of every leaf, what was not found, and what does not agree. It fills nothing
in. `pretty` indents objects and puts lists of plain values on one line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from receipts.base.errors import Problem
from receipts.ingest.draft import (
    RECEIPT,
    Contradiction,
    Message,
    MissingLeaf,
    Options,
    ReceiptDraft,
    SourcedLeaf,
    Where,
    base_of,
)
from receipts.ingest.ending import state_ending
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.evidence_list import state_evidence
from receipts.ingest.identity import counted_as_listed, of_this_launch, state_identity, state_inputs
from receipts.ingest.leaves import place
from receipts.ingest.measurement import state_steps
from receipts.ingest.memory import of_chips, state_memory
from receipts.ingest.missing import missing
from receipts.ingest.path import intend_framework, state_intent, state_path
from receipts.ingest.resolve import readings, resolve
from receipts.ingest.warmup import state_compile
from receipts.receipt import VERSION
from receipts.receipt.leaves import counted_entries
from receipts.receipt.parse import UNWRITTEN, sealed

SET = "--set"
MAX_LINES, MAX_LINE = 50, 1000
# What a run shows and nobody states: with any of them typed, the document is typed.
_MEASURED = (
    *("run.provenance", "run.outcome", "path.witnessed.", "memory."),
    *("measurement.step_durations_seconds", "measurement.stated.", "measurement.loss."),
)
# A receipt's required keys, each with a value as a person would state it.
REQUIRED = {
    "run.launch": "seed1-monday",
    "run.lane": "nvidia-torch",
    "run.kind": "training",
    "run.outcome": "ok",
    "run.provenance": "measured",
    "run.started": "2026-03-02T09:00:00Z",
}


@dataclass(frozen=True, slots=True)
class Ingested:
    """One receipt's tree, where its leaves were found, what was not, and what does not agree.

    ``problems`` say why the tree is no receipt yet; empty where it is one. ``omitted`` counts what was not worth
    more lines. ``as_it_was`` are the bytes of a receipt to which nothing was added, ``strangers`` files that are of
    another launch, with the reason.
    """

    tree: dict[str, Any]
    leaves: tuple[SourcedLeaf, ...]
    missing: tuple[MissingLeaf, ...]
    contradictions: tuple[Contradiction, ...]
    messages: tuple[Message, ...]
    problems: tuple[Problem, ...]
    omitted: int = 0
    as_it_was: bytes | None = None
    strangers: Mapping[str, str] = field(default_factory=dict)

    @property
    def raw(self) -> bytes:
        """The receipt's bytes: UTF-8, indented, the document's own order of keys; the same tree, the same bytes.

        Of a receipt to which nothing was added they are its own.
        """
        return self.as_it_was or pretty(self.tree)


def assemble(files: Sequence[FileEvidence], options: Options | None = None) -> Ingested:
    """Put one receipt together. Nothing is filled in: what no file shows and nobody states is absent.

    The tree holds values that fit their leaves only, and a receipt's required keys except those in ``problems``. The
    order in which files are given decides nothing: they are read by name, rank 2 before rank 10.
    """
    chosen, files = options or Options(), sorted(files, key=lambda file: (natural(file.name), file.name, file.sha256))
    # What a person states stands above what the receipt among the files states.
    base = base_of(files)
    draft = ReceiptDraft({"schema_version": VERSION})
    settings = dict(chosen.settings)
    if base is not None:
        draft.tree = deepcopy(base.tree)
        named = {"run.lane": chosen.lane, "run.kind": chosen.kind}
        settings |= {path: value for path, value in named.items() if value is not None}
    for path, value in settings.items():
        draft.put(path, value, Where(SET), SET)
    draft.held = frozenset(settings)
    draft.base = base
    files = [counted_as_listed(draft, file) for file in files]
    beside = [file for file in files if not (file.readings and file.readings[0].source == RECEIPT)]
    others = of_chips(draft, of_this_launch(draft, beside))
    adding = draft.base is None or any(file.readings for file in others)
    if adding:
        _state(draft, others, chosen)
        state_evidence(draft, [file for file in files if file.name not in draft.strangers])
    _remarks(draft, others)
    if adding or draft.held:
        _notes(draft)
    lane = next((item for item in chosen.lanes if item.name == draft.get("run.lane")), None)
    problems = tuple(
        Problem(path, "no file says it", f"state it: --set {path}={example}")
        for path, example in REQUIRED.items()
        if draft.get(path) is None
    )
    unchanged = draft.base is not None and draft.tree == draft.base.tree
    if not problems and not unchanged:
        # This program wrote the document: not where a person typed what it measured, here or before.
        replaced = [path for path in draft.held if base is not None and base.get(path) not in (None, draft.get(path))]
        recorded = draft.tree["run"].pop("recorded", {})
        typed = replaced or any(path.startswith(_MEASURED) for path in draft.held)
        if (base is None or base.recorded) and not typed:
            draft.tree["run"]["recorded"] = {**recorded, "by": "ingest", "digest": UNWRITTEN}
        draft.tree["run"]["entries"] = counted_entries(draft.tree)
    return Ingested(
        _by_schema(draft.tree),
        tuple(sorted(draft.leaves.values(), key=lambda item: place(item.path))),
        missing(draft, lane),
        tuple(draft.contradictions),
        tuple(draft.messages),
        problems,
        draft.omitted,
        draft.base.raw if draft.base is not None and unchanged else None,
        draft.strangers,
    )


def natural(name: str) -> list[str | int]:
    """A name in pieces that sort as people count: ``rank2`` before ``rank10``."""
    return [int(piece) if at % 2 else piece for at, piece in enumerate(re.split(r"(\d{1,18})", name))]


def _state(draft: ReceiptDraft, files: Sequence[FileEvidence], options: Options) -> None:
    """State what the files show, section by section."""
    resolve(draft, files)
    state_inputs(draft, files)
    steps = state_steps(draft, files)
    named = next((item for item in options.lanes if item.name == options.lane), None)
    state_path(draft, files, named)
    state_compile(draft, files, steps is not None)
    state_ending(draft, files, steps)
    state_memory(draft, files, steps)
    intend_framework(draft, files)
    state_identity(draft, files, options)
    state_intent(draft, files, named, options.lanes)


def _remarks(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """What readers and files say of themselves."""
    for file in files:
        for remark in file.remarks:
            draft.tell("broken" if remark.kind == "broken" else "note", remark.text, Where(file.name, remark.place))
        if not file.readings:
            draft.tell("note", "nothing in it is known to any reader", Where(file.name))
    for file, reading in readings(files):
        for remark in reading.remarks:
            where = Where(file.name, remark.place)
            if remark.kind != "contradiction":
                draft.tell(remark.kind, remark.text, where)
            else:
                draft.contradict("", f"{where}: {remark.text}")


def _notes(draft: ReceiptDraft) -> None:
    """Say in the receipt itself what a person stated, and what its files do not agree on."""
    notes: dict[str, Any] = {}
    if draft.held:
        notes["ingest.stated_by_user"] = sorted(draft.held)
    if draft.contradictions:
        notes["ingest.contradictions"] = _lines(
            f"{item.path}: {item.what}".removeprefix(": ") for item in draft.contradictions
        )
    remarks = [item for item in draft.messages if item.kind != "missing"]
    if remarks:
        notes["ingest.remarks"] = _lines(f"{item.where}: {item.text}".removeprefix("None: ") for item in remarks)
    if notes:
        draft.tree.setdefault("notes", {}).update(notes)


def _lines(texts: Iterable[str]) -> list[str]:
    """The first lines of some, each cut, and without halves of signs, which are no text."""
    return [text[:MAX_LINE].encode("utf-8", "replace").decode() for text in islice(texts, MAX_LINES)]


def _by_schema(node: dict[str, Any], path: str = "") -> dict[str, Any]:
    """A tree in the order of the schema."""
    known = sorted(node, key=lambda key: place(f"{path}{key}"))
    return {key: _by_schema(node[key], f"{path}{key}.") if isinstance(node[key], dict) else node[key] for key in known}


def pretty(tree: dict[str, Any]) -> bytes:
    """The document's bytes, UTF-8 with a line end; the same tree gives the same bytes.

    Where the tree says in ``run.recorded`` that a program writes it, they hold their digest.
    """
    return sealed((_text(tree, "") + "\n").encode())


def _text(value: Any, indent: str) -> str:
    inner = indent + "  "
    if isinstance(value, dict) and value:
        rows = [f"{inner}{_plain(key)}: {_text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list | tuple) and value and isinstance(value[0], dict):
        flat = [len(row) <= 8 and not any(isinstance(item, dict | list) for item in row.values()) for row in value]
        rows = [inner + (_plain(row) if short else _text(row, inner)) for row, short in zip(value, flat, strict=True)]
        return "[\n" + ",\n".join(rows) + f"\n{indent}]"
    if isinstance(value, list | tuple) and value and isinstance(value[0], str) and len(_plain(value)) > 100:
        return "[\n" + ",\n".join(inner + _plain(item) for item in value) + f"\n{indent}]"
    return _plain(value)


def _plain(value: Any) -> str:
    # A lone half of a surrogate pair is no text: such a sign stays escaped, and the document UTF-8.
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return json.dumps(value, allow_nan=False) if re.search("[\ud800-\udfff]", text) else text
