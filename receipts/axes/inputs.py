"""What two launches were started with, input by input, and which of it is the change of a leaf that differs too.

An axis is what an experimenter changes, and what he changes is an input: an option, a variable that the program reads,
a setting of its configuration file. An input that differs counts, unless it is bookkeeping, or the same change as a
leaf that differs: one input for one leaf's axis, so that the changes are never fewer than the inputs that changed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.catalogue import LENGTH, TOPOLOGY, Bookkeeping, leaves_by_name
from receipts.axes.effective import OFF, Change, Member, canonical, in_words, one_form, stated_words
from receipts.emit.launch_line import launcher_role, parse
from receipts.emit.launch_values import THEN, is_number, key_of, normal, text_of
from receipts.emit.secrets import BLANK, HIDDEN, KEYED
from receipts.receipt import Parsed
from receipts.receipt.parse import is_seen

if TYPE_CHECKING:
    from receipts.receipt.document import InputFile, Inputs

PREFIX: Final = "inputs."
WHOLE: Final = "whole"
VARIABLE: Final = "env."
# Parts of a receipt that no input brings about: what a launch runs on, and the code that reads its inputs.
MACHINE: Final = frozenset({"code", "hardware", "platform", "wheels", "flags", "patches"})
_WORDS: Final = re.compile(r"[a-z]+|\d+")
_IDLE_WORDS: Final = frozenset({"use", "enable", "enabled", "with", "no", "disable", "is"})
_NOTHING: Final = frozenset({"none", "false", OFF})


class Input(NamedTuple):
    """An input as it was typed, and the form in which two are compared.

    ``opaque``: it names a file that cannot be read. ``output``: it names a place that the run itself made.
    """

    text: str
    form: str
    opaque: bool = False
    output: bool = False


@dataclass(frozen=True, slots=True)
class InputChange:
    """An input that differs, as it was typed; None if a side does not give it and no default is known.

    ``role`` is its bookkeeping role, empty if it counts. ``opaque``: a file differs, in an unknown number of settings.
    """

    key: str
    a: str | None
    b: str | None
    role: str = ""
    opaque: bool = False

    @property
    def axis(self) -> str:
        """The name under which it counts."""
        return PREFIX + self.key


@dataclass(frozen=True)
class LaunchInputs:
    """What one launch was started with. ``options`` are those of argv over those of the configuration files."""

    program: str | None = None
    options: Mapping[str, Input] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)
    resolved: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, Input] | None = None
    launcher: Mapping[str, str] = field(default_factory=dict)
    whole: bool = False
    unread: str = ""  # what it may have read and could not be named
    recorded: bool = False

    def value(self, key: str) -> Input | None:
        """An option's value: as it was given, else as the program resolved it, else its declared default."""
        given = self.options.get(key)
        default = self.defaults.get(key)
        if given is not None:
            # A repeated option of which the source declares one plain default takes the last of its values.
            if THEN in given.form and default is not None and normal(default)[:1] not in ("", "[", "n"):
                return _plain(given.text.rpartition(THEN)[2])
            return given
        text = self.resolved.get(key, default)
        return None if text is None else _plain(text)

    def variable(self, name: str) -> Input | None:
        """A variable's value: as it was set, else what the source reads where it is not."""
        default = self.defaults.get(f"{VARIABLE}{name}")
        given = (self.environment or {}).get(name)
        return _plain(default) if given is None and default is not None else given


@dataclass(frozen=True)
class InputsApart:
    """How the inputs of two launches differ. ``held``: both were captured whole, of one program.

    ``counted`` are the inputs that count, ``length`` those that count for some metrics, ``left_out`` is bookkeeping.
    ``resolved`` differ as the program resolved them, though nothing need have changed that was given. ``unread`` is
    what the program may have read besides.
    """

    counted: tuple[InputChange, ...] = ()
    length: tuple[InputChange, ...] = ()
    left_out: tuple[InputChange, ...] = ()
    resolved: tuple[InputChange, ...] = ()
    held: bool = False
    recorded: bool = False
    unread: str = ""

    @property
    def many(self) -> bool:
        """Whether more than one input changed, or may have."""
        return len(self.counted) > 1 or any(item.opaque for item in self.counted)


NOTHING: Final = InputsApart()


def inputs_of(parsed: Parsed) -> LaunchInputs | None:
    """What a receipt says that its launch was started with; None if it says nothing of it."""
    kept = vars(parsed)
    if "launch_inputs" not in kept:  # a receipt is compared with many others
        section = parsed.receipt.inputs
        kept["launch_inputs"] = _recorded(section) if section is not None else _typed(parsed)
    known: LaunchInputs | None = kept["launch_inputs"]
    return known


