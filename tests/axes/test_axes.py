"""Axes: effective values, and what the difference between two receipts is."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

import rule_cases
from receipts.axes import OFF, UNSET, Difference, Member, difference, effective
from receipts.receipt import Parsed
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import leaves

DIGEST = "a" * 64
WITNESSED_DTYPE = ("path.witnessed.compute_dtype",)
WITNESSED_MTP = ("path.witnessed.mtp_cross_entropy",)
OTHER_DIGEST = "b" * 64


def receipt(
    changes: Mapping[str, Any] | None = None, drop: tuple[str, ...] = (), base: str = "megatron", context: Any = None
) -> Parsed:
    """The clean receipt with changes at dotted paths, without `drop`, in `context` (None: in none)."""
    tree = rule_cases.base(base)
    for path in drop:
        assert rule_cases.take(tree, path), path
    for path, value in (changes or {}).items():
        rule_cases.put(tree, path, copy.deepcopy(value))
    rule_cases.put(tree, "run.context", context)
    return rule_cases.parsed(tree)


def value(path: str, changes: Mapping[str, Any], drop: tuple[str, ...] = ()) -> Any:
    """The effective value at a path."""
    return effective(receipt(changes, drop)).get(path)


def unknown(found: Difference) -> dict[str, str]:
    """Unknown axes with the side that does not state them."""
    return {item.axis: item.missing for item in found.unknown}


def changed(found: Difference) -> dict[str, tuple[Member, ...]]:
    """Changed axes with their members."""
    return {item.axis: item.members for item in found.changed}


# effective values


def test_sequence_parallelism_at_tensor_1_is_off() -> None:
    assert value("parallelism.sequence", {"parallelism.tensor": 1, "parallelism.sequence": True}) == OFF
    assert value("parallelism.sequence", {"parallelism.tensor": 2, "parallelism.sequence": True}) is True
    assert value("parallelism.sequence", {"parallelism.tensor": 2, "parallelism.sequence": False}) == OFF


def test_sequence_parallelism_without_a_stated_tensor_degree_is_what_was_typed() -> None:
    assert value("parallelism.sequence", {"parallelism.sequence": True}, drop=("parallelism.tensor",)) is True


@pytest.mark.parametrize("switch", ["virtual_pipeline", "schedule", "stage_layout"])
def test_what_needs_stages_is_off_at_pipeline_1(switch: str) -> None:
    typed = {"virtual_pipeline": 4, "schedule": "1f1b", "stage_layout": "13,13"}[switch]
    assert value(f"parallelism.{switch}", {"parallelism.pipeline": 1, f"parallelism.{switch}": typed}) == OFF
    assert value(f"parallelism.{switch}", {"parallelism.pipeline": 2, f"parallelism.{switch}": typed}) == typed


def test_one_virtual_stage_is_off() -> None:
    assert value("parallelism.virtual_pipeline", {"parallelism.pipeline": 2, "parallelism.virtual_pipeline": 1}) == OFF


@pytest.mark.parametrize(
    "changes",
    [
        {"compile.cuda_graph_implementation": "none", "compile.cuda_graph_scope": ["attn"]},
        {"compile.cuda_graph_implementation": "local", "compile.cuda_graph_scope": []},
        {
            "compile.cuda_graph_implementation": "local",
            "compile.cuda_graph_scope": ["attn"],
            "path.witnessed.cuda_graphs": False,
        },
    ],
    ids=["a scope without an implementation", "an implementation without a scope", "never captured"],
)
def test_graphs_that_cannot_be_or_were_not_captured_are_off(changes: Mapping[str, Any]) -> None:
    assert value("compile.cuda_graph_scope", changes) == OFF
    assert value("compile.cuda_graph_implementation", changes) == OFF


def test_graphs_that_were_captured_are_what_was_asked_for() -> None:
    changes = {
        "compile.cuda_graph_implementation": "local",
        "compile.cuda_graph_scope": ["attn", "mamba"],
        "path.witnessed.cuda_graphs": True,
    }
    assert value("compile.cuda_graph_scope", changes) == ("attn", "mamba")


def test_a_path_axis_takes_the_witnessed_value() -> None:
    changes = {"path.intended.attention": "te_fused", "path.witnessed.attention": "unfused"}
    assert value("path.attention", changes) == "unfused"
    assert value("path.attention", {"path.intended.attention": "te_fused"}, ("path.witnessed.attention",)) == "te_fused"


def test_posture_precision_and_recompute_take_what_was_seen() -> None:
    assert value("compile.posture", {"compile.posture": "whole_graph", "path.witnessed.posture": "eager"}) == "eager"
    assert value("numerics.compute_dtype", {"path.witnessed.compute_dtype": "fp32"}) == "fp32"
    assert value("numerics.recompute", {"numerics.recompute": "full", "numerics.recompute_applied": "none"}) == OFF
    assert (
        value("numerics.recompute", {"numerics.recompute": "full", "numerics.recompute_applied": "checkpoint"})
        == "full"
    )
    assert (
        value("numerics.recompute", {"numerics.recompute": "none", "numerics.recompute_applied": "checkpoint"}) != OFF
    )


def test_an_fp8_recipe_outside_fp8_is_off() -> None:
    changes = {"numerics.fp8_recipe": "tensorwise", "path.witnessed.compute_dtype": "bf16"}
    assert value("numerics.fp8_recipe", changes) == OFF


def test_a_dense_model_dispatches_nothing() -> None:
    changes = {"model.experts": 0, "parallelism.expert": 4, "path.witnessed.dispatch": "alltoall"}
    assert (value("parallelism.expert", changes), value("path.dispatch", changes)) == (1, OFF)


@pytest.mark.parametrize("word", ["none", "None", "off", "OFF"])
def test_none_and_off_are_one_value(word: str) -> None:
    assert value("parallelism.prefetch", {"parallelism.prefetch": word}) == OFF


def test_names_of_one_accelerator_are_one_value() -> None:
    one = value("hardware.accelerator", {"hardware.accelerator": "NVIDIA H200"})
    assert one == value("hardware.accelerator", {"hardware.accelerator": "h200-sxm"})


@pytest.mark.parametrize(("a", "b"), [(1, "1"), (1, 1.0), (True, "true"), ({"value": 1, "before_runtime": True}, "1")])
def test_a_flag_is_what_the_command_line_would_carry(a: Any, b: Any) -> None:
    assert value("flags.X", {"flags.X": a}) == value("flags.X", {"flags.X": b})


def test_a_wheel_by_itself_and_in_an_object_are_one_version() -> None:
    found = difference(receipt({"wheels.torch": "2.12.0"}), receipt({"wheels.torch": {"version": "2.12.0"}}))
    assert "wheels.torch" in found.equal


# differences


@pytest.mark.parametrize("written", ["AEMEAEMEAEMR" * 2, ("AEMEAEMEAEMR" * 5)[:52]])
def test_a_tile_written_out_is_the_same_stack(written: str) -> None:
    assert difference(receipt(), receipt({"model.pattern": written})).axes == ()


def test_a_rotated_tile_is_another_stack() -> None:
    assert difference(receipt(), receipt({"model.pattern": "EMEAEMEAEMRA"})).axes == ("pattern",)


def test_one_kind_of_attention_follows_the_pattern_that_counts_it() -> None:
    found = difference(receipt(), receipt({"model.depth": 36, "model.attention_kinds": "9 full"}))
    assert found.axes == ("pattern",)
    assert value("model.attention_kinds", {"model.attention_kinds": "9 DSA + 4 MLA"}) == "9 DSA + 4 MLA"
    assert value("model.attention_kinds", {"model.attention_kinds": "9 full"}, ("model.pattern",)) == "9 full"


@pytest.mark.parametrize(
    ("path", "spellings"),
    [
        ("model.attention_kinds", ("9 DSA + 4 MLA", "4 MLA + 9 DSA", "9×DSA, 4×MLA")),
        ("numerics.reduction_dtype", ("fp32", "float32")),
        ("path.intended.gemm", ("te_bf16", "te bf16")),
        ("path.intended.attention", ("sdpa_flash", "sdpa_flash_attention")),
        ("path.intended.overlap", ("grad_reduce+param_gather", "param_gather + grad_reduce")),
        ("parallelism.mesh_axes", ("data:4,model:2", "data=4, model=2", "data:4,expert:1,model:2")),
    ],
)
def test_names_are_one_value_however_a_source_spells_or_orders_them(path: str, spellings: tuple[str, ...]) -> None:
    unseen = (path.replace("intended", "witnessed"),) if path.startswith("path.") else ()
    first, *others = (receipt({path: spelling}, unseen) for spelling in spellings)
    assert [difference(first, other).axes for other in others] == [()] * len(others)


def test_the_order_of_mesh_axes_and_the_words_of_a_specification_are_kept() -> None:
    for path, a, b in (
        ("parallelism.mesh_axes", "data:4,model:2", "model:2,data:4"),
        ("path.intended.sharding", "zero3 over data, model on hidden", "model on hidden, zero3 over data"),
    ):
        assert len(difference(*(receipt({path: text}, ("path.witnessed.sharding",)) for text in (a, b))).axes) == 1


def test_a_map_that_was_not_captured_whole_is_unknown_and_no_change() -> None:
    found = difference(receipt(), receipt({"wheels.complete": False}))
    assert found.axes == ()
    assert [gap.axis for gap in found.unknown] == ["wheels"]


STATE = ("model.ssm_state", "model.ssm_heads", "model.ssm_groups", "model.ssm_variant")


def test_a_stack_without_state_has_no_widths_of_it() -> None:
    assert set(STATE) <= set(difference(receipt(base="cpu"), receipt({}, STATE, "cpu")).equal)


def test_widths_of_state_follow_the_pattern_that_brings_them() -> None:
    dense = {"model.pattern": "*-", "model.alphabet": "nemo", "model.depth": 4}
    hybrid = {"model.pattern": "M-*-", "model.alphabet": "nemo", "model.depth": 4}
    assert difference(receipt(dense, STATE), receipt(hybrid)).axes == ("pattern",)
    assert difference(receipt(dense), receipt(hybrid)).axes == ("pattern",)
    assert difference(receipt(hybrid), receipt({**hybrid, "model.ssm_heads": 56})).axes == ("dimensions",)


def test_what_is_captured_has_no_order() -> None:
    a, b = (
        receipt({
            "compile.cuda_graph_implementation": "local",
            "compile.cuda_graph_scope": scope,
            "path.witnessed.cuda_graphs": True,
        })
        for scope in (["attn", "mamba"], ["mamba", "attn"])
    )  # fmt: skip
    assert difference(a, b).axes == ()


@pytest.mark.parametrize("spelling", ["Transformer.Engine", "transformer_engine"])
def test_a_wheel_is_one_distribution_however_its_name_is_spelled(spelling: str) -> None:
    a, b = ({"wheels": {"complete": True, name: "2.13.0"}} for name in ("transformer-engine", spelling))
    assert difference(receipt(a), receipt(b)).axes == ()


def test_two_spellings_in_one_set_stand_apart() -> None:
    both = effective(receipt({"wheels": {"complete": True, "flash-attn": "2.8.3", "flash_attn": "3.0.0"}}))
    assert (both["wheels.flash-attn"], both["wheels.flash_attn"]) == ("2.8.3", "3.0.0")


def test_a_receipt_differs_from_itself_in_nothing() -> None:
    found = difference(receipt(), receipt())
    assert (found.changed, found.unknown, found.derived, found.regimes, found.work) == ((), (), (), (), ())


def test_a_changed_axis_is_named_with_both_values() -> None:
    found = difference(receipt({"model.mtp_depth": 1}), receipt({"model.mtp_depth": 2}))
    assert changed(found) == {"model.mtp_depth": (Member("model.mtp_depth", 1, 2),)}


def test_members_of_one_axis_are_one_change() -> None:
    found = difference(receipt(), receipt({"model.hidden": 4096, "model.heads": 32}))
    assert found.axes == ("dimensions",)
    assert [member.path for member in changed(found)["dimensions"]] == ["model.hidden", "model.heads"]


def _droppable() -> list[str]:
    stated = rule_cases.parsed(rule_cases.base("megatron")).stated
    wanted = [leaf.path for leaf in leaves() if leaf.role is Role.AXIS and leaf.path in stated]
    paired = {path for path in wanted if path.startswith("path.intended.")}
    return [path for path in wanted if path not in paired and not path.startswith("code.")]


# On this receipt another stated leaf decides these: one stage, bf16, no graph captured, eager, a witnessed value.
DECIDED_BY_OTHERS = {
    "parallelism.virtual_pipeline",
    "parallelism.schedule",
    "parallelism.stage_layout",
    "numerics.compute_dtype",
    "numerics.fp8_recipe",
    "numerics.fp8_scope",
    "numerics.recompute",
    "compile.posture",
    "compile.regions",
    "compile.cuda_graph_implementation",
    "compile.cuda_graph_scope",
}


@pytest.mark.parametrize("path", _droppable())
def test_a_missing_axis_is_never_equal(path: str) -> None:
    found = difference(receipt(), receipt(drop=(path,)))
    if path in DECIDED_BY_OTHERS:
        assert path in found.equal
    else:
        assert list(unknown(found).values()) == ["b"]
        assert path not in found.equal


def test_an_axis_that_neither_side_states_is_unknown() -> None:
    bare = receipt(drop=("numerics.learning_rate",))
    assert unknown(difference(bare, bare)) == {"numerics.learning_rate": "both"}


def test_one_context_holds_what_neither_side_states() -> None:
    bare = receipt(drop=("numerics.learning_rate",), context="nam56r-base")
    found = difference(bare, bare)
    assert found.unknown == ()
    assert found.held == ("numerics.learning_rate",)


def test_another_context_holds_nothing() -> None:
    a = receipt(drop=("numerics.learning_rate",), context="one")
    b = receipt(drop=("numerics.learning_rate",), context="other")
    assert unknown(difference(a, b)) == {"numerics.learning_rate": "both"}


def test_a_context_does_not_hold_what_one_side_states() -> None:
    a = receipt(context="nam56r-base")
    b = receipt(drop=("numerics.learning_rate",), context="nam56r-base")
    assert unknown(difference(a, b)) == {"numerics.learning_rate": "b"}


def test_an_axis_that_the_lane_does_not_have_is_not_applicable() -> None:
    bare = receipt(drop=("platform.libtpu",))
    found = difference(bare, bare, not_applicable={"platform.libtpu"})
    assert found.not_applicable == ("platform.libtpu",)
    assert found.unknown == ()


def test_a_value_that_is_stated_although_the_lane_has_no_such_axis_still_counts() -> None:
    a, b = receipt({"platform.libtpu": "0.0.36"}), receipt({"platform.libtpu": "0.0.37"})
    assert difference(a, b, not_applicable={"platform.libtpu"}).axes == ("platform",)


def test_derived_values_are_shown_and_never_counted() -> None:
    found = difference(receipt(), receipt({"parallelism.data": 2, "batch.accumulation": 8}))
    assert found.changed == ()
    assert [member.path for member in found.derived] == ["parallelism.data", "batch.accumulation"]


def test_a_switch_typed_alike_follows_the_degree_that_turns_it_off() -> None:
    typed = {"parallelism.virtual_pipeline": 4, "parallelism.schedule": "1f1b", "parallelism.stage_layout": "x"}
    a = receipt({**typed, "parallelism.pipeline": 2})
    b = receipt({**typed, "parallelism.pipeline": 1})
    found = difference(a, b)
    assert found.axes == ("parallelism.pipeline",)
    follow = {"parallelism.virtual_pipeline", "parallelism.schedule", "parallelism.stage_layout"}
    assert {member.path for member in found.derived} == follow


@pytest.mark.parametrize(
    ("typed", "unstated"),
    [
        ({"model.attention_kinds": "13 full"}, ("model.pattern",)),
        ({"model.pattern": "AEAE"}, ("model.depth",)),
        ({"numerics.fp8_recipe": "delayed"}, ("numerics.compute_dtype", *WITNESSED_DTYPE)),
    ],
    ids=["kinds of attention", "a tile", "an FP8 recipe"],
)
def test_what_is_typed_alike_did_not_change_where_one_side_leaves_out_what_decides_it(
    typed: Mapping[str, Any], unstated: tuple[str, ...]
) -> None:
    found = difference(receipt(typed), receipt(typed, drop=unstated))
    assert found.axes == ()
    assert unstated[0] in {member.path for gap in found.unknown for member in gap.members}


TORCH = "2.12.0+cu132"


@pytest.mark.parametrize(
    ("library", "wheel", "old", "new"),
    [
        ("platform.libtpu", "wheels.libtpu", ("0.0.36", "0.0.36"), ("0.0.37", "0.0.37")),
        ("platform.cudnn", "wheels.nvidia_cudnn_cu13", ("9.20.0", "9.20.0.48"), ("9.21.1", "9.21.1.3")),
        ("platform.cuda", "wheels.torch", ("13.2", TORCH), ("13.0", "2.11.0+cu130")),
    ],
)
def test_a_library_follows_the_wheel_that_brings_it(
    library: str, wheel: str, old: tuple[str, str], new: tuple[str, str]
) -> None:
    a, b = (receipt({library: loaded, wheel: installed}) for loaded, installed in (old, new))
    found = difference(a, b)
    assert found.axes == ("wheels",)
    assert library in {member.path for member in found.derived}
    elsewhere = receipt({library: "9.9.9", wheel: new[1]})
    counted = {"platform", "wheels"} if wheel == "wheels.torch" else {"wheels"}  # torch names the CUDA of its build
    assert set(difference(a, elsewhere).axes) == counted


def test_a_wheel_that_is_installed_beside_what_was_loaded_is_no_change() -> None:
    a = receipt({"platform.libtpu": "0.0.36", "wheels.libtpu": "0.0.36", "wheels.complete": True})
    b = receipt({"platform.libtpu": "0.0.36", "wheels.libtpu": "0.0.41", "wheels.complete": True})
    assert difference(a, b).axes == ()
    assert effective(b)["wheels.libtpu"] == "0.0.36"
    of_two = receipt(
        {"platform.cudnn": "9.10.2", "wheels.nvidia-cudnn-cu12": "9.10.2.21", "wheels.nvidia-cudnn-cu13": "9.12.0"}
    )
    assert effective(of_two)["wheels.nvidia-cudnn-cu13"] == "9.12.0"


@pytest.mark.parametrize(
    ("library", "wheels", "loaded"),
    [
        ("platform.nccl", {"nvidia_nccl_cu12": "2.21.5", "nvidia_nccl_cu13": "2.26.2"}, ("2.21.5", "2.26.2")),
        ("platform.cuda", {"torch": TORCH}, ("13.2", "13.2.1")),
    ],
    ids=["another of two wheels", "another patch"],
)
def test_a_library_that_differs_beside_the_same_wheels_is_a_change(
    library: str, wheels: Mapping[str, str], loaded: tuple[str, str]
) -> None:
    installed = {f"wheels.{name}": version for name, version in wheels.items()}
    a, b = (receipt({**installed, library: version}) for version in loaded)
    assert difference(a, b).axes == ("platform",)


def test_hosts_are_blocks_and_windows_are_regimes() -> None:
    found = difference(receipt(), receipt({"run.host": "other", "measurement.timer": "perf_counter"}))
    assert found.changed == ()
    assert [member.path for member in found.blocks] == ["run.host"]
    assert [member.path for member in found.regimes] == ["measurement.timer"]


def test_tokens_a_step_are_work() -> None:
    found = difference(receipt(), receipt({"measurement.tokens_per_step": 131072}))
    assert [member.path for member in found.work] == ["measurement.tokens_per_step"]


# code


def code(**stated: Any) -> Parsed:
    """The clean receipt with no other `code` than this."""
    return receipt({"code": stated or None})


def test_equal_digests_of_the_imported_files_are_equal_code() -> None:
    a, b = code(imported_digest=DIGEST, commit="1"), code(imported_digest=DIGEST, commit="2", dirty=True)
    assert "code" in difference(a, b).equal


def test_other_imported_files_are_other_code_at_one_commit() -> None:
    a, b = code(imported_digest=DIGEST, commit="1"), code(imported_digest=OTHER_DIGEST, commit="1")
    assert difference(a, b).axes == ("code",)


def test_a_digest_on_one_side_only_is_unknown() -> None:
    assert unknown(difference(code(imported_digest=DIGEST), code(commit="1"))) == {"code": "b"}


def test_other_commits_are_other_code() -> None:
    assert difference(code(commit="1"), code(commit="2")).axes == ("code",)


def test_one_commit_shows_no_equality() -> None:
    assert unknown(difference(code(commit="1"), code(commit="1"))) == {"code": "both"}


def test_a_dirty_work_tree_is_unknown_even_in_one_context() -> None:
    dirty = receipt({"code": {"commit": "1", "dirty": True}}, context="one")
    assert unknown(difference(dirty, dirty)) == {"code": "both"}


# open maps


def test_a_key_of_a_complete_map_that_is_absent_is_unset() -> None:
    found = difference(receipt({"flags.NCCL_ALGO": "Ring"}), receipt())
    assert changed(found) == {"flags.NCCL_ALGO": (Member("flags.NCCL_ALGO", "Ring", UNSET),)}


@pytest.mark.parametrize("name", ["flags", "patches", "features"])
def test_a_key_of_an_incomplete_map_that_is_absent_is_unknown(name: str) -> None:
    a, b = receipt({name: {"X": 1}}), receipt({name: {"Y": 1}})
    found = unknown(difference(a, b))
    assert (found[f"{name}.X"], found[f"{name}.Y"]) == ("b", "a")


def test_a_map_that_was_not_captured_whole_may_hide_a_key() -> None:
    partial = receipt({"flags": {"X": 1}})
    assert unknown(difference(partial, partial)) == {"flags.*": "both"}
    assert unknown(difference(receipt(), receipt({"flags.complete": False})))["flags.*"] == "b"


def test_one_context_holds_what_two_partial_maps_do_not_name() -> None:
    partial = receipt({"flags": {"X": 1}}, context="one")
    assert difference(partial, partial).held == ("flags.*",)


def test_all_wheels_are_one_axis() -> None:
    found = difference(receipt(), receipt({"wheels.torch": "2.13.0", "wheels.flash-attn": "2.9.0"}))
    assert found.axes == ("wheels",)


def test_what_else_is_unknown_of_a_changed_axis_adds_nothing() -> None:
    found = difference(receipt(), receipt({"model.hidden": 4096}, drop=("model.head_dim",)))
    assert found.axes == ("dimensions",)
    assert "dimensions" not in unknown(found)


def test_two_builds_of_one_version_are_two_wheels() -> None:
    one = receipt({"wheels.torch": {"version": "2.12.0", "digest": "a" * 8}})
    other = receipt({"wheels.torch": {"version": "2.12.0", "digest": "b" * 8}})
    plain = receipt({"wheels.torch": "2.12.0"})
    assert difference(one, other).axes == ("wheels",)
    assert difference(one, plain).axes == ()
    assert unknown(difference(one, plain))["wheels"] == "b"


def test_what_none_and_off_mean_to_a_flag_is_not_known() -> None:
    found = difference(receipt({"flags.MODE": "off"}), receipt({"flags.MODE": "none"}))
    assert found.axes == ("flags.MODE",)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "mxfp8", "nvfp4", "BF16 + FP8 indexer", "some new type"])
def test_an_fp8_recipe_counts_unless_the_type_is_known_to_be_wide(dtype: str) -> None:
    a = receipt({"numerics.compute_dtype": dtype, "numerics.fp8_recipe": "tensorwise"}, drop=WITNESSED_DTYPE)
    b = receipt({"numerics.compute_dtype": dtype, "numerics.fp8_recipe": "delayed"}, drop=WITNESSED_DTYPE)
    assert difference(a, b).axes == ("precision",)


def test_mtp_heads_that_were_there_before_do_not_bring_their_cross_entropy() -> None:
    a = receipt({"model.mtp_depth": 1, "path.intended.mtp_cross_entropy": "none"}, drop=WITNESSED_MTP)
    b = receipt({"model.mtp_depth": 2, "path.intended.mtp_cross_entropy": "liger"}, drop=WITNESSED_MTP)
    assert set(difference(a, b).axes) == {"model.mtp_depth", "path.mtp_cross_entropy"}


@pytest.mark.parametrize(("switches", "axes"), [
    ((True, False), ("model.mtp_depth",)),
    (("on", "off"), ("model.mtp_depth",)),
    ((1, 0), ("model.mtp_depth",)),
    ((True, True), ("model.mtp_depth",)),
    ((False, True), ("features.mtp", "model.mtp_depth")),
])  # fmt: skip
def test_a_switch_for_mtp_that_restates_its_depth_counts_once(switches: tuple[Any, Any], axes: tuple[str, ...]) -> None:
    a, b = (
        receipt({"features.mtp": switch, "model.mtp_depth": depth})
        for switch, depth in zip(switches, (1, 0), strict=True)
    )
    found = difference(a, b)
    assert set(found.axes) | set(found.unknown) >= set(axes)
    assert ("features.mtp" in {*found.axes, *found.unknown}) == ("features.mtp" in axes)


def test_a_leaf_of_a_later_schema_is_asked_for_where_one_side_states_it() -> None:
    moe = {"model.experts": 16, "model.top_k": 4}
    plain, weighed = receipt(moe), receipt({**moe, "numerics.router_z_loss": 0.001})
    assert "numerics.router_z_loss" not in unknown(difference(plain, plain))
    assert unknown(difference(plain, weighed))["numerics.router_z_loss"] == "a"
    other = receipt({**moe, "numerics.router_z_loss": 0.01})
    assert "numerics.router_z_loss" in changed(difference(weighed, other))


def test_a_model_without_experts_has_no_router() -> None:
    assert value("numerics.router_z_loss", {"model.experts": 0, "numerics.router_z_loss": 0.001}) == OFF
    assert value("numerics.mtp_loss_weight", {"model.mtp_depth": 0, "numerics.mtp_loss_weight": 0.1}) == OFF


def test_one_digest_is_one_model_under_whatever_letters_its_pattern_is_written() -> None:
    seen = {"model.architecture": DIGEST}
    other = {**seen, "model.pattern": "[*-]", "model.alphabet": "nemo", "model.depth": 26}
    found = difference(receipt(seen), receipt(other))
    assert "model.architecture" in found.equal
    assert not set(changed(found)) & {"pattern", "dimensions", "model.architecture"}
    assert {"model.pattern", "model.depth"} <= {member.path for member in found.derived}


def test_equal_digests_hold_the_shape_that_one_side_leaves_unstated_and_no_heads() -> None:
    seen = {"model.architecture": DIGEST}
    found = difference(receipt(seen), receipt(seen, ("model.hidden", "model.pattern", "model.heads")))
    gaps = {member.path for item in found.unknown for member in item.members}
    assert "model.heads" in gaps
    assert not gaps & {"model.hidden", "model.pattern"}


def test_two_digests_are_two_models_and_one_change() -> None:
    one, other = {"model.architecture": DIGEST}, {"model.architecture": OTHER_DIGEST}
    assert set(changed(difference(receipt(one), receipt(other)))) == {"model.architecture"}
    wider = {**other, "model.hidden": 8192}
    assert set(changed(difference(receipt(one), receipt(wider)))) == {"dimensions"}
    assert not difference(receipt(one), receipt()).changed
