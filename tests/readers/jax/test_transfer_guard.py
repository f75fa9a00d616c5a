"""JAX's transfer guard: transfers by direction, and that silence is no proof."""

from __future__ import annotations

from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.jax.compiles import TransferGuard


def guard(direction: str) -> str:
    return f"W1120 12:33:35.266411   21084 guard_lib.cc:140] {direction} transfer: aval=ShapedArray(float32[16])\n"


def reading(text: str) -> Reading:
    (found,) = scan([text.encode()], [TransferGuard])
    return found


def test_transfers_are_counted_by_direction() -> None:
    found = reading(guard("host-to-device") * 3 + guard("device-to-host") * 2 + guard("device-to-device"))
    assert found.counters == {"host-to-device": 3, "device-to-host": 2, "device-to-device": 1}
    assert found.host_transfers == 2


def test_no_transfer_to_the_host_is_not_proven_by_silence() -> None:
    found = reading(guard("host-to-device") * 3)
    assert found.host_transfers is None
    assert [remark.kind for remark in found.remarks] == ["missing"]


def test_steps_between_transfers_are_what_they_cover() -> None:
    text = "".join(f"{guard('device-to-host')}completed step: {step}, seconds: 0.1\n" for step in range(7))
    assert reading(text).steps_covered == 7


def test_a_disallowed_transfer_is_told() -> None:
    text = "jaxlib.xla_extension.XlaRuntimeError: INVALID_ARGUMENT: Disallowed device-to-host transfer: aval=f32[]\n"
    found = reading(text)
    assert found.counters["disallowed device-to-host"] == 1
    assert found.host_transfers == 1