def inputs_apart(a: Parsed, b: Parsed, books: Bookkeeping) -> InputsApart:
    """How the inputs of two launches differ. Where one has none but its command, both are read by their commands.

    Of two programs nothing is compared, nor where a receipt has neither inputs nor a command.
    """
    if a.receipt.inputs is None and b.receipt.inputs is None and a.receipt.run.command == b.receipt.run.command:
        return NOTHING  # nothing is known but one command
    left, right = inputs_of(a), inputs_of(b)
    if left is not None and right is not None and left.recorded != right.recorded:
        left, right = _typed(a), _typed(b)
    if left is None or right is None or not _one_program(left, right, a, b):
        return NOTHING
    options = list(_options(left, right, books))
    launchers = [item for item in _launchers(left, right, a, b) if not any(_hands_on(item, one) for one in options)]
    # What is read under unknown names is as good as equal on one host, with one launcher and one set of flags.
    host, unread = a.receipt.run.host, left.unread or right.unread
    one_place = host is not None and host == b.receipt.run.host and a.receipt.flags == b.receipt.flags
    read = not unread or (one_place and all(item.role == "rendezvous" for item in launchers))
    changes = [*options, *_variables(left, right, books, a, b), *launchers]
    follows = books.follows_length(frozenset({*left.options, *right.options, *left.defaults, *right.defaults}))
    length = tuple(item for item in changes if item.role == LENGTH and not follows)
    counted = [item for item in changes if not item.role or (item.role == LENGTH and follows)]
    return InputsApart(
        counted=tuple(replace(item, role="") for item in counted),
        length=length,
        left_out=tuple(item for item in changes if item.role not in ("", LENGTH)),
        resolved=tuple(
            InputChange(key, one, other)
            for key in sorted(left.resolved.keys() & right.resolved.keys())
            if (one := left.resolved[key]) != (other := right.resolved[key])
            and normal(one) != normal(other)
            and not books.role(key, one, other)
        ),
        held=left.recorded and left.whole and right.whole and left.program is not None and read,
        recorded=left.recorded,
        unread=unread,
    )


def _one_program(left: LaunchInputs, right: LaunchInputs, a: Parsed, b: Parsed) -> bool:
    if left.program == right.program:
        return True
    if left.program is None or right.program is None:
        return False
    if not left.recorded:  # as they were typed: from here, from there, as a file or a module
        typed = (name.removeprefix("-m ").removesuffix(".py") for name in (left.program, right.program))
        return len({name.replace(".", "/").rpartition("/")[2] for name in typed}) == 1
    digests = [item.stated.get("code.imported_digest") for item in (a, b)]
    return digests[0] is not None and digests[0] == digests[1]


def _recorded(section: Inputs) -> LaunchInputs:
    options, files = dict(section.options or {}), list(section.files or ())
    variables = None if section.environment is None else dict(section.environment)
    named: dict[str, list[InputFile]] = {}
    for item in files:
        named.setdefault(item.option or f"files.{item.name}", []).append(item)
    settings = {key_of(key): _plain(text_of(value)) for item in files for key, value in (item.flat or {}).items()}
    given = {key: _plain(text_of(value)) for key, value in options.items() if key not in named}
    environment = {key: _plain(text_of(value)) for key, value in (variables or {}).items()}
    for key, held in named.items():
        name = key.removeprefix("environment.")  # before the variable that names a file
        texts, values = (options, given) if name == key else (variables or {}, environment)
        values.pop(name, None)
        if not all(item.flat is not None for item in held):  # else its settings stand for it
            text = text_of(texts[name]) if name in texts else ""
            # Its value is what the files hold, wherever they lie.
            digests = [f"sha256 {item.sha256}" if item.sha256 else normal(item.name) for item in held]
            values[name] = Input(
                text or THEN.join(item.name for item in held),
                THEN.join(digests),
                opaque=any(item.flat is None and item.kind in ("config", None) for item in held),
                output=all(item.kind == "output" for item in held),
            )
    capture, _, unread = (section.capture or "").partition(";")
    return LaunchInputs(
        program=section.program,
        options={**settings, **given},
        defaults={key: text_of(value) for key, value in (section.defaults or {}).items()},
        resolved={key_of(key): text_of(value) for key, value in (section.resolved or {}).items()},
        environment=environment if variables is not None or capture == WHOLE else None,
        launcher={key: text_of(value) for key, value in (section.launcher or {}).items()},
        whole=capture == WHOLE,
        recorded=True,
        unread=unread.strip(),
    )


