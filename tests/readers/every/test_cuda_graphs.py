"""Megatron's lines on CUDA graphs, hints of fallbacks, and counters that scripts print."""

from __future__ import annotations

import pytest

from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.megatron.startup import CudaGraphsReader
from receipts.readers.script.counters import PathCountersReader
from receipts.readers.torch.messages import FallbackHintsReader


def readings(kind: type[LineReader], *lines: str) -> list[Reading]:
    return scan(["\n".join((*lines, "")).encode()], [kind])


@pytest.mark.parametrize(
    "line",
    [
        "INFO:megatron.core.transformer.cuda_graphs:> built 96 cuda graph(s) in 7.25 sec, with total memory usage: …",
        "[default0]:Time spent in CUDA Graphs capture on rank 0: 7.25s",
        "CUDA graph capture done for training!!!",
    ],
)
def test_a_finished_capture_is_seen(line: str) -> None:
    (reading,) = readings(CudaGraphsReader, line)
    assert [(item.leaf, item.value, item.level) for item in reading.seen] == [("cuda_graphs", "true", "backend")]


@pytest.mark.parametrize(
    "line",
    [
        "Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): 100%|#####| 51/51 [00:02<00:00, 21.18it/s]",
        "Capturing CUDA graph shapes:  30%|###| 16/53 [00:00<00:00, 48.52it/s]",
        "> built cuda graph(s) in 3.20 sec, with total memory usage: allocated 1 GB, reserved 2 GB.",
        "CUDA graph capture done for validation!!!",
    ],
)
def test_graphs_of_servers_and_of_validation_are_not_the_training_steps(line: str) -> None:
    assert not any(reading.seen for reading in readings(CudaGraphsReader, line))


def test_a_capture_that_is_begun_and_never_ends_is_remarked() -> None:
    (reading,) = readings(CudaGraphsReader, "INFO:x:Rank 0: 24 graphable layers.")
    assert not reading.seen
    assert [remark.kind for remark in reading.remarks] == ["missing"]


def test_no_graphable_layer_is_seen_as_no_graphs() -> None:
    (reading,) = readings(
        CudaGraphsReader, "TECudaGraphHelper: No graphable layers found. Skipping CUDA graph capture."
    )
    # The line holds the anchor of another record only, so it must be one of its own.
    assert [(item.leaf, item.value) for item in reading.seen] == [("cuda_graphs", "false")]


def test_the_time_of_captures_adds_up() -> None:
    line = "Time spent in CUDA Graphs capture on rank {rank}: 1.5s"
    (reading,) = readings(CudaGraphsReader, *(line.format(rank=rank) for rank in range(2)))
    assert reading.timings["cuda_graphs.capture"].seconds == 3.0


def test_a_missing_package_is_a_hint_and_no_path() -> None:
    line = "UserWarning: Apex is not installed. Falling back to Torch Norm"
    (reading,) = readings(FallbackHintsReader, line, line)
    assert not reading.seen
    assert [remark.text for remark in reading.remarks] == ["Apex is not installed. Falling back to Torch Norm"]


def test_a_slow_path_that_a_model_names_is_seen() -> None:
    line = "The fast path is not available because one of `(selective_scan_fn, causal_conv1d_fn)` is None. "
    (reading,) = readings(FallbackHintsReader, line + "Falling back to the naive implementation. To install …")
    assert [(item.leaf, item.value, item.level) for item in reading.seen] == [("ssm", "sequential", "backend")]


def test_counters_of_a_script_are_kept_and_compared_with_what_they_must_be() -> None:
    (reading,) = readings(
        PathCountersReader,
        'INFO train: {"name": "te_fused", "count": 90, "expected": 96, "steps": 2, "layers": 48}',
        '{"path_counters": [{"name": "mamba_fused", "count": 48}]}',
    )
    assert reading.counters == {"te_fused": 90, "mamba_fused": 48}
    assert reading.stated["measurement.path_counters"].value[0]["expected"] == 96
    assert [remark.kind for remark in reading.remarks] == ["contradiction"]


def test_the_lowest_rank_speaks_for_a_counter() -> None:
    row = '{{"name": "te_fused", "count": {count}, "expected": 96, "rank": {rank}}}'
    (reading,) = readings(PathCountersReader, row.format(count=96, rank=0), row.format(count=4, rank=1))
    assert reading.counters == {"te_fused": 4}


@pytest.mark.parametrize(
    "line",
    [
        '{"name": "x", "count": 1, "expected": 1, "other": 2}',
        '{"name": "x", "count": "1", "expected": 1}',
        '{"name": "x", "count": true, "expected": 1}',
        '{"name": "x", "count": -1, "expected": 1}',
        '{"expected": 1}',
        '{"name": "x", "count": 1, "expected": 1',
    ],
)
def test_other_objects_are_no_counters(line: str) -> None:
    assert readings(PathCountersReader, line) == []
