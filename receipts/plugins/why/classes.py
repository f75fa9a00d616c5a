"""Classes of work: what an operator, a kernel or a span of the host is, by the rows of ``classes.toml``.

The launching operator comes before the name of the kernel: softmax kernels of an attention that was computed by
matrix products are attention, which only the operator can tell. A name is read without its template arguments, since
``{lambda()#1}`` is no LAMB optimizer.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, Literal

from receipts.ingest.cuda_kernels import classify

Source = Literal["op", "name", "other"]
GRAPH: Final = "CUDA graph"
GAP: Final = "gap, cause not in the trace"
QUEUED: Final = "queued, not started"
LAUNCH: Final = "launch-bound"
SYNC: Final = "after a sync"
DATA: Final = "data wait"
COMPILE: Final = "compile"
OUTSIDE: Final = "outside any operator"
OTHER: Final = "other"
_MAX_NAME: Final = 2048
_WAY: Final = re.compile(r"\b(?:Copy)?(H|D)(?:ost|evice)?(?:2|[tT]o)(H|D)")
# What the kernel's own table of path facts says surely; it knows no norm, copy, reduction and optimizer.
_SURE: Final = {
    "attention": "attention",
    "gemm": "gemm",
    "communication": "communication",
    "overlap": "communication",
    "dispatch": "communication",
    "ssm": "ssm",
    "softmax": "norm/softmax",
    "permute": "moe",
}


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    pattern: re.Pattern[str]
    functors: re.Pattern[str] | None
    when: str  # empty, *scope* or *alone*


@dataclass(frozen=True, slots=True)
class Classes:
    """The rows of the table, and the order in which classes own a nanosecond."""

    operators: tuple[_Row, ...]
    kernels: tuple[_Row, ...]
    host: tuple[_Row, ...]
    kinds: dict[str, tuple[str, ...]]
    rank: dict[str, int]


def table() -> dict[str, Any]:
    """The table as it is written."""
    return tomllib.loads(Path(__file__).with_name("classes.toml").read_text())


@cache
def classes() -> Classes:
    """The table, ready for use."""
    raw = table()

    def rows(section: str) -> tuple[_Row, ...]:
        return tuple(
            _Row(
                item["class"],
                re.compile("|".join(item["names"])),
                re.compile("|".join(item["functors"])) if "functors" in item else None,
                next((when for when in ("scope", "alone") if item.get(when)), ""),
            )
            for item in raw[section]
        )

    kinds = {name: tuple(items) for name, items in raw["order"].items()}
    ranked = dict.fromkeys(name for kind in ("compute", "communication", "memcpy", "waiting") for name in kinds[kind])
    return Classes(
        rows("operators"), rows("kernels"), rows("host"), kinds, {name: at for at, name in enumerate(ranked)}
    )


def kind_of(name: str) -> str:
    """*compute*, *communication*, *memcpy* or *idle*."""
    kinds = classes().kinds
    return next((kind for kind in ("compute", "communication", "memcpy") if name in kinds[kind]), "idle")


def place_of(name: str) -> int:
    """Where a class stands in a table: work in the order of owning, then what kept the device idle."""
    order = [*classes().rank, *(idle for idle in classes().kinds["idle"] if idle not in classes().rank)]
    return order.index(name)


@lru_cache(maxsize=1 << 14)
def base_name(name: str) -> str:
    """A kernel's name without return type, arguments and template arguments."""
    text = name[:_MAX_NAME].removeprefix("void ").replace("(anonymous namespace)", "anonymous")
    depth, kept = 0, []
    for sign in text:
        if sign == "<":
            depth += 1
        elif sign == ">":
            depth = max(0, depth - 1)
        elif sign == "(" and depth == 0:
            break
        elif depth == 0:
            kept.append(sign)
    return "".join(kept).strip()


@lru_cache(maxsize=1 << 14)
def of_kernel(name: str) -> str:
    """The class of a kernel by its name alone; *other* where the name does not say."""
    base = base_name(name)
    sure = _SURE.get(classify(name).work)
    if sure == "communication":
        return sure
    functors = name[:_MAX_NAME][len(base) :].replace("{lambda", "{")
    for row in classes().kernels:
        if sure is not None and row.name != "optimizer":
            break
        if row.pattern.search(base) or (row.functors is not None and row.functors.search(functors)):
            return row.name
    return sure or OTHER


@cache
def _of_operator(name: str, when: str = "") -> str:
    return next((row.name for row in classes().operators if row.when == when and row.pattern.search(name)), "")


def of_chain(chain: Sequence[str]) -> str:
    """The class that operators give, from the outermost to the innermost name; empty where none says."""
    for name in chain:
        if scope := _of_operator(name, "scope"):
            return scope
    for name in reversed(chain):
        if plain := _of_operator(name):
            return plain
        if name.startswith("triton_") and (fused := of_kernel(name)) != OTHER:
            return fused
    return ""


def of_work(kind: str, name: str, chain: Sequence[str]) -> tuple[str, Source]:
    """The class of an activity of a device, and what decided it."""
    if kind == "g":
        return GRAPH, "other"
    if kind == "y" or name.startswith("__amd_rocclr_copy"):
        way = _WAY.search(name)
        return f"memcpy {way[1]}2{way[2]}" if way and {way[1], way[2]} != {"H"} else "memcpy D2D", "name"
    if kind == "s":
        return "copy", "name"
    named = of_kernel(name)
    if named == "communication":
        return named, "name"
    operator = of_chain(chain)
    if operator and kind == "x":
        return operator, "op" if " " in chain[-1] else "name"
    if operator and kind_of(operator) == "compute":
        return operator, "op"
    return named, "other" if named == OTHER else "name"


def of_host_work(chain: Sequence[str]) -> tuple[str, Source]:
    """The class of an operator of the host that computes there, and what decided it."""
    operator = of_chain(chain) or (_of_operator(chain[-1], "alone") if chain else "")
    return (operator, "op") if operator else (OTHER, "other")


@cache
def host_kind(name: str) -> str:
    """What a span of the host explains of an idle device; empty for one that explains nothing."""
    if _of_operator(name, "scope") == DATA:
        return DATA
    return next((row.name for row in classes().host if row.pattern.search(name)), "")
