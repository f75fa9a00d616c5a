"""trainer_state.json of the Hugging Face Trainer: the only place where its records carry their steps.

Source: `transformers/trainer_callback.py` (`TrainerState`). Read as a stream of flat objects, so that a state of any
size, one that was cut out of its file, and Python's bare ``NaN`` read alike.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.evidence.frameworks.hf_trainer.log import HfTrainer
from receipts.ingest.reader import FileReader
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source

_FLAT = re.compile(r"\{[^{}]*\}")
_SCALAR = re.compile(
    r'"(global_step|max_steps|logging_steps|train_batch_size|num_input_tokens_seen)"\s*:\s*(\d{1,18})\b'
)
_MAX_REST: Final = 1 << 16


class TrainerState(FileReader):
    """Reads a trainer_state.json, whole or cut."""

    source: ClassVar[str] = "hf-trainer"

    @classmethod
    def claims(cls, head: bytes) -> bool:
        """Whether it begins as JSON and holds the history, or records of one."""
        if head.lstrip()[:1] not in (b"{", b'"', b"["):
            return False
        if b'"log_history"' in head:
            return True
        return all(word in head for word in (b'"epoch":', b'"step":', b'"learning_rate":', b'"loss":'))

    def __init__(self) -> None:
        self._reader = HfTrainer()
        self._reader.bare = True
        self.reading = self._reader.reading
        self._logging_steps: int | None = None

    def read(self, source: Source) -> list[Reading]:
        """One reading, whatever the length of the history."""
        rest, line = "", 1
        for chunk in source.chunks():
            rest, line = self._feed(rest + chunk.decode("utf-8", "replace"), line)
        # What followed the last whole object.
        self._scalars(rest, 0)
        self._reader.finish()
        self.reading.complete = rest.rstrip().endswith("}")
        if not self.reading.complete:
            self.reading.remark("broken", "the state is cut off: later records are not here")
        self.reading.steps.interval = self._logging_steps
        return [self.reading]

    def _feed(self, text: str, line: int) -> tuple[str, int]:
        """Take the whole objects in ``text``, which begins on ``line``; what is left of it, and its line."""
        at = 0
        for match in _FLAT.finditer(text):
            line += text.count("\n", at, match.start())
            self._scalars(text[at : match.start()], line)
            self._reader.joined(match[0], line)
            line += match[0].count("\n")
            at = match.end()
        if len(text) - at > _MAX_REST:
            self._scalars(text[at:], line)
            line += text.count("\n", at, len(text) - _MAX_REST)
            at = len(text) - _MAX_REST
        return text[at:], line

    def _scalars(self, text: str, line: int) -> None:
        for name, word in _SCALAR.findall(text):
            value = int(word)
            if name == "train_batch_size" and value:
                self.reading.state("batch.micro_batch", value, f"train_batch_size: {value}", line)
            elif name == "logging_steps" and value:
                self._logging_steps = value
            elif name == "num_input_tokens_seen" and not value:
                self.reading.remark("missing", "num_input_tokens_seen 0: tokens were not counted", line)
            elif value:
                self.reading.counters[name] = value


READERS = (TrainerState,)
