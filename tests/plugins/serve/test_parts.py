"""Parts of ranks reach the server over HTTP, and with the last one it has the launch's receipt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from receipts.cli import main
from receipts.emit import Recorder

pytestmark = pytest.mark.slow
JSON = {"Content-Type": "application/json"}


def part(folder: Path, rank: int, monkeypatch: pytest.MonkeyPatch, *, world: int = 2, ask: bool = False) -> Path:
    """A part that one rank wrote into a folder of its own."""
    monkeypatch.setenv("RANK", str(rank))
    monkeypatch.setenv("WORLD_SIZE", str(world))
    own = folder / f"host-{rank}"
    with Recorder(
        "cpu-torch", context="c", out=own / "run.json", probes=False, quiet=not ask, deliver=ask, launch="two-hosts"
    ) as rec:
        for _ in range(3):
            with rec.step(tokens=8):
                pass
    return own / f"run.rank{rank:05d}.part.json"


def test_ranks_without_a_folder_in_common_give_one_receipt(
    listening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RECEIPTS_STORE", listening)
    part(tmp_path, 0, monkeypatch, ask=True)
    assert "1 of 2 parts are here; rank 1 missing" in capsys.readouterr().err
    part(tmp_path, 1, monkeypatch, ask=True)
    assert f"delivered to {listening}" in capsys.readouterr().err
    main(["--store", listening, "list", "launch=two-hosts", "--json"])
    (row,) = json.loads(capsys.readouterr().out)
    main(["--store", listening, "show", row["id"], "--json"])
    assert "merged from the parts of 2 ranks" in capsys.readouterr().out


def test_a_rank_that_never_comes_is_named_and_the_rest_can_be_merged(
    listening: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = part(tmp_path, 1, monkeypatch, world=3)
    assert main(["--store", listening, "merge", "--send", str(file)]) == 3
    assert "ranks 0, 2 missing" in capsys.readouterr().out
    assert main(["--store", listening, "merge", "--send", "--partial", "another"]) == 2
    assert main(["--store", listening, "merge", "--send", "--partial", "two-hosts"]) == 0
    assert "stored as" in capsys.readouterr().out


def test_a_part_is_refused_with_the_reason(
    client: TestClient, guarded: tuple[TestClient, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = part(tmp_path, 0, monkeypatch).read_bytes()
    assert client.post("/v1/parts", content=raw, headers=JSON).status_code == 202
    assert client.post("/v1/parts", content=raw, headers=JSON).status_code == 202
    other = client.post("/v1/parts", content=raw.replace(b'"device"', b'"devic"') + b" ", headers=JSON)
    assert (other.status_code, "rank 0" in other.json()["detail"]) == (409, True)
    assert client.post("/v1/parts", content=b"{}", headers=JSON).status_code == 422
    # Of many missing ranks the first are named.
    far = {**json.loads(raw), "launch": "many-hosts", "world": 90_000}
    many = client.post("/v1/parts", json=far).json()
    assert (many["world"], many["here"], many["missing"]) == (90_000, 1, [*range(1, 101)])
    assert many["status"] == "1 of 90000 parts are here; ranks 1-100 and 89899 more missing"
    asking, tokens = guarded
    bearer = {**JSON, "Authorization": f"Bearer {tokens['submit:cpu-torch']}"}
    assert asking.post("/v1/parts", content=raw, headers=bearer).status_code == 202
    lane = raw.replace(b"cpu-torch", b"nvidia-torch")
    assert asking.post("/v1/parts", content=lane, headers=bearer).status_code == 403
    # Nor does a token end a launch of another lane, or send a short part of one as if it named a launch.
    whole = {**JSON, "Authorization": f"Bearer {tokens['submit']}"}
    far = lane.replace(b"two-hosts", b"far-hosts")
    assert asking.post("/v1/parts", content=far, headers=whole).status_code == 202
    ended = asking.post("/v1/parts?partial=true", content=b'{"launch": "far-hosts"}', headers=bearer)
    assert (ended.status_code, "nvidia-torch" in ended.json()["detail"]) == (403, True)
    short = b'{"launch": "x", "receipt": {"run": {"lane": "nvidia-torch"}}}'
    assert asking.post("/v1/parts?partial=true", content=short, headers=bearer).status_code == 403


def test_merge_writes_or_sends(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", str(tmp_path)]) == 2
    assert "-o FILE, or --send" in capsys.readouterr().err
    assert main(["merge", "--send", str(tmp_path)]) == 2
