"""``receipts merge``: the parts of many ranks, as one receipt."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base import files
from receipts.base.errors import InputError, Problem, UsageError
from receipts.cli import output
from receipts.cli.recover import blamed, check, failure_in

if TYPE_CHECKING:
    from receipts.emit.merge import Merged
    from receipts.emit.part_file import RankPart

EPILOG = """\b
Examples:
  receipts merge run.rank*.part.json -o run.json
  receipts merge run.rank*.part.json run.1f8e2a3c-4711.journal -o run.json
  torchrun --nproc-per-node 8 train.py; receipts merge out/*.part.json -o run.json

A rank that was killed leaves a journal instead of a part; give it along with the parts.
Exit codes: 0 every rank is there and all agree, 1 ranks disagree, 2 the parts are not of one launch, or the call is
wrong, 3 ranks are missing (--partial still writes the receipt)."""


@click.command("merge", epilog=EPILOG)
@click.argument("parts", nargs=-1, required=True, metavar="PART|JOURNAL…")
@click.option("--output", "-o", "path", required=True, metavar="FILE", help="Write here, - for standard output.")
@click.option("--partial", is_flag=True, help="Write a receipt even if ranks are missing.")
@click.option("--json", "as_json", is_flag=True, help="Print what was merged as JSON.")
def command(parts: tuple[str, ...], path: str, partial: bool, as_json: bool) -> int:
    """Merge the PARTS that the ranks of one launch wrote into one receipt.

    The receipt holds the memory of every chip, the slowest rank's time for every step, and how much the ranks differ.
    The same parts give the same bytes.
    """
    from receipts.publish.recorded import merged as page

    if path != "-":
        files.refuse_existing(path)
    merged = merge_files(_expanded(parts))
    raw = merged.text().encode()
    whole = not merged.missing
    if whole or partial:
        check(raw, path)
        if path == "-":
            sys.stdout.write(raw.decode())
        else:
            files.write(path, raw)
    written = path if whole or partial else None
    with contextlib.redirect_stdout(sys.stderr) if path == "-" else contextlib.nullcontext():
        run = {name: merged.tree["run"][name] for name in ("launch", "outcome")}
        problems = {"missing": list(merged.missing), "disagreements": list(merged.disagreements)}
        output.answer(as_json, {"written": written, **run, **problems}, lambda: page(merged, written))
    return 3 if merged.missing else 1 if merged.disagreements else 0


def _expanded(words: tuple[str, ...]) -> list[str]:
    """Files, and of folders the parts in them, with the journals of ranks that have no part there."""
    parts: list[str] = []
    for word in words:
        place = Path(word)
        if not place.is_dir():
            parts.append(word)
            continue
        inside = sorted(str(item) for item in (*place.glob("*.part.json"), *place.glob("*.journal")))
        if not inside:
            raise InputError(word, [Problem("", "no part and no journal lies in this folder")])
        parts += inside
    return list(dict.fromkeys(parts))


def merge_files(files: list[str]) -> Merged:
    """Parts and journals, merged. Raises UsageError with every file that cannot be read or does not belong to them."""
    from receipts.emit.merge import merge
    from receipts.emit.part_file import UnmergeableParts, load

    given: list[RankPart] = []
    problems: list[str] = []
    for name in files:
        try:
            part = load(name, blamed)
            _strict(part)
            given.append(part)
        except UnmergeableParts as error:
            problems += error.lines
        except OSError as error:
            problems.append(f"{name}: it cannot be read: {error.strerror or error}")
    if problems:
        raise UsageError("\n".join(problems))
    try:
        merged = merge(given)
    except UnmergeableParts as error:
        raise UsageError("\n".join(error.lines)) from None
    _read_again(merged)
    return merged


def _read_again(merged: Merged) -> None:
    """What the failing rank said, read by the engine's readers; its chip stays the one that the ranks tell."""
    failure, run = merged.tree.get("failure"), merged.tree["run"]
    if not failure or run["outcome"] not in ("oom", "crash"):
        return
    failure_kind = failure_in(str(failure.get("message", "")).encode())
    if failure_kind is None or not failure_kind.is_oom:
        return
    run["outcome"] = "oom"
    failure["class"] = failure_kind.class_
    for name in ("requested_bytes", "used_bytes", "free_bytes", "limit_bytes"):
        value = getattr(failure_kind, name)
        if value is not None:
            failure[name] = value


def _strict(part: RankPart) -> None:
    """Refuse a part that was changed on the way before it is merged. Raises InputError."""
    import json

    from receipts.emit.document import text

    tree = dict(part.receipt)
    memory = tree.get("memory")
    if isinstance(memory, dict) and isinstance(memory.get("chips"), list):
        # A part numbers devices where a receipt numbers chips.
        rows = [
            {"chip" if name == "device" else name: value for name, value in row.items()}
            for row in memory["chips"]
            if isinstance(row, dict)
        ]
        tree["memory"] = {**memory, "chips": rows}
    content = json.dumps(tree) if part.source.endswith(".json") else "".join(text(tree))
    check(content.encode(), part.source)
