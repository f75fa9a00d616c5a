"""torch.compile's log lines and counters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.torch.dynamo import DynamoReader

SAMPLES = Path(__file__).parent / "samples"
HEAD = "V0101 10:00:00.000000 77 torch/_dynamo/guards.py:5000] "


def lines(*texts: str) -> list[Reading]:
    return scan(["\n".join((*texts, "")).encode()], [DynamoReader])


def test_a_real_log_of_a_graph_break_tells_the_break_and_the_recompiles() -> None:
    (reading,) = scan([(SAMPLES / "dynamo_break.log").read_bytes()], [DynamoReader])
    assert (reading.counters["graph_breaks"], reading.counters["recompiles"]) == (1, 3)
    assert reading.compile.graph_breaks == 1
    assert [(item.leaf, item.value) for item in reading.seen] == [("posture", "regional")]


def test_a_function_that_reached_its_limit_fell_back_by_its_name() -> None:
    (reading,) = scan([(SAMPLES / "dynamo_limit.log").read_bytes()], [DynamoReader])
    assert reading.counters["recompiles"] == 3
    assert reading.fallbacks == {"torch.compile:forward": 1}
    assert reading.compile.compiles == 3


@pytest.mark.parametrize(
    "line",
    [
        HEAD + "[0/1] [__recompiles] Recompiling function forward in /srv/model.py:9",
        "[rank3]:" + HEAD + "[0/1] [__recompiles] Recompiling function forward in /srv/model.py:9",
        "[2024-02-03 10:00:00,123] [0/1] torch._dynamo.guards.__recompiles: [DEBUG] Recompiling function f in /m.py:9",
        "(Worker pid=12) Recompiling function forward in /srv/model.py:9",
    ],
)
def test_a_recompile_is_read_behind_any_head(line: str) -> None:
    (reading,) = lines(line)
    assert reading.counters == {"recompiles": 1}


@pytest.mark.parametrize(
    "line",
    [
        HEAD + '[0/1] [__recompiles]     - 0/0: s.k == 0   # log.info("Recompiling function f in x.py:1")',
        HEAD + "[0/1] [__recompiles]     -     note = 'torch._dynamo hit config.recompile_limit (8)'",
        "raise on `torch._dynamo hit config.recompile_limit (8)` in the log",
        "# Graph break in user code at x.py:3 is expected here",
    ],
)
def test_source_that_guards_quote_is_no_message(line: str) -> None:
    assert lines(line) == []


def test_a_break_told_in_two_ways_counts_once() -> None:
    (reading,) = lines(
        HEAD + "[0/0] Graph break: from user code at:",
        HEAD + "[0/0] [__graph_breaks] Graph break in user code at /srv/model.py:15",
        HEAD + "[0/0] [__graph_breaks] Graph Break Reason: Unsupported call",
        HEAD + "[1/0] [__graph_breaks] Graph break (user stack suppressed) in user code at /srv/model.py:31",
    )
    assert reading.counters == {"graph_breaks": 2}


def test_a_limit_that_raises_under_fullgraph_is_no_fallback() -> None:
    text = (SAMPLES / "dynamo_limit.log").read_text().partition("defaultdict(")[0]
    error = "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with fullgraph=True.\n"
    (reading,) = scan([(text + error).encode()], [DynamoReader])
    assert reading.fallbacks is None
    assert any("with fullgraph it raises" in remark.text for remark in reading.remarks)


def test_the_old_name_of_the_limit_and_its_function_are_read() -> None:
    (reading,) = lines(
        "[0/8] torch._dynamo hit config.cache_size_limit (8)",
        "[0/8]    function: 'forward' (/srv/model.py:637)",
    )
    assert reading.fallbacks == {"torch.compile:forward": 1}


def test_skipped_graphs_are_remarked_and_prove_no_absence() -> None:
    (reading,) = lines("skipping cudagraphs due to skipping cudagraphs due to cpu device (primals_88). Found from : ")
    assert reading.counters == {"cudagraph_skips": 1}
    assert not reading.seen


def test_one_function_compiled_again_tells_no_posture() -> None:
    (reading,) = lines(HEAD + "[0/1] [__recompiles] Recompiling function forward in /srv/model.py:9")
    assert not reading.seen


def test_printed_counters_are_read_and_not_evaluated() -> None:
    text = "defaultdict(<class 'collections.Counter'>, {'frames': Counter({'total': 3, 'ok': 3}), 'stats': Counter("
    text += "{'unique_graphs': 3}), 'graph_break': Counter({'a, \\'b\\': {c}': 2}), 'x': __import__('os')})"
    (reading,) = lines(text)
    assert (reading.compile.compiles, reading.compile.graph_breaks) == (3, 2)


def test_counters_of_a_clean_compile_say_that_nothing_broke(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    counters = {"frames": {"total": 1, "ok": 1}, "stats": {"unique_graphs": 1}, "inductor": {"fxgraph_cache_miss": 2}}
    path.write_text(json.dumps(counters | {"graph_break": {}}, indent=1))
    (reading,) = read(path).readings
    assert (reading.source, reading.complete) == ("dynamo", True)
    assert (reading.compile.compiles, reading.compile.graph_breaks, reading.compile.cache_misses) == (1, 0, 2)


def test_counters_that_are_cut_are_remarked(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    path.write_text('{"frames": {"total": 1')
    (reading,) = read(path).readings
    assert [remark.kind for remark in reading.remarks] == ["broken"]


@pytest.mark.parametrize(
    ("case", "recompiles", "breaks"),
    [
        ("recompile_shapes", 7, None),
        ("recompile_python_int", 7, None),
        ("recompile_limit", 3, None),
        ("graph_break_item", 1, 1),
    ],
)
def test_the_real_logs_count_as_their_own_records_say(
    cases: Path, case: str, recompiles: int, breaks: int | None
) -> None:
    (reading,) = read(cases / "real" / "torch" / f"compile_{case}" / "stderr.txt").readings
    assert (reading.counters["recompiles"], reading.compile.graph_breaks) == (recompiles, breaks)
