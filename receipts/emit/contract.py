"""What a leaf may be, what each lane asks for, and what of that a run has not stated, with the words that state it.

The contract is read from the generated ``contract.json`` beside this file.
"""

from __future__ import annotations

import math
from functools import lru_cache

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from receipts.emit.facts import StatedFacts


OPEN_MAPS = ("wheels", "flags", "patches", "features", "notes")
INPUT_MAPS = tuple(f"inputs.{name}" for name in ("options", "defaults", "environment", "launcher", "resolved"))
_MAX_KEY = 200
_MAX_VALUE = 10_000


class InvalidValue(Exception):
    """A value that its leaf cannot hold; the text says why. Never leaves this package."""


class Contract:
    """Leaves by path, each with its kind and bounds, lanes by name, and the code of the rule on a path's evidence.

    ``ranks`` says by leaf how the values of several ranks become one, where they need not agree, and ``groups`` which
    leaves come from one rank or not at all.

    ``needs`` are what most lanes ask for, each with the rule that asks; a lane says what it asks besides, and not.
    """

    schema_version: str
    leaves: Mapping[str, Sequence[Any]]
    lanes: Mapping[str, Any]
    needs: Mapping[str, str]
    names: Mapping[str, str]
    ranks: Mapping[str, str]
    groups: Mapping[str, str]
    collections: Sequence[str]
    evidence_rule: str

    def __init__(self, **tables: Any) -> None:
        self.__dict__.update(tables)

    def check(self, path: str, value: Any) -> Any:
        """The value as the receipt will hold it. Raises `InvalidValue` where the leaf is unknown or cannot hold it."""
        kind = self.leaves.get(path)
        if kind is None:
            raise InvalidValue(f"there is no leaf {path}{self.near(path)}")
        try:
            held = _as(kind, value)
            # One spelling of what computes, and of types: `math` and `sdpa_math` are one path.
            if isinstance(held, str) and (path.startswith("path.") or path.endswith("_dtype")):
                return "+".join(self.names.get(word.strip().lower(), word) for word in held.split("+"))
            return held
        except InvalidValue as error:
            raise InvalidValue(f"{path}: {error}") from None

    def misspelled(self, path: str, value: Any) -> str:
        """What to say of a word of a path or type that is nearly one that rules know; empty elsewhere.

        A word of its own stands: nobody else knows what a kernel of yours is called.
        """
        if not isinstance(value, str) or not (path.startswith("path.") or path.endswith("_dtype")):
            return ""
        import difflib

        known = {*self.names, *self.names.values()}
        for word in value.lower().split("+"):
            close = difflib.get_close_matches(word, known, n=1, cutoff=0.85) if word not in known else []
            letters = ["".join(sign for sign in text if not sign.isdigit()) for text in (word, *close)]
            # `flash3` is a word of its own, and no `flash2`: what has other digits is another version.
            if close and (letters[0] != letters[1] or sorted(word) == sorted(close[0])):
                return f"{path}: rules know no {word!r}; did you mean {self.names.get(close[0], close[0])}? It stands"
        return ""

    def near(self, path: str) -> str:
        """What was meant, as the end of a sentence; empty where nothing is close."""
        return near(path, self.leaves)

    def __repr__(self) -> str:
        return f"Contract({self.schema_version}, {len(self.leaves)} leaves, {len(self.lanes)} lanes)"


@lru_cache(maxsize=1)
def contract() -> Contract:
    """The contract of this version. Read once."""
    import json
    import os

    with open(os.path.join(os.path.dirname(__file__), "contract.json"), encoding="utf-8") as stream:
        loaded = json.load(stream)
    return Contract(**loaded)


