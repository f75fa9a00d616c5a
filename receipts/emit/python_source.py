"""What Python source states and reads, without running it: settings, declarations of options, variables, files by name.

By the declarations the words of a command line are read as the program itself reads them: `-l 1e-2`, `--learn 1e-2`
and `--lr=1e-2` are one option where the source declares them so, and the word behind a switch, or behind an option's
one value, is the program's own argument and no second value.

What it reads beside its command line a search of the text finds in milliseconds, so that the start of a run can pay
for it. A name is taken too often rather than too seldom: a variable that nobody sets says nothing.
"""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from receipts.emit.launch_values import key_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any

_SWITCHES = {"store_true": "false", "store_false": "true"}
_SUMS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Pow: lambda a, b: a**b if abs(a) <= 1 << 20 and abs(b) <= 64 else _not_stated(),
}


@lru_cache(maxsize=1)  # what reads one source for several things parses it once
def syntax_tree(text: str) -> ast.Module | None:
    """A source as its tree; None where it is no Python that can be read."""
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def assigned_values(text: str, *, whole: bool = True) -> dict[str, Any] | None:
    """What top-level assignments of a source state. None where, to be read ``whole``, it holds anything else."""
    known: dict[str, Any] = {}
    module = syntax_tree(text)
    if module is None:
        return None
    for node in module.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        assigned = isinstance(node, ast.Assign | ast.AnnAssign) and all(isinstance(item, ast.Name) for item in targets)
        try:
            stated = _value(value, known) if assigned and value is not None else _not_stated()
        except (ValueError, TypeError, ArithmeticError):
            if whole:
                return None
            for target in targets if assigned else ():
                known.pop(getattr(target, "id", ""), None)
            continue
        known.update((target.id, stated) for target in targets if isinstance(target, ast.Name))
    return known


def option_defaults(text: str, known: dict[str, str | None]) -> None:
    """Add the defaults that a source's declarations of options state, by key; None for those that are torn.

    An option is torn that is declared twice, and not alike, or whose default is computed.
    """
    module = syntax_tree(text)
    if module is None:
        return
    constants = assigned_values(text, whole=False) or {}
    for node in ast.walk(module):
        if isinstance(node, ast.Call):
            for name, value in _stated_defaults(node, constants):
                known[name] = value if known.setdefault(name, value) == value else None


def dataclass_defaults(text: str, known: dict[str, str | None]) -> None:
    """Add the literal defaults of the fields of a source's dataclasses, as parsers of dataclasses make options of them.

    Of a field that two classes have, and not alike, or whose default is computed, it is None.
    """
    module = syntax_tree(text)
    if module is None:
        return
    constants = assigned_values(text, whole=False) or {}
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    value = None if item.value is None else _value_text(_field_default(item.value), constants)
                    name = item.target.id
                    known[name] = value if known.setdefault(name, value) == value else None


def _field_default(node: ast.expr) -> ast.expr:
    """What a field is by default: its value, or the `default` of the call that says more of it."""
    named = {item.arg: item.value for item in getattr(node, "keywords", ())}
    return named["default"] if isinstance(node, ast.Call) and "default" in named else node


def _stated_defaults(call: ast.Call, constants: Mapping[str, Any]) -> Iterable[tuple[str, str | None]]:
    function = getattr(call.func, "attr", getattr(call.func, "id", ""))
    words = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    named = {item.arg: item.value for item in call.keywords if item.arg}
    if function == "set_defaults":
        return [(name, _value_text(value, constants)) for name, value in named.items()]
    if function.startswith("DEFINE_") and words and len(call.args) > 1:
        return [(words[0], _value_text(call.args[1], constants))]
    flags = [word for word in words if word.startswith("-")]
    if function not in ("add_argument", "option") or not flags:
        return []
    action = named.get("action")
    switch = _SWITCHES.get(str(getattr(action, "value", "")))
    if switch is not None or (isinstance(is_flag := named.get("is_flag"), ast.Constant) and is_flag.value is True):
        # What is not typed is off, whatever the program makes of it; `--no-x` is x: false.
        negated = [word.startswith("--no-") for word in flags]
        names = [key_of(word[5:] if no else word) for word, no in zip(flags, negated, strict=True)]
        return [(name, "true" if no else "false") for name, no in zip(names, negated, strict=True)]
    if "default" not in named:
        return []
    value = _value_text(named["default"], constants)
    dest = getattr(named.get("dest"), "value", None)
    names = [key_of(word.partition("/")[0]) for word in flags] + ([dest] if isinstance(dest, str) else [])
    return [(name, value) for name in dict.fromkeys(names)]


