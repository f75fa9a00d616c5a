"""Runs the probes: each caught, timed, and given up when it takes too long."""

from __future__ import annotations

import time

from receipts.emit.stated import ProbeOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType
    from typing import Any

    from receipts.emit.facts import StatedFacts
    from receipts.emit.place import ProcessRank
    from receipts.emit.steps import StepTimer

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

    def __repr__(self) -> str:
        return f"Probing({len(self._stated)} probes, {sum(self.seconds.values()):.3f} s)"

    def load(self, given: Sequence[Any] | None = None) -> None:
        """Import the probes of this package, or take those that are given, where this rank is to run them."""
        modules = list(given) if given is not None else self._own()
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

    def _own(self) -> list[ModuleType]:
        import importlib

        from receipts.emit import probes

        modules = []
        for name in probes.NAMES:
            try:
                modules.append(importlib.import_module(f"receipts.emit.probes.{name}"))
            except Exception as error:
                self._facts.fault(name, f"the probe does not load: {type(error).__name__}: {error}")
        return modules

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
                self._beside(function, stated, arguments, limit, what)
            else:
                self._here(function, stated, arguments, what)
            took = time.perf_counter() - begun
            self._left -= took
            self.seconds[stated.probe] = self.seconds.get(stated.probe, 0.0) + took
            if took > limit + 0.05:
                self._facts.fault(stated.probe, f"{what} took {took:.1f} s, and {limit:.1f} s were its limit")

    def _here(self, function: Any, stated: ProbeOutput, arguments: tuple[Any, ...], what: str) -> None:
        try:
            function(stated, *arguments)
        except Exception as error:
            self._facts.fault(stated.probe, f"{what}: {type(error).__name__}: {error}"[:500])

    def _beside(self, function: Any, stated: ProbeOutput, arguments: tuple[Any, ...], limit: float, what: str) -> None:
        """In a thread that may be left behind: what waits for a disk or a subprocess must not hold the job."""
        import threading

        thread = threading.Thread(
            target=self._here, args=(function, stated, arguments, what), name=f"receipts-{stated.probe}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError as error:  # no threads left, or the interpreter is ending
            self._facts.fault(stated.probe, f"{what}: {error}")
            return
        thread.join(limit)
        if thread.is_alive():
            stated.silence()
            self._facts.fault(stated.probe, f"{what} was given up after {limit:.1f} s")
