"""TOML files that people write, as values of a model."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from receipts.base.errors import InputError, Problem
from receipts.base.files import read_small
from receipts.base.toml import parse_toml
from receipts.receipt.problems import problems

M = TypeVar("M", bound=BaseModel)


def read_toml(path: Path, model: type[M], page: str) -> M:
    """Read and check a file. Raises InputError with every problem and its place; ``page`` lists the keys."""
    try:
        table = parse_toml(read_small(path))
    except OSError as error:
        raise InputError(str(path), [Problem("$", f"it cannot be read: {error.strerror}", "check the path")]) from None
    except ValueError as error:
        raise InputError(str(path), [Problem("$", str(error), "correct the file")]) from None
    try:
        return model.model_validate(table)
    except ValidationError as error:
        # A key is one of this file, and no axis of a receipt.
        of_key, do = ("there is no such key", "it is required and not stated"), f"{page} lists the keys"
        wrong = [item._replace(do=do) if item.what in of_key else item for item in problems(error, table)]
        raise InputError(str(path), wrong) from None
