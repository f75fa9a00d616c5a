"""Grades follow from what a receipt holds; forgeries are graded down or leave the path open, and that is said."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from command_line import Shell
from receipts.emit import Recorder
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import ReceiptVerdict
from receipts.receipt import Document, Parsed, parse
from receipts.store import open_store
from rule_cases import base, parsed, rulebook


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """The receipt of a job that states its own path."""
    out = tmp_path / "run.json"
    with Recorder("cpu-torch", out=out, probes=False, quiet=True) as rec:
        rec.state("batch.micro_batch", 2)
        word = tmp_path / "w.txt"
        word.write_text("x")
        rec.observe(attention="sdpa_flash", kind="torch-profile", level="backend", uri=word)
        for _ in range(3):
            with rec.step(tokens=512):
                pass
    return out


def _judged(document: bytes, facts: Facts | None = None) -> ReceiptVerdict:
    receipt = parse(Document(document, "run.json"))
    return judge_receipt(receipt, rulebook().lanes.of(receipt.receipt.run.lane), rulebook().rules, facts)


def _edited(path: Path, change: Any) -> bytes:
    tree = json.loads(path.read_bytes())
    change(tree)
    return json.dumps(tree).encode()


def test_what_the_job_states_of_its_own_path_is_recorded_and_no_more(recorded: Path) -> None:
    verdict = _judged(recorded.read_bytes())
    assert verdict.grade == "recorded"
    assert "nothing shows" in verdict.grade_why or "stated by the job" in verdict.grade_why


def test_a_leaf_added_by_hand_to_a_recorded_receipt_is_graded_typed(recorded: Path) -> None:
    verdict = _judged(_edited(recorded, lambda tree: tree["batch"].update(sequence_length=4096)))
    assert (verdict.grade, verdict.grade_why) == ("typed", "it was edited after its program wrote it")


def test_step_times_edited_to_fit_a_rate_are_graded_typed(recorded: Path) -> None:
    def halve(tree: dict[str, Any]) -> None:
        steps = tree["measurement"]["step_durations_seconds"]
        tree["measurement"]["step_durations_seconds"] = [item / 2 for item in steps]

    assert _judged(_edited(recorded, halve)).grade == "typed"


def test_a_digest_written_twice_hides_no_edit(recorded: Path) -> None:
    def hide(tree: dict[str, Any]) -> None:
        tree["batch"]["micro_batch"] = 4
        tree["notes"] = {"copy": tree["run"]["recorded"]["digest"]}

    assert _judged(_edited(recorded, hide)).grade == "typed"


def test_illustrations_that_are_called_measured_stay_typed() -> None:
    assert judge_receipt(parsed(base("cpu")), rulebook().lanes.of("cpu-torch"), rulebook().rules).grade == "typed"


def test_a_one_letter_file_leaves_the_path_open_where_a_grade_is_asked(recorded: Path) -> None:
    verdict = _judged(recorded.read_bytes(), Facts(grade="evidenced"))
    assert verdict.path == "unwitnessed"
    assert "R316" in {item.code for item in verdict.findings}


def test_a_math_run_relabelled_flash_leaves_the_path_open() -> None:
    seen = {"aten::_scaled_dot_product_attention_math": 4}
    row = {"kind": "torch-profile", "sha256": "1" * 64, "level": "kernels", "observed": seen}
    receipt: Parsed = parsed({**base("cpu"), "evidence": [row]})
    verdict = judge_receipt(receipt, rulebook().lanes.of("cpu-torch"), rulebook().rules)
    assert verdict.path == "unwitnessed"
    assert "R317" in {item.code for item in verdict.findings}


def _today(day: int) -> datetime:
    return datetime(2026, 11, day, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("taken_in", "asked"), [(None, True), (_today(29), True), (_today(28), False), (_today(16), False)]
)
def test_a_typed_day_counts_only_where_a_store_took_the_receipt_in_by_then(
    monkeypatch: pytest.MonkeyPatch, taken_in: datetime | None, asked: bool
) -> None:
    monkeypatch.setattr("receipts.judging.grade.LAST_BY_START", date(2026, 11, 28))
    own = parsed(base("cpu"))
    facts = Facts(now=_today(30), taken_in={own.id: taken_in} if taken_in else {})
    verdict = judge_receipt(own, rulebook().lanes.of("cpu-torch"), rulebook().rules, facts)
    assert ("R316" in {item.code for item in verdict.findings}) is asked


def test_a_store_judges_by_the_day_on_which_it_took_a_receipt_in(monkeypatch: pytest.MonkeyPatch, shell: Shell) -> None:
    own = shell.store("held")
    with open_store(str(shell.folder / "store.sqlite")) as store:
        (entry,) = store.entries([own])
        assert store.query.facts([store.parsed(own)]).taken_in == {own: entry.submitted_at}
    monkeypatch.setattr("receipts.judging.grade.LAST_BY_START", date(2026, 11, 28))
    assert "R316" in shell("check", own).out
