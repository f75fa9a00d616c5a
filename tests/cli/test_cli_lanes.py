"""``receipts lanes``."""

from __future__ import annotations

import pytest

from command_line import Shell


def test_every_lane_is_listed_in_both_forms(shell: Shell) -> None:
    names = [lane["name"] for lane in shell("lanes", "--json").json]
    assert "unlisted" in names
    assert all(name in shell("lanes").out for name in names)


def test_one_lane_shows_what_it_says(shell: Shell) -> None:
    (lane,) = shell("lanes", "nvidia-megatron", "--json").json
    said = shell("lanes", "nvidia-megatron")
    assert said.lines[0] == f"nvidia-megatron@{lane['version']}  {lane['title']}"
    assert "waivable" in said.out


def test_a_mistyped_lane_is_answered_with_those_near_it(shell: Shell) -> None:
    said = shell("lanes", "nvidia-megatrom")
    assert said.code == 2
    assert "did you mean nvidia-megatron" in said.err


def test_a_configuration_is_found_upward_unless_anybody_may_write_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shell.folder / "receipts.toml").write_text('store = "team.sqlite"\nnonsense = 1\n', encoding="utf-8")
    (shell.folder / "src" / "deep").mkdir(parents=True)
    monkeypatch.chdir(shell.folder / "src" / "deep")
    read = shell("lanes")
    assert (read.code, "no such key: nonsense" in read.err) == (2, True)
    (shell.folder / "receipts.toml").chmod(0o666)
    assert shell("lanes").code == 0
