"""HLO text: kernels, types of multiplications, collectives, host transfers, shardings, and what is only meant."""

from __future__ import annotations

import re

import pytest

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.xla.hlo import RECORDED, Hlo
from receipts.readers.xla.operations import attention

HEAD = "HloModule jit_train_step, is_scheduled=true, entry_computation_layout={(f32[8]{0})->f32[8]{0}}"


def module(*instructions: str, head: str = HEAD, computations: str = "", end: str = "}\n") -> str:
    body = "".join(f"  {line}\n" for line in instructions)
    return (
        f"{head}\n\n{computations}ENTRY %main.9 (x: f32[8]) -> f32[8] {{\n  %x = f32[8]{{0}} parameter(0)\n{body}{end}"
    )


def call(target: str, name: str = "custom-call.1", op: str = "", kind: str = "bf16[4,128]{1,0}") -> str:
    metadata = f', metadata={{op_name="{op}" source_line=3}}' if op else ""
    return f'%{name} = {kind} custom-call(%x, %x), custom_call_target="{target}"{metadata}'


def dot(left: str, right: str, out: str, number: int = 1) -> tuple[str, str, str]:
    return (
        f"%a.{number} = {left}{{1,0}} copy(%x)",
        f"%b.{number} = {right}{{1,0}} copy(%x)",
        f"%dot.{number} = {out}{{1,0}} dot(%a.{number}, %b.{number}), lhs_contracting_dims={{1}}",
    )


def reading(text: str) -> Reading:
    (found,) = scan([text.encode()], [Hlo])
    return found


def seen(found: Reading) -> dict[str, str]:
    """What was found in the program, but for who made it and where it runs."""
    made = ("framework", "posture", "runtime")
    return {item.leaf: item.value for item in found.seen if item.leaf not in made and item.value}


@pytest.mark.parametrize(
    ("target", "names", "expected"),
    [
        ("tpu_custom_call", "splash_mha_fwd_residuals.3", "pallas_splash"),
        ("tpu_custom_call", "jit(step)/jit(_splash_attention)/splash_mha_dq/pallas_call", "pallas_splash"),
        ("tpu_custom_call", "jit(f)/jit(flash_attention)/pallas_call", "pallas_flash"),
        ("tpu_custom_call", "jit(f)/ragged_dot", None),
        ("__gpu$xla.gpu.triton", "mha_forward", "pallas_flash"),
        ("__cudnn$fmhaSoftmaxBackwardF8", "", "cudnn_fmha"),
        ("__cudnn$fhmaScaleMaskSoftmax", "", "cudnn_fmha"),
        ("te_fused_attn_backward_ffi", "", "te_fused"),
        ("ConcatBitcast", "splash_mha", None),
    ],
)
def test_a_kernel_is_known_by_target_and_name(target: str, names: str, expected: str | None) -> None:
    assert attention(target, names) == expected


def test_a_custom_call_without_a_kernels_name_proves_no_attention() -> None:
    found = reading(module(call("tpu_custom_call", op="jit(step)/ragged_dot"), call("tpu_custom_call", "y")))
    assert found.counters["tpu_custom_call"] == 2
    assert "attention" not in seen(found)
    assert any("proves none" in remark.text for remark in found.remarks)


def test_an_instruction_over_several_lines_keeps_target_and_name_together() -> None:
    text = (
        '%c.3 = (f32[8]{0}, bf16[8]{0}) custom-call(%x), custom_call_target="tpu_custom_call", '
        'frontend_attributes={kernel_metadata={\n"xprof_metadata":"{\\"block_q\\": 64}"\n}}, '
        'metadata={op_name="jit(step)/splash_mqa_fwd/pallas_call" stack_frame_id=0}'
    )
    found = reading(module(text, *dot("f32[8,8]", "f32[8,8]", "f32[8,8]")))
    assert seen(found) == {"attention": "pallas_splash", "compute_dtype": "fp32", "gemm": "xla_fp32"}
    assert found.complete


