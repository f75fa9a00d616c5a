"""`receipts comment`: one comment on a pull request, which is edited, quiet where nothing is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command_line import Said, Shell, shell
from github_server import GitHub

__all__ = ["shell"]

WHERE = ("--repository", "team/bench", "--pull", "7")


def compared(folder: Path, answer: str = "fails", **values: Any) -> str:
    """A file of what `compare --json` prints, as far as a comment reads it."""
    effect = {"kind": "slower", "ratio": 0.952, "low": 0.95, "high": 0.954}
    sides = {"a": {"value": 10240.0}, "b": {"value": 9752.0}}
    finding = {"code": "C101", "level": "E", "found": "2 axes", "do": "change one", "unjudged": False}
    data = {
        "a": ["a" * 64],
        "b": ["b" * 64, "c" * 64],
        "label_a": "main",
        "label_b": "pr",
        "metric": "tokens_per_second",
        "comparable": "yes",
        "path": "witnessed",
        "effect": "slower",
        "status": "accepted",
        "findings": [finding],
        "difference": {"changed": [{"axis": "code"}], "unknown": []},
        "results": [{"metric": "tokens_per_second", **sides, "effect": effect}],
        "gate": {"require": "not-slower=1%", "answer": answer, "why": "the slowdown is above 1 %"},
        **values,
    }
    path = folder / f"{answer}.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    return str(path)


def test_a_comment_has_the_answer_the_axes_the_interval_the_path_and_the_page(shell: Shell) -> None:
    text = shell("comment", compared(shell.folder), "--print", "--page", "https://r.example.org/").out
    assert "pr against main: slower, −4.80 % tokens_per_second" in text
    assert "**not-slower=1%** does not hold: the slowdown is above 1 %" in text
    assert "| slower | 10,240 | 9,752 | −4.80 % | −5.00 … −4.60 % |" in text
    assert "**Changed**: code" in text
    assert "**Path**: witnessed" in text
    assert f"https://r.example.org/compare?a={'a' * 16}&b={'b' * 16}%2C{'c' * 16}&metric=tokens_per_second" in text
    assert "C101 2 axes: change one" in shell("comment", compared(shell.folder, status="rejected"), "--print").out


def test_one_comment_is_begun_where_something_is_wrong_and_then_edited(shell: Shell, github: GitHub) -> None:
    def comment(answer: str, *words: str) -> Said:
        said = shell("comment", compared(shell.folder, answer), *WHERE, *words, "--json")
        assert said.code == 0, said.err
        return said

    assert comment("holds").json["comment"] is None
    assert github.comments == []
    assert comment("fails").json["comment"] == "created"
    assert comment("fails").json["comment"] == "unchanged"
    assert comment("holds").json["comment"] == "edited"
    (only,) = github.comments
    assert "🟢" in only["body"]
    assert comment("holds", "--always", "--name", "other").json["comment"] == "created"


def test_the_comment_is_found_among_many_and_a_strangers_is_not_edited(shell: Shell, github: GitHub) -> None:
    stranger = {"user": {"type": "User"}, "author_association": "CONTRIBUTOR", "html_url": "", "id": 1}
    github.comments += [
        {**stranger, "body": "<!-- receipts:compare -->\nall is well"},
        *[{**stranger, "body": "x"}] * 149,
    ]
    said = shell("comment", compared(shell.folder), *WHERE)
    assert (said.code, len(github.comments)) == (0, 151), said.err
    shell("comment", compared(shell.folder, "open"), *WHERE)
    assert len(github.comments) == 151
    assert "is undecided" in github.comments[150]["body"]
    assert github.comments[0]["body"].endswith("all is well")


def test_labels_call_nobody_and_are_no_markup(shell: Shell) -> None:
    text = shell("comment", compared(shell.folder, label_b="@team <img src=x> | [x](y)\n# z"), "--print").out
    assert "@team" not in text
    assert "\\<img src=x\\>" in text
    assert "\n# z" not in text


def test_what_cannot_be_written_says_why_and_names_no_token(
    shell: Shell, github: GitHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = compared(shell.folder)
    github.status = 403
    said = shell("comment", file, *WHERE)
    assert (said.code, "403" in said.err, "secret-token" in said.err) == (2, True, False)
    monkeypatch.delenv("GITHUB_EVENT_PATH", raising=False)
    assert "name one: --pull N" in shell("comment", file, "--repository", "team/bench").err
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:9")
    said = shell("comment", file, *WHERE)
    assert (said.code, "GitHub does not answer" in said.err) == (4, True)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"results": 3, "metric": "x"}', '{"results": [], "metric": "x"}'])
def test_another_file_is_refused_with_what_to_do(shell: Shell, text: str) -> None:
    file = shell.folder / "x.json"
    file.write_text(text, encoding="utf-8")
    said = shell("comment", str(file), "--print")
    assert said.code == 2
    assert "receipts compare A B --json > compare.json" in said.err


def test_a_badge_is_svg_of_its_text_and_of_the_status(shell: Shell) -> None:
    shell.store("one", run__label='<"&> 1')
    said = shell("badge", '<"&> 1', "--svg", "badge.svg", "--json")
    status = shell("show", shell.made["one"], "--json").json["verdict"]["status"]
    assert said.json["message"].endswith(f"tokens/s, {status}")
    assert said.code == {"valid": 0, "open": 3, "invalid": 1}[status]
    drawn = ElementTree.parse(shell.folder / "badge.svg").getroot()
    assert drawn.attrib["aria-label"] == f'<"&> 1: {said.json["message"]}'
    shell("retract", shell.made["one"], "--reason", "wrong clock")
    said = shell("badge", shell.made["one"])
    assert (said.code, said.out.strip().rpartition(" ")[2]) == (1, "retracted")
