"""One rank's part of a launch, from its file, or from the journal of a rank that could not write one."""

from __future__ import annotations

import json

from receipts.emit import journal, parts, recover, replay

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from receipts.emit.record import RunRecord

MAX_BYTES, MAX_OBJECTS = 16 << 20, 250_000  # of a receipt, which a part is of
MAX_PARTS = 100_000


class RankPart:
    """One rank's part, with the file that it came from."""

    __slots__ = ("device", "host", "journal", "launch", "local_rank", "rank", "receipt", "source", "sources", "world")

    def __init__(self, tree: Mapping[str, Any], source: str) -> None:
        self.source = source
        self.launch: str = tree["launch"]
        self.rank: int = tree["rank"]
        self.world: int = tree["world"]
        self.local_rank: int = tree["local_rank"]
        self.host: str = tree["host"]
        self.device: int | None = tree.get("device")
        self.journal: str = tree.get("journal") or ""
        self.sources: dict[str, str] = tree.get("sources") or {}
        self.receipt: dict[str, Any] = tree["receipt"]

    @property
    def run(self) -> dict[str, Any]:
        """Section ``run`` of the part."""
        section: dict[str, Any] = self.receipt["run"]
        return section

    def __repr__(self) -> str:
        return f"RankPart(rank={self.rank}, world={self.world}, source={self.source!r})"


class UnmergeableParts(Exception):
    """Parts that make no launch; ``lines`` say of each which it is and why."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))


def load(path: str, ended: Callable[[RunRecord], None] | None = None) -> RankPart:
    """A part from its file, or from the journal of a rank that could not write one. Raises Refused, OSError.

    ``ended`` is called with a journal's record, so that a caller may know better how it ended.
    """
    with open(path, "rb") as stream:
        start = stream.read(2)
    if start == journal.MARK:
        try:
            record = recover.recover(path)
        except replay.NotAJournal as error:
            raise UnmergeableParts([f"{path}: {error}"]) from None
        if recover.running(record):
            raise UnmergeableParts(
                [f"{path}: its process {record.head['process']} is still running; merge when it has ended"]
            )
        if ended is not None:
            ended(record)
        return RankPart(parts.part(record), path)
    return RankPart(_tree(path), path)


def _tree(path: str) -> dict[str, Any]:
    with open(path, "rb") as stream:
        raw = stream.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES or raw.count(b"[") + raw.count(b"{") > MAX_OBJECTS:
        raise UnmergeableParts(
            [f"{path}: it is larger than {MAX_BYTES >> 20} MiB or has more than {MAX_OBJECTS} objects"]
        )
    try:
        tree = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnmergeableParts([f"{path}: this is not JSON: {error}; was it written whole?"]) from None
    if not isinstance(tree, dict):
        raise UnmergeableParts([f"{path}: this is no part"])
    if "receipts_part" not in tree:
        what = "a whole receipt, of one process alone" if "schema_version" in tree else "no part of a launch"
        raise UnmergeableParts([f"{path}: this is {what}; name the files that end in .part.json or .journal"])
    if tree["receipts_part"] != parts.PART_VERSION:
        raise UnmergeableParts([f"{path}: it is a part of version {tree['receipts_part']}; upgrade frontier-receipts"])
    kinds = {"launch": str, "rank": int, "world": int, "local_rank": int, "host": str, "receipt": dict}
    wrong = [name for name, kind in kinds.items() if type(tree.get(name)) is not kind]
    run = tree["receipt"].get("run") if not wrong else None
    texts = ("launch", "lane", "kind", "outcome", "started")
    if wrong or not isinstance(run, dict) or not all(isinstance(run.get(name), str) for name in texts):
        raise UnmergeableParts(
            [f"{path}: it says no {wrong[0] if wrong else 'run'}: it was not written by the recorder"]
        )
    if not 0 <= tree["rank"] < tree["world"] <= MAX_PARTS:
        raise UnmergeableParts([f"{path}: it says rank {tree['rank']} of {tree['world']}"])
    return tree
