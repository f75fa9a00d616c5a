"""JAX's compile log: JAX_LOG_COMPILES, JAX_EXPLAIN_CACHE_MISSES and the persistent cache's lines, of every version.

``Finished XLA compilation of jit(f)`` is printed for a program that the persistent cache held, too: the line
``Persistent compilation cache hit for 'jit_f'`` before it tells the two apart. Which lines are printed is decided by
flags and versions (hit lines need log_compiles and JAX 0.4.35 or later, miss lines need explain_cache_misses), so an
absent line is no evidence. A program that sets up logging besides JAX's own handler prints every record twice, each
copy behind its own prefix: a copy is no second compilation.
Source: jax/_src/{dispatch,compiler,pjit}.py of 0.4.14 to 0.10, and real runs of ten.

A tracing cache miss of JAX, and why the function was traced once more.

What JAX's runtime reports of itself: monitoring events kept as JSON, and implicit transfers.

`jax.monitoring` events that a training script kept as JSON. JAX hands events (``/jax/compilation_cache/cache_hits``)
and durations (``/jax/core/compile/backend_compile_duration`` and others) to listeners and writes no file itself;
scripts keep a list of ``{"event": …, "step": …}``, or counts by name, flat or in phases. A backend compile is
reported on a persistent-cache hit, too.

JAX's transfer guard: `JAX_TRANSFER_GUARD=log` writes every implicit transfer, `disallow` raises on one. ``W1120
12:33:35.266411 21084 guard_lib.cc:140] device-to-device transfer: aval=…``, and the error ``Disallowed device-to-host
transfer: …``. On CPU a read of a value makes no line, so that none is seen proves nothing. Source:
jaxlib/guard_lib.cc; a real run of JAX 0.10.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from receipts.ingest import vocabulary
from receipts.ingest.compile_order import CompileOrder, place
from receipts.ingest.literals import counted
from receipts.ingest.reader import JsonReader, LineReader
from receipts.ingest.reading import CompileSpan, Reading, Tally, alike
from receipts.ingest.steps import STEP_ANCHORS, step_of

_TRACED: Final = re.compile(r"(?:for )?(\S{1,200}) (?:id=\d+ )?defined at (\S{1,400}?):(\d+)")
# In each version the value of now and that of before, the wider difference first.
_CHANGES: Final = (
    re.compile(r"\* at (?P<what>.{1,200}?), now (?P<now>.{1,400}?) and before (?P<was>.{1,400}?)(?:https?:|, so |$)"),
    re.compile(r"\* at (?P<what>.{1,200}?), seen (?P<was>.{1,400}?), but now given (?P<now>.{1,400}?)(?:, |$)"),
)


@dataclass(slots=True)
class CacheMiss:
    """A tracing cache miss, whose reason is on the lines below."""

    place: str
    short: str
    line: int
    reasons: list[str]
    length: int = 0

    @property
    def again(self) -> str:
        """Why the function was traced once more; empty for its first trace, which is no news."""
        traced = next((match for reason in self.reasons if (match := _TRACED.match(reason))), None)
        if traced is None:
            return ""
        name = traced[1]
        if any(reason.startswith("never seen function") for reason in self.reasons):
            if not any("defined on the same line" in reason for reason in self.reasons):
                return ""
            return f"{name} is defined anew for every call ({place(traced[2], traced[3])})"
        changes = (form.match(reason) for form in _CHANGES for reason in self.reasons)
        change = next(filter(None, changes), None)
        if change is None:
            return f"{name}: {' '.join(self.reasons[1:])[:200]} ({self.short})"
        was, now = _short(change["was"]), _short(change["now"])
        what = change["what"] if " " in change["what"] else f"argument {change['what']}"
        return f"{name}: {what} changed from {was} to {now} ({self.short})"


def _short(value: str) -> str:
    """``f32[8]``, or the value of a static argument without the class that holds it."""
    return value.rpartition(" metadata ")[2].strip()[:80]


MAX_MISSES: Final = 20
MAX_BLOCK: Final = 40
MAX_REASONS: Final = 12
MAX_KEPT: Final = 500
MAX_MAPPING: Final = 20_000
_FINISHED: Final = re.compile(
    r"Finished XLA compilation of (\S.{0,150}?) in (\d{1,9}(?:\.\d{1,20})?(?:[eE]-?\d{1,3})?) sec"
)
_CACHE: Final = re.compile(r"(?i)persistent compilation cache (hit|miss) for '?([^\s']{1,300})")
_WRITING: Final = re.compile(
    r"(?:^|\s)(Not w|W)riting (?:persistent cache entry for )?'?(\S{1,300}?)'? (?:to persistent|because)"
)
_TRACING: Final = re.compile(r"TRACING CACHE MISS at ((\S{1,400}?):(\d+)(?::\d+)?) \((.{0,200}?)\)")
_SIGNATURE: Final = re.compile(r"Compiling (?:jit\()?(.{1,150}?)\)? (?:for )?with global shapes and types (.*)")
_TYPE: Final = re.compile(r"ShapedArray\(([^()]{0,200})\)")
_MESSAGE: Final = re.compile(r"Finished |Compiling |TRACING |[Pp](?:ersistent|ERSISTENT) |Not writing |Writing ")
_TIMED: Final = re.compile(r"Finished .{1,300} in \d{1,9}\.\d{6}")
# What trains: a function that is called a step, or the step of a trainer.
_OF_STEP: Final = re.compile(r"p?jit_(?:\w{0,60}_)?(?:train|step)(?:_\w{0,60})?$")
_DIGITS: Final = re.compile(r"\d+")
# From these versions on a hit is reported wherever a compilation is. (In 2021, too, it traced + transformed "for jit".)
_TELLS_HITS: Final = re.compile(r"in \d+\.\d{9} sec|tracing (?!\+).{1,200} for jit in |Compiling jit\(")

_T = TypeVar("_T")


_MESSAGES: Final = ("Finished ", "CACHE MISS", "Compiling ", "Persistent compilation")


class JaxCompiles(LineReader):
    """Compilations, the persistent cache and tracing cache misses as JAX logs them."""

    source = "jax-compiles"
    anchors = vocabulary.anchors("jax_compiles")
    companions = STEP_ANCHORS

    def __init__(self) -> None:
        super().__init__()
        self._seconds = 0.0
        # Programs whose next end of a compilation is a load from the cache, and all by name.
        self._pending, self._names = Tally[str](), Tally[str]()
        self._tells_hits = False
        self._order = CompileOrder()
        self._block: CacheMiss | None = None
        self._prefix = self._message = ""
        # By program: why it was traced last, and the types that it took last.
        self._why: dict[str, str] = {}
        self._types: dict[str, tuple[str, ...]] = {}
        self._noted: set[str] = set()

    def line(self, text: str, number: int) -> bool:
        """One message, or a line of the reasons under a tracing cache miss."""
        block = self._block
        if block is not None and not any(words in text for words in _MESSAGES):
            block.length += 1
            reason = text.strip()
            if not text.startswith((" ", "\t")) or block.length > MAX_BLOCK:
                self._block_ends()
                return False
            if reason and len(block.reasons) < MAX_REASONS:
                block.reasons.append(reason[:400])
            return True
        self._block_ends()
        if self._is_copy(text):
            return False
        if "TRACING CACHE MISS" in text and (match := _TRACING.search(text)) is not None:
            self._count("tracing_cache_misses")
            self._block = CacheMiss(f"{match[1]} ({match[4]})", place(match[2], match[3]), number, [])
            return True
        if (done := _FINISHED.search(text)) is not None:
            self._count("finished_compilations")
            self._tells_hits = self._tells_hits or _TELLS_HITS.search(text) is not None
            key = _key(done[1])
            self._names.add(key)
            if self._pending[key] > 0:
                self._pending[key] -= 1
            else:
                self._seconds += float(done[2])
                # A program under another name than the step's is compiled all the same.
                self._order.compiled(self._why.pop(key, ""))
                self.follows = self._order.follows
        elif (cache := _CACHE.search(text)) is not None:
            if cache[1].lower() == "miss":
                self._count("cache_misses")
            else:
                self._count("cache_hits")
                self._pending.add(_key(cache[2]))
        elif (writing := _WRITING.search(text)) is not None and "persistent" in text:
            self._count("cache_writes" if writing[1] == "W" else "cache_entries_not_written")
        elif "Finished tracing" in text or "Finished jaxpr" in text or "with global shapes and types" in text:
            self._tells_hits = self._tells_hits or _TELLS_HITS.search(text) is not None
            self.reading.records += 1
            self._signature(text)
        else:
            self._order.look(text)
            self.follows = self._order.follows
        return False

    def finish(self) -> Reading | None:
        """Counts, where the flags of the run let them be said."""
        self._block_ends()
        reading = self.reading
        if not reading.records:
            return None
        again = [f"{name} {count} times" for name, count in self._names.most_common(3) if count > 2]
        if again:
            reading.remark("note", f"compiled or loaded more than twice: {', '.join(again)}")
        compile_, counted = self.reading.compile, self.reading.counters.get
        done, hits, misses = (counted(name, 0) for name in ("finished_compilations", "cache_hits", "cache_misses"))
        cached = bool(hits or misses)
        if hits or (misses and done):
            compile_.cache_hits = hits
        if misses or (hits and done and (counted("tracing_cache_misses") or hits >= done)):
            compile_.cache_misses = misses
        if done and (cached or self._tells_hits):
            # An excerpt may hold the miss and not the end of the compilation.
            compile_.compiles = max(done - hits, misses)
            compile_.seconds = self._seconds
        elif misses:
            # Without log_compiles nothing but the cache's own lines is reported: what it had not, was compiled.
            compile_.compiles = misses
        if done and not cached:
            silence = "no line of a cache" if self._tells_hits else "this version says nothing of its persistent cache"
            self.reading.remark("missing", f"{silence}: that some of {done} programs came from one is not excluded")
        # A log of writes alone, or of what was traced, shows no compile: that none came late does not follow.
        if done and (self._tells_hits or cached):
            self._order.place(self.reading)
        if self._names:
            reading.see("framework", "jax", "kernels")
            if any(_OF_STEP.match(name) for name in self._names):
                reading.see("posture", "jit", "backend")
        return reading

    def _count(self, name: str) -> None:
        self.reading.records += 1
        self.reading.count(name)

    def _is_copy(self, text: str) -> bool:
        """Whether this is the message before it once more, out of a second handler of the logger.

        A time that is equal to the digit is a copy's; without one the prefixes tell, but for their numbers: the same
        logger's are of one form, and it does say the same thing twice of two loads from the cache.
        """
        match = _MESSAGE.search(text)
        if match is None:
            return False
        prefix, message = text[: match.start()], text[match.start() :]
        before, self._prefix = self._prefix, prefix
        if message != self._message:
            self._message = message
            return False
        # A third copy does not come, and the same message again is a record.
        copied = _TIMED.match(message) is not None or _DIGITS.sub("0", before) != _DIGITS.sub("0", prefix)
        self._message = "" if copied else message
        return copied

    def _block_ends(self) -> None:
        block, self._block = self._block, None
        if block is None or not (why := block.again):
            return
        new = alike(why) not in self._noted
        self._noted.add(alike(why))
        self._keep(self._why, _key(f"jit({why.partition(':')[0].partition(' is defined anew')[0]})"), why)
        if new and len(self._noted) <= MAX_MISSES:
            self.reading.remark("note", f"traced again at {block.place}: {' '.join(block.reasons)}"[:400], block.line)

    def _signature(self, text: str) -> None:
        """What differs from the arguments that a program of this name took before, where no reason is logged."""
        match = _SIGNATURE.search(text)
        if match is None:
            return
        key = _key(f"jit({match[1]})")
        taken, _, mapping = match[2].partition(" Argument mapping: ")
        types, before = (*_TYPE.findall(taken), mapping[:MAX_MAPPING]), self._types.get(key)
        if before is not None and key not in self._why:
            changed = [at for at, pair in enumerate(zip(types[:-1], before[:-1], strict=False)) if pair[0] != pair[1]]
            if changed:
                at = changed[0]
                why = f"{match[1]}: argument {at + 1} of {len(types) - 1} changed from {before[at]} to {types[at]}"
            elif len(types) != len(before):
                why = f"{match[1]}: {len(types) - 1} arrays instead of {len(before) - 1}"
            elif types[-1] != before[-1]:
                why = f"{match[1]}: an argument came with another sharding"
            else:
                why = f"{match[1]}: arguments of the same types, so a static value or the function itself is another"
            self._keep(self._why, key, why)
        self._keep(self._types, key, types)

    @staticmethod
    def _keep(table: dict[str, _T], key: str, value: _T) -> None:
        if key in table or len(table) < MAX_KEPT:
            table[key] = value


def _key(name: str) -> str:
    """``jit(<lambda>)`` and ``jit__lambda`` as one name."""
    return "_".join(part for part in re.split(r"[^A-Za-z0-9]+", name) if part)


MAX_NAMES: Final = 1_000
MAX_STEPS: Final = 100_000
_HEAD: Final = re.compile(rb"^\s*[\[{]")
_EVENT: Final = re.compile(rb'"/jax/(?:core/compile|compilation_cache|pjit|backend)\b')
_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
_HIT, _MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


class JaxMonitoring(JsonReader):
    """Compiles and persistent-cache hits by JAX's own events."""

    source = "jax-monitoring"
    what = "a list of events"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """A JSON document of events by JAX's names."""
        return bool(_HEAD.match(head)) and bool(_EVENT.search(head)) and b"traceEvents" not in head

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """Take events that were counted by name, flat or in phases, of which one is after the warm-up."""
        late = Counter[str]()
        for phase, name, count in _counts(document):
            if _add(reading, name, count) and "after" in phase:
                late[name] += count
        _describe(reading)
        if any("after" in phase for phase in document) and _COMPILED in reading.counters:
            reading.compile.after_warmup = max(late[_COMPILED] - late[_HIT], 0)

    def listed(self, reading: Reading, rows: list[Any]) -> None:
        """Count the events of a list."""
        # Compiles less hits of the persistent cache by step, as far as each step is known.
        built, names, seconds = Counter[int](), dict[int, str](), 0.0
        for item in rows:
            name = item.get("event") or item.get("name") if isinstance(item, dict) else None
            if not isinstance(name, str):
                continue
            step = item.get("step")
            # Words in the place of a number (`init`, `end`) are before the first step, and after the last.
            if type(step) is int and len(built) < MAX_STEPS:
                built[step] += {_COMPILED: 1, _HIT: -1}.get(name, 0)
                if name == _COMPILED and isinstance(item.get("fun_name"), str):
                    names[step] = f"{item['fun_name'][:200]} was compiled"
            spent = next((item[key] for key in ("duration_s", "duration", "seconds") if key in item), 0.0)
            if _add(reading, name, 1) and name == _COMPILED and isinstance(spent, int | float) and abs(spent) < 1e12:
                seconds += float(spent)
        _describe(reading)
        if seconds and not reading.compile.cache_hits:
            reading.compile.seconds = seconds
        if built and reading.records:
            # Steps that are counted from 0 are known to be where something is built in step 0.
            early = 0 if 0 in built else 1
            reading.compile.spans = [
                CompileSpan(count, max(step - early, 0), step + 1, names.get(step, ""))
                for step, count in sorted(built.items())
                if count > 0
            ]
            reading.compile.steps = max(built) + 1


