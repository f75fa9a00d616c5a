"""Secrets in texts that come from outside: the recorder's shapes, searched in linear time.

`receipts.emit.secrets` owns the shapes and does the blanking with the standard library alone, whose search of a whole
document takes 40 ms; RE2 takes 0.05 ms and says whether there is anything to blank.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from receipts.base.linear_patterns import LinearPattern, compile_linear

# An address with a name and a password; `git@host` is none.
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
    """The beginning of an issued token, or of an address with a password, in a text; empty where there is none."""
    match = _shaped().search(_whole(text))
    return "" if match is None else f"{match.group(0)[:8]}…"


def may_hold_secret(document: str) -> bool:
    """Whether a JSON document must be looked through leaf by leaf: mostly not, and one search says so."""
    # An escape sequence of JSON may stand before a token, or within it.
    return "\\" in document or bool(secret_in(document)) or _certain().search(_whole(document)) is not None


def secret_under(name: str, value: Any) -> str:
    """The beginning of a secret in a name or in the value under it; empty where there is none."""
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
    from receipts.emit.secrets import HIDDEN, redact, secret_name

    if isinstance(value, str):
        if name and secret_name(name):
            return HIDDEN
        return redact(value) if "://" in value or secret_in(value) or _named().search(_whole(value)) else value
    if isinstance(value, dict):
        return {key: redacted(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(redacted(item) for item in value)
    return value
