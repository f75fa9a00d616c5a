"""Text that comes from outside: one harmless line of it, JSON and TOML, regular expressions, and secrets to blank.

Whatever is wrong with a document is one kind of error, and the cost of parsing TOML follows its length.

RE2 matches in time linear in the text, because it does not backtrack: ``re`` takes exponential time for a pattern
such as ``(a+)+$``, and anybody may write a pattern of a map or mapping. RE2 has no lookaround and no backreferences;
a pattern that uses them does not compile.

`receipts.emit.secrets` owns the shapes of secrets and blanks them with the standard library alone, whose search of a
whole document takes 40 ms; RE2 takes 0.05 ms and shows whether there is anything to blank.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Protocol

MAX_SHOWN = 120  # of a label or a value
UNKNOWN = "~"


def plain(text: object, most: int = MAX_SHOWN) -> str:
    """One line of printable text, cut at ``most``: control characters and direction marks are shown escaped."""
    cut = str(text)[: most + 1]
    shown = cut if cut.isprintable() else "".join(char if char.isprintable() else _escaped(char) for char in cut)
    return short(shown, most)


def short(text: str, most: int) -> str:
    """Text cut at ``most``, as it is."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _escaped(char: str) -> str:
    return " " if char in "\n\r\t\u00a0\u2003" else char.encode("unicode_escape").decode()


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is not UTF-8, not JSON, or nests deeper than the parser can follow; the message says which.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None


MAX_PARTS: Final = 8  # of one dotted key: the parser walks through all of them for each
MAX_DEPTH: Final = 64
MAX_WORD: Final = 1000  # a key without quotes, a number, a date
# Strings and comments hide what looks like structure. Each alternative ends where it began or fails at once.
_TOKENS: Final = re.compile(
    r"""(?P<text>\"{3}(?:[^"\\]|\\.|"(?!""))*+"{3,5}|'{3}(?:[^']|'(?!''))*+'{3,5}"""
    r"""|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+')|(?P<unended>["'])|\#[^\n]*+|(?P<opens>[\[{])|(?P<closes>[\]}])"""
    r"""|(?P<dot>[ \t]*+\.[ \t]*+)|(?P<word>[A-Za-z0-9_+:-]++)|[ \t]++|(?P<other>.)""",
    re.DOTALL,
)


def parse_toml(raw: bytes) -> dict[str, Any]:
    """The table of a TOML document.

    Raises:
        ValueError: it is not UTF-8, not TOML, or its keys are too long or nest too deep; the message says which.
    """
    text = raw.decode("utf-8")
    _refuse_costly(text)
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError("it nests too deep") from None
    _refuse_deep(table)
    return table


def _refuse_costly(text: str) -> None:
    """Before it is parsed, which takes the square of a key's parts."""
    dots = depth = 0
    for token in _TOKENS.finditer(text):
        kind = token.lastgroup
        if kind == "dot":
            dots += 1
            if dots >= MAX_PARTS:
                raise ValueError(f"a key has more than {MAX_PARTS} parts")
        elif kind == "word":
            if token.end() - token.start() > MAX_WORD:
                raise ValueError(f"a key or a number is longer than {MAX_WORD:,} characters")
        elif kind == "opens":
            dots, depth = 0, depth + 1
            if depth > MAX_DEPTH:
                raise ValueError("it nests too deep")
        elif kind == "closes":
            dots, depth = 0, depth - 1
        elif kind == "unended":
            return  # a string without an end: the parser says so
        elif kind == "other":
            dots = 0


def _refuse_deep(table: dict[str, Any]) -> None:
    """Tables may nest by their names too; what reads them calls itself for each level."""
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        level = [item for node in level for item in (node.values() if isinstance(node, dict) else node)]
        level = [item for item in level if isinstance(item, dict | list)]
        if not level:
            return
    raise ValueError("it nests too deep")


class LinearMatch(Protocol):
    """What a match offers, as in ``re``."""

    def group(self, *groups: int | str) -> Any:
        """The text of one group, or a tuple of several."""

    def __getitem__(self, group: int | str) -> Any:
        """The text of one group; None if it took no part."""

    def groupdict(self) -> dict[str, str | None]:
        """The text of each named group."""


