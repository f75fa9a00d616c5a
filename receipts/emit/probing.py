"""How probes are run, each caught, timed and given up when it takes too long; and what a probe may say and ask.

`ProbeOutput` is the one door between a probe and the recorder.
"""

from __future__ import annotations

import time

from receipts.emit.facts import RECORDER

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType
    from typing import Any, Unpack

    from receipts.emit.facts import MemoryFields, StatedFacts
    from receipts.emit.identity import ProcessRank
    from receipts.emit.steps import StepTimer


PHASES = ("post_init", "post_compile", "post_step0", "steady")


class ProbeOutput:
    """Where one probe puts what it read. Every text is looked through for secrets on its way in.

    The caller's own statements win over a probe's, and of two probes the first wins; a value that disagrees with
    what is kept becomes a note. A path that does not exist, or a value that its leaf cannot hold, becomes a note too:
    nothing here raises for its input.

    ``rank``, ``local_rank`` and ``world`` are the process's place in the launch, ``warmup`` the steps that the caller
    calls warm-up (None where it does not say), ``out`` the path of the receipt that will be.
    ``kept`` is the probe's own, and lives from its ``at_start`` to its ``at_end``: listeners, baselines of counters.
    """

    __slots__ = (
        "_deadline",
        "_facts",
        "_steps",
        "kept",
        "lane",
        "local_rank",
        "out",
        "probe",
        "rank",
        "warmup",
        "world",
    )

    def __init__(
        self,
        facts: StatedFacts,
        probe: str,
        *,
        lane: str = "",
        rank: int = 0,
        local_rank: int = 0,
        world: int = 1,
        warmup: int | None = None,
        steps: StepTimer | None = None,
        out: str = "",
        limit_seconds: float = 5.0,
    ) -> None:
        self._facts = facts
        self._steps = steps
        self._deadline = time.monotonic() + limit_seconds
        self.probe = probe
        self.lane = lane
        self.rank = rank
        self.local_rank = local_rank
        self.world = world
        self.warmup = warmup
        self.out = out
        self.kept: dict[str, Any] = {}

    def put(self, path: str, value: Any) -> None:
        """State a leaf by its dotted path (`platform.cuda`, `path.witnessed.attention`); None is skipped.

        An entry of an open map is one too: `features.fp8`. Flags and wheels have `flag` and `wheel`, rows of lists
        `memory_row`, `counter` and `evidence`.
        """
        self._facts.put(path, value, self.probe)

    def get(self, path: str) -> Any:
        """The value at a path now, from any source; None without one."""
        return self._facts.get(path)

    def owns(self, path: str) -> bool:
        """Whether this probe stated a leaf."""
        return self._facts.sources.get(path) == self.probe

    def flag(self, name: str, value: Any, *, before_runtime: bool | None = None) -> None:
        """State one flag or sub-flag (`XLA_FLAGS.xla_gpu_autotune_level`), and whether the runtime came after it."""
        entry = value if before_runtime is None else {"value": value, "before_runtime": before_runtime}
        self._facts.put_entry("flags", name, entry, self.probe)

    def wheel(self, name: str, version: str, *, digest: str | None = None, editable: bool | None = None) -> None:
        """State one installed distribution, its digest, and whether a checkout shadows it."""
        if digest is None and editable is None:
            self._facts.put_entry("wheels", name, version, self.probe)
            return
        entry = {"version": version, "digest": digest, "editable": editable}
        present = {key: value for key, value in entry.items() if value is not None}
        self._facts.put_entry("wheels", name, present, self.probe)

    def complete(self, name: str) -> None:
        """Say that the whole of an open map was captured: `flags`, `wheels`, `patches`, `features`."""
        self._facts.put_entry(name, "complete", True, self.probe)

    def inputs(self, name: str, entries: Mapping[str, Any]) -> int:
        """State entries of a map of inputs (`options`, `environment`, …). How many are beyond the bounds."""
        return self._facts.put_inputs(f"inputs.{name}", entries, self.probe)

    def file(self, row: Mapping[str, Any]) -> None:
        """State a file that an option names; the same one again takes the place of what was said of it."""
        self._facts.add_file(row, self.probe)

    def memory_row(self, phase: str, **row: Unpack[MemoryFields]) -> None:
        """State one chip's memory in one of `PHASES`, bytes.

        ``chip`` is the ordinal over all hosts, where the runtime has one (`jax.Device.id`). Otherwise ``device`` is
        the ordinal that this process sees (`cuda:0`), and the merge of ranks finds the chip. Only devices that this
        process used; of two rows of one device and phase the later is kept.
        """
        self._facts.add_memory({"phase": phase, **row}, self.probe)

    def counter(
        self,
        name: str,
        count: int,
        *,
        expected: int | None = None,
        steps: int | None = None,
        layers: int | None = None,
    ) -> None:
        """State a path counter (`measurement.path_counters`); for one name the latest is kept."""
        row = {"name": name, "count": count, "expected": expected, "steps": steps, "layers": layers}
        self._facts.add_counter(row, self.probe)

    def evidence(
        self,
        kind: str,
        *,
        level: str | None = None,
        producer: str | None = None,
        version: str | None = None,
        uri: str | None = None,
        sha256: str | None = None,
        observed: Mapping[str, bool | int | float | str] | None = None,
    ) -> None:
        """State what was read and what it can prove: ``level`` is `intent`, `backend` or `kernels`."""
        row = {
            "kind": kind,
            "producer": producer,
            "version": version,
            "uri": uri,
            "sha256": sha256,
            "level": level,
            "observed": dict(observed) if observed else None,
        }
        self._facts.add_evidence(row, self.probe)

    def note(self, text: str | Sequence[str]) -> None:
        """Say something for people; it is kept under `notes` with the probe's name."""
        for line in [text] if isinstance(text, str) else text:
            self._facts.add_note(self.probe, line)

    def fault(self, text: str) -> None:
        """Say that something went wrong here: a note among the recorder's own, and a line on standard error."""
        self._facts.fault(self.probe, text)

    @property
    def steps(self) -> int:
        """Steps that have ended by now; a listener may ask while one is running."""
        return self._steps.count if self._steps is not None else 0

    @property
    def inside(self) -> bool:
        """Whether a step is running now, and no evaluation or checkpoint within it."""
        return self._steps is not None and self._steps.working

    def mark_step(self, flag: str) -> None:
        """Flag the step that is running, or comes next: `compile` and `recompile` as a listener sees them."""
        if self._steps is not None:
            self._steps.mark(flag)

    def seconds_left(self) -> float:
        """Seconds until the probe's time is over (never negative): the limit to give a subprocess, or a loop."""
        return max(0.0, self._deadline - time.monotonic())

    def renew(self, limit_seconds: float) -> None:
        """Give the probe its time again; the recorder does so before each call."""
        self._deadline = time.monotonic() + limit_seconds

    def silence(self) -> None:
        """Cut a probe off that was given up: what it says from now on goes nowhere."""
        self._facts = type(self._facts)()
        self._steps = None

    def __repr__(self) -> str:
        return f"ProbeOutput(probe={self.probe!r}, rank={self.rank}, world={self.world}, steps={self.steps})"


