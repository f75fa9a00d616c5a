"""DeepSpeed's configuration as it prints it: ``name .... value`` lines, the user's JSON, and fragments of either.

Source: `deepspeed/runtime/config.py` (`print`, `print_user_config`), 0.1 (2020) to 0.19 (2026). Dots fill up to column
29, so longer names have none; the JSON is what the user wrote, and may hold trailing commas and ``5.000000e+08``.

0.19.8 prints its configuration only at log level INFO, and logs warnings by default: then only a file of its own (what
`deepspeed.initialize` is given, or a script's JSON around it) tells the stage, the types and the batches.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.literals import Brackets, flattened, integer, literal
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading

_BATCH = ("train_batch_size", "train_micro_batch_size_per_gpu")
_OTHERS = frozenset(
    {"zero_optimization", "bf16", "fp16", "optimizer", "gradient_accumulation_steps", "steps_per_print"}
)
_DEPTH = 4
_MAX_ITEMS = 100


class DeepSpeedSettings(JsonReader):
    """Reads a JSON document with DeepSpeed's configuration in it."""

    source: ClassVar[str] = "deepspeed-config"
    what: ClassVar[str] = "a configuration"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it is a JSON object with a batch size by DeepSpeed's name, and another of its keys."""
        named = (any(f'"{name}"'.encode() in head for name in names) for names in (_BATCH, _OTHERS))
        staged = b'"zero_optimization"' in head and b'"stage"' in head
        return super().claims(head) and (staged or all(named))

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """What the configuration states, or one within it."""
        if (settings := _configuration(document)) is not None:
            config = DeepSpeedConfig(reading)
            config.settings(settings, 0)
            reading.records = config.records


def _configuration(node: Any, depth: int = _DEPTH) -> dict[str, Any] | None:
    """The first object that holds a batch size by DeepSpeed's name, or a stage, at most so deep."""
    if not isinstance(node, dict | list):
        return None
    zero = node.get("zero_optimization") if isinstance(node, dict) else None
    if isinstance(node, dict) and (
        any(name in node for name in _BATCH) or (isinstance(zero, dict) and "stage" in zero)
    ):
        return node
    values = node.values() if isinstance(node, dict) else node[:_MAX_ITEMS]
    inner = (_configuration(value, depth - 1) for value in values) if depth else ()
    return next((item for item in inner if item is not None), None)


_ENTRY = re.compile(r":print\]\s+(\w{1,80})\s+(?:\.{2,40}\s)?\s*(.{0,2000})$")
_GLUED = re.compile(r"(\d{1,12})(?:\s|\[\d{4}-)")
_MEMBER = re.compile(
    r"[\"'](train_batch_size|train_micro_batch_size_per_gpu|gradient_accumulation_steps)[\"']\s*:\s*[\"']?(\d{1,12})\b"
)
_OPTIMIZER = re.compile(r"DeepSpeed Basic Optimizer\s*=\s*(\w+)")
_OPENED: Final = "DeepSpeed info: version="
_OFFLOAD = re.compile(r"offload_(param|optimizer)=\w*\(?.{0,40}?device=[\"'<]?(?:\w+\.)?(cpu|nvme)")
# Names that are printed otherwise than they are set.
_PRINTED: Final = {"zero_optimization_stage": "zero_optimization.stage", "optimizer_name": "optimizer.type"}
_JSON = re.compile(r"(?:print_user_config\].*|:print\]\s+)json = (\{.*)$")
# What a launcher prints before each line, and a person may have left out of some.
_WORKER = re.compile(r"^\s*[\w.-]{1,60}:\s(?=\s*[\"}\]])")
_SETTINGS: Final = Settings("deepspeed")
STATEMENTS: Final = Statements("deepspeed")
_DTYPES: Final = vocabulary.table("deepspeed")["words"]["dtypes"]


class DeepSpeedConfig:
    """Takes the lines of a configuration; what they state goes to the reading."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.records = 0
        self.steps_per_print: int | None = None
        self._block = Brackets(most=2000)
        self._class: tuple[str, str, int] | None = None

    @property
    def open(self) -> bool:
        """Whether the user's JSON goes on."""
        return bool(self._block)

    def line(self, text: str, line: int) -> None:
        """One line that is none of a JSON block's, or its first one."""
        if match := _JSON.search(text):
            if not self._block.begin(match[1], line):
                self.close()
            return
        if match := _ENTRY.search(text):
            self.records += 1
            name, value = match[1], match[2].strip()
            # What was glued behind a number is none of it.
            value = glued[1] if (glued := _GLUED.match(value)) else value
            if name == "optimizer_params":
                for inner, entry in flattened(literal(value), "optimizer.params").items():
                    self._setting(inner, entry, line)
            elif name == "zero_config":
                for what, device in _OFFLOAD.findall(value):
                    self._setting(f"zero_optimization.offload_{what}.device", device, line)
            else:
                on = name in _DTYPES and (value == "True" or "enabled=True" in value)
                self._setting(_PRINTED.get(name, name), on or value, line)
        for name, value in _MEMBER.findall(text):
            self.records += 1
            self._setting(name, value, line)
        STATEMENTS.take(self.reading, text, line)
        self.records += _OPENED in text
        if match := _OPTIMIZER.search(text):
            self._class = self._class or (match[1], match[0], line)

    def more(self, text: str) -> None:
        """One more line of the user's JSON."""
        text = _WORKER.sub("", text)
        if not self._block.more(text) or text.startswith("["):
            self.close()

    def close(self) -> None:
        """Take the user's JSON, whole or cut off, where one is open."""
        settings = literal(self._block.take())
        if isinstance(settings, dict):
            self.settings(settings, self._block.line)

    def settle(self) -> None:
        """Name the optimizer by its class, such as FusedAdam, where no setting names it; and the version."""
        version = self.reading.stated.get("wheels.deepspeed")
        self.reading.version = None if version is None else version.value
        if self._class is not None and "numerics.optimizer" not in self.reading.stated:
            self.reading.state("numerics.optimizer", *self._class)

    def settings(self, values: dict[str, Any], line: int) -> None:
        """The user's settings as an object."""
        self.records += 1
        for name, value in flattened(values).items():
            self._setting(name, value, line)

    def _setting(self, name: str, value: Any, line: int) -> None:
        """One setting by its name in the user's JSON."""
        state, text = self.reading.state, f"{name} = {str(value)[:100]}"
        if stated := _SETTINGS.read(name, value):
            known = self.reading.stated.get(stated[0])
            # The engine prints in small letters what the user wrote.
            if known is None or str(known.value).lower() != str(stated[1]).lower():
                state(*stated, text, line)
        elif value is True and name.removesuffix(".enabled") in _DTYPES:
            state("numerics.compute_dtype", _DTYPES[name.removesuffix(".enabled")], text, line)
        elif name == "steps_per_print" and (steps := integer(value)) is not None and steps >= 1:
            self.steps_per_print = steps


def batch_size(reading: Reading) -> int | None:
    """Samples of a global step, stated or the product of what is stated; None where that does not suffice."""
    values = {path: stated.value for path, stated in reading.stated.items()}
    whole = values.get("batch.global_batch")
    if isinstance(whole, int):
        return whole
    factors = [values.get(path) for path in ("batch.micro_batch", "batch.accumulation", "parallelism.data")]
    micro, accumulation, data = factors
    if isinstance(micro, int) and isinstance(accumulation, int) and isinstance(data, int):
        return micro * accumulation * data
    return None


READERS = (DeepSpeedSettings,)
