"""Windows in words: which steps a notebook says that its figure is over.

``iters 3-6``, ``steps 3 to 6`` and ``hot (from step 3)`` of six steps are one window. ``steps 3/4`` are two steps, and
``step 3/10`` is none. A text that names two stretches, or none, is not read: it stays as it is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STEP = r"(?:iteration|iter|step)s?"
_STRETCH = re.compile(rf"\b{_STEP}\s*(\d+)\s*(-|–|/|to)\s*(\d+)\b", re.IGNORECASE)
_ONWARD = re.compile(rf"\bfrom\s+{_STEP}\s*(\d+)\b|\b{_STEP}\s*(\d+)\s*\+", re.IGNORECASE)
_ANY = re.compile(r"\d+\s*[-–/]\s*\d+")
_COUNT = re.compile(rf"\bn\s*=\s*\d+|\b\d+\s+(?:{_STEP}|samples)\b", re.IGNORECASE)
_SOURCE = re.compile(r"^\w+:\s")
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_FILLING = frozenset({"a", "all", "each", "hot", "of", "on", "over", "the"})
_STATISTICS = {"mean": "mean", "average": "mean", "avg": "mean", "median": "median", "best": "best", "last": "last"}


class Stretch(NamedTuple):
    """Steps ``first`` to ``last``, both counted; the statistic over them where one is named; what else was said."""

    first: int
    last: int
    statistic: str | None
    beside: frozenset[str]

    def same_steps(self, other: Stretch) -> bool:
        """Whether both are over the same steps, and neither says anything else that the other does not."""
        return (self.first, self.last, self.beside) == (other.first, other.last, other.beside)


def read_window(text: str, steps: int | None) -> Stretch | None:
    """The one stretch that a text names; an open one ends with the run's ``steps``. None where it is not clear."""
    text = _SOURCE.sub("", text.strip())
    bounded, onward = _STRETCH.findall(text), _ONWARD.findall(text)
    if len(_ANY.findall(text)) > 1 or len(bounded) + len(onward) != 1:
        return None
    if bounded:
        first, last = int(bounded[0][0]), int(bounded[0][2])
        if bounded[0][1] == "/" and last != first + 1:
            return None
    elif steps is not None:
        first, last = int(next(filter(None, onward[0]))), steps
    else:
        return None
    if last < first:
        return None
    rest = _COUNT.sub(" ", _ONWARD.sub(" ", _STRETCH.sub(" ", text))).lower()
    words = frozenset(_WORD.findall(rest)) - _FILLING
    named = {_STATISTICS[word] for word in words if word in _STATISTICS}
    if len(named) > 1:
        return None
    return Stretch(first, last, next(iter(named), None), words - _STATISTICS.keys())
