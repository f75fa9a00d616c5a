"""One run from its start to its receipt: journal, signals, probes, ending. The recorder's calls land here.

What can fail for the job's sake may not: a journal that cannot be written is given up, and the run goes on in memory.
"""

from __future__ import annotations

import os
import sys
from array import array
from contextlib import contextmanager

from receipts.emit import clock, ending, files, identity, run_record, termination
from receipts.emit.clock import perf_counter_ns
from receipts.emit.console import Console
from receipts.emit.contract import UnstatedFact, missing, unknown_lane
from receipts.emit.facts import CALLER, RECORDER
from receipts.emit.files import make_folder
from receipts.emit.journal import LAST, RunJournal
from receipts.emit.run_record import RunRecord
from receipts.emit.sight.witness import Traces
from receipts.emit.steps import APART, IN_MEMORY, StepTimer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from receipts.emit.facts import StatedFacts
    from receipts.emit.probing import Probing

# What the recorder states by itself when the run has ended.
OWN = ("measurement.step_flags", "run.exit_code", "run.finished")
# Less between two steps is not worth an event of the journal, which holds so many of them.
MIN_APART, MAX_APART = 1_000_000, 10_000
# Steps before the measured window of a job that names none: the first ones compile.
WARMUP = 5


class RunState:
    """The state behind a recorder. ``about`` holds what its caller named; ``written`` is the file at the end."""

    def __init__(
        self,
        about: dict[str, Any],
        *,
        out: str | None,
        journal: bool | str,
        keep_journal: bool,
        probes: bool | Sequence[Any],
        quiet: bool,
        deliver: bool | None,
        witness: bool | int | None = None,
    ) -> None:
        self.steps = StepTimer(self.more, self.after_step)
        self._out = out
        self._wanted = journal
        self._keep = keep_journal
        self._probes = probes
        self._asked = deliver
        self._console = Console(quiet=quiet)
        self.journal = RunJournal(self._console.say, self.fault)
        self._started = False
        self._over = False
        self._process = os.getpid()
        self._terminate = termination.Terminate(self._noted, self._died)
        self._probing: Probing | None = None
        self._more: list[Any] = []
        self.traces = Traces(self, witness if probes is not False else False)
        self._compiled = False
        self._job_clocks: clock.JobClocks | None = None
        self.written = ""
        self.record = RunRecord({"host": "", "lane": about["lane"]}, self.tell)
        self.record.facts.warn = self._console.warn
        self._about = about

    @property
    def running(self) -> bool:
        """Whether it has begun, and not ended."""
        return self._started and not self._over

    @property
    def facts(self) -> StatedFacts:
        """What is stated."""
        return self.record.facts

    def start(self, *probes: Any) -> None:
        """Find the place among the ranks, open the journal, take SIGTERM, ask the probes, and ``probes`` with them."""
        if self._started:
            return
        if (sight := sys.modules.get("receipts.emit.sight.arm")) is not None and sight.armed is not None:
            sight.armed.stand_back(self)

        self._started = True
        record, facts = self.record, self.facts
        record.place = identity.process_rank()
        stated = identity.first_frame(self._about, record.place, self.fault)
        record.head = {**stated, "out": os.path.abspath(self._receipt(stated["launch"]))}
        record.warmup = record.head["warmup"]
        with self._safely("the journal"):
            self._open_journal()
        self.journal.opened()
        facts.put("measurement.synchronisation", self._about["synchronisation"], CALLER)
        for name, value in identity.intended(os.environ).items():
            facts.put(f"path.intended.{name}", value, CALLER)
        for name, value in identity.job_of(os.environ).items():
            facts.put(f"run.job.{name}", value, RECORDER)
        facts.put("platform.python", identity.python_version(), RECORDER)
        with self._safely("the job's clocks"):
            self._job_clocks = clock.JobClocks()
        if complaint := unknown_lane(record.head["lane"]):
            self.fault(complaint)
        with self._safely("SIGTERM"):
            self._terminate.install()
        with self._safely("fork"):
            termination.call_in_children(self.forget)
        with self._safely("the end of the process"):
            termination.call_at_exit(self.leave)
        self._more += probes
        if self._probes is False and not self._more:
            return
        with self._safely("the probes"):
            from receipts.emit.probing import Probing

            lane, out = record.head["lane"], record.head["out"]
            self._probing = Probing(facts, record.place, self.steps, lane, record.warmup, out)
            self._probing.load(None if self._probes is True else self._probes or ())
            self._probing.load(self._more)
            self._probing.call("at_start")
            self._probing.call("at_phase", "post_init")

    def warm_up(self) -> None:
        """State the warm-up of a job that names neither one nor a window."""
        record = self.record
        if self._about["warmup"] is not None or record.warmup is not None or record.window != (None, None):
            return
        self._about["warmup"] = WARMUP
        if self._started:
            record.warmup = WARMUP
            self.tell(["warmup", WARMUP])
            if self._probing is not None:
                self._probing.warm_up(WARMUP)

    def watch(self, rec: Any, model: Any, optimizer: Any, tokens: int | None = None) -> None:
        """Watch the loop of a job; of no model those that are found. Raises RuntimeError where torch is not loaded."""
        from receipts.emit.sight.watch import Watch

        if (torch := sys.modules.get("torch")) is None:
            raise RuntimeError("torch is not imported, and what it trains is to be watched")
        models = tuple(model) if isinstance(model, list | tuple) else (model,)
        self.ask(Watch(torch, lambda: rec, models, () if optimizer is None else (optimizer,), tokens))

    def ask(self, probe: Any) -> None:
        """Ask a probe beside the recorder's own, from now on or from the start."""
        if self._probing is None and not self._started:
            self._more.append(probe)
        elif self._probing is not None:
            self._probing.load([probe])

    def withdraw(self) -> None:
        """End without a receipt: another recorder has this launch."""
        if not self._over:
            self._over = True
            with self._safely("SIGTERM"):
                self._terminate.remove()
            self._close_journal(nothing=True)

    def _join_ranks(self) -> None:
        """Take the place among ranks that the job has joined since its recorder began: by torch's group, or JAX's."""
        record, place = self.record, self.record.place
        torch = identity.torch_processes()
        rank, world = torch or identity.jax_processes() or (0, 1)
        if place.world > 1 or world == 1:
            return
        place.rank, place.world, place.launcher = rank, world, identity.TORCH if torch is not None else "jax"
        if torch is not None and not (self._about["launch"] or os.environ.get("RECEIPTS_LAUNCH")):
            record.head["launch"] = identity.agreed_in_group() or record.head["launch"]
        record.head["out"] = os.path.abspath(self._receipt(record.head["launch"]))
        self.tell(["place", rank, world, place.local_rank, place.launcher, place.host])
        self.tell(["launch", record.head["launch"]])
        if self._probing is not None:
            self._probing.join_ranks()

    def _receipt(self, launch: str) -> str:
        out = self._out or os.environ.get("RECEIPTS_OUT") or files.RECEIPT
        return files.receipt_path(out, launch, self.record.place)

    def _open_journal(self) -> None:
        about = self.record.head
        about["oom_kills"] = termination.oom_kills()
        if self._wanted is False:
            return
        folder = self._wanted if isinstance(self._wanted, str) else os.environ.get("RECEIPTS_JOURNAL")
        path = files.journal_path(about["out"], about["launch"], folder or None)
        if folder:
            make_folder(folder)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        journal = self.journal.open(path, about)
        record, before = self.record, self.steps.gauges
        for at in range(len(before)):
            journal.gauges[at] = before[at]
        self.steps.gauges = record.gauges = journal.gauges
        for series in (record.losses, record.norms):
            series.gauges, series.floats = journal.gauges, journal.floats

    def forget(self) -> None:
        """In a forked child: the run is the parent's. What the child records goes nowhere."""
        self._over = True
        self.journal.forget()
        steps = self.steps
        steps.view, steps.at, steps.limit = array("q"), 0, 0
        steps.gauges = array("q", bytes(8 * len(steps.gauges)))
        for series in (self.record.losses, self.record.norms):
            series.gauges = series.floats = None

    def leave(self) -> None:
        """The process ends, and the run had no end: that of the process is its own."""
        if not self._over:
            # The interpreter keeps here what it printed a traceback of.
            error = getattr(sys, "last_value", None)
            with self._safely("the end of the process"):
                self.finish(error, left=True)

    def tell(self, event: list[Any]) -> None:
        """Write an event to the journal; before it is open, keep it."""
        if not self._over:
            self.journal.tell(event)

    def more(self, ended: int) -> Any:
        """Room for further steps, in the journal, else in memory."""
        block: Any = self.journal.block(ended) or array("q", bytes(16 * IN_MEMORY))
        if not self._over:
            if self.record.blocks:
                words, _ = self.record.blocks[-1]
                self.record.blocks[-1] = (words, len(words) // 2 * 2)
            self.record.blocks.append((block, 0))
        return block

    def beside(self, ending: str) -> str:
        """The path of a new file beside the receipt, such as ``run.hlo.txt.gz``; an older launch keeps its own."""
        names = files.named_after(self.record.head["out"], self.record.head["launch"], ending)
        return next(name for name in names if not os.path.exists(name))

    def after_step(self, count: int) -> None:
        """After the first step, and after those that the hot path leaves to the slow one; its time is no step's."""
        begun = perf_counter_ns()
        if count == 1:
            with self._safely("the ranks"):
                self._join_ranks()
        if not self._over:
            self.traces.after_step(count)
        probing, warmup = self._probing, self.record.warmup or 0
        if probing is not None and not self._over:
            if count == 1:
                with self._safely("the probes"):
                    probing.call("at_phase", "post_step0")
            if count < warmup:
                self.steps.mark("warmup")  # a step that is flagged ends here, so that the last of the warm-up does
            elif count == warmup:
                with self._safely("the probes"):
                    probing.call("at_warm")
        self.apart(perf_counter_ns() - begun)

    def apart(self, spent: int) -> None:
        """Nanoseconds since the last step that are no wall time of the next one: a span's, the recorder's own."""
        if spent >= MIN_APART and not self._over:
            self.record.apart[self.steps.count] = self.record.apart.get(self.steps.count, 0) + spent
            if len(self.record.apart) <= MAX_APART:
                self.tell(["apart", self.steps.count, spent])

    def at_span(self, name: str, begins: bool, spent: int = 0) -> None:
        """Where a span begins or ends: probes leave out what is apart from the steps; the first compile is a phase."""
        self.apart(spent)
        probing = self._probing
        if probing is None or self._over:
            return
        with self._safely("the probes"):
            if name in APART:
                probing.call("at_span", begins)
            elif name == "compile" and not begins and not self._compiled:
                self._compiled = True
                probing.call("at_phase", "post_compile")

    def tokens(self, count: int) -> None:
        """From the next step on, a step has so many tokens."""
        self.record.tokens.append((self.steps.count, count))
        if len(self.record.tokens) <= 100:
            self.tell(["tokens", self.steps.count, count])

    def window(self, start: int, stop: int | None) -> None:
        """State the measured window. Raises ValueError for one without a step."""
        if start < 0 or (stop is not None and stop <= start):
            raise ValueError(f"from {start} to {stop} there is no step")
        self.record.window = (start, stop)
        self.tell(["window", start, stop])

    def fault(self, text: str) -> None:
        """A fault of the recorder or of its caller: a note in the receipt."""
        self.facts.fault(RECORDER, text[:1000])

    def lost(self, error: BaseException) -> None:
        """The receipt could not be made; the journal is still there."""
        what = "what the journal still has of it" if self.journal.lost else "it from the journal"
        hope = f"; receipts recover {self.journal.path} makes {what}" if self.journal.path else ""
        self._console.say(f"the receipt could not be written: {type(error).__name__}: {error}{hope}")

    @contextmanager
    def _safely(self, what: str) -> Iterator[None]:
        """What fails here is a fault of the recorder, and no exception of the job."""
        try:
            yield
        except Exception as error:
            self.fault(f"{what}: {type(error).__name__}: {error}")

    def _noted(self, number: int) -> None:
        if not self._over:
            self.record.signal = number
            self.tell(["signal", number, self.steps.count])
            with self._safely("SIGTERM"):
                self._stuck()

    def _died(self, number: int) -> None:
        with self._safely("SIGTERM"):
            self.finish(None, died=number)

    def _stuck(self) -> None:
        """Whether it was stuck when it was told to stop, or interrupted: what a job does after that takes its time."""
        self._count_steps()
        self.record.gauges = self.steps.gauges
        stalled = run_record.stall_of(self.record, perf_counter_ns())
        if stalled is not None:
            ending.hung(self, stalled)

    def finish(self, error: BaseException | None, *, died: int | None = None, left: bool = False) -> None:
        """End the run: say how, ask the probes a last time, write the receipt, and let go of the journal.

        ``died`` is the signal that ends the process, ``left`` whether the recorder was left for its end to finish.
        """
        if self._over or not self._started or os.getpid() != self._process:
            return
        record, steps = self.record, self.steps
        if died is None:
            for probe in self._more:
                if (settles := getattr(probe, "at_finish", None)) is not None:
                    with self._safely("the watch"):
                        settles()
            self.traces.stop()
        now = perf_counter_ns()
        if isinstance(error, KeyboardInterrupt):
            with self._safely("the ending"):
                self._stuck()
        record.last_ns, record.last_elapsed = now, clock.elapsed()
        record.finished = identity.utc_now()
        steps.gauges[LAST] = now
        record.gauges = steps.gauges
        self._count_steps()
        with self._safely("the ending"):
            ending.conclude(self, error, died)
        if ending.without_steps(self, left=left):
            self.withdraw()
            self._console.without_steps()
            return
        with self._safely("the job's clocks"):
            if self._job_clocks is not None:
                self.facts.put("measurement.job_clock_ratio", self._job_clocks.ratio(), RECORDER)
        with self._safely("what the job replaced"):
            if count := clock.replaced():
                name = "functions of the recorder that the job replaced"
                self.facts.add_counter({"name": name, "count": count, "expected": 0, "steps": None, "layers": None})
        if steps.around:
            self.fault(f"{steps.around} steps had other steps inside them, and did not count: the inner ones do")
        with self._safely("the ranks"):
            self._join_ranks()
        with self._safely("the probes"):
            if self._probing is not None and died is None:
                self._probing.finish()
        # What is read from devices now must not stand in the counters that the probes read.
        with self._safely("the losses"):
            ending.read_waiting(self)
        with self._safely("the files of evidence"):
            files.digest_evidence(self.facts.evidence, self.tell, self.fault)
        self.tell(["end", record.outcome, record.exit_code, record.finished, record.last_elapsed])
        steps.gauges[LAST] = now  # what probes and the watch did since is after the end
        self._over = True
        self._write()

    def _count_steps(self) -> None:
        blocks, steps = self.record.blocks, self.steps
        if blocks:
            blocks[-1] = (blocks[-1][0], steps.at)

    def missing(self) -> tuple[UnstatedFact, ...]:
        """What the lane asks for and nobody has stated."""
        unstated = missing(self.facts, self.record.head["lane"])
        own = OWN if self.record.steps or self.steps.count else ()
        if any(row.get("kind") in ("torch-profiler", "hlo") and row.get("sha256") for row in self.facts.evidence):
            own = (*own, "evidence", *(item.path for item in unstated if item.path.startswith("path.witnessed.")))
        return tuple(item for item in unstated if item.path not in own)

    def _write(self) -> None:
        from receipts.emit import document

        record, path = self.record, self.journal.path
        with self._safely("the journal"):
            if path and not self.journal.lost and os.path.getsize(path) <= files.MAX_DIGESTED_BYTES:
                record.journal = files.sha256(path)
        with self._safely("SIGTERM"):
            self._terminate.remove()
        try:
            self.written = files.write(document.file_text(record), record.head["out"], record.head["launch"])
        except Exception as error:
            self.lost(error)
            self._keep = True
        self._close_journal()
        if self.written:
            self._console.written(record, self.written, self.missing())
            with self._safely("the delivery"):
                from receipts.emit import delivery

                if url := delivery.server_url(self._asked):
                    self._console.say(delivery.deliver(url, self.written))

    def _close_journal(self, *, nothing: bool = False) -> None:
        from receipts.emit.document import MAX_STEPS

        path = self.journal.path
        if not path:
            return
        with self._safely("the journal"):
            self.journal.close()
        with self._safely("the journal"):
            if nothing or (self.written and not self._keep and self.record.steps <= MAX_STEPS):
                os.unlink(path)
