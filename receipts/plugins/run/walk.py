"""The walk down the ladder: attempt, receipt, and the next rung, until one works or none is left.

A failed attempt is tried smaller only where no work of the run is thrown away by it. A fallback belongs to start-up
and to the first window that compiles; later it would hide a run that outgrew its chips (rule R413).
"""

from __future__ import annotations

import json
import platform
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.axes.shape import sign
from receipts.base import files
from receipts.base.errors import InputError, StoreError
from receipts.ingest.assembly import pretty
from receipts.plugins.run.attempt import Attempt, AttemptFolder, Tree, complete, step_down
from receipts.plugins.run.command import exit_code
from receipts.plugins.run.launcher import gather
from receipts.questions.ladder import Rung, next_rung
from receipts.questions.plan import before_run, parse_plan, plan_of
from receipts.questions.preflight import PreflightAnswer, PreflightEvidence, preflight
from receipts.receipt import Document, Parsed, Role, parse
from receipts.receipt.leaves import find_leaf

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.cli.session import Session
    from receipts.plugins.run.launcher import Launcher
    from receipts.plugins.run.verbs import RunReporter

WINDOWS: Final = ("startup", "compile", "first_window")
HOST: Final = "cpu"  # the accelerator whose memory is the host's own


def may_retry(receipt: Parsed) -> tuple[bool, str]:
    """Whether a smaller plan may follow this attempt, by its own receipt, and why."""
    run, failure = receipt.receipt.run, receipt.receipt.failure
    if run.outcome == "ok":
        return False, "it worked"
    if run.outcome != "oom" or failure is None:
        return False, f"it ended as {run.outcome}, and a smaller plan is the answer to memory alone"
    if failure.class_ == "foreign_process":
        return False, "another process held the memory: free the chip and launch the same plan again"
    if failure.class_ == "host" and receipt.stated.get("hardware.accelerator") != HOST:
        return False, "the host's memory ran out, and the ladder is the chips'"
    phase = failure.phase or "unknown"
    if phase in WINDOWS:
        return True, f"it ran out of memory in {phase.replace('_', ' ')}"
    if phase == "unknown":
        return False, "nothing tells in which phase it ran out, so that it may have been at work; record its steps"
    return False, "it ran out at work, behind the first window that compiles: a smaller plan would hide that"


