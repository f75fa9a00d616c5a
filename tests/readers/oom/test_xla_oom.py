"""Failed allocations of XLA on TPUs and GPUs, and what only looks like one."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import AllocationFailure, Reading
from receipts.ingest.scan import scan
from receipts.readers.oom.report import OomReader

GIB = 1 << 30
MIB = 1 << 20

HBM = (
    "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory "
    "space hbm. Used 40.50G of 31.25G hbm. Exceeded hbm capacity by 9.25G."
)
REPORT = f"""{HBM}

Total hbm usage >= 40.75G:
    reserved        260.00M
    program          40.50G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 40.50G:
    HLO temp         40.50G (94.7% utilization: Unpadded (40.00G) Padded (40.50G), 0.0% fragmentation (0B))

  Largest program allocations in hbm:

  1. Size: 8.00G
     Operator: op_name="jit(step)/jvp(attention)/dot_general" source_file="/job/model.py" source_line=7
     Shape: bf16[8,16,4096,4096]{{3,2,1,0:T(8,128)(2,1)}}
     Unpadded size: 8.00G
     XLA label: fusion.1 = fusion(p0), kind=kOutput
     Allocation type: HLO temp
     ==========================

  2. Size: 1.00G
     Operator: op_name="jit(step)/other"
     Allocation type: HLO temp
     ==========================

