"""``receipts submit``."""

from __future__ import annotations

import re
from pathlib import Path

from command_line import Shell


def test_a_receipt_is_stored_under_the_digest_of_its_file(shell: Shell) -> None:
    path = shell.write("one")
    said = shell("submit", path)
    assert said.code == 0
    assert said.out == f"{shell.made['one'][:12]}  valid  one\n"


def test_the_same_bytes_again_are_harmless_and_say_so(shell: Shell) -> None:
    path = shell.write("one")
    shell("submit", path)
    again = shell("submit", path)
    assert again.code == 0
    assert "already stored" in again.out
    assert len(shell("list", "--json").json) == 1


def test_one_bad_file_of_several_leaves_the_others_stored(shell: Shell) -> None:
    (shell.folder / "bad.json").write_text('{"schema_version": "1.0"}', encoding="utf-8")
    said = shell("submit", shell.write("one"), "bad.json", shell.write("two"))
    assert said.code == 2
    assert "bad.json: run" in said.err
    assert [row["label"] for row in shell("list", "--json").json] == ["two", "one"]


def test_an_invalid_receipt_is_stored_and_decides_the_exit_code_only_on_demand(shell: Shell) -> None:
    path = shell.write("torn", batch__global_batch=17)
    assert shell("submit", path).code == 0
    assert shell("submit", path, "--require", "valid").code == 1


def test_json_tells_what_became_of_every_document(shell: Shell) -> None:
    (shell.folder / "bad.json").write_text("[]", encoding="utf-8")
    said = shell("submit", shell.write("one"), "bad.json", "--json")
    stored, refused = said.json
    assert stored["id"] == shell.made["one"]
    assert (stored["new"], stored["status"], stored["stands"]) == (True, "valid", True)
    assert refused["source"] == "bad.json"
    assert "error" in refused


def test_the_same_launch_with_other_bytes_names_the_way_to_supersede(shell: Shell) -> None:
    shell.store("one")
    said = shell("submit", shell.write("again", run__launch="launch-one"))
    assert said.code == 2
    assert "supersedes" in said.err


def test_a_successor_says_what_it_replaces(shell: Shell) -> None:
    first = shell.store("one")
    path = shell.write("two", run__launch="launch-one", run__supersedes={"target": first, "reason": "wrong label"})
    said = shell("submit", path)
    assert said.code == 0
    assert f"supersedes {first[:12]}" in said.out


def test_quiet_prints_errors_alone(shell: Shell) -> None:
    said = shell("submit", "-q", shell.write("one"), "none.json")
    assert said.out == ""
    assert "none.json" in said.err


def test_piped_submits_show_no_progress(shell: Shell) -> None:
    paths = [shell.write(f"n{number}") for number in range(60)]
    assert shell("submit", "-q", *paths).err == ""


def test_several_end_with_their_sum_and_why_one_is_invalid(shell: Shell) -> None:
    paths = [shell.write("good"), shell.write("odd", batch__global_batch=17), shell.write("bare", model__depth=None)]
    lines = shell("submit", *paths).lines
    line = " ".join(" ".join(lines[3:]).split())
    assert line.startswith("3 stored: 1 valid, 1 invalid (R")
    assert line.endswith(", 1 open (missing depth of the model (R109)); next: receipts list --next")
    assert shell("submit", *paths).lines[-1] == "3 were stored before"


def test_a_folder_says_what_it_reads_and_is_withdrawn_as_one(shell: Shell) -> None:
    shell.store("before")
    (shell.folder / "runs").mkdir()
    for name in ("one", "two"):
        Path(shell.write(name)).rename(shell.folder / "runs" / f"{name}.json")
    stored = shell("submit", "runs")
    assert "reading 2 .json and .jsonl files of runs" in stored.err
    command = re.search(r"receipts retract '(.*)' --reason", stored.err)
    assert command is not None
    withdrawn = shell("retract", command[1], "--reason", "the wrong folder", "--yes")
    assert withdrawn.out == "retracted 2 receipts: the wrong folder\n"
    assert [row["label"] for row in shell("list", "--json").json] == ["before"]
    assert shell("retract", command[1], "--withdraw", "--reason", "the right one", "--yes").code == 0
    assert len(shell("list", "--json").json) == 3


def test_a_folder_of_other_documents_is_left_after_many_and_its_errors_are_counted_by_kind(shell: Shell) -> None:
    (shell.folder / "other").mkdir()
    for number in range(250):
        (shell.folder / "other" / f"{number}.json").write_text('{"a": 1}', encoding="utf-8")
    stored = shell("submit", "other")
    assert stored.code == 2
    assert len(stored.err.splitlines()) < 60
    assert "100 × schema_version: it is missing" in stored.err
    assert "stopped after 100: most of them are no receipts" in stored.err
