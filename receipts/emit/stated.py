"""What a probe may say, and what it may ask: the one door between a probe and the recorder."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Unpack

    from receipts.emit.facts import MemoryFields, StatedFacts
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