LIMIT_SECONDS = 5.0
ALL_SECONDS = 20.0


class Probing:
    """The probes of one run, each with its own `ProbeOutput`. Nothing here raises."""

    def __init__(
        self, facts: StatedFacts, place: ProcessRank, steps: StepTimer, lane: str, warmup: int | None, out: str = ""
    ) -> None:
        self._facts = facts
        self._out = out
        self._place = place
        self._steps = steps
        self._lane = lane
        self._warmup = warmup
        self._stated: list[tuple[ModuleType, ProbeOutput]] = []
        self._left = ALL_SECONDS
        self.seconds: dict[str, float] = {}

    def load(self, given: Sequence[Any] | None = None) -> None:
        """Import the probes of this package, or take those that are given, where this rank is to run them.

        Those that come later are asked first: what they know of the job is more.
        """
        before, self._stated = self._stated, []
        modules: list[Any] = list(given or ())
        if given is None:
            import importlib

            from receipts.emit import probes

            for name in probes.NAMES:
                try:
                    modules.append(importlib.import_module(f"receipts.emit.probes.{name}"))
                except Exception as error:
                    self._facts.fault(name, f"the probe does not load: {type(error).__name__}: {error}")
        for module in modules:
            ranks = getattr(module, "RANKS", "all")
            if (ranks == "first" and self._place.rank) or (ranks == "host" and self._place.local_rank):
                continue
            stated = ProbeOutput(
                self._facts,
                str(getattr(module, "NAME", getattr(module, "__name__", "probe"))),
                lane=self._lane,
                rank=self._place.rank,
                local_rank=self._place.local_rank,
                world=self._place.world,
                warmup=self._warmup,
                steps=self._steps,
                out=self._out,
            )
            self._stated.append((module, stated))
        self._stated += before

    def warm_up(self, steps: int) -> None:
        """Take a warm-up that was stated since the start."""
        self._warmup = steps
        for _, stated in self._stated:
            stated.warmup = steps

    def join_ranks(self) -> None:
        """Take the place among ranks that the job has joined since the start."""
        for _, stated in self._stated:
            stated.rank, stated.world = self._place.rank, self._place.world

    def call(self, what: str, *arguments: Any) -> None:
        """Call ``at_start``, ``at_phase`` or ``at_end`` of every probe that has it."""
        for module, stated in self._stated:
            function = getattr(module, what, None)
            if function is None:
                continue
            if self._left <= 0:
                self._facts.fault(stated.probe, f"{what} was left out: the probes took more than {ALL_SECONDS:g} s")
                continue
            limit = min(self._left, float(getattr(module, "LIMIT_SECONDS", LIMIT_SECONDS)))
            stated.renew(limit)
            begun = time.perf_counter()
            if getattr(module, "MAY_BLOCK", False):
                import threading

                # In a thread that may be left behind: what waits for a disk or a subprocess must not hold the job.
                given, name = (function, stated, arguments, what), f"receipts-{stated.probe}"
                thread = threading.Thread(target=self._here, args=given, name=name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # no threads left, or the interpreter is ending
                    self._facts.fault(stated.probe, f"{what}: {error}")
                else:
                    thread.join(limit)
                    if thread.is_alive():
                        stated.silence()
                        self._facts.fault(stated.probe, f"{what} was given up after {limit:.1f} s")
            else:
                self._here(function, stated, arguments, what)
            took = time.perf_counter() - begun
            self._left -= took
            self.seconds[stated.probe] = self.seconds.get(stated.probe, 0.0) + took
            if took > limit + 0.05:
                self._facts.fault(stated.probe, f"{what} took {took:.1f} s, and {limit:.1f} s were its limit")

    def finish(self) -> None:
        """Ask them a last time, and note which took long."""
        self.call("at_phase", "steady")
        self.call("at_end")
        slow = sorted((name, seconds) for name, seconds in self.seconds.items() if seconds >= 0.001)
        if slow:
            times = ", ".join(f"{name} {seconds:.3f}" for name, seconds in slow)
            self._facts.add_note(RECORDER, f"seconds that the probes took: {times}")

    def _here(self, function: Any, stated: ProbeOutput, arguments: tuple[Any, ...], what: str) -> None:
        try:
            function(stated, *arguments)
        except Exception as error:
            self._facts.fault(stated.probe, f"{what}: {type(error).__name__}: {error}"[:500])
