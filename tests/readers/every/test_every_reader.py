"""What holds for every reader, whoever wrote it: it declares itself, and no text makes it raise."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reader import FileReader, LineReader, file_readers, line_readers
from receipts.ingest.reading import Reading
from receipts.ingest.scan import DEFECT, scan
from receipts.ingest.source import Source

WORDS = (
    *("1", "0", "-1", "nan", "inf", "1e999", "9" * 400, "0x1f", "1,234.5", "12.5GiB", "17179869184.00 GiB", "3/10"),
    *(
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "'",
        '"',
        "\\",
        "|",
        ":",
        "=",
        ",",
        "...",
        "....",
        "\t",
        "  ",
        "%",
        "/",
        "\ufffd",
        "é",
    ),
    *(
        "{'loss': nan}",
        '{"a": [1, {"b": null}]}',
        "step",
        "iteration",
        "loss",
        "rank",
        "GPU 0",
        "TPU_0",
        "True",
        "None",
    ),
    *("[rank3]:", "[default0]:", "I0101 00:00:00.000000 1 x.py:1]", "2026-01-01 00:00:00", "\x1b[31m", "ms", "s", "us"),
)
SEEDS = range(40)


def _name(kind: type) -> str:
    return f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"


def _lines(anchors: tuple[bytes, ...], seed: int) -> bytes:
    """Lines that hold anchors among words of every kind: shaped like a log, and none."""
    chance = random.Random(seed)
    lines = []
    for _ in range(30):
        words = [chance.choice(WORDS) for _ in range(chance.randrange(12))]
        for _ in range(chance.randrange(3)):
            words.insert(chance.randrange(len(words) + 1), chance.choice(anchors).decode("latin-1"))
        lines.append(chance.choice(("", " ", ": ", " | ")).join(words))
    return "\n".join(lines).encode("utf-8", "replace")


@pytest.mark.parametrize("kind", line_readers(), ids=_name)
def test_a_line_reader_declares_its_source_and_anchors(kind: type[LineReader]) -> None:
    assert kind.source
    assert kind.anchors
    # Shorter ones stand in every log; a reader would be asked about lines that are not its own.
    assert all(len(anchor) >= 3 and b"\n" not in anchor for anchor in kind.anchors)


def _defects(found: list[Reading]) -> list[str]:
    return [remark.text for reading in found for remark in reading.remarks if DEFECT in remark.text]


@pytest.mark.parametrize("kind", line_readers(), ids=_name)
def test_no_text_makes_a_line_reader_raise(kind: type[LineReader]) -> None:
    for seed in SEEDS:
        assert not _defects(scan([_lines((*kind.anchors, *kind.companions), seed)], [kind]))


def test_no_text_makes_any_reader_raise_where_all_read() -> None:
    anchors = tuple(anchor for kind in line_readers() for anchor in kind.anchors)
    for seed in SEEDS:
        assert not _defects(scan([_lines(anchors, seed)]))


def test_an_anchor_has_digits_only_within_words_that_no_shape_takes_for_a_number() -> None:
    # The numbers between the words of a shape are not looked at for anchors.
    for kind in line_readers():
        for anchor in (*kind.anchors, *kind.companions):
            for at, code in enumerate(anchor):
                if chr(code).isdigit():
                    same = {anchor[:at] + str(digit).encode() for digit in range(10)}
                    assert anchor[at - 1 : at].isalpha() or same <= set(kind.anchors), (_name(kind), anchor)


@pytest.mark.parametrize("kind", file_readers(), ids=_name)
def test_a_file_reader_claims_nothing_by_chance_and_survives_what_is_not_its_own(
    kind: type[FileReader], tmp_path: Path
) -> None:
    assert kind.source
    place = tmp_path / "chance"
    for content in (b"", b"\0" * 100, b"{", b"[1, 2", b'{"a": 1}', b"a,b\n1,2\n", random.Random(1).randbytes(5000)):
        place.write_bytes(content)
        assert not kind.claims(content), content[:20]
        assert isinstance(kind().read(Source(place, "chance")), list)


def test_a_file_of_nothing_known_has_no_readings(tmp_path: Path) -> None:
    place = tmp_path / "prose.log"
    place.write_text("The meeting began at nine.\nNobody trained anything.\n")
    assert read(place).readings == ()
