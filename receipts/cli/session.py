"""One call of the program: the session, how words become receipts, the verb that answers, and what completes a word.

A session holds the store and the configuration that were asked for. A verb is a function from a session and its
arguments to an `Answer`; what verbs share is done here. A word that is typed is completed by what is asked for: ids and
labels of the store, metrics, rules and lanes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from receipts.api.answer import Answer as Answer
from receipts.api.question import texts
from receipts.api.session import Session as Asking
from receipts.base.errors import NoStore, NotFound, UsageError
from receipts.cli import output

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from receipts.base.environment import Config
    from receipts.cli.output import Progress
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Document, Parsed
    from receipts.receipt.load import Item
    from receipts.store import Store
    from receipts.store.entries import Extract
    from receipts.workflows.server import RemoteServer
    from receipts.workflows.submit import Submission


class Session(Asking):
    """One call of the program."""

    jobs = None

    def __init__(self, store: str | None = None, config: str | None = None, *, asks_store: bool = False) -> None:
        self._store = store
        self.floors = None
        self._config = config if config is not None else config_upward()
        self.asks_store = asks_store  # named on the command line: then files are judged beside what it holds
        self.as_json = False  # the form of the answer
        self._opened: Store | None = None

    def __repr__(self) -> str:
        return f"Session(store={self._store!r}, config={self._config!r})"

    @property
    def advance(self) -> Callable[..., None]:
        """What is called with how many are done."""
        return self.progress.at

    def note(self, text: str) -> None:
        """Say it now, on standard error."""
        output.note(text)

    @cached_property
    def progress(self) -> Progress:
        """How far the work is, which the answer takes away."""
        from receipts.cli.output import Progress

        return Progress()

    @cached_property
    def config(self) -> Config:
        """What the ``receipts.toml`` says that was named, or the next one upward from here; else nothing."""
        from receipts.base.environment import read_config

        return read_config(Path(self._config) if self._config else None)

    @cached_property
    def rulebook(self) -> Rulebook:
        """Rules, lanes and studies in force."""
        from receipts.judging.rulebook import Rulebook, configured

        return configured(self.config) if self._config else Rulebook()

    @property
    def store_url(self) -> str | None:
        """The store that was asked for; None for that of ``RECEIPTS_STORE`` or, without it, the user's own."""
        named = self.config.store if self._config else None  # a --config that cannot be read is reported in any case
        if self._store and not self.asks_store and self._store == os.environ.get("RECEIPTS_STORE"):
            return None  # `receipts.store.address` reads it, and makes its folder
        return self._store or named

    @cached_property
    def server(self) -> RemoteServer | None:
        """The team's server, where the store is the URL of one."""
        named = self._store or (self.config.store if self._config else None)
        if named is None or not named.lower().startswith(("http://", "https://")):
            return None
        from receipts.workflows.server import RemoteServer

        return RemoteServer(named)

    def close(self) -> None:
        """Close the store and the connection to a server, where they were opened."""
        self.progress.clear()
        for name in ("_opened", "server"):
            if (item := vars(self).get(name)) is not None:
                item.close()

    @property
    def target(self) -> str:
        """The store as the spool calls it."""
        if self.server is not None:
            return self.server.url
        from receipts.store.address import address

        return address(self.store_url).target

    @property
    def chosen(self) -> bool:
        """Whether a store was named, which must then be there."""
        return self.store_url is not None and self.server is None

    @property
    def there(self) -> bool:
        """Whether the store is there, or was named on the command line."""
        from receipts.store.address import address

        file = address(self.store_url).file
        return file is None or file.exists() or self.asks_store

    @property
    def beside(self) -> Store | None:
        """The store, if there is one: documents that somebody chose are counted beside it, and need none."""
        from receipts.base.errors import StoreError

        try:
            return self.store if self.server is None else None
        except StoreError:
            return None

    @cached_property
    def known(self) -> Store | None:
        """The store that files are judged beside; None where there is none yet, or a server.

        A store that was not named on the command line and cannot be opened is said, and not asked.
        """
        from receipts.base.errors import StoreError
        from receipts.store.address import is_there

        if self.server is not None:
            return None
        if self.asks_store:
            return self.store
        if not is_there(self.store_url):
            return None
        try:
            return self.store
        except NoStore:
            return None
        except StoreError as error:
            output.note(f"judged without the store: {error}")
            return None

    def opened(self, *, create: bool = False, looked_up: Sequence[Any] = ()) -> Store:
        """The store. Without ``create`` one that does not exist yet is an error that says what to do.

        ``looked_up`` are the words to look up in it: the error then says that none of them is a file.
        """
        if self._opened is None:
            self._opened = self._open(create, looked_up)
        return self._opened

    @contextmanager
    def open_store(self) -> Iterator[Store]:
        """The store for a moment, made where there is none: a launch may last for days."""
        with self._open(True, ()) as store:
            yield store

    def _open(self, create: bool, looked_up: Sequence[Any]) -> Store:
        from receipts.store import open_store

        if self.server is not None:
            raise UsageError(
                f"{self.server.url} is a server, and this needs the database itself; over HTTP there are submit, "
                "flush, pin, claim add, and the questions that docs/serve.md lists"
            )
        try:
            return open_store(self.store_url, create=create)
        except NoStore as error:
            words = ", ".join(word for word in looked_up if isinstance(word, str) and not is_file(word))
            if not words:
                raise
            raise NoStore(f"{error}\n{words}: no such file here, so read as the name of a stored receipt") from None

    def is_label(self, word: str) -> bool:
        """Whether the store has a receipt of this label."""
        if self.server is not None:
            return bool(self.server.get("/v1/receipts", [("where", f"label={word}"), ("limit", "1")]).data)
        store = self.known
        try:
            return store is not None and bool(store.resolve_all(f"label={word}"))
        except NotFound:
            return False

    def submit(self, documents: Iterable[Item]) -> Iterator[Submission]:
        """Submit documents to the store, or to the server: see `receipts.workflows.submit.submit`."""
        from receipts.workflows.submit import submit

        return (
            self.server.submit(documents, None, self.rulebook.lanes)
            if self.server is not None
            else submit(documents, self.store, self.rulebook)
        )

    def submit_one(self, document: Document, extracts: Sequence[Extract] = ()) -> Submission:
        """Submit one document, to a store that is made where there is none and closed again."""
        from receipts.workflows.submit import submit

        with self.open_store() as store:
            (outcome,) = submit([document], store, self.rulebook, extracts={document.id: extracts})
        return outcome


