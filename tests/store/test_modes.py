"""What is kept is its owner's alone, unless somebody shared the folder with a group."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from receipts.emit import Recorder
from receipts.emit.files import file_mode, make_folder
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.address import address
from receipts.store.backup import backup
from receipts.store.evidence import Folder
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, raw


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def _fill(folder: Path) -> dict[str, int]:
    """The modes of a store and what stands beside it, while it is open and written."""
    store = folder / "store.sqlite"
    with open_store(f"sqlite:///{store}") as opened:
        submit([Document(raw(), "run.json")], opened, RULEBOOK)
        packed = folder / "packed"
        packed.write_bytes(b"x")
        Folder(folder / "evidence").put("ab12.gz", packed)
        packed.unlink()
        return {str(path.relative_to(folder)): _mode(path) for path in folder.rglob("*")}


def test_a_store_its_wal_and_its_evidence_are_the_owner_s_alone(tmp_path: Path) -> None:
    modes = _fill(tmp_path)
    assert "store.sqlite-wal" in modes
    assert {name: oct(mode) for name, mode in modes.items()} == {
        name: oct(0o700 if (tmp_path / name).is_dir() else 0o600) for name in modes
    }


@pytest.mark.parametrize("shared", [0o2770, 0o770, 0o2775])
def test_a_folder_that_a_group_shares_is_followed(tmp_path: Path, shared: int) -> None:
    folder = tmp_path / "team"
    folder.mkdir()
    folder.chmod(shared)
    modes = _fill(folder)
    assert {mode & 0o777 for name, mode in modes.items() if "." in name} == {shared & 0o666}
    assert modes["evidence"] & 0o777 == shared & 0o777


def test_a_backup_is_the_owner_s_alone(tmp_path: Path) -> None:
    _fill(tmp_path)
    backup(address(f"sqlite:///{tmp_path / 'store.sqlite'}"), tmp_path / "copy.sqlite")
    assert _mode(tmp_path / "copy.sqlite") == 0o600


def test_a_journal_and_its_folder_are_the_owner_s_alone(tmp_path: Path) -> None:
    rec = Recorder("cpu-torch", out=tmp_path / "run.json", journal=tmp_path / "journals", keep_journal=True, quiet=True)
    with rec:
        rec.note("one")
    (journal,) = (tmp_path / "journals").iterdir()
    assert (_mode(journal), _mode(journal.parent)) == (0o600, 0o700)


def test_everybody_s_folder_is_no_group_s_and_a_folder_that_exists_stays(tmp_path: Path) -> None:
    everybody = tmp_path / "everybody"
    everybody.mkdir()
    everybody.chmod(0o1777)
    assert file_mode(everybody) == 0o600
    make_folder(everybody)
    assert _mode(everybody) == 0o1777
