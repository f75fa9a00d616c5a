"""What NeMo and Lightning say of a run's layout: process groups, processes, arguments, and NeMo 1's configuration.

The README files of NVIDIA/dgxc-benchmarking work out tokens a second below a NeMo line. The example states the sequence
length, which the line does not; it counts only where its batch and its time are those of a step in the same text.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Statements
from receipts.ingest.evidence.frameworks.megatron import configuration as megatron_config
from receipts.ingest.reading import Reading

_EXAMPLE: Final = re.compile(
    r"(\d{1,9}) \* (\d{1,9}) / ([0-9]{1,9}(?:\.[0-9]{1,9})?) = ([0-9][0-9,]{0,15}(?:\.[0-9]{1,9})?)"
)
_MAX_LINES: Final = 12
_MAX_EXAMPLES: Final = 16


class Formula:
    """Reads the worked examples that follow the formula's words."""

    __slots__ = ("_left", "_records", "open")

    def __init__(self) -> None:
        self._records: list[tuple[int, int, float, float, str, int]] = []
        self._left = 0
        self.open = False

    def begin(self) -> bool:
        """The words were read; an example is within the next lines."""
        self.open, self._left = True, _MAX_LINES
        return True

    def take(self, text: str, line: int) -> bool:
        """Take a line after the words; False once an example was read or none came."""
        self._left -= 1
        match = _EXAMPLE.search(text)
        if match is not None and len(self._records) < _MAX_EXAMPLES:
            rate = float(match[4].replace(",", ""))
            self._records.append((int(match[1]), int(match[2]), float(match[3]), rate, match[0], line))
        self.open = match is None and self._left > 0
        return self.open

    def state(self, reading: Reading) -> None:
        """State the sequence length, and the rate of the step that an example is about."""
        for length, batch, seconds, rate, text, line in self._records:
            if length < 1 or seconds <= 0 or abs(length * batch / seconds - rate) > 1:
                continue
            for step in reading.steps.numbers():
                same = reading.steps.get(step, "step_seconds") == seconds
                if same and reading.steps.get(step, "global_batch") in {None, float(batch)}:
                    reading.state("batch.sequence_length", length, text, line)
                    reading.steps.add(step, {"tokens_per_second": rate})
                    break


_GROUP: Final = re.compile(
    r"Rank \d{1,7} has (tensor model|pipeline model|context|data) parallel group ?: ?\[([\d, ]{1,20000})\]"
)
_DEGREES: Final = {
    "tensor model": "parallelism.tensor",
    "pipeline model": "parallelism.pipeline",
    "context": "parallelism.context",
    "data": "parallelism.data",
}
_STATEMENTS: Final = Statements("nemo")
_OPTIMIZER: Final = "OptimizerConfig("
_OF_OPTIMIZER: Final = frozenset(
    ("optimizer", "lr", "min_lr", "bf16", "fp16", "params_dtype", "use_distributed_optimizer")
)
_ARGUMENT: Final = re.compile(r"\b([a-z_0-9]{2,60})=('[^']{0,80}'|[\w.+\-]{1,60})")
# Those of Megatron's arguments that shape the run, and the two that have no leaf of their own.
_NAMES: Final = (
    *(
        name
        for path, entry in vocabulary.table("megatron")["arguments"].items()
        if path.startswith(("parallelism.", "batch.", "model."))
        for name in entry["names"]
    ),
    *("virtual_pipeline_model_parallel_size", "num_query_groups"),
)
_MODEL_ARGUMENTS: Final = re.compile(rf"\b({'|'.join(_NAMES)})[=:] ?(\w{{1,20}})\b")
# A line of a recipe in YAML.
_SETTING: Final = re.compile(rf"[ \t]*(?:{'|'.join(_NAMES)}): \w{{1,20}}\s*")


class LayoutLines:
    """States what the lines say at once, and the arguments of the printed objects at the end."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._arguments: dict[str, tuple[str, int]] = {}

    def take(self, text: str, number: int) -> None:
        """Read one line."""
        reading = self._reading
        for kind, ranks in _GROUP.findall(text):
            reading.state(_DEGREES[kind], ranks.count(",") + 1, f"{kind} parallel group: [{ranks[:60]}]", number)
        _STATEMENTS.take(reading, text, number)
        if (at := text.find(_OPTIMIZER)) >= 0:
            arguments = _ARGUMENT.findall(text, at, at + 4_000)
            self._note({name: value for name, value in arguments if name in _OF_OPTIMIZER}, number)
        if "tensor_model_parallel_size=" in text or _SETTING.fullmatch(text):
            self._note(dict(_MODEL_ARGUMENTS.findall(text[:20_000])), number)

    def state(self, besides: Container[str]) -> None:
        """State the arguments that were printed, but for those of a configuration that says more."""
        known = {name: value for name, value in self._arguments.items() if name not in besides}
        if known:
            megatron_config.state(self._reading, known)

    def _note(self, values: dict[str, str], line: int) -> None:
        for name, value in values.items():
            self._arguments.setdefault(name, (value, line))
