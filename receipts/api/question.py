"""A question: one declaration, from which the command, HTTP, Python and the MCP tool are derived.

A question is a function from a `Session` and its parameters to an `Answer`. Its signature names the parameters, with
their types and defaults; ``Annotated[type, Param(…)]`` says how one is written; its docstring is the help, the examples
and the summary of the operation. Words become receipts at the edge: the function is given a word that a store knows,
or a receipt that was read, and never a path. The kernel's questions are the modules of `receipts.api.questions`.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, Final, Generic, NamedTuple, ParamSpec, TypeVar

from receipts.base.errors import UsageError

if TYPE_CHECKING:
    from receipts.api.session import Session

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
PACKAGE: Final = "receipts.api.questions"
_EXAMPLES = "\n\nExamples:\n"
# A text that can name something: no control characters, not longer than a label.
TEXT: Final[Mapping[str, Any]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": 500,
    "pattern": r"^[^\x00-\x1f\x7f-\x9f]+$",
}
FLAG_SCHEMA: Final[Mapping[str, Any]] = {"type": "string", "enum": ["true", "false"]}


class Kind(NamedTuple):
    """How values of a kind are written: the JSON Schema of one, and what reads its text.

    ``read`` is given the name that the value was given under, for its message. ``gather`` makes one value of many.
    ``document`` says that the value may be a document: a *receipt*, or a *plan*. ``split``: ``A,B`` is two words. With
    ``lenient`` a document that is refused stands as its error. A ``path`` of this machine is for the command and
    Python alone.
    """

    schema: Mapping[str, Any] = TEXT
    read: Callable[[str, str], Any] | None = None
    gather: Callable[[Sequence[Any]], Any] = tuple
    document: str = ""
    split: bool = False
    lenient: bool = False
    path: bool = False


class Param(NamedTuple):
    """How a parameter is written. Without ``flags`` it is an argument, of one word (``words=1``) or of several.

    ``also`` is an option, with its help, that adds to an argument. ``wire`` is the name over HTTP and in tools, where
    that differs. A value with a ``scope`` changes something, and is asked for by POST. One that is ``local`` is for the
    command and Python alone; one with ``command=False`` has no option, since `Spelled` writes it.
    """

    kind: Kind
    help: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    many: bool = False
    words: int = 0
    also: tuple[str, str] | None = None
    wire: str = ""
    scope: str = ""
    local: bool = False
    command: bool = True
    stored: bool = False  # given, it needs a store
    show_default: bool = False
    limits: tuple[int, int | None] | None = None  # of an integer on the command line, if not all above its minimum


class Parameter(NamedTuple):
    """A parameter of a question by its name; without a default it is ``required``."""

    name: str
    how: Param
    default: Any
    required: bool

    @property
    def wire(self) -> str:
        """Its name over HTTP and in tools."""
        return self.how.wire or self.name


class File(NamedTuple):
    """What an answer can be written as beside its text: ``answer.file(name)`` gives the bytes, or a folder of them.

    One that is ``printed`` takes the place of the text on standard output. ``without`` says why there is none;
    ``silent`` files are not announced.
    """

    flags: tuple[str, ...]
    media: str
    help: str
    metavar: str = "FILE"
    without: str = ""
    printed: bool = False
    silent: bool = False
    folder: bool = False
    over_json: bool = False  # it is printed even where JSON was asked for
    view: str = ""  # the view of the page that is told where it is written
    keep: bool = False  # of a folder, a file that is there stays
    new: bool = False  # a file that is there is not written over
    then: str = ""  # what to do with it, behind its name


class Spelled(NamedTuple):
    """Options of the command that stand for parameters: ``read`` takes theirs out of the values, and sets those."""

    options: Mapping[str, Param]
    read: Callable[[dict[str, Any]], None]


def always(_documents: int, _named: bool) -> bool:
    """Documents need no store."""
    return True


def unnamed(_documents: int, named: bool) -> bool:
    """Documents need no store, unless one was named: then they are judged beside it."""
    return not named


def integer(least: int, most: int | None = None, *, remote: int = 1000) -> Kind:
    """An integer; over HTTP and in tools it is bounded by ``remote``."""
    return Kind({"type": "integer", "minimum": least, "maximum": remote if most is None else most})


def choice(*values: str) -> Kind:
    """One of some words."""
    return Kind({"type": "string", "enum": list(values)})


def read_waiver(name: str, text: str) -> tuple[str, str]:
    """An axis and the reason why it does not count, as ``AXIS="REASON"``. Raises UsageError for one without."""
    axis, separator, reason = text.partition("=")
    reason = reason.strip().strip("\"'").strip()
    if not separator or not reason:
        raise UsageError(f'{name} {text}: write {name} {axis or "AXIS"}="the reason why it cannot matter"')
    return axis.strip(), reason


def read_moment(name: str, text: str) -> Any:
    """A day, a time, or how long ago. Raises UsageError."""
    from receipts.base.units import moment

    return moment(name, text)


WORD: Final = Kind()
FLAG: Final = Kind(FLAG_SCHEMA)
RECEIPT: Final = Kind(document="receipt")
PLAN: Final = Kind(document="plan")
SIDE: Final = Kind(document="receipt", gather=list, split=True)
WAIVER: Final = Kind({**TEXT, "maxLength": 2000}, read_waiver, dict)
MOMENT: Final = Kind(read=read_moment)

OneReceipt = Annotated[Any, Param(RECEIPT, "The receipt", metavar="ID|FILE")]
Metric = Annotated[str, Param(WORD, "The metric to compare, such as mfu.", ("--metric", "-m"), show_default=True)]
Study = Annotated[
    str | None,
    Param(
        WORD,
        "A study of validators/studies.toml: its axes change together on purpose, and count as one.",
        ("--study",),
        "NAME",
    ),
]
Waivers = Annotated[
    Mapping[str, str],
    Param(
        WAIVER,
        "Do not count an axis that the lane allows to waive.",
        ("--waive", "-w"),
        'AXIS="REASON"',
        many=True,
        wire="waive",
    ),
]


class Question(Generic[P, R]):
    """A declared question. Called, it answers; as an attribute of `receipts.Store` it is a method of the store."""

    def __init__(self, function: Callable[Concatenate[Session, P], R], name: str, options: Mapping[str, Any]) -> None:
        self.function = function
        self.name = name
        self.path: str = options.get("path") or f"/v1/{name.replace(' ', '/')}"
        self.costly: bool = options.get("costly", False)  # takes a comparison slot, and one state of the store
        # Whether so many documents, and no word, are answered here though the store is a server, named or not.
        self.alone: Callable[[int, bool], bool] = options.get("alone", lambda _count, _named: False)
        self.post: str = options.get("post") or self.path  # where documents are sent
        self.local: bool = options.get("local", False)  # reads files or writes: no server is asked
        self.verb: bool = options.get("verb", True)  # whether it is a command
        self.tool: bool = options.get("tool", True)  # offered to agents
        self.views: Mapping[str, Param] = options.get("views", {})
        self.files: Mapping[str, File] = options.get("files", {})
        self.forms: tuple[str, ...] = ("text", "json", "markdown", "html", *options.get("forms", ()))
        self.spelled: Spelled | None = options.get("spelled")
        self.pages: Callable[..., Any] | None = options.get("pages")  # a list: rows of many pages as one answer
        self.__doc__ = function.__doc__

    def __repr__(self) -> str:
        return f"<question {self.name}>"

    def __call__(self, session: Session, *given: P.args, **named: P.kwargs) -> R:
        return self.function(session, *given, **named)

    def __get__(self, store: Any, _owner: type | None = None) -> Callable[P, R]:
        if store is None:
            return self  # type: ignore[return-value]  # the declaration itself, as of a class

        def ask(*given: Any, **named: Any) -> Any:
            return self.function(store.session, **self.bound(given, named))  # type: ignore[call-arg]  # bound is all of them

        return ask

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters, in their order. Each annotation is read alone: those of the function's types never are."""
        space = self.function.__globals__
        signature = list(inspect.signature(self.function).parameters.values())[1:]
        return tuple(
            Parameter(item.name, eval(item.annotation, space).__metadata__[0], item.default, item.default is item.empty)
            for item in signature
        )

    def bound(self, given: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments of Python by their names: a path, bytes, a mapping or a `Receipt` becomes the receipt in it."""
        from receipts.api.receipt import read_given

        values = dict(inspect.signature(self.function).bind(None, *given, **named).arguments)
        values.pop(next(iter(inspect.signature(self.function).parameters)))
        for item in self.parameters:
            if item.name not in values:
                continue
            value = values[item.name]
            if item.how.kind.document:
                each = value if item.how.many and isinstance(value, list | tuple) else [value]
                read = [one if one is None else read_given(one, item.how.kind.document) for one in each]
                values[item.name] = item.how.kind.gather(read) if item.how.many else read[0]
            elif item.how.kind.read is not None:
                values[item.name] = read_value(item, item.name, value)
        return values

    @cached_property
    def texts(self) -> dict[str, Any]:
        """Help, first sentence and epilog of its command."""
        return texts(self.function)

    @property
    def summary(self) -> str:
        """Its first sentence, without the full stop."""
        return str(self.texts["short_help"]).removesuffix(".")


def read_value(item: Parameter, name: str, value: Any) -> Any:
    """The value that texts of a parameter say. ``name`` is what they were given under; what is no text stays."""
    kind = item.how.kind
    if not item.how.many:
        return kind.read(name, value) if kind.read is not None and isinstance(value, str) else value
    if isinstance(value, Mapping):
        return value
    read = [kind.read(name, one) if kind.read is not None and isinstance(one, str) else one for one in value]
    return kind.gather(read)


def texts(function: Callable[..., Any]) -> dict[str, Any]:
    """Help and epilog of a docstring; the help of a group has its first sentence."""
    text, examples, below = inspect.cleandoc(function.__doc__ or "").partition(_EXAMPLES)
    sentence = " ".join(text.partition("\n\n")[0].partition(". ")[0].split())
    return {
        "help": text,
        "short_help": f"{sentence.removesuffix('.')}.",
        "epilog": f"\b{examples[1:]}{below}" if below else None,
    }


def question(name: str, **options: Any) -> Callable[[Callable[Concatenate[Session, P], R]], Question[P, R]]:
    """Declare a question. ``options`` are the attributes of `Question` that differ from what is usual."""
    return lambda function: Question(function, name, options)


def of_module(module: str) -> Iterator[Question[..., Any]]:
    """The questions that a module declares."""
    for item in vars(importlib.import_module(module)).values():
        if isinstance(item, Question) and item.function.__module__ == module:
            yield item


@cache
def every() -> Mapping[str, Question[..., Any]]:
    """Every question by its name: the kernel's, then those of plugins."""
    from receipts.base.plugins import plugins

    names = (f"{PACKAGE}.{item.name}" for item in pkgutil.iter_modules(importlib.import_module(PACKAGE).__path__))
    added = (f"{package}.{module}" for package, plugin in plugins().items() for module in plugin.questions)
    return {item.name: item for module in (*names, *added) for item in of_module(module)}
