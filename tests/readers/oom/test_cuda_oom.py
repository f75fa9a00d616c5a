"""Failed allocations of torch, CUDA's libraries, NCCL and the host, as their messages tell them."""

from __future__ import annotations

import pytest

from receipts.ingest.reading import AllocationFailure, Place, Reading, first_cause
from receipts.ingest.scan import scan
from receipts.readers.oom.cuda import OomFigures, classify
from receipts.readers.oom.report import OomReader

GIB = 1 << 30
MIB = 1 << 20

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 5 has a total capacity of 139.81 GiB "
    "of which 1.25 GiB is free. Including non-PyTorch memory, this process has 138.50 GiB memory in use. Of the "
    "allocated memory 135.00 GiB is allocated by PyTorch, with 64.00 MiB allocated in private pools (e.g., CUDA "
    "Graphs), and 1.50 GiB is reserved by PyTorch but unallocated."
)


def reading(text: str) -> Reading | None:
    found = scan([text.encode()], [OomReader])
    return found[0] if found else None


def failures(text: str) -> list[AllocationFailure]:
    found = reading(text)
    return found.failures if found else []


def only(text: str) -> AllocationFailure:
    found = failures(text)
    assert len(found) == 1, found
    return found[0]


def test_every_figure_of_a_message_is_read() -> None:
    failure = only(NEW)
    assert failure.requested_bytes == 3 * GIB
    assert failure.limit_bytes == round(139.81 * GIB)
    assert failure.free_bytes == round(1.25 * GIB)
    assert failure.used_bytes == round(138.5 * GIB)
    assert (failure.chip, failure.class_, failure.phase) == (5, "capacity", "unknown")


def test_the_form_of_torch_1_names_the_device_in_brackets() -> None:
    failure = only(
        "RuntimeError: CUDA out of memory. Tried to allocate 640.00 KiB (GPU 3; 15.00 GiB total capacity; 14.00 GiB "
        "already allocated; 512 bytes free; 14.50 GiB reserved in total by PyTorch)"
    )
    assert (failure.chip, failure.requested_bytes, failure.free_bytes) == (3, 640 * 1024, 512)


@pytest.mark.parametrize("head", ["it says: ", "Out of memory. "])
@pytest.mark.parametrize("form", [" (GPU 3; 15.00 GiB total capacity)", ". GPU 3 has a total capacity of 15.00 GiB"])
def test_a_message_is_read_without_its_beginning(head: str, form: str) -> None:
    failure = only(f"{head}Tried to allocate 640.00 KiB{form}\n")
    assert (failure.is_oom, failure.chip, failure.requested_bytes) == (True, 3, 640 * 1024)
    assert failure.limit_bytes == 15 * GIB


@pytest.mark.parametrize("reserved", ["reserved in total by PyTorch", "reserved by PyTorch"])
def test_what_is_reserved_in_all_holds_what_is_unallocated(reserved: str) -> None:
    figures = "(GPU 0; 16.00 GiB total capacity; 9.00 GiB already allocated; 1.00 GiB free; 15.00 GiB "
    assert only(f"CUDA out of memory. Tried to allocate 2.00 GiB {figures}{reserved})\n").class_ == "fragmentation"


@pytest.mark.parametrize("joint", ["\n", " \n", "\n    "])
def test_a_message_wrapped_by_hand_is_one_message(joint: str) -> None:
    wrapped = NEW.replace(". ", "." + joint).replace(" and ", joint + "and ")
    assert only(wrapped).used_bytes == only(NEW).used_bytes


def test_a_terminal_wraps_inside_words_and_numbers() -> None:
    wrapped = "\n".join(NEW[at : at + 80] for at in range(0, len(NEW), 80))
    assert only(wrapped).limit_bytes == only(NEW).limit_bytes


@pytest.mark.parametrize("cut", ["of which 1.", "of which 1.25 G", "of which"])
def test_what_was_cut_is_unknown_and_what_stands_before_is_kept(cut: str) -> None:
    failure = only(NEW[: NEW.index("of which")] + cut)
    assert failure.free_bytes is None
    assert failure.limit_bytes == round(139.81 * GIB)


