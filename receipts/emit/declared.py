"""Words of a command line as the program's own declarations of its options read them.

`-l 1e-2`, `--learn 1e-2` and `--lr=1e-2` are one option where the source says so, and the word behind a switch, or
behind an option's one value, is the program's own argument and no second value.
"""

from __future__ import annotations

import ast

from receipts.emit.literals import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_NO_WORD = ("store_true", "store_false", "store_const", "append_const", "count", "version", "BooleanOptionalAction")


def declared(text: str) -> dict[str, tuple[str, int | None]]:
    """The options that a source declares by `add_argument` or click's `option`, but those that it declares two ways.

    By each flag (`-l`): the one that stands for it (`--lr`), and how many words follow it; None: nobody knows.
    """
    if "add_argument(" not in text and ".option(" not in text:
        return {}
    module = tree(text)
    if module is None:
        return {}
    known: dict[str, tuple[str, int | None]] = {}
    torn: set[str] = set()
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("add_argument", "option"):
            for flag, meaning in _options(node):
                if known.setdefault(flag, meaning) != meaning:
                    torn.add(flag)
    return {flag: meaning for flag, meaning in known.items() if flag not in torn}


def _options(call: ast.Call) -> Iterator[tuple[str, tuple[str, int | None]]]:
    words = [item.value for item in call.args if isinstance(item, ast.Constant) and isinstance(item.value, str)]
    flags = [part for word in words if word.startswith("-") for part in word.split("/")]
    named = {item.arg: item.value for item in call.keywords}
    several = any("/" in word for word in words)  # click's `--flash/--no-flash`
    count: int | None = 1
    if several or _switch(named):
        count = 0
    elif None in named or {"nargs", "is_flag", "multiple", "count", "action"} & named.keys():
        count = None
    name = next((flag for flag in flags if flag.startswith("--") and not flag.startswith("--no-")), "")
    off = {word.partition("/")[2] for word in words if "/" in word}
    for flag in flags:
        own = flag.startswith("--no-") or not name
        yield flag, (f"--no-{name[2:]}" if flag in off and name else flag if own else name, count)


def _switch(named: Mapping[str | None, ast.expr]) -> bool:
    action = named.get("action")
    word = action.value if isinstance(action, ast.Constant) else getattr(action, "attr", getattr(action, "id", ""))
    flags = (getattr(named.get(flag), "value", None) is True for flag in ("is_flag", "count"))
    return word in _NO_WORD or any(flags)


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
            flag, sign, value = _short(word, known)
        name, count = known.get(_whole(flag, known), (flag, None))
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


def _short(word: str, known: Mapping[str, tuple[str, int | None]]) -> tuple[str, str, str]:
    """A short option with its value in one word, `-l0.01`, or given several times, `-vv`."""
    flag, rest = word[:2], word[2:].removeprefix("=")
    if known[flag][1] != 0:
        return flag, "=", rest
    return (flag, "=", str(len(rest) + 1)) if not rest.strip(flag[1]) else (word, "", "")


def _whole(flag: str, known: Mapping[str, tuple[str, int | None]]) -> str:
    """The option that a beginning of its name stands for; the word itself where it is none, or of several."""
    if flag in known or not flag.startswith("--") or len(flag) < 3:
        return flag
    names = {known[item][0]: item for item in known if item.startswith(flag)}
    return next(iter(names.values())) if len(names) == 1 else flag
