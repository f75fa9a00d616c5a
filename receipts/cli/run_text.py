"""The words of ``receipts run``: each attempt as it begins and ends, and what the walk came to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from receipts.base.units import amount, counted
from receipts.cli import output

if TYPE_CHECKING:
    from receipts.questions.preflight import Rung
    from receipts.workflows.run.attempt import Attempt, AttemptFolder
    from receipts.workflows.run.loop import RunOutcome, RunStep


class RunReporter:
    """Reports a walk on standard error, where the command's own lines do not go."""

    def __init__(self, folder: AttemptFolder, as_json: bool) -> None:
        self._folder = folder
        self._as_json = as_json
        self._faults: list[str] = []

    def __repr__(self) -> str:
        return f"RunReporter({self._folder!r})"

    def begins(self, attempt: Attempt) -> None:
        """An attempt is about to be launched."""
        rung = f" · {_words(attempt.rung)}" if attempt.rung else ""
        output.note(f"attempt {attempt.number}{rung} · launch {attempt.launch[:12]} · {self._folder.of(attempt)}")

    def step(self, step: RunStep) -> None:
        """An attempt has its receipt, or a plan was passed over."""
        if step.attempt is None:
            output.note(step.why)
        else:
            attempt = step.attempt
            stored = f"stored {str(attempt.receipt)[:12]}" if attempt.stored else "not stored"
            output.note(f"attempt {attempt.number}: {attempt.outcome}{_failed(step)} · {stored} · {step.why}")
        if step.fault is not None and step.attempt is not None:
            self._faults.append(step.fault)
            output.note(f"{step.fault}\nkeep it with: receipts submit {self._folder.receipt(step.attempt)}")
        if step.rung is not None:
            _note_rung(step.rung)

    def end(self, outcome: RunOutcome) -> None:
        """The walk is over."""
        rows = self._folder.attempts
        if self._as_json:
            output.as_json(
                {
                    "dir": str(self._folder.path),
                    "exit_code": outcome.code,
                    "attempts": [asdict(item) for item in rows],
                    "faults": self._faults,
                }
            )
            return
        if outcome.attempt is None:
            output.note("nothing was launched: no rung of the ladder is left; --force launches the plan all the same")
        elif len(rows) > 1:
            attempts = (f"{_words(item.rung or 'plan')} {item.outcome}" for item in rows)
            output.note(f"{counted(len(rows), 'attempt')}: {' → '.join(attempts)}")


def _failed(step: RunStep) -> str:
    failure = step.receipt.receipt.failure if step.receipt is not None else None
    if failure is None:
        return ""
    parts = [failure.class_, failure.phase, f"chip {failure.chip}" if failure.chip is not None else None]
    words = [_words(str(part)) for part in parts if part]
    if failure.requested_bytes is not None:
        words.append(f"wanted {amount(failure.requested_bytes)}")
    return f" ({', '.join(words)})" if words else ""


def _note_rung(rung: Rung) -> None:
    for name, why in rung.skipped:
        output.note(f"  skipped {_words(name)}: {why}")
    if rung.plan is None:
        output.note("  no rung is left: stop and record")
        return
    changes = ", ".join(f"{path} {_value(old)} → {_value(new)}" for path, (old, new) in rung.changes.items())
    output.note(f"  next rung {_words(rung.name)}: {changes}")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    return "unstated" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