def test_a_size_that_nvml_never_had_is_unknown() -> None:
    assert only(NEW.replace("138.50 GiB", "17179869184.00 GiB")).used_bytes is None


@pytest.mark.parametrize("size", ["900.00 GiB", "0 bytes", "64.00 GiB"])
def test_use_above_the_capacity_or_far_below_what_tensors_hold_is_no_measurement(size: str) -> None:
    failure = only(NEW.replace("138.50 GiB", size))
    assert (failure.used_bytes, failure.class_) == (None, "capacity")


def test_tensors_of_two_names_may_exceed_what_the_process_uses() -> None:
    assert only(NEW.replace("138.50 GiB", "134.00 GiB")).used_bytes == 134 * GIB


def test_ranks_that_print_at_once_are_kept_apart() -> None:
    lines = [NEW[at : at + 120] for at in range(0, len(NEW), 120)]
    other = [line.replace("GPU 5", "GPU 6").replace("3.00 GiB", "7.00 GiB") for line in lines]
    mixed = "\n".join(f"[rank5]: {one}\n[rank6]: {two}" for one, two in zip(lines, other, strict=True))
    found = failures(mixed)
    assert [(item.rank, item.chip, item.requested_bytes) for item in found] == [(5, 5, 3 * GIB), (6, 6, 7 * GIB)]


def test_two_messages_on_one_line_are_two_failures() -> None:
    assert [item.chip for item in failures(f"{NEW} {NEW.replace('GPU 5', 'GPU 2')}")] == [5, 2]


def test_an_exception_that_is_printed_twice_failed_once() -> None:
    assert len(failures(f"{NEW}\nsome text\n{NEW}\n")) == 1


def test_the_innermost_frame_outside_the_framework_is_the_site() -> None:
    text = (
        '[rank1]:   File "/job/train.py", line 10, in main\n'
        '[rank1]:   File "/job/model.py", line 77, in forward\n'
        '[rank1]:   File "/env/site-packages/torch/nn/functional.py", line 5, in softmax\n'
        f"[rank1]: {NEW}\n"
    )
    assert only(text).operator == "/job/model.py:77 in forward"


def test_a_message_that_says_it_goes_on_is_not_fatal() -> None:
    assert not only(f"Runtime error during autotuning:\n{NEW}\nIgnoring this choice.\n").fatal
    assert only(NEW).fatal


def test_the_same_message_at_the_end_of_a_traceback_is_fatal() -> None:
    tried = f"WARNING | OOM: {NEW}\nWARNING | attempting to recover from OOM in the forward pass\n"
    raised = f'Traceback (most recent call last):\n  File "/job/train.py", line 10, in main\n{NEW}\n'
    assert [failure.fatal for failure in failures(tried + tried + raised + raised)] == [False, True]


def test_prose_about_running_out_is_no_failure() -> None:
    assert reading("To avoid CUDA out of memory, lower the batch; the table is out of memory slots.\n") is None


def test_the_words_of_hip_are_noted() -> None:
    found = reading(NEW.replace("CUDA out", "HIP out"))
    assert found is not None
    assert found.failures[0].is_oom
    assert any("AMD" in remark.text for remark in found.remarks)


def test_more_allocated_than_the_device_holds_is_noted() -> None:
    found = reading(NEW.replace("135.00 GiB", "200.00 GiB"))
    assert found is not None
    assert any("pages to the host" in remark.text for remark in found.remarks)


