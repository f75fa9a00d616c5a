"""What a Megatron process prints at its start: the arguments dump, the layout, counts of parameters.

The arguments dump: one line an argument, dots up to a column, between two rules. Source: `_print_args` in
megatron/training/arguments.py. A name that reaches the column has no dots, a value may be empty or hold blanks, and
with a wrapper several ranks dump at once, each line behind its own prefix.

What launchers and the start of a Megatron process print of the layout, and of the software below.

CUDA graphs of a training step: what Megatron says when it captures them, and when it does not. Sources: Megatron-LM
`core/transformer/cuda_graphs.py` and `core/full_cuda_graph.py`, 2024 to 2026. Servers of models print lines of their
own (`Capturing CUDA graph shapes`); Megatron's inference engine says `built cuda graph(s)` without a number. Neither is
a training step's. That graphs were captured is said; that they are replayed, a profile.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.arguments import DEGREES, Statements
from receipts.ingest.prefix import is_source, rank_of, repeated
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

MAX_ARGUMENTS: Final = 5_000
MAX_VALUE: Final = 4_000
DUMP_BEGIN: Final = re.compile(r"-{4,} arguments -{4,}")
DUMP_END: Final = "end of arguments"
_ENTRY: Final = re.compile(r"(?:^|[\s:\]>])([A-Za-z_][A-Za-z0-9_]{0,120}) (?:(\.{1,60})(?: (.*))?|( )(\S.*))$")
# GPT-NeoX says behind each value whether it is its own.
_SETTER: Final = re.compile(r"\.{3,60}(?:default|updated)$")
_OPENING: Final = {"[": "]", "(": ")", "{": "}"}


class Dump:
    """Collects one dump. ``values`` holds each argument's first value with its line; ranks repeat the same ones."""

    __slots__ = ("_last", "_lines", "open", "values")

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.open = False
        self._last = ""
        self._lines = 0

    def begin(self) -> None:
        """A dump's head was read; a second one, of another rank or after a restart, adds nothing but new names."""
        self.open = True
        self._lines = 0

    def take(self, text: str, line: int) -> bool:
        """Take a line of the dump; False once it has ended."""
        self._lines += 1
        if DUMP_END in text or self._lines > MAX_ARGUMENTS:
            self.open = False
            return False
        match = _ENTRY.search(text) if len(text) <= MAX_VALUE + 400 else None
        if match is not None:
            value = (match[3] if match[2] else match[5]) or ""
            self._last = ""
            if match[1] not in self.values and len(self.values) < MAX_ARGUMENTS:
                self.values[match[1]] = _SETTER.sub("", value.strip())[:MAX_VALUE], line
                self._last = match[1]
        elif self._last and _unclosed(self.values[self._last][0]):
            value, at = self.values[self._last]
            self.values[self._last] = (f"{value} {text.strip()}"[:MAX_VALUE], at)
        return True


def _unclosed(value: str) -> bool:
    return value[:1] in _OPENING and value.count(value[0]) > value.count(_OPENING[value[0]])


STATEMENTS: Final = Statements("megatron")
_ELASTIC: Final = re.compile(r"(nproc_per_node|min_nodes|max_nodes) +: (\d{1,7})\b")
_PAIR: Final = re.compile(r"\b(tp|pp|cp|ep|etp|dp|vpp)=(\d{1,7})\b")
_SHARD: Final = re.compile(
    r"number of parameters on (?:\([a-z_, ]{1,80}\) )?model parallel rank "
    r"\(?(\d{1,7}(?:, *\d{1,7}){0,6})\)?: (\d{1,18})"
)
_BILLIONS: Final = re.compile(r"Total number of (active )?parameters in billions: *([0-9]{1,9}\.[0-9]{1,6})")
_MAX_SHARDS: Final = 100_000


def degrees(reading: Reading, text: str, line: int) -> None:
    """A wrapper's summary of the layout: ``parallelism: dp=4 pp=1 ep=4``."""
    for name, count in _PAIR.findall(text):
        if int(count) > 0:
            reading.state(DEGREES[name], int(count), f"{name}={count}", line)


