"""Checkpoints that are kept elsewhere: a deleted tail, an old backup and a second history are seen."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

import merkle_proofs
from command_line import Shell
from receipts.workflows.checkpoints import read_checkpoints

pytestmark = pytest.mark.slow


@pytest.fixture
def sealed(shell: Shell) -> Shell:
    """A store with two published seals, and ``yesterday.sqlite``, which has the first of them."""
    shell("key", "new", "ana", "--out", "ana")
    for name in ("one", "two"):
        shell.store(name)
        answer = shell("audit", "--seal", "--publish", "checkpoints.txt", "--sign", "ana")
        assert answer.code == 0, answer.err
        if name == "one":
            shutil.copyfile(shell.folder / "store.sqlite", shell.folder / "yesterday.sqlite")
    return shell


def _against(shell: Shell, key: str = "ana.pub") -> tuple[int, str]:
    answer = shell("audit", "--against", "checkpoints.txt", "--key", key)
    return answer.code, " ".join(answer.out.split()) + answer.err


def _restored(shell: Shell) -> None:
    shutil.copyfile(shell.folder / "yesterday.sqlite", shell.folder / "store.sqlite")


def test_the_store_that_was_published_continues_its_checkpoints(sealed: Shell) -> None:
    assert _against(sealed)[0] == 0
    sealed.store("three")
    assert sealed("audit", "--seal").code == 0
    assert _against(sealed)[0] == 0


def test_a_store_restored_from_yesterday_has_lost_its_tail(sealed: Shell) -> None:
    _restored(sealed)
    assert sealed("audit").code == 0
    code, text = _against(sealed)
    assert code == 1
    assert "the tail was deleted, or this is an older backup" in text


def test_a_store_that_went_on_from_yesterday_has_a_second_history(sealed: Shell) -> None:
    _restored(sealed)
    sealed.store("other")
    assert sealed("audit", "--seal").code == 0
    sealed.store("another")
    assert sealed("audit", "--seal").code == 0
    code, text = _against(sealed)
    assert code == 1
    assert "another history" in text
    refused = sealed("audit", "--seal", "--publish", "checkpoints.txt", "--sign", "ana")
    assert refused.code == 2
    assert "another history" in refused.err


def test_a_receipt_deleted_with_the_seals_that_held_it_is_missed(sealed: Shell) -> None:
    # Whoever owns the file drops the triggers; what is left is whole by itself.
    with sqlite3.connect(sealed.folder / "store.sqlite") as database:
        yesterday = sqlite3.connect(sealed.folder / "yesterday.sqlite")
        first = yesterday.execute("SELECT max(seq) FROM seals").fetchone()[0]
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f'DROP TRIGGER "{name}"')
        database.execute("DELETE FROM seals WHERE seq > ?", (first,))
        database.execute("DELETE FROM receipts WHERE seq = (SELECT max(seq) FROM receipts)")
    code, text = _against(sealed)
    assert code == 1
    assert "the tail was deleted" in text


def test_a_checkpoint_of_another_key_or_that_was_changed_counts_for_nothing(sealed: Shell) -> None:
    sealed("key", "new", "eve", "--out", "eve")
    assert "no key that counts signed it" in _against(sealed, "eve.pub")[1]
    place = sealed.folder / "checkpoints.txt"
    lines = place.read_text().split("\n")
    place.write_text("\n".join([lines[0], "1", *lines[2:]]))
    assert "no key that counts signed it" in _against(sealed)[1]


def test_keys_of_the_store_count_until_they_are_revoked(sealed: Shell) -> None:
    sealed("key", "trust", "ana", "ana.pub")
    assert sealed("audit", "--against", "checkpoints.txt").code == 0
    sealed("key", "revoke", "ana", "--reason", "lost")
    assert sealed("audit", "--against", "checkpoints.txt").code == 1


def test_a_file_of_something_else_is_refused(sealed: Shell, tmp_path: Path) -> None:
    (tmp_path / "checkpoints.txt").write_text("nothing\n")
    code, text = _against(sealed)
    assert code == 2
    assert "no signed checkpoint" in text


def test_the_log_proves_that_it_continues_its_first_seals(sealed: Shell) -> None:
    checkpoints = read_checkpoints((sealed.folder / "checkpoints.txt").read_text(), "checkpoints.txt")
    first, second = checkpoints
    proof = sealed("audit", "--consistency", str(first.size), "--json").json
    assert (proof["first_root"], proof["second_root"]) == (first.root.hex(), second.root.hex())
    steps = [bytes.fromhex(item) for item in proof["proof"]]
    assert merkle_proofs.consistent(first.size, second.size, first.root, second.root, steps)
    assert sealed("audit", "--consistency", "99").code == 2
