"""What a report calls a receipt, and where its appendix describes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ref:
    """A receipt, by id and by what people call it."""

    id: str
    name: str

    @property
    def short(self) -> str:
        """Enough of the id to find it by."""
        return self.id[:12]

    @property
    def anchor(self) -> str:
        """Where the appendix describes it."""
        return f"r-{self.id[:12]}"
