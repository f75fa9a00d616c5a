"""Parts of ranks, read from their files, to one receipt: rows of every chip, the slowest rank of every step.

A part comes from its file, or from the journal of a rank that could not write one. The same parts give the same bytes,
in whatever order they are named; ranks that are missing, and values that ranks disagree on, are noted.
"""

from __future__ import annotations

import json

from receipts.emit import document, ending, journal, rank_join, recovery
from receipts.emit.contract import contract
from receipts.emit.facts import MAX_FILES, RECORDER

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from receipts.emit.run_record import RunRecord


MAX_PART_BYTES, MAX_PART_OBJECTS = 16 << 20, 250_000  # of a receipt, which a part is of
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


def load_part(path: str, ended: Callable[[RunRecord], None] | None = None) -> RankPart:
    """A part from its file, or from the journal of a rank that could not write one. Raises UnmergeableParts, OSError.

    ``ended`` is called with a journal's record, so that a caller may know better how it ended.
    """
    with open(path, "rb") as stream:
        start = stream.read(2)
    if start == journal.MARK:
        try:
            record = recovery.recover(path)
        except recovery.NotAJournal as error:
            raise UnmergeableParts([f"{path}: {error}"]) from None
        if recovery.running(record):
            raise UnmergeableParts(
                [f"{path}: its process {record.head['process']} is still running; merge when it has ended"]
            )
        if ended is not None:
            ended(record)
        return RankPart(document.rank_part(record), path)
    return RankPart(_part_tree(path), path)


