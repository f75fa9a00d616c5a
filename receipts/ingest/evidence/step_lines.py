"""The training step that a line names, in any loop's words: for readers that place their own events among the steps.

``completed step: 19``, ``step:19/24``, ``Step 19 |``, ``step=19``, ``iteration 19/24 |``, and ``"step": 19`` of JSON.
"""

from __future__ import annotations

import re
from typing import Final

# Of the lines of other sources, those that may name a step.
STEPS: Final = (
    *(b"step:", b"Step:", b"step=", b"Step=", b"step = ", b"step ", b"Step ", b'"step":', b"'step':"),
    *(b"iter ", b"iter:", b"iteration ", b"iteration:", b"Iteration "),
)
_STEP: Final = re.compile(r"""(?:^|[^\w/])(?:[Ss]tep(?P<key>["']?)|[Ii]ter(?:ation)?)[ :=]{1,12}(\d{1,12})\b""")
# Steps of an evaluation have numbers of their own; where a checkpoint is, no step has ended.
_NO_STEP: Final = re.compile(r"(?i)\b(?:eval|valid|test|checkpoint|load|resum|restor)")
# Figures of an evaluation; a line with none of training beside them repeats the number of a step that has ended.
_EVALUATED: Final = re.compile(r"(?i)(?<![a-z])(?:eval|val(?:id(?:ation)?)?|test)[_/ ]\w*")
_TRAINED: Final = re.compile(r"(?i)loss|step_(?:time|sec|ms)|tok")


def step_of(text: str) -> int | None:
    """The number of the training step that a line names; None where it names none."""
    match = _STEP.search(text)
    if match is None or (not match["key"] and _NO_STEP.search(text[: match.start()])):
        return None
    rest = _EVALUATED.sub("", text)
    return int(match[2]) if rest == text or _TRAINED.search(rest) else None
