"""# R303 host_sync

*Why.* A device runs ahead of its host until the host asks for a number. `.item()` in every step split one execution
into two, and `print(loss)` did the same without leaving an operator's name: the loss was identical to the last bit, and
the steps were slower.

*Rejected.* Twenty transfers of live tensors to the host in twenty steps. One host read of a scalar a step, counted as
`aten::_local_scalar_dense`. A host callback inside the compiled step.

*Accepted.* No transfer after startup, or one in ten steps, as in a loop that logs every tenth step. A host read is
not a fallback: the path was kept, and only the rate is tainted. A lane that does not list host transfers under
`witness` is not asked for them. Where they are stated, they count on XLA (JAX, torch_xla), which runs ahead;
elsewhere a framework reads the host by design, as Megatron reads the overflow flag of every step."""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import MFU, PATH, RATE, Case, E, Offense, Topic, rule

TRANSFERS = "path.witnessed.host_transfers_per_step"
FRAMEWORK = "path.witnessed.framework"
AHEAD = frozenset({"jax", "torch-xla"})  # their programs run ahead of the host until it reads
OFTEN = 0.1  # a loop that reads its loss every tenth step: torch_xla's own analyzer objects from one in two


def _required(case: Case) -> bool:
    return TRANSFERS.rpartition(".")[2] in case.lane.witness


def _needs(case: Case) -> Iterator[str]:
    if _required(case):
        yield TRANSFERS


def _ahead(case: Case) -> bool:
    """Whether the lane's frameworks run ahead of the host; where it names none, whether the one that ran does."""
    names = case.lane.frameworks or (case.get(FRAMEWORK),)
    return any(str(name).replace("_", "-") in AHEAD for name in names)


@rule(
    "R303", "host_sync", E, question=PATH, taints=(RATE, MFU), needs=_needs, of_configuration=True, about=Topic.INCIDENT
)
def host_sync(case: Case) -> Iterator[Offense]:
    """Transfers a step beyond what occasional logging makes."""
    transfers = case.get(TRANSFERS)
    if transfers is not None and transfers > OFTEN and (_required(case) or _ahead(case)):
        yield Offense(
            at=TRANSFERS,
            found=f"{transfers:g} transfer{'s' if transfers != 1 else ''} of live tensors to the host a step",
            expected=f"at most one in {1 / OFTEN:g} steps",
            do="keep values on the device, and read them every tenth step or later, or in a callback outside the step",
        )