def test_an_excerpt_wrapped_by_its_author_is_read() -> None:
    text = (
        "the log says\n%cublas-gemm.4 = (f32[64,64], s8[...]) custom-call(%p.1, ...,\n"
        '    %loop_fusion, %c), custom_call_target="__cublas$lt$matmul$f8"\nand ends.\n'
    )
    found = reading(text)
    assert seen(found) == {"compute_dtype": "fp8", "gemm": "cublas_fp8"}
    assert not found.complete


def test_an_instruction_with_every_operand_on_its_own_line_is_one() -> None:
    text = (
        "custom-call.7 = (\n    f8e4m3fn[4,8,64,32]{3,1,2,0},\n    f32[1,1]{1,0}\n"
        ") custom-call(\n    q.1,\n    /*index=1*/k.2\n"
        '),\ncustom_call_target="__cudnn$fmhaSoftmaxF8",\nbackend_config={\n    "operation_queue_id": "0"\n}\n'
    )
    for whole in (text, HEAD + "\n\nENTRY main {\n" + text + "}\n"):
        found = reading(whole)
        assert found.counters["__cudnn$fmhaSoftmaxF8"] == 1
        assert seen(found)["attention"] == "cudnn_fmha"


def test_an_instruction_that_was_cut_does_not_swallow_the_next() -> None:
    cut = "%all-gather.1 = bf16[8,128]{1,0} all-gather(%x,"
    found = reading(module(cut, call("__cublas$gemm"), call("__cublas$gemm", "custom-call.2")))
    assert (found.counters["all-gather"], found.counters["__cublas$gemm"]) == (1, 2)


def test_an_entry_whose_parameters_have_their_own_lines_ends_its_module() -> None:
    entry = "ENTRY %main (\n  %q: f32[8],\n  %k: f32[8]\n) -> f32[8] {\n  ROOT %add = f32[8]{0} add(%q, %k)\n}\n"
    assert reading(f"{HEAD}\n\n{entry}").complete


def test_a_head_alone_is_known_and_proves_nothing() -> None:
    found = reading(HEAD + '\n\nFileNames\n1 "train.py"\n')
    assert (found.source, found.complete, seen(found)) == ("hlo", False, {})


def test_a_librarys_product_is_the_compilers_work_without_a_schedule() -> None:
    head = "HloModule test, entry_computation_layout={(f8e4m3fn[16,32]{1,0})->f32[16,16]{1,0}}"
    found = reading(module(call("__cublas$lt$matmul$f8"), head=head))
    assert [item.level for item in found.seen if item.leaf == "gemm"] == ["kernels"]


def step(*instructions: str) -> str:
    return f"{RECORDED}\n{module(*instructions)}"


def test_a_step_without_products_of_activations_attends_nothing() -> None:
    backward = '%dot.1 = f32[64,48]{1,0} dot(%x, %w), metadata={op_name="jit(step)/transpose(jvp())/dot_general"}'
    types = ("%x = f32[64,32]{1,0} parameter(0)", "%w = f32[32,48]{1,0} parameter(1)")
    assert seen(reading(step(*types, backward)))["attention"] == "none"
    assert "attention" not in seen(reading(module(*types, backward)))  # it may be one program of many
    scores = "%dot.2 = f32[4,16,16]{2,1,0} dot(%x, %w), lhs_batch_dims={0}, rhs_batch_dims={0}"
    for more in (scores, call("any_kernel", "custom-call.3")):
        assert "attention" not in seen(reading(step(*types, backward, more)))
    assert "attention" not in seen(reading(step(*types, backward.replace("transpose(jvp())", "jvp()"))))


