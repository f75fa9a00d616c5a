"""What a report calls a receipt, and where its appendix describes it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Entry


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


def ref_of(item: Parsed | Entry) -> Ref:
    """What to call a receipt, from its document or its row."""
    return Ref(item.id, item.name)


def refs_in(value: Any) -> Iterator[Ref]:
    """Every receipt that the values of a page name, in their order."""
    if isinstance(value, Ref):
        yield value
    elif isinstance(value, tuple | Mapping):
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from refs_in(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from refs_in(getattr(value, field.name))
