"""Several files' readings put together into the tree of one receipt, and the tree as text.

`assemble` gives the tree with the place of every leaf, what was not found, and what does not agree. It fills nothing
in. `pretty` indents objects and puts lists of plain values on one line. `missing` names what was looked for and not
found, and which switch, command or setting would give it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import Any, Final

from receipts.axes.lane import Lane
from receipts.base.errors import Problem
from receipts.ingest import vocabulary
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
from receipts.ingest.path import intend_framework, state_intent, state_path
from receipts.ingest.resolve import readings, resolve
from receipts.ingest.warmup import state_compile
from receipts.receipt import VERSION
from receipts.receipt.document import UNFAILED
from receipts.receipt.leaves import counted_entries
from receipts.receipt.measurement import BEFORE_STEPS, SEEN_IN_STEPS
from receipts.receipt.names import ANYTHING, parts
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
    _remarks(draft, others, noted=adding or bool(draft.held))
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


def _remarks(draft: ReceiptDraft, files: Sequence[FileEvidence], *, noted: bool) -> None:
    """What readers and files say of themselves; ``noted`` in the receipt itself, with what a person stated."""
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
    if not noted:
        return
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
    lone = not text.isascii() and re.search("[\ud800-\udfff]", text) is not None
    return json.dumps(value, allow_nan=False) if lone else text


_ALWAYS: Final = (
    "run.started",
    "run.host",
    "run.command",
    "hardware.accelerator",
    "hardware.chips",
    "batch.global_batch",
    "batch.micro_batch",
    "batch.sequence_length",
    "numerics.compute_dtype",
    "compile.posture",
    "measurement.step_durations_seconds",
    "measurement.window.start",
    "memory.chips",
)
# What a rule holds a witnessed leaf against and asks for. Of the other parts of the path, the lane is the intent.
_ASKED: Final = {
    "posture": "compile.posture",
    "compute_dtype": "numerics.compute_dtype",
    "sharding": "path.intended.sharding",
}
# Switches of which rules ask whether they acted.
_SWITCHES: Final = ("compile.cuda_graph_implementation", "numerics.recompute", "numerics.adapters.kind")
_APPLIED: Final = {
    "compile.cuda_graph_implementation": "path.witnessed.cuda_graphs",
    "numerics.recompute": "numerics.recompute_applied",
    "path.intended.overlap": "path.witnessed.overlap",
}
# By leaf: the general way, and that of programs of a compiler. A framework's own is a switch in its reader's folder.
_GET: Final[Mapping[str, Mapping[str, str]]] = {
    "run.started": {"": "--set run.started=2026-03-02T09:00:00Z"},
    "run.host": {"": "--set run.host=NAME"},
    "run.command": {"": "--set run.command='…', or add the launch script"},
    "hardware.accelerator": {"": "--set hardware.accelerator=h200-sxm (nvidia-smi -L names it)"},
    "hardware.chips": {"": "--set hardware.chips=N, the world size"},
    "batch.": {"": "add the part of the log with the configuration, or --set {path}=N"},
    "numerics.compute_dtype": {"": "add the part of the log with the configuration, or --set {path}=bf16"},
    "compile.posture": {"": "--set compile.posture=eager, regional, whole_graph, jit or xla_step"},
    "measurement.step_durations_seconds": {"": "log every step with its time"},
    "measurement.window.start": {"": "--set measurement.window.start=N, the first step after warm-up"},
    "memory.chips": {"": "torch.cuda.max_memory_allocated() of every rank, or memory_stats() of every device"},
    "path.intended.sharding": {"": "--set path.intended.sharding=fsdp (dp where nothing is to be split)"},
    "compile.regions": {"": "--set compile.regions='[\"…\"]', the functions that are compiled"},
    "compile.cuda_graph_implementation": {"": "--set compile.cuda_graph_implementation=none, or what makes them"},
    "numerics.recompute_applied": {"": "--set numerics.recompute_applied=…, what the modules really do"},
    "numerics.recompute": {"": "--set numerics.recompute=none|selective|full"},
    "numerics.adapters.kind": {"": "--set numerics.adapters.kind=none|lora"},
    "path.witnessed.cuda_graphs": {"": "a profile of one step: cudaGraphLaunch stands in it, or nothing does"},
    "path.witnessed.overlap": {"": "a profile of one step with the communication's kernels"},
    "path.witnessed.replicated": {"": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation"},
    "path.witnessed.framework": {"": "the training log itself"},
    "path.witnessed.runtime": {"": "a profile or a compiled program; it names its device"},
    "path.witnessed.attention": {"": "a profile of one step (torch.profiler, nsys)"},
    "path.witnessed.gemm": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.compute_dtype": {"": "a profile of one step", "xla": "XLA_FLAGS=--xla_dump_to=DIR"},
    "path.witnessed.sharding": {"": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation"},
    "path.witnessed.posture": {
        "": "a whole torch.profiler trace with the host's operators, and at least one step mark",
        "xla": "XLA_FLAGS=--xla_dump_to=DIR, the program after optimisation",
    },
    "path.witnessed.fallbacks": {
        "": "a whole torch.profiler trace of host and device, best with record_shapes=True",
        "xla": "the program after optimisation, or a profile of one step",
    },
    "path.witnessed.host_transfers_per_step": {"": "a profile of one step"},
    "compile.compiles_after_warmup": {
        "": "TORCH_LOGS=recompiles",
        "xla": "JAX_LOG_COMPILES=1 JAX_EXPLAIN_CACHE_MISSES=1",
    },
}


def missing(draft: ReceiptDraft, lane: Lane | None) -> tuple[MissingLeaf, ...]:
    """Leaves that the lane wants witnessed, and those that every comparison asks for, which no file states."""
    framework = str(draft.get("path.witnessed.framework") or draft.get("path.intended.framework") or "")
    wanted = list(_ALWAYS)
    failed = draft.get("run.outcome") not in (None, *UNFAILED)
    if failed:
        wanted = [path for path in wanted if not path.startswith("measurement.")]
    if draft.get("measurement.step_durations_seconds") is None and "measurement.window.start" in wanted:
        wanted.remove("measurement.window.start")
    if lane is not None:
        wanted += [f"path.witnessed.{name}" for name in lane.witness if name != "frameworks"]
        wanted += _required(draft, lane)
    if failed and draft.get("failure.phase") in BEFORE_STEPS:
        wanted = [path for path in wanted if not path.startswith(SEEN_IN_STEPS)]
    if vocabulary.framework(framework).compiler and not failed:
        wanted.append("compile.compiles_after_warmup")
    return tuple(
        MissingLeaf(path, _of_rates(draft, path) or how_to_get(path, framework))
        for path in dict.fromkeys(wanted)
        if draft.get(path) is None and not draft.torn(path)
    )


def _of_rates(draft: ReceiptDraft, path: str) -> str:
    """What turns rates of every step into times: the tokens of a step. Empty where steps or rates lack."""
    steps = draft.get("measurement.loss.steps") or ()
    rates = any(draft.get(f"measurement.stated.{name}") for name in ("tokens_per_second", "tokens_per_second_per_chip"))
    each = len(steps) > 1 and all(after - before == 1 for before, after in pairwise(steps))
    if path != "measurement.step_durations_seconds" or not (each and rates):
        return ""
    lacks = [name for name in ("batch.global_batch", "batch.sequence_length", "hardware.chips") if not draft.get(name)]
    return f"--set {'=N --set '.join(lacks)}=N: each step prints its tokens/s" if lacks else ""


def _required(draft: ReceiptDraft, lane: Lane) -> Iterator[str]:
    """What was asked for, of every leaf that the lane wants witnessed or that was seen; and switches to be seen."""

    def exists(path: str) -> bool:
        return not any(path == name or path.startswith(f"{name}.") for name in (*lane.not_applicable, *lane.unprinted))

    for name, path in _ASKED.items():
        asked = name in lane.witness or (name == "sharding" and draft.get("path.witnessed.sharding") is not None)
        if asked and exists(path) and (name != "sharding" or exists("path.sharding")):
            yield path
    if "sharding" in lane.witness and draft.get("hardware.chips") != 1 and exists("path.sharding"):
        yield "path.witnessed.replicated"
    if draft.get("path.witnessed.posture") == "regional" and lane.compile_exceptions:
        yield "compile.regions"
    yield from (path for path in _SWITCHES if exists(path))
    for path, applied in _APPLIED.items():
        intended = draft.get(path)
        alone = path == "path.intended.overlap" and draft.get("hardware.chips") == 1
        if intended is not None and parts(intended) - ANYTHING and not alone:
            yield applied


def how_to_get(path: str, framework: str = "") -> str:
    """The switch, command or setting that would give a leaf; empty where none is known."""
    ways = _GET.get(path) or next(
        (ways for name, ways in _GET.items() if name[-1] == "." and path.startswith(name)), {}
    )
    traits = vocabulary.framework(framework)
    own = vocabulary.framework(traits.like or framework).switches.get(path) or ways.get(traits.compiler)
    return (own or ways.get("", "")).replace("{path}", path)
