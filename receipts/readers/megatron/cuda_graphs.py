"""CUDA graphs of a training step: what Megatron says when it captures them, and when it does not.

Sources: Megatron-LM `core/transformer/cuda_graphs.py` and `core/full_cuda_graph.py`, 2024 to 2026. Servers of models
print lines of their own (`Capturing CUDA graph shapes`); Megatron's inference engine says `built cuda graph(s)`
without a number. Neither is a training step's. That graphs were captured is said; that they are replayed, a profile.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from receipts.ingest.prefix import is_source, rank_of, repeated
from receipts.ingest.reader import LineReader
from receipts.ingest.reading import Reading

_BUILT = re.compile(r"> built (?P<count>\d{1,9}) cuda graph\(s\) in (?P<seconds>[\d.]{1,20}) sec")
_CREATING = re.compile(r"\bCreating (?P<count>\d{1,9}) CUDA graphs")
_SPENT = re.compile(
    r"Time spent in CUDA Graphs capture on rank (?P<rank>\d{1,7}): (?P<seconds>[\d.]{1,20}(?:e-?\d+)?)\s?s"
)
_LAYERS = re.compile(r"Rank (?P<rank>\d{1,7}): (?P<count>\d{1,9}) graphable layers")
_DONE = re.compile(r"CUDA graph capture done for (?P<what>training|validation)")
_NONE = re.compile(r"No graphable layers found\.? Skipping CUDA graph capture")
_CAPTURE: Final = "cuda_graphs.capture"


class CudaGraphsReader(LineReader):
    """Whether graphs of the training step were captured, how many, and how long that took."""

    source: ClassVar[str] = "cuda-graphs"
    anchors: ClassVar[tuple[bytes, ...]] = (
        *(b"> built ", b"CUDA Graphs capture", b"graphable layers", b"CUDA graph capture done for", b" CUDA graphs"),
    )

    def line(self, text: str, number: int) -> bool:
        if match := _BUILT.search(text):
            self._captured(text, match, int(match["count"]) > 0, number)
            self._time(match["seconds"])
            self.reading.count("cuda_graphs", int(match["count"]) * repeated(text))
        elif match := _SPENT.search(text):
            self._captured(text, match, True, number)
            self._time(match["seconds"])
        elif match := _DONE.search(text):
            self._captured(text, match, match["what"] == "training", number)
        elif match := _NONE.search(text):
            self.reading.records += 1
            self.reading.see("cuda_graphs", "false", "backend", number, rank=rank_of(text, match.start()))
            self.reading.remark("note", "graphs were asked for, and no layer could be captured", number)
        elif match := _LAYERS.search(text):
            self.reading.records += 1
            self.reading.count("graphable_layers", int(match["count"]))
        elif match := _CREATING.search(text):
            self.reading.records += 1
        return False

    def finish(self) -> Reading | None:
        reading = self.reading
        if reading.records and not any(seen.leaf == "cuda_graphs" for seen in reading.seen):
            reading.remark("missing", "graphs are spoken of, and no line says that their capture came to its end")
        return super().finish()

    def _captured(self, text: str, match: re.Match[str], training: bool, number: int) -> None:
        if not training or is_source(text, match.start()):
            return
        self.reading.records += 1
        rank = int(match["rank"]) if "rank" in match.groupdict() else rank_of(text, match.start())
        self.reading.see("cuda_graphs", "true", "backend", number, rank=rank, count=repeated(text))

    def _time(self, text: str) -> None:
        self.reading.time(_CAPTURE, float(text) if text.count(".") < 2 and text != "." else None)


READERS = (CudaGraphsReader,)
