"""Errors end with their exit code, and a refused document names every problem with its path."""

from __future__ import annotations

import pickle

import pytest

from receipts.base import errors
from receipts.base.errors import InputError, NoStore, NotFound, Problem, ReceiptsError

CODES = {
    errors.ReceiptsError: 4,
    errors.UsageError: 2,
    errors.InputError: 2,
    errors.NotFound: 2,
    errors.NothingToWrite: 2,
    errors.Several: 2,
    errors.ConflictError: 2,
    errors.StoreError: 4,
    errors.NoRoom: 4,
    errors.NoStore: 4,
    errors.Unreachable: 4,
    errors.DiskError: 4,
    errors.RuleError: 4,
    errors.ResourceError: 4,
}


def _defined() -> set[type[ReceiptsError]]:
    values = vars(errors).values()
    return {value for value in values if isinstance(value, type) and issubclass(value, ReceiptsError)}


def test_every_error_is_in_this_table() -> None:
    assert _defined() == CODES.keys()


@pytest.mark.parametrize(("error", "code"), CODES.items())
def test_an_error_ends_the_program_with_its_code(error: type[ReceiptsError], code: int) -> None:
    assert error.exit_code == code


@pytest.mark.parametrize("error", CODES)
def test_every_error_is_drawn_in_the_tree(error: type[ReceiptsError]) -> None:
    assert errors.__doc__ is not None
    (line,) = [line for line in errors.__doc__.splitlines() if error.__name__ in line.split()]
    assert str(error.exit_code) in line.split()


def test_a_refused_document_shows_each_problem_on_a_line_with_its_path() -> None:
    error = InputError(
        "run.json",
        [
            Problem("batch.global", "is 0", "state a positive number"),
            Problem("", "ends too early"),
            Problem("$", "is no object"),
        ],
    )
    assert str(error).splitlines() == [
        "run.json: batch.global: is 0 (state a positive number)",
        "run.json: ends too early",
        "run.json: is no object",
    ]


@pytest.mark.parametrize(
    "error",
    [
        InputError("a.json", [Problem("run", "is missing", "add it")]),
        NoStore("sqlite:///a: there is no store yet"),
        errors.Several([NotFound("no lane"), InputError("a.json", [Problem("run", "is missing")])]),
    ],
)
def test_an_error_survives_its_way_between_processes(error: ReceiptsError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
