"""A verb of the program: a function from a session and its arguments to an `Answer`. What verbs share is done here."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import click

from receipts.cli import output
from receipts.cli.output import Shown
from receipts.cli.session import Session

Item = TypeVar("Item")
_EXAMPLES = "\n\nExamples:\n"


class Answer(NamedTuple):
    """What a verb gives back: its answer as data for ``--json`` and as people read it, and the exit code.

    Either form may be a function, of which only the one that is printed is called. ``notes`` lead a person on, on
    standard error; ``opened`` opens the folds of a page.
    """

    data: Any
    shown: Shown | Callable[[], Shown] = None
    code: int = 0
    notes: tuple[str, ...] = ()
    opened: bool = False


Function = Callable[..., Answer | int]


def verb(name: str, *, of: click.Group | None = None, json: bool = True) -> Callable[[Function], click.Command]:
    """Make a function a verb of the program, or one below the group ``of``; with ``json`` it takes ``--json``.

    Its docstring is its help: what it does, then its examples, and what is said below them. A verb that prints while it
    works returns its exit code alone, and asks ``session.as_json`` for the form.
    """

    def declare(function: Function) -> click.Command:
        @wraps(function)
        def call(*, as_json: bool = False, **arguments: Any) -> int:
            session = click.get_current_context().ensure_object(Session)
            session.as_json = as_json
            answer = function(session, **arguments)
            return answer if isinstance(answer, int) else _print(session, answer)

        command = (of or click).command(name, **_texts(function))(call)
        if json:
            command.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the answer as JSON."))
        return command

    return declare


def group(name: str) -> Callable[[Callable[[], None]], click.Group]:
    """Make a function, of which only the docstring counts, a verb that has others below it."""
    return lambda function: click.group(name, None, **_texts(function))(function)


def _texts(function: Callable[..., Any]) -> dict[str, Any]:
    """Help and epilog of a docstring; the help of a group has its first sentence."""
    text, examples, below = inspect.cleandoc(function.__doc__ or "").partition(_EXAMPLES)
    sentence = " ".join(text.partition("\n\n")[0].partition(". ")[0].split())
    return {
        "help": text,
        "short_help": f"{sentence.removesuffix('.')}.",
        "epilog": f"\b{examples[1:]}{below}" if below else None,
    }


def _print(session: Session, answer: Answer) -> int:
    session.progress.clear()
    output.answer(session.as_json, answer.data, answer.shown, opened=answer.opened)
    for text in answer.notes if not session.as_json else ():
        output.note(text)
    return answer.code


def each(
    session: Session, items: Iterable[Item], data: Callable[[Item], Any], shown: Callable[[Item], Shown]
) -> list[Item]:
    """Print every item when it is there, or with ``--json`` all of them as one list at the end; gives the items."""
    known = []
    for item in items:
        known.append(item)
        if not session.as_json:
            output.answer(False, None, shown(item))
    if session.as_json:
        output.as_json([data(item) for item in known])
    return known