def test_the_types_that_are_multiplied_are_those_of_the_operands() -> None:
    lost = module(
        "%q = f8e4m3fn[64,64]{1,0} convert(%x)",
        "%back = bf16[64,64]{1,0} convert(%q)",
        "%dot.2 = bf16[64,64]{1,0} dot(%back, %back), lhs_contracting_dims={1}",
    )
    assert seen(reading(lost)) == {"compute_dtype": "bf16", "gemm": "xla_bf16"}
    kept = module("%q = f8e4m3fn[64,64]{1,0} convert(%x)", "%dot.2 = bf16[64,64]{1,0} dot(%q, %q)")
    assert seen(reading(kept)) == {"compute_dtype": "fp8", "gemm": "xla_fp8"}


def test_integers_that_the_compiler_widened_are_what_is_multiplied() -> None:
    assert seen(reading(module(*dot("s32[512,256]", "s32[256,512]", "s32[512,512]"))))["gemm"] == "xla_int32"


def test_types_beside_operands_are_read_where_old_text_has_them() -> None:
    text = module("dot.3 = f32[16,16]{1,0} dot(s8[16,32]{1,0} a.1, s8[32,16]{1,0} b.2), lhs_contracting_dims={1}")
    assert seen(reading(text)) == {"compute_dtype": "int8", "gemm": "xla_int8"}


def test_small_multiplications_do_not_name_the_compute_type() -> None:
    large = dot("bf16[1024,1024]", "bf16[1024,1024]", "bf16[1024,1024]")
    small = dot("f32[8,8]", "f32[8,8]", "f32[8,8]", 2)
    assert seen(reading(module(*large, *small))) == {"compute_dtype": "bf16", "gemm": "xla_bf16"}
    even = dot("f32[1024,1024]", "f32[1024,1024]", "f32[1024,1024]", 2)
    assert set(seen(reading(module(*large, *even)))["compute_dtype"].split("+")) == {"bf16", "fp32"}


SCORES = (
    "%q = bf16[2,256,64]{2,1,0} copy(%x)",
    "%s.1 = bf16[2,256,256]{2,1,0} dot(%q, %q), lhs_batch_dims={0}",
    "%e.1 = f32[1,2,256,256]{3,2,1,0} exponential(%s.1)",
    "%r.1 = f32[2,256]{1,0} reduce(%e.1, %x), dimensions={3}, to_apply=%region_0.2",
)


def test_scores_of_every_pair_are_unfused_attention() -> None:
    assert seen(reading(module(*SCORES)))["attention"] == "xla_unfused"


def test_scores_of_groups_of_query_heads_are_unfused_attention() -> None:
    grouped = (
        "%q = f32[4,2,128,8]{3,2,1,0} parameter(0)",
        "%k = f32[4,2,8,32]{3,2,1,0} parameter(1)",
        "%dot.1 = f32[4,2,128,32]{3,2,1,0} dot(%q, %k), lhs_batch_dims={0,1}, rhs_batch_dims={0,1}",
        "%s = f32[4,4,2,32,32]{4,3,2,1,0} bitcast(%dot.1)",
        "%max = f32[4,4,2,32]{3,2,1,0} reduce(%s, %zero), dimensions={4}, to_apply=%region",
        "%exp.1 = f32[4,4,2,32,32]{4,3,2,1,0} exponential(%s)",
    )
    assert seen(reading(module(*grouped)))["attention"] == "xla_unfused"


def test_scores_whose_batch_and_heads_are_multiplied_in_one_extent_are_unfused_attention() -> None:
    split = [
        line.replace("[1,2,256,256]{3,2,1,0} exponential", "[2,4,256,256]{3,2,1,0} exponential") for line in SCORES
    ]
    joined = [line.replace("[2,256,256]{2,1,0} dot", "[8,256,256]{2,1,0} dot") for line in split]
    assert seen(reading(module(*joined)))["attention"] == "xla_unfused"
    assert "attention" not in seen(reading(module(*split)))


def test_scores_that_are_summed_in_windows_are_scores() -> None:
    windows = [line.replace(" reduce(", " reduce-window(") for line in SCORES]
    assert windows != list(SCORES)
    assert seen(reading(module(*windows)))["attention"] == "xla_unfused"


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_part_of_a_softmax_is_no_attention(missing: int) -> None:
    kept = [line for index, line in enumerate(SCORES) if index != missing]
    assert "attention" not in seen(reading(module(*kept)))


