"""What the caller of ingesting decides: the lane, the kind, leaves by hand, and which lanes there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


class Coupled(Protocol):
    """Axes that follow another one."""

    @property
    def then(self) -> tuple[str, ...]: ...


class LaneOptions(Protocol):
    """What ingesting has to know of a lane."""

    @property
    def name(self) -> str: ...
    @property
    def accelerators(self) -> tuple[str, ...]: ...
    @property
    def frameworks(self) -> tuple[str, ...]: ...
    @property
    def path(self) -> Mapping[str, tuple[str, ...]]: ...
    @property
    def postures(self) -> tuple[str, ...]: ...
    @property
    def compile_exceptions(self) -> tuple[str, ...]: ...
    @property
    def not_applicable(self) -> Mapping[str, str]: ...
    @property
    def unprinted(self) -> Mapping[str, str]: ...
    @property
    def witness(self) -> tuple[str, ...]: ...
    @property
    def couplings(self) -> Sequence[Coupled]: ...
    @property
    def evidence(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Options:
    """``settings`` are leaves that the caller states; they stand above whatever a file says.

    Without ``lane`` one of ``lanes`` is proposed by framework and accelerator.
    """

    lane: str | None = None
    kind: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    lanes: Sequence[LaneOptions] = ()
