"""What putting files together gives, beside what it gave before: every leaf, contradiction and remark.

    python -m benchmarks.ingest_merging FOLDER --state FILE

Every file of FOLDER is read once. Then fixed groups of them are put together: each file alone, each run's folder, pairs
and triples that a seed draws, files beside a receipt that a file gave, and files with settings by hand. The first time,
FILE is written; afterwards the groups are compared with it and what moved is printed. ``--write`` keeps the new state.

`ingest_agreement` scores what readers read, a file at a time. Of five merge rules broken on purpose four left all of
its answers right, and so it does not guard this. Each group of several files is put together in reverse, too: the order
in which people name files decides nothing. Exit 0 where nothing moved and no order decides, else 1.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.ingest.assembly import REQUIRED, Ingested, assemble
from receipts.ingest.draft import Options, receipt_file
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.files import gather, given
from receipts.judging.rulebook import Rulebook

SEED: Final = 50
PAIRS, TRIPLES, BESIDE, SET = 1200, 600, 500, 300
MAX_BYTES: Final = 30 << 20
MAX_SHOWN: Final = 100  # characters of a value that a state keeps
SETTINGS: Final[Mapping[str, Any]] = {
    "parallelism.tensor": 2,
    "batch.micro_batch": 4,
    "hardware.accelerator": "h100-sxm",
    "path.intended.attention": "te_fused",
    "compile.posture": "eager",
}
State = dict[str, str]  # of one group, by what it is said of


class Group(NamedTuple):
    """Files that are put together, by a name that stays the same."""

    name: str
    files: tuple[FileEvidence, ...]
    settings: Mapping[str, Any]


def evidence(folder: Path) -> dict[str, FileEvidence]:
    """Every file of a folder in which a reader knows something, by its name there."""
    files: dict[str, FileEvidence] = {}
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.stat().st_size <= MAX_BYTES)
    for path in paths:
        with given([str(path)], unpack=False) as (items, _):
            (file,) = gather(items)
        if file.readings and file.readings[0].source != "receipt":
            files[path.relative_to(folder).as_posix()] = file
    return files


def groups(files: Mapping[str, FileEvidence], place: Path) -> Iterator[Group]:
    """The groups, always the same ones of the same files; receipts that others are put beside are kept at a place."""
    draw, names = random.Random(SEED), sorted(files)
    yield from (Group(name, (files[name],), {}) for name in names)
    folders = defaultdict(list)
    for name in names:
        folders[name.rpartition("/")[0]].append(files[name])
    yield from (Group(f"{name}/", tuple(own), {}) for name, own in folders.items() if 1 < len(own) <= 20)
    for count, size in ((PAIRS, 2), (TRIPLES, 3)):
        for _ in range(count):
            drawn = draw.sample(names, size)
            yield Group(" + ".join(drawn), tuple(files[name] for name in drawn), {})
    for number in range(BESIDE):
        base, *others = draw.sample(names, draw.choice((2, 2, 3)))
        path = place / f"{number}.json"
        path.write_bytes(assemble([files[base]], Options(settings=REQUIRED)).raw)
        receipt = receipt_file(path, "receipt.json")
        if receipt is not None:
            yield Group(f"({base}) + {' + '.join(others)}", (receipt, *(files[name] for name in others)), {})
    for _ in range(SET):
        drawn = draw.sample(names, 2)
        yield Group(f"--set {' + '.join(drawn)}", tuple(files[name] for name in drawn), SETTINGS)


def state(found: Ingested) -> State:
    """What is said of every leaf, with its place; contradictions, and remarks."""
    values = {path: _short(value) for path, value in _leaves(found.tree)}
    values |= {
        f"{item.path} from": f"{item.where} by {item.source}" for item in found.leaves if item.path != "evidence"
    }
    for item in found.contradictions:
        values[f"contradiction {item.path}: {item.what}"] = item.stands
    for message in found.messages:
        values[f"{message.kind} {message.where}: {message.text}"] = ""
    return {_short(name): value for name, value in values.items()}


def _leaves(node: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in node.items():
        path = f"{before}{name}"
        if path in ("run.recorded", "notes"):
            continue
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{path}.")
        else:
            yield path, value


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… {sha256(text.encode()).hexdigest()[:12]}"


def moved(before: State, after: State) -> Iterator[str]:
    """Each thing that is said otherwise than before."""
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name}: {before.get(name, 'absent')} -> {after.get(name, 'absent')}"


def main() -> int:
    """Put together, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ingest_merging")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--state", type=Path, required=True, help="what every group gave before")
    parser.add_argument("--write", action="store_true", help="keep what they give now")
    parser.add_argument("--limit", type=int, default=40, help="groups that are shown at most")
    options = parser.parse_args()
    lanes = Rulebook().lanes
    known = tuple(lanes.get(name) for name in lanes.names())
    files = evidence(options.folder)
    now: dict[str, State] = {}
    ordered: list[str] = []
    several = 0
    with tempfile.TemporaryDirectory() as folder:
        for group in groups(files, Path(folder)):
            chosen = Options(settings=group.settings, lanes=known)
            found = assemble(group.files, chosen)
            now[group.name] = state(found)
            if len(group.files) > 1:
                several += 1
                if assemble(group.files[::-1], chosen).raw != found.raw:
                    ordered.append(group.name)
    leaves = sum(len(item) for item in now.values())
    print(f"{len(files)} files, {len(now)} groups, {leaves:,} leaves, places, contradictions and remarks")
    print(f"the order of the files decides in {len(ordered)} of {several} groups: {', '.join(ordered[:3])}")
    if options.write or not options.state.exists():
        options.state.write_bytes(gzip.compress(json.dumps(now).encode(), mtime=0))
        return int(bool(ordered))
    return int(_compared(json.loads(gzip.decompress(options.state.read_bytes())), now, options.limit) or bool(ordered))


def _compared(before: Mapping[str, State], now: Mapping[str, State], limit: int) -> int:
    """Print what moved; how many groups did."""
    different = {name: lines for name in now if (lines := list(moved(before.get(name, {}), now[name])))}
    kinds = Counter(line.partition(":")[0].partition(" ")[0] for lines in different.values() for line in lines)
    print(f"{len(different)} groups moved: {', '.join(f'{name} {count}' for name, count in kinds.most_common(20))}")
    for name, lines in list(different.items())[:limit]:
        print(name, *(f"    {line}" for line in lines[:12]), sep="\n")
    return len(different)


if __name__ == "__main__":
    sys.exit(main())