def test_a_fused_kernel_beside_scores_is_the_attention() -> None:
    found = reading(module(*SCORES, call("__cudnn$fmhaSoftmax")))
    assert seen(found)["attention"] == "cudnn_fmha"


def test_collectives_are_counted_by_kind_and_start() -> None:
    scatter = "%all-reduce-scatter.2 (i: f32[8]) -> f32[2] {\n  %i = f32[8]{0} parameter(0)\n}\n\n"
    found = reading(
        module(
            "%all-gather.1 = f32[32]{0} all-gather(%x), replica_groups={{0,1,2,3}}",
            "%cp = (f32[8]{0}, f32[8]{0}, u32[]) collective-permute-start(%x), channel_id=4",
            "%cpd = f32[8]{0} collective-permute-done(%cp)",
            "%f = f32[2]{0} fusion(%x), kind=kCustom, calls=%all-reduce-scatter.2",
            computations=scatter,
        )
    )
    counted = {name: count for name, count in found.counters.items() if count}
    assert counted == {"all-gather": 1, "collective-permute-start": 1, "fused_reduce_scatter": 1}


def partitioned(sharding: str, *lines: str) -> str:
    weight = f"%w = bf16[64,64]{{1,0}} parameter(1), sharding={sharding}, metadata={{op_name=\"p[\\'w\\']\"}}"
    return module(weight, *lines, head=f"{HEAD}, num_partitions=4")


@pytest.mark.parametrize(
    "groups", ["{{0,1,2,3}}", "[1,4]<=[4]", "mesh['axis_0'=4,'axis_1'=1] {'axis_0'}, use_global_device_ids=true"]
)
def test_gathers_and_scatters_over_all_chips_are_fsdp(groups: str) -> None:
    text = partitioned(
        "{devices=[4,1]<=[4]}",
        f"%g = bf16[64,64]{{1,0}} all-gather(%w), replica_groups={groups}",
        f"%r = bf16[64,64]{{1,0}} reduce-scatter(%w), replica_groups={groups}",
    )
    assert seen(reading(text)) == {"sharding": "fsdp"}


def test_whole_parameters_and_reductions_are_data_parallel() -> None:
    text = partitioned("{replicated}", "%r = bf16[64,64]{1,0} all-reduce(%w), replica_groups={{0,1,2,3}}")
    assert seen(reading(text)) == {"sharding": "dp", "replicated": "p['w']"}


def test_a_mesh_of_two_axes_has_no_name() -> None:
    text = partitioned("{replicated}", "%r = bf16[64,64]{1,0} all-reduce(%w), replica_groups={{0,1},{2,3}}")
    assert seen(reading(text)) == {"replicated": "p['w']"}


@pytest.mark.parametrize(
    ("sharding", "replicated"),
    [
        ("{replicated}", True),
        ("{devices=[1,1,4]<=[4] last_tile_dim_replicate}", True),
        ("{devices=[2,1,2]<=[4] last_tile_dim_replicate}", False),
        ("{devices=[1,4]<=[4]}", False),
        ("{maximal device=0}", False),
        ("{manual}", False),
    ],
)
def test_an_array_is_replicated_where_no_dimension_is_split(sharding: str, replicated: bool) -> None:
    assert ("replicated" in seen(reading(partitioned(sharding)))) is replicated


def test_a_program_of_one_chip_replicates_nothing() -> None:
    text = partitioned("{replicated}").replace(", num_partitions=4", "")
    assert "replicated" not in seen(reading(text))


def test_a_host_transfer_inside_the_step_is_counted_once() -> None:
    found = reading(
        module(
            "%send.1 = (f32[], u32[], token[]) send(%x, %t), channel_id=1, is_host_transfer=true",
            "%send-done.2 = token[] send-done(%send.1), channel_id=1, is_host_transfer=true",
            "%send.3 = (f32[], u32[], token[]) send(%x, %t), channel_id=2",
        )
    )
    assert (found.host_transfers, found.steps_covered) == (1, 1)


