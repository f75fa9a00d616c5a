"""TensorBoard's event files, read without TensorFlow: framing, scalars of each form, whose names they are."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from receipts.ingest.evidence import FileEvidence, read
from receipts.ingest.protobuf import masked_crc32c
from receipts.ingest.reading import Reading
from receipts.readers.tensorboard.events import TensorBoard

SAMPLES = Path(__file__).parent / "samples"


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*found, value))


def blob(number: int, data: bytes) -> bytes:
    """A field of bytes, text or a message."""
    return varint(number << 3 | 2) + varint(len(data)) + data


def record(event: bytes) -> bytes:
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc32c(length)) + event + struct.pack("<I", masked_crc32c(event))


def scalar(step: int, tag: str, value: float) -> bytes:
    body = blob(1, tag.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
    return record(varint(2 << 3) + varint(step) + blob(5, blob(1, body)))


def tensor(step: int, tag: str, inner: bytes) -> bytes:
    return record(varint(2 << 3) + varint(step) + blob(5, blob(1, blob(1, tag.encode()) + blob(8, inner))))


VERSION = record(blob(3, b"brain.Event:2"))
LOSS, TIME = "loss_metrics/global_avg_loss", "time_metrics/end_to_end(s)"


def events(folder: Path, *records: bytes) -> FileEvidence:
    path = folder / "events.out.tfevents.1"
    path.write_bytes(VERSION + b"".join(records))
    return read(path)


def reading(folder: Path, *records: bytes) -> Reading:
    (found,) = events(folder, *records).readings
    return found


def test_the_checksum_is_the_published_one() -> None:
    # RFC 3720, appendix B.4: 32 bytes of zeros have CRC-32C 0x8A9136AA; masked as TensorFlow does.
    crc = 0x8A9136AA
    assert masked_crc32c(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_file_of_megatrons_by_tensorboardx_is_read() -> None:
    (found,) = read(SAMPLES / "megatron.tfevents").readings
    assert found.source == "tensorboard"
    assert found.steps.numbers() == [10, 20, 30, 40, 50]
    assert found.steps.get(50, "step_seconds") == 0.3125
    assert found.steps.get(50, "loss") == 5.5
    assert found.steps.get(50, "tflops_per_second_per_chip") == 210.5
    assert found.steps.get(50, "global_batch") == 8
    assert found.steps.interval == 10
    assert found.not_steady == {10: "compile"}


def test_the_highest_peak_and_its_step_are_kept() -> None:
    (found,) = read(SAMPLES / "megatron.tfevents").readings
    (row,) = found.memory
    assert row.step == 50
    # float32 has 24 bits: the figure is what the file holds.
    assert row.peak_bytes == pytest.approx(75e9 + 50 * 2**24, rel=1e-7)


def test_arguments_that_were_written_as_text_are_configuration() -> None:
    (found,) = read(SAMPLES / "megatron.tfevents").readings
    assert {path: item.value for path, item in found.stated.items()} == {
        "parallelism.tensor": 2,
        "batch.sequence_length": 1024,
        "batch.micro_batch": 1,
    }


@pytest.mark.parametrize(
    "inner",
    [
        varint(1 << 3) + varint(1) + blob(5, struct.pack("<f", 2.5)),
        varint(1 << 3) + varint(1) + varint(5 << 3 | 5) + struct.pack("<f", 2.5),
        varint(1 << 3) + varint(1) + blob(4, struct.pack("<f", 2.5)),
        varint(1 << 3) + varint(2) + blob(6, struct.pack("<d", 2.5)),
        varint(1 << 3) + varint(2) + blob(2, b"") + blob(4, struct.pack("<d", 2.5)),
        varint(1 << 3) + varint(19) + blob(13, varint(0x4100)),
        varint(1 << 3) + varint(14) + blob(4, struct.pack("<H", 0x4020)),
    ],
    ids=["packed", "unpacked", "content", "double", "double content", "half", "bfloat16"],
)
def test_a_tensor_of_one_element_is_a_scalar(tmp_path: Path, inner: bytes) -> None:
    assert reading(tmp_path, tensor(3, LOSS, inner)).steps.get(3, "loss") == 2.5


def test_a_tensor_of_several_elements_is_none(tmp_path: Path) -> None:
    shape = blob(2, blob(2, varint(1 << 3) + varint(2)))
    values = varint(1 << 3) + varint(1) + shape + blob(5, struct.pack("<ff", 1.0, 2.0))
    assert len(reading(tmp_path, tensor(3, LOSS, values)).steps) == 0


def test_units_are_those_of_the_framework(tmp_path: Path) -> None:
    found = reading(
        tmp_path,
        *(scalar(7, tag, value) for tag, value in ((LOSS, 4.0), ("mfu(%)", 50.0), ("throughput(tps)", 900.0))),
        scalar(7, "memory/max_reserved(GiB)", 1.5),
    )
    assert found.steps.get(7, "mfu") == 0.5
    assert found.steps.get(7, "tokens_per_second_per_chip") == 900.0
    assert found.memory[0].peak_reserved_bytes == 1.5 * 2**30


def test_names_of_no_known_framework_are_told_and_not_guessed(tmp_path: Path) -> None:
    found = reading(tmp_path, scalar(1, "throughput", 5.0), scalar(1, "my/loss", 2.0))
    assert len(found.steps) == 0
    assert any("my/loss, throughput" in remark.text for remark in found.remarks)


def test_one_word_means_what_its_framework_means(tmp_path: Path) -> None:
    nanotron = [scalar(1, "lm_loss", 3.0), scalar(1, "elapsed_time_per_iteration_ms", 250.0)]
    assert reading(tmp_path, *nanotron).steps.get(1, "step_seconds") == 0.25


def test_steps_per_second_are_turned_over(tmp_path: Path) -> None:
    found = reading(tmp_path, scalar(100, "timing/steps_per_second", 8.0), scalar(200, "timing/steps_per_second", 0.0))
    assert found.steps.get(100, "step_seconds") == 0.125
    assert found.steps.get(200, "step_seconds") is None


def test_a_cut_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    found = reading(tmp_path, scalar(1, LOSS, 2.0), scalar(2, LOSS, 1.5)[:-9])
    assert found.steps.numbers() == [1]
    assert [remark.kind for remark in found.remarks if remark.kind == "broken"] == ["broken"]


def test_a_packed_file_that_breaks_off_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "events.out.tfevents.1.gz"
    path.write_bytes(gzip.compress(VERSION + b"".join(scalar(step, LOSS, 2.0) for step in range(4000)))[:-40])
    found = read(path)
    assert found.cut
    assert not any("the run still writes" in remark.text for remark in found.readings[0].remarks)


def test_a_record_with_a_wrong_checksum_is_left_out(tmp_path: Path) -> None:
    spoilt = bytearray(scalar(2, LOSS, 1.5))
    spoilt[-6] ^= 1
    found = reading(tmp_path, scalar(1, LOSS, 2.0), bytes(spoilt), scalar(3, LOSS, 1.0))
    assert found.steps.numbers() == [1, 3]


def test_a_wrong_length_ends_the_reading(tmp_path: Path) -> None:
    spoilt = bytearray(scalar(2, LOSS, 1.5))
    spoilt[1] = 0xFF
    found = reading(tmp_path, scalar(1, LOSS, 2.0), bytes(spoilt), scalar(3, LOSS, 1.0))
    assert found.steps.numbers() == [1]


def test_a_large_record_is_passed_over(tmp_path: Path) -> None:
    image = record(blob(5, blob(1, blob(1, b"image") + blob(4, bytes(3 << 20)))))
    assert reading(tmp_path, scalar(1, LOSS, 2.0), image, scalar(2, LOSS, 1.0)).steps.numbers() == [1, 2]


def test_a_file_of_no_scalars_says_so(tmp_path: Path) -> None:
    assert any("no scalar" in remark.text for remark in reading(tmp_path).remarks)


def test_other_binary_files_are_not_claimed() -> None:
    assert not TensorBoard.claims(bytes(64))
    assert not TensorBoard.claims(record(b"brain")[:40])
    assert not TensorBoard.claims(b"")


def test_maxtexts_scalars_know_what_is_not_steady(tmp_path: Path) -> None:
    times = [30.0, *[2.0] * 6]
    found = reading(tmp_path, *(scalar(n, "perf/step_time_seconds", value) for n, value in enumerate(times)))
    assert found.not_steady == {0: "compile", 1: "warmup"}
