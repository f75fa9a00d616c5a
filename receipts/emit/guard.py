"""Nothing that the recorder does may raise into the job: what a guarded method raises becomes a note."""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec

    Given = ParamSpec("Given")


def fault(note: Callable[[str], None], where: str, error: BaseException) -> None:
    """Note an error. It may be unable to say its own text, and the note may fail as what it is about did."""
    kind = type(error).__name__
    try:
        note(f"{where}: {kind}: {error}")
    except Exception:
        try:
            note(f"{where}: {kind}")
        except Exception:
            return


def guarded(method: Callable[Given, None]) -> Callable[Given, None]:
    """A method whose faults become notes: training goes on. Its object takes them by `_fault(where, error)`."""

    @wraps(method)
    def call(*given: Given.args, **named: Given.kwargs) -> None:
        try:
            method(*given, **named)
        except Exception as error:
            owner: Any = given[0]
            owner._fault(method.__name__, error)

    return call