def test_the_asynchronous_allocator_prints_a_table() -> None:
    failure = only(
        "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 9.50 GiB\nRequested               : 640.00 MiB\n"
        "Device limit            : 12.00 GiB\n"
        "Free (according to CUDA): 8.00 MiB\nPyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB\n"
    )
    assert (failure.requested_bytes, failure.limit_bytes, failure.free_bytes) == (640 * MIB, 12 * GIB, 8 * MIB)
    assert failure.chip == 1


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        (OomFigures(requested=20 * GIB, capacity=16 * GIB, free=15 * GIB), "oversized_request"),
        (OomFigures(requested=6 * GIB, capacity=16 * GIB, allowed=4 * GIB, free=9 * GIB), "oversized_request"),
        (OomFigures(endless=True), "oversized_request"),
        (OomFigures(requested=2 * GIB, capacity=16 * GIB, free=1 * GIB, unallocated=3 * GIB), "fragmentation"),
        (OomFigures(requested=GIB, capacity=16 * GIB, free=0, processes=(9 * GIB,)), "foreign_process"),
        (
            OomFigures(
                requested=GIB, capacity=16 * GIB, free=0, allocated=14 * GIB, unallocated=0, processes=(15 * GIB,)
            ),
            "capacity",
        ),
        (
            OomFigures(
                requested=GIB, capacity=80 * GIB, free=0, this_process=79 * GIB, allocated=60 * GIB, unallocated=0
            ),
            "outside_allocator",
        ),
        (
            OomFigures(
                requested=GIB, capacity=80 * GIB, free=0, this_process=79 * GIB, allocated=78 * GIB, unallocated=0
            ),
            "capacity",
        ),
        (OomFigures(), "capacity"),
        # No process is named: more than half of the device is not the allocator's, then less.
        (OomFigures(requested=GIB, capacity=16 * GIB, free=0, allocated=5 * GIB, unallocated=0), "foreign_process"),
        (OomFigures(requested=GIB, capacity=16 * GIB, free=0, allocated=9 * GIB, unallocated=0), "capacity"),
        # More than half of the device is another's: what lies in pieces of the rest is not what was lacking.
        (
            OomFigures(
                requested=GIB, capacity=80 * GIB, free=0, this_process=20 * GIB, allocated=17 * GIB, unallocated=2 * GIB
            ),
            "foreign_process",
        ),
    ],
)
def test_the_class_follows_from_the_figures(figures: OomFigures, expected: str) -> None:
    assert classify(figures) == expected


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: CUDA error: out of memory",
        "terminate called\n  what():  CUDA error: out of memory",
        "RuntimeError: CUDA driver error: out of memory",
        "RuntimeError: cuda runtime error (2) : out of memory at /x/THC.cu:58",
        "RuntimeError: CUDA failed with error out of memory",
        "userbuffers.cpp:12 in function create: CUDA Error: out of memory",
        "RuntimeError: Triton Error [CUDA]: out of memory",
        "RuntimeError: HIP error: out of memory",
        "torch.OutOfMemoryError: Allocation on device ",
        "Error out of memory at line 380 in file /src/csrc/pythonInterface.cpp",
        "[CUDA ERROR] at file llmc/cuda_common.h:91:\nout of memory",
        "[CUDA ERROR] at file sgemm.cu(line 91):\ncudaErrorMemoryAllocation: out of memory",
    ],
)
def test_cuda_says_it_without_figures(text: str) -> None:
    assert only(text).is_oom is True


def test_a_library_without_a_handle_may_have_failed_before() -> None:
    failure = only("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")
    assert failure.is_oom is None
    assert failure.operator == "cublasCreate"
    assert only("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED").is_oom is None


def test_nccl_tells_the_bytes_on_a_second_line() -> None:
    text = (
        "node3:77:99 [4] include/alloc.h:178 NCCL WARN Cuda failure 2 'out of memory'\n\n"
        "node3:77:99 [4] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes\n"
    )
    failure = only(text)
    assert (failure.class_, failure.chip, failure.requested_bytes) == ("outside_allocator", 4, 6291456)


def test_nvml_in_the_allocators_report_hides_the_message() -> None:
    text = 'RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1131'
    assert only(text).is_oom is True
    assert not failures(text.replace("CUDACachingAllocator.cpp", "driver_api.cpp"))


