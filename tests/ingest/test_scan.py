"""One pass over a log: which lines a reader sees, what a defect costs, and what hostile text may cost."""

from __future__ import annotations

from typing import ClassVar

import pytest

from receipts.ingest.reader import LineReader, Spans
from receipts.ingest.reading import Reading
from receipts.ingest.record import RecordColumns, Sieve, in_order, learn
from receipts.ingest.scan import DEFECT, scan


class Counts(LineReader):
    """Notes the lines that it is given."""

    source: ClassVar[str] = "counts"
    anchors: ClassVar[tuple[bytes, ...]] = (b"count: ",)

    def __init__(self) -> None:
        super().__init__()
        self.reading.records = 1
        self.seen: list[tuple[int, str]] = []

    def line(self, text: str, number: int) -> bool:
        self.reading.remark("note", text, number)
        return "more" in text

    def finish(self) -> Reading | None:
        return self.reading


class Many(Counts):
    """Takes its lines by their shape, too."""

    def spans(self, text: str) -> Spans:
        return {"count": (text.index(": ") + 2, len(text.rstrip()))} if "count: " in text else {}

    def many(self, columns: RecordColumns) -> bool:
        for line, word in zip(columns.lines, columns.words("count"), strict=True):
            self.reading.remark("note", f"many {word.decode()}", line)
        return True


class Raises(Counts):
    source: ClassVar[str] = "raises"

    def line(self, text: str, number: int) -> bool:
        if number == 3:
            raise KeyError(text)
        return super().line(text, number)


class RaisesAtMany(Many):
    source: ClassVar[str] = "raises at many"

    def many(self, columns: RecordColumns) -> bool:
        raise IndexError


class RaisesAtTheEnd(Counts):
    source: ClassVar[str] = "raises at the end"

    def finish(self) -> Reading | None:
        raise ZeroDivisionError


class Follows(LineReader):
    """Counts others' lines once it has seen one of its own."""

    source: ClassVar[str] = "follows"
    anchors: ClassVar[tuple[bytes, ...]] = (b"begin",)
    companions: ClassVar[tuple[bytes, ...]] = (b"count: ",)

    def __init__(self) -> None:
        super().__init__()
        self.follows = False

    def line(self, text: str, number: int) -> bool:
        self.follows = "begin" in text or ("end" not in text and self.follows)
        self.reading.records += 1
        return False


def notes(reading: Reading) -> list[tuple[int, str]]:
    return [(remark.place.line, remark.text) for remark in reading.remarks]


def test_a_reader_sees_lines_with_its_anchor_and_those_that_it_asks_for() -> None:
    (reading,) = scan([b"other\ncount: 1 more\nnext\nother\ncount: 2\n"], [Counts])
    assert notes(reading) == [(2, "count: 1 more"), (3, "next"), (5, "count: 2")]


def test_what_a_reader_asks_for_may_stand_in_the_next_chunk() -> None:
    (reading,) = scan([b"count: 1 more\n", b"next\n", b"count: 2"], [Counts])
    assert notes(reading) == [(1, "count: 1 more"), (2, "next"), (3, "count: 2")]


@pytest.mark.breaks_readers
def test_a_reader_with_a_defect_is_dropped_and_the_others_go_on() -> None:
    text = b"".join(b"count: %d\n" % n for n in range(1, 8))
    raised, other = scan([text], [Raises, Counts])
    assert len(notes(other)) == 7
    assert [line for line, _ in notes(raised)] == [1, 2, 3]
    remark = raised.remarks[-1]
    assert remark.kind == "broken"
    assert "raises" in remark.text
    assert "KeyError" in remark.text
    assert DEFECT in remark.text


@pytest.mark.breaks_readers
@pytest.mark.parametrize("kind", [RaisesAtMany, RaisesAtTheEnd])
def test_a_defect_anywhere_in_a_reader_is_told(kind: type[LineReader]) -> None:
    text = b"".join(b"what is counted here is count: %d\n" % n for n in range(10_000))
    raised, other = scan([text, b"begin\n"], [kind, Follows])
    assert DEFECT in raised.remarks[-1].text
    assert other.records == 1


def test_companions_are_given_from_the_first_line_of_its_own_to_the_last() -> None:
    lines = [b"what is counted here is count: %d\n" % n for n in range(20_000)]
    lines[15_000] = b"begin\n"
    lines[17_000] = b"count: end\n"
    (_, follows) = scan([b"".join(lines)], [Many, Follows])
    assert follows.records == 2_001


