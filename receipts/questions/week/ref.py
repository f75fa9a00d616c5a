"""What a report calls a receipt, and the first of many values with how many more there are.

A page would drown in all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Entry


T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Cut(Generic[T_co]):
    """The values that are shown, and how many ``more`` there are."""

    shown: tuple[T_co, ...] = ()
    more: int = 0

    @property
    def total(self) -> int:
        """How many there are."""
        return len(self.shown) + self.more

    def map(self, show: Callable[[T_co], T]) -> Cut[T]:
        """The same with every value as another."""
        return Cut(tuple(map(show, self.shown)), self.more)

    def __iter__(self) -> Iterator[T_co]:
        return iter(self.shown)

    def __len__(self) -> int:
        return len(self.shown)

    def __getitem__(self, place: Any) -> Any:
        return self.shown[place]


def cut(values: Iterable[T_co], most: int) -> Cut[T_co]:
    """The first so many."""
    every = tuple(values)
    return Cut(every[:most], max(0, len(every) - most))


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
