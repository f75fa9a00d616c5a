"""Names of paths and types: one spelling, in readers, rules, the recorder and what a person types."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.emit.facts import StatedFacts
from receipts.emit.megatron_rules import names
from receipts.ingest.assembly import assemble
from receipts.ingest.cuda_kernels import classify
from receipts.ingest.draft import Options
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.reading import Reading
from receipts.receipt.names import (
    DTYPES,
    NAMES,
    OVERLAPS_OF_KERNELS,
    SPELLINGS,
    answers,
    parts,
    permitted,
    spelled,
    spellings,
)


@pytest.mark.parametrize(("other", "name"), [("math", "sdpa_math"), ("sdpa_cudnn", "cudnn_sdpa"), ("fa3", "flash3")])
def test_another_spelling_is_the_same_path(other: str, name: str) -> None:
    assert parts(other) == parts(name)
    assert permitted(name, [other])
    assert permitted(other, [name])
    assert spelled("path.intended.attention", f"{other}+dsa_tilelang") == f"{name}+dsa_tilelang"


def test_an_overlap_has_one_name_in_the_options_that_ask_for_it_and_the_kernels_that_show_it() -> None:
    asked = {name for option in names()["lists"]["overlaps"] for name in parts(option)}
    assert asked - {"delay_wgrad_compute"} <= NAMES.keys()
    kernel = classify("kuserbuffers_pullsend(int, int, int*, int*)")
    assert kernel.work == "overlap"
    assert kernel.family in OVERLAPS_OF_KERNELS <= asked


def test_who_asks_for_flex_leaves_its_library_open() -> None:
    assert answers("flex", "hybrid_ep")
    assert not answers("flex", "alltoall")
    assert not answers("deepep", "flex")
    assert answers("alltoall", "all_to_all")


def test_no_name_is_another_spelling_too() -> None:
    assert not SPELLINGS.keys() & (NAMES.keys() | DTYPES.keys())
    assert len(SPELLINGS) == sum(map(len, NAMES.values())) + sum(len(spellings(name)) for name in DTYPES)


def test_the_recorder_and_ingest_write_one_spelling(tmp_path: Path) -> None:
    facts = StatedFacts()
    log = tmp_path / "run.log"
    log.write_text("begin\n")
    seen = Reading("torch-profiler", records=1)
    seen.see("attention", "math", "kernels")
    stated = {"path.intended.attention": "math", "numerics.compute_dtype": "torch.bfloat16"}
    tree = assemble([FileEvidence(log, "run.log", "0" * 64, 6, (seen,), ())], Options(settings=stated)).tree
    for path, value in stated.items():
        facts.put(path, value)
    assert facts.values == {"path.intended.attention": "sdpa_math", "numerics.compute_dtype": "bf16"}
    assert tree["path"] == {"intended": {"attention": "sdpa_math"}, "witnessed": {"attention": "sdpa_math"}}
    assert tree["numerics"]["compute_dtype"] == "bf16"


def test_a_mistyped_name_gets_a_hint(tmp_path: Path) -> None:
    texts = [item.text for item in assemble([], Options(settings={"path.intended.attention": "te_fusd"})).messages]
    assert any("did you mean te_fused" in text for text in texts)
    texts = [item.text for item in assemble([], Options(settings={"path.intended.attention": "dsa_tilelang"})).messages]
    assert not any("did you mean" in text for text in texts)