def _counts(table: Mapping[str, Any]) -> Iterator[tuple[str, str, int]]:
    for key, value in table.items():
        inner = value.items() if isinstance(value, dict) else ((key, value),)
        for name, count in inner:
            if str(name).startswith("/jax/") and counted(count):
                yield (key if isinstance(value, dict) else ""), name, count


def _add(reading: Reading, name: str, count: int) -> bool:
    """Count events, if there is room for their name."""
    if name not in reading.counters and len(reading.counters) >= MAX_NAMES:
        return False
    reading.count(name, count)
    reading.records += count
    return True


def _describe(reading: Reading) -> None:
    if not reading.records:
        reading.remark("missing", "no event of jax.monitoring is in it")
        return
    hits, compiled = reading.counters.get(_HIT, 0), reading.counters.get(_COMPILED)
    reading.see("framework", "jax", "kernels")
    # Events are counted whatever the log flags are, so here an absence is a zero.
    reading.complete = compiled is not None
    reading.compile.cache_hits = hits
    reading.compile.cache_misses = reading.counters.get(_MISS, 0)
    if compiled is not None:
        reading.compile.compiles = max(compiled - hits, 0)


_TRANSFER: Final = re.compile(r"(Disallowed )?(host-to-device|device-to-host|device-to-device) transfer:")