CONFIG = "receipts.toml"


def config_upward() -> str | None:
    """The next ``receipts.toml`` upward from the working folder: the team's, beside its code.

    It may name rules, which are code: a file that belongs to another user, or that anybody may write, is passed by.
    """
    try:
        place = os.getcwd()
    except OSError:
        return None
    while True:
        file = os.path.join(place, CONFIG)
        with suppress(OSError):
            state = os.stat(file)
            if state.st_uid == os.getuid() and not state.st_mode & 0o002:
                return file
        above = os.path.dirname(place)
        if above == place:
            return None
        place = above


def is_file(word: str) -> bool:
    """Whether a word names a file rather than a stored receipt: it exists, or it looks like a path."""
    # os.path and not Path: it answers False where no file can have such a name.
    # A label is often a command, which names a program by its path.
    looks = word.endswith((".json", ".toml")) or "/" in word
    return word == "-" or os.path.exists(word) or (looks and not word.startswith("label="))


def several(word: str, session: Session | None = None) -> tuple[str, ...]:
    """The words of one side: ``3f9c,81aa`` and ``a-1.json,a-2.json`` are two, ``a-*.json`` is each of its files.

    The name of a file or a label of the store may hold a comma, and is one.
    """
    if word == "-" or os.path.exists(word) or word.startswith("label="):
        return (word,)
    if any(sign in word for sign in "*?[") and ("/" in word or word.endswith(".json")):
        from glob import glob

        return tuple(sorted(glob(word))) or (word,)
    parts = tuple(part.strip() for part in word.split(",") if part.strip())
    if len(parts) < 2 or (session is not None and session.is_label(word)):
        return (word,)
    return parts


def from_stdin() -> Document:
    """The document on standard input, read to one byte beyond the limit."""
    from receipts.receipt import Document
    from receipts.receipt.load import MAX_BYTES

    return Document(sys.stdin.buffer.read(MAX_BYTES + 1), "standard input")


def parsed_file(word: str) -> Parsed:
    """The receipt in a file, or on standard input for ``-``."""
    from receipts.receipt import parse, read

    return parse(from_stdin() if word == "-" else read(word))


Function = Callable[..., Answer | int]


def verb(
    name: str, *, of: click.Group | None = None, json: bool = True, kind: type[click.Command] = click.Command
) -> Callable[[Function], click.Command]:
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
            return answer if isinstance(answer, int) else print_answer(session, answer)

        command = (of or click).command(name, cls=kind, **texts(function))(call)
        for param in command.params:
            param._custom_shell_complete = param._custom_shell_complete or completing(param.name or "")
        if json:
            command.params.append(click.Option(["--json", "as_json"], is_flag=True, help="Print the answer as JSON."))
        return command

    return declare


def group(name: str) -> Callable[[Callable[[], None]], click.Group]:
    """Make a function, of which only the docstring counts, a verb that has others below it."""
    return lambda function: click.group(name, Below, **texts(function))(function)


class Below(click.Group):
    """A verb that has others below it: a mistyped one is answered with those that there are."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, but its error names them."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            ctx.fail(f"{error.format_message()} There are {', '.join(self.list_commands(ctx))}.")


def print_answer(session: Session, answer: Answer) -> int:
    """Print the answer of a verb, and its notes; its exit code."""
    session.progress.clear()
    if session.as_json:
        output.line(answer.to_json())
    else:
        sys.stdout.write(answer.text(output.terminal()))
    for text in answer.notes if not session.as_json else ():
        output.note(text)
    return answer.exit_code


MAX_COMPLETIONS: Final = 200


def completing(what: str, *, files: bool = False) -> Callable[..., list[CompletionItem]] | None:
    """What completes a parameter by its name; None leaves it to the shell. With ``files`` it may be a file as well."""

    def complete(ctx: click.Context, _param: click.Parameter, begun: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        try:
            words = list(_words(ctx.ensure_object(Session), what))
        except Exception:  # a shell shows no error while somebody types
            return []
        items = [CompletionItem(word, help=text) for word, text in words if word.startswith(begun)][:MAX_COMPLETIONS]
        return items or [CompletionItem(begun, type="file")] if files else items

    return complete if what in ("receipt", "metric", "code", "lane", "lanes") else None


def _words(session: Session, what: str) -> Iterator[tuple[str, str]]:
    """Each word, with what a shell may show beside it."""
    if what == "receipt":
        from receipts.store import Filters

        for item in session.store.find(Filters(limit=MAX_COMPLETIONS)):
            yield item.id[:12], item.label or ""
            if item.label:
                yield item.label, item.id[:12]
    elif what == "metric":
        from receipts import metrics

        yield from ((item.name, item.title) for item in metrics.METRICS.values())
    elif what == "code":
        yield from ((item.code, item.name) for item in session.rulebook.rules.rules)
    else:
        yield from ((item, "") for item in session.rulebook.lanes.names())
