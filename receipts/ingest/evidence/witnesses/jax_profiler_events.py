"""What the events of a JAX (XLA) profile prove, whichever file they come from: reads of arrays, programs, kernels.

A read of a live array is an event of the host's Python thread: ``np.asarray(jax.Array)`` and, with the Python tracer,
``$array.py:615 _value`` and ``$array.py:298 __float__``. No compile log tells it, and no transfer guard everywhere.
Device planes name what really ran: HLO operations on TPU, kernels on GPU.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import Any, Final

from receipts.ingest.evidence.witnesses import hlo_kernels
from receipts.ingest.reading import TRANSFERS, Reading, Tally

MAX_NAMES: Final = 20_000
MAX_DEPTH: Final = 1_000
MAX_PROGRAMS: Final = 20
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


class Profile:
    """Events of one profile; ``first`` and ``last`` are microseconds. ``cut`` says that some were lost."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.first, self.last = math.inf, 0.0
        self.cut = False
        # Executions and their times by plane and program, and calls of jitted functions.
        self._programs, self._spent = Tally[tuple[str, str]](MAX_NAMES), Counter[str]()
        self._dispatches = Tally[str](MAX_NAMES)
        # Reads of arrays by their kind, and by the function that asked for them.
        self._reads, self._callers = Counter[str](), Tally[str](MAX_NAMES)
        # The open calls of each thread with their ends.
        self._stacks: dict[Any, list[tuple[float, str]]] = {}
        self._exchanges = Counter[str]()
        self._devices: set[str] = set()
        self._operations = 0

    def add(self, plane: str, line: str, name: str, detail: str = "", count: int = 1, duration: float = 0.0) -> None:
        """``count`` events of one name; ``detail`` is the operation's own text, where the file keeps it."""
        self.reading.records += count
        if plane.startswith("/device:"):
            self._devices.add(plane[8:40].partition(":")[0])
            self._device(plane, line, name, detail, count, duration)
        elif (read := _READ.fullmatch(name)) is not None:
            self._reads[read[1] or "np.asarray"] += count
        elif (call := _CALL.fullmatch(name)) is not None:
            self._dispatches.add(call[1], times=count)
        elif (run := _EXECUTE.fullmatch(name)) is not None:
            self._program("/host", run[1], count, duration)
        elif name.startswith("ThunkExecutor::Execute"):
            self._operations += count

    def frame(self, thread: Any, name: str, start: float, end: float) -> None:
        """A call on a Python thread in the order of their starts; the tracer writes ``$file.py:LINE function``."""
        stack = self._stacks.setdefault(thread, []) if len(self._stacks) < MAX_NAMES else self._stacks.get(thread, [])
        while stack and stack[-1][0] <= start:
            stack.pop()
        # A read reads by way of others.
        if _READ.fullmatch(name) and not any(_READ.fullmatch(outer) for _, outer in stack):
            match = _FRAME.fullmatch(next((outer for _, outer in reversed(stack) if not _ARRAY.match(outer)), ""))
            where = f" in {match[2]} ({match[1]})" if match else ""
            self._callers.add(f"{name.rpartition(' ')[2]} of an array{where}")
        if len(stack) < MAX_DEPTH:
            stack.append((end, name))

    def _device(self, plane: str, line: str, name: str, detail: str, count: int, duration: float) -> None:
        if line == "XLA Modules":
            module = _MODULE.fullmatch(name)
            self._program(plane, module[1] if module else name[:200], count, duration)
            return
        if line in ("Steps", "XLA TraceMe", "Framework Name Scope", "Framework Ops", "Source code"):
            return
        self._operations += count
        if (exchange := _COLLECTIVE.match(name)) is not None:
            self._exchanges[exchange[1]] += count
        text = f"{name} {detail}"
        kernel = "cudnn_fmha" if _CUDNN.search(text) else "te_fused" if _TE.search(text) else None
        if kernel is None and _FLASH.search(text) is not None:
            kernel = hlo_kernels.attention(hlo_kernels.MOSAIC, text)
        if kernel is not None:
            self.reading.see("attention", kernel, "kernels", count=count)

    def _program(self, plane: str, name: str, count: int, duration: float) -> None:
        if self._programs.add((plane, name), times=count):
            self._spent[name] += duration  # type: ignore[assignment]

    def describe(self) -> None:
        """Put into the reading what the events prove."""
        reading, reads = self.reading, max(self._reads.values(), default=0)
        reading.see("framework", "jax", "kernels")
        self._runtime()
        # Each program as often as the plane that ran it most.
        runs = Counter[str]()
        for (_, name), count in self._programs.items():
            runs[name] = max(runs[name], count)
        reading.counters = {f"executions of {name}": runs[name] for name, _ in self._spent.most_common(MAX_PROGRAMS)}
        reading.counters |= self._exchanges
        reading.counters |= {f"reads by {name}": count for name, count in self._reads.items()}
        # The step is the program that took most of the time. Where no execution has a program's name, it is what is
        # called by the name of a step.
        called = [count for name, count in self._dispatches.items() if "step" in name or "train" in name]
        steps = runs[self._spent.most_common(1)[0][0]] if runs else max(called, default=None)
        # Python's dispatch is in the profile, so a read would be, too.
        if reads or (not self.cut and reading.records < MAX_EVENTS and self._dispatches and steps):
            reading.host_transfers, reading.steps_covered = reads, steps
            named = {name: count for name, count in self._reads.items() if name.startswith("__")} or self._reads
            causes = self._callers or {f"{name} of an array": count for name, count in named.items()}
            for cause, count in causes.items():
                reading.blame(TRANSFERS, cause, count)
        if steps is not None:
            reading.remark("note", f"a profile of {steps} steps: it proves these, and its times are not a run's")

    def _runtime(self) -> None:
        if "TPU" in self._devices:
            self.reading.see("runtime", "pjrt-tpu", "kernels")
        elif "GPU" in self._devices:
            self.reading.see("runtime", "cuda", "kernels")
        elif not self._devices and self._operations:
            self.reading.see("runtime", "cpu", "kernels")
