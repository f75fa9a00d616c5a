"""Arguments by name, read as what they are; and leaves stated with the argument that they were read from.

What each name states is a framework's table: `Leaves` reads all arguments together, `Settings` one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.literal import integer, literal
from receipts.ingest.evidence.numbers import number
from receipts.ingest.evidence.reading import Reading
from receipts.receipt.dtypes import dtype

_OFF: Final = frozenset({"None", "none", "null", "~", ""})
_TRUE: Final = frozenset({"True", "true", "yes"})
_FALSE: Final = frozenset({"False", "false", "no"})
# Degrees by the letters that summaries and names of configurations have for them.
DEGREES: Final = {
    "tp": "parallelism.tensor",
    "pp": "parallelism.pipeline",
    "cp": "parallelism.context",
    "dp": "parallelism.data",
    "ep": "parallelism.expert",
    "etp": "parallelism.expert_tensor",
    **dict.fromkeys(("vp", "vpp"), "parallelism.virtual_pipeline"),
}
_BETWEEN: Final = re.compile(r"['\",]")
_INTEGER: Final = re.compile(r"[-+]?\d{1,18}")


class Arguments:
    """A program's arguments as text, each with its line; ``values`` maps a name to both."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, tuple[str, int]]) -> None:
        self.values = values

    def has(self, name: str) -> bool:
        """Whether there is such an argument."""
        return name in self.values

    def name(self, *names: str) -> str | None:
        """The first of some names that is an argument with a value; None where none is."""
        return next((name for name in names if name in self.values and not self.off(name)), None)

    def text(self, name: str) -> str | None:
        """The text of an argument, quotes gone; None where it is absent."""
        value = self.values.get(name)
        return None if value is None else value[0].strip().strip("'\"")

    def words(self, name: str) -> list[str]:
        """The items of a printed list: ``['core_attn', 'mlp']`` has two."""
        return _BETWEEN.sub(" ", (self.text(name) or "").strip("[]()")).split()

    def off(self, name: str) -> bool:
        """Whether an argument is there and says *nothing*: None, null, or an empty text."""
        return self.text(name) in _OFF if name in self.values else False

    def integer(self, name: str) -> int | None:
        """A whole number, or None where the argument is absent or something else."""
        return integer(self.text(name))

    def count(self, *names: str) -> int | None:
        """The first of some arguments that is a whole number above zero; MaxText's -1 is *derive it*."""
        return next((value for name in names if (value := self.integer(name)) is not None and value >= 1), None)

    def amount(self, name: str) -> float | None:
        """A finite number that is not negative, or None."""
        value = self.real(name)
        return value if value is not None and value >= 0 else None

    def real(self, name: str) -> float | None:
        """A finite number, or None."""
        text = self.text(name)
        value = None if text is None else number(text)
        return value if value is not None and abs(value) < 1e300 else None

    def flag(self, name: str) -> bool | None:
        """A switch: True, False, 0 and 1 in YAML; None where it is absent or no switch."""
        text = self.text(name)
        if text in _TRUE or text == "1":
            return True
        return False if text in _FALSE or text == "0" else None

    def word(self, name: str) -> str | None:
        """A word; of a dictionary, which GPT-NeoX's optimizer is, its type."""
        text = self.text(name)
        settings = literal(text) if text is not None and text.startswith("{") else None
        return str(settings["type"]) if isinstance(settings, dict) and "type" in settings else text

    def dtype(self, name: str) -> str | None:
        """A torch type in short: ``torch.bfloat16`` is ``bf16``; None where it is absent or unknown."""
        text = self.text(name)
        # Transformer Engine keeps FP8 in bytes.
        return None if text is None else "fp8" if text.endswith("uint8") else dtype(text)

    def read(self, name: str, entry: Mapping[str, Any]) -> Any:
        """The value of an argument as an entry of the vocabulary has it; None where it has no such value."""
        kind = entry["kind"]
        if kind == "ordinal":
            whole = self.integer(name)
            return whole if whole is not None and whole >= 0 else None
        if name not in self.values or self.off(name):
            return None
        if kind == "choice":
            return entry["values"].get(self.text(name))
        return getattr(self, {"switch": "flag"}.get(kind, kind))(name)

    def scalar(self, name: str) -> bool | int | float | str | None:
        """A value for an open map of the receipt: switch, number or text; None where it is absent or off."""
        text = self.text(name)
        if text is None or text in _OFF:
            return None
        if text in _TRUE or text in _FALSE:
            return text in _TRUE
        if _INTEGER.fullmatch(text):
            return int(text)
        value = self.real(name)
        return text[:400] if value is None else value


class Leaves:
    """States leaves in a reading, each in the words ``argument = value`` and with the argument's line."""

    __slots__ = ("arguments", "reading", "record")

    def __init__(self, reading: Reading, arguments: Arguments, record: str = "") -> None:
        self.reading = reading
        self.record = record
        self.arguments = arguments

    def put(self, path: str, value: Any, name: str) -> None:
        """State a leaf that an argument gives; a value of None states nothing."""
        if value is None:
            return
        text, line = self.arguments.values.get(name, ("", 0))
        self.reading.state(path, value, f"{name} = {text}", line, self.record)

    def read(self, path: str, entry: Mapping[str, Any]) -> None:
        """State a leaf as the vocabulary has it: by the first of its names that has a value."""
        for name in entry["names"]:
            if (value := self.arguments.read(name, entry)) is not None:
                self.put(path, value, name)
                return

    def whole(self, path: str, *names: str, least: int = 1) -> int | None:
        """State a leaf from the first of some arguments that is a whole number of at least ``least``."""
        for name in names:
            value = self.arguments.integer(name)
            if value is not None and value >= least:
                self.put(path, value, name)
                return value
        return None


class Settings:
    """A framework's settings as a program prints them one by one, by their names in its table."""

    def __init__(self, framework: str) -> None:
        table = vocabulary.table(framework)
        counts = {
            name: (path, {"kind": "count"})
            for name, path in table.get("configuration", {}).items()
            if type(path) is str
        }
        entries = table.get("arguments", {}).items()
        self._leaves = counts | {name: (path, entry) for path, entry in entries for name in entry["names"]}

    def read(self, name: str, value: Any) -> tuple[str, Any] | None:
        """The leaf that a setting states, with its value; None where it states none."""
        path, entry = self._leaves.get(name, ("", {}))
        known = Arguments({name: (str(value), 0)}).read(name, entry) if entry else None
        return None if known is None else (path, known)
