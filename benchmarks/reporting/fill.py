"""A store of a year for the weekly report: written in bulk, row for row as `receipts submit` writes it.

Each state of the code runs one grid, five launches a point, in three lanes; states follow one another evenly over 52
weeks, however many they are. One launch of every point and slot is read and judged; the others differ from it in name,
times and code alone, so that its columns, its verdict and, but for `code`, its axes are theirs.
"""

from __future__ import annotations

import hashlib
import json
import random
import statistics
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert, text

from receipts.axes.configuration import Configuration, configuration
from receipts.axes.shape import Signature
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.rulebook import Rulebook
from receipts.metrics import Launch
from receipts.receipt import Document, parse
from receipts.store import Store, index, open_store
from receipts.store.entries import CODEC, VerdictColumns, pack, promoted, unpack
from receipts.store.query import outcomes
from receipts.store.tables import documents, placements, receipts, subjects, supersessions, verdicts
from receipts.store.verdicts import verdict_row

WEEKS: Final = 52
BEGIN: Final = datetime(2025, 1, 6, tzinfo=UTC)  # a Monday
SLOTS: Final = 5  # launches of one point in one state of the code
STEPS, CHIPS = 120, 8
BASES: Final = {"cpu-torch": "base.json", "nvidia-megatron": "base-megatron.json", "tpu-torch-xla": "base-tpu.json"}
_CASES: Final = Path(__file__).resolve().parents[2] / "tests" / "cases"
_POINTS: Final = tuple(product((1, 2, 4, 8), (1024, 2048, 4096), (0, 1), (0, 1)))
_ID: Final = "5ca1ef" + "0" * 58
_WORDS: Final = {
    "launch": "5ca1e000-0000-4000-8000-00000000000a",
    "label": "bench-label-0000000",
    "started": "2026-03-02T09:01:01+00:00",
    "finished": "2026-03-02T09:05:21+00:00",
    "commit": "5ca1ec0",
    "imported": "5ca1e1" + "0" * 58,
}
LASTS: Final = timedelta(minutes=4, seconds=20)


class Kind(NamedTuple):
    """A launch of a point and slot, with words in place of what its repetitions in other states have of their own."""

    text: str
    row: dict[str, Any]
    verdict: dict[str, Any]
    said: str
    configuration: Configuration
    signature: Signature | None
    gone: bool


def fill(url: str, count: int) -> None:
    """Make a store of about ``count`` receipts; states of the code are whole, the last one is cut."""
    kinds = list(_kinds())
    with open_store(url) as store:
        _bulk(store, kinds, count)


