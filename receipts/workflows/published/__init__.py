"""Published results: what others measured and printed, as receipts that say where each came from."""

from __future__ import annotations

from typing import NamedTuple

from receipts.base.errors import Problem


class ImportedReceipt(NamedTuple):
    """The receipt of a run or of one commit, or the problems that keep it from being one.

    ``raw`` is None with ``problems``, and for a commit whose values are ``repeated``.
    """

    where: str
    raw: bytes | None
    problems: tuple[Problem, ...] = ()
    repeated: bool = False
