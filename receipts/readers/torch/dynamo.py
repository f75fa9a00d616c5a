"""torch.compile's own report: TORCH_LOGS messages of recompiles, graph breaks and limits, and its counters.

`torch._dynamo.utils.counters`: as a program prints the dict, or writes it as JSON. Counts are of compilation, not of
execution: a graph break is counted once, however often it is run through.

torch.compile's own word: recompiles, graph breaks, limits, skipped CUDA graphs, out of logs of TORCH_LOGS. Sources:
PyTorch `torch/_logging/_internal.py` (the head of a line), `torch/_dynamo/guards.py`, `symbolic_convert.py`,
`convert_frame.py`, `torch/_inductor/cudagraph_utils.py`; versions 2.1 to 2.13. Guard lines quote the program's
source, so that a message counts only where it is the whole beginning of what a line says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from receipts.ingest.compile_order import CompileOrder, place
from receipts.ingest.literals import counted, literal
from receipts.ingest.prefix import repeated
from receipts.ingest.reader import JsonReader, LineReader
from receipts.ingest.reading import UNNAMED_FUNCTION, CompileEvent, CompileSpan, Reading, Tally
from receipts.ingest.steps import STEP_ANCHORS

_GROUPS: Final = ("frames", "stats", "aot_autograd", "inductor", "graph_break", "unimplemented", "aten_mm_info")
_CLAIM = re.compile(rb'\s*\{\s*"(?:frames|stats|aot_autograd|inductor|graph_break|unimplemented)"\s*:\s*\{')
_COUNTER = re.compile(r"\bCounter\((?=\{)")
_LIMIT_NAMES: Final = ("recompile limit exceeded", "cache size limit exceeded", "recompile_limit reached")


def read_counters(reading: Reading, text: str, line: int) -> None:
    """Read a printed `defaultdict(<class 'collections.Counter'>, {…})` from its outer brace on."""
    counters = literal(_COUNTER.sub("(", text))
    groups = counters.items() if isinstance(counters, dict) else ()
    take_counters(reading, {name: _counts(group[0]) for name, group in groups if type(group) is list and group}, line)


def take_counters(reading: Reading, groups: Mapping[str, Mapping[str, int]], line: int = 0) -> None:
    """State what the groups of counters say. Nothing is said of groups that were never counted."""
    if not any(name in groups for name in _GROUPS):
        return
    reading.records += 1
    frames, stats, inductor = groups.get("frames", {}), groups.get("stats", {}), groups.get("inductor", {})
    for name, value in (
        ("frames_total", frames.get("total")),
        ("frames_ok", frames.get("ok")),
        ("unique_graphs", stats.get("unique_graphs")),
        ("fxgraph_cache_hit", inductor.get("fxgraph_cache_hit")),
        ("fxgraph_cache_miss", inductor.get("fxgraph_cache_miss")),
        ("cudagraph_skips", inductor.get("cudagraph_skips")),
    ):
        if value is not None:
            reading.counters[name] = value
    breaks = sum(groups.get("graph_break", {}).values())
    if stats or frames:
        reading.compile.compiles = stats.get("unique_graphs", reading.compile.compiles)
        reading.compile.graph_breaks = breaks
    reading.compile.cache_hits = inductor.get("fxgraph_cache_hit", reading.compile.cache_hits)
    reading.compile.cache_misses = inductor.get("fxgraph_cache_miss", reading.compile.cache_misses)
    for reason, count in groups.get("graph_break", {}).items():
        summary, _, rest = reason.partition("Explanation: ")
        reading.blame("compile.graph_breaks", (rest or summary).partition("\n")[0].strip()[:300], count)
    if breaks:
        reading.counters["graph_breaks"] = breaks
        reading.see("posture", "regional", "backend", line)
    hit = sum(
        count
        for name, count in {**groups.get("graph_break", {}), **groups.get("unimplemented", {})}.items()
        if any(word in name.lower() for word in _LIMIT_NAMES)
    )
    if hit:
        reading.counters["recompile_limit"] = hit
        reading.fallbacks = (reading.fallbacks or {}) | {UNNAMED_FUNCTION: hit}
        reading.remark("note", "a recompile limit was reached: the function runs uncompiled from there on", line)


class DynamoCountersReader(JsonReader):
    """The counters as a JSON document."""

    source: ClassVar[str] = "dynamo"
    what: ClassVar[str] = "a table of counters"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        return _CLAIM.match(head) is not None

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        take_counters(reading, {str(name): _counts(group) for name, group in document.items()})
        reading.complete = reading.records > 0


def _counts(group: Any) -> dict[str, int]:
    if not isinstance(group, dict):
        return {}
    return {str(key): value for key, value in group.items() if counted(value)}


MAX_PLACES: Final = 40
MAX_NAMES: Final = 2000
# Lines below a message in which its reason stands.
BELOW: Final = 12
BREAKS: Final = "compile.graph_breaks"
POSTURE: Final = "path.witnessed.posture"
FALLBACKS: Final = "path.witnessed.fallbacks."
_HEAD = re.compile(
    r"(?:[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ [^\s\]]+:\d+\]"
    r"|\[\d{4}-\d\d-\d\d [\d:,.]+\](?: \[\w+\])?(?: \[\d+/\d+[\w]*\])? torch\.[\w.]+: \[\w+\]"
    r"|\[\d+/\d+\w*\](?= (?:torch\._dynamo hit|Recompiling|Graph break)))"
)
_TAGS = re.compile(r"(?:\s*\[(?:\d+/\d+\w*|__\w+|!?\d+/\d+/?\w*)\])*\s?")
_RECOMPILE = re.compile(
    r"Recompiling function (?P<name>[^\s]{1,200}) in (?P<file>.{1,400}?):(?P<line>\d+)\s*(?:\[repeated.*)?"
)
_BREAK_AT = re.compile(r"Graph break(?: \([^)]{1,120}\))? in user code at (?P<at>.{1,400})")
_BREAK = re.compile(r"Graph break(?: \([^)]{1,120}\))?: (?!from user code at:)(?P<why>.{1,300})")
_LIMIT = re.compile(
    r"torch\._dynamo hit config\.(?P<limit>(?:accumulated_)?(?:recompile|cache_size)_limit) \((?P<value>\d+)\)"
)
_FUNCTION = re.compile(r"\s*function: '(?P<name>[^']{1,200})' \((?P<file>.{1,400}?):\d+\)")
# The newest program's guard is first; from 2.3 on its number does, and the source that asks for it.
_GUARD = re.compile(
    r"\s+- (?:\d+/\d+: )?(?P<guard>[^#]{1,300}?)\s*(?:#.*# (?P<file>[^#]{1,300}?):(?P<line>\d+) in .*|#.*)?"
)
_MISMATCH = re.compile(
    r"(tensor '.{1,200}?' \w+) mismatch(?P<at> at index \d+)?\. expected (?P<was>.{1,80}), actual (?P<now>.{1,80})"
)
_REASON = re.compile(r"(?:Graph Break )?Reason: (?:Unsupported: )?(?P<why>.{1,300})")
_EXPLAINED = re.compile(r"\s*Explanation: (?P<why>.{1,300})")
_AT = re.compile(r"(?P<file>.{1,400}?):(?P<line>\d+)\s*$")
_SKIPPED = re.compile(r"skipping cudagraphs due to (?:skipping cudagraphs due to )?(?P<why>[^\n\"']{1,160})")
_SUPPRESSED = re.compile(r"(?:WON'T CONVERT|\[?(?:convert_frame|symbolic_convert)\]?.*suppress_errors)[^\n]{0,160}")
_COUNTERS: Final = "defaultdict(<class 'collections.Counter'>, {"
_PACKAGES = re.compile(r"(?:site-packages|dist-packages|src|lib/python3\.\d+)/(?P<path>[\w./-]+)\.py$")


class DynamoReader(LineReader):
    """Recompiles and graph breaks, counted once each, and functions that were given back to the interpreter."""

    source: ClassVar[str] = "dynamo"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"Recompiling function ", b"Graph break", b"torch._dynamo hit config.", b"skipping cudagraphs due to"),
        *(b"WON'T CONVERT", b"defaultdict(<class 'collections.Counter'>", b"FailOnRecompileLimitHit"),
    )
    companions: ClassVar[tuple[bytes, ...]] = STEP_ANCHORS

    def __init__(self) -> None:
        super().__init__()
        self._recompiles, self._breaks, self._reasons, self._limited = (
            Tally[str](MAX_NAMES, "others") for _ in range(4)
        )
        self._frames: set[str] = set()
        self._versions: Counter[str] = Counter()
        self._limit = self._limited_by = ""
        # Where a limit was reached, in words; with fullgraph it raises, and nothing runs uncompiled.
        self._reached: list[tuple[str, int]] = []
        self._raised = False
        self._order = CompileOrder()
        # What the lines below a message are to explain, and for how many: a compile, or a break by its place.
        self._awaiting = 0
        self._compile: tuple[CompileEvent, str, str] | None = None
        self._at = ""
        self._why: dict[str, str] = {}

    def line(self, text: str, number: int) -> bool:
        if _COUNTERS in text:
            begin = text.index(_COUNTERS)
            read_counters(self.reading, text[begin + len(_COUNTERS) - 1 :], number)
            return False
        if "FailOnRecompileLimitHit" in text:
            self._raised = True
        body, frame = _body(text)
        if self._awaiting and self._explains(body):
            return True
        if self._awaiting and (match := _FUNCTION.match(body)):
            self._awaiting = 0
            self._limited.add(match["name"])
            return False
        if match := _RECOMPILE.fullmatch(body):
            self._recompile(match, frame, number, repeated(text))
            return True
        elif match := _BREAK_AT.match(body):
            self.reading.records += 1
            self._at, self._awaiting = match["at"].strip(), BELOW
            self._breaks.add(self._at, number)
            return True
        elif match := _BREAK.match(body):
            self.reading.records += 1
            self._reasons.add(match["why"].strip(), number)
        elif match := _LIMIT.match(body):
            self.reading.records += 1
            self._limit = match["limit"]
            self._awaiting, self._at, self._compile = 3, "", None
            # The compile that was announced before it does not take place.
            last = self._order.undo()
            self._limited_by = f"{match['limit']} of {match['value']} reached{f', last by {last}' if last else ''}"
            self.reading.count("recompile_limit", 1)
            if len(self._reached) < MAX_PLACES:
                self._reached.append((f"{match['limit']} of {match['value']} was reached", number))
            return True
        elif match := _SKIPPED.match(body):
            self.reading.count("cudagraph_skips", 1)
            self._note(f"CUDA graphs were skipped: {match['why'].strip()}", number)
        elif match := _SUPPRESSED.match(body):
            self.reading.count("frames_not_converted", 1)
            self._note(match[0], number)
        elif (head := _HEAD.search(text, 0, 1000)) and "torch" in head[0]:
            self._awaiting = max(0, self._awaiting - 1)
        else:
            self._awaiting = 0
            self._order.look(text)
            self.follows = self._order.follows
        return self._awaiting > 0

    def finish(self) -> Reading | None:
        reading = self.reading
        if not reading.records:
            return None
        places = self._breaks or self._reasons
        if breaks := places.total():
            reading.counters["graph_breaks"] = breaks
            reading.compile.graph_breaks = max(breaks, reading.compile.graph_breaks or 0)
        if self._recompiles:
            reading.counters["recompiles"] = self._recompiles.total()
        then = "with fullgraph it raises" if self._raised else "the function runs uncompiled from there on"
        for what, line in self._reached:
            reading.remark("note", f"{what}: {then}", line)
        if (self._limited or self._limit) and not self._raised:
            names = self._limited or {self._limit: 1}
            # Counters that are printed as well do not name the function.
            earlier = {name: count for name, count in (reading.fallbacks or {}).items() if name != UNNAMED_FUNCTION}
            reading.fallbacks = earlier | {f"torch.compile:{name}": count for name, count in names.items()}
            for name in names:
                reading.blame(f"{FALLBACKS}torch.compile:{name}", self._limited_by)
        # Several pieces are no whole graph. One function that is compiled again may be either.
        if breaks or len(self._frames) > 1:
            lines = (line for table in (self._recompiles, self._breaks, self._reasons) for line in table.first.values())
            reading.see("posture", "regional", "backend", min(lines))
        for at, count in places.items():
            why, shown = self._why.get(at, ""), _AT.fullmatch(at)
            at = place(shown["file"], shown["line"]) if shown else at[:200]
            for leaf in (BREAKS, POSTURE):
                reading.blame(leaf, f"{why} ({at})" if why else f"a graph break at {at}", count)
        if self._recompiles and self._order.place(reading) and reading.compile.spans is not None:
            # The first compile of each function is not logged.
            reading.compile.spans.append(CompileSpan(1))
        reading.compile.versions = max(self._versions.values()) - bool(self._limit) if self._versions else None
        for name, count in self._recompiles.most_common(MAX_PLACES):
            times = f" {count} times" if count > 1 else ""
            reading.remark("note", f"{name} was compiled again{times}", self._recompiles.first[name])
        for at, count in places.most_common(MAX_PLACES):
            times = f" ({count} times)" if count > 1 else ""
            reading.remark("note", f"graph break: {at[:160]}{times}", places.first[at])
        return reading

    def _recompile(self, match: re.Match[str], frame: str, number: int, times: int) -> None:
        # `bias_swiglu in …/site-packages/megatron/core/fusions/swiglu.py` as the module's name and the function's.
        package = _PACKAGES.search(match["file"])
        name = f"{package['path'].replace('/', '.')}.{match['name']}" if package else match["name"]
        self._recompiles.add(name, number, times)
        if len(self._frames) < MAX_NAMES:
            self._frames.add(frame or name)
        at = f"{match['file']}:{match['line']}"
        self._versions[at] = max(self._versions[at], self._recompiles[name]) + 1
        self._compile = (self._order.compiled(), match["name"], place(match["file"], match["line"]))
        self.follows, self._at, self._awaiting = self._order.follows, "", BELOW
        self.reading.records += 1

    def _explains(self, body: str) -> bool:
        """A line below a message: the guard that failed, or why a graph ended."""
        if self._compile is not None and (match := _GUARD.fullmatch(body)):
            event, name, at = self._compile
            at = place(match["file"], match["line"]) if match["file"] else at
            event.why = f"{name}: {_changed(match['guard'])} ({at})"
            self._compile = None
            return True
        if self._at and (match := _EXPLAINED.match(body) or _REASON.match(body)):
            if "Explanation" in body or self._at not in self._why:
                self._why[self._at] = match["why"].strip()
            return True
        return False

    def _note(self, text: str, number: int) -> None:
        self.reading.records += 1
        self.reading.remark("note", text, number)


def _body(text: str) -> tuple[str, str]:
    """The message behind the head that torch writes, and the number of its frame (`0` of `[0/3]`)."""
    match = _HEAD.search(text, 0, 1000)
    begin = match.end() if match else 0
    if match is None and not text.startswith(("Recompiling", "Graph break", "torch._dynamo hit", "skipping", "   f")):
        # A launcher's mark is before what torch prints without a head of its own.
        mark = re.match(r"\s*(?:\[[^\]]{1,40}\]:?|\([^)]{1,80}\)|\d{1,6}:)\s*", text)
        begin = mark.end() if mark else 0
    tags = _TAGS.match(text, begin)
    stop = tags.end() if tags else begin
    frame = re.search(r"\[(\d+)/\d+", text[match.start() if match else begin : stop])
    return text[stop:], frame[1] if frame else ""


def _changed(guard: str) -> str:
    """``tensor 'x' size at index 0 changed from 8 to 7``, or the condition that no longer holds."""
    match = _MISMATCH.match(guard)
    if match is None:
        return f"guard {guard.strip()[:200]} failed"
    return f"{match[1]}{match['at'] or ''} changed from {match['was']} to {match['now']}"


def _qualified(name: str, file: str) -> str:
    """`bias_swiglu in …/site-packages/megatron/core/fusions/swiglu.py` as the module's name and the function's."""
    match = _PACKAGES.search(file)
    return f"{match['path'].replace('/', '.')}.{name}" if match else name


READERS = (DynamoReader, DynamoCountersReader)
