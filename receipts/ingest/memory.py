"""The section ``memory``: a row a chip and phase; a figure that names no chip is never given one.

Where a runtime shows a chip as several devices, what a source counts by device is a chip's. The chip is the unit of a
receipt, and the registry's peaks are a chip's. A source that divides by devices (MaxText: ``Num_devices``,
``TFLOP/s/device``) has twice as many of them as there are chips of a TPU7x, each at half the rate. Tables of the
vendor, and readers that count chips, are left as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, Final

from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import MemoryRow, Reading, Remark
from receipts.ingest.resolve import readings
from receipts.ingest.series import StepSeries
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import UNFAILED

SOURCE: Final = "memory"
PHASES: Final = ("post_init", "post_compile", "post_step0", "steady")
# Figures of one launch, the one to state last.
_KINDS: Final = (("bytes_used", "live now"), ("peak_reserved_bytes", "reserved"), ("peak_bytes", "live"))
_ORDER: Final = tuple(kind for _, kind in _KINDS)
MAX_CHIPS: Final = 100_000
_RANK: Final = re.compile(r"(?:rank|gpu|device|proc|worker|task)[-_. ]?(\d{1,6})(?!\d)", re.IGNORECASE)
Rows = dict[tuple[int, str], dict[str, Any]]


def state_memory(draft: ReceiptDraft, files: Sequence[FileEvidence], steps: StepSeries | None) -> None:
    """State rows for what names its chip, one figure for what does not."""
    # What programs expected a chip to need; the first prediction of a surface stands.
    predictions: dict[str, tuple[int, str]] = {}
    for file, reading in readings(files):
        for surface, size in reading.predicted.items():
            earlier, where = predictions.setdefault(surface, (size, file.name))
            if earlier != size:
                draft.contradict(
                    "memory.predicted", f"{file.name} predicts {size} bytes of {surface}", f"{earlier}, as {where} says"
                )
    if predictions:
        ordered = [{"surface": surface, "bytes": size} for surface, (size, _) in predictions.items()]
        names = ", ".join(dict.fromkeys(name for _, name in predictions.values()))
        draft.put("memory.predicted", ordered, Where(names[:200]), SOURCE, f"{len(ordered)} surfaces")
    kept = [(file, reading) for file, reading in readings(files) if reading.memory]
    if kept and draft.base is not None and draft.base.get("memory.chips"):
        draft.tell("note", f"memory is printed too; the chips of {draft.base.name} stand", Where(kept[0][0].name))
        return
    ordinals = _ordinals(draft, kept)
    chips: int | None = draft.get("hardware.chips")
    first = steps.numbers[0] if steps is not None else None
    rows: Rows = {}
    nameless: list[tuple[Where, MemoryRow]] = []
    for file, reading in kept:
        given = ordinals.get(file.name)
        for row in reading.memory:
            chip = row.chip if row.chip is not None else 0 if chips == 1 else given
            if chip is None:
                nameless.append((Where(file.name, row.place), row))
            elif chip >= 0 and (len(rows) < MAX_CHIPS or (chip, _phase(row, first)) in rows):
                _merge(rows, chip, _phase(row, first), row)
    seen = len({chip for chip, _ in rows})
    # Of a launch that lacked memory, one figure of no named chip is still told.
    outcome = draft.get("run.outcome")
    useful = outcome not in UNFAILED if rows else outcome == "oom"
    if kept and chips is not None and (seen if rows else 1) < chips and not useful:
        # The fullest chip may be another one: a part of them, or one figure for all, is not the launch's memory.
        text = f"memory of {seen} of {chips} chips" if rows else f"one figure, of no named chip, for {chips} chips"
        draft.tell("missing", f"{text}: left out; add the logs of every rank", Where(kept[0][0].name))
    elif rows:
        ordered = [rows[key] for key in sorted(rows, key=lambda key: (PHASES.index(key[1]), key[0]))]
        names = ", ".join(dict.fromkeys(file.name for file, _ in kept))
        draft.put("memory.chips", ordered, Where(names[:200]), SOURCE, f"{seen} chips, {len(ordered)} rows")
    elif nameless:
        _aggregate(draft, nameless, chips)
    for file, reading in readings(files):
        if reading.memory_unavailable and not rows and not nameless:
            draft.tell("missing", f"memory could not be had: {reading.memory_unavailable}", Where(file.name))


def _phase(row: MemoryRow, first: int | None) -> str:
    if row.phase in PHASES:
        return str(row.phase)
    return "post_step0" if row.step is not None and first is not None and row.step <= first else "steady"


def _merge(rows: Rows, chip: int, phase: str, row: MemoryRow) -> None:
    """The highest peaks with the step they were reached at, and what was last in use."""
    kept = rows.setdefault((chip, phase), {"chip": chip, "phase": phase})
    for name in ("bytes_used", "bytes_limit"):
        value = getattr(row, name)
        if value is not None and 0 <= value < 2**62:
            kept[name] = value
    for name in ("peak_bytes", "peak_reserved_bytes"):
        value = getattr(row, name)
        if value is not None and 0 <= value < 2**62 and value > kept.get(name, -1):
            kept[name] = value
            if row.step is not None and row.step >= 0 and (name == "peak_bytes" or "peak_bytes" not in kept):
                kept["step"] = row.step


def _ordinals(draft: ReceiptDraft, kept: Sequence[tuple[FileEvidence, Reading]]) -> dict[str, int]:
    """The chip of each file whose rows name none, where several files are ranks of one launch and are numbered.

    A file's name says which rank it is only beside its fellows: all of them are numbered, and no number occurs twice.
    """
    bare = list(dict.fromkeys(file.name for file, reading in kept if all(row.chip is None for row in reading.memory)))
    if len(bare) < 2:
        return {}
    numbers = {name: int(match[-1]) for name in bare if (match := _RANK.findall(name))}
    if len(numbers) != len(bare) or len(set(numbers.values())) != len(bare):
        return {}
    few = ", ".join(f"{name}: chip {chip}" for name, chip in list(numbers.items())[:3])
    draft.tell("note", f"memory lines name no chip; the files are numbered by rank, and taken as such ({few}, …)")
    return numbers


def _aggregate(draft: ReceiptDraft, nameless: list[tuple[Where, MemoryRow]], chips: int | None) -> None:
    """One figure where no line names its chip: live memory before what is reserved, which stands beside it."""
    figures = (
        (value, kind, where)
        for name, kind in _KINDS
        for where, row in nameless
        if (value := getattr(row, name)) is not None
    )
    best = max(figures, key=lambda item: (_ORDER.index(item[1]), item[0]), default=None)
    if best is None:
        return
    value, kind, where = best
    figure = {"bytes": value, "over": "unstated", "kind": kind.partition(" ")[0]}
    beside = {"reserved_bytes": "peak_reserved_bytes", "limit_bytes": "bytes_limit"}
    for leaf, name in beside.items():
        known = [size for _, row in nameless if (size := getattr(row, name)) is not None and 0 <= size < 2**62]
        if known and not (kind == "reserved" and leaf == "reserved_bytes"):
            figure[leaf] = max(known)
    for leaf, claim in figure.items():
        draft.put(f"memory.aggregate.{leaf}", claim, where, SOURCE)
    of = f"{chips} chips" if chips else "chips that are not counted"
    draft.tell("missing", f"the memory lines name no chip: one figure for {of}, over what is not said", where)


ACCELERATOR: Final = "hardware.accelerator"
# Sources whose counts and rates are those of a device.
BY_DEVICE: Final = frozenset({"maxtext", "maxtext-metrics", "t5x", "jax-environment"})
_COUNTS: Final = ("hardware.chips", "hardware.chips_per_host")
_RATES: Final = ("tokens_per_second_per_chip", "tflops_per_second_per_chip")
_FLOPS: Final = "measurement.flops_per_step_per_chip"
_SIZES: Final = ("bytes_used", "peak_bytes", "peak_reserved_bytes", "bytes_limit")


def of_chips(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> list[FileEvidence]:
    """The files with what their readings count by device counted by chip."""
    stated = (reading.stated[ACCELERATOR] for _, reading in readings(files) if ACCELERATOR in reading.stated)
    known = draft.get(ACCELERATOR) or next((claim.value for claim in stated), None)
    chip = find_accelerator(str(known)) if known is not None else None
    each = chip.devices_per_chip if chip is not None else 1
    if each == 1:
        return list(files)
    return [replace(file, readings=tuple(_of_chips(item, each) for item in file.readings)) for file in files]


def _of_chips(reading: Reading, each: int) -> Reading:
    if reading.source not in BY_DEVICE:
        return reading
    chips = copy(reading)
    chips.stated, chips.remarks = dict(reading.stated), list(reading.remarks)
    for path in _COUNTS:
        if (claim := chips.stated.get(path)) is not None and claim.value % each == 0:
            what = f"{claim.text}: {claim.value} devices are {claim.value // each} chips"
            chips.stated[path] = replace(claim, value=claim.value // each, text=what)
            chips.remarks.append(Remark("note", f"{what}, and a chip's rate is that of {each} devices", claim.place))
    if (claim := chips.stated.get(_FLOPS)) is not None:
        chips.stated[_FLOPS] = replace(claim, value=claim.value * each)
    if len(reading.steps):
        chips.steps = deepcopy(reading.steps)
        for name in _RATES:
            chips.steps.scale(name, each)
    # Rows of chips: the sum of a chip's devices where all of them are there; rows that name no device stay theirs.
    groups: defaultdict[tuple[int, str | None, int | None], dict[int, MemoryRow]] = defaultdict(dict)
    nameless = [row for row in reading.memory if row.chip is None]
    for row in reading.memory:
        if row.chip is not None:
            groups[row.chip // each, row.phase, row.step][row.chip] = row
    whole = []
    for (chip, _, _), devices in groups.items():
        if len(devices) == each:
            first = next(iter(devices.values()))
            sizes = {name: [getattr(row, name) for row in devices.values()] for name in _SIZES}
            sums: Any = {name: None if None in values else sum(values) for name, values in sizes.items()}
            whole.append(replace(first, chip=chip, **sums))
    chips.memory = whole + nameless
    return chips
