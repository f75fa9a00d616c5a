"""A log as strangers send it: within records of other programs, with dead colors, in UTF-16, its newest line first."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

LINES = [
    f"completed step: {n}, seconds: 3.4{n % 7}, TFLOP/s/device: 41{n % 9}.2, Tokens/s/device: 7{n % 90 + 10}0.5,"
    f" total_weights: 196608, loss: {9 - n / 20:.3f}"
    for n in range(60)
]
PAYLOADS = [{"insertId": f"a{n}", "textPayload": line, "timestamp": "2026-03-02"} for n, line in enumerate(LINES)]
OUTPUT = {"name": "stdout", "output_type": "stream", "text": [f"\x1b[32m{line}\x1b[0m\n" for line in LINES]}
COLORED = [line.replace("seconds: ", "seconds: \x1b[1;36m").replace(", TFLOP", "\x1b(B\x1b[m, TFLOP") for line in LINES]


def reading(path: Path, content: bytes) -> Reading:
    path.write_bytes(content)
    (found,) = (item for item in read(path).readings if len(item.steps))
    return found


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def printed(of: Reading) -> object:
    names = ("step_seconds", "loss", "tokens_per_second_per_chip")
    return of.steps.numbers(), [of.steps.column(name) for name in names], of.steps.restarts, of.not_steady


WAYS: dict[str, Callable[[], bytes]] = {
    "an export of Cloud Logging": lambda: json.dumps(PAYLOADS, indent=2).encode(),
    "the same, newest first": lambda: json.dumps(PAYLOADS[::-1], indent=2).encode(),
    "a structured logger": lambda: text([json.dumps({"level": "info", "message": f"{line}\n"}) for line in LINES]),
    "a notebook": lambda: json.dumps({"cells": [{"cell_type": "code", "outputs": [OUTPUT]}]}, indent=1).encode(),
    "newest first": lambda: text(LINES[::-1]),
    "a Windows shell": lambda: "".join(f"{line}\r\n" for line in LINES).encode("utf-16"),
    "another byte order": lambda: b"\xfe\xff" + "".join(f"{line}\n" for line in LINES).encode("utf-16-be"),
    "colors of tput": lambda: text(COLORED),
    "colors as carets": lambda: text([line.replace("\x1b", "^[") for line in COLORED]).replace(b"^[(B", b""),
    "colors without their escape": lambda: text([f"[32m{line}[0m" for line in LINES]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_log_tells_the_same_however_it_was_kept(way: str, tmp_path: Path) -> None:
    plain = reading(tmp_path / "plain.log", text(LINES))
    assert len(plain.steps) == 60
    assert printed(reading(tmp_path / "kept.log", WAYS[way]())) == printed(plain)


def test_a_log_whose_newest_line_is_first_says_so_and_keeps_its_lines(tmp_path: Path) -> None:
    lines = [*LINES[:30], LINES[30].replace("8.500", "nan").replace("7.500", "nan"), *LINES[31:]]
    found = reading(tmp_path / "turned.log", text(lines[::-1]))
    places = {remark.text: remark.place.line for remark in found.remarks}
    assert places["step 30 prints a loss that is not finite"] == 30
    assert places["the newest line is first: the file was read from its end"] == 0


def test_a_time_in_brackets_is_no_color(tmp_path: Path) -> None:
    path = tmp_path / "times.log"
    path.write_bytes(b"".join(b"[5m30s] " + line.encode() + b"\n" for line in LINES))
    (found,) = (item for item in read(path).readings if len(item.steps))
    assert len(found.steps) == 60


def test_a_packed_log_of_several_hundred_kilobytes_is_turned_too(tmp_path: Path) -> None:
    lines = [line.replace(f"step: {n % 60},", f"step: {n},") for n, line in enumerate(LINES * 50)]
    found = reading(tmp_path / "long.log.gz", gzip.compress(text(lines[::-1])))
    assert (len(found.steps), found.steps.restarts, sorted(found.not_steady)[:1]) == (3000, 0, [0])
