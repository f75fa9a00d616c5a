"""The path: what was asked for, what was seen, and by which level of evidence.

Nothing that was seen is taken for a wish. A framework whose loop printed its own configuration was asked for by whoever
configured it. A matrix multiplication is asked for by its type, which leaves the library open, or by the library that
the arguments name. Naming a lane asks for what its contract leaves no choice about: the one framework, runtime or
posture that it permits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from receipts.axes.lane import Lane
from receipts.ingest import vocabulary
from receipts.ingest.draft import RECEIPT, ReceiptDraft, Where
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Report
from receipts.ingest.resolve import readings
from receipts.ingest.warmup import reports_of
from receipts.receipt.names import ANYTHING, dtypes, parts

WITNESS: Final = "path"
LEVELS: Final = ("intent", "backend", "kernels")
# They host a run alone; below a framework they are what it is built on, and FSDP2 is built on torch itself.
LIBRARIES: Final = frozenset({"fsdp2", "jax", "torch", "pytorch"})
_BELOW: Final[Mapping[str, frozenset[str]]] = {"fsdp2": frozenset({"torch", "pytorch"})}
# Host reads a step: so few are no offence (R303), and so many are no final evaluation's.
RARE: Final = 0.1
OFTEN: Final = 0.5


def state_path(draft: ReceiptDraft, files: Sequence[FileEvidence], lane: Lane | None = None) -> None:
    """State which frameworks hosted the run, and how often the host read what it computed.

    ``lane`` is one that the caller named: a library hosts a run of its own lanes, and is a part of any other's.
    """
    _frameworks(draft, files, lane)
    _transfers(draft, files)


def _frameworks(draft: ReceiptDraft, files: Sequence[FileEvidence], lane: Lane | None) -> None:
    """Every host framework seen: as readers say, and whose own lines the log holds."""
    names: dict[str, tuple[Where, str]] = {}
    if draft.base is not None:
        own = draft.base.get("path.witnessed.frameworks") or [draft.base.get("path.witnessed.framework")]
        names = {name: (Where(draft.base.name), RECEIPT) for name in own if name}
    for leaf in ("framework", "frameworks"):
        for file, reading in readings(files):
            for seen in reading.seen:
                own_word = names.get(seen.value, ("", RECEIPT))[1] == RECEIPT  # and no file's yet
                if seen.leaf == leaf and seen.level != "intent" and own_word:
                    names[seen.value] = Where(file.name, seen.place), reading.source
    for file, reading in sorted(readings(files), key=lambda item: not len(item[1].steps)):
        # A file's own lines show a framework: steps, losses that the Trainer prints without one, or DeepSpeed's
        # timers, as its step lines are hidden from 2025 on unless the log's level is raised.
        timed = reading.source == "deepspeed" and reading.timings
        lines = len(reading.steps) or timed or (reading.source == "hf-trainer" and reading.diverged is not None)
        if not lines or not (host := vocabulary.source(reading.source).host):
            continue
        # A file bears out what the receipt says itself; else it names a host where nothing has yet.
        if names.get(host, ("", ""))[1] != RECEIPT:
            if set(names) - LIBRARIES:
                continue
            # Where other loops print the form, it did so if no source shows another and no lane states one.
            libraries = vocabulary.source(reading.source).libraries
            elsewhere = lane is not None and lane.frameworks and host not in lane.frameworks
            if libraries is not None and (elsewhere or not set(names) <= set(libraries)):
                text = f"step lines in the form of {host}, which other loops print too, show no framework"
                draft.tell("note", text, Where(file.name))
                continue
        names[host] = Where(file.name), reading.source
    below = {item for name in names for item in _BELOW.get(name, ())}
    loops = names.keys() - LIBRARIES
    hosts = {name: claim for name, claim in names.items() if name in (loops or names.keys() - below)}
    if not loops and lane is not None and lane.frameworks and not set(hosts) & set(lane.frameworks):
        for name, (where, _) in hosts.items():
            draft.tell("missing", f"{name} ran, and nothing shows the framework around it: add its log", where)
    elif hosts:
        where, source = min(hosts.values(), key=lambda shown: shown[1] != RECEIPT)
        draft.put("path.witnessed.frameworks", list(hosts), where, source)
        if len(hosts) == 1:
            draft.put("path.witnessed.framework", next(iter(hosts)), where, source)


def _transfers(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """Transfers to the host a step: the most that a file shows."""
    if vocabulary.framework(draft.get("path.witnessed.framework") or "").reads_beside:
        # What counts is inside the whole compiled step; reads beside it are told, and count for none.
        inside: list[tuple[int, Where, str]] = []
        for file, reading in readings(files):
            jitted = any(seen.leaf == "posture" and seen.value == "jit" for seen in reading.seen)
            if reading.source == "hlo" and reading.complete and jitted:
                inside.append((reading.host_transfers or 0, Where(file.name), reading.source))
            elif reading.host_transfers:
                what = "reads beside the step's program, as this framework's logger makes them"
                draft.tell("note", f"{reading.host_transfers} {what}", Where(file.name))
        if inside:
            count, where, source = max(inside, key=lambda item: item[0])
            draft.put("path.witnessed.host_transfers_per_step", float(count), where, source, "inside the compiled step")
        return
    totals = {source: reports for source, reports in reports_of(files).items() if reports[-1][0].reads is not None}
    rates = [
        (reading.host_transfers / reading.steps_covered, Where(file.name), reading.source)
        for file, reading in readings(files)
        if reading.host_transfers is not None and reading.steps_covered and reading.source not in totals
    ]
    for source, reports in totals.items():
        last, where = reports[-1]
        if (rate := _rate([report for report, _ in reports])) is not None:
            rates.append((rate, where, source))
        else:
            text = f"{last.reads} reads by the host in {last.steps} steps, and nothing shows whether training made them"
            draft.tell("missing", f"{text}, or what came after it: report each step", where)
    if rates:
        rate, where, source = max(rates, key=lambda item: item[0])
        draft.put("path.witnessed.host_transfers_per_step", round(rate, 6), where, source)
        return
    for file, reading in readings(files):
        if reading.host_transfers:
            text = f"{reading.host_transfers} transfers to the host in an unknown number of steps"
            draft.tell("missing", text, Where(file.name))


def _rate(reports: Sequence[Report]) -> float | None:
    """Host reads a step by reports of a process; None where they may all have come after the last step."""
    first, last = reports[0], reports[-1]
    if not last.steps or last.reads is None:
        return None
    if not RARE * last.steps < last.reads < OFTEN * last.steps:
        return last.reads / last.steps
    # Between the first report and the last but one there is training alone.
    inner = reports[-2] if len(reports) > 2 else first
    if inner.steps > first.steps and inner.reads is not None and first.reads is not None:
        return (inner.reads - first.reads) / (inner.steps - first.steps)
    return None


INTENT: Final = "intent"
_LANE: Final = Where("--lane")
_HOST: Final = "path.witnessed.framework"
_CONFIGURES: Final = ("parallelism.", "batch.", "numerics.", "model.")
_GEMM, _DTYPE = "path.intended.gemm", "numerics.compute_dtype"
_SHARDING: Final = "path.intended.sharding"


def state_intent(
    draft: ReceiptDraft, files: Sequence[FileEvidence], lane: Lane | None, lanes: Sequence[Lane] = ()
) -> None:
    """State what is missing of ``path.intended`` and of the asked posture. ``lane`` is one that the caller named.

    What follows from a leaf is stated where the receipt's own lane lets it follow: elsewhere one change would count
    for two axes.
    """
    own = next((item for item in lanes if item.name == draft.get("run.lane")), lane)
    follows = {axis for item in own.couplings for axis in item.then} if own is not None else set[str]()
    # A backend that is left to the framework: any that the lane permits was asked for.
    claim = draft.leaves.get("features.attention_backend")
    if claim is not None and parts(claim.value) <= ANYTHING:
        _put_intended(draft, "path.intended.attention", "auto", "features.attention_backend", claim.where)
    if "path.gemm" in follows:
        _intended_gemm(draft)
    shard, replicate = draft.get("parallelism.shard"), draft.get("parallelism.replicate")
    framework = vocabulary.framework(draft.get(_HOST) or draft.get("path.intended.framework") or "")
    if "path.sharding" in follows and framework.placed and isinstance(shard, int):
        where = draft.leaves["parallelism.shard"].where if "parallelism.shard" in draft.leaves else _LANE
        if shard > 1:
            _put_intended(draft, _SHARDING, "fsdp", f"parallelism.shard is {shard}", where)
        elif isinstance(replicate, int) and replicate > 1:
            why = f"parallelism.replicate is {replicate}, and nothing is sharded"
            _put_intended(draft, _SHARDING, "dp", why, where)
    if lane is None:
        return
    why = f"the only one that lane {lane.name} permits"
    if len(lane.frameworks) == 1:
        _put_intended(draft, "path.intended.framework", lane.frameworks[0], why)
    elif lane.frameworks and lane.frameworks[0] in LIBRARIES and draft.get(_HOST) in lane.frameworks:
        # A script hosts its own loop or calls a trainer: neither is chosen, or can fall back, while it runs.
        _put_intended(
            draft, "path.intended.framework", draft.get(_HOST), f"the host that ran; lane {lane.name} permits it"
        )
    if len(runtimes := lane.path.get("runtime", ())) == 1:
        _put_intended(draft, "path.intended.runtime", runtimes[0], why)
    if len(lane.postures) == 1 and not lane.compile_exceptions:
        _put_intended(draft, "compile.posture", lane.postures[0], why)


def _put_intended(draft: ReceiptDraft, path: str, value: Any, why: str, where: Where = _LANE) -> None:
    draft.fill(path, value, where, INTENT, why)


def intend_framework(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    """State the framework whose configuration a file holds: a launch that failed before a step shows no more."""
    configured = {
        host: Where(file.name)
        for file, reading in readings(files)
        if (host := vocabulary.source(reading.source).host)
        and any(path.startswith(_CONFIGURES) for path in reading.stated)
    }
    if len(configured) == 1:
        ((name, where),) = configured.items()
        _put_intended(draft, "path.intended.framework", name, "its own configuration", where)


def _intended_gemm(draft: ReceiptDraft) -> None:
    """The type that was asked for, with the library where arguments name one (``te`` in bf16 is ``te_bf16``)."""
    claim = draft.leaves.get(_DTYPE)
    types = dtypes(draft.get(_DTYPE) or "")
    if claim is None or len(types) != 1 or _GEMM in draft.held:
        return
    (dtype,) = types
    library = draft.get(_GEMM)
    if library is None:
        _put_intended(draft, _GEMM, dtype, f"{_DTYPE} asks for the type, and nothing for a library", claim.where)
    elif len(parts(library)) == 1 and not dtypes(library) and "_" not in str(library):
        was = draft.leaves[_GEMM]
        draft.put(_GEMM, f"{library}_{dtype}", was.where, was.source, f"{library}, in the type of {_DTYPE}")
