"""Words of a command line as the program's declarations read them."""

from __future__ import annotations

import pytest

from receipts.emit.launch_line import options
from receipts.emit.python_source import as_declared, declared

SOURCE = """
parser.add_argument("-l", "--lr", type=float)
parser.add_argument("--heads", "-H", type=int)
parser.add_argument("--out")
parser.add_argument("--betas", nargs=2)
parser.add_argument("--verbose", "-v", action="count")
parser.add_argument("--flash", action="store_true")
parser.add_argument("--bf16", action=argparse.BooleanOptionalAction)
parser.add_argument("--no-bias", action="store_true")
parser.add_argument("model")
"""
CLICK = '@click.option("--fast/--slow", default=True)\n@click.option("--depth", "-d")\ndef main(): ...\n'


def read(line: str, source: str = SOURCE) -> dict[str, str]:
    """The options of a line under a source."""
    return options(as_declared(line.split(), declared(source)))


@pytest.mark.parametrize("line", ["-l 1e-2", "-l1e-2", "-l=1e-2", "--lr 1e-2", "--lr=1e-2", "--l 1e-2"])
def test_one_option_has_one_name_however_it_is_typed(line: str) -> None:
    assert read(line) == {"lr": "1e-2"}


@pytest.mark.parametrize(
    ("line", "own"),
    [
        ("--out a big", {"out": "a"}),
        ("--flash big", {"flash": "true"}),
        ("-vv big", {"verbose": "2"}),
        ("--bf16 big", {"bf16": "true"}),
        ("--no-bf16 big", {"bf16": "false"}),
        ("--no-bias big", {"bias": "false"}),
    ],
)
def test_a_word_behind_an_option_that_is_complete_is_the_program_s(line: str, own: dict[str, str]) -> None:
    assert read(line) == {**own, "#0": "big"}


def test_an_option_of_several_words_keeps_them() -> None:
    assert read("--betas 0.9 0.95 --h 2") == {"betas": "[0.9, 0.95]", "heads": "2"}


def test_a_beginning_of_two_options_is_neither() -> None:
    assert read("--b 1") == {"b": "1"}


def test_what_stands_behind_two_dashes_is_left_alone() -> None:
    assert as_declared(["--", "-l", "1"], declared(SOURCE)) == ["--", "-l", "1"]


def test_options_of_click_are_read_alike() -> None:
    assert read("--fast big -d 4", CLICK) == {"fast": "true", "#0": "big", "depth": "4"}
    assert read("--slow", CLICK) == {"fast": "false"}


def test_an_option_that_is_declared_in_two_ways_is_read_by_its_words_alone() -> None:
    source = 'a.add_argument("--x", action="store_true")\nb.add_argument("--x")\n'
    assert read("--x 1 2", source) == {"x": "[1, 2]"}
    assert declared("def add_argument(:") == {}
