"""The command of a question: its options, what they are read as, and how the answer is printed and written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.api.question import FLAG, Kind, Param, Parameter, Question, read_value
from receipts.base.errors import (
    InputError,
    NotFound,
    NothingToWrite,
    ReceiptsError,
    Several,
    StoreError,
    UsageError,
    every,
)
from receipts.cli import output
from receipts.cli.session import Session, completing, from_stdin, is_file, several

if TYPE_CHECKING:
    from receipts.api.answer import Answer

MAX_LINES = 16 * 1024 * 1024  # bytes of a file of lines
ALSO = "also_"  # before the name of the option that adds to an argument


class Wanted(NamedTuple):
    """How the answer is wanted: its form, the views of its page, and the files to write, by their places."""

    form: str
    views: Mapping[str, Any]
    files: Mapping[str, str]
    printed: str | None  # the file that takes the place of the text


def command(question: Question[..., Any]) -> click.Command:
    """The command of a question, by the last word of its name."""

    def call(**raw: Any) -> int:
        return answered(question, click.get_current_context().ensure_object(Session), raw)

    params = _params(question)
    for name, file in question.files.items():
        if file.printed:
            params.append(click.Option([*file.flags, name], is_flag=True, help=file.help))
        elif file.flags:
            params.append(click.Option([*file.flags, name], metavar=file.metavar, help=file.help))
    params += [_option(name, how, False) for name, how in question.views.items() if how.command]
    *first, last = question.forms
    form = click.Option(["--format", "form"], type=click.Choice(question.forms), default="text", show_default=True)
    form.metavar, form.help = "FORM", f"{', '.join(first)} or {last}."
    params += [form, click.Option(["--json", "as_json"], is_flag=True, help="Print the answer as JSON.")]
    return click.Command(question.name.rpartition(" ")[2], callback=call, params=params, **question.texts)


def _params(question: Question[..., Any], without: Collection[str] = ()) -> list[click.Parameter]:
    """Its arguments, then its options: those that spell several parameters, its own, its files and views."""
    spelled = question.spelled.options if question.spelled is not None else {}
    params: list[click.Parameter] = []
    for item in question.parameters:
        how = item.how
        if not how.flags and how.command:
            words = -1 if how.many and not how.words else 1
            needed = item.required and not spelled
            params.append(
                click.Argument(
                    [item.name],
                    required=needed,
                    nargs=words,
                    metavar=how.metavar,
                    shell_complete=_completing(item.name, how),
                )
            )
    params += [_option(name, how, None) for name, how in spelled.items()]
    for item in question.parameters:
        how = item.how
        if how.flags and how.command and item.name not in without:
            params.append(_option(item.name, how, None if item.required else item.default, required=item.required))
        if how.also is not None:
            flag, text = how.also
            metavar = (how.metavar or "").rstrip("…")
            params.append(click.Option([flag, f"{ALSO}{item.name}"], multiple=True, metavar=metavar, help=text))
    return params


def taking(question: Question[..., Any], *without: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the parameters of a question, but some; it takes their values as one ``given``."""

    def declare(verb: Callable[..., Any]) -> Callable[..., Any]:
        params = _params(question, without)
        names = [str(item.name) for item in params]

        @wraps(verb)
        def call(session: Session, **raw: Any) -> Any:
            own = {name: raw.pop(name) for name in names}
            _, given = read_values(question, session, own)
            return verb(session, given={name: value for name, value in given.items() if name not in without}, **raw)

        call.__click_params__ = [*getattr(verb, "__click_params__", []), *reversed(params)]  # type: ignore[attr-defined]  # as click.option does
        return call

    return declare


