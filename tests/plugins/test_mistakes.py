"""What the commands of plugins answer to a mistake: every wrong word at once, and what would be right."""

from __future__ import annotations

import pytest

from command_line import Shell


@pytest.mark.parametrize("words", [("bridge", "nobody", "no-one"), ("bisect", "nobody", "no-one")])
def test_every_receipt_that_is_not_there_is_named(shell: Shell, words: tuple[str, ...]) -> None:
    outcome = shell(*words)
    assert outcome.code == 2
    first, second = outcome.err.splitlines()
    assert first.startswith("receipts: no receipt is called 'nobody'")
    assert second.startswith("receipts: no receipt is called 'no-one'")


def test_every_axis_of_a_sweep_that_nobody_states_is_named(shell: Shell) -> None:
    outcome = shell("sweep", shell.write("a"), "--vary", "micro_btch,rain")
    assert outcome.code == 2
    assert "'micro_btch'" in outcome.err
    assert "did you mean batch.micro_batch" in outcome.err
    assert "'rain'" in outcome.err


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("run", "--plan", "label=two words"), "receipts run --plan 'label=two words' -- python"),
        (("plan", "--next", "nowhere"), "nowhere: there is no experiment.json in this folder (receipts plan"),
        (("plan", "--screen", "gone.toml", "--budget", "2000 GPUs"), "write chip-hours, such as 2000chip-h"),
        (("history", "a", "--axis", "rain"), "there is no column or leaf 'rain'"),
    ],
)
def test_the_answer_shows_what_would_be_right(shell: Shell, words: tuple[str, ...], answer: str) -> None:
    if words[0] in ("history", "plan"):
        pytest.importorskip("ruptures")
    shell.store("a")
    outcome = shell(*words)
    assert outcome.code == 2
    assert answer in outcome.err
