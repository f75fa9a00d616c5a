"""The statements of several ranks, joined: equal values stay, costs take the worst rank, the rest is noted."""

from __future__ import annotations

from array import array
from statistics import median

from receipts.emit.contract import INPUT_MAPS, OPEN_MAPS, contract

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

MAX_STEPS = 100_000
_MAPS = (*OPEN_MAPS, *INPUT_MAPS, "schema_version")
# A launcher gives each rank its own.
_OWN_FLAGS = ("CUDA_VISIBLE_DEVICES", "TPU_VISIBLE_CHIPS", "TPU_VISIBLE_DEVICES", "TPU_WORKER_ID", "TPU_PROCESS_PORT")
# A launcher hands each rank its own number, and where the others are.
_OWN_INPUTS = ("local_rank", "node_rank", "rank", "process_id", "host_idx", "machine_rank", "process_index", "task_id")


def most_each(values: Sequence[Mapping[str, int]]) -> dict[str, int]:
    """By name the largest count."""
    names = sorted({name for value in values for name in value})
    return {name: max(value.get(name, 0) for value in values) for name in names}


def captured(values: Sequence[str]) -> str:
    """What was not captured on some rank; the whole was where it was on each."""
    parts = dict.fromkeys(part for value in values for part in value.split("; "))
    if not all(value.startswith("whole") for value in values):
        parts.pop("whole", None)
    return "; ".join(parts)


# How the values of several ranks become one. Each leaf declares which (`ranks` in its section of `receipts.receipt`);
# the others must agree, and of those with ``code`` another function makes one. Losses are the first rank's that states
# one: data-parallel ranks have their own.
JOINS: Mapping[str, Callable[[Sequence[Any]], Any]] = {
    "all": all,
    "capture": captured,
    "first": lambda values: values[0],
    "joined": lambda values: "+".join(dict.fromkeys(name for value in values for name in str(value).split("+"))),
    "max": max,
    "mean": lambda values: sum(values) / len(values),
    "median": median,
    "min": min,
    "most_each": most_each,
    "union": lambda values: sorted({item for value in values for item in value}),
}