class Walk:
    """One walk down the ladder of a plan: at most ``smaller`` plans follow it; with ``force`` no preflight is asked."""

    def __init__(
        self,
        session: Session,
        folder: AttemptFolder,
        plan: Parsed,
        launcher: Launcher,
        reporter: RunReporter,
        smaller: int | None,
        *,
        force: bool,
    ) -> None:
        self._session, self._folder, self._plan = session, folder, plan
        self._launcher, self._reporter = launcher, reporter
        self._smaller, self._force = smaller, force
        self._lane = session.rulebook.lanes.of(plan.receipt.run.lane)
        # A recorder states a flag with where it was read; a rung states its value alone.
        self._settings = _settings(plan_of(before_run(plan), plan.source))

    def run(self) -> int:
        """Launch the plan, or go on where a walk was cut off, and step down while memory is what runs out.

        Gives the code of the last command, 1 where nothing was launched.
        """
        folder = self._folder
        if not folder.attempts:
            # The first attempt is of the plan, or of the next rung where that is known or predicted to fail.
            raw, rung, answer = self._plan.raw, None, self._preflight(self._plan)
            if answer.status in ("failed", "predicted"):
                rung = next_rung(self._plan, self._lane, self.ask, answer)
                self._reporter.step(None, f"not launched: {answer.why}", rung=rung)
                if rung.plan is None:
                    return self._over(1)
                raw = rung.plan
            folder.close(None, _new(1, str(uuid.uuid4()), rung), raw)
        while True:
            attempt = folder.attempts[-1]
            if attempt.receipt is None:
                self._attempt()
            if len(folder.attempts) == attempt.number:
                code = folder.attempts[-1].exit_code
                return self._over(1 if code is None else code if code >= 0 else 128 - code)

    def _over(self, code: int) -> int:
        self._folder.over = True
        self._folder.save()
        return code

    def _preflight(self, plan: Parsed) -> PreflightAnswer:
        if self._force:
            return PreflightAnswer("unknown", "not asked: --force", plan.name, "")
        with self._session.open_store() as store:  # for each question: a launch may last for days
            return preflight(plan, self._lane, store)

    def ask(self, other: Parsed) -> PreflightAnswer:
        """The preflight of a rung, which also knows what the command cannot be given."""
        before, after = self._settings, _settings(other)
        changed = (path for path in {*before, *after} if before.get(path) != after.get(path))
        if untaken := sorted(self._launcher.words.untaken(changed)):
            wanted = ", ".join(f"{{{path}}}" for path in untaken)
            return PreflightAnswer("predicted", f"the command takes no {wanted}", other.name, "")
        return self._preflight(other)

    def _attempt(self) -> None:
        """Run the last attempt to its receipt, and write down the one that follows it, if any does."""
        folder = self._folder
        plan = parse_plan(Document(folder.plan(folder.attempts[-1]).read_bytes(), "plan"))
        attempt = self._ended()
        place = folder.receipt(attempt)
        if place.exists():  # as it was written before: a runner was killed behind that
            tree: Tree = json.loads(place.read_bytes())
        else:
            left = gather(self._session, folder, attempt, self._lane, self._launcher)
            tree = complete(left, plan, attempt, folder.command, platform.node())
        receipt, fault = _parsed(tree)
        may, why = may_retry(receipt) if receipt is not None else (False, "no receipt could be made of it")
        if may and self._smaller is not None and attempt.number > self._smaller:
            may, why = False, f"{why}; {self._smaller} retries are what was allowed"
        rung, following = None, None
        if may and receipt is not None:
            places = [own for item in folder.attempts if (own := folder.receipt(item)).exists()]
            earlier = [parse(Document(own.read_bytes(), str(own))) for own in places]
            rung = next_rung(plan, self._lane, self.ask, _answer(receipt, self._lane), [*earlier, receipt])
            if rung.plan is not None:
                # The same name again where a runner that was killed is taken up.
                name = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{attempt.launch} and then"))
                following = _new(attempt.number + 1, name, rung)
            reason = rung.reason if following else "no rung is left"
            step_down(tree, following.launch if following else attempt.launch, rung.name, reason)
            receipt, fault = _parsed(tree)
        kept, unstored = self._keep(receipt, tree, attempt)
        folder.close(kept, following, rung.plan if rung else None)
        self._reporter.step(kept, why, receipt, rung, fault or unstored)

    def _ended(self) -> Attempt:
        """The attempt with how its command ended, run now unless it had been before."""
        folder = self._folder
        attempt = folder.attempts[-1]
        if attempt.started is None:
            attempt = folder.change(attempt, started=_iso(datetime.now(UTC)))
            self._reporter.begins(attempt)
            ended = self._launcher.everywhere(attempt)
            finished = _iso(datetime.now(UTC))
            return folder.change(folder.attempts[-1], finished=finished, exit_code=ended.exit_code, ended_by=ended.by)
        if attempt.finished is None:
            # The runner was killed; the command ended without it.
            log = folder.log(attempt)
            at = datetime.fromtimestamp(log.stat().st_mtime, UTC) if log.exists() else datetime.now(UTC)
            code = exit_code(log)
            return folder.change(attempt, finished=_iso(at), exit_code=137 if code is None else code)
        return attempt

    def _keep(self, receipt: Parsed | None, tree: Tree, attempt: Attempt) -> tuple[Attempt, str | None]:
        """Write the receipt into the attempt's folder and into the store; why it is not stored."""
        raw = receipt.raw if receipt is not None else pretty(tree)
        place = self._folder.receipt(attempt)
        files.write(place, raw, over=True)
        fault = None
        if receipt is not None:
            try:
                if (error := self._session.submit_one(Document(raw, str(place))).error) is not None:
                    raise error
            except (StoreError, InputError) as failed:
                fault = str(failed)
        outcome = tree.get("run", {}).get("outcome")
        stored = receipt is not None and fault is None
        return replace(attempt, receipt=receipt.id if receipt else "none", outcome=outcome, stored=stored), fault


def _new(number: int, launch: str, rung: Rung | None) -> Attempt:
    return Attempt(number, launch, rung.name if rung else None, rung.reason if rung else None)


def _parsed(tree: Tree) -> tuple[Parsed | None, str | None]:
    try:
        return parse(Document(pretty(tree), "receipt")), None
    except InputError as error:
        return None, str(error)


def _settings(plan: Parsed) -> dict[str, Any]:
    """What a plan decides: its axis leaves, as they are stated."""
    return {path: value for path, value in plan.stated.items() if (leaf := find_leaf(path)) and leaf.role is Role.AXIS}


def _answer(receipt: Parsed, lane: Lane) -> PreflightAnswer:
    """What the attempt itself shows of its plan, for the choice of the rung."""
    run, failure = receipt.receipt.run, receipt.receipt.failure
    by = PreflightEvidence(
        id=receipt.id,
        name=receipt.name,
        outcome=run.outcome,
        provenance=run.provenance,
        started=run.started,
        phase=failure.phase if failure else None,
        class_=failure.class_ if failure else None,
        requested_bytes=failure.requested_bytes if failure else None,
        limit_bytes=failure.limit_bytes if failure else None,
    )
    return PreflightAnswer("failed", "it has just failed", receipt.name, sign(receipt, lane).signature, by=by, failed=1)


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
