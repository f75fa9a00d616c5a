"""An export of an earlier version is filled in when it is imported."""

from __future__ import annotations

import json

import pytest

from command_line import Shell

pytestmark = pytest.mark.slow


def test_an_export_without_what_verdicts_say_of_samples_fills_it_in_on_import(shell: Shell) -> None:
    shell.store("one")
    assert shell("export", "all.jsonl").code == 0
    rows = [json.loads(line) for line in (shell.folder / "all.jsonl").read_text().splitlines()]
    for row in rows:
        for name in ("tainted", "undecided", "rate_of"):
            row.pop(name, None)
    (shell.folder / "all.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert shell("--store", "new.sqlite", "import", "store", "all.jsonl").code == 0
    (old,), (new,) = shell("list", "--json").json, shell("--store", "new.sqlite", "list", "--json").json
    assert [new[name] for name in ("tainted", "undecided", "rate_of")] == ["none", "none", old["rate_of"]]
