"""The decoder's launches: what was recorded becomes a receipt, and nothing else does."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from receipts.receipt import Document, parse, read

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples" / "cpu"
RECEIPTS = sorted(DEMO.glob("*.json"))
FLASH = "aten::_scaled_dot_product_flash_attention_for_cpu"
MATH = "aten::_scaled_dot_product_attention_math"
MEMORY = {"resident_bytes": 300, "virtual_bytes": 700, "peak_resident_bytes": 320}
COUNTED = {"frames": 0, "unique_graphs": 0, "graph_breaks": 0, "seconds": 0}


@pytest.fixture(scope="module")
def converter() -> ModuleType:
    spec = importlib.util.spec_from_file_location("decoder_receipt", ROOT / "benchmarks" / "decoder" / "receipt.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(ROOT / "benchmarks" / "decoder")
    sys.path.insert(0, folder)  # a script's own folder comes first on its path
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


def raw(ran: str = FLASH, **changes: Any) -> dict[str, Any]:
    """Facts of a launch of 2 warm-up, 4 measured and 1 profiled step that asked for flash attention."""
    seen = {
        "name": "x.json",
        "sha256": "e" * 64,
        "producer": "torch.profiler",
        "version": "2.13.0+cpu",
        "steps": 1,
        "layers": 2,
        "devices": ["cpu"],
        "operators": {ran: {"count": 2, "types": ["float"]}, "aten::mm": {"count": 27, "types": ["float"]}},
        "dynamo_graphs": 0,
    }
    asked = {
        "depth": 2,
        "hidden": 128,
        "heads": 4,
        "ffn": 512,
        "sequence_length": 256,
        "micro_batch": 2,
        "dtype": "fp32",
        "learning_rate": 3e-4,
        "clip": 1.0,
        "seed": 1,
        "warmup": 2,
        "steps": 4,
        "attention": "flash",
        "inner_attention": None,
        "posture": "eager",
        "address_space_limit_bytes": None,
    }
    facts = {
        "framework": "torch",
        "label": "flash-1",
        "launch": "l-1",
        "started": "2026-03-02T09:00:00+00:00",
        "finished": "2026-03-02T09:00:09+00:00",
        "context": "c",
        "command": "python train_torch.py",
        "exit_code": 0,
        "nice": 0,
        "code": {"imported_digest": "a" * 64},
        "host": {
            "label": "h",
            "os": "Linux",
            "cpu": "a processor",
            "cores": 2,
            "affinity": [1],
            "ram_bytes": 10**9,
            "load_average": [0.1, 0, 0],
            "load_average_at_end": [0.2, 0, 0],
        },
        "environment": {"variables": {"XLA_FLAGS": "--a=1 --b"}, "before_runtime": True},
        "python": "3.11.7",
        "wheels": {"torch": "2.13.0+cpu"},
        "threads": {"intra": 1},
        "corpus": {"name": "bytes", "digest": "b" * 64},
        "vocabulary": 256,
        "parameters": 492800,
        "phase": "steady",
        "durations": [0.03] * 7,
        "losses": [5.5, 5.4, 5.3, 5.2, 5.1, 5.0, 4.9],
        "gradient_norms": [1.0] * 7,
        "memory": {"post_init": MEMORY, "steady": MEMORY},
        "compile": {"at_window_start": COUNTED, "at_window_end": COUNTED},
        "usage": {},
        "configuration": asked,
        "evidence": seen,
    }
    return facts | changes


def made(converter: ModuleType, facts: dict[str, Any]) -> Any:
    text = converter.readable(converter.receipt(facts))
    return parse(Document(text.encode(), "made")).receipt


def test_facts_of_a_launch_become_a_receipt_that_reads(converter: ModuleType) -> None:
    receipt = made(converter, raw())
    assert receipt.run.outcome == "ok"
    assert receipt.path.witnessed.attention == receipt.path.intended.attention == "sdpa_flash"
    assert receipt.measurement.step_flags == {"warmup": (0, 1), "profile": (6,)}
    assert (receipt.measurement.window.start, receipt.measurement.window.stop) == (2, 6)


def test_the_witnessed_attention_is_the_operator_that_ran(converter: ModuleType) -> None:
    receipt = made(converter, raw(ran=MATH))
    assert receipt.path.intended.attention == "sdpa_flash"
    assert receipt.path.witnessed.attention == "sdpa_math"
    counts = {item.name: (item.count, item.expected) for item in receipt.measurement.path_counters}
    assert counts == {MATH: (2, 0), FLASH: (0, 2)}


def test_a_loss_that_is_not_finite_is_an_outcome_and_no_number(converter: ModuleType) -> None:
    receipt = made(converter, raw(losses=[5.5, 900.0, *[None] * 5]))
    assert receipt.run.outcome == "nan"
    assert receipt.measurement.loss.finite is False
    assert receipt.measurement.loss.last is None


def test_an_allocation_that_was_refused_is_an_oom_with_its_request(converter: ModuleType) -> None:
    message = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12"
    failed = {"message": message, "frames": ["train_torch.py:forward"], "memory": MEMORY}
    facts = raw(failure=failed, exit_code=1, durations=[], losses=[], gradient_norms=[], phase="first_window")
    del facts["evidence"]
    facts["configuration"]["address_space_limit_bytes"] = 4000
    receipt = made(converter, facts)
    assert receipt.run.outcome == "oom"
    assert (receipt.failure.requested_bytes, receipt.failure.limit_bytes) == (4096, 4000)
    assert receipt.path.witnessed is None


def test_another_error_is_a_crash(converter: ModuleType) -> None:
    failed = {"message": "shapes differ", "frames": ["train_torch.py:forward"], "memory": MEMORY}
    assert made(converter, raw(failure=failed, exit_code=1)).run.outcome == "crash"


def test_sub_flags_of_xla_are_flags_of_their_own(converter: ModuleType) -> None:
    flags = made(converter, raw()).flags
    assert flags["XLA_FLAGS.a"].value == "1"
    assert flags["XLA_FLAGS.b"].value == "true"


def test_a_second_forward_shows_as_recompute(converter: ModuleType) -> None:
    facts = raw()
    facts["evidence"]["operators"][FLASH]["count"] = 4
    assert made(converter, facts).numerics.recompute_applied == "full"


def test_a_number_that_is_not_finite_is_refused(converter: ModuleType) -> None:
    with pytest.raises(ValueError, match="not finite"):
        converter.readable({"a": float("nan")})


def test_the_demo_has_receipts() -> None:
    assert len(RECEIPTS) >= 20


@pytest.mark.parametrize("path", RECEIPTS, ids=lambda path: path.stem)
def test_a_receipt_of_the_demo_reads_and_its_evidence_has_its_digest(path: Path) -> None:
    parsed = parse(read(path))
    assert path.stat().st_size <= 20_000
    for item in parsed.receipt.evidence or ():
        content = (path.parent / item.uri).read_bytes()
        assert hashlib.sha256(content).hexdigest() == item.sha256
        assert json.loads(content)["launch"] == parsed.receipt.run.launch
