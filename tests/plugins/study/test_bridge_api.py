"""A bridge that Python asks of an open store is the command's."""

from __future__ import annotations

import pytest

import receipts
from command_line import Shell

pytestmark = pytest.mark.slow


def test_the_answer_equals_the_commands_byte_for_byte(shell: Shell) -> None:
    shell.store("a")
    shell.store("b", batch__micro_batch=4)
    with receipts.open() as store:
        answer = store.bridge("a", "b")
    assert answer.to_json() + "\n" == shell("bridge", "a", "b", "--json").out
    assert answer.page().title
