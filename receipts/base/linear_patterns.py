"""Regular expressions of a person's own, matched in time linear in the text: RE2 does not backtrack.

``re`` takes exponential time for a pattern such as ``(a+)+$``, and a pattern in a map or mapping may come from anybody.
RE2 has no lookaround and no backreferences; a pattern that uses them does not compile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol


class LinearMatch(Protocol):
    """What a match offers, as in ``re``."""

    def group(self, *groups: int | str) -> Any:
        """The text of one group, or a tuple of several."""

    def __getitem__(self, group: int | str) -> Any:
        """The text of one group; None where it took no part."""

    def groupdict(self) -> dict[str, str | None]:
        """The text of each named group."""


class LinearPattern(Protocol):
    """A compiled pattern, as in ``re``."""

    @property
    def pattern(self) -> str:
        """The text that was compiled."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Named groups with their numbers."""

    def search(self, text: str) -> LinearMatch | None:
        """The leftmost match, or None."""


_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d))")


def expanded(match: LinearMatch, template: str) -> str:
    """The template with its group references (`\\1`, `\\g<0>`) replaced.

    RE2's own ``expand`` takes each byte of a template that is not ASCII for a character.
    """

    def group(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        return match[int(name) if name.isdigit() else name] or ""

    return _REFERENCE.sub(group, template)


def compile_linear(text: str, *, ignore_case: bool = False) -> LinearPattern:
    """Compile a pattern.

    Raises:
        ValueError: RE2 does not know the pattern; the message is RE2's.
    """
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        pattern: LinearPattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None
    return pattern