@pytest.mark.parametrize("target", ["xla_python_cpu_callback", "xla_ffi_python_gpu_callback"])
def test_a_python_callback_is_a_host_transfer(target: str) -> None:
    assert reading(module(call(target))).host_transfers == 1


def test_no_transfer_in_a_program_does_not_prove_a_silent_host() -> None:
    assert reading(module(call("tpu_custom_call"))).host_transfers is None


def test_a_truncated_module_proves_presence_and_no_absence() -> None:
    text = module(call("tpu_custom_call", op="jit(f)/flash_attention/pallas_call"), end="")
    found = reading(text)
    assert seen(found)["attention"] == "pallas_flash"
    assert not found.complete
    assert found.compile.program_digest is None


def test_text_from_before_the_passes_is_intent() -> None:
    found = reading(
        module(*dot("bf16[8,8]", "bf16[8,8]", "bf16[8,8]"), head="HloModule jit_train_step, num_partitions=2")
    )
    assert [(item.value, item.level) for item in found.seen] == [("bf16", "intent"), ("xla_bf16", "intent")]
    assert found.compile.program_digest is None


def test_tables_between_head_and_computations_are_passed_over() -> None:
    table = "FileNames\n" + "".join(f'{index} "/home/a/f{index}.py"\n' for index in range(1, 900)) + "\nStackFrames\n"
    text = module(
        call("tpu_custom_call", op="splash_mha/pallas_call"), head=f"{HEAD}, meshes={{mesh = <1>}}\n\n{table}"
    )
    assert reading(text).complete


@pytest.mark.parametrize(
    ("head", "scope", "applied"),
    [
        (HEAD, "jit(train_step)/transpose(jvp())/checkpoint/rematted_computation/dot_general", "checkpoint"),
        (HEAD, "jit(train_step)/jvp(checkpoint)/dot_general", None),
        (HEAD.replace("is_scheduled=true, ", ""), "jit(f)/transpose(jvp())/checkpoint/rematted_computation/dot", None),
    ],
    ids=["computed again", "only wrapped", "before the compiler's passes"],
)
def test_what_jax_computes_again_is_a_checkpoint(head: str, scope: str, applied: str | None) -> None:
    *operands, product = dot("f32[8,8]", "f32[8,8]", "f32[8,8]")
    found = reading(module(*operands, f'{product}, metadata={{op_name="{scope}"}}', head=head))
    stated = found.stated.get("numerics.recompute_applied")
    assert (stated and stated.value) == applied


def test_the_digest_knows_the_program_and_not_the_day() -> None:
    lines = dot("bf16[8,8]", "bf16[8,8]", "bf16[8,8]")
    text = module(*(f'{line}, metadata={{op_name="a" source_line=3}}' for line in lines))
    renamed = text.replace(".1", ".77").replace("source_line=3", "source_line=41").replace("%main.9", "%main.10")
    digest = reading(text).compile.program_digest
    assert digest
    assert reading(renamed).compile.program_digest == digest
    assert reading(text.replace("bf16", "f32")).compile.program_digest != digest
    assert reading(text.replace("dims={1}", "dims={0}")).compile.program_digest != digest
    constants = module("%c = f32[] constant(0.01001)")
    assert reading(constants).compile.program_digest != reading(constants.replace("01001", "5")).compile.program_digest


def test_the_digest_of_a_long_program_does_not_know_the_length_of_its_paths() -> None:
    def program(path: str) -> str:
        lines = (
            f'%c.{index} = f32[] constant(0.{index}), metadata={{source_file="{path}"}}\n'
            f'  %a.{index} = f32[8]{{0}} add(%x, %x), metadata={{source_file="{path}"}}'
            for index in range(3000)
        )
        return module(*lines)

    short, long = program("/a.py"), program("/home/someone/else/entirely/train.py")
    assert reading(short).compile.program_digest == reading(long).compile.program_digest


