"""An archive of logs is read as the folder that was put into it, and can do no harm."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from receipts.base.errors import UsageError
from receipts.ingest import files
from receipts.ingest.evidence import read
from receipts.ingest.files import given
from receipts.ingest.source import Source

LINE = "step {:4d}/100 | loss 9.1 (+nanz)| norm 1.0 (+nanz)| lr 1.0e-04 | 801.2 ms | 31.0% bf16 MFU | 81920 tok/s\n"
LOG = "".join(map(LINE.format, range(1, 101))).encode()
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": lambda raw: pa.compress(raw, codec="zstd", asbytes=True),
    ".lz4": lambda raw: pa.compress(raw, codec="lz4", asbytes=True),
}


def _tar(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.mtime = len(content), kind, 1_700_000_000
            info.linkname = "/etc/passwd"
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def _zip(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def _files(path: Path) -> tuple[dict[str, int], list[str]]:
    """Steps of every file by its name, and the remarks."""
    with given([str(path)]) as (items, remarks):
        return {item.name: sum(len(one.steps) for one in read(item.path).readings) for item in items}, remarks


@pytest.mark.parametrize("packing", PACKED)
def test_a_log_is_read_however_it_is_packed(packing: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.log{packing}"
    path.write_bytes(PACKED[packing](LOG))
    assert _files(path)[0] == {path.name: 100}
    assert Source(path, "run").tail == LOG[-(1 << 16) :]


@pytest.mark.parametrize("packing", [".zst", ".lz4"])
def test_nearly_all_before_a_break_is_read(packing: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.log{packing}"
    whole = PACKED[packing](LOG)
    path.write_bytes(whole + PACKED[packing](LOG)[:-30])
    evidence = read(path)
    assert evidence.cut
    assert len(evidence.readings[0].steps) >= 95


@pytest.mark.parametrize("packing", PACKED)
def test_a_tar_is_its_files(packing: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.tar{packing}"
    path.write_bytes(PACKED[packing](_tar(("./rank_1.log", LOG), ("./rank_0.log", LOG), ("note.txt", b"hello\n"))))
    assert [name.removeprefix(f"{path.name}/") for name in _files(path)[0]] == ["rank_0.log", "rank_1.log", "note.txt"]
    assert list(_files(path)[0].values()) == [100, 100, 0]


def test_a_zip_is_its_files_and_they_may_be_packed(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    path.write_bytes(_zip(("a.log", LOG), ("b.log.gz", gzip.compress(LOG))))
    assert _files(path)[0] == {"run.zip/a.log": 100, "run.zip/b.log.gz": 100}


def test_a_file_of_an_archive_keeps_its_date(tmp_path: Path) -> None:
    path = tmp_path / "run.tar"
    path.write_bytes(_tar(("a.log", LOG)))
    with given([str(path)]) as (items, _):
        assert items[0].path.stat().st_mtime == 1_700_000_000


def test_no_name_leads_out_of_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "run.tar"
    path.write_bytes(_tar(("../../escape.log", LOG), ("/escape.log", LOG)))
    with given([str(path)]) as (items, _):
        assert {item.path.parent.parent.name.startswith("receipts-ingest-") for item in items} == {True}


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE])
def test_what_is_no_file_is_passed_over(kind: bytes, tmp_path: Path) -> None:
    path = tmp_path / "run.tar"
    path.write_bytes(_tar(("evil.log", b""), kind=kind))
    assert _files(path)[0] == {}


def test_an_archive_in_an_archive_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "run.zip"
    path.write_bytes(_zip(("inner.tar.gz", gzip.compress(_tar(("a.log", LOG)))), ("b.log", LOG)))
    names, remarks = _files(path)
    assert names == {"run.zip/b.log": 100}
    assert "archive in an archive" in remarks[0]


@pytest.mark.parametrize("form", ["zip", "tar", "tar.gz"])
def test_a_bomb_is_refused_before_it_fills_the_disk(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_UNPACKED", 1 << 20)
    path = tmp_path / f"run.{form}"
    member = ("zeros.log", bytes(3 << 20))
    path.write_bytes(_zip(member) if form == "zip" else PACKED[form[3:]](_tar(member)))
    with pytest.raises(UsageError, match="unpacks to more than"):
        _files(path)


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_MEMBERS", 3)
    path = tmp_path / "run.tar"
    path.write_bytes(_tar(*((f"{at}.log", b"") for at in range(4))))
    with pytest.raises(UsageError, match="more than 3 files"):
        _files(path)


def test_a_header_that_states_gigabytes_is_not_read_into_memory(tmp_path: Path) -> None:
    info = tarfile.TarInfo("././@PaxHeader")
    info.type, info.size = tarfile.XHDTYPE, 2 << 20
    path = tmp_path / "run.tar"
    path.write_bytes(info.tobuf() + bytes(2 << 20) + _tar(("a.log", LOG)))
    with pytest.raises(UsageError, match="cannot be read: a header states"):
        _files(path)


@pytest.mark.parametrize("damage", ["cut", "encrypted"])
def test_an_archive_that_cannot_be_read_says_why(damage: str, tmp_path: Path) -> None:
    raw = bytearray(_zip(("a.log", LOG)))
    if damage == "encrypted":
        raw[6] |= 1
        raw[raw.index(b"PK\x01\x02") + 8] |= 1
    path = tmp_path / "run.zip"
    path.write_bytes(raw if damage == "encrypted" else raw[:-40])
    with pytest.raises(UsageError, match="encrypted" if damage == "encrypted" else "not a zip file"):
        _files(path)


def test_a_checkpoint_is_no_archive_of_logs(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(_zip(("archive/data.pkl", b"\x80\x02}q"), ("archive/data/0", bytes(64))))
    assert _files(path)[0] == {"model.pt": 0}


@pytest.mark.parametrize(("magic", "name"), [(b"7z\xbc\xaf\x27\x1c", "7z"), (b"Rar!\x1a\x07\x01\x00", "RAR")])
def test_a_form_that_is_not_unpacked_is_named(magic: bytes, name: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(magic + LOG)
    assert [item.text for item in read(path).remarks] == [f"packed as {name}: unpack it first"]
