"""A pickle is never opened: what is in one runs."""

from __future__ import annotations

import pickle
from pathlib import Path

from receipts.ingest.evidence import read


def test_a_pickle_is_refused_with_the_reason(tmp_path: Path) -> None:
    (path := tmp_path / "snapshot.pickle").write_bytes(
        pickle.dumps({"segments": [{"address": 0, "size": 1 << 21}] * 9})
    )
    evidence = read(path)
    assert evidence.readings == ()
    assert [remark.text.partition(":")[0] for remark in evidence.remarks] == [
        "a pickle, such as torch's memory snapshot"
    ]
