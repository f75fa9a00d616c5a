"""Which chips exchange with one another in an HLO program, and arrays by their extents."""

from __future__ import annotations

import math
import re
from typing import Final

_GROUPS: Final = re.compile(r"replica_groups=(?:\{\{([\d,]{1,4000})|\[(\d{1,9}),(\d{1,9})\]<=)")
# Since JAX 0.10: ``replica_groups=mesh['data'=4,'model'=2] {'model'}``.
_MESH: Final = re.compile(r"replica_groups=mesh\[([^\]]{1,1000})\] \{([^}]{0,1000})\}")
_AXIS: Final = re.compile(r"'([^']{1,100})'=(\d{1,9})")


def extents_of(dims: tuple[int, ...]) -> tuple[int, ...]:
    """An array by its extents, without their order and those of one."""
    return tuple(sorted(extent for extent in dims if extent > 1))


def group_size(text: str) -> int | None:
    """How many chips exchange with one another; None where the text does not say."""
    groups = _GROUPS.search(text)
    if groups is not None:
        return len(groups[1].split(",")) if groups[1] else int(groups[3])
    mesh = _MESH.search(text)
    if mesh is None:
        return None
    named = {word.strip(" '") for word in mesh[2].split(",")}
    return math.prod(int(size) for axis, size in _AXIS.findall(mesh[1]) if axis in named)
