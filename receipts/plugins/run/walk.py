"""The walk down the ladder: attempt, receipt, and the next rung, until one works or none is left.

A failed attempt is tried smaller only where no work of the run is thrown away by it. A fallback belongs to start-up
and to the first window that compiles; later it would hide a run that outgrew its chips (rule R413).
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from receipts.axes.lane import Lane
from receipts.axes.signature import sign
from receipts.base import files
from receipts.base.errors import InputError, StoreError
from receipts.plugins.run.command import CommandWords, Ended, exit_code
from receipts.plugins.run.document import Tree, complete, step_down
from receipts.plugins.run.folder import Attempt, AttemptFolder
from receipts.questions.plan import before_run, parse_plan, plan_of
from receipts.questions.preflight import PreflightAnswer, PreflightEvidence, Rung, next_rung
from receipts.receipt import Document, Parsed, Role, parse
from receipts.receipt.leaves import find_leaf

WINDOWS: Final = ("startup", "compile", "first_window")
HOST: Final = "cpu"  # the accelerator whose memory is the host's own


class Retry(NamedTuple):
    """``may`` with the reason."""

    may: bool
    why: str


def may_retry(receipt: Parsed) -> Retry:
    """Whether a smaller plan may follow this attempt, by its own receipt."""
    run, failure = receipt.receipt.run, receipt.receipt.failure
    if run.outcome == "ok":
        return Retry(False, "it worked")
    if run.outcome != "oom" or failure is None:
        return Retry(False, f"it ended as {run.outcome}, and a smaller plan is the answer to memory alone")
    if failure.class_ == "foreign_process":
        return Retry(False, "another process held the memory: free the chip and launch the same plan again")
    if failure.class_ == "host" and receipt.stated.get("hardware.accelerator") != HOST:
        return Retry(False, "the host's memory ran out, and the ladder is the chips'")
    phase = failure.phase or "unknown"
    if phase in WINDOWS:
        return Retry(True, f"it ran out of memory in {phase.replace('_', ' ')}")
    if phase == "unknown":
        return Retry(
            False, "nothing tells in which phase it ran out, so that it may have been at work; record its steps"
        )
    return Retry(False, "it ran out at work, behind the first window that compiles: a smaller plan would hide that")


@dataclass(frozen=True)
class RunTools:
    """What a walk needs of the world around it.

    ``launch`` runs an attempt's command and waits for it; ``gather`` reads what it left behind; ``encode`` makes bytes
    of a document; ``submit`` keeps it and gives its id (StoreError where it cannot); ``ask`` is the preflight; ``tell``
    hears of every step; ``name`` makes a launch's identity.
    """

    launch: Callable[[Attempt], Ended]
    gather: Callable[[Attempt], Tree]
    encode: Callable[[Tree], bytes]
    submit: Callable[[Document], str]
    ask: Callable[[Parsed], PreflightAnswer]
    tell: Callable[[RunStep], None]
    name: Callable[[], str]
    host: str


@dataclass(frozen=True)
class RunStep:
    """What has just been decided: an attempt with its receipt, why it is the last or not, and the rung that follows.

    ``attempt`` is None where a plan was passed over before anything was launched, ``fault`` says why a receipt could
    not be stored.
    """

    attempt: Attempt | None
    why: str
    receipt: Parsed | None = None
    rung: Rung | None = None
    fault: str | None = None


class RunOutcome(NamedTuple):
    """How a walk ended: the last attempt, and the code of its command."""

    attempt: Attempt | None
    code: int


def walk(
    plan: Parsed, lane: Lane, folder: AttemptFolder, words: CommandWords, tools: RunTools, most: int | None
) -> RunOutcome:
    """Launch the plan, or go on where a walk was cut off, and step down the ladder while memory is what runs out."""
    asking = _asking(plan, words, tools)
    if not folder.attempts:
        plan_now, rung = _first(plan, lane, asking, tools)
        if plan_now is None:
            return _over(folder, None)
        folder.close(None, _new(1, tools.name(), rung), plan_now)
    while True:
        attempt = folder.attempts[-1]
        if attempt.receipt is None:
            plan_now = folder.plan(attempt).read_bytes()
            _attempt(parse_plan(Document(plan_now, "plan")), lane, folder, words, tools, asking, most)
        if len(folder.attempts) == attempt.number:
            return _over(folder, attempt.number)


def _over(folder: AttemptFolder, number: int | None) -> RunOutcome:
    folder.over = True
    folder.save()
    if number is None:
        return RunOutcome(None, 1)
    last = folder.attempts[number - 1]
    code = last.exit_code if last.exit_code is not None else 1
    return RunOutcome(last, code if code >= 0 else 128 - code)


def _first(
    plan: Parsed, lane: Lane, ask: Callable[[Parsed], PreflightAnswer], tools: RunTools
) -> tuple[bytes | None, Rung | None]:
    """The plan to begin with: the one given, or the next rung where it is known or predicted to fail."""
    answer = tools.ask(plan)
    if answer.status not in ("failed", "predicted"):
        return plan.raw, None
    rung = next_rung(plan, lane, ask, answer)
    tools.tell(RunStep(None, f"not launched: {answer.why}", rung=rung))
    return rung.plan, rung


def _new(number: int, launch: str, rung: Rung | None) -> Attempt:
    return Attempt(number, launch, rung.name if rung else None, rung.reason if rung else None)


def _asking(plan: Parsed, words: CommandWords, tools: RunTools) -> Callable[[Parsed], PreflightAnswer]:
    """The preflight, which also knows what the command cannot be told."""

    # A recorder states a flag with where it was read; a rung states its value alone.
    before = _settings(plan_of(before_run(plan), plan.source))

    def ask(other: Parsed) -> PreflightAnswer:
        after = _settings(other)
        untaken = sorted(words.untaken(path for path in {*before, *after} if before.get(path) != after.get(path)))
        if untaken:
            wanted = ", ".join(f"{{{path}}}" for path in untaken)
            return PreflightAnswer("predicted", f"the command takes no {wanted}", other.name, "")
        return tools.ask(other)

    return ask


def _attempt(
    plan: Parsed,
    lane: Lane,
    folder: AttemptFolder,
    words: CommandWords,
    tools: RunTools,
    ask: Callable[[Parsed], PreflightAnswer],
    most: int | None,
) -> None:
    """Run one attempt to its receipt, and write down the one that follows it, if any does."""
    attempt = _ended(folder, tools)
    tree = _document(plan, attempt, folder, tools)
    receipt, fault = _parsed(tree, tools)
    retry = may_retry(receipt) if receipt is not None else Retry(False, "no receipt could be made of it")
    if retry.may and most is not None and attempt.number > most:
        retry = Retry(False, f"{retry.why}; {most} retries are what was allowed")
    rung, following = None, None
    if retry.may and receipt is not None:
        rung = next_rung(plan, lane, ask, _answer(receipt, lane), [*_receipts(folder), receipt])
        if rung.plan is not None:
            following = _new(attempt.number + 1, _after(attempt), rung)
        reason = rung.reason if following else "no rung is left"
        step_down(tree, following.launch if following else attempt.launch, rung.name, reason)
        receipt, fault = _parsed(tree, tools)
    kept, unstored = _keep(receipt, tree, attempt, folder, tools)
    folder.close(kept, following, rung.plan if rung else None)
    tools.tell(RunStep(kept, retry.why, receipt, rung, fault or unstored))


def _receipts(folder: AttemptFolder) -> Iterator[Parsed]:
    """The receipts of the attempts so far."""
    for attempt in folder.attempts:
        if (place := folder.receipt(attempt)).exists():
            yield parse(Document(place.read_bytes(), str(place)))


def _after(attempt: Attempt) -> str:
    """The identity of the launch that follows one: the same again where a runner that was killed is taken up."""
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{attempt.launch} and then"))


def _document(plan: Parsed, attempt: Attempt, folder: AttemptFolder, tools: RunTools) -> Tree:
    """The attempt's document: as it was written before, where a runner was killed behind that."""
    place = folder.receipt(attempt)
    if place.exists():
        document: Tree = json.loads(place.read_bytes())
        return document
    return complete(tools.gather(attempt), plan, attempt, folder.command, tools.host)


