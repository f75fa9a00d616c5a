"""Stores that releases wrote: each opens with this version, is whole, and holds what it held.

`tests/stores/REVISION.sql` is what `sqlite3 STORE .dump` prints of a store that the first release at that revision
wrote: two receipts that compare, a retracted and a purged one, a pin, a decision and a comparison.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory

from receipts.base.environment import bundled_folder

STORES = {file.stem: file for file in sorted((Path(__file__).parents[1] / "stores").glob("*.sql"))}
FIRST = "0002"


def test_every_revision_since_the_first_release_has_a_store() -> None:
    config = Config()
    config.set_main_option("script_location", str(bundled_folder("migrations")))
    every = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    assert STORES.keys() == {revision for revision in every if revision >= FIRST}


@pytest.mark.parametrize("revision", STORES)
def test_a_store_of_a_release_is_whole_and_holds_what_it_held(revision: str, shell: Any) -> None:
    store = shell.folder / "store.sqlite"
    store.unlink()
    with closing(sqlite3.connect(store)) as connection:
        connection.executescript(STORES[revision].read_text(encoding="utf-8"))
    assert [shell(*words).code for words in (("db", "check"), ("audit",))] == [0, 0]
    ids = {row["label"]: row["id"] for row in shell("list", "--json").json}
    assert ids.keys() == {"cpu attention math 1", "cpu attention flash 1"}
    assert shell("compare", "@golden", "cpu attention flash 1", "--json").json["b"] == [ids["cpu attention flash 1"]]
    assert [one["decision"] for one in shell("decide", "cpu attention flash 1", "--json").json] == ["ship"]
    assert "the command line held a token" in shell("show", "30319f79597a").err