def _typed(parsed: Parsed) -> LaunchInputs | None:
    """The inputs that a command line alone shows, which never is all of them."""
    command = parsed.receipt.run.command
    line = parse(command) if command else None
    if line is None or line.program is None:
        return None
    # A file that the receipt lists as its evidence is one that the run wrote.
    written = {PurePath(item.uri).name for item in parsed.receipt.evidence or () if item.uri}
    options = {
        key: _plain(text)._replace(output="." in text and PurePath(text).name in written)
        for key, text in line.options.items()
    }
    variables = {key: _plain(text) for key, text in line.environment.items()}
    return LaunchInputs(line.program, options, environment=variables, launcher=line.launcher)


def _plain(text: str) -> Input:
    return Input(text, normal(text))


def _options(left: LaunchInputs, right: LaunchInputs, books: Bookkeeping) -> Iterator[InputChange]:
    for key in sorted({*left.options, *right.options}):
        one, other = left.value(key), right.value(key)
        if one is not None and other is not None and one.form == other.form:
            continue
        change = _change(key, one, other)
        if change is not None:
            places = one is not None and other is not None and one.output and other.output
            yield replace(change, role="output" if places else books.role(key, change.a, change.b))


def _change(key: str, one: Input | None, other: Input | None) -> InputChange | None:
    """An input that differs; None for a secret, and for two words keyed by two stores, which cannot be compared."""
    a, b = (None if item is None else item.text for item in (one, other))
    opaque = any(item is not None and item.opaque for item in (one, other))
    keyed = a is not None and b is not None and a.startswith(BLANK) and b.startswith(BLANK)
    unknown = HIDDEN in (a, b) or (keyed and str(a)[:KEYED] != str(b)[:KEYED])
    return None if unknown else InputChange(key, a, b, opaque=opaque)


def _variables(
    left: LaunchInputs, right: LaunchInputs, books: Bookkeeping, a: Parsed, b: Parsed
) -> Iterator[InputChange]:
    if left.environment is None or right.environment is None:
        return
    # A variable that a receipt states as a flag is compared there, each flag of it by itself.
    flags = {key.partition(".")[0] for parsed in (a, b) for key in parsed.receipt.flags or ()}
    for name in sorted({*left.environment, *right.environment} - flags):
        one, other = left.variable(name), right.variable(name)
        change = _change(f"{VARIABLE}{name}", one, other)
        if change is not None and (one and one.form) != (other and other.form):
            role = books.variable(name, change.a, change.b)
            yield replace(change, role="" if role == TOPOLOGY and not _counted(a, b) else role)


def _launchers(left: LaunchInputs, right: LaunchInputs, a: Parsed, b: Parsed) -> Iterator[InputChange]:
    for key in sorted({*left.launcher, *right.launcher}):
        one, other = left.launcher.get(key), right.launcher.get(key)
        if "." in key and (one and normal(one)) != (other and normal(other)):
            role = launcher_role(key)
            counts = role == "setting" or (role == TOPOLOGY and not _counted(a, b))
            yield InputChange(f"launcher.{key}", one, other, "" if counts else role)


def _hands_on(word: InputChange, option: InputChange) -> bool:
    """Whether what stands before a program is the option that it hands on: by its name, or as a word without one."""
    if not handed_on(word.key, option.key) or None in (word.a, word.b, option.a, option.b):
        return False
    return (normal(str(word.a)), normal(str(word.b))) == (normal(str(option.a)), normal(str(option.b)))


def handed_on(word: str, option: str) -> bool:
    """Whether a wrapper's word may be this option of the program that it starts."""
    last = word.rpartition(".")[2]
    return launcher_role(word.removeprefix("launcher.")) == "setting" and (last[:1] == "#" or last == option)


def _counted(a: Parsed, b: Parsed) -> bool:
    """Whether both receipts state how many chips they ran on: then a launcher's own words say nothing more."""
    return all(parsed.stated.get("hardware.chips") is not None for parsed in (a, b))


def join_inputs(
    apart: InputsApart, changed: Sequence[Change], a: Parsed, b: Parsed, *, other_code: bool
) -> tuple[tuple[InputChange, ...], tuple[str, ...]]:
    """The inputs that count beside the leaves' axes, and the axes that changed although no input did.

    A changed input may be the same change as a changed axis, one for one.
    """
    counted = apart.counted or (() if other_code else apart.resolved)
    free = [change for change in changed if change.axis != "code"]
    alone = list(counted)
    # Two numbers that happen to move alike are one change where nothing else can have moved the leaf.
    for least in (3, 2, 1) if apart.held else (3, 2):
        for item in tuple(alone):
            match = next((change for change in free if _likeness(item, change) >= least), None)
            if match is not None and not item.opaque:
                free.remove(match)
                alone.remove(item)
    if apart.held and len(counted) == 1 and alone and not apart.many:
        alone = [] if any(_follows(change, a, b) for change in free) else alone
    unmoved = apart.held and not counted and not apart.length and not other_code
    machine = any(_of_machine(change) for change in changed)
    strange = [change.axis for change in changed if not _of_machine(change) and not _witnessed(change, a, b)]
    return tuple(alone), tuple(strange) if unmoved and not machine else ()


