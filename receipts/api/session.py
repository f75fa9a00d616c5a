"""What a question is asked of: a store, if there is one, and the rules in force.

The command line, a request to the server and `receipts.open` each make one; a question is given nothing else.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from receipts.base.errors import NoStore, NotFound, every

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.questions.comparisons import Floors
    from receipts.receipt import Parsed
    from receipts.store import Store


class Session:
    """One asking: an open store, the rulebook, and noise floors that it may share with others."""

    asks_store = True  # whether documents are judged beside the store, too
    jobs: int | None = 1  # processes that long work may take; None: one for each core

    def __init__(self, store: Store | None, rulebook: Rulebook, floors: Floors | None = None) -> None:
        self._opened = store
        self._rulebook = rulebook
        self.floors = floors
        self.notes: list[str] = []

    @property
    def rulebook(self) -> Rulebook:
        """Rules, lanes and studies in force."""
        return self._rulebook

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._opened!r}>"

    def opened(self, *, looked_up: Sequence[Any] = ()) -> Store:
        """The store; the words that are ``looked_up`` in it are named where there is none. Raises NoStore."""
        if self._opened is None:
            raise NoStore(f"{', '.join(item for item in looked_up if isinstance(item, str)) or 'this'} needs a store")
        return self._opened

    @property
    def store(self) -> Store:
        """The store. Raises NoStore."""
        return self.opened()

    @property
    def known(self) -> Store | None:
        """The store that documents are judged beside; None where there is none."""
        return self._opened

    @property
    def beside(self) -> Store | None:
        """The store in which launches are counted that nobody named; None where there is none."""
        return self._opened

    @property
    def chosen(self) -> bool:
        """Whether the store was named: one that is not there is then an error."""
        return True

    @property
    def there(self) -> bool:
        """Whether there is a store, or one was named; where there is none yet, some questions need none."""
        return self._opened is not None

    @property
    def advance(self) -> Callable[..., None] | None:
        """What is called with how many are done, and of how many; in a notebook it says so after two seconds."""
        if "IPython" not in sys.modules:
            return None
        shown = time.monotonic() + 1

        def at(done: int, total: int | None = None) -> None:
            nonlocal shown
            if (now := time.monotonic()) - shown >= 1:
                shown = now
                sys.stderr.write(f"\r{done:,}{f' of {total:,}' if total is not None else ''}")

        return at

    def note(self, text: str) -> None:
        """Say something that is no part of the answer."""
        self.notes.append(text)

    def one(self, given: Parsed | str) -> Parsed:
        """The receipt itself, or the one that represents those that a word names, of one configuration."""
        return self.opened(looked_up=[given]).get(given, repeated=True) if isinstance(given, str) else given

    def groups(self, given: Sequence[Parsed | str]) -> list[list[Parsed]]:
        """The receipts that each word names, at least one; a receipt is itself."""
        words = [item for item in given if isinstance(item, str)]
        store = self.opened(looked_up=words) if words else None

        def named(item: Any) -> list[Parsed]:
            if store is None or not isinstance(item, str):
                return [item]
            ids = store.resolve_all(item)
            if not ids:
                raise NotFound(f"nothing in the store is called {item!r}; see: receipts list")
            return [store.parsed(one) for one in ids]

        return every(named, given)

    def two(self, a: Parsed | str, b: Parsed | str) -> tuple[Parsed, Parsed]:
        """Two receipts as `one` reads them. Raises with what is wrong with both."""
        left, right = every(self.one, (a, b))
        return left, right


def documents(given: Iterable[Any]) -> bool:
    """Whether nothing of what was given has to be looked up."""
    return not any(isinstance(item, str) for item in given)
