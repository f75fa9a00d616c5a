"""What NCCL prints of itself: its version and its communicators, and nothing that it does not know."""

from __future__ import annotations

from receipts.ingest.scan import scan

INFO = """node1:111:111 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>
NCCL version 2.20.5+cuda12.4
node1:111:150 [0] NCCL INFO Using network IB
node1:111:150 [0] NCCL INFO comm 0x7f4d rank 0 nranks 16 cudaDev 0 busId 92000 commId 0x1 - Init COMPLETE
node1:111:150 [0] NCCL INFO comm 0x7f4e rank 0 nranks 2 cudaDev 0 busId 92000 commId 0x2 - Init COMPLETE
"""


def test_a_file_of_nccl_alone_tells_its_version_and_no_number_of_chips() -> None:
    (reading,) = scan([INFO.encode()])
    assert {path: claim.value for path, claim in reading.stated.items()} == {"platform.nccl": "2.20.5+cuda12.4"}
    assert "16 ranks over IB: at least so many chips" in reading.remarks[0].text


def test_a_version_alone_is_no_log_of_nccl() -> None:
    assert scan([b"NCCL version 2.20.5+cuda12.4\n"]) == []