def _bulk(store: Store, kinds: Sequence[Kind], count: int) -> None:
    engine = store.database.engine
    sqlite = engine.dialect.name == "sqlite"
    states = -(-count // len(kinds))
    with engine.connect() as connection:
        if sqlite:
            connection.exec_driver_sql("COMMIT")
            connection.exec_driver_sql("PRAGMA synchronous = OFF")
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        for state in range(states):
            _state(connection, kinds, state, timedelta(weeks=WEEKS) / states, count)
            connection.commit()
        if sqlite:
            connection.execute(text("PRAGMA optimize"))
        else:
            connection.execute(text("ANALYZE"))
            connection.commit()


def _state(connection: Connection, kinds: Sequence[Kind], state: int, lasts: timedelta, count: int) -> None:
    words = {"commit": f"{state:07x}", "imported": hashlib.sha256(f"state {state}".encode()).hexdigest()}
    first = state * len(kinds)
    ran = [item.configuration for item in kinds]
    coded = {item.whole: _coded(item, words["imported"]) for item in ran}
    numbers = index.numbers(connection, coded.values())
    tables: dict[Any, list[dict[str, Any]]] = {
        table: [] for table in (receipts, documents, verdicts, subjects, placements, outcomes.signatures)
    }
    gone = []
    for at, kind in enumerate(kinds[: count - first]):
        seq = first + at + 1
        started = (BEGIN + state * lasts + at * (lasts - LASTS) / len(kinds)).replace(microsecond=0)
        own = {
            **words,
            "launch": str(uuid.UUID(int=seq)),
            "label": f"bench-{seq:013d}",
            "started": started.isoformat(),
            "finished": (started + LASTS).isoformat(),
        }
        raw = kind.text
        for name, word in _WORDS.items():
            raw = raw.replace(word, own[name])
        body = raw.encode()
        receipt = hashlib.sha256(body).hexdigest()
        row = {**kind.row, "seq": seq, "generation": 0, "id": receipt, "started": started, "finished": started + LASTS}
        row |= {"launch": own["launch"], "label": own["label"], "submitted_at": started + 2 * LASTS}
        tables[receipts].append(row)
        tables[documents].append({"receipt": seq, "codec": CODEC, "size": len(body), "body": pack(body)})
        said = kind.said.replace(_ID, receipt).replace(_WORDS["label"], own["label"]).encode()
        tables[verdicts].append({**kind.verdict, "seq": seq, "judged_at": row["submitted_at"], "body": pack(said)})
        tables[subjects].append({"verdict": seq, "position": 0, "side": "receipt", "receipt": seq})
        where = numbers[coded[kind.configuration.whole].whole]
        tables[placements].append({"receipt": seq, "configuration": where})
        if kind.signature is not None:
            name = hashlib.sha256(f"{kind.signature.signature} {state}".encode()).hexdigest()
            made = kind.signature._replace(signature=name)
            tables[outcomes.signatures].append(outcomes.signature_row(seq, row["outcome"], made))
        if kind.gone:
            gone.append({"receipt": receipt, "successor": None, "reason": "its clock was wrong", "at": started})
    for table, rows in tables.items():
        if rows:
            connection.execute(insert(table), rows)
    if gone:
        connection.execute(insert(supersessions), gone)


def _coded(of: Configuration, imported: str) -> Configuration:
    """The configuration with other imported files."""
    from receipts.axes.catalogue import compact_json
    from receipts.axes.configuration import axis_part

    return of.with_("code", axis_part("code", compact_json({"code.imported_digest": imported})))


def _kinds() -> Iterator[Kind]:
    rulebook = Rulebook()
    for lane, file in BASES.items():
        base = (_CASES / file).read_text(encoding="utf-8")
        for at, point in enumerate(_POINTS):
            for slot in range(SLOTS):
                if at == len(_POINTS) - 1 and slot:
                    continue  # it does not fit, and is tried once a state
                yield _kind(json.loads(base), lane, point, slot, rulebook, failed=at == len(_POINTS) - 1)


def _kind(
    tree: dict[str, Any], lane: str, point: tuple[int, int, int, int], slot: int, rulebook: Rulebook, *, failed: bool
) -> Kind:
    micro, length, first, second = point
    draw = random.Random(f"{lane} {point} {slot}")
    tree["run"] |= {name: _WORDS[name] for name in ("launch", "label", "started", "finished")}
    tree["code"] |= {"commit": _WORDS["commit"], "imported_digest": _WORDS["imported"], "dirty": False}
    for name, value in (("BENCH_FIRST", first), ("BENCH_SECOND", second)):
        tree["flags"][name] = {"value": value, "before_runtime": True}
    _spread(tree, lane, micro, length)
    if failed:
        tree["run"] |= {"outcome": "oom", "exit_code": 1}
        tree["failure"] = {"phase": "compile", "class": "compile_hbm", "message": "ran out of memory while compiling"}
        del tree["measurement"], tree["memory"]
    else:
        _measured(tree, point, draw)
    if point == (1, 1024, 1, 1) and slot == 0 and "path" in tree:
        tree["path"]["witnessed"]["attention"] = "math"
    raw = json.dumps(tree, separators=(",", ":"))
    parsed = parse(Document(raw.encode(), lane))
    launch = Launch(parsed, rulebook.lanes.of(lane))
    verdict = judge_receipt(parsed, launch.lane, rulebook.rules, Facts(), launch)
    now = BEGIN
    packed = verdict_row(verdict, now)
    said = unpack(packed["codec"], packed["body"], "verdict").decode().replace(parsed.id, _ID)
    return Kind(
        text=raw,
        row=promoted(launch, VerdictColumns.by(verdict), now),
        verdict=packed,
        said=said,
        configuration=configuration(parsed, launch.lane),
        signature=outcomes.signature_of(launch),
        gone=point == (2, 1024, 1, 1) and slot == 1,
    )


def _spread(tree: dict[str, Any], lane: str, micro: int, length: int) -> None:
    parallelism = tree["parallelism"]
    data = CHIPS // parallelism["tensor"]
    tree["hardware"] |= {"chips": CHIPS, "hosts": 1}
    parallelism["data"] = data
    if lane == "tpu-torch-xla":
        tree["hardware"]["physical"] = "2x4"
        parallelism |= {"shard": data, "mesh_axes": f"data:{data},expert:1,model:{parallelism['tensor']}"}
    tree["batch"] |= {"micro_batch": micro, "sequence_length": length, "global_batch": 8 * data}
    tree["batch"]["accumulation"] = 8 // micro


def _measured(tree: dict[str, Any], point: tuple[int, int, int, int], draw: random.Random) -> None:
    micro, length, first, second = point
    measured, stated = tree["measurement"], tree["measurement"]["stated"]
    typical = 0.8 * length / 2048 * (1 - 0.04 * first) * (1 + 0.03 * second) * (1 - 0.01 * micro)
    typical *= 1 + draw.gauss(0, 0.001)
    steps = measured["step_durations_seconds"] = [round(typical * (1 + draw.gauss(0, 0.004)), 6) for _ in range(STEPS)]
    flags = measured["step_flags"] = {"warmup": list(range(10)), "compile": [], "recompile": []}
    measured |= {"steps": STEPS, "window": {"start": 10, "stop": STEPS, "warmup_steps": len(flags["warmup"])}}
    tokens = measured["tokens_per_step"] = tree["batch"]["global_batch"] * length
    middle = statistics.median(steps[10:])
    rate = tokens / middle
    chips = tree["hardware"]["chips"]
    stated |= {"step_seconds": round(middle, 4), "step_seconds_stated": f"{middle * 1e3:.1f} ms"}
    stated |= {"tokens_per_second": round(rate, 1), "tokens_per_second_stated": f"{rate:,.1f}"}
    if "flops_per_token" in stated:
        work = rate / chips * stated["flops_per_token"]
        share = work / stated["peak_flops_per_second"]
        stated |= {
            "tokens_per_second_per_chip": round(rate / chips, 1),
            "tokens_per_second_per_chip_stated": f"{rate / chips:,.1f}",
            "tflops_per_second_per_chip": round(work / 1e12, 2),
            "tflops_per_second_per_chip_stated": f"{work / 1e12:.2f}",
            "mfu": round(share, 4),
            "mfu_stated": f"{share * 100:.2f} %",
        }
    steady = [row for row in tree["memory"]["chips"] if row["phase"] == "steady"][-1]
    peak = steady["peak_bytes"] * (1000 - 16 + micro) // 1000
    used = {"phase": "steady", "bytes_used": steady["bytes_used"], "bytes_limit": steady["bytes_limit"]}
    tree["memory"]["chips"] = [
        {"chip": chip, **used, "peak_bytes": peak - draw.randrange(10**5)} for chip in range(chips)
    ]