class RankJoin:
    """Trees of receipts by rank. ``disagreements`` grows as things are asked for."""

    def __init__(self, trees: Mapping[int, dict[str, Any]]) -> None:
        self.trees = dict(sorted(trees.items()))
        self.disagreements: list[str] = []

    def __repr__(self) -> str:
        return f"Join({len(self.trees)} ranks, {len(self.disagreements)} disagreements)"

    def leaves(self) -> dict[str, Any]:
        """Every leaf outside open maps and lists of rows that the ranks agree on, or that can be joined."""
        stated: dict[str, dict[int, Any]] = {}
        for rank, tree in self.trees.items():
            for path, value in _leaves(tree):
                stated.setdefault(path, {})[rank] = value
        values: dict[str, Any] = {}
        chosen: dict[str, int] = {}  # by group the rank that its first leaf is of
        for path in filter(stated.__contains__, contract().leaves):
            by_rank, group = stated[path], contract().groups.get(path, path)
            if group in chosen:
                if chosen[group] in by_rank:
                    values[path] = by_rank[chosen[group]]
                continue
            own, rule = list(by_rank.values()), contract().ranks.get(path)
            # The kernels of a rank in another order are no other kernels.
            compared = [set(str(value).split("+")) for value in own] if rule == "joined" else own
            if rule != "union" and all(value == compared[0] for value in compared):
                values[path] = own[0]
            else:
                if rule is not None:
                    values[path] = JOINS[rule](own)
                if rule in (None, "joined"):
                    fate = "left out" if rule is None else "stated with each"
                    self.disagreements.append(f"{path}: ranks disagree and it is {fate}: {values_by_rank(by_rank)}")
            chosen[group] = next((rank for rank, value in by_rank.items() if value == values.get(path)), -1)
        clocks = stated.get("measurement.health.clock_mhz", {})
        if len(clocks) > 1 and max(clocks.values()) > 0:
            spread = (max(clocks.values()) - min(clocks.values())) / max(clocks.values())
            values["measurement.health.clock_spread"] = max(spread, values.get("measurement.health.clock_spread", 0.0))
        return values

    def maps(self) -> dict[str, dict[str, Any]]:
        """Open maps. An entry on which ranks disagree says so in its own value, so that it is never taken for unset."""
        merged: dict[str, dict[str, Any]] = {}
        for name in (*OPEN_MAPS[:-1], *INPUT_MAPS):
            trees = {rank: entries for rank, tree in self.trees.items() if (entries := _at(tree, name)) is not None}
            if not trees:
                continue
            complete = all(tree.get("complete") is True for tree in trees.values())
            keys = sorted({key for tree in trees.values() for key in tree if key != "complete"})
            entries = {key: self._entry(name, key, trees, complete) for key in keys}
            merged[name] = ({"complete": True} if complete else {}) | entries
        return merged

    def _entry(self, name: str, key: str, trees: Mapping[int, Mapping[str, Any]], complete: bool) -> Any:
        absent = "unset" if complete else None
        by_rank = {rank: tree.get(key, absent) for rank, tree in trees.items()}
        stated = {rank: value for rank, value in by_rank.items() if value is not None}
        values = list(stated.values())
        if all(value == values[0] for value in values):
            return values[0]
        plain = {
            rank: value.get("value", value.get("version")) if isinstance(value, dict) else value
            for rank, value in stated.items()
        }
        own = key in _OWN_FLAGS if name == "flags" else name in INPUT_MAPS and key in _OWN_INPUTS
        if not own:
            self.disagreements.append(f"{name}.{key}: ranks disagree: {values_by_rank(plain)}")
        text = values_by_rank(plain)[:490]
        late = [value for value in values if isinstance(value, dict) and value.get("before_runtime") is False]
        return {"value": text, "before_runtime": False} if late else text

    def durations(self) -> tuple[list[float], float | None]:
        """The slowest rank's duration of every step, and the median over steady steps of how far the fastest is off."""
        series = {rank: _steps(tree) for rank, tree in self.trees.items()}
        counted = {rank: len(steps) for rank, steps in series.items()}
        if len(set(counted.values())) > 1:
            ended = all(tree["run"]["outcome"] == "ok" for tree in self.trees.values())
            if ended:
                line = f"ranks ended after different numbers of steps: {values_by_rank(counted)}"
                self.disagreements.append(line)
        longest = max(counted.values(), default=0)
        slowest: list[float] = []
        skews: list[float] = []
        excluded = {step for steps in self.flags().values() for step in steps}
        windows = [tree.get("measurement", {}).get("window", {}) for tree in self.trees.values()]
        start = max((window.get("start", 0) for window in windows), default=0)
        stop = min((window.get("stop", longest) for window in windows), default=longest)
        for step in range(longest):
            at = [steps[step] for steps in series.values() if step < len(steps)]
            slowest.append(max(at))
            if len(at) == len(series) > 1 and start <= step < stop and step not in excluded and max(at) > 0:
                skews.append((max(at) - min(at)) / max(at))
        return slowest, (median(skews) if skews else None)

    def walls(self) -> list[float]:
        """Wall time of every step, the mean over ranks: all live through the same wall, and its sum is the wall's."""
        series = [_steps(tree, "step_wall_seconds") for tree in self.trees.values()]
        if any(len(walls) != len(_steps(tree)) for walls, tree in zip(series, self.trees.values(), strict=True)):
            return []
        longest = max(map(len, series), default=0)
        at = ([walls[step] for walls in series if step < len(walls)] for step in range(longest))
        return [float(f"{sum(own) / len(own):.6g}") for own in at]

    def flags(self) -> dict[str, list[int]]:
        """Steps that any rank flagged."""
        stated: dict[str, set[int]] = {}
        for tree in self.trees.values():
            for name, steps in tree.get("measurement", {}).get("step_flags", {}).items():
                stated.setdefault(name, set()).update(steps)
        return {name: sorted(steps) for name, steps in sorted(stated.items())}

    def counters(self) -> list[dict[str, Any]]:
        """Of each path counter the rank that is farthest off what it must stand at."""
        totals: dict[str, dict[str, Any]] = {}
        for tree in self.trees.values():
            for row in tree.get("measurement", {}).get("path_counters", ()):
                other = totals.get(row["name"])
                if other is None or _off(row) > _off(other):
                    totals[row["name"]] = row
        return [totals[name] for name in sorted(totals)]

    def rows(self, name: str) -> list[Any]:
        """Rows of a list, each once, in the order of ranks."""
        distinct: list[Any] = []
        for tree in self.trees.values():
            distinct += [row for row in _at(tree, name) or () if row not in distinct]
        return distinct[:2000]

    def notes(self) -> dict[str, list[str]]:
        """Notes by topic; what only some ranks say names those ranks."""
        by_topic: dict[str, dict[str, list[int]]] = {}
        for rank, tree in self.trees.items():
            for topic, lines in tree.get("notes", {}).items():
                for line in [lines] if isinstance(lines, str) else lines:
                    by_topic.setdefault(topic, {}).setdefault(str(line), []).append(rank)
        every = len(self.trees)
        return {
            topic: [
                line if len(members) == every else f"{ranks(members)}: {line}"[:10_000]
                for line, members in lines.items()
            ]
            for topic, lines in by_topic.items()
        }


def ranks(numbers: Iterable[int]) -> str:
    """Ranks in words: `rank 3`, `ranks 0-5, 7`."""
    ordered = sorted(numbers)
    spans: list[list[int]] = []
    for number in ordered:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    words = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in spans)
    return f"rank {words}" if len(ordered) == 1 else f"ranks {words}"


def values_by_rank(by_rank: Mapping[int, Any]) -> str:
    """Values with the ranks that state them: `2.26 (ranks 0-6); 2.27 (rank 7)`."""
    groups: dict[str, list[int]] = {}
    for rank, value in by_rank.items():
        groups.setdefault(f"{value!s:.80}", []).append(rank)
    shown = [f"{value} ({ranks(members)})" for value, members in list(groups.items())[:8]]
    rest = len(groups) - len(shown)
    return "; ".join(shown) + (f"; and {rest} more values" if rest else "")


def _leaves(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        path = f"{before}{name}"
        if (
            path in _MAPS
            or contract().ranks.get(path) == "code"
            or (isinstance(value, list) and value and isinstance(value[0], dict))
        ):
            continue
        if isinstance(value, dict) and path not in contract().leaves:
            yield from _leaves(value, f"{path}.")
        elif value is not None:
            yield path, value


def _at(tree: Mapping[str, Any], path: str) -> Any:
    """The map or list at a path; None where it is not stated."""
    head, _, rest = path.partition(".")
    node = tree.get(head)
    return node.get(rest) if rest and node is not None else node


def _steps(tree: Mapping[str, Any], name: str = "step_durations_seconds") -> Sequence[float]:
    return array("d", tree.get("measurement", {}).get(name, ()))[:MAX_STEPS]


def _off(row: Mapping[str, Any]) -> int:
    return abs(row["count"] - row["expected"]) if row.get("expected") is not None else 0
