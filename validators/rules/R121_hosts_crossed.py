"""# R121 hosts_crossed

*Why.* Tensor parallelism waits for collectives inside every layer, and expert parallelism exchanges tokens there. On
links between hosts both wait many times longer than on NVLink. A common layout keeps them inside a host, and lets
pipeline or data parallelism cross.

*Rejected.* Tensor 16 on hosts of eight H200. Tensor 6 there on three hosts: of its four groups, one has to cross.
Experts of 16 ranks on such hosts, be it expert 16, or expert 8 of experts that are cut over tensor 2. Tensor 2 on two
GB10. What is counted is what no placement can avoid: groups that do not divide the chips of a host.

*Accepted.* Tensor 8 and expert 8 on four hosts of eight. A TPU slice, whose ICI joins its hosts. An accelerator whose
fabric is not declared. Context, pipeline and data groups may cross. A microbenchmark: it has no layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import counted
from receipts.judging.rule import NONE, Case, Offense, W, rule, runs_model
from receipts.metrics.degrees import CHIPS, EXPERT, EXPERT_TENSOR, TENSOR, degree
from receipts.receipt.accelerators import find_accelerator

HOSTS = "hardware.hosts"


@rule("R121", "hosts_crossed", W, question=NONE, applies=runs_model, of_configuration=True)
def hosts_crossed(case: Case) -> Iterator[Offense]:
    """Tensor groups, then expert groups, against the chips of a host that the fast fabric joins."""
    accelerator = find_accelerator(case.get("hardware.accelerator"))
    if accelerator is None or accelerator.joined is None:
        return
    chips, hosts = case.get(CHIPS), case.get(HOSTS)
    even = bool(chips and hosts and chips % hosts == 0)
    island = min(accelerator.joined, chips // hosts) if even else accelerator.joined
    tensor, expert = degree(case.stated, case.lane, TENSOR) or 1, degree(case.stated, case.lane, EXPERT) or 1
    # Tensor ranks of a mesh stand beside its expert ranks; elsewhere those that an expert is cut over do.
    inside = tensor if case.lane.convention == "expert_in_world" else case.get(EXPERT_TENSOR) or 1
    for at, ways, size in ((TENSOR, tensor, tensor), (EXPERT, expert, expert * inside)):
        if ways > 1 and (size > island or (even and island % size)):
            yield Offense(
                at=at,
                found=f"groups of {size} ranks over hosts of {counted(island, 'chip')}",
                expected="groups that divide the chips of a host",
                do="lower the degree, and let pipeline or data parallelism cross the hosts",
            )