@pytest.mark.parametrize(
    ("text", "requested"),
    [
        ("[5.1] Out of memory: Killed process 42 (python) total-vm:1kB", None),
        ("RuntimeError: unable to mmap 4096 bytes from file </m.bin>: Cannot allocate memory (12)", None),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.0", None),
        ("srun: error: node7: task 3: Out Of Memory", None),
        ("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12", 4096),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 2.00 GiB for an array", 2 * GIB),
    ],
)
def test_the_hosts_memory_is_another_class(text: str, requested: int | None) -> None:
    failure = only(text)
    assert (failure.class_, failure.requested_bytes) == ("host", requested)


@pytest.mark.parametrize(
    "text",
    [
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. ",
        "RuntimeError: DataLoader worker (pid(s) 77, 78) is killed by signal: Bus error. ",
        "slurm_script: line 42: 54321 Killed                  python train.py",
        "Killed\nSee the log above.",
        " 8%|8  | 15/200 [00:10<02:12,  1.4it/s]Killed",
        "[1]    12345 killed     python train.py",
        "[1]+  Killed                  python train.py",
        "command terminated with exit code 137",
        "Last error:\nError while creating shared memory segment /dev/shm/nccl-V8Xq2m (size 9637888)",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).",
    ],
)
def test_a_worker_that_a_signal_ended_may_have_lacked_memory(text: str) -> None:
    failure = only(text)
    assert (failure.is_oom, failure.class_) == (None, "host")


@pytest.mark.parametrize("text", ["Killed 3 stale workers", "INFO: Killed the old server", "exit code 137 is a kill"])
def test_a_sentence_about_killing_is_no_failure(text: str) -> None:
    assert scan([f"{text}\n".encode()], [OomReader]) == []


def test_paddles_allocator_and_the_hosts_errno_are_failures() -> None:
    paddle = only(
        "ResourceExhaustedError: Out of memory error on GPU 3. Cannot allocate 2.000000GB memory on GPU 3, "
        "78.500000GB memory has been allocated and available memory is only 650.500000MB."
    )
    assert (paddle.class_, paddle.chip, paddle.requested_bytes) == ("capacity", 3, 2 * GIB)
    assert (paddle.used_bytes, paddle.free_bytes) == (int(78.5 * GIB), int(650.5 * MIB))
    assert only("OSError: [Errno 12] Cannot allocate memory").class_ == "host"


def test_a_bare_exit_code_is_no_out_of_memory() -> None:
    assert only("failed (exitcode: 1) local_rank: 0 (pid: 12) of binary").is_oom is False
    assert only("  rank      : 5 (local_rank: 5)\n  exitcode  : -9 (pid: 4321)").is_oom is None
    assert only("failed (exitcode: -9) local_rank: 0 (pid: 12) of binary").is_oom is None
    assert only(f"{NEW}\nfailed (exitcode: 1) local_rank: 0 (pid: 12) of binary").is_oom is True


def test_the_first_certain_failure_began_it() -> None:
    def failure(line: int, is_oom: bool | None, fatal: bool = True) -> AllocationFailure:
        return AllocationFailure(Place(line), is_oom, "capacity", fatal=fatal)

    ordered = [failure(1, False), failure(2, None), failure(3, True, fatal=False), failure(9, True), failure(5, True)]
    found = first_cause(ordered)
    assert found is not None
    assert found.place.line == 5
    assert first_cause([]) is None


def test_a_megabyte_of_opening_words_is_read() -> None:
    assert failures("CUDA out of memory. Tried to allocate " * 27_000) == []


def test_memory_that_is_neither_free_nor_this_process_is_anothers() -> None:
    figures = OomFigures(
        requested=112 * MIB, capacity=40 * GIB, free=119 * MIB, this_process=8 * GIB, allocated=7 * GIB, unallocated=MIB
    )
    assert classify(figures) == "foreign_process"


def test_a_message_glued_to_the_end_of_another_is_the_next_one() -> None:
    begin, end = NEW.split(", and ")
    assert failures(f"{begin}, and\n{end}{NEW}\n") == [only(f"{begin}, and\n{end}\n")]
