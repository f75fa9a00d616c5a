"""Megatron's settings, whichever program prints them: indented configuration, and arguments as leaves.

Configuration printed as indented text: YAML of NeMo and Megatron-Bridge, and Bridge's summary of what differs. Only
scalars and lists of scalars are read, by indentation: a log's dump is prefixed, cut and interleaved, so that a
whole-document parser would lose all of it over one foreign line.

Megatron's arguments as leaves of the receipt, by the rules that its recorder has too: `receipts.emit.megatron_rules`.
"""

from __future__ import annotations

import re
from typing import Final

from receipts.emit.megatron_rules import RULES
from receipts.ingest.arguments import Arguments, Leaves
from receipts.ingest.reading import Reading

MAX_LINES: Final = 6_000
MAX_FOREIGN: Final = 200
_KEY: Final = re.compile(r"( *)([A-Za-z_][\w.\-]{0,120}):(?: +(.*?)| *)$")
_ITEM: Final = re.compile(r"( *)- +(\S.{0,400})$")
_SECTION: Final = re.compile(r" *\[([a-z_]{2,40})\](?: Non-default values\b.*)?:?$")
_DEFAULT: Final = re.compile(r"\s{2,}\(Mcore default: .*\)$")


class NestedDump:
    """Collects one dump. ``values`` maps dotted keys to text and line; ``open`` is whether more is wanted."""

    __slots__ = ("_foreign", "_lines", "_prefix", "_stack", "open", "values")

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}
        self.open = False
        self._prefix = ""
        self._stack: list[tuple[int, str]] = []
        self._lines = self._foreign = 0

    def begin(self, before: str) -> None:
        """A dump begins on the next line; ``before`` is what is before its title, a prefix and any indentation."""
        self.open = True
        self._prefix = before.rstrip(" =*")
        self._stack = []
        self._lines = self._foreign = 0

    def take(self, text: str, line: int) -> bool:
        """Take a line; False once the dump has ended."""
        self._lines += 1
        if self._lines > MAX_LINES or self._foreign > MAX_FOREIGN:
            self.open = False
            return False
        if not text.startswith(self._prefix):
            self._foreign += 1
            return True
        body = text[len(self._prefix) :]
        bare = body.strip()
        if set(bare) <= set("=-*") or bare.startswith(("Other Configuration Values", "Configuration Summary")):
            return True
        self.open = self._read(body, line)
        return self.open

    def leaf(self, *sections: str) -> dict[str, tuple[str, int]]:
        """Keys without their sections; of a key in several, the one in the first of ``sections`` stands."""
        order = {name: at for at, name in enumerate(sections)}
        ranked = sorted(self.values.items(), key=lambda item: order.get(item[0].split(".")[0], len(order)))
        leaves: dict[str, tuple[str, int]] = {}
        for key, value in ranked:
            leaves.setdefault(key.rsplit(".", 1)[-1], value)
        return leaves

    def _read(self, body: str, line: int) -> bool:
        section = _SECTION.match(body)
        if section is not None:
            self._stack = [(-1, section[1])]
            return True
        item = _ITEM.match(body)
        if item is not None and self._stack:
            key = ".".join(name for _, name in self._stack)
            text, at = self.values.get(key, ("", line))
            if len(text) < 400:
                self.values[key] = (f"{text}, {item[2]}" if text else item[2], at)
            return True
        match = _KEY.match(body)
        if match is None or len(body) > 4_000:
            self._foreign += 1
            return self._lines < 4 or self._foreign < 4
        indent = len(match[1])
        while self._stack and self._stack[-1][0] >= indent:
            self._stack.pop()
        self._stack.append((indent, match[2]))
        if match[3]:
            key = ".".join(name for _, name in self._stack)
            if len(self.values) < MAX_LINES:
                self.values.setdefault(key, (_DEFAULT.sub("", match[3]).strip(), line))
        return True


def state_arguments(reading: Reading, values: dict[str, tuple[str, int]], record: str = "") -> None:
    """State every leaf that the arguments give; ``values`` maps a name to its text and its line."""
    reading.resolve(values)
    leaves = Leaves(reading, Arguments(values), record)
    for rule in RULES:
        rule(leaves.put, leaves.arguments)


def configure_nemo(reading: Reading, block: NestedDump) -> None:
    """State what NeMo 1's experiment configuration gives: `trainer`, `model`, and the adapters under it."""
    reading.resolve(block.values)
    section = block.leaf("model", "trainer")
    leaves = Leaves(reading, Arguments(block.values))
    arguments = leaves.arguments
    if "model.optim.name" in block.values:
        section["optimizer"] = block.values["model.optim.name"]
    precision = arguments.text("trainer.precision") or ""
    for kind in ("bf16", "fp16"):
        if precision.startswith(kind) or (kind == "fp16" and precision.startswith("16")):
            section.setdefault(kind, ("True", block.values["trainer.precision"][1]))
    state_arguments(reading, section)
    if hosts := leaves.whole("hardware.hosts", "trainer.num_nodes"):
        each = arguments.integer("trainer.devices") or 0
        leaves.put("hardware.chips", hosts * each if each > 0 else None, "trainer.devices")
    if scheme := arguments.name("model.peft.peft_scheme"):
        kind = arguments.text(scheme) or ""
        leaves.put("numerics.adapters.kind", kind, scheme)
        leaves.whole("numerics.adapters.rank", f"model.peft.{kind}_tuning.adapter_dim", least=0)
