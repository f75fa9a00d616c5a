"""What a type checker says of questions as methods of a store; mypy reads this file, and nothing runs it.

An expected error is an ignored one: mypy reports an ignore that nothing needs.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import receipts
from receipts.api.answer import Answer, Answers


def calls(store: receipts.Store) -> None:
    """Calls that are right, then calls that are wrong in one way each."""
    assert_type(store.compare("3f9c", Path("b.json"), metric="mfu", join="only"), receipts.Comparison)
    assert_type(store.neighbours("3f9c", limit=5), Answer)
    assert_type(store.verify(["3f9c"], every=False), Answers)
    assert_type(store.find("chips>=8", lane="cpu-torch"), receipts.Receipts)
    assert_type(store.compare("a", "b").ratio, float | None)
    store.compare("a", "b", metrik="mfu")  # type: ignore[call-arg]
    store.compare("a", "b", join="some")  # type: ignore[arg-type]
    store.neighbours("a", limit="three")  # type: ignore[arg-type]
    store.noise(lane=3)  # type: ignore[arg-type]
    store.neighbours()  # type: ignore[call-arg]
