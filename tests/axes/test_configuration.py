"""Configurations: sums of what a receipt states of its axes; whatever is one axis away shares a sum without it."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rule_cases
from receipts.axes import Difference, difference
from receipts.axes.catalogue import CATALOGUE_VERSION, catalogue_of
from receipts.axes.configuration import AxisPart, Configuration, configuration
from receipts.axes.lane import Lane
from receipts.receipt import Parsed

LANES = ("nvidia-megatron", "nvidia-torchtitan", "tpu-maxtext", "cpu-torch", "unlisted")
MAPS = ("wheels", "flags", "patches", "features")
# Leaves with values that other leaves turn on and off; None takes the leaf out.
LEAVES: dict[str, tuple[Any, ...]] = {
    "run.context": (None, "one", "other"),
    "numerics.learning_rate": (None, 1, 2),
    "parallelism.tensor": (None, 1, 2, 4),
    "parallelism.sequence": (None, True, False),
    "parallelism.pipeline": (None, 1, 2, 4),
    "parallelism.virtual_pipeline": (None, 1, 4),
    "parallelism.schedule": (None, "1f1b", "off"),
    "parallelism.stage_layout": (None, "13,13"),
    "parallelism.shard": (None, 1, 8),
    "parallelism.mesh_axes": (None, "data=8", "data=4,tensor=2"),
    "hardware.chips": (None, 1, 8),
    "model.mtp_depth": (None, 0, 1),
    "model.mtp_wiring": (None, "repeated"),
    "model.experts": (None, 0, 1, 16),
    "model.top_k": (None, 4),
    "model.hidden": (None, 1024, 2048),
    "model.head_dim": (None, 64),
    "numerics.compute_dtype": (None, "bf16", "fp8_e4m3"),
    "numerics.fp8_recipe": (None, "delayed", "tensorwise"),
    "path.intended.gemm": (None, "cublaslt_bf16", "cublaslt_fp8"),
    "path.intended.dispatch": (None, "alltoall"),
    "path.intended.overlap": (None, "off", "dp"),
    "path.witnessed.attention": (None, "flash", "math"),
    "code.imported_digest": (None, "a" * 64, "b" * 64),
    "code.commit": (None, "1", "2"),
    "code.dirty": (None, True, False),
    "flags.X": (None, "1", "2", "unset"),
    "flags.Y.sub": (None, 1, True),
    "features.mtp": (None, True),
    "wheels.torch": (None, "2.9.0", {"version": "2.9.0", "digest": "abc"}),
    "wheels.extra": (None, "1.0"),
    **{f"{name}.complete": (None, True, False) for name in MAPS},
}


def lane(name: str) -> Lane:
    return rule_cases.rulebook().lanes.get(name)


def drawn(base: dict[str, Any], name: str, leaves: dict[str, Any]) -> Parsed:
    """A receipt of a lane: a base with leaves set, and those that are None taken out."""
    tree = copy.deepcopy(base)
    rule_cases.put(tree, "run.lane", name)
    for path, value in leaves.items():
        section, _, key = path.partition(".")
        if section in MAPS:
            entries = tree.setdefault(section, {})
            if value is None:
                entries.pop(key, None)
            else:
                entries[key] = value
        elif value is None:
            rule_cases.take(tree, path)
        else:
            rule_cases.put(tree, path, value)
    return rule_cases.parsed(tree)


def counted(found: Difference, under: Lane) -> set[str]:
    """Changed axes without those that a coupling of the lane brings, as `compare` counts them."""
    follow = {axis for item in under.couplings if item.when in found.axes for axis in item.then if axis != item.when}
    return set(found.axes) - follow


def candidates(one: Configuration, other: Configuration) -> bool:
    """Whether the index finds the other when it is asked for neighbours of this one; see `query.neighbours`."""
    shared = {one.without(axis) for axis in (*one.parts, *one.follow)} | {one.digest}
    lacking = {one.without(axis) for axis in one.parts if axis.partition(".")[0] in MAPS}
    by_axis = {other.without(axis) for axis in other.parts}
    return bool((shared - {None}) & by_axis) or other.digest in lacking - {None}


pairs = st.tuples(
    st.sampled_from(LANES),
    st.sampled_from(("cpu", "megatron")),
    # Mostly stated, or nearly every pair would leave something open.
    st.fixed_dictionaries(
        {path: st.sampled_from((*values[1:], *values[1:], *values)) for path, values in LEAVES.items()}
    ),
    st.dictionaries(st.sampled_from(sorted(LEAVES)), st.integers(0, 3), min_size=1, max_size=3),
)


@pytest.mark.slow
@settings(max_examples=200)
@given(pairs)
def test_no_pair_that_is_one_axis_apart_and_leaves_nothing_open_is_missed(drawn_pair: Any) -> None:
    name, base, leaves, changes = drawn_pair
    other = {**leaves, **{path: LEAVES[path][at % len(LEAVES[path])] for path, at in changes.items()}}
    tree = rule_cases.base(base)
    a, b = drawn(tree, name, leaves), drawn(tree, name, other)
    under = lane(name)
    found = difference(a, b, tuple(under.not_applicable))
    one, two = configuration(a, under), configuration(b, under)
    if found.unknown:
        return
    if not found.changed:
        assert one.digest == two.digest
        assert one.whole == two.whole
    if len(counted(found, under)) == 1:
        assert candidates(one, two)
        assert candidates(two, one)


def clean(context: str | None = "one", **changes: Any) -> Configuration:
    leaves = {path.replace("__", "."): value for path, value in changes.items()}
    return configuration(
        drawn(rule_cases.base("cpu"), "cpu-torch", {"run.context": context, **leaves}), lane("cpu-torch")
    )


def test_leaving_an_axis_out_is_one_subtraction_and_taking_another_value_one_addition() -> None:
    a, b = clean(), clean(numerics__learning_rate=99)
    assert a.digest != b.digest
    assert a.without("numerics.learning_rate") == b.without("numerics.learning_rate")
    assert a.with_("numerics.learning_rate", b.parts["numerics.learning_rate"]).digest == b.digest
    assert a.with_("numerics.learning_rate", b.parts["numerics.learning_rate"]).whole == b.whole
    assert a.mixed(b, ["numerics.learning_rate"]).digest == b.digest
    assert a.apart(b) == {"numerics.learning_rate"}


def test_two_mixtures_of_two_axes_meet_from_both_sides() -> None:
    a, b = clean(), clean(numerics__learning_rate=99, batch__micro_batch=4)
    first = a.mixed(b, ["numerics.learning_rate"])
    assert first.mixed(b, ["batch.micro_batch"]).digest == b.digest
    assert b.mixed(a, ["batch.micro_batch"]).digest == first.digest


def test_what_follows_an_axis_is_left_out_with_it() -> None:
    a = clean(parallelism__pipeline=1)
    b = clean(parallelism__pipeline=2, parallelism__schedule="1f1b")
    assert a.apart(b) > {"parallelism.pipeline"}
    assert a.without("parallelism.pipeline") == b.without("parallelism.pipeline")


def test_blocks_regimes_derived_values_and_outcomes_have_no_part() -> None:
    a = clean()
    b = clean(run__host="other", measurement__timer="perf_counter", parallelism__data=4, run__label="x")
    assert (a.digest, a.whole) == (b.digest, b.whole)


def test_the_lane_and_how_it_is_read_are_parts_of_the_sum() -> None:
    tree = rule_cases.base("cpu")
    a = configuration(drawn(tree, "cpu-torch", {}), lane("cpu-torch"))
    b = configuration(drawn(tree, "unlisted", {}), lane("unlisted"))
    assert catalogue_of(lane("cpu-torch")).digest != catalogue_of(lane("unlisted")).digest
    assert not {a.without(axis) for axis in a.parts} & {b.without(axis) for axis in b.parts}


def test_what_is_unstated_stands_for_the_context_or_for_nobody_else() -> None:
    bare, twin = clean(None, numerics__learning_rate=None), clean(None, numerics__learning_rate=None, run__label="x")
    assert bare.own
    assert bare.unstated == {"numerics.learning_rate"}
    assert bare.without("batch.micro_batch") is None
    assert bare.without("numerics.learning_rate") == clean(None).without("numerics.learning_rate")
    assert bare.digest != twin.digest
    held, other = clean("one", numerics__learning_rate=None), clean("other", numerics__learning_rate=None)
    assert held.without("batch.micro_batch") == clean(
        "one", numerics__learning_rate=None, batch__micro_batch=4
    ).without("batch.micro_batch")
    assert held.digest != other.digest
    assert held.without("numerics.learning_rate") == other.without("numerics.learning_rate")


def test_an_absent_key_of_a_complete_map_has_no_part_and_that_it_is_complete_has() -> None:
    a, b = clean(flags__X=None, flags__complete=True), clean(flags__X="1", flags__complete=True)
    assert "flags.X" not in a.parts
    assert b.without("flags.X") == a.digest
    assert clean(flags__X=None, flags__complete=None).digest != a.digest
    assert clean(flags__X="unset", flags__complete=True).digest == a.digest


def test_that_a_map_is_complete_counts_where_the_lane_has_no_such_map() -> None:
    under = replace(lane("cpu-torch"), not_applicable={"flags": "it has none"})
    tree = rule_cases.base("cpu")
    whole, part = (
        configuration(drawn(tree, "cpu-torch", {"flags.complete": complete}), under) for complete in (True, None)
    )
    assert whole.apart(part) == {"flags.*"}
    assert whole.digest != part.digest


@pytest.mark.parametrize("seed", range(3))
def test_a_sum_does_not_depend_on_the_order_of_a_document(seed: int) -> None:
    tree = rule_cases.base("megatron")
    shuffled = {key: tree[key] for key in random.Random(seed).sample(list(tree), len(tree))}
    a, b = (configuration(rule_cases.parsed(item), lane("nvidia-megatron")) for item in (tree, shuffled))
    if a.anchor is not None and a.own:
        a, b = (
            configuration(drawn(item, "nvidia-megatron", {"run.context": "one"}), lane("nvidia-megatron"))
            for item in (tree, shuffled)
        )
    assert (a.digest, a.whole) == (b.digest, b.whole)


@pytest.mark.parametrize("name", rule_cases.rulebook().lanes.names())
def test_what_a_lane_couples_to_an_axis_is_left_out_with_it(name: str) -> None:
    under = lane(name)
    for coupling in under.couplings:
        a = configuration(drawn(rule_cases.base("megatron"), name, {"run.context": "one"}), under)
        other = [AxisPart(axis, '{"x":1}', 1) for axis in (coupling.when, *coupling.then)]
        b = a
        for part in other:
            b = b.with_(part.axis, part)
        assert candidates(a, b), coupling.when
        assert a.followers(coupling.when) >= set(coupling.then)


# Single-leaf axes whose values other leaves decide.
DECIDED = (
    *("parallelism.sequence", "parallelism.virtual_pipeline", "parallelism.schedule", "parallelism.stage_layout"),
    *("model.mtp_wiring", "path.overlap", "path.dispatch", "features.mtp", "flags.X", "flags.Y.sub"),
)


def test_other_effective_values_are_another_version() -> None:
    """Stores hold digests that this version made: where this fails, raise `VERSION` and write the new sum here."""
    draw, total = random.Random(4), 0
    tree = rule_cases.base("megatron")
    for _ in range(100):
        leaves = {path: draw.choice(values) for path, values in LEAVES.items()}
        made = configuration(drawn(tree, "unlisted", leaves), lane("unlisted"))
        total += sum(made.parts[axis].digest for axis in DECIDED if axis in made.parts)
    assert (CATALOGUE_VERSION, total % 2**64) == (8, 17706085030949974275)
