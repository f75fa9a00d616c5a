"""Libraries that only some commands need: installed with an extra, imported where they are used."""

from __future__ import annotations

import importlib
from typing import Any

from receipts.base.errors import UsageError


def extra(module: str, name: str) -> Any:
    """A library of an extra. Raises UsageError with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != module.partition(".")[0]:
            raise
        raise UsageError(
            f"{module} is not installed, and this command needs it: pip install 'frontier-receipts[{name}]'"
        ) from None