def as_option(name: str, annotated: Any, default: Any = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The option of a parameter, for a verb."""
    option = _option(name, annotated.__metadata__[0], default)

    def declare(verb: Callable[..., Any]) -> Callable[..., Any]:
        verb.__dict__.setdefault("__click_params__", []).append(option)
        return verb

    return declare


def _option(name: str, how: Param, default: Any, *, required: bool = False) -> click.Option:
    names = [*how.flags, name]
    if how.kind is FLAG:
        return click.Option(names, is_flag=True, help=how.help or None)
    schema = how.kind.schema
    kind: click.ParamType[Any] | None = None
    if how.kind.path:
        kind = click.Path(exists=True, path_type=Path)
    elif "enum" in schema:
        kind = click.Choice(schema["enum"])
    elif schema["type"] == "integer":
        kind = click.IntRange(*(how.limits or (schema["minimum"], None)))
    usual = {} if required or how.many or default is None else {"default": default}
    return click.Option(
        names,
        type=kind,
        **usual,
        multiple=how.many,
        show_default=how.show_default,
        metavar=how.metavar,
        help=how.help or None,
        required=required,
        shell_complete=_completing(name, how),
    )


def _completing(name: str, how: Param) -> Callable[..., Any] | None:
    document = how.kind.document
    lane = name == "name" and how.help == "A lane's name"
    return completing("lane" if lane else document or name, files=bool(document))


def answered(question: Question[..., Any], session: Session, raw: dict[str, Any]) -> int:
    """Ask the question, of the store or of the server, and print the answer."""
    form = raw.pop("form")
    session.progress.tick()
    session.as_json = raw.pop("as_json") or form == "json"
    places = {name: raw.pop(name) for name in question.files if name in raw}
    views = {name: raw.pop(name) for name in question.views if name in raw}
    views |= {question.files[name].view: place for name, place in places.items() if question.files[name].view}
    words, given = read_values(question, session, raw)
    printed = next((name for name, file in question.files.items() if file.printed and places.get(name)), None)
    if printed is not None and session.as_json and not question.files[printed].over_json:
        raise UsageError(
            f"{question.files[printed].flags[0]} and --json are two forms of one answer; ask for one of them"
        )
    files = {name: place for name, place in places.items() if place and not question.files[name].printed}
    wanted = Wanted("json" if session.as_json else form, views, files, printed)
    read = [one for item in question.parameters if item.how.kind.document for one in values_of(item, given)]
    refused = bool(read) and all(isinstance(one, ReceiptsError) for one in read)  # then there is nothing to ask
    if session.server is not None and not question.local and not refused:
        # Of documents alone that need no store it is answered here all the same.
        stays = (
            question.alone(len(read), session.asks_store)
            and not any(isinstance(one, str) for one in read)
            and not any(given[item.name] for item in question.parameters if item.how.scope or item.how.stored)
        )
        if not stays:
            from receipts.cli.far import ask

            return ask(question, session.server, words, given, wanted)
    answer: Answer = question.function(session, **given)
    return show(question, session, answer, wanted)


def read_values(
    question: Question[..., Any], session: Session, raw: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The words that were typed of every parameter, and what they are read as: of a file the receipt in it."""
    if question.spelled is not None:
        question.spelled.read(raw)
    needed = question.spelled is not None
    words = {item.name: _words(item, session, raw, needed=needed) for item in question.parameters}
    given = dict(words)
    for item in question.parameters:
        if not item.how.kind.document and words[item.name] is not None:
            given[item.name] = read_value(item, item.how.flags[0] if item.how.flags else item.name, words[item.name])
    documents = [item for item in question.parameters if item.how.kind.document]
    read = iter(_documents(session, [(item, one) for item in documents for one in values_of(item, given)]))
    for item in documents:
        known = [next(read) for _ in values_of(item, given)]
        if item.how.many:
            given[item.name] = item.how.kind.gather(known)
        elif known:
            given[item.name] = known[0]
    return words, given


def _words(item: Parameter, session: Session, raw: dict[str, Any], *, needed: bool) -> Any:
    """What was typed of a parameter; of one that takes many the words, in their order."""
    value, how = raw.get(item.name), item.how
    if not how.many:
        return item.default if value is None and not item.required else value
    words = [value] if isinstance(value, str) else list(value or ())
    if how.kind.split:
        words = [part for word in words for part in several(word, session)]
    words += raw.get(f"{ALSO}{item.name}", ())
    if item.required and not words and needed and not how.flags:
        raise click.MissingParameter(param_hint=f"'{item.name.upper()}'", param_type="argument")
    return words


def values_of(item: Parameter, given: Mapping[str, Any]) -> Sequence[Any]:
    """The values of a parameter, of which it may take one or many."""
    value = given[item.name]
    return value if item.how.many else [] if value is None else [value]


def read_files(words: Sequence[str], kind: str = "receipt") -> list[Any]:
    """Words that name files as the receipts in them, the others as they are. Raises with what is wrong with all."""
    side = Parameter(kind, Param(Kind(document=kind)), None, required=True)
    return _documents(None, [(side, word) for word in words])


def _documents(session: Session | None, given: Sequence[tuple[Parameter, str]]) -> list[Any]:
    """Words that name files as the documents in them. Raises with what is wrong with all, unknown words too."""
    read = partial(_document, session=session)
    try:
        return every(read, given)
    except (InputError, NotFound, UsageError, Several):
        if session is None or session.server is not None or all(_is_read(*one) for one in given):
            raise
        with suppress(StoreError):
            every(lambda one: read(one) if _is_read(*one) else session.groups([one[1]]), given)
        raise


def _is_read(item: Parameter, word: str) -> bool:
    return item.how.kind.document in ("lines", "claims") or is_file(word)


def _document(one: tuple[Parameter, str], session: Session | None) -> Any:
    """The receipt, plan, claims or lines in a file or on standard input; a word that names none stays.

    Of a receipt the trace is read that it names, as `receipts submit` does.
    """
    from receipts.base.files import read_bounded, read_small
    from receipts.questions.plan import parse_plan as read_plan
    from receipts.receipt import Document, parse, read
    from receipts.receipt.load import named_traces

    item, word = one
    if not _is_read(item, word):
        return word
    if item.how.kind.document == "lines":
        try:
            lines = read_bounded(sys.stdin.buffer, MAX_LINES) if word == "-" else read_small(Path(word), MAX_LINES)
        except OSError as error:
            raise UsageError(f"{word} cannot be read: {error.strerror}") from None
        return Document(lines, "standard input" if word == "-" else word)
    if item.how.kind.document == "claims":
        from receipts.judging.claim import read_claims_file

        return read_claims_file(word)
    try:
        document = from_stdin() if word == "-" else read(word)
        if item.how.kind.document == "plan":
            return read_plan(document)
        if session is not None and named_traces(document.raw):
            from receipts.workflows.traces import read_traces

            document, notes, _ = read_traces(document, session.rulebook.lanes, None, local=True)
            for note in notes:
                output.note(note)
        return parse(document)
    except (InputError, NotFound) as error:
        if not item.how.kind.lenient:
            raise
        return error


def show(question: Question[..., Any], session: Session, answer: Answer, wanted: Wanted) -> int:
    """Write the files that were asked for, then print the answer; its exit code."""
    from receipts.api.answer import Answers

    for name, place in wanted.files.items():
        write(question, name, place, partial(answer.file, name))
    session.progress.clear()
    views = dict(wanted.views)
    opened = bool(views.pop("verbose", False))
    if wanted.printed is not None:
        try:
            write_raw(answer.file(wanted.printed))
        except NothingToWrite as error:
            output.note(str(error))
            return 3
    elif wanted.form == "text":
        for item in answer.each() if isinstance(answer, Answers) else [answer]:
            session.progress.clear()
            sys.stdout.write(item.text(output.terminal(), opened=opened, **views))
    else:
        sys.stdout.write(answer.form(wanted.form, views))
    for text in (*answer.always, *(answer.notes if wanted.form == "text" and wanted.printed is None else ())):
        output.note(text)
    return answer.exit_code


def write_raw(content: Any) -> None:
    """What takes the place of the text: bytes as they came, and on a terminal made harmless for it."""
    from receipts.publish.terminal import clean

    if isinstance(content, str):
        sys.stdout.write(content)
    elif sys.stdout.isatty():
        output.line("\n".join(clean(part) for part in content.decode().splitlines()))
    else:
        sys.stdout.buffer.write(content)


def write(question: Question[..., Any], name: str, place: str, read: Callable[[], Any]) -> None:
    """Write one file, or the files of a folder, of which none may be there; say what was written, or why not."""
    from receipts.base import files

    file, why = question.files[name], question.files[name].without
    try:
        content = read()
    except NothingToWrite as error:
        content, why = None, str(error)
    if content is None:
        if why:
            output.note(f"{place} is not written: {why}")
    elif file.folder:
        paths = {Path(place) / part: text for part, text in content.items()}
        if not file.keep:
            files.refuse_existing(*paths)
        files.write_folder(Path(place), {path.name: text for path, text in paths.items() if not path.exists()})
        for path in paths if file.then else ():
            output.note(file.then.format(path))
    else:
        files.write(place, content, over=not file.new)
        if not file.silent:
            output.note(f"wrote {place}{file.then.format(place)}")
