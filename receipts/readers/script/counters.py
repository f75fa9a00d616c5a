"""Counters that a training script prints of its own path, and of its router of experts.

What routers of experts really did: tokens by expert, tokens dropped. Losses that balance them are no observation. No
framework has one form for this. Read are lines that name the observation and give it as a list of counts, a share or
two counts: ``tokens_per_expert: [512, 498, …]``, ``dropped tokens: 12 / 4096``, ``token drop rate: 0.29%``.

Counters that a training script keeps of its own path, printed as JSON. Two forms, nothing else: an object of
``name``, ``count`` and ``expected`` (and ``steps``, ``layers``, ``rank``) on a line of its own or behind a log's
head, and ``{"path_counters": [ … ]}`` with such objects. A later count of a name and rank stands.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

import orjson

from receipts.ingest import vocabulary
from receipts.ingest.literals import counted, number
from receipts.ingest.prefix import is_source
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_VALUE: Final = r"[-+]?\d[\d,]*(?:\.\d*)?(?:[eE][-+]?\d{1,3})?"
_LOADS = re.compile(
    r"(?:num_)?tokens[_ ]per[_ ]expert(?:\[[^\]]{0,40}\]|/[\w.]{1,60}|\([^)]{0,60}\))?[\"']?\s*[:=]\s*"
    r"(?:tensor\()?\[(?P<list>[\d.,\s]{1,60000})\]",
    re.IGNORECASE,
)
_RATIO = re.compile(
    rf"\b(?:max_over_mean|load_ratio|expert_load_(?:max_over_mean|ratio))[\"']?\s*[:=]\s*(?P<value>{_VALUE})",
    re.IGNORECASE,
)
_KIND: Final = r"(?:[_ ](?:rate|ratio|fraction|share|frac))"
_DROPPED = re.compile(
    rf"(?:tokens?[_ ]drop(?:ped)?{_KIND}?|drop(?:ped)?[_ ]tokens?{_KIND}?|drop{_KIND})[\"']?\s*[:=]\s*"
    rf"(?P<value>{_VALUE})\s*(?P<unit>%)?(?:\s*(?:/|of|out of)\s*(?P<total>{_VALUE}))?",
    re.IGNORECASE,
)
_SHARE_WORD = re.compile(r"rate|ratio|fraction|share|frac", re.IGNORECASE)

_RATIO_LEAF: Final = "measurement.routing.load_ratio"
_SHARE_LEAF: Final = "measurement.routing.dropped_share"


class MoeRoutingReader(LineReader):
    """The worst load of an expert over the mean, and the largest share of dropped tokens, of all lines."""

    source: ClassVar[str] = "moe-routing"
    anchors = vocabulary.anchors("moe_routing")

    def __init__(self) -> None:
        super().__init__()
        # The largest figure of each leaf, and its line.
        self._largest: dict[str, tuple[float, int]] = {}

    def line(self, text: str, line: int) -> bool:
        for match in _LOADS.finditer(text):
            loads = [number(word) for word in re.split(r"[,\s]+", match["list"].strip()) if word]
            known = [load for load in loads if load is not None and 0.0 <= load < 1e15]
            whole = len(known) == len(loads) and len(known) > 1 and sum(known) > 0.0
            if whole and not is_source(text, match.start()):
                self._keep(_RATIO_LEAF, max(known) * len(known) / sum(known), line)
        for match in _RATIO.finditer(text):
            value = _number(match["value"])
            self._keep(_RATIO_LEAF, value if value is not None and value >= 1.0 else None, line)
        for match in _DROPPED.finditer(text):
            self._keep(_SHARE_LEAF, _share(match), line)
        return False

    def finish(self) -> Reading | None:
        for leaf, (value, line) in sorted(self._largest.items(), reverse=True):
            text = f"largest load {value:.4g} times the mean"
            text = f"{value:.4%} of tokens dropped at most" if leaf == _SHARE_LEAF else text
            self.reading.state(leaf, value, text, line)
        return super().finish()

    def _keep(self, leaf: str, value: float | None, number: int) -> None:
        if value is not None:
            self._largest[leaf] = max(self._largest.get(leaf, (value, number)), (value, number))
            self.reading.records += 1


def _share(match: re.Match[str]) -> float | None:
    """A share of 0 to 1. A count alone is none: of how many tokens is not said."""
    value, total = _number(match["value"]), _number(match["total"])
    if value is None:
        return None
    if match["unit"]:
        share = value / 100.0
    elif total:
        share = value / total
    elif _SHARE_WORD.search(match[0].partition(match["value"])[0]):
        share = value
    else:
        return 0.0 if value == 0.0 else None
    return share if 0.0 <= share <= 1.0 else None


def _number(text: str | None) -> float | None:
    return None if text is None or len(text) > 40 else number(text.rstrip(",."))


MAX_COUNTERS: Final = 1000
_KEYS: Final = frozenset({"name", "count", "expected", "steps", "layers", "rank"})
_MAX_LINE: Final = 1 << 16


class PathCountersReader(LineReader):
    """Counters by name; what is below its expected count is remarked."""

    source: ClassVar[str] = "path-counters"
    anchors: ClassVar[tuple[bytes, ...]] = (b'"expected"', b'"path_counters"')

    def __init__(self) -> None:
        super().__init__()
        self._counters: dict[tuple[str, int | None], tuple[dict[str, Any], int]] = {}

    def line(self, text: str, number: int) -> bool:
        begin = text.find("{")
        if begin < 0 or len(text) > _MAX_LINE:
            return False
        try:
            parsed = orjson.loads(text[begin:].strip())
        except orjson.JSONDecodeError:
            return False
        listed = parsed.get("path_counters") if isinstance(parsed, dict) else None
        for item in listed if isinstance(listed, list) else [parsed]:
            if not isinstance(item, dict) or not item.keys() <= _KEYS or not {"name", "count"} <= item.keys():
                continue
            name, count, rank = item["name"], item["count"], item.get("rank")
            if not isinstance(name, str) or not 0 < len(name) <= 200 or not counted(count):
                continue
            # A line of its own may be another program's.
            if item is parsed and "expected" not in item:
                continue
            rank = rank if counted(rank) else None
            if (name, rank) in self._counters or len(self._counters) < MAX_COUNTERS:
                stated = {key: item[key] for key in ("expected", "steps", "layers") if counted(item.get(key))}
                self._counters[name, rank] = {"name": name, "count": count} | stated, number
                self.reading.records += 1
        return False

    def finish(self) -> Reading | None:
        reading = self.reading
        lowest: dict[str, tuple[dict[str, Any], int]] = {}
        for (name, _), counter in self._counters.items():
            # Ranks must agree with what is expected each: the lowest count speaks for all.
            lowest[name] = min(lowest.get(name, counter), counter, key=lambda item: item[0]["count"])
        for name, (row, line) in lowest.items():
            reading.counters[name] = row["count"]
            if row["count"] != row.get("expected", row["count"]):
                what = f"{name} stands at {row['count']}, expected {row['expected']}"
                reading.remark("contradiction", what, line)
        if lowest:
            rows = [row for row, _ in lowest.values()]
            first = min(line for _, line in self._counters.values())
            reading.state("measurement.path_counters", rows, f"{len(rows)} counters", first)
        return super().finish()


READERS = (MoeRoutingReader, PathCountersReader)
