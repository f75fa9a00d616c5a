"""Signatures: what is one launch before it runs, what splits it, and what stands beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.axes import axis_leaves
from receipts.axes.shape import MICRO_BATCH, NO_MATTER, SEQUENCE_LENGTH, Signature, name_of, parts, sign, unstated
from receipts.questions.plan import parse_plan, write_plan
from receipts.receipt import Document, Parsed
from rule_cases import rulebook


def _parsed(base: str = "tpu", drop: tuple[str, ...] = (), **leaves: Any) -> Parsed:
    tree = rule_cases.base(base)
    for path in drop:
        rule_cases.take(tree, path)
    for path, value in leaves.items():
        rule_cases.put(tree, path.replace("__", "."), value)
    return rule_cases.parsed(tree)


def _sign(parsed: Parsed, extras: tuple[str, ...] = ("validation_in_loop",)) -> Signature:
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    return sign(parsed, replace(lane, nonessential_features=extras))


@pytest.mark.parametrize("base", ["cpu", "megatron", "tpu"])
def test_a_plan_and_the_receipt_that_its_run_wrote_have_one_signature(base: str) -> None:
    receipt = _parsed(base)
    plan = parse_plan(Document(write_plan(receipt, {}), "plan"))
    assert _sign(plan) == _sign(receipt)


def test_the_hash_is_full_and_stays_what_it_is() -> None:
    assert name_of(parts(_parsed())) == "f3cb6f9583c9cf2be8ecfa4d817e61e46f33c6dad9b043a1ad578533809a0cc9"


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        ("code__commit", "f" * 40),
        ("hardware__chips", 16),
        ("hardware__physical", "4x4"),
        ("model__hidden", 4096),
        ("model__pattern", "AEME"),
        ("parallelism__tensor", 4),
        ("batch__micro_batch", 2),
        ("batch__sequence_length", 2048),
        ("features__structure", False),
        ("numerics__recompute", "full"),
        ("numerics__optimizer", "adafactor"),
        ("path__intended__attention", "xla"),
        ("patches__fused_loss", "1"),
    ],
)
def test_what_decides_whether_it_fits_splits_it(leaf: str, value: Any) -> None:
    assert name_of(parts(_parsed(**{leaf: value}))) != name_of(parts(_parsed()))


@pytest.mark.parametrize(
    ("leaf", "value"),
    [
        ("numerics__learning_rate", 7),
        ("numerics__learning_rate", 1e-5),
        ("batch__global_batch", 128),
        ("wheels__libtpu", "0.0.1"),
        ("flags__PJRT_DEVICE", "CPU"),
        ("run__context", "another"),
        ("run__outcome", "oom"),
        ("model__name", "another name"),
        ("data__dataset", "another"),
        ("path__witnessed__attention", "math"),
        ("numerics__recompute_applied", "full"),
        ("hardware__hosts", 2),
    ],
)
def test_what_does_not_or_what_only_the_run_shows_leaves_it_alone(leaf: str, value: Any) -> None:
    assert name_of(parts(_parsed(**{leaf: value}))) == name_of(parts(_parsed()))


def test_an_idle_switch_splits_nothing() -> None:
    one = {"parallelism__tensor": 1, "parallelism__data": 8}
    assert name_of(parts(_parsed(**one, parallelism__sequence=True))) == name_of(
        parts(_parsed(**one, parallelism__sequence=False))
    )


def test_a_spelling_of_the_accelerator_splits_nothing() -> None:
    assert name_of(parts(_parsed(hardware__accelerator="TPU v6e"))) == name_of(
        parts(_parsed(hardware__accelerator="v6e"))
    )


def test_what_is_unstated_is_another_launch() -> None:
    assert name_of(parts(_parsed(drop=("numerics.recompute",)))) != name_of(parts(_parsed()))


def test_a_dirty_tree_is_known_by_what_it_imported_and_a_clean_one_by_its_commit() -> None:
    clean = _parsed(code__commit="a" * 40, code__dirty=False, code__imported_digest="1" * 64)
    assert parts(clean)["code"] == {"commit": "a" * 40, "dirty": False}
    dirty = _parsed(code__commit="a" * 40, code__dirty=True, code__imported_digest="1" * 64)
    assert parts(dirty)["code"] == {"imported": "1" * 64}


def test_pressures_leave_the_base_alone_and_everything_else_does_not() -> None:
    made = _sign(_parsed())
    assert _sign(_parsed(batch__micro_batch=1, batch__sequence_length=512)).base == made.base
    assert _sign(_parsed(numerics__recompute="full")).base != made.base


def test_a_non_essential_feature_is_a_pressure_and_whether_it_is_stated_is_none() -> None:
    on, off = _sign(_parsed(features__validation_in_loop=True)), _sign(_parsed(features__validation_in_loop=False))
    assert (on.extras, off.extras) == (("validation_in_loop",), ())
    assert on.base == off.base
    assert on.signature != off.signature
    assert _sign(_parsed()).base != off.base


def test_every_axis_is_signed_or_its_page_says_why_not(checkout: Path) -> None:
    page = (checkout / "docs/preflight.md").read_text(encoding="utf-8")
    told = page.partition("Left out, with the reason:")[2].partition("`base` is")[0]
    signed = {"hardware.accelerator", "hardware.chips", "hardware.physical", MICRO_BATCH, SEQUENCE_LENGTH}
    whole = {"code", "model", "parallelism", "features", "patches", "compile", "numerics", "path"}
    for leaf in axis_leaves():
        section = leaf.path.partition(".")[0]
        if f"`{leaf.path}`" in told or f"`{section}`" in told:
            assert leaf.path not in signed
        else:
            assert leaf.path in signed or section in whole, leaf.path
    for path in NO_MATTER:
        assert f"`{path}`" in told


def test_a_launch_without_a_shape_says_what_is_missing() -> None:
    assert unstated(_parsed(drop=("batch.micro_batch", "model.depth"))) == ("batch.micro_batch", "model.depth")
    assert unstated(_parsed()) == ()
