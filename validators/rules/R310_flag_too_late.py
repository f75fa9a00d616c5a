"""# R310 flag_too_late

*Why.* XLA, libtpu, NCCL and the thread pools read their flags once, when they are imported. A flag that is set later
appears in the environment, in the log and in the table, but has no effect.

*Rejected.* `LIBTPU_INIT_ARGS.xla_tpu_scoped_vmem_limit_kib=98304` set after torch_xla was imported.

*Accepted.* Flags that the lane's `early_flags` name were set before the runtime was imported, and the receipt says so.
A flag of the training script may be set at any time.
"""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from receipts.judging.rule import ALL, PATH, Case, E, Offense, rule
from receipts.receipt.document import Flag


def _early(case: Case) -> Iterator[tuple[str, bool | None]]:
    """Flags that a runtime reads at import, each with whether it was set before; any, where no lane says which."""
    patterns = case.lane.early_flags or ("*",)
    for name, flag in (case.receipt.flags or {}).items():
        if name != "complete" and any(fnmatchcase(name, pattern) for pattern in patterns):
            yield name, getattr(flag, "before_runtime", None)


def _needs(case: Case) -> Iterator[str]:
    flags = case.receipt.flags or {}
    for name, before in _early(case):
        # Where no lane says which flags are early, those are asked that are stated as flags with a time.
        if before is None and (case.lane.early_flags or isinstance(flags[name], Flag)):
            yield f"flags.{name}.before_runtime"


@rule("R310", "flag_too_late", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def flag_too_late(case: Case) -> Iterator[Offense]:
    """Runtime flags that were set after the runtime had read its own."""
    for name, before in _early(case):
        if before is False:
            yield Offense(
                at=f"flags.{name}.before_runtime",
                found=f"{name} was set after the runtime was imported",
                expected="set before the import, where the runtime reads it",
                do=f"export {name.partition('.')[0]} before the process starts, and run again",
            )
