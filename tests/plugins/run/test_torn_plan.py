"""A plan that no chips can hold is refused before anything is launched."""

from __future__ import annotations

from command_line import Shell


def test_a_layout_that_no_chips_can_hold_is_refused_with_every_place(shell: Shell) -> None:
    torn = {"parallelism.tensor": 7, "model.heads": 28, "model.experts": 6, "parallelism.expert": 4}
    outcome = shell("run", "--plan", shell.write("torn", base="megatron", **torn), "--", "true")
    assert outcome.code == 2, outcome.out
    assert "R105" in outcome.err
    assert "R108" in outcome.err
    assert not list(shell.folder.glob("receipts-run-*"))