def test_a_shape_takes_other_numbers_in_the_place_of_numbers_and_no_other_words() -> None:
    shape = learn(b"\x1b[31mstep:   9\x1b[0m loss: 2.5 at 09:14:07,512 of host-7", {"step": (8, 9), "loss": (16, 19)})
    assert shape is not None
    sieve = Sieve()
    sieve.add(0, shape)
    same = b"\x1b[31mstep: 12345\x1b[0m loss: nan at 10:00:00,001 of host-7\n"
    others = same.replace(b"at", b"on"), same.replace(b"[31", b"[32"), same.replace(b" loss", b"  loss"), b"\n"
    found = sieve.sift(same + b"".join(others) + same, 1)
    (columns,) = found.tables[0]
    assert columns.lines == [1, 6]
    assert list(columns.words("step")) == [b"12345", b"12345"]
    assert list(columns.words("loss")) == [b"nan", b"nan"]
    assert found.lines == [2, 3, 4, 5]
    assert found.rest == b"".join(others)


@pytest.mark.parametrize(
    ("raw", "spans"),
    [
        (b"step: 1\rstep: 2", {"step": (6, 7)}),
        ("step: 1 é".encode(), {"step": (6, 7)}),
        (b"step: 12", {"step": (6, 7)}),
        (b"step: 1.", {"step": (6, 7)}),
        (b"step: 1", {"step": (6, 9)}),
        (b"step: 1" + b" " * 5_000, {"step": (6, 7)}),
        (b"no figure", {}),
    ],
)
def test_lines_that_no_shape_is_learnt_from(raw: bytes, spans: dict[str, tuple[int, int]]) -> None:
    assert learn(raw, spans) is None


def table(lines: list[int], *names: str) -> RecordColumns:
    return RecordColumns(lines, lines, {name: [str(line).encode() for line in lines] for name in names})


def test_two_kinds_of_lines_that_alternate_are_one_record() -> None:
    first, second, rest = in_order([table([1, 3, 5, 7, 12], "a"), table([2, 4, 6, 9, 10], "b")])
    assert (list(first.lines), list(first.ends)) == ([1, 3, 5, 7], [2, 4, 6, 9])
    assert list(first.words("b")) == [b"2", b"4", b"6", b"9"]
    assert (list(second.lines), list(rest.lines)) == ([10], [12])


def test_shapes_with_figures_of_the_same_names_are_one_kind() -> None:
    (found,) = in_order([table([1, 4, 5], "a", "b"), table([2, 3, 6], "b", "a")])
    assert list(found.lines) == [1, 2, 3, 4, 5, 6]
    assert list(found.words("a")) == [b"1", b"2", b"3", b"4", b"5", b"6"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([b"1", b"2.5", b"-3e-4"], [1.0, 2.5, -3e-4]),
        ([b"1,234", b"12"], [1234.0, 12.0]),
        ([b"007", b".5"], [7.0, 0.5]),
        ([b"1e999"], [float("inf")]),
    ],
)
def test_figures_are_numbers_as_logs_print_them(words: list[bytes], expected: list[float]) -> None:

    assert RecordColumns(range(len(words)), range(len(words)), {"x": words}).floats("x") == expected


@pytest.mark.parametrize("word", [b"1,2", b"12,34", b"0.", b"abc", b"1.2.3", b"true", b"1 2"])
def test_what_is_no_number_is_left_to_the_reader(word: bytes) -> None:
    with pytest.raises(ValueError, match=r"x|convert"):
        RecordColumns([1, 2], [1, 2], {"x": [b"1", word]}).floats("x")


def test_a_figure_with_a_letter_of_a_thousand_is_scaled() -> None:
    words = {"same": [b"8.14M", b"9M"], "other": [b"999K", b"1.02M"], "none": [b"1.5", b"nan"]}
    columns = RecordColumns([1, 2], [1, 2], words)
    assert columns.scaled("same") == pytest.approx([8.14e6, 9e6])
    assert columns.scaled("other") == pytest.approx([999e3, 1.02e6])
    assert columns.scaled("none")[0] == 1.5


# A megabyte of what a pattern might go over again and again; each is read in far less than this test's time limit.


def test_blanks_that_do_not_break_are_blanks() -> None:
    (found,) = scan(["one\ncount:\xa012\xa0more\nand\xa0this\n".encode()], [Counts])
    assert [(item.place.line, item.text) for item in found.remarks] == [(2, "count: 12 more"), (3, "and this")]


def test_a_record_of_dockers_log_driver_is_the_line_in_it() -> None:
    lines = [
        b'{"log":"count: 1\\n","stream":"stdout","time":"2026-01-02T03:04:05Z"}',
        b'{"log":"count: 2',
        b'{"log":7}count: 3',
    ]
    (found,) = scan([b"\n".join(lines) + b"\n"], [Counts])
    assert [item.text for item in found.remarks] == ["count: 1", '{"log":"count: 2', '{"log":7}count: 3']


def test_half_a_character_in_a_record_of_dockers_log_driver_is_a_question_mark() -> None:
    (found,) = scan([b'{"log":"count: 1 \\ud800"}\n'], [Counts])
    assert [item.text for item in found.remarks] == ["count: 1 ?"]
