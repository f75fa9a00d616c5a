"""One block of torch_xla's debug output: a compile or an execution, its cause, and who asked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

MAX_PLACE: Final = 2_000
SIZES: Final = {
    "Graph input": "argument_bytes",
    "Graph output": "output_bytes",
    "Intermediate tensor": "temp_bytes",
}


@dataclass(slots=True)
class DebugBlock:
    """A block as it grows; sizes are in GiB."""

    kind: str
    line: int
    cause: str = ""
    wants_cause: bool = False
    frames: list[str] = field(default_factory=list)
    hash: str = ""
    sizes: dict[str, float] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether user code asked for a tensor's value. The bridge of dynamo gathers its inputs the same way."""
        return "access tensor value" in self.cause and not any("/torch_xla/_dynamo/" in row for row in self.frames[:1])

    @property
    def where(self) -> str:
        """What asked for it: cause and the user's own frames, so that two places of one step are two.

        Frames of libraries come and go from step to step, as decorators do.
        """
        return f"{self.cause} {' '.join(self.own)}"[:MAX_PLACE]

    @property
    def own(self) -> list[str]:
        """Frames outside of installed libraries; the outermost one where there is no other."""
        frames = [frame for frame in self.frames if "/site-packages/" not in frame and "/torch_xla/" not in frame]
        return frames or self.frames[-1:]


def short(frame: str) -> str:
    """``main (train.py:41)`` for ``main (/home/me/train.py:41)``."""
    return re.sub(r"\((?:[^()]*[/\\])?([^()/\\]+:\d+)\)$", r"(\1)", frame)


def ended_by(cause: str) -> str | None:
    """The posture that a cause of execution shows; None for reads, and for what is pending when a step begins."""
    if cause == "torch_xla.compile":
        return "xla_step"
    if cause.startswith("dynamo is executing"):
        return "whole_graph"
    # `mark_step` to 2.7, `torch_xla.sync` after it.
    if re.match(
        r"(?:user )?(?:xm\.)?(?:torch_xla\.sync|mark_step)(?:\(\))?(?: in parallel loader| when exiting|$)", cause
    ):
        return "xla_lazy"
    return None


def filled(block: DebugBlock) -> bool:
    """Whether a block says anything."""
    return bool(block.cause or block.hash or block.sizes)