def _part_tree(path: str) -> dict[str, Any]:
    with open(path, "rb") as stream:
        raw = stream.read(MAX_PART_BYTES + 1)
    if len(raw) > MAX_PART_BYTES or raw.count(b"[") + raw.count(b"{") > MAX_PART_OBJECTS:
        raise UnmergeableParts(
            [f"{path}: it is larger than {MAX_PART_BYTES >> 20} MiB or has more than {MAX_PART_OBJECTS} objects"]
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
    if tree["receipts_part"] != document.PART_VERSION:
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


class Merged:
    """The receipt of a launch, the ranks that are missing from it, and what its ranks disagree on."""

    def __init__(self, tree: dict[str, Any], missing: tuple[int, ...], disagreements: tuple[str, ...]) -> None:
        self.tree = tree
        self.missing = missing
        self.disagreements = disagreements

    def text(self) -> str:
        """The document's text."""
        return "".join(document.sealed(self.tree))

    def __repr__(self) -> str:
        return f"Merged({len(self.missing)} missing, {len(self.disagreements)} disagreements)"


def merge(given: Iterable[RankPart]) -> Merged:
    """One receipt of all parts. Raises UnmergeableParts where they are not of one launch."""
    ranked = _one_launch(sorted(given, key=lambda part: (part.rank, part.source)))
    world = ranked[0].world
    missing = tuple(sorted(set(range(world)) - {part.rank for part in ranked}))
    join = rank_join.RankJoin({part.rank: part.receipt for part in ranked})
    tree: dict[str, Any] = {"schema_version": contract().schema_version}
    values = join.leaves()
    values |= _ending(ranked)
    rows = _chips(ranked)
    hosts = len({part.host for part in ranked})
    if not missing:
        values.setdefault("hardware.hosts", hosts)
        if rows:
            values.setdefault("hardware.chips", len({row["chip"] for row in rows}))
    durations, skew = join.durations()
    if skew is not None:
        values["measurement.health.rank_skew"] = skew
    for path in contract().leaves:
        if path in values:
            document.put_leaf(tree, path.split("."), values[path])
    for name, entries in join.maps().items():
        document.put_leaf(tree, name.split("."), entries)
    if named := join.rows("inputs.files"):
        document.put_leaf(tree, ["inputs", "files"], named[:MAX_FILES])
    if durations:
        measured = tree.setdefault("measurement", {})
        measured["step_flags"] = join.flags()
        if counters := join.counters():
            measured["path_counters"] = counters
        measured["step_durations_seconds"] = durations
        if walls := join.walls():
            measured["step_wall_seconds"] = walls
    if rows:
        tree.setdefault("memory", {})["chips"] = rows
    if evidence := join.rows("evidence"):
        tree["evidence"] = evidence
    notes = join.notes()
    own = notes.setdefault(RECORDER, [])
    if missing:
        own.append(f"parts of {rank_join.ranks(missing)} of {world} are missing")
    own += join.disagreements
    outcomes: dict[str, list[int]] = {}
    for part in ranked:
        outcomes.setdefault(part.run["outcome"], []).append(part.rank)
    if len(outcomes) > 1:
        own += [f"{rank_join.ranks(members)}: {outcome}" for outcome, members in sorted(outcomes.items())]
    own.append(f"merged from the parts of {len(ranked)} ranks on {hosts} hosts")
    tree["notes"] = {topic: lines[:50] for topic, lines in sorted(notes.items()) if lines}
    receipt = {name: tree[name] for name in document.SECTIONS if tree.get(name) not in (None, {}, [])}
    # For a leaf that several ranks state, keep the first one's source.
    sources = {path: source for part in reversed(ranked) for path, source in part.sources.items()}
    journals = [part.journal for part in ranked if part.journal]
    return Merged(document.counted(receipt, "merge", journals, sources), missing, tuple(join.disagreements))


def _one_launch(ranked: list[RankPart]) -> list[RankPart]:
    if not ranked:
        raise UnmergeableParts(["there are no parts to merge"])
    lines: list[str] = []
    lines += _odd("launch", {part: part.launch for part in ranked})
    lines += _odd("world", {part: part.world for part in ranked})
    for what in ("lane", "kind"):
        lines += _odd(what, {part: part.run[what] for part in ranked})
    kept: dict[int, RankPart] = {}
    for part in ranked:
        other = kept.setdefault(part.rank, part)
        if other is part:
            continue
        # A journal that was kept beside the part of its rank tells the same.
        if {_journal(other), _journal(part)} == {True, False} and other.launch == part.launch:
            kept[part.rank] = part if _journal(other) else other
        else:
            lines.append(f"rank {part.rank} is there twice: {other.source} and {part.source}; name one of them")
    if lines:
        raise UnmergeableParts(lines)
    return [kept[rank] for rank in sorted(kept)]


def _journal(part: RankPart) -> bool:
    return part.source.endswith(".journal")


def _odd(what: str, of: Mapping[RankPart, Any]) -> list[str]:
    """A line for each part that is not of what most are of."""
    counts: dict[Any, int] = {}
    for value in of.values():
        counts[value] = counts.get(value, 0) + 1
    if len(counts) == 1:
        return []
    most = max(counts, key=lambda value: (counts[value], str(value)))
    hint = "; set RECEIPTS_LAUNCH to one UUID for every rank" if what == "launch" else ""
    return [
        f"rank {part.rank} ({part.source}) is of {what} {value}, and {counts[most]} of {most}{hint}"
        for part, value in of.items()
        if value != most
    ]


# Which rank's failure ended the launch: memory before arithmetic before any other; those that were merely told to stop
# come last, for a launcher stops every rank when one of them fails. A rank that ended without a word comes after one
# that was found stuck: it may have been the one that the others waited for, and it was killed. One that lost another,
# by its own words, comes after that one.
_FIRST = ("oom", "nan", "crash", "hang", "silent", "bereft", "preempted")


def _ending(ranked: list[RankPart]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    values["run.started"] = min((part.run["started"] for part in ranked), key=_time)
    finished = [part.run["finished"] for part in ranked if part.run.get("finished")]
    if finished:
        values["run.finished"] = max(finished, key=_time)
    values["run.host"] = ranked[0].host or None
    values["run.processes"] = [process for part in ranked for process in part.run.get("processes", ())] or None
    failed = [part for part in ranked if part.run["outcome"] != "ok"]
    kinds = {part: _kind(part) for part in failed}
    cause = min(
        failed,
        key=lambda part: (
            _FIRST.index(kinds[part]) if kinds[part] in _FIRST else len(_FIRST),
            part.receipt.get("failure", {}).get("class") is None,
            _time(part.run.get("finished") or part.run["started"]),
            part.rank,
        ),
        default=None,
    )
    values["run.outcome"] = cause.run["outcome"] if cause is not None else "ok"
    values["run.exit_code"] = (cause or ranked[0]).run.get("exit_code")
    stepless = all(
        part.run["kind"] == "training" and "step_durations_seconds" not in part.receipt.get("measurement", {})
        for part in ranked
    )
    if cause is None and stepless:
        values |= {"run.outcome": "crash", "failure.phase": "startup", "failure.message": ending.NO_STEP_MESSAGE}
    if cause is not None and "failure" in cause.receipt:
        failure = dict(cause.receipt["failure"])
        failure.setdefault("rank", cause.rank)
        if cause.run["outcome"] == "hang":
            failure |= _awaited(ranked)
        elif kinds[cause] == "silent" and (left := next((part for part in failed if kinds[part] == "bereft"), None)):
            # Who lost one that ended without a word says so.
            message = f"{failure.get('message', '')}; of rank {left.rank}: {left.receipt['failure']['message']}"
            failure["message"] = message[: ending.MAX_MESSAGE]
        if cause.device is not None and "chip" not in failure:
            failure["chip"] = _chip_of(ranked, cause, cause.device)
        values |= {f"failure.{name}": value for name, value in failure.items()}
    return {path: value for path, value in values.items() if value is not None}


def _awaited(ranked: list[RankPart]) -> dict[str, Any]:
    """The rank that the others of a launch waited for, where it alone had ended fewer steps; else nothing."""
    ended = {part.rank: len(part.receipt.get("measurement", {}).get("step_durations_seconds", ())) for part in ranked}
    least = min(ended.values())
    behind = [rank for rank, steps in ended.items() if steps == least]
    if len(behind) != 1 or len(ended) == 1:
        return {}
    stuck = sorted(part.rank for part in ranked if part.run["outcome"] == "hang" and part.rank != behind[0])
    if not stuck:
        return {}
    waiting = f"{rank_join.ranks(stuck)} waited in step {max(ended.values())}"
    words = f"{waiting}, and rank {behind[0]} had ended {least} steps"
    message = next(part.receipt["failure"].get("message", "") for part in ranked if part.rank == stuck[0])
    return {"rank": behind[0], "step": least, "message": f"{words}; of rank {stuck[0]}: {message}"}


def _kind(part: RankPart) -> str:
    """A part's outcome; of a crash without a class `silent`, of one for want of another rank `bereft`."""
    outcome: str = part.run["outcome"]
    failure = part.receipt.get("failure", {})
    if outcome != "crash":
        return outcome
    # A silent end is the mark of a kill, and of no cause.
    if failure.get("class") is None:
        return "silent"
    return "bereft" if ending.reports_lost_peer(str(failure.get("message", ""))) else "crash"


def _time(text: str) -> float:
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise UnmergeableParts([f"{text!r:.60} is not a time: a part was changed by hand"]) from None


def _chips(ranked: list[RankPart]) -> list[dict[str, Any]]:
    """Every rank's rows, each with its chip over all hosts; for one chip and phase the larger peak is kept."""
    largest: dict[tuple[int, str], dict[str, Any]] = {}
    order = {phase: at for at, phase in enumerate(("post_init", "post_compile", "post_step0", "steady"))}
    for part in ranked:
        for row in part.receipt.get("memory", {}).get("chips", ()):
            chip = row["chip"] if "chip" in row else _chip_of(ranked, part, row["device"])
            rest = {name: value for name, value in row.items() if name not in ("chip", "device", "phase")}
            key = chip, row["phase"]
            if key not in largest or rest.get("peak_bytes", 0) > largest[key].get("peak_bytes", 0):
                largest[key] = rest
    ordered = sorted(largest, key=lambda key: (key[0], order.get(key[1], 9)))
    return [{"chip": chip, "phase": phase, **largest[chip, phase]} for chip, phase in ordered]


def _chip_of(ranked: list[RankPart], part: RankPart, device: int) -> int:
    """A device of one process as a chip of the launch.

    Where every process has one device, chips are ranks, however each process numbers its own. Else the devices of a
    host follow those of the hosts whose ranks come before.
    """
    devices = {
        other.rank: {row["device"] for row in other.receipt.get("memory", {}).get("chips", ()) if "device" in row}
        for other in ranked
    }
    if all(len(own) <= 1 for own in devices.values()):
        return part.rank
    before, hosts = 0, list(dict.fromkeys(other.host for other in ranked))
    for host in hosts[: hosts.index(part.host)]:
        before += len({item for other in ranked if other.host == host for item in devices[other.rank]})
    return before + device
