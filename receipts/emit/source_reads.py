"""What the project's own source reads beside its command line: variables, files by name, defaults of its options.

A search of the text finds nearly all of it in milliseconds, so that the start of a run can pay for it. A name is taken
too often rather than too seldom: a variable that nobody sets says nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

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


@lru_cache(maxsize=1)
def _patterns() -> _Patterns:
    return _Patterns()


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
        if any(sign in raw for sign in _SIGNS):
            self._files(raw, folder)
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
                self._computed(name, raw, match)

    def _files(self, raw: bytes, folder: str) -> None:
        """Files whose names stand where something is read, or are constants that are read from."""
        patterns = _patterns()
        for match in patterns.file.finditer(raw):
            line = raw[raw.rfind(b"\n", 0, match.start()) + 1 : raw.find(b"\n", match.end())]
            read = bool(patterns.reads.search(line)) and not patterns.writes.search(line)
            if not read and (constant := patterns.constant.match(line)):
                name = re.escape(constant[1])
                used = rb"(?:open|load\w*|read_\w+)\(\s*(?:\w+\()?" + name + rb"\b(?!\s*,\s*[\"'][wax])|\b" + name
                read = re.search(used + rb"\.(?:read_|open\(\s*\))", raw) is not None
            if read:
                self.files.add((match[1].decode("utf-8", "replace"), folder))

    def _computed(self, name: str, raw: bytes, match: re.Match[bytes]) -> None:
        """A read by a word: a constant of the file, or what its function is given; else the name is computed."""
        word = match["word"] or b""
        constants = re.findall(rb"\b" + re.escape(word) + rb"\s*(?::[^=\n]+)?=\s*[\"'](\w+)[\"']", raw) if word else []
        around = [other for other in _patterns().function.finditer(raw) if other.start() < match.start()]
        given = around[-1][2].replace(b"self,", b"").strip() if around else b""
        if constants:
            self.names.update(text.decode() for text in constants)
        elif word and re.match(re.escape(word) + rb"\b", given):
            self._helpers[around[-1][1].decode()] = name
        else:
            self.computed.add(name)