def near(word: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """The known names that a mistyped one is close to, as the end of a sentence.

    A name is also close by its last part: ``model.hiden`` and ``hidden`` both mean ``model.hidden``.
    """
    import difflib

    names: dict[str, str] = {}
    for name in known:
        names.setdefault(name.rpartition(".")[2], name)
        names[name] = name
    close = difflib.get_close_matches(word.lower(), names, n=3, cutoff=0.6)
    close = close or difflib.get_close_matches(word.rpartition(".")[2].lower(), names, n=2, cutoff=0.7)
    matches = list(dict.fromkeys(names[item] for item in close))
    return f"; did you mean {' or '.join(matches)}?" if matches else "; it can stand under features or notes"


def scalar(value: Any) -> bool | int | float | str:
    """A value of an open map: true or false, a number, or a text. Raises `InvalidValue`."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) or _numeric(value):
        return _number(value)
    return _text(value, _MAX_VALUE, shortest=0)


def key(name: Any) -> str:
    """A key of an open map. Raises `InvalidValue`."""
    text = printable(str(name))
    if not 0 < len(text) <= _MAX_KEY:
        raise InvalidValue(f"a key has 1 to {_MAX_KEY} characters, and this has {len(text)}")
    return text


def printable(text: str) -> str:
    """The text with a question mark for half of a surrogate pair, which no file can hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _as(kind: Sequence[Any], value: Any) -> Any:
    name = kind[0]
    if name == "list":
        if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
            value = [value]
        return [_as(kind[1:], item) for item in value]
    if name == "counts":
        if not hasattr(value, "items"):
            raise InvalidValue(f"it must be a map of names to counts, and is {_is(value)}")
        return {key(item): _bounded(_whole(count), 0, 2**62) for item, count in value.items()}
    if name == "boolean":
        numpy = type(value).__module__ == "numpy" and type(value).__name__.rstrip("_") == "bool"
        if not numpy and not isinstance(value, bool):
            raise InvalidValue(f"it must be True or False, and is {_is(value)}")
        return bool(value)
    if name == "integer":
        return _bounded(_whole(value), kind[1], kind[2])
    if name == "number":
        return _bounded(_number(value), kind[1], kind[2])
    text = _text(value, kind[1] if name == "text" else _MAX_VALUE)
    if name == "one" and text not in kind[1:]:
        raise InvalidValue(f"it is one of {', '.join(kind[1:])}, and not {text!r:.80}")
    if name == "hex" and not (len(text) == kind[1] and set(text) <= set("0123456789abcdef")):
        raise InvalidValue(f"it must be {kind[1]} hex digits in lower case")
    if name == "match":
        import re

        if not re.search(kind[1], text):
            raise InvalidValue(f"it must match {kind[1]}, and is {text!r:.80}")
    if name == "time":
        from datetime import datetime

        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            raise InvalidValue(f"{text!r:.60} is not a time; write it like 2026-03-02T09:00:00Z") from None
        if time.tzinfo is None:
            raise InvalidValue("the time has no zone; write it like 2026-03-02T09:00:00Z")
    return text


def _numeric(value: Any) -> bool:
    """Whether it is a number of numpy's: one that lies on the host, so that reading it waits for nothing."""
    kind = type(value)
    return kind.__module__ == "numpy" and kind.__name__.rstrip("_0123456789") in ("int", "uint", "float", "longdouble")


def _whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if _numeric(value) and float(value).is_integer():
        return int(value)
    raise InvalidValue(f"it must be a whole number, and is {_is(value)}")


def _number(value: Any) -> int | float:
    if isinstance(value, bool):
        raise InvalidValue("it must be a number, and is True or False")
    if isinstance(value, int):
        if abs(value) >= 10**25:
            raise InvalidValue("the number has more than 25 digits")
        return int(value)
    if isinstance(value, float) or _numeric(value):
        number = float(value)
        if not math.isfinite(number):
            raise InvalidValue(f"it must be finite, and is {number}")
        return number
    raise InvalidValue(f"it must be a number, and is {_is(value)}")


def _bounded(value: Any, low: Any, high: Any) -> Any:
    if low is not None and value < low:
        raise InvalidValue(f"it must be {low} or more, and is {value}")
    if high is not None and value > high:
        raise InvalidValue(f"it must be {high} or less, and is {value}")
    return value


def _text(value: Any, longest: int, shortest: int = 1) -> str:
    if isinstance(value, bytes | dict | list | set) or value is None:
        raise InvalidValue(f"it must be a text, and is {_is(value)}")
    # Enumerations, types (`torch.bfloat16`) and paths are named by what they print.
    text = value if isinstance(value, str) else str(getattr(value, "value", value))
    text = printable(text)
    if len(text) < shortest:
        raise InvalidValue("it is empty")
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _is(value: Any) -> str:
    return f"{value!r:.60} ({type(value).__name__})" if isinstance(value, str | int | float) else type(value).__name__


CONTEXT_ADVICE = "the base configuration by name; what two receipts of one context leave unstated is held by it"
# How to state what is more than a leaf, by the beginning of its path.
STATING_CALLS = (
    ("measurement.loss", "rec.loss(value) at the steps where the job reads it anyhow"),
    ("measurement.gradient_norm", "rec.gradient_norm(value)"),
    ("measurement.window", "Recorder(…, warmup=STEPS), or rec.window(start, stop)"),
    ("measurement.step_durations_seconds", "with rec.step(tokens=…): around each step"),
    ("measurement.tokens_per_step", "with rec.step(tokens=…)"),
    ("measurement.synchronisation", 'Recorder(…, synchronisation="loss read" | "device" | "none")'),
    ("memory.chips", 'rec.memory("steady", chip=0, peak_bytes=…), or a framework that a probe knows'),
    ("path.intended", "rec.path(NAME=…)"),
    (
        "path.witnessed",
        "rec.profile(steps=2), and receipts submit run.json reads it; "
        "rec.observe(NAME=…, kind=…, level=…, uri=…) states it",
    ),
    ("wheels", 'rec.state("wheels.NAME", version)'),
    ("evidence", "receipts submit run.json --evidence FILE… with the log, trace or compiled program"),
    ("run.context", 'Recorder(…, context="NAME")'),
    ("run.exit_code", "end the run: leave the with block, or call rec.finish()"),
    ("run.finished", "end the run: leave the with block, or call rec.finish()"),
)
_EVIDENCE_LEVELS = ("none", "intent", "backend", "kernels")


class UnstatedFact:
    """One fact that is not stated: its path (``a|b`` for either), who asks for it, and how to state it."""

    __slots__ = ("how", "path", "why")

    def __init__(self, path: str, why: str, how: str) -> None:
        self.path = path
        self.why = why
        self.how = how

    def __str__(self) -> str:
        return f"{self.path} ({self.why}): {self.how}"

    def __repr__(self) -> str:
        return f"UnstatedFact({self.path!r}, {self.why!r}, {self.how!r})"


def missing(facts: StatedFacts, lane: str) -> tuple[UnstatedFact, ...]:
    """What the lane's rules would leave open; for a lane that is not shipped, what every lane asks."""
    lanes = contract().lanes
    contracted = lanes.get(lane) or lanes["unlisted"]
    unstated = []
    if not facts.states("run.context"):
        unstated.append(UnstatedFact("run.context", "comparisons", f"{how('run.context')}: {CONTEXT_ADVICE}"))
    usual = {need: rule for need, rule in contract().needs.items() if need not in contracted["without"]}
    needs, less = usual | contracted["needs"], set[str]()
    for condition, change in contracted["where"].items():
        path, _, value = condition.partition("=")
        if str(facts.get(path)) == value:
            less.update(change["less"])
            needs |= change["also"]
    needs = {need: rule for need, rule in needs.items() if need not in less}
    wheels = {_spelled(f"wheels.{name}") for name in facts.maps.get("wheels", ())}
    for need, rule in needs.items():
        if not any(facts.states(option) or _spelled(option) in wheels for option in need.split("|")):
            unstated.append(UnstatedFact(need, rule, how(need.partition("|")[0])))
    code = contract().evidence_rule
    for name in contracted["witness"]:
        path = f"path.witnessed.{name}"
        if not facts.states(path) and path not in needs and path not in less:
            unstated.append(UnstatedFact(path, code, how(path)))
    levels = [str(row.get("level", "none")) for row in facts.evidence if row.get("sha256")]
    best = max((_EVIDENCE_LEVELS.index(level) for level in levels if level in _EVIDENCE_LEVELS), default=0)
    if best < _EVIDENCE_LEVELS.index(contracted["evidence"]):
        unstated.append(UnstatedFact("evidence", code, f"{how('evidence')}; level {contracted['evidence']} is needed"))
    return tuple(unstated)


def _spelled(name: str) -> str:
    """One spelling of a wheel's name: `torch_xla` is `torch-xla`."""
    return name.replace("-", "_").replace(".", "_").lower()


def unstated_summary(items: tuple[UnstatedFact, ...]) -> list[str]:
    """The same in a few lines: what one kind of call states is grouped."""
    groups: dict[str, list[str]] = {}
    for item in items:
        plain = item.how.startswith("rec.state(") and not item.path.startswith("wheels.")
        witnessed = item.path.startswith("path.witnessed.")
        call = "rec.state(PATH, VALUE)" if plain else how("path.witnessed.") if witnessed else item.how
        groups.setdefault(call.replace("(=…", "(NAME=…"), []).append(item.path)
    return [f"{', '.join(paths)}: {call}" for call, paths in groups.items()]


def how(path: str) -> str:
    """The call that states a path."""
    name = path.rpartition(".")[2]
    for beginning, call in STATING_CALLS:
        if path.startswith(beginning):
            return call.replace("NAME", name)
    return f'rec.state("{path}", …)'


def unknown_argument(name: str, known: Sequence[str]) -> str:
    """What to say of an argument that the recorder does not take: a misspelled one is no reason to end a job."""
    close = near(name, known)
    return f"{name}: the recorder takes no such argument and leaves it out{close if 'did you mean' in close else ''}"


def unknown_lane(lane: str) -> str:
    """What to say of a lane that does not ship; empty where it does."""
    lanes = contract().lanes
    if lane in lanes:
        return ""
    close = near(lane, list(lanes))
    close = close if "did you mean" in close else ""
    return f"there is no shipped lane {lane!r}{close}; without a lane file of yours it is judged as unlisted"