def _ended(folder: AttemptFolder, tools: RunTools) -> Attempt:
    """The attempt with how its command ended, run now unless it had been before."""
    attempt = folder.attempts[-1]
    if attempt.started is None:
        attempt = folder.change(attempt, started=_now())
        ended = tools.launch(attempt)
        attempt = folder.attempts[-1]
        return folder.change(attempt, finished=_now(), exit_code=ended.exit_code, ended_by=ended.by)
    if attempt.finished is None:
        # The runner was killed; the command ended without it.
        log = folder.log(attempt)
        at = datetime.fromtimestamp(log.stat().st_mtime, UTC) if log.exists() else datetime.now(UTC)
        code = exit_code(log)
        return folder.change(attempt, finished=_iso(at), exit_code=137 if code is None else code)
    return attempt


def _parsed(tree: Tree, tools: RunTools) -> tuple[Parsed | None, str | None]:
    try:
        return parse(Document(tools.encode(tree), "receipt")), None
    except InputError as error:
        return None, str(error)


def _keep(
    receipt: Parsed | None, tree: Tree, attempt: Attempt, folder: AttemptFolder, tools: RunTools
) -> tuple[Attempt, str | None]:
    """Write the receipt into the attempt's folder and into the store."""
    raw = receipt.raw if receipt is not None else tools.encode(tree)
    place = folder.receipt(attempt)
    files.write(place, raw, over=True)
    fault = None
    if receipt is not None:
        try:
            tools.submit(Document(raw, str(place)))
        except (StoreError, InputError) as error:
            fault = str(error)
    outcome = tree.get("run", {}).get("outcome")
    receipt_id = receipt.id if receipt is not None else "none"
    stored = receipt is not None and fault is None
    return replace(attempt, receipt=receipt_id, outcome=outcome, stored=stored), fault


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


def _now() -> str:
    return _iso(datetime.now(UTC))


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