def _of_machine(change: Change) -> bool:
    return any(member.path.partition(".")[0] in MACHINE for member in change.members)


def _witnessed(change: Change, a: Parsed, b: Parsed) -> bool:
    """Whether evidence shows the values of a path that differ: what the machine made of one intention."""
    seen = (member.path.replace("path.", "path.witnessed.", 1) for member in change.members)
    return all(
        path != member.path and (path in a.stated or path in b.stated)
        for path, member in zip(seen, change.members, strict=True)
    )


def _follows(change: Change, a: Parsed, b: Parsed) -> bool:
    """Whether an axis may follow from the one input that changed: a probe saw it, and no option of its own is equal."""
    if _of_machine(change):
        return False
    return all(is_seen(item, member.path) for member in change.members for item in (a, b)) and not any(
        _own_option_equal(member.path, a, b) for member in change.members
    )


def _own_option_equal(path: str, a: Parsed, b: Parsed) -> bool:
    left, right = inputs_of(a), inputs_of(b)
    if left is None or right is None:
        return False
    for key in {*left.options, *right.options, *left.defaults}:
        if path in named_leaves(key):
            one, other = left.value(key), right.value(key)
            if one is not None and other is not None and one.form == other.form:
                return True
    return False


def named_leaves(key: str) -> Collection[str]:
    """The leaves that vocabularies, or the leaf's own name, say an option states."""
    names = leaves_by_name()
    known = names.get(key) or names.get(key.rpartition(".")[2]) or frozenset()
    return {path.replace("path.intended.", "path.", 1) for path in known}


def _likeness(item: InputChange, change: Change) -> int:
    """How surely an input and an axis are one change: 3 by a vocabulary, 2 by values and name, 1 by values; else 0."""
    if any(member.path in named_leaves(item.key) for member in change.members):
        return 3
    if _of_machine(change) and not item.key.startswith(("env.", "launcher.")):
        return 0
    key = _words_of(item.key.rpartition(".")[2])
    for member in change.members:
        named = bool(key & _words_of(member.path.rpartition(".")[2]))
        if _agree(item, member, named=named):
            number = all(text is None or is_number(text) for text in (item.a, item.b))
            return 2 if named or not number else 1
    return 0


def _agree(item: InputChange, member: Member, *, named: bool) -> bool:
    """Whether an input and a leaf have the same values on both sides, or say the same of the side that gives it."""
    mine, theirs = (item.a, item.b), (member.a, member.b)
    same = [None if text is None else _same(text, leaf, member.path) for text, leaf in zip(mine, theirs, strict=True)]
    if False not in same and True in same:
        return None not in same or named or not any(is_number(text) for text in mine if text is not None)
    # A switch is named for what it turns on: `--flash`, where the leaf says sdpa_flash on that side alone.
    on = [text is not None and normal(text) == "true" for text in mine]
    if on[0] == on[1] or any(text is not None and normal(text) not in ("true", "false") for text in mine):
        return False
    words = _words_of(item.key) - _IDLE_WORDS
    there, elsewhere = theirs if on[0] else theirs[::-1]
    return bool((words & _words_of(there)) - _words_of(elsewhere))


def _same(text: str, leaf: Any, path: str) -> bool:
    """Whether a typed value and a leaf's say the same: equal in one form, or a word that the leaf's name has."""
    if isinstance(leaf, tuple | list):
        return normal(text) == normal(text_of(leaf))
    form, other = normal(text), normal(text_of(leaf))
    if form == other or (form in _NOTHING and other in _NOTHING):
        return True
    if one_form(path, canonical(text)) == leaf:
        return True
    words = _words_of(form)
    return bool(words) and not is_number(form) and len(form) > 1 and words <= _words_of(leaf)


def _words_of(value: Any) -> set[str]:
    return set(_WORDS.findall(str(value).lower()))


def leaf(path: str) -> str:
    """The last part of a path, which names a column or a setting where the whole has no room; of an input all of it."""
    return path.removeprefix(PREFIX) if path.startswith(PREFIX) else path.rpartition(".")[2]


def ends_of(member: Member) -> tuple[str, str]:
    """Both values of a member for people: an option that was not given differs from a leaf that was not stated."""
    shown = in_words if member.path.startswith(PREFIX) else stated_words
    return shown(member.a), shown(member.b)
