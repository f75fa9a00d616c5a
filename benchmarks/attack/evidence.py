"""Evidence and receipts that somebody changed after they were read, verified: none of them is called the same."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.attack.forks import scratch
from benchmarks.attack.mutations import changed_bytes
from benchmarks.attack.outcome import Outcome, Tally, in_parts
from receipts.base.errors import InputError, StoreError
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import InputFile, gather
from receipts.ingest.leaves import OPEN, parts
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document, Parsed, parse
from receipts.receipt.parse import UNWRITTEN, sealed
from receipts.store.evidence import KeptFiles, files_beside
from receipts.workflows.evidence import Verified, verify

_AT_ONCE: Final = 250
# What no log has, stated as a person would.
_STATED: Final = {
    "run.launch": "attacked",
    "run.lane": "unlisted",
    "run.kind": "training",
    "run.outcome": "ok",
    "run.provenance": "measured",
    "run.started": "2026-03-02T09:00:00Z",
}
LANE: Final = Rulebook().lanes.of("unlisted")


class Base(NamedTuple):
    """A receipt, its file of evidence with digest, and the leaves that a reader read from it."""

    parsed: Parsed
    file: Path
    digest: str
    leaves: tuple[str, ...]


def base_of(file: Path) -> Base | None:
    """The receipt that ingest makes of a file; None where it makes none, or reads no leaf."""
    done = assemble(gather([InputFile(file, file.name)]), Options("unlisted", "training", _STATED, (LANE,)))
    try:
        parsed = parse(Document(sealed(done.raw), file.name))
    except InputError:
        return None
    listed = [entry for entry in parsed.receipt.evidence or () if entry.sha256 and entry.read]
    leaves = {path for entry in listed for path in entry.read or () if parts(path)[0] not in OPEN}
    leaves = {path for path in leaves if _value(json.loads(parsed.raw), path) is not None} - _STATED.keys()
    return Base(parsed, file, str(listed[0].sha256), tuple(sorted(leaves))) if leaves else None


def mutated_evidence(files: Sequence[Path], inputs: int, seed: int = 27) -> Outcome:
    """Verify so many receipts of which the file, the kept file, or a leaf was changed."""
    bases = [base for base in map(base_of, files) if base is not None]
    return in_parts(lambda part: _verify(bases, part, seed), inputs, _AT_ONCE, 900)


def _verify(bases: Sequence[Base], part: range, seed: int) -> int:
    tally = Tally()
    with scratch() as place:
        for number in part:
            draw, begun = random.Random(f"{seed} {number}"), time.process_time()
            base = draw.choice(bases)
            attack = draw.choice((_given, _kept, _leaf))
            try:
                end, faults = attack(base, Path(place), draw)
            except Exception as error:  # whatever it raises is a fault of the program
                end, faults = "raised", f"{type(error).__name__}: {error}"
            tally.add(end, time.process_time() - begun)
            if faults:
                tally.fault(f"evidence {number}, {base.file.name}: {faults}")
    return tally.close()


def _given(base: Base, place: Path, draw: random.Random) -> tuple[str, str]:
    """The file has other bytes than when its digest was taken."""
    raw, changed = base.file.read_bytes(), place / base.file.name
    changed.write_bytes(content := changed_bytes(raw, draw))
    done = verify(base.parsed, LANE, {base.digest: changed})
    changed.unlink()
    if content == raw:
        return "unchanged", "" if done.exit_code == 0 else f"unchanged bytes are {done.checks}"
    return "file", "" if done.exit_code and not _same(done, base.leaves) else "a changed file is the same"


def _kept(base: Base, place: Path, draw: random.Random) -> tuple[str, str]:
    """The packed file in the store's folder was changed."""
    kept: KeptFiles = files_beside(place / "s.sqlite")
    kept.put(base.file)
    (packed,) = (place / "s.sqlite.evidence").glob("*/*.gz")
    packed.write_bytes(changed_bytes(packed.read_bytes(), draw))
    try:
        with kept.file(base.digest) as plain:
            whole = plain.read_bytes() == base.file.read_bytes()
    except StoreError:
        return "damaged", ""
    finally:
        packed.unlink()
    # gzip's header holds a time and a name, which are not the file's.
    return "header", "" if whole else "changed bytes were handed out"


def _leaf(base: Base, _place: Path, draw: random.Random) -> tuple[str, str]:
    """Another value stands in a leaf that a reader read, and the document is sealed again."""
    tree, path = json.loads(base.parsed.raw), draw.choice(base.leaves)
    _change(tree, path, draw)
    if "recorded" in tree["run"]:
        tree["run"]["recorded"]["digest"] = UNWRITTEN
    try:
        parsed = parse(Document(sealed(json.dumps(tree).encode()), "changed"))
    except InputError:
        return "refused", ""
    done = verify(parsed, LANE, {base.digest: base.file})
    return "leaf", "" if done.exit_code == 1 else f"{path} was {_value(json.loads(base.parsed.raw), path)}"


def _same(done: Verified, leaves: Sequence[str]) -> bool:
    return any(item.word == "same" and item.what in leaves for item in done.checks)


def _value(tree: Any, path: str) -> Any:
    for key in parts(path):
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def _change(tree: dict[str, Any], path: str, draw: random.Random) -> None:
    *sections, last = parts(path)
    for key in sections:
        tree = tree[key]
    tree[last] = _other(tree[last], draw)


def _other(value: Any, draw: random.Random) -> Any:
    """Another value of the same kind, by more than any rounding."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * draw.choice((2, 3, 7)) + 1
    if isinstance(value, list) and value:
        at = draw.randrange(len(value))
        return [*value[:at], _other(value[at], draw), *value[at + 1 :]]
    if isinstance(value, dict) and value:
        key = draw.choice(sorted(value))
        return {**value, key: _other(value[key], draw)}
    if not value and not isinstance(value, str):
        return {"aten::other": 3} if isinstance(value, dict) else ["other"]
    return f"x{value[::-1]}"  # no other spelling of the same thing
