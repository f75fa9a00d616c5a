"""A column of a page that no entry of the mapping names is never taken for equal."""

from __future__ import annotations

from receipts.plugins.exchange.draft import RowDraft, spill
from receipts.plugins.exchange.table import TableRow


def _features(name: str, value: object, *, of_page: bool = True) -> dict[str, object]:
    draft = RowDraft()
    assert spill(draft, TableRow("row 1", {name: value}), frozenset(), None, of_page=of_page) == [name]
    features: dict[str, object] = draft.tree.get("features", {})
    return features


def test_a_column_that_may_be_a_setting_is_one() -> None:
    assert _features("TP type", "Async TP") == {"TP type": "Async TP"}


def test_a_column_of_results_is_none() -> None:
    for name in ("Speedup over vanilla", "Loss", "Peak memory", "Tokens/s", "MFU (%)", "Remarks"):
        assert _features(name, "1.09") == {}


def test_records_of_programs_keep_to_their_mapping() -> None:
    assert _features("TP type", "Async TP", of_page=False) == {}
