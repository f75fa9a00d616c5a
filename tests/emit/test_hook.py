"""A hook on a module of the job's is no part of what the job writes of its model."""

from __future__ import annotations

import copy
import pickle

from receipts.emit.sight.inputs import Hook


def test_a_pickled_hook_does_nothing_and_needs_no_recorder() -> None:
    calls: list[tuple[object, ...]] = []
    hook = Hook(lambda *given: calls.append(given))
    raw = pickle.dumps({"hooks": {1: hook}})
    assert b"receipts.emit" not in raw
    read = pickle.loads(raw)["hooks"][1]
    assert (read("module", (1,), {}), calls) == (None, [])
    assert copy.deepcopy(hook) is hook
    hook("module", (1,), {})
    assert calls == [("module", (1,), {})]
