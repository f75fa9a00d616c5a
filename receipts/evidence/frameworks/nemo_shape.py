"""A printed line of NeMo learnt once: its keys in order as one pattern, so that lines like it are read quickly."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_HEAD: Final = r"Training epoch \d{1,9}, iteration \d{1,12}/\d{1,12}"


@dataclass(frozen=True, slots=True)
class Shape:
    """Groups for the global step, and for each figure that is kept under its field's name."""

    pattern: re.Pattern[str]
    order: tuple[int, ...]
    names: tuple[str, ...]

    def read(self, text: str) -> tuple[int, dict[str, float]] | None:
        """Step and figures of a line; None where it is of another shape, or a figure is zero or not finite."""
        at = text.find("Training epoch ")
        match = self.pattern.match(text, at) if at >= 0 else None
        if match is None:
            return None
        step, *words = match.group(*self.order)
        try:
            figures = list(map(float, words))
        except ValueError:
            return None
        if 0.0 in figures or not math.isfinite(sum(figures)):
            return None
        return int(step), dict(zip(self.names, figures, strict=True))


def learn(pairs: Mapping[str, str], fields: Mapping[str, str], refused: frozenset[str]) -> Shape | None:
    """The shape of a line by its keys in order; None where it has no step, or a key that must be looked at."""
    if "global_step" not in pairs or refused & set(pairs) or "reduced_train_loss" not in pairs:
        return None
    parts, names = [_HEAD], ["step"]
    for key in pairs:
        if key == "global_step":
            parts.append(rf"{re.escape(key)}: (?P<step>\d{{1,15}})(?:\.0)?")
        elif key in fields and fields[key] not in names:
            names.append(fields[key])
            parts.append(rf"{re.escape(key)}: (?P<{fields[key]}>[^\s|]{{1,30}})")
        else:
            parts.append(rf"{re.escape(key)}: [^\s|]{{1,40}}")
    pattern = re.compile(r" \| ".join(parts) + r"\s*$")
    return Shape(pattern, tuple(pattern.groupindex[name] for name in names), tuple(names[1:]))
