"""A store whose week 2026-W10 has gains that did not survive, claims, decisions and failures that came back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import rule_cases as cases
from receipts.judging.claim import claim_from_json
from receipts.publish.report.basis import parquet
from receipts.questions.claims.judgment import gather, judge
from receipts.questions.week.collect import WeekData, collect, collect_with_basis
from receipts.questions.week.interval import Week
from receipts.receipt import Document, Parsed
from receipts.store import NewClaim, Store
from receipts.workflows.submit import submit

WEEK = "2026-W10"
MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
AS_OF = MONDAY + timedelta(days=6)
HOUR = 1 / 24  # of a day
BUCKETS = 80_000_000  # the change that is tried: gradient buckets of twice the bytes
LOCAL = {"batch.sequence_length": 2048, "batch.global_batch": 128, "batch.accumulation": 8}  # the same tokens a step
OOM = {
    "run.outcome": "oom",
    "run.exit_code": 1,
    "batch.micro_batch": 8,
    "batch.accumulation": 2,
    "failure": {
        "phase": "first_window",
        "class": "runtime_alloc",
        "chip": 3,
        "requested_bytes": 3 * 2**30,
        "limit_bytes": 150109106995,
        "message": "out of memory in the logits",
        "operator": "cross entropy",
    },
}


def launch(name: str, day: float, seconds: float = 2.3, **leaves: Any) -> Parsed:
    """One launch of the production shape, so many days after Monday 09:00, with leaves set (``__`` for the dot)."""
    start = MONDAY + timedelta(days=day)
    values = {
        "run.launch": name,
        "run.label": name.rstrip("0123456789-"),
        "run.started": start.isoformat(),
        "run.finished": (start + timedelta(minutes=20)).isoformat(),
        **{path.replace("__", "."): value for path, value in leaves.items()},
    }
    dropped = [path for path, value in values.items() if value is None]
    kept = {path: value for path, value in values.items() if value is not None}
    table = {"set": kept, "drop": dropped, "steps": {"seconds": seconds, "seed": name, "cv": 0.002}}
    return cases.parsed(cases.build(table, "megatron"), f"{name}.json")


def drifting(name: str) -> Parsed:
    """A launch whose steps grow by a third over the run."""
    leaves = {"run.launch": name, "run.label": name, "run.finished": (MONDAY + timedelta(minutes=20)).isoformat()}
    table = {"set": leaves, "steps": {"seconds": 2.0, "drift": 0.3, "seed": name}}
    return cases.parsed(cases.build(table, "megatron"), f"{name}.json")


def side(name: str, day: float, seconds: float, values: dict[str, Any] | None = None) -> list[Parsed]:
    """Three launches of one configuration, two hours apart; another's an hour later make turns of the two."""
    flat = {path.replace(".", "__"): value for path, value in (values or {}).items()}
    spread = (1.0, 1.001, 0.999)
    return [launch(f"{name}-{index}", day + index / 12, seconds * spread[index], **flat) for index in range(3)]


def changed(values: dict[str, Any] | None = None) -> dict[str, Any]:
    """The change that is tried, over some values."""
    return {**(values or {}), "parallelism.bucket_bytes": BUCKETS}


def local_gain() -> list[Parsed]:
    """The change gains a tenth at half the sequence length."""
    return [*side("local base", 0, 2.3, LOCAL), *side("local buckets", HOUR, 2.07, changed(LOCAL))]


def at_target(seconds: float, day: float = 2) -> list[Parsed]:
    """The change at the lane's target, against a base of 2.3 s a step."""
    return [*side("target base", day - HOUR, 2.3), *side("target buckets", day, seconds, changed())]


def known_failure(day: float, name: str, **leaves: Any) -> Parsed:
    """A launch of one and the same signature that runs out of memory."""
    return launch(name, day, **{**{path.replace(".", "__"): value for path, value in OOM.items()}, **leaves})


def put(store: Store, receipts: list[Parsed]) -> None:
    """Submit them; each must be taken."""
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, cases.rulebook()))
    assert not [item.error for item in outcomes if not item.stored]


def claim(store: Store, name: str, **values: Any) -> None:
    """Add a claim and record its verdict, as `receipts claim add` does."""
    stated = {"id": name, **values}
    body = json.dumps(stated)
    store.published.add_claims([NewClaim(name, stated["kind"], body, "claims.toml")])
    judge_again(store, name)


def judge_again(store: Store, name: str) -> None:
    """Record the present verdict on a claim, as `receipts claim check --record` does."""
    made = claim_from_json(store.published.claim(name).body, "claims.toml")
    store.published.record_claims([judge(made, gather(made, cases.rulebook(), store), cases.rulebook())])


SPEEDUP = {
    "kind": "speedup",
    "baseline": ["label=local base"],
    "candidate": ["label=local buckets"],
    "axis": "parallelism.bucket_bytes",
    "effect": "at least 1.05",
}


@contextmanager
def clock(at: datetime) -> Iterator[None]:
    """A store records at that moment."""
    still = mock.Mock(wraps=datetime)
    still.now.return_value = at
    modules = ("receipts.store.database", "receipts.store.store")
    with ExitStack() as patches:
        for module in modules:
            patches.enter_context(mock.patch(f"{module}.datetime", still))
        yield


def report(store: Store, name: str = WEEK, as_of: datetime = AS_OF, lanes: tuple[str, ...] = ()) -> WeekData:
    """The report of a week."""
    return collect(store, cases.rulebook(), Week.parse(name), as_of, lanes)


def basis(store: Store) -> dict[str, bytes]:
    """The Parquet of the week."""
    data, made = collect_with_basis(store, cases.rulebook(), Week.parse(WEEK), AS_OF, ())
    return parquet(made, data)