class TransferGuard(LineReader):
    """Implicit transfers by direction; those to the host are reads of live arrays."""

    source = "transfer-guard"
    anchors = (
        b"host-to-device transfer:",
        b"device-to-host transfer:",
        b"device-to-device transfer:",
    )
    companions = STEP_ANCHORS

    def __init__(self) -> None:
        super().__init__()
        self.follows = False
        self._steps: set[int] = set()

    def line(self, text: str, number: int) -> bool:
        """Count one transfer, or note a step."""
        match = _TRANSFER.search(text)
        if match is None:
            if (step := step_of(text)) is not None and len(self._steps) < MAX_STEPS:
                self._steps.add(step)
            return False
        reading = self.reading
        reading.records += 1
        self.follows = True
        reading.count(match[2])
        if match[1]:
            reading.count(f"disallowed {match[2]}")
            reading.remark("note", text[match.start() :][:200], number)
        return False

    def finish(self) -> Reading | None:
        """Transfers to the host, where there were any: their absence is no evidence."""
        reading = self.reading
        if not reading.records:
            return None
        reading.host_transfers = reading.counters.get("device-to-host")
        reading.steps_covered = len(self._steps) or None
        if reading.host_transfers is None:
            reading.remark("missing", "no transfer to the host is logged, which some backends do not log")
        return reading


READERS = (JaxCompiles, JaxMonitoring, TransferGuard)