def _value_text(node: ast.expr, constants: Mapping[str, Any]) -> str | None:
    try:
        return text_of(_value(node, constants))
    except (ValueError, TypeError, ArithmeticError):
        return None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A literal, arithmetic of literals, or a name that stands for one. Raises ValueError for anything else."""
    if isinstance(node, ast.Name):
        return known[node.id] if node.id in known else _not_stated()
    if isinstance(node, ast.BinOp):
        sides = _value(node.left, known), _value(node.right, known)
        if not all(isinstance(side, int | float) for side in sides) or type(node.op) not in _SUMS:
            _not_stated()
        return _SUMS[type(node.op)](*sides)
    if isinstance(node, ast.List | ast.Tuple):
        return [_value(item, known) for item in node.elts]
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {_value(key, known) if key else _not_stated(): _value(item, known) for key, item in pairs}
    return ast.literal_eval(node)


def _not_stated() -> Any:
    raise ValueError("it is not stated outright")


_NO_WORD = ("store_true", "store_false", "store_const", "append_const", "count", "version", "BooleanOptionalAction")


def declared(text: str) -> dict[str, tuple[str, int | None]]:
    """The options that a source declares by `add_argument` or click's `option`, but those that it declares two ways.

    By each flag (`-l`): the one that stands for it (`--lr`), and how many words follow it; None: nobody knows.
    """
    if "add_argument(" not in text and ".option(" not in text:
        return {}
    module = syntax_tree(text)
    if module is None:
        return {}
    known: dict[str, tuple[str, int | None]] = {}
    torn: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("add_argument", "option"):
            for flag, meaning in _flags_of(node):
                if known.setdefault(flag, meaning) != meaning:
                    torn.add(flag)
    return {flag: meaning for flag, meaning in known.items() if flag not in torn}


def _flags_of(call: ast.Call) -> Iterator[tuple[str, tuple[str, int | None]]]:
    words = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    flags = [part for word in words if word.startswith("-") for part in word.split("/")]
    named = {item.arg: item.value for item in call.keywords}
    several = any("/" in word for word in words)  # click's `--flash/--no-flash`
    count: int | None = 1
    action = named.get("action")
    word = action.value if isinstance(action, ast.Constant) else getattr(action, "attr", getattr(action, "id", ""))
    is_flag = any(getattr(named.get(option), "value", None) is True for option in ("is_flag", "count"))
    if several or is_flag or word in _NO_WORD:
        count = 0
    elif None in named or {"nargs", "is_flag", "multiple", "count", "action"} & named.keys():
        count = None
    name = next((flag for flag in flags if flag.startswith("--") and not flag.startswith("--no-")), "")
    off = {word.partition("/")[2] for word in words if "/" in word}
    for flag in flags:
        own = flag.startswith("--no-") or not name
        yield flag, (f"--no-{name[2:]}" if flag in off and name else flag if own else name, count)


def as_declared(words: Sequence[str], known: Mapping[str, tuple[str, int | None]]) -> list[str]:
    """The words, each declared option under the name that stands for it and with the words that are its own."""
    if not known:
        return list(words)
    read: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if word == "--":
            return [*read, *words[place - 1 :]]
        flag, sign, value = word.partition("=") if word.startswith("--") else (word, "", "")
        if flag.startswith("-") and not flag.startswith("--") and flag not in known and flag[:2] in known:
            flag, sign, value = _short_option(word, known)
        name, count = known.get(_whole_flag(flag, known), (flag, None))
        if sign or count is None or not flag.startswith("-"):
            read.append(f"{name}{sign}{value}")
        elif count == 0:
            read.append(name if name.startswith("--no-") else f"{name}=true")
        elif place < len(words) and words[place] != "--":
            read.append(f"{name}={words[place]}")
            place += 1
        else:
            read.append(name)
    return read


def _short_option(word: str, known: Mapping[str, tuple[str, int | None]]) -> tuple[str, str, str]:
    """A short option with its value in one word, `-l0.01`, or given several times, `-vv`."""
    flag, rest = word[:2], word[2:].removeprefix("=")
    if known[flag][1] != 0:
        return flag, "=", rest
    return (flag, "=", str(len(rest) + 1)) if not rest.strip(flag[1]) else (word, "", "")


def _whole_flag(flag: str, known: Mapping[str, tuple[str, int | None]]) -> str:
    """The option that a beginning of its name stands for; the word itself where it is none, or of several."""
    if flag in known or not flag.startswith("--") or len(flag) < 3:
        return flag
    names = {known[item][0]: item for item in known if item.startswith(flag)}
    return next(iter(names.values())) if len(names) == 1 else flag


_MAX_SOURCE = 1 << 20
# What makes options of the fields of dataclasses.
_OF_FIELDS = (b"HfArgumentParser", b"tyro.", b"simple_parsing", b"pyrallis", b"draccus")
_ARGUMENTS = (b"add_argument(", b"DEFINE_", b".option(")
# Settings, text, and source that is compiled while the job runs. Weights are left out: a run that writes them for the
# next one seldom reads them itself.
_NAMED = rb"\.(?:ya?ml|json|toml|gin|py|cfg|ini|txt|csv|cuh?|cpp|h)"
# One of these is in a text that names any; a search for the pattern itself would take most of the start.
_SIGNS: tuple[bytes, ...] = (
    b".json",
    b".yaml",
    b".yml",
    b".toml",
    b".gin",
    b".cfg",
    b".ini",
    b".txt",
    b".csv",
    b".cu",
    b".cpp",
)
_SIGNS += (b'.py"', b".py'", b'.h"', b".h'")


class _Patterns:
    """Compiled when the first source comes."""

    def __init__(self) -> None:
        reads = rb"\b(?:environb?(?:\.(?:get|pop|setdefault))?|getenvb?)\s*[\[(]\s*"
        settings = rb"\b(?:envvar|auto_envvar_prefix|env_prefix)\s*=\s*"
        quoted = rb"(?:[rb]?[\"'](?P<name>[A-Za-z_]\w*)[\"'](?P<on>\s*(?:\+|%|\.format))?"
        started = rb"|f?[\"'](?P<start>\w*)[{%]|(?P<word>[A-Za-z_][\w.]*)\s*[\]),]|(?P<else>\S))"
        self.read = re.compile(rb"(?:(?P<set>" + settings + rb")|" + reads + rb")" + quoted + started)
        literal = rb"(?:[\"']([^\"'\\\n]*)[\"']|([-+]?[\d.][\w.+-]*|True|False))"
        self.default = re.compile(rb"(?:environ\.get|getenv)\(\s*[\"']\w+[\"']\s*,\s*" + literal + rb"\s*\)")
        self.word = re.compile(rb"[A-Za-z_]\w{2,}")
        self.piece = re.compile(rb"(?<=[\"'{}])[A-Z0-9_]{3,}(?=[\"'{}])")
        self.inside = re.compile(rb"[\"'](\w+)[\"']\s+(?:not\s+)?in\s+(?:os\.)?environ\b")
        self.written = re.compile(rb"environ\[[\"'](\w+)[\"']\]\s*=(?!=)|environ\.setdefault\(\s*[\"'](\w+)[\"']")
        loop = rb"\bfor\b[^\n]*\bin\s+(?:os\.)?environ(?:\.(?:items|keys)\(\))?\s*(?:[:\])}]|if\b)"
        self.whole = re.compile(loop + rb"|=\s*(?:os\.)?(?:environ|getenv)\s*(?:#|$)", re.M)
        self.function = re.compile(rb"^[ \t]*(?:async\s+)?def\s+(\w+)\s*\(([^)]*)", re.M)
        self.file = re.compile(rb"[\"']([^\"'\s]{1,200}" + _NAMED + rb")[\"']")
        reads = rb"(?:open|load|read_|from_|parse|run_path)\w*\s*\("
        self.reads = re.compile(reads + rb"|\bsources\s*=|\.read_")
        self.writes = re.compile(
            rb"[\"'][wax]b?\+?[\"']|\.write|dump\w*\(|\bsave|\bto_\w+\(|\b(?:out|output)\s*=|Recorder\(|exists\("
        )
        self.constant = re.compile(rb"[ \t]*(\w+)\s*(?::[^=\n]+)?=")
        self.asks = re.compile(rb"\bsys\.stdin\b(?!\.(?:isatty|fileno|encoding))|(?<![\w.])input\(")


_patterns = lru_cache(maxsize=1)(_Patterns)


class SourceReads:
    """What was found so far. ``computed`` are files that read a variable whose name they do not say.

    ``assigned`` are variables that the source sets itself; ``options`` sources that declare options, by module, and
    ``fields`` those of dataclasses, of which a parser makes options where ``of_fields`` says so; ``executes`` says that
    the main script lets another file assign its globals, ``asks`` that it reads standard input. ``files`` are names of
    files, each with the folder of the source that names it. ``defaults`` are what variables are read as where nobody
    sets them; None for one that is read in two ways, or without a default that is said outright.
    """

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.prefixes: set[str] = set()
        self.assigned: set[str] = set()
        self.computed: set[str] = set()
        self.files: set[tuple[str, str]] = set()
        self.options: dict[str, bytes] = {}
        self.fields: dict[str, bytes] = {}
        self.of_fields = False
        self.defaults: dict[str, str | None] = {}
        self.executes = False
        self.asks = False
        self._helpers: dict[str, str] = {}
        self._texts: dict[str, bytes] = {}
        self._words: set[str] = set()
        self._pieces: set[str] = set()

    def take(self, name: str, raw: bytes, folder: str = "") -> None:
        """Read one file of the project, which lies in a folder."""
        if len(raw) > _MAX_SOURCE:
            return
        self._texts[name] = raw
        self.executes |= name == "__main__" and b"exec(open(" in raw
        if any(word in raw for word in _ARGUMENTS):
            self.options[name] = raw
        self.of_fields |= any(word in raw for word in _OF_FIELDS)
        if b"dataclass" in raw:
            self.fields[name] = raw
            self.of_fields |= b"fields(" in raw and b"add_argument(" in raw
        if b"environ" in raw or b"getenv" in raw or b"env_prefix" in raw or b"envvar" in raw:
            self._variables(name, raw)
        # Files whose names stand where something is read, or are constants that are read from.
        for match in _patterns().file.finditer(raw) if any(sign in raw for sign in _SIGNS) else ():
            patterns = _patterns()
            line = raw[raw.rfind(b"\n", 0, match.start()) + 1 : raw.find(b"\n", match.end())]
            read = bool(patterns.reads.search(line)) and not patterns.writes.search(line)
            if not read and (constant := patterns.constant.match(line)):
                word = re.escape(constant[1])
                used = rb"(?:open|load\w*|read_\w+)\(\s*(?:\w+\()?" + word + rb"\b(?!\s*,\s*[\"'][wax])|\b" + word
                read = re.search(used + rb"\.(?:read_|open\(\s*\))", raw) is not None
            if read:
                self.files.add((match[1].decode("utf-8", "replace"), folder))
        self.asks |= (b"stdin" in raw or b"input(" in raw) and _patterns().asks.search(raw) is not None

    def forget(self) -> None:
        """Let go of the sources, when no more will come."""
        self._texts.clear()

    def finish(self) -> None:
        """Follow functions that are given the name of a variable to where they are called.

        Of a file that computes a name, each word may be it, and each piece of text where it begins or ends.
        """
        for helper, where in self._helpers.items():
            calls = re.compile(rb"\b" + re.escape(helper.encode()) + rb"\(\s*(?:[\"'](\w+)[\"']|(\S))")
            for raw in self._texts.values():
                for match in calls.finditer(raw) if helper.encode() in raw else ():
                    if match[1]:
                        self.names.add(match[1].decode())
                        self.defaults[match[1].decode()] = None
                    elif not raw[: match.start()].rstrip(b" \t").endswith(b"def"):
                        self.computed.add(where)
        for name in self.computed & self._texts.keys():
            self._words.update(word.decode().lower() for word in _patterns().word.findall(self._texts[name]))
            self._pieces.update(piece.decode().strip("_") for piece in _patterns().piece.findall(self._texts[name]))
        self._pieces.discard("")

    def wants(self, name: str) -> bool:
        """Whether the source reads a variable of this name, or may."""
        if name in self.names or any(name.startswith(prefix) for prefix in self.prefixes):
            return True
        parted = any(name.startswith(f"{piece}_") or name.endswith(f"_{piece}") for piece in self._pieces)
        return parted or name.lower() in self._words

    def _variables(self, name: str, raw: bytes) -> None:
        patterns = _patterns()
        for match in patterns.inside.finditer(raw):
            self.names.add(match[1].decode())
            self.defaults[match[1].decode()] = None
        for match in patterns.written.finditer(raw):
            self.assigned.add((match[1] or match[2]).decode())
        if patterns.whole.search(raw):
            self.computed.add(name)
        for match in patterns.read.finditer(raw):
            prefix = match["start"] or (match["name"] if match["on"] or (match["set"] or b"").startswith(b"a") else b"")
            if prefix or (match["set"] or b"").startswith(b"env_"):
                self.prefixes.add((prefix or match["name"] or b"\0").decode())
            elif match["name"]:
                self.names.add(match["name"].decode())
                given = patterns.default.match(raw, match.start())
                default = None if given is None else (given[1] if given[1] is not None else given[2]).decode()
                known = self.defaults.setdefault(match["name"].decode(), default)
                self.defaults[match["name"].decode()] = default if known == default else None
            elif not match["set"]:
                # Read by a word: a constant of the file, or what its function is given; else the name is computed.
                word = match["word"] or b""
                constant = rb"\b" + re.escape(word) + rb"\s*(?::[^=\n]+)?=\s*[\"'](\w+)[\"']"
                constants = re.findall(constant, raw) if word else []
                around = [other for other in patterns.function.finditer(raw) if other.start() < match.start()]
                parameters = around[-1][2].replace(b"self,", b"").strip() if around else b""
                if constants:
                    self.names.update(text.decode() for text in constants)
                elif word and re.match(re.escape(word) + rb"\b", parameters):
                    self._helpers[around[-1][1].decode()] = name
                else:
                    self.computed.add(name)
