"""A tracing cache miss of JAX, and why the function was traced once more."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from receipts.ingest.evidence.witnesses.compile_order import place

_TRACED: Final = re.compile(r"(?:for )?(\S{1,200}) (?:id=\d+ )?defined at (\S{1,400}?):(\d+)")
# In each version the value of now and that of before, the wider difference first.
_CHANGES: Final = (
    re.compile(r"\* at (?P<what>.{1,200}?), now (?P<now>.{1,400}?) and before (?P<was>.{1,400}?)(?:https?:|, so |$)"),
    re.compile(r"\* at (?P<what>.{1,200}?), seen (?P<was>.{1,400}?), but now given (?P<now>.{1,400}?)(?:, |$)"),
)


@dataclass(slots=True)
class CacheMiss:
    """A tracing cache miss, whose reason is on the lines below."""

    place: str
    short: str
    line: int
    reasons: list[str]
    length: int = 0

    @property
    def again(self) -> str:
        """Why the function was traced once more; empty for its first trace, which is no news."""
        traced = next((match for reason in self.reasons if (match := _TRACED.match(reason))), None)
        if traced is None:
            return ""
        name = traced[1]
        if any(reason.startswith("never seen function") for reason in self.reasons):
            if not any("defined on the same line" in reason for reason in self.reasons):
                return ""
            return f"{name} is defined anew for every call ({place(traced[2], traced[3])})"
        changes = (form.match(reason) for form in _CHANGES for reason in self.reasons)
        change = next(filter(None, changes), None)
        if change is None:
            return f"{name}: {' '.join(self.reasons[1:])[:200]} ({self.short})"
        was, now = _short(change["was"]), _short(change["now"])
        return f"{name}: {_argument(change['what'])} changed from {was} to {now} ({self.short})"


def _argument(path: str) -> str:
    return path if " " in path else f"argument {path}"


def _short(value: str) -> str:
    """``f32[8]``, or the value of a static argument without the class that holds it."""
    return value.rpartition(" metadata ")[2].strip()[:80]
