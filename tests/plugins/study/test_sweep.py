"""A cell of a sweep holds samples alone."""

from __future__ import annotations

import rule_cases as cases
import section_store as section
from receipts.plugins.study.sweep import Sweep, sweep
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Parsed


def test_a_sweep_leaves_out_what_is_no_sample_and_counts_it() -> None:
    base, slow = section.side("base", 0, 2.0), section.side("slow", 1, 2.2, section.changed())
    comparisons = Comparisons(None, cases.rulebook())

    def grid(*more: Parsed) -> Sweep:
        return sweep([*base, *slow, *more], ["bucket_bytes"], comparisons, base=base[0])

    clean = grid().cells
    assert [len(cell.launches) for cell in clean] == [3, 3]
    values = {path.replace(".", "__"): value for path, value in section.changed().items()}
    diverged = section.launch("slow-9", 0.5, 1.0, **values, measurement__loss={"finite": False})
    after = grid(diverged).cells
    assert [cell.launches for cell in after] == [cell.launches for cell in clean]
    assert [[item.why for item in cell.lost] for cell in after] == [[], [("R111",)]]
    assert after[1].against_base is not None
    assert clean[1].against_base is not None
    assert after[1].against_base.results == clean[1].against_base.results
    assert "B: 3 of 4 launches count; R111 on 1" in after[1].against_base.launches_lost
