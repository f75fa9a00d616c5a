"""Write the store of the present revision, `tests/stores/<revision>.sqlite`: python tests/stores/make.py

Run it once, when a revision is released, and never again for that revision.
"""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from receipts.store import open_store  # noqa: E402 — the path comes first
from receipts.store.tables import HEAD  # noqa: E402
from store_receipts import publish, ready  # noqa: E402


def main() -> int:
    file = HERE / f"{HEAD}.sqlite"
    if file.exists():
        print(f"{file.name} is there already")
        return 1
    with open_store(str(file)) as store:
        kept = store.submit(*ready(run__launch="kept", run__label="kept"))
        store.submit(*ready(run__launch="one", run__label="first"))
        supersedes = {"target": "one", "reason": "a better window"}
        store.submit(*ready(run__launch="one", run__label="second", run__supersedes=supersedes))
        withdrawn = store.submit(*ready(run__launch="withdrawn", run__label="withdrawn"))
        store.retract(withdrawn.id, "the clock was wrong")
        store.purge(store.submit(*ready(run__launch="leak", run__label="leak")).id, "it held a password")
        store.submit(*ready(run__launch="two", run__label="profiled", run__kind="profile", run__witness_for="kept"))
        store.pin("@golden", kept.id)
        publish(store, kept.id)
    # One file, without the log beside it.
    connection = sqlite3.connect(file)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("VACUUM")
    connection.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
