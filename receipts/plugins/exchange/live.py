"""The verdict on the live run of MLflow or W&B: the receipt's id, its status and its number, where people look.

    with mlflow.start_run(), live(Recorder("nvidia-megatron")) as rec:
        ...

The run is the one that is active when the block begins, else when it ends. Nothing here raises into the job.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.untrusted_text import plain
from receipts.emit.secrets import redact

if TYPE_CHECKING:
    from receipts.emit import Recorder


@contextmanager
def live(rec: Recorder) -> Iterator[Recorder]:
    """A recorder whose receipt is judged when it ends well or badly, and shown on the runs that are active."""
    runs = _active()
    try:
        with rec:
            yield rec
    finally:
        try:
            place = Path(rec._run.record.head["out"])
            if place.is_file():  # of several ranks the first has it, once they are merged
                show(place, runs or _active())
        except Exception as error:
            sys.stderr.write(redact(f"receipts: the run shows no verdict: {type(error).__name__}: {plain(error)}\n"))


def show(receipt: str | Path, runs: dict[str, Any] | None = None) -> dict[str, str]:
    """Judge a receipt and show the verdict on these runs, or on those that are active; gives what they show.

    Raises InputError for a file that is not a receipt, and what MLflow and W&B raise.
    """
    from receipts import check, metrics

    checked = check(receipt)
    judged, verdict, parsed = checked.receipt, checked.verdict, checked.receipt.parsed
    heavy = dict.fromkeys(f"{item.code} {item.name}" for item in verdict.findings if item.level in "EI")
    shown = {
        "id": judged.id,
        "status": judged.status,
        "lane": parsed.receipt.run.lane,
        "path": verdict.path,
        "reasons": "; ".join(heavy)[:1000],
    }
    metric = metrics.get(metrics.DEFAULT)
    reading = judged.rulebook.launch(parsed).read(metric)
    number = reading.value if reading.source == "steps" and judged.status != "invalid" else None
    for kind, run in (_active() if runs is None else runs).items():
        if kind == "mlflow":
            # By the run's id: its block may have ended before ours.
            client = sys.modules["mlflow"].MlflowClient()
            for name, value in shown.items():
                client.set_tag(run, f"receipts.{name}", value)
            if number is not None:
                client.log_metric(run, "receipts.tokens_per_second", number)
            client.log_artifact(run, str(receipt), "receipts")
        else:
            values: dict[str, Any] = {f"receipts/{name}": value for name, value in shown.items()}
            run.summary.update(values if number is None else {**values, "receipts/tokens_per_second": number})
            run.log_artifact(str(receipt), name=f"receipt-{shown['id'][:12]}", type="receipt")
    return shown


def _active() -> dict[str, Any]:
    """The active run of each library that the job has imported; this imports neither."""
    known: dict[str, Any] = {}
    if (mlflow := sys.modules.get("mlflow")) is not None and (run := mlflow.active_run()) is not None:
        known["mlflow"] = run.info.run_id
    if (wandb := sys.modules.get("wandb")) is not None and getattr(wandb, "run", None) is not None:
        known["wandb"] = wandb.run
    return known