"""


def reading(text: str) -> Reading | None:
    found = scan([text.encode()], [OomReader])
    return found[0] if found else None


def only(text: str) -> AllocationFailure:
    found = reading(text)
    assert found is not None
    assert len(found.failures) == 1, found.failures
    return found.failures[0]


def test_a_program_above_the_chips_memory() -> None:
    failure = only(HBM)
    assert (failure.class_, failure.phase) == ("compile_hbm", "compile")
    assert (failure.used_bytes, failure.limit_bytes) == (round(40.5 * GIB), round(31.25 * GIB))


@pytest.mark.parametrize("text", [HBM.replace("40.50G of ", "40.50G of\n"), HBM.replace(". ", ".\n- ")])
def test_a_wrapped_message_is_one(text: str) -> None:
    assert only(text).limit_bytes == round(31.25 * GIB)


def test_the_middle_sentence_alone_is_the_failure() -> None:
    assert only("`Used 41.76G of 31.25G hbm. Exceeded hbm capacity by 10.51G.`").class_ == "compile_hbm"


def test_a_message_that_stops_before_its_figures_has_none() -> None:
    failure = only(HBM[: HBM.index("Used")])
    assert (failure.class_, failure.used_bytes, failure.limit_bytes) == ("compile_hbm", None, None)


def test_a_code_names_the_class_where_the_rest_is_cut() -> None:
    assert only("RESOURCE_EXHAUSTED: E1001: CompileTimeScopedVmemOom: XLA:TPU comp").class_ == "compile_vmem"


def test_the_reports_largest_allocation_is_the_operator() -> None:
    assert only(REPORT).operator == "jit(step)/jvp(attention)/dot_general"


def test_a_matrix_of_scores_shows_unfused_attention() -> None:
    found = reading(REPORT)
    assert found is not None
    assert [(item.leaf, item.value) for item in found.seen] == [("attention", "xla_unfused")]
    narrow = reading(REPORT.replace("4096,4096]", "4096,128]"))
    assert narrow is not None
    assert narrow.seen == []


@pytest.mark.parametrize(
    ("einsum", "seen"), [("...qhd,...khd->...hqk/dot_general", True), ("...d,df->...f/dot_general", False)]
)
def test_scores_of_a_folded_batch_are_known_by_their_einsum(einsum: str, seen: bool) -> None:
    text = REPORT.replace("jvp(attention)/dot_general", f"jvp(layer)/{einsum}[precision=None]")
    found = reading(text.replace("bf16[8,16,4096,4096]{3,2,1,0", "bf16[16,4096,4096]{2,1,0"))
    assert found is not None
    assert [item.value for item in found.seen] == ["xla_unfused"] * seen


def test_one_allocation_above_the_memory() -> None:
    failure = only(
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Allocation (size=5000000000) would exceed memory (size=4000000000) :: "
        "#allocation10 [shape = 'f32[9,9]{1,0}', space=hbm, size = 0xff, tag = 'output of fusion.2@{}'] :: <none>"
    )
    assert (failure.requested_bytes, failure.limit_bytes) == (5_000_000_000, 4_000_000_000)
    assert failure.operator == "output of fusion.2@{}"


def test_the_space_of_an_allocation_decides_its_class() -> None:
    text = (
        "RESOURCE_EXHAUSTED: Allocation (size=9) would exceed memory (size=8) :: #a [shape = 'u8[9]', space=vmem, tag"
    )
    assert only(text).class_ == "compile_vmem"


def test_the_newest_form_is_one_line() -> None:
    failure = only(
        "RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for HLO temporaries (64.00G) exceeds "
        "available HBM (31.25G)."
    )
    assert (failure.class_, failure.used_bytes, failure.requested_bytes) == ("compile_hbm", 64 * GIB, None)


def test_sparsecore_and_tensorcore_share_the_memory() -> None:
    failure = only(
        "RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 30.00G, SparseCore Hbm usage 70.00G, exceeding available bytes: "
        "95.00G"
    )
    assert (failure.used_bytes, failure.limit_bytes) == (100 * GIB, 95 * GIB)


def test_a_kernels_stack_above_its_scoped_limit() -> None:
    failure = only(
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for %gmm.7 = bf16[8,128] "
        "custom-call(%a). Scoped allocation with size 48.00M and limit 32.00M exceeded scoped vmem limit by 16.00M."
    )
    assert (failure.class_, failure.operator) == ("compile_vmem", "gmm.7")
    assert (failure.requested_bytes, failure.limit_bytes) == (48 * MIB, 32 * MIB)


def test_mosaic_compares_the_same_two_figures() -> None:
    failure = only("Mosaic failed to compile TPU kernel: Insufficient scoped vmem: 44.00M > 32M")
    assert (failure.requested_bytes, failure.limit_bytes) == (44 * MIB, 32 * MIB)


def test_the_scalar_memory_is_a_class_of_its_own() -> None:
    assert only("Ran out of memory in memory space smem. Used 2.00M of 1.00M smem.").class_ == "compile_smem"


@pytest.mark.parametrize(
    ("text", "fatal"),
    [
        ("RESOURCE_EXHAUSTED: Shared memory size limit exceeded: requested 163840, available: 101376", True),
        ("OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376. Reduce", True),
        ("autotuning: out of resource: shared memory, Required: 163840, Hardware limit: 101376. Ignoring this", False),
    ],
)
def test_a_gpu_kernels_shared_memory_is_on_the_chip(text: str, fatal: bool) -> None:
    failure = only(text)
    assert (failure.class_, failure.phase, failure.fatal) == ("compile_smem", "compile", fatal)
    assert (failure.requested_bytes, failure.limit_bytes) == (163840, 101376)


def test_the_shorter_message_may_lack_its_figures() -> None:
    failure = only("RESOURCE_EXHAUSTED: Ran out of memory on HBM\nthe rest was cut\n")
    assert (failure.class_, failure.used_bytes) == ("compile_hbm", None)


@pytest.mark.parametrize(
    ("program", "phase"),
    [
        ("jit_train_step", "startup"),
        ("jit(step_fn)", "startup"),
        ("jit_stepwise_copy", "unknown"),
        ("jit_init", "unknown"),
    ],
)
def test_a_step_that_cannot_be_loaded_fails_at_startup(program: str, phase: str) -> None:
    failure = only(
        f"RESOURCE_EXHAUSTED: Error loading program '{program}': Attempting to reserve 20.00G at the bottom of memory. "
        "That was not possible. There are 12.00G free, 0B reserved, and 12.00G reservable."
    )
    assert (failure.class_, failure.phase, failure.operator) == ("program_load", phase, program)
    assert (failure.requested_bytes, failure.free_bytes) == (20 * GIB, 12 * GIB)


def test_a_program_may_ask_to_allocate_and_wrap() -> None:
    text = (
        "RESOURCE_EXHAUSTED: Error loading program 'jit_f': Attempting to\nallocate 2.00G. That was not possible. "
        "There are 900.00M free."
    )
    assert (only(text).class_, only(text).free_bytes) == ("program_load", 900 * MIB)


@pytest.mark.parametrize(("free", "expected"), [("6.43M", "runtime_alloc"), ("64.00M", "fragmentation")])
def test_a_buffer_that_does_not_fit_though_there_is_room(free: str, expected: str) -> None:
    text = (
        "RuntimeError: Bad StatusOr access: RESOURCE_EXHAUSTED: Error allocating device buffer: Attempting to allocate "
        f"8.00M. That was not possible. There are {free} free.; (0x0x1_HBM0)"
    )
    failure = only(text)
    assert failure.class_ == expected
    assert failure.chip is None


def test_torch_xla_names_the_device_on_the_line_before() -> None:
    text = (
        "Exception in device=TPU:6: RESOURCE_EXHAUSTED: From /job:localservice/replica:0/task:0:\n"
        "  (0) RESOURCE_EXHAUSTED: Attempting to reserve 4.00G at the bottom of memory. That was not possible. There "
        "are 2.00G free, 0B reserved, and 2.00G reservable.\n"
    )
    assert (only(text).chip, only(text).class_) == (6, "program_load")


def test_the_pools_line_and_the_exact_one_are_one_failure() -> None:
    text = (
        "W bfc_allocator.cc:482] Allocator (GPU_3_bfc) ran out of memory trying to allocate 4.00GiB (rounded to "
        "4294967296)requested by op \nI bfc_allocator.cc:1100] Stats: \nLimit:            12000000000\n"
        "InUse:            11000000000\nMaxInUse:         11500000000\n"
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967290 bytes.\n"
    )
    failure = only(text)
    assert (failure.chip, failure.requested_bytes) == (3, 4294967290)
    assert (failure.limit_bytes, failure.used_bytes) == (12_000_000_000, 11_000_000_000)


def test_a_pool_that_can_do_with_less_names_the_chip_of_the_failure_after_it() -> None:
    text = (
        "W bfc_allocator.cc:291] Allocator (GPU_1_bfc) ran out of memory trying to allocate 4.00GiB with "
        "freed_by_count=0. The caller indicates that this is not a failure, but more memory may be faster.\n"
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4294967290 bytes.\n"
    )
    found = reading(text)
    assert found is not None
    assert [(item.is_oom, item.chip) for item in found.failures] == [(False, 1), (True, 1)]


def test_the_newer_gpu_message_names_the_executable() -> None:
    failure = only(
        "RESOURCE_EXHAUSTED: Out of memory while trying to\nallocate 46.50GiB. [executable_name='jit_fn'] [x='']"
    )
    assert (failure.requested_bytes, failure.operator) == (round(46.5 * GIB), "jit_fn")


def test_the_asynchronous_pool_tells_free_and_total() -> None:
    failure = only(
        "E1103 18:23:55.103160 3413767 a.cc:361] gpu_async_1 cuMemAllocAsync failed to allocate 9000000000 bytes: "
        "RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory\n"
        " Reported by CUDA: Free memory/Total memory: 2000000000/8000000000\n"
    )
    assert (failure.chip, failure.free_bytes, failure.limit_bytes) == (1, 2_000_000_000, 8_000_000_000)


def test_a_module_that_finds_no_memory_is_a_program_that_cannot_be_loaded() -> None:
    text = (
        "RESOURCE_EXHAUSTED: [0] Failed to load in-memory\nCUBIN (compiled for a different GPU?).: "
        "CUDA_ERROR_OUT_OF_MEMORY: out of memory\n[executable_name='jit_train_step']\n"
    )
    assert (only(text).class_, only(text).phase) == ("program_load", "startup")


@pytest.mark.parametrize(
    "text",
    [
        "W hlo_rematerialization.cc:2941] Can't reduce memory use below 22.27GiB (23917347918 bytes)",
        "I tpu_program.cc:12] Total hbm usage >= 260.14M:\n    reserved        260.00M\n",
        "INTERNAL: Mosaic failed: #tpu.memory_space<vmem> Unsupported version: expected <= 7 but got 8",
        "INVALID_ARGUMENT: Executable(jit_f) expected parameter 2 of size 52 (bf16[16]) but got buffer with "
        "incompatible size 16 (bf16[4])",
        "INTERNAL: Accelerator device halted prematurely, perhaps due to an on-device check-failure.",
        "Total memory size: 99.4 GB, Output size: 11.2 GB, Temp size: 20.1 GB, Argument size: 11.2 GB",
    ],
)
def test_what_looks_like_a_failure_and_is_none(text: str) -> None:
    failure = only(text)
    assert (failure.is_oom, failure.class_, failure.fatal) == (False, "not_oom", False)


def test_an_exhausted_quota_is_no_memory() -> None:
    assert reading("RESOURCE_EXHAUSTED: Received message larger than max (5000000 vs. 4194304)\n") is None


def test_every_attempt_of_a_file_is_kept() -> None:
    found = reading(f"{HBM}\nlowering the batch\n{HBM.replace('40.50G', '35.50G')}\n")
    assert found is not None
    assert [item.used_bytes for item in found.failures] == [round(40.5 * GIB), round(35.5 * GIB)]


def test_tensorflows_tensor_tells_its_bytes_by_shape_and_type() -> None:
    failure = only("OOM when allocating tensor with shape[64,512,768] and type half on /job:w/device:GPU:1 by G")
    assert (failure.class_, failure.requested_bytes, failure.chip) == ("runtime_alloc", 64 * 512 * 768 * 2, 1)


def test_tensorflows_allocation_that_names_no_size_is_a_failure_at_run_time() -> None:
    failure = only("tensorflow ResourceExhaustedError: RESOURCE_EXHAUSTED: failed to allocate memory [Op:Mul]")
    assert (failure.class_, failure.requested_bytes) == ("runtime_alloc", None)


@pytest.mark.parametrize(
    ("code", "class_", "phase"),
    [
        ("E1000: CompileTimeHbmOom: ... f32[512,4096]", "compile_hbm", "compile"),
        ("E1001: CompileTimeScopedVmemOom: ... bf16[64,128] ... kernel_7", "compile_vmem", "compile"),
        ("RESOURCE_EXHAUSTED: CompileTimeHbmOom: the rest was cut", "compile_hbm", "compile"),
        ("RESOURCE_EXHAUSTED: E0101: RuntimeProgramAllocationFailure while it loads", "program_load", "unknown"),
    ],
)
def test_a_code_alone_names_the_class(code: str, class_: str, phase: str) -> None:
    (reading,) = scan([f"{code}\n".encode()], [OomReader])
    (failure,) = reading.failures
    assert (failure.is_oom, failure.class_, failure.phase, failure.requested_bytes) == (True, class_, phase, None)


@pytest.mark.parametrize(("operator", "seen"), [("layers_3/attention/bqhd,bkhd->bhqk/dot", True), ("mlp/dot", False)])
def test_scores_of_a_short_sequence_are_known_by_their_operator(operator: str, seen: bool) -> None:
    text = (
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 27917287424 bytes.\n"
        "BufferAssignment OOM Debugging.\nPeak buffers:\n"
        f'    Buffer 1:\n        Size: 96.00MiB\n        Operator: op_name="jit(step)/{operator}"\n'
        "        Shape: bf16[64,6,256,256]\n"
    )
    (reading,) = scan([text.encode()], [OomReader])
    assert [item.value for item in reading.seen] == ["xla_unfused"] * seen


@pytest.mark.parametrize("status", ["", "RESOURCE_EXHAUSTED: : "])
def test_what_the_driver_refuses_has_its_bytes(status: str) -> None:
    failure = only(f"Failed to allocate 3.21GiB (3446669312 bytes) from device: {status}CUDA_ERROR_OUT_OF_MEMORY: x")
    assert (failure.class_, failure.requested_bytes, failure.fatal) == ("runtime_alloc", 3446669312, False)


@pytest.mark.parametrize(
    ("text", "class_", "sizes"),
    [
        # The runtime of 2022 and 2023.
        (
            "RESOURCE_EXHAUSTED: Could not allocate 8388608 bytes in memory 0x0x0_HBM0; 4194304 bytes allocatable, "
            "12582912 bytes available",
            *("fragmentation", {"requested_bytes": 8 * MIB, "free_bytes": 12 * MIB}),
        ),
        (
            "RESOURCE_EXHAUSTED: Could not allocate 16777216 bytes in memory 0x0x0_HBM0; 4194304 bytes allocatable, "
            "12582912 bytes available",
            *("runtime_alloc", {"requested_bytes": 16 * MIB, "free_bytes": 12 * MIB}),
        ),
        # The middle of a message, as notes quote it.
        (
            "RESOURCE_EXHAUSTED: HLO temporaries (16.50G) exceeds available HBM (15.75G)",
            *("compile_hbm", {"used_bytes": 16 * GIB + 512 * MIB, "limit_bytes": 15 * GIB + 768 * MIB}),
        ),
        (
            "RESOURCE_EXHAUSTED: E1001: Scoped allocation with size 33.50M and limit 32.00M exceeded",
            *("compile_vmem", {"requested_bytes": 33 * MIB + 512 * 1024, "limit_bytes": 32 * MIB}),
        ),
        (
            "Mosaic scoped allocation with size 35127296 bytes exceeds the scoped vmem limit of 33554432",
            *("compile_vmem", {"requested_bytes": 33 * MIB + 512 * 1024, "limit_bytes": 32 * MIB}),
        ),
        # A program far above the chip's memory is not compiled to the end.
        (
            "RESOURCE_EXHAUSTED: Compilation failure: Aborting compilation early because it's unlikely to have enough "
            "device memory. Requires 384.00G, has 29.50G available. If more detailed logging is desired, set "
            "--xla_tpu_impure_oom_fast_exit_threshold=-1",
            *("compile_hbm", {"used_bytes": 384 * GIB, "limit_bytes": 29 * GIB + 512 * MIB}),
        ),
        (
            "Aborting compilation early because it's unlikely to have enough memory. Requires 2.50E, has 14.50G "
            "available.",
            *("compile_hbm", {"limit_bytes": 14 * GIB + 512 * MIB}),
        ),
        # SparseCore's compiler counts words.
        (
            "INTERNAL:Failed to run pass pipeline. Hlo-Op: r.1:9:1: error: 'memref.alloca' op current allocation "
            "offset upper bound (135168 words) exceeds the legitimate user allocatable offset upper bound (131071 "
            "words) in memory space 201 when allocating 20480 words.",
            *("compile_vmem", {"used_bytes": 540672, "limit_bytes": 524284, "requested_bytes": 81920}),
        ),
        (
            "Compilation failure: No viable logical replica count for the embedding table with metadata: feature_width "
            "= 8, sample_count = 4096 (fixed_size_allocation_bytes = 4096, total_spmem_size_bytes = 524288)",
            *("compile_vmem", {"limit_bytes": 524288}),
        ),
    ],
)
def test_older_and_quoted_wordings(text: str, class_: str, sizes: dict[str, int]) -> None:
    failure = only(text)
    assert failure.class_ == class_
    assert {name: getattr(failure, name) for name in sizes} == sizes


def test_a_record_that_names_its_chip_completes_one_that_does_not() -> None:
    words = (
        "RESOURCE_EXHAUSTED: Attempting to reserve 9.25G at the bottom of memory. That was not possible. "
        "There are 8.50G free, 0B reserved, and 8.50G reservable."
    )
    lines = [
        f"2023-03-23 02:02:23.050198: W op_kernel.cc:1830] OP_REQUIRES failed at tpu_execute_op.cc:266 : {words}",
        *(f"Exception in device=TPU:{chip}: {words}" for chip in (6, 2)),
        words,
    ]
    found = reading("\n\n".join(lines))
    assert found is not None
    assert [failure.chip for failure in found.failures] == [6, 2]
