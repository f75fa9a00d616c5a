"""`receipts history`, `watch` and `incident` as they are called."""

from __future__ import annotations

import sys
from xml.etree import ElementTree

import pytest

from command_line import Shell, shell
from grid_store import keep
from line_store import line
from receipts.store import open_store

pytestmark = pytest.mark.slow

__all__ = ["shell"]


def fill(shell: Shell) -> str:
    with open_store(str(shell.folder / "store.sqlite"), create=True) as store:
        launches = list(line([1.0] * 8 + [1.05] * 4, codes=[1] * 8 + [2] * 4))
        keep(store, launches)
    return launches[0].id


def test_history_names_the_launch_and_the_axis(shell: Shell) -> None:
    said = shell("history", fill(shell)[:12], "--axis", "code.imported_digest", "--svg", "line.svg")
    assert said.code == 0, said.err
    assert "an incident" in said.out
    assert "day 8" in said.out
    assert "code" in said.out
    assert (shell.folder / "line.svg").read_text().startswith("<svg")
    data = shell("history", "--lane", "cpu-torch", "--shape", "chips=1", "--json").json
    assert [item["moved"] for item in data["changes"]] == [["code"]]


def test_watch_exits_1_once_and_incidents_are_closed_with_a_reason(shell: Shell) -> None:
    fill(shell)
    assert shell("watch", "--owner", "oncall").code == 1
    assert shell("watch").code == 0
    (incident,) = shell("incident", "list", "--json").json
    assert (incident["owner"], incident["closed"]) == ("oncall", None)
    shell("report", "weekly")
    assert f"| {incident['id']} |" in (shell.folder / "report" / "report.md").read_text()
    assert "% since day 8; changed: code." in shell("report", "weekly", "--first-screen", "text").out
    assert shell("incident", "close", incident["id"][:5], "--reason", "known").code == 0
    assert shell("incident", "close", incident["id"][:5], "--reason", "known").code == 2
    shell("report", "weekly")
    assert incident["id"] not in (shell.folder / "report" / "report.md").read_text()
    assert shell("incident", "list").out.strip() == "no incident"
    assert "known" in shell("incident", "list", "--all").out


def test_wrong_calls_say_what_to_do(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    name = fill(shell)
    assert "name a receipt, or a lane" in shell("history").err
    assert "not part of a shape" in shell("history", "--lane", "cpu-torch", "--shape", "color=red").err
    monkeypatch.setitem(sys.modules, "ruptures", None)
    said = shell("history", name)
    assert said.code == 2
    assert "pip install 'frontier-receipts[history]'" in said.err


def test_a_gate_writes_junit_and_an_undecided_one_does_not_pass(shell: Shell) -> None:
    fill(shell)
    shell("pin", "@golden", "day 0")
    b = ["day 8", "day 9", "day 10"]
    said = shell("compare", "day 0", *b, "--require", "not-slower=1%", "--junit", "gate.xml", "--no-replicates")
    assert said.code in (1, 3), said.err
    suite = ElementTree.parse(shell.folder / "gate.xml").getroot()[0]
    assert int(suite.get("failures", "0")) + int(suite.get("errors", "0")) == 1
    assert shell("compare", "day 0", "day 1", "--junit", "x.xml").code == 2
