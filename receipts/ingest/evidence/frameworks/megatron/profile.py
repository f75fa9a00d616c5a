"""Which iterations ran under a profiler: by its own lines in the log, or by the arguments that switch it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

_BEGUN: Final = "Completed Stage: Warm Up"
_DONE: Final = ("Completed Stage: Collection", "Completed Stage: Post Processing")


class Profiler:
    """Follows PyTorch's profiler (Kineto) through its stage lines; ``active`` is whether it is collecting."""

    __slots__ = ("active",)

    def __init__(self) -> None:
        self.active = False

    def take(self, text: str) -> None:
        """Read a stage line: collecting begins when the warm-up is complete."""
        if _BEGUN in text:
            self.active = True
        elif any(words in text for words in _DONE):
            self.active = False

    def steps(self, arguments: Mapping[str, str], numbers: Iterable[int]) -> list[int]:
        """Records that `--profile` covers: it starts once ``profile_step_start`` iterations are done."""
        if arguments.get("profile") != "True":
            return []
        start, end = arguments.get("profile_step_start", ""), arguments.get("profile_step_end", "")
        if not (start.isdigit() and end.isdigit()) or max(len(start), len(end)) > 12:
            return []
        return [step for step in numbers if int(start) < step <= int(end)]
