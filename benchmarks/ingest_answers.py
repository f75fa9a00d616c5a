"""What the product says of one sample, in the words of the want blocks. Beside ``ingest_agreement.py``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import FileEvidence, read
from receipts.ingest.reading import MemoryRow, Reading
from receipts.ingest.scan import DEFECT
from receipts.judging.rule import Case
from receipts.judging.rulebook import builtin
from receipts.judging.verdict import Level
from receipts.metrics import Launch
from receipts.receipt import Document, parse

CODES = ("R202", "R302", "R303", "R304", "R307", "R309")
LEFT = ("R302", "R304", "R307", "R309")


@dataclass
class Answers:
    """The readings of one file as one answer. ``offenses`` are the codes of rules that it breaks."""

    source: str
    evidence: FileEvidence
    offenses: frozenset[str] = frozenset()
    silent: bool = True
    seen: Mapping[str, str] = field(default_factory=dict)
    late: int | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The readings, that of the wanted source first."""
        return tuple(sorted(self.evidence.readings, key=lambda item: item.source != self.source))

    @property
    def sources(self) -> set[str]:
        """What the file was taken for."""
        return {item.source for item in self.readings}

    @cached_property
    def stepping(self) -> Reading | None:
        """The reading that knows the steps."""
        return next((item for item in self.readings if len(item.steps)), None)

    def step(self, step: int, name: str) -> float | None:
        """One figure of one step."""
        return self.stepping.steps.get(step, name) if self.stepping else None

    @property
    def n_steps(self) -> int | None:
        """Distinct steps."""
        return len(self.stepping.steps) if self.stepping else None

    @property
    def broken(self) -> list[str]:
        """What readers say that broke on this file."""
        return [remark.text for item in self.readings for remark in item.remarks if DEFECT in remark.text]

    @property
    def not_steady(self) -> list[int]:
        """Steps that stay out of a steady window."""
        return sorted({step for item in self.readings for step in item.not_steady})

    @property
    def diverged(self) -> bool | None:
        """Whether the file shows a divergence."""
        said = [item.diverged for item in self.readings if item.diverged is not None]
        return any(said) if said else None

    @property
    def memory_unavailable(self) -> bool | None:
        """Whether the file says that memory cannot be had."""
        return any(item.memory_unavailable is not None for item in self.readings)

    @property
    def config(self) -> dict[str, Any]:
        """Stated leaves, by path."""
        return {path: stated.value for item in reversed(self.readings) for path, stated in item.stated.items()}

    def memory(self, wanted: Mapping[str, Any], name: str, order: int | None = None, alike: int = 1) -> int | None:
        """A figure of the wanted chip and step; peaks over the rows where no step is asked for.

        ``order`` is the place among ``alike`` wanted rows that name the same chip and step.
        """
        rows = [row for item in self.readings for row in item.memory if row.chip == wanted.get("chip")]
        if "step" in wanted:
            rows = [row for row in rows if row.step == wanted["step"]]
        if order is not None and len(rows) == alike:
            rows = [rows[order]]
        figures = [figure for row in rows if (figure := getattr(row, name)) is not None]
        if not figures:
            return None
        return max(figures) if name.startswith("peak") else figures[-1]

    @property
    def rows(self) -> list[MemoryRow]:
        """All rows of memory."""
        return [row for item in self.readings for row in item.memory]

    @property
    def compile(self) -> dict[str, Any]:
        """What compiling did."""
        names = {
            "compiles": "compiles",
            "cache_hits": "cache_hits",
            "cache_misses": "cache_misses",
            "compile_seconds": "seconds",
        }
        found: dict[str, Any] = {}
        for name, ours in names.items():
            said = [getattr(item.compile, ours) for item in self.readings]
            found[name] = next((figure for figure in said if figure is not None), None)
        found["recompiles_after_warmup"] = self.late
        return found

    @property
    def counts(self) -> dict[str, int]:
        """Counters of all readings."""
        return {name: count for item in reversed(self.readings) for name, count in item.counters.items()}

    def known(self, name: str) -> bool:
        """Whether the file is whole, so that a counter that is not in it is zero."""
        return any(item.complete or item.ended for item in self.readings)

    def timing(self, name: str, key: str) -> float | None:
        """Samples or seconds of a timer."""
        for item in self.readings:
            if name in item.timings:
                return getattr(item.timings[name], key, None)
        return None

    def witness(self, name: str) -> Any:
        """Verdict, offenses, or a leaf of the witnessed path."""
        if name == "offences":
            return sorted(self.offenses)
        if name == "verdict":
            return "left" if self.offenses & set(LEFT) else "silent" if self.silent else "on_path"
        return self.seen.get(name)

    def failure(self, name: str) -> Any:
        """A leaf of the first failure; a text without one is no failure."""
        found = [failure for item in self.readings for failure in item.failures]
        first = next((item for item in found if item.is_oom), found[0] if found else None)
        if first is None:
            return {"is_oom": False, "class": "not_oom", "phase": "unknown"}.get(name)
        return getattr(first, {"class": "class_"}.get(name, name))


# What the want blocks call the runtime of torch_xla is shown by the operators that it executed.
SHOWN_BY = {"runtime": ("fallbacks",)}
# Who means to run on torch_xla means lazy tensors: operators that are compiled one by one have left that.
LAZY = "xla_lazy"
NEUTRAL = replace(
    builtin().lanes.get("unlisted"),
    never_witnessed=False,
    witness=("fallbacks", "host_transfers_per_step"),
)
REQUIRED = {
    "run.launch": "sample",
    "run.lane": "unlisted",
    "run.kind": "training",
    "run.outcome": "ok",
    "run.provenance": "quoted",
    "run.started": "2026-01-01T00:00:00Z",
}


def answers(sample: Path, intended: Mapping[str, str], source: str) -> Answers:
    """Read one sample, make a receipt of it with what it was meant to be, and let the rules on its path judge.

    The rules are asked whatever else the sample leaves open: a lone report has no batch and no steps.
    """
    evidence = read(sample)
    asked = {f"path.intended.{name}": value for name, value in intended.items() if name not in SHOWN_BY}
    if intended.get("runtime") == "xla":
        asked["compile.posture"] = LAZY
    parsed = parse(Document(assemble([evidence], Options(settings={**REQUIRED, **asked})).raw, sample.name))
    case = Case(Launch(parsed, NEUTRAL), NEUTRAL)
    rules = {item.code: item for item in builtin().rules.rules}
    offenses = {code for code in CODES for offense in rules[code].judge(case) if offense.level is not Level.OPEN}
    path = parsed.receipt.path
    witnessed = path.witnessed if path is not None else None
    seen = {
        name: _one(name, value, intended.get(name))
        for name in ("attention", "gemm", "sharding", "dispatch", "ssm")
        if (value := getattr(witnessed, name, None)) is not None
    }
    shown_by = [leaf for name in intended for leaf in SHOWN_BY.get(name, (name,))] or ["attention"]
    silent = all(getattr(witnessed, leaf, None) is None for leaf in shown_by)
    return Answers(
        source, evidence, frozenset(offenses), silent, seen, parsed.stated.get("compile.compiles_after_warmup")
    )


def _one(leaf: str, value: str, intended: str | None) -> str:
    """Of several that were seen, the one that was not meant. A GEMM counts by its type: `xla_int8` is int8."""
    names = [name.rpartition("_")[2] if leaf == "gemm" else name for name in value.split("+")]
    return next((name for name in names if intended is not None and name != intended), names[0])