class Launch:
    """The layout that torchrun states at its start, counts of parameters, and what follows from the steps."""

    def __init__(self) -> None:
        self._degrees: dict[str, int] = {}
        self._shards: dict[tuple[int, ...], int] = {}
        self._rounded: dict[str, tuple[float, str, int]] = {}
        self._line = self._counted = 0

    def take(self, text: str, line: int) -> None:
        """Read one line; prints of several ranks may be glued."""
        if match := _ELASTIC.search(text):
            self._degrees.setdefault(match[1], int(match[2]))
            self._line = self._line or line
        for ranks, count in _SHARD.findall(text) if "umber of " in text else ():
            if len(self._shards) < _MAX_SHARDS:
                self._shards[tuple(map(int, ranks.split(",")))] = int(count)
                self._counted = self._counted or line
        for active, value in _BILLIONS.findall(text) if "umber of " in text else ():
            path = "model.parameters_active" if active else "model.parameters_total"
            if float(value) > 0:
                self._rounded.setdefault(path, (float(value), value, line))

    def state(self, reading: Reading) -> None:
        """State what nothing else did: hosts and chips, where their number is fixed; parameters; a batch."""
        hosts, each = self._degrees.get("max_nodes"), self._degrees.get("nproc_per_node")
        if hosts and hosts == self._degrees.get("min_nodes", hosts):
            if "hardware.hosts" not in reading.stated:
                reading.state("hardware.hosts", hosts, f"max_nodes: {hosts}", self._line)
            if each and "hardware.chips" not in reading.stated:
                reading.state("hardware.chips", hosts * each, f"nproc_per_node: {each}, max_nodes: {hosts}", self._line)
        # One shard is the model only where nothing divides it; the theoretical report rounds the total.
        degrees = [reading.stated.get(f"parallelism.{name}") for name in ("tensor", "pipeline")]
        experts = [reading.stated.get(path) for path in ("parallelism.expert", "model.experts")]
        undivided = all(leaf is not None and leaf.value == 1 for leaf in degrees)
        together = any(leaf is not None and leaf.value in {0, 1} for leaf in experts) or not any(experts)
        if undivided and together and self._shards and not any(map(any, self._shards)):
            count = next(iter(self._shards.values()))
            reading.state("model.parameters_total", count, str(count), self._counted)
        for path, (billions, text, line) in self._rounded.items():
            if path not in reading.stated:
                reading.state(path, round(billions * 1e9), f"{text} billion", line)
        batches = {value for value in reading.steps.column("global_batch") if value is not None}
        if len(batches) == 1 and "batch.global_batch" not in reading.stated and 0 < (size := batches.pop()) < 1e12:
            reading.state("batch.global_batch", int(size), f"global batch size: {int(size)}")


_BUILT = re.compile(r"> built (?P<count>\d{1,9}) cuda graph\(s\) in (?P<seconds>[\d.]{1,20}) sec")
_CREATING = re.compile(r"\bCreating (?P<count>\d{1,9}) CUDA graphs")
_SPENT = re.compile(
    r"Time spent in CUDA Graphs capture on rank (?P<rank>\d{1,7}): (?P<seconds>[\d.]{1,20}(?:e-?\d+)?)\s?s"
)
_LAYERS = re.compile(r"Rank (?P<rank>\d{1,7}): (?P<count>\d{1,9}) graphable layers")
_DONE = re.compile(r"CUDA graph capture done for (?P<what>training|validation)")
_NONE = re.compile(r"No graphable layers found\.? Skipping CUDA graph capture")
_CAPTURE: Final = "cuda_graphs.capture"


class CudaGraphsReader(LineReader):
    """Whether graphs of the training step were captured, how many, and how long that took."""

    source: ClassVar[str] = "cuda-graphs"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"> built ", b"CUDA Graphs capture", b"graphable layers", b"CUDA graph capture done for", b" CUDA graphs"),
    )

    def line(self, text: str, number: int) -> bool:
        if match := _BUILT.search(text):
            self._captured(text, match, int(match["count"]) > 0, number)
            self._time(match["seconds"])
            self.reading.count("cuda_graphs", int(match["count"]) * repeated(text))
        elif match := _SPENT.search(text):
            self._captured(text, match, True, number)
            self._time(match["seconds"])
        elif match := _DONE.search(text):
            self._captured(text, match, match["what"] == "training", number)
        elif match := _NONE.search(text):
            self.reading.records += 1
            self.reading.see("cuda_graphs", "false", "backend", number, rank=rank_of(text, match.start()))
            self.reading.remark("note", "graphs were asked for, and no layer could be captured", number)
        elif match := _LAYERS.search(text):
            self.reading.records += 1
            self.reading.count("graphable_layers", int(match["count"]))
        elif match := _CREATING.search(text):
            self.reading.records += 1
        return False

    def finish(self) -> Reading | None:
        reading = self.reading
        if reading.records and not any(seen.leaf == "cuda_graphs" for seen in reading.seen):
            reading.remark("missing", "graphs are spoken of, and no line says that their capture came to its end")
        return super().finish()

    def _captured(self, text: str, match: re.Match[str], training: bool, number: int) -> None:
        if not training or is_source(text, match.start()):
            return
        self.reading.records += 1
        rank = int(match["rank"]) if "rank" in match.groupdict() else rank_of(text, match.start())
        self.reading.see("cuda_graphs", "true", "backend", number, rank=rank, count=repeated(text))

    def _time(self, text: str) -> None:
        self.reading.time(_CAPTURE, float(text) if text.count(".") < 2 and text != "." else None)


READERS = (CudaGraphsReader,)