def test_lines_of_a_report_of_a_failed_allocation_are_no_program() -> None:
    text = "XLA label: %all-gather.1 = bf16[64,64]{1,0} all-gather(%w)\n  %dot: a b\nvalue = 3 dot(\n"
    assert scan([text.encode()], [Hlo]) == []


def test_warnings_of_mosaic_are_told() -> None:
    text = "TPU is in megacore mode, but Mosaic failed to\npartition the kernel across cores.\n"
    found = reading(text + "INVALID_ARGUMENT: Unsupported version: expected <= 7 but got 8\n")
    assert [remark.kind for remark in found.remarks] == ["note", "note"]
    assert found.seen == []


def test_a_kernel_that_mosaic_could_not_compile_is_not_one_that_it_could_not_split() -> None:
    text = "INTERNAL: Mosaic failed to compile TPU kernel: Insufficient scoped vmem: 40.00M > 32M\n"
    assert scan([text.encode()], [Hlo]) == []


def test_ptxas_names_the_kernels_of_pallas_on_gpu() -> None:
    text = "ptxas info    : Compiling entry function 'mha_forward' for 'sm_90a'\n"
    assert seen(reading(text)) == {"attention": "pallas_flash"}
    assert scan([text.replace("mha_forward", "fusion_3").encode()], [Hlo]) == []


def test_a_loggers_prefix_before_every_line_is_passed_over() -> None:
    text = module(*dot("bf16[8,8]", "bf16[8,8]", "bf16[8,8]"), call("tpu_custom_call", op="splash_mha/pallas_call"))
    found = reading("".join(f"I1120 10:00:00.1 7 compiler.cc:3] {line}\n" for line in text.splitlines()))
    assert seen(found) == {"attention": "pallas_splash", "compute_dtype": "bf16", "gemm": "xla_bf16"}
    assert found.complete


@pytest.mark.parametrize(("before", "after"), [("[rank0]: ", ""), ("> ", ""), ("2025-11-02T08:14:11Z stderr F ", "  ")])
def test_an_end_behind_a_prefix_and_blanks_behind_a_line_are_passed_over(before: str, after: str) -> None:
    cut = call("__cudnn$fmhaSoftmax").replace(", custom", ",\n custom")
    text = module(cut, *dot("bf16[8,8]", "bf16[8,8]", "bf16[8,8]"))
    found = reading("".join(f"{before}{line}{after}\n" for line in text.splitlines()))
    assert found.complete
    assert seen(found) == seen(reading(text))


def test_two_modules_are_whole_where_both_are() -> None:
    whole = module(call("tpu_custom_call"))
    assert reading(whole + whole).complete
    cut = re.sub(r"\}\n\Z", "", whole)
    assert not reading(cut + whole).complete


def made(found: Reading) -> dict[str, str]:
    return {item.leaf: item.value for item in found.seen}


def test_a_whole_program_of_jit_shows_its_posture_and_that_nothing_fell_back() -> None:
    found = reading(module(*dot("f32[8,8]", "f32[8,8]", "f32[8,8]")))
    assert (made(found)["framework"], made(found)["posture"], found.fallbacks) == ("jax", "jit", {})


def test_a_cut_program_shows_no_posture() -> None:
    found = reading(module(*dot("f32[8,8]", "f32[8,8]", "f32[8,8]"), end=""))
    assert ("posture" in made(found), found.fallbacks) == (False, None)


def test_a_program_of_lazy_tensors_is_torch_xlas_and_tells_no_fallback() -> None:
    text = module(*dot("f32[8,8]", "f32[8,8]", "f32[8,8]"), head=HEAD.replace("jit_train_step", "SyncTensorsGraph.9"))
    found = reading(text)
    assert made(found)["framework"] == "torch-xla"
    assert ("posture" in made(found), found.fallbacks) == (False, None)


