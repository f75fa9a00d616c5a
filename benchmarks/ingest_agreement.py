"""How far the product reads logs and reports as a careful person did.

    python benchmarks/ingest_agreement.py --cases DIR [--only SOURCE] [--json]

Every sample below DIR that has a ``.json`` with a ``want`` block beside it is read by `receipts.ingest.evidence`,
put together by `receipts.ingest`, and judged by the rules on the path. Each wanted figure, observation and class counts
once. Exit 0 when every bar holds, 1 when one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
# Last, and never first: statistics.py lies here as well.
sys.path[:] = [*(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)]

from ingest_answers import Answers, answers

from receipts.receipt.names import spelled

PARTS = ("values", "witnesses", "failures")
BARS = {"values": 0.98, "witnesses": 0.98, "failures": 0.98}
EXACT = 1e-6
# Names of the want blocks, and those of the receipt.
ALIASES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Item:
    """One wanted thing and what the product says of it."""

    case: str
    source: str
    part: str
    what: str
    wanted: Any
    got: Any
    right: bool


def equal(wanted: Any, got: Any) -> bool:
    """Whether the product's answer is the wanted one: None for unknown, numbers to 1e-6, lists as sets."""
    if wanted is None or got is None:
        return wanted is got
    if isinstance(wanted, bool) or isinstance(got, bool):
        return bool(wanted == got)
    if isinstance(wanted, int | float) and isinstance(got, int | float):
        # Bytes and counts that come out of a printed decimal are rounded by whoever wrote the wanted one.
        slack = 1.0 if isinstance(wanted, int) and abs(wanted) > 1e6 else 0.0
        return abs(wanted - got) <= max(EXACT * abs(wanted), slack) or (wanted != wanted and got != got)
    if isinstance(wanted, list | tuple):
        return isinstance(got, list | tuple | set) and set(wanted) == set(got)
    return str(wanted) == str(got)


def score(case: str, want: Mapping[str, Any], got: Answers) -> Iterator[Item]:
    """Every wanted thing of one case."""
    source = str(want.get("source"))

    def item(part: str, what: str, wanted: Any, found: Any) -> Item:
        return Item(case, source, part, what, wanted, found, equal(wanted, found))

    yield Item(case, source, "values", "source", source, sorted(got.sources), source in got.sources)
    for text in got.broken:
        yield item("values", "defects", None, text)
    for step in want.get("steps", ()):
        for name, wanted in step.items():
            if name != "step":
                yield item("values", f"steps[{step['step']}].{name}", wanted, got.step(step["step"], name))
    for name in ("n_steps", "diverged", "memory_unavailable"):
        if name in want:
            yield item("values", name, want[name], getattr(got, name))
    if "not_steady" in want:
        yield item("values", "not_steady", want["not_steady"], got.not_steady)
    for path, wanted in want.get("config", {}).items():
        yield item("values", path, wanted, got.config.get(ALIASES.get(path, path)))
    rows = want.get("memory", [])
    for at, row in enumerate(rows):
        # Rows that nothing tells apart but their order are matched in order.
        named = (row.get("chip"), row.get("step"))
        alike = [place for place, other in enumerate(rows) if (other.get("chip"), other.get("step")) == named]
        order = alike.index(at) if len(alike) > 1 else None
        for name, wanted in row.items():
            if name not in ("chip", "step"):
                yield item("values", f"memory[{at}].{name}", wanted, got.memory(row, name, order, len(alike)))
    for name, wanted in want.get("compile", {}).items():
        yield item("values", f"compile.{name}", wanted, got.compile.get(name))
    for name, wanted in want.get("metrics", {}).items():
        if isinstance(wanted, Mapping):
            for key, figure in wanted.items():
                yield item("values", f"metrics.{name}.{key}", figure, got.timing(name, key))
        else:
            yield item("values", f"metrics.{name}", wanted, got.counts.get(name))
    for name, wanted in want.get("witness", {}).items():
        if name == "counts":
            for key, count in wanted.items():
                yield item("witnesses", f"counts.{key}", count, got.counts.get(key, 0 if got.known(key) else None))
        else:
            yield item("witnesses", name, spelled(f"path.witnessed.{name}", wanted), got.witness(name))
    for name, wanted in want.get("failure", {}).items():
        yield item("failures", name, wanted, got.failure(name))


def cases(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Samples with their want blocks, in the order of their names."""
    for place in sorted(folder.rglob("*.json")):
        try:
            found = json.loads(place.read_bytes())
        except (ValueError, UnicodeDecodeError):
            continue
        if not isinstance(found, dict) or not isinstance(found.get("want"), dict):
            continue
        samples = [item for item in sorted(place.parent.glob(f"{place.stem}.*")) if item != place]
        if samples:
            yield samples[0], found["want"]


def run(folder: Path, only: str | None = None) -> list[Item]:
    """Every item of every case below ``folder``."""
    found: list[Item] = []
    for sample, want in cases(folder):
        if only is None or want.get("source") == only:
            name = str(sample.relative_to(folder))
            found.extend(score(name, want, answers(sample, want.get("intended") or {}, str(want.get("source")))))
    return found


def summary(items: list[Item]) -> dict[str, Any]:
    """The figures that the bars speak of, by part and by source, and everything that is wrong."""
    by_source: dict[str, Counter[str]] = defaultdict(Counter)
    for item in items:
        by_source[item.source]["n"] += 1
        by_source[item.source]["right"] += item.right
    return {
        **{
            part: {
                "n": sum(item.part == part for item in items),
                "right": sum(item.part == part and item.right for item in items),
            }
            for part in PARTS
        },
        "by_source": {name: dict(count) for name, count in sorted(by_source.items())},
        "wrong": [
            {"case": item.case, "part": item.part, "what": item.what, "wanted": item.wanted, "got": item.got}
            for item in items
            if not item.right
        ],
    }


def _share(count: Mapping[str, int]) -> str:
    return f"{count['right']:>6} of {count['n']:<6} {count['right'] / count['n']:7.2%}" if count["n"] else "     –"


def main(arguments: list[str] | None = None) -> int:
    """Score, print, and say by the exit code whether every bar holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=Path, required=True, help="folder of samples, each with a .json beside it")
    parser.add_argument("--only", metavar="SOURCE", help="only cases of this source")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    chosen = parser.parse_args(arguments)
    if not chosen.cases.is_dir():
        parser.error(f"{chosen.cases} is no folder")
    found = summary(run(chosen.cases, chosen.only))
    if chosen.json:
        print(json.dumps(found, indent=1, default=str))
    else:
        for name, count in found["by_source"].items():
            print(f"{name:<20} {_share(count)}")
        for wrong in found["wrong"]:
            print(f"  {wrong['case']}: {wrong['what']}: wanted {wrong['wanted']!r:.90}, got {wrong['got']!r:.90}")
        for part in PARTS:
            print(f"{part:<20} {_share(found[part])}   bar {BARS[part]:.0%}")
    held = all(found[part]["right"] >= BARS[part] * found[part]["n"] for part in PARTS)
    return 0 if held and any(found[part]["n"] for part in PARTS) else 1


if __name__ == "__main__":
    sys.exit(main())
