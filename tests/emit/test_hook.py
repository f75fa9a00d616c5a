"""A hook on a module of the job's is no part of what the job writes of its model."""

from __future__ import annotations

import copy
import pickle
from types import SimpleNamespace

from receipts.emit.sight.inputs import Hook, unhook


def torch_that(traces: bool = False, compiles: bool = False) -> SimpleNamespace:
    compiler = SimpleNamespace(is_compiling=lambda: compiles)
    return SimpleNamespace(_C=SimpleNamespace(_get_tracing_state=lambda: traces or None), compiler=compiler)


def test_a_pickled_hook_does_nothing_and_needs_no_recorder() -> None:
    calls: list[tuple[object, ...]] = []
    hook = Hook(torch_that(), lambda *given: calls.append(given))
    raw = pickle.dumps({"hooks": {1: hook}})
    assert b"receipts.emit" not in raw
    read = pickle.loads(raw)["hooks"][1]
    assert (read("module", (1,), {}), calls) == (None, [])
    assert copy.deepcopy(hook) is hook
    hook("module", (1,), {})
    assert calls == [("module", (1,), {})]


def test_a_hook_looks_away_while_a_call_is_traced_or_compiled() -> None:
    calls: list[tuple[object, ...]] = []
    for torch in (torch_that(traces=True), torch_that(compiles=True)):
        Hook(torch, lambda *given: calls.append(given))("module", (1,), {})
    assert calls == []


def test_a_model_is_without_hooks_of_the_recorder_and_has_them_again_in_their_order() -> None:
    own, other = Hook(torch_that(), print), print
    before, after = {1: other, 2: own, 3: other}, {4: own}
    module = SimpleNamespace(_forward_pre_hooks=before, _forward_hooks=after)
    put_back = unhook(SimpleNamespace(modules=lambda: [module]))
    assert (before, after) == ({1: other, 3: other}, {})
    before[5] = other  # what was called meanwhile may add its own
    put_back()
    assert (list(before), list(after)) == ([1, 2, 3, 5], [4])
