"""The stores of the scale benchmark hold what submitting would have put there."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from receipts.store import Filters, condition, open_store

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _from_the_checkout(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(checkout))


def test_what_is_filled_in_is_what_is_submitted() -> None:
    from benchmarks.scaling.proof import differences

    # A first batch alone: of later launches a verdict says that their shape is new, which is what `BEFORE` is for.
    assert differences(90, "whole", before=0) == []
    assert differences(90, "summary", before=0) == []


def test_a_store_is_filled_on_from_where_it_ended(tmp_path: Path) -> None:
    from benchmarks.scaling.launches import launches
    from benchmarks.scaling.load import fill

    cut, whole = tmp_path / "cut.sqlite", tmp_path / "whole.sqlite"
    for count in (30, 70):
        fill(cut, count, "summary")
    fill(whole, 70, "summary")
    with open_store(str(cut)) as one, open_store(str(whole)) as other:
        assert [item.id for item in one.find()] == [item.id for item in other.find()]
        assert len(list(one.find(Filters((condition("flags.SCALE_FIRST=1"),), superseded=True)))) == sum(
            item.kind.point.first for item in islice(launches(), 70)
        )
