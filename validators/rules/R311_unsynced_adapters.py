"""# R311 unsynced_adapters

*Why.* `fully_shard` manages the parameters that it finds. Adapters that are injected afterward are not managed: each
rank trains its own copy, the loss still falls, and what is saved is the copy of one rank.

*Rejected.* LoRA of rank 16, injected after sharding, with no gradient synchronization stated, or `none`.

*Accepted.* Injected before sharding; or after it, with the all-reduce hooks that synchronize their gradients named. No
adapters, and a part of the model's own weights that is trained (`partial`).
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import ALL, PATH, Case, E, I, Offense, rule
from receipts.receipt.names import parts

_KIND, _WHEN, _SYNC = (f"numerics.adapters.{name}" for name in ("kind", "injected", "gradient_sync"))


def _needs(case: Case) -> Iterator[str]:
    yield _KIND
    if _added(case.get(_KIND) or "none"):
        yield _WHEN


def _added(kind: str) -> bool:
    return bool(parts(kind) - {"partial"})  # a part of the model's own weights is trained


def _unstated(kind: str) -> Offense:
    return Offense(
        at=_WHEN,
        found=f"{kind}, and not when it was injected",
        expected="adapters injected before sharding",
        do=f"state {_WHEN}",
        level=I,
        unjudged=True,
    )


@rule("R311", "unsynced_adapters", E, question=PATH, taints=(ALL,), needs=_needs, of_configuration=True)
def unsynced_adapters(case: Case) -> Iterator[Offense]:
    """Adapters that no sharding wrapper knows, and whose gradients nobody says to synchronize."""
    kind, sync = case.get(_KIND), case.get(_SYNC)
    if kind is not None and not _added(kind):
        return
    if kind is not None and case.get(_WHEN) is None and not case.lane.applies(_WHEN):
        yield _unstated(kind)  # a lane that has no adapters waives nothing for a launch that has them
    if case.get(_WHEN) == "after_sharding" and not parts(sync or "none"):
        yield Offense(
            at=_SYNC,
            found=f"{kind or 'adapters'} injected after sharding, gradient synchronization {sync or 'not stated'}",
            expected="all-reduce hooks on the adapters, or adapters injected before sharding",
            do="register the hooks and state them, or inject before fully_shard",
        )
