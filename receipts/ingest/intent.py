"""What was asked for, as far as files and the named lane say it. Nothing that was seen is taken for a wish.

A framework whose loop printed its own configuration was asked for by whoever configured it. A matrix multiplication is
asked for by its type, which leaves the library open, or by the library that the arguments name. Naming a lane asks for
what its contract leaves no choice about: the one framework, runtime or posture that it permits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from receipts.ingest.config import readings
from receipts.ingest.draft import ReceiptDraft, Where
from receipts.ingest.evidence.read import FileEvidence
from receipts.ingest.options import LaneOptions
from receipts.ingest.witness import HOSTS, LIBRARIES
from receipts.receipt.route import ANYTHING, dtypes, parts

SOURCE: Final = "intent"
_LANE: Final = Where("--lane")
_HOST: Final = "path.witnessed.framework"
_CONFIGURES: Final = ("parallelism.", "batch.", "numerics.", "model.")
_GEMM, _DTYPE = "path.intended.gemm", "numerics.compute_dtype"
_SHARDING: Final = "path.intended.sharding"
# Their arrays are placed by annotation; elsewhere a degree of sharding names no partition of a compiler.
_PLACED: Final = frozenset({"maxtext", "torch-xla", "jax"})


def state_intent(
    draft: ReceiptDraft, files: Sequence[FileEvidence], lane: LaneOptions | None, lanes: Sequence[LaneOptions] = ()
) -> None:
    """State what is missing of ``path.intended`` and of the asked posture. ``lane`` is one that the caller named.

    What follows from a leaf is stated where the receipt's own lane lets it follow: elsewhere one change would count
    for two axes.
    """
    own = next((item for item in lanes if item.name == draft.get("run.lane")), lane)
    follows = {axis for item in own.couplings for axis in item.then} if own is not None else set[str]()
    _framework(draft, files)
    _attention(draft)
    if "path.gemm" in follows:
        _gemm(draft)
    if "path.sharding" in follows:
        _sharding(draft)
    if lane is None:
        return
    why = f"the only one that lane {lane.name} permits"
    if len(lane.frameworks) == 1:
        _put(draft, "path.intended.framework", lane.frameworks[0], why)
    elif lane.frameworks and lane.frameworks[0] in LIBRARIES and draft.get(_HOST) in lane.frameworks:
        # A script hosts its own loop or calls a trainer: neither is chosen, or can fall back, while it runs.
        _put(draft, "path.intended.framework", draft.get(_HOST), f"the host that ran; lane {lane.name} permits it")
    if len(runtimes := lane.path.get("runtime", ())) == 1:
        _put(draft, "path.intended.runtime", runtimes[0], why)
    if len(lane.postures) == 1 and not lane.compile_exceptions:
        _put(draft, "compile.posture", lane.postures[0], why)


def _put(draft: ReceiptDraft, path: str, value: Any, why: str, where: Where = _LANE) -> None:
    draft.fill(path, value, where, SOURCE, why)


def _framework(draft: ReceiptDraft, files: Sequence[FileEvidence]) -> None:
    configured = {
        HOSTS[reading.source]: Where(file.name)
        for file, reading in readings(files)
        if reading.source in HOSTS and any(path.startswith(_CONFIGURES) for path in reading.stated)
    }
    if len(configured) == 1:
        ((name, where),) = configured.items()
        _put(draft, "path.intended.framework", name, "its own configuration", where)


def _attention(draft: ReceiptDraft) -> None:
    """A backend that is left to the framework: any that the lane permits was asked for."""
    claim = draft.leaves.get("features.attention_backend")
    if claim is not None and parts(claim.value) <= ANYTHING:
        _put(draft, "path.intended.attention", "auto", "features.attention_backend", claim.where)


def _gemm(draft: ReceiptDraft) -> None:
    """The type that was asked for, with the library where arguments name one (``te`` in bf16 is ``te_bf16``)."""
    claim = draft.leaves.get(_DTYPE)
    types = dtypes(draft.get(_DTYPE) or "")
    if claim is None or len(types) != 1 or _GEMM in draft.held:
        return
    (dtype,) = types
    library = draft.get(_GEMM)
    if library is None:
        _put(draft, _GEMM, dtype, f"{_DTYPE} asks for the type, and nothing for a library", claim.where)
    elif len(parts(library)) == 1 and not dtypes(library) and "_" not in str(library):
        was = draft.leaves[_GEMM]
        draft.put(_GEMM, f"{library}_{dtype}", was.where, was.source, f"{library}, in the type of {_DTYPE}")


def _sharding(draft: ReceiptDraft) -> None:
    shard, replicate = draft.get("parallelism.shard"), draft.get("parallelism.replicate")
    framework = draft.get("path.witnessed.framework") or draft.get("path.intended.framework")
    if framework not in _PLACED or not isinstance(shard, int):
        return
    where = draft.leaves["parallelism.shard"].where if "parallelism.shard" in draft.leaves else _LANE
    if shard > 1:
        _put(draft, _SHARDING, "fsdp", f"parallelism.shard is {shard}", where)
    elif isinstance(replicate, int) and replicate > 1:
        _put(draft, _SHARDING, "dp", f"parallelism.replicate is {replicate}, and nothing is sharded", where)
