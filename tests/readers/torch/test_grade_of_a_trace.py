"""The grade of a receipt whose path a trace of torch.profiler shows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from receipts.emit import Recorder
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import gather, given
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import ReceiptVerdict
from receipts.receipt import Document, parse
from rule_cases import rulebook

TRACE = [
    {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#3", "ts": 1, "dur": 90},
    {"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention_for_cpu", "ts": 2, "dur": 5},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 9, "dur": 5},
]


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


def _read(recorded: Path) -> bytes:
    trace = recorded.with_name("trace.json")
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": TRACE}))
    with given([str(recorded), str(trace)]) as (files, _):
        return assemble(gather(files), Options()).raw


def test_a_reader_records_each_leaf_and_its_file(recorded: Path) -> None:
    read = parse(Document(_read(recorded), "run.json"))
    rows = [item for item in read.receipt.evidence or () if item.read]
    assert rows
    assert "path.witnessed.attention" in (rows[0].read or {})
    assert rows[0].sha256


def test_evidence_read_into_an_edited_receipt_leaves_it_typed(recorded: Path) -> None:
    tree = json.loads(recorded.read_bytes())
    tree["batch"]["micro_batch"] = 8
    recorded.write_text(json.dumps(tree))
    verdict = _judged(_read(recorded))
    assert (verdict.grade, verdict.grade_why) == ("typed", "no program says that it wrote it")


def test_a_path_of_which_every_leaf_was_read_is_evidenced_and_then_kept(recorded: Path) -> None:
    receipt = parse(Document(_read(recorded), "run.json"))
    lane = replace(rulebook().lanes.of("cpu-torch"), witness=("attention",))
    assert judge_receipt(receipt, lane, rulebook().rules).grade == "evidenced"
    digests = frozenset(item.sha256 for item in receipt.receipt.evidence or () if item.sha256)
    assert judge_receipt(receipt, lane, rulebook().rules, Facts(kept=digests)).grade == "kept"


def test_a_file_that_is_read_again_is_listed_once(recorded: Path) -> None:
    def listed() -> list[Any]:
        return [item for item in json.loads(recorded.read_bytes())["evidence"] if item["uri"].endswith("trace.json")]

    recorded.write_bytes(_read(recorded))
    once = listed()
    recorded.write_bytes(_read(recorded))
    assert once == listed()
    assert len(once) == 1
