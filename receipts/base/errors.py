"""Every error that the program raises on purpose, and the exit code it ends with.

    ReceiptsError                4  the store or the system failed
    ├── UsageError               2  the call is wrong: an option, a combination, a missing argument
    ├── InputError               2  a document is wrong: every problem, each with its path
    ├── NotFound                 2  no receipt, label, lane, rule … of that name
    │   └── NothingToWrite       2  an answer has no file of that kind
    ├── Several                  2  several of these at once
    ├── ConflictError            2  it contradicts what is stored, which is never overwritten
    ├── StoreError               4  the store cannot be opened, read or written
    │   ├── NoStore              4  there is no store at that place yet
    │   ├── NoRoom               4  the store's disk is full; it may have room later
    │   └── Unreachable          4  the store's server does not answer now, and may later
    ├── DiskError                4  a file cannot be written: the disk is full or broken
    ├── RuleError                4  a rule or a lane cannot be loaded, or raised while it ran
    └── ResourceError            4  a folder that ships with the program is not there

A message says what is wrong, where, and what to do next. Codes 0, 1 and 3 are answers and never exceptions.
Anything else that escapes is a defect of the program and shows its traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple, TypeVar


class ReceiptsError(Exception):
    """Base of every deliberate error; `exit_code` is what the process ends with."""

    exit_code: ClassVar[int] = 4


class UsageError(ReceiptsError):
    """The call itself is wrong."""

    exit_code = 2


# A NamedTuple and not a dataclass: `dataclasses` would cost every start of the program several milliseconds.
class Problem(NamedTuple):
    """One thing that is wrong in a document.

    `at` is the path inside the document (`batch.global`; empty, or `$`, for the document as a whole), `what` says what
    is wrong there and `do` what to do about it (empty if `what` says it already).
    """

    at: str
    what: str
    do: str = ""

    def __str__(self) -> str:
        where = f"{self.at}: " if self.at not in ("", "$") else ""
        advice = f" ({self.do})" if self.do else ""
        return f"{where}{self.what}{advice}"


class InputError(ReceiptsError):
    """A document is refused; `str()` has one line a problem: the source's name, the path, what is wrong."""

    exit_code = 2

    def __init__(self, source: str, problems: Iterable[Problem]) -> None:
        self.source = source
        self.problems = tuple(problems)
        super().__init__(source, self.problems)

    def __str__(self) -> str:
        if not self.problems:
            return f"{self.source}: refused"
        return "\n".join(f"{self.source}: {problem}" for problem in self.problems)


class NotFound(ReceiptsError):
    """Nothing of that name, or more than one thing where one was asked for."""

    exit_code = 2


class NothingToWrite(NotFound):
    """The answer has no file of that kind; the message says why."""


class Several(ReceiptsError):
    """Several inputs are wrong, each with an error of its own."""

    exit_code = 2

    def __init__(self, errors: Iterable[ReceiptsError]) -> None:
        self.errors = tuple(errors)
        super().__init__(self.errors)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class ConflictError(ReceiptsError):
    """The new document contradicts a stored one; the message names the way to supersede it."""

    exit_code = 2


class StoreError(ReceiptsError):
    """The store cannot be opened, read or written."""


class NoStore(StoreError):
    """There is no store at that place yet, and the call is not one that makes one."""


class NoRoom(StoreError):
    """The store's disk is full, or over its quota: nothing of this was stored."""


class Unreachable(StoreError):
    """The store's server does not answer: the network, or a server that starts or stops. It may answer later."""


def may_answer_later(status: int) -> bool:
    """Whether a server that answers with this HTTP status may answer the same request later: it fails, or is busy."""
    return status >= 500 or status == 429


class DiskError(ReceiptsError):
    """A file cannot be written where it may be: the disk is full, over its quota, or broken."""


class RuleError(ReceiptsError):
    """A rule, lane or study that people edit cannot be loaded, or a rule raised while it ran."""


_Word = TypeVar("_Word")
_Read = TypeVar("_Read")


MAX_WRONG = 20  # wrong words after which no more are looked up: each costs a search for what it may have meant


def every(read: Callable[[_Word], _Read], words: Iterable[_Word]) -> list[_Read]:
    """What is read for each word. Raises the error of the one that is wrong, or `Several` with those of all.

    After `MAX_WRONG` wrong ones the rest is not looked at.
    """
    items: list[_Read] = []
    wrong: list[ReceiptsError] = []
    waiting = list(words)
    for number, word in enumerate(waiting, 1):
        try:
            items.append(read(word))
        except (InputError, NotFound, UsageError) as error:
            if str(error) not in map(str, wrong):
                wrong.append(error)
            if len(wrong) == MAX_WRONG and number < len(waiting):
                wrong.append(UsageError(f"the {len(waiting) - number:,} words after these were not looked up"))
                break
    if wrong:
        raise wrong[0] if len(wrong) == 1 else Several(wrong)
    return items


def near(word: str, known: Iterable[str]) -> str:
    """The known names that a mistyped one is close to, as the end of a sentence; empty if there is none.

    A name is also close by its last part: ``micro_btch`` means ``batch.micro_batch``.
    """
    import difflib  # a refusal alone needs it

    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.rpartition(".")[2].lower(), name)
        names[name.lower()] = name
    close = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.6)
    suggestions = list(dict.fromkeys(names[item] for item in close))
    return f"; did you mean {' or '.join(suggestions)}?" if suggestions else ""


def printed(error: ReceiptsError) -> list[str]:
    """An error as lines of standard error. One of a document begins with its name, as compilers print it."""
    every = error.errors if isinstance(error, Several) else (error,)
    return [f"{'' if isinstance(item, InputError) else 'receipts: '}{item}" for item in every]


class ResourceError(ReceiptsError):
    """A folder that ships with the program is not where the installation should have put it."""
