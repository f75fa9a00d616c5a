"""One protobuf message in memory: what is there in the form that is asked for, and bytes that are no message."""

from __future__ import annotations

import random
import struct
from contextlib import suppress

import pytest

from receipts.ingest.protobuf import Message, Torn


def test_a_field_is_there_in_its_own_form_alone() -> None:
    message = Message(b"\x08\x05\x12\x02hi\x1d" + struct.pack("<f", 2.5))
    assert (message.whole(1), message.text(2), message.real(3, "<f")) == (5, "hi", 2.5)
    assert (message.whole(2), message.pieces(1), message.real(3, "<d"), message.only(1)) == (None, [], None, None)


def test_whole_numbers_have_their_sign_packed_or_not() -> None:
    below = b"\xff" * 9 + b"\x01"
    assert Message(b"\x08" + below).whole(1) == -1
    assert Message(b"\x0a\x0b\x07" + below + b"\x08\x02").listed(1) == [7, -1, 2]


@pytest.mark.parametrize("body", [b"\x08", b"\x0a\x05abc", b"\x02\x00", b"\x0b", b"\x08" + b"\xff" * 11])
def test_what_is_cut_or_no_message_is_torn(body: bytes) -> None:
    with pytest.raises(Torn):
        Message(body)


def test_any_bytes_are_a_message_or_torn() -> None:
    luck = random.Random(7)
    for _ in range(2000):
        with suppress(Torn):
            message = Message(luck.randbytes(luck.randrange(24)))
            assert message.inner(1) is not None
            assert message.text(2) is not None
