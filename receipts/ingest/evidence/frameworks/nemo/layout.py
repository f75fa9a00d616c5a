"""What NeMo and Lightning say of a run's layout as it starts: process groups, processes, the model's own arguments."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.frameworks.megatron import configuration as megatron_config
from receipts.ingest.evidence.reading import Reading

_GROUP: Final = re.compile(
    r"Rank \d{1,7} has (tensor model|pipeline model|context|data) parallel group ?: ?\[([\d, ]{1,20000})\]"
)
_DEGREES: Final = {
    "tensor model": "parallelism.tensor",
    "pipeline model": "parallelism.pipeline",
    "context": "parallelism.context",
    "data": "parallelism.data",
}
_WORLD: Final = re.compile(r"Starting with (\d{1,7}) processes|GLOBAL_RANK: \d{1,7}, MEMBER: \d{1,7}/(\d{1,7})")
_VOCABULARY: Final = re.compile(r"Padded vocab_size: (\d{1,12}), original vocab_size")
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


class Layout:
    """States what the lines say at once, and the arguments of the printed objects at the end."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._arguments: dict[str, tuple[str, int]] = {}

    def take(self, text: str, number: int) -> None:
        """Read one line."""
        reading = self._reading
        for kind, ranks in _GROUP.findall(text):
            reading.state(_DEGREES[kind], ranks.count(",") + 1, f"{kind} parallel group: [{ranks[:60]}]", number)
        if match := _WORLD.search(text):
            size = int(match[1] or match[2])
            if size:
                reading.state("hardware.chips", size, match[0], number)
        if match := _VOCABULARY.search(text):
            reading.state("model.vocabulary", int(match[1]), match[0], number)
        if (at := text.find(_OPTIMIZER)) >= 0:
            found = _ARGUMENT.findall(text, at, at + 4_000)
            self._note({name: value for name, value in found if name in _OF_OPTIMIZER}, number)
        if "tensor_model_parallel_size=" in text:
            self._note(dict(_MODEL_ARGUMENTS.findall(text[:20_000])), number)

    def state(self, besides: Container[str]) -> None:
        """State the arguments that were printed, but for those of a configuration that says more."""
        known = {name: value for name, value in self._arguments.items() if name not in besides}
        if known:
            megatron_config.state(self._reading, known)

    def _note(self, found: dict[str, str], line: int) -> None:
        for name, value in found.items():
            self._arguments.setdefault(name, (value, line))