def test_tiles_are_the_tpus() -> None:
    head = HEAD.replace("f32[8]{0})", "f32[8,128]{1,0:T(8,128)})")
    assert made(reading(module("%y = f32[8]{0} copy(%x)", head=head)))["runtime"] == "pjrt-tpu"


def test_the_processors_own_settings_tell_its_runtime() -> None:
    line = '%f = f32[8]{0} fusion(%x), kind=kLoop, calls=%c, backend_config={"outer_dimension_partitions":["2"]}'
    assert made(reading(module(line)))["runtime"] == "cpu"


def test_neither_tiles_nor_settings_tell_no_runtime() -> None:
    assert "runtime" not in made(reading(module("%y = f32[8]{0} copy(%x)")))


def test_what_is_marked_for_the_host_left_the_device() -> None:
    line = '%f = f32[8]{0} fusion(%x), kind=kLoop, calls=%c, frontend_attributes={_xla_compute_type="host"}'
    assert reading(module(line, *dot("f32[8,8]", "f32[8,8]", "f32[8,8]"))).fallbacks == {"fusion": 1}


def test_a_program_that_multiplies_nothing_is_no_step() -> None:
    found = reading(module("%y = f32[8]{0} copy(%x)"))
    assert ("posture" in made(found), found.fallbacks) == (False, None)


def test_a_program_that_splits_all_says_that_it_replicates_nothing() -> None:
    product = dot("f32[8,8]", "f32[8,8]", "f32[8,8]")
    assert made(reading(partitioned("{devices=[4,1]<=[4]}", *product)))["replicated"] == ""


def test_a_small_array_was_never_worth_splitting() -> None:
    scale = '%s = f32[8,4]{1,0} parameter(2), sharding={replicated}, metadata={op_name="scale"}'
    weight = '%v = bf16[4096,64]{1,0} parameter(3), sharding={devices=[4,1]<=[4]}, metadata={op_name="v"}'
    product = dot("f32[8,8]", "f32[8,8]", "f32[8,8]")
    assert made(reading(partitioned("{devices=[4,1]<=[4]}", scale, weight, *product)))["replicated"] == ""


def test_gathered_parameters_are_fsdp_beside_another_axis() -> None:
    gather = "%g = bf16[128,64]{1,0} all-gather(%w), replica_groups={{0,1},{2,3}}"
    assert seen(reading(partitioned("{devices=[2,2]<=[4]}", gather))) == {"sharding": "fsdp"}


def test_gathered_activations_name_no_family() -> None:
    lines = (
        "%h = bf16[4,32,16]{2,1,0} copy(%x)",
        "%g = bf16[8,32,16]{2,1,0} all-gather(%h), replica_groups={{0,1},{2,3}}",
    )
    assert seen(reading(partitioned("{devices=[2,2]<=[4]}", *lines))) == {}


def test_many_small_arrays_do_not_hide_a_large_one() -> None:
    row = '%s{0} = f32[2,4]{{1,0}} parameter({0}), sharding={{replicated}}, metadata={{op_name="scale{0}"}}'
    small = [row.format(at) for at in range(2, 302)]
    large = '%v = bf16[4096,64]{1,0} parameter(302), sharding={replicated}, metadata={op_name="v"}'
    text = partitioned("{devices=[4,1]<=[4]}", *small, large, *dot("f32[8,8]", "f32[8,8]", "f32[8,8]"))
    assert made(reading(text))["replicated"] == "v"


def test_an_excerpt_wrapped_before_its_opcode_is_counted() -> None:
    text = (
        "  %fmha.3 = (bf16[4,16,64,64]{3,2,1,0}, u8[0]{0})\n"
        '    custom-call(%q, %k, %v), custom_call_target="__cudnn$fmhaSoftmaxF8",\n'
        '    backend_config={"fmha_scale":1}\n'
    )
    found = reading(text)
    assert found.counters["__cudnn$fmhaSoftmaxF8"] == 1
    assert seen(found)["attention"] == "cudnn_fmha"