class LinearPattern(Protocol):
    """A compiled pattern, as in ``re``."""

    @property
    def pattern(self) -> str:
        """The text that was compiled."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """Named groups with their numbers."""

    def search(self, text: str) -> LinearMatch | None:
        """The leftmost match, or None."""


_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d))")


def expanded(match: LinearMatch, template: str) -> str:
    """The template with its group references (`\\1`, `\\g<0>`) replaced.

    RE2's own ``expand`` takes each byte of a template that is not ASCII for a character.
    """

    def group(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        return match[int(name) if name.isdigit() else name] or ""

    return _REFERENCE.sub(group, template)


def compile_linear(text: str, *, ignore_case: bool = False) -> LinearPattern:
    """Compile a pattern.

    Raises:
        ValueError: RE2 does not know the pattern; the message is RE2's.
    """
    import re2

    options = re2.Options()
    options.case_sensitive = not ignore_case
    options.log_errors = False
    try:
        pattern: LinearPattern = re2.compile(text, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        raise ValueError(reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)) from None
    return pattern


# An address with a name and a password; `git@host` is not one.
_ADDRESS = r"\b[A-Za-z][A-Za-z0-9+.-]{1,20}://[^/\s@'\"]{0,300}:[^/\s@'\"]{1,300}@"
# A client that takes its password in a short option.
_CLIENTS = r"(?:^|[\s\"'\x00])-p[^\s\d]|\bcurl\s|\b(?:docker|podman|wandb)\s+login|redis-cli|sshpass"
# What may stand before a secret: an option, an assignment, a header. Most texts have none of these.
_NAMED = rf"(?i)key|secret|pass|pwd|credential|auth|bearer|basic|cookie|webhook|token|sig|{_CLIENTS}"
# The names that hold nothing but secrets, and a client's password behind `-p`.
_CERTAIN = (
    r"(?i)pass(?:word|wd|phrase)|pwd|secret|credential|(?:api|access|account|private|shared)[_-]?key"
    rf"|(?:hf|api|auth|access)[_-]?token|(?:token|[_-]key)['\"]?[\s=:]|\bsig=|authorization|cookie|{_CLIENTS}"
)


@cache
def _shaped() -> LinearPattern:
    from receipts.emit.secrets import TOKEN_FORMS

    forms = "|".join((*(form for _, form in TOKEN_FORMS), _ADDRESS))
    return compile_linear(forms.replace(r"\Z", r"\z"))  # RE2 writes the end of the text so


@cache
def _named() -> LinearPattern:
    return compile_linear(_NAMED)


@cache
def _certain() -> LinearPattern:
    return compile_linear(_CERTAIN)


def secret_in(text: str) -> str:
    """The beginning of an issued token, or of an address with a password, in a text; empty if there is none."""
    match = _shaped().search(_whole(text))
    return "" if match is None else f"{match.group(0)[:8]}…"


def may_hold_secret(document: str) -> bool:
    """Whether a JSON document must be looked through leaf by leaf: mostly not, and one search says so."""
    # An escape sequence of JSON may stand before a token, or within it.
    return "\\" in document or bool(secret_in(document)) or _certain().search(_whole(document)) is not None


def secret_under(name: str, value: Any) -> str:
    """The beginning of a secret in a name or in the value under it; empty if there is none."""
    from receipts.emit.secrets import hidden, redact

    if start := secret_in(name) or secret_in(str(value)):
        return start
    named = isinstance(value, str) and _certain().search(f"{name}\0{_whole(value)}")
    return "by its name" if named and hidden(name, redact(value)) != value else ""


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which RE2 cannot read."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def redacted(value: Any, name: str = "") -> Any:
    """A value, or the values in a list or map, without secrets; whole where its name says that it is one."""
    from receipts.emit.secrets import blanked, redact, secret_name

    if isinstance(value, str):
        if name and secret_name(name):
            return blanked(name, value)
        return redact(value) if "://" in value or secret_in(value) or _named().search(_whole(value)) else value
    if isinstance(value, dict):
        return {key: redacted(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(redacted(item) for item in value)
    return value
