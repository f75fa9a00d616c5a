"""What the events of a JAX (XLA) profile prove, whichever file they come from: reads of arrays, programs, kernels.

A read of a live array is an event of the host's Python thread: ``np.asarray(jax.Array)`` and, with the Python tracer,
``$array.py:615 _value`` and ``$array.py:298 __float__``. No compile log tells it, and no transfer guard everywhere.
Device planes name what really ran: HLO operations on TPU, kernels on GPU.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from receipts.ingest.evidence.reading import TRANSFERS, Reading
from receipts.ingest.evidence.witnesses import hlo_kernels

MAX_NAMES: Final = 20_000
MAX_DEPTH: Final = 1_000
# trace.json.gz is cut at a million events.
MAX_EVENTS: Final = 1_000_000
_EXECUTE: Final = re.compile(r"\w*Executable::Execute\w* \((\S{1,200})\)")
_CALL: Final = re.compile(r"PjitFunction\(([^)]{1,200})\)")
_READ: Final = re.compile(
    r"np\.asarray\(jax\.Array\)|\$array\.py:\d+ (_value|__float__|__int__|__bool__|__index__|item|tolist|__array__)"
)
_ARRAY: Final = re.compile(r"\$array\.py:\d+ ")
_FRAME: Final = re.compile(r"\$(\S{1,200}:\d+) (.{1,200})")
_MODULE: Final = re.compile(r"([\w.\-]{1,200}?)(?:\(\d+\))?")
_COLLECTIVE: Final = re.compile(
    r"%?((?:all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute)(?:-start)?)(?=[.\s]|$)"
)
_CUDNN: Final = re.compile(r"cudnn.*(?:sdpa|fmha|flash_[fb]prop)|fmha_v2|flash_fprop_")
_TE: Final = re.compile(r"transformer_engine::.*(?:fused_attn|flash)")
_FLASH: Final = re.compile(r"splash|flash_attention|flash_mha|mha_(?:forward|backward)")


@dataclass(slots=True)
class Profile:
    """Counts over the events of one profile: how many there were; ``first`` and ``last`` are microseconds."""

    events: int = 0
    first: float = math.inf
    last: float = 0.0
    programs: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    reads: Counter[str] = field(default_factory=Counter)
    # Reads by the function that asked for them, and the open calls of each thread with their ends.
    callers: Counter[str] = field(default_factory=Counter)
    stacks: dict[Any, list[tuple[float, str]]] = field(default_factory=dict)
    kernels: Counter[str] = field(default_factory=Counter)
    exchanges: Counter[str] = field(default_factory=Counter)
    planes: set[str] = field(default_factory=set)
    dispatches: Counter[str] = field(default_factory=Counter)
    ends: dict[tuple[Any, str], float] = field(default_factory=dict)
    operations: int = 0
    cut: bool = False

    def add(self, plane: str, line: str, name: str, detail: str = "", count: int = 1, duration: float = 0.0) -> None:
        """``count`` events of one name; ``detail`` is the operation's own text, where the file keeps it."""
        self.events += count
        if plane.startswith("/device:"):
            self.planes.add(plane[:40])
            self._device(plane, line, name, detail, count, duration)
            return
        if (read := _READ.fullmatch(name)) is not None:
            self.reads[read[1] or "np.asarray"] += count
        elif (call := _CALL.fullmatch(name)) is not None:
            if call[1] in self.dispatches or len(self.dispatches) < MAX_NAMES:
                self.dispatches[call[1]] += count
        elif (run := _EXECUTE.fullmatch(name)) is not None:
            self._program("/host", run[1], count, duration)
        elif name.startswith("ThunkExecutor::Execute"):
            self.operations += count

    def frame(self, thread: Any, name: str, start: float, end: float) -> None:
        """A call on a Python thread in the order of their starts; the tracer writes ``$file.py:LINE function``."""
        stack = self.stacks.setdefault(thread, []) if thread in self.stacks or len(self.stacks) < MAX_NAMES else []
        while stack and stack[-1][0] <= start:
            stack.pop()
        # A read reads by way of others.
        if _READ.fullmatch(name) and not any(_READ.fullmatch(outer) for _, outer in stack):
            match = _FRAME.fullmatch(next((outer for _, outer in reversed(stack) if not _ARRAY.match(outer)), ""))
            where = f" in {match[2]} ({match[1]})" if match else ""
            self.callers[f"{name.rpartition(' ')[2]} of an array{where}"] += len(self.callers) < MAX_NAMES
        if len(stack) < MAX_DEPTH:
            stack.append((end, name))

    def _device(self, plane: str, line: str, name: str, detail: str, count: int, duration: float) -> None:
        if line == "XLA Modules":
            module = _MODULE.fullmatch(name)
            self._program(plane, module[1] if module else name[:200], count, duration)
            return
        if line in ("Steps", "XLA TraceMe", "Framework Name Scope", "Framework Ops", "Source code"):
            return
        self.operations += count
        if (exchange := _COLLECTIVE.match(name)) is not None:
            self.exchanges[exchange[1]] += count
        text = f"{name} {detail}"
        kernel = "cudnn_fmha" if _CUDNN.search(text) else "te_fused" if _TE.search(text) else None
        if kernel is None and _FLASH.search(text) is not None:
            kernel = hlo_kernels.attention(hlo_kernels.MOSAIC, text)
        if kernel is not None:
            self.kernels[kernel] += count

    def _program(self, plane: str, name: str, count: int, duration: float) -> None:
        key = (plane, name)
        if key in self.programs or len(self.programs) < MAX_NAMES:
            before, spent = self.programs.get(key, (0, 0.0))
            self.programs[key] = before + count, spent + duration

    @property
    def steps(self) -> int | None:
        """Executions of the program that took most of the time, on the plane that ran it most often.

        Where no execution has a program's name, calls of what is named as a step.
        """
        totals: Counter[str] = Counter()
        for (_, name), (_, spent) in self.programs.items():
            totals[name] += spent  # type: ignore[assignment]
        if not totals:
            called = [count for name, count in self.dispatches.items() if "step" in name or "train" in name]
            return max(called, default=None)
        longest = max(totals, key=lambda name: totals[name])
        return max(count for (_, name), (count, _) in self.programs.items() if name == longest)

    def describe(self, reading: Reading) -> None:
        """Put into the reading what the events prove."""
        reading.records = self.events
        reading.see("framework", "jax", "kernels")
        self._runtime(reading)
        for kernel, count in self.kernels.items():
            reading.see("attention", kernel, "kernels", count=count)
        reading.counters = {f"executions of {name}": count for (_, name), (count, _) in self._top()}
        reading.counters |= self.exchanges
        reading.counters |= {f"reads by {name}": count for name, count in self.reads.items()}
        reads = max(self.reads.values(), default=0)
        whole = not self.cut and self.events < MAX_EVENTS
        # Python's dispatch is in the profile, so a read would be, too.
        if reads or (whole and self.dispatches and self.steps):
            reading.host_transfers = reads
            named = {name: count for name, count in self.reads.items() if name.startswith("__")} or self.reads
            for cause, count in (
                self.callers or {f"{name} of an array": count for name, count in named.items()}
            ).items():
                reading.blame(TRANSFERS, cause, count)
            reading.steps_covered = self.steps
        if self.steps is not None:
            reading.remark("note", f"a profile of {self.steps} steps: it proves these, and its times are not a run's")

    def _top(self) -> list[tuple[tuple[str, str], tuple[int, float]]]:
        """Each program once, from the plane that ran it most."""
        best: dict[str, tuple[tuple[str, str], tuple[int, float]]] = {}
        for key, value in self.programs.items():
            if key[1] not in best or best[key[1]][1][0] < value[0]:
                best[key[1]] = (key, value)
        return sorted(best.values(), key=lambda item: -item[1][1])[:20]

    def _runtime(self, reading: Reading) -> None:
        kinds = {plane.split(":")[1] for plane in self.planes if plane.count(":")}
        if "TPU" in kinds:
            reading.see("runtime", "pjrt-tpu", "kernels")
        elif "GPU" in kinds:
            reading.see("runtime", "cuda", "kernels")
        elif not self.planes and self.operations:
            reading.see("runtime", "cpu", "kernels")
