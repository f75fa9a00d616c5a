"""JAX's compile log and events: real compiles, the persistent cache, and what the flags leave unsaid."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from late_compiles import late
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.ingest.source import Source
from receipts.readers.jax.compiles import JaxCompiles, JaxMonitoring


def program(name: str, seconds: str = "1.250000000", cache: str = "") -> str:
    module = f"jit_{name.replace('<', '_').replace('>', '_')}"
    told = {
        "hit": f"Persistent compilation cache hit for '{module}' with key '{module}-0a1b'\n",
        "miss": f"PERSISTENT COMPILATION CACHE MISS for '{module}' with key '{module}-0a1b'\n",
        "": "",
    }[cache]
    head = f"Finished tracing {name} for jit in 0.000401497 sec\n"
    return f"{head}{told}Finished XLA compilation of jit({name}) in {seconds} sec\n"


def steps(first: int, last: int) -> str:
    return "".join(f"completed step: {step}, seconds: 0.5\n" for step in range(first, last))


def reading(text: str) -> Reading:
    (found,) = scan([text.encode()], [JaxCompiles])
    return found


def doubled(text: str) -> str:
    """As JAX's own handler and the root logger's print it: every record twice, each behind its own prefix."""
    copies = []
    for record in text.replace("\n  ", "\v  ").splitlines():
        record = record.replace("\v", "\n")
        copies += [f"WARNING:2025-04-02 10:11:12,413:jax._src.dispatch:190: {record}", f"WARNING:jax:{record}"]
    return "\n".join(copies) + "\n"


def test_two_handlers_print_every_record_twice() -> None:
    miss = "TRACING CACHE MISS at a.py:3:1 (<module>) because:\n  never seen function:\n    f id=1 defined at a.py:1\n"
    text = miss + program("init", "2.000000001", cache="hit") + miss + program("f", "3.000000001", cache="miss") * 2
    once, twice = reading(text), reading(doubled(text))
    assert once.compile == twice.compile
    assert once.counters == twice.counters
    assert (twice.compile.compiles, twice.compile.cache_hits, twice.counters["tracing_cache_misses"]) == (2, 1, 2)


def test_one_logger_that_loads_a_program_twice_says_so_twice() -> None:
    line = (
        "2025-04-02 10:11:{:02} DEBUG jax._src.compiler Persistent compilation cache hit for 'jit_f' with key 'jit_f-0'"
    )
    assert reading("\n".join(line.format(second) for second in (7, 12))).compile.cache_hits == 2


def test_without_log_compiles_a_program_that_the_cache_had_not_is_a_compile() -> None:
    text = (
        "PERSISTENT COMPILATION CACHE MISS for 'jit_f' with key 'jit_f-0'\n"
        "Writing jit_f to persistent compilation cache with key 'jit_f-0'\n"
    )
    found = reading(text).compile
    assert (found.compiles, found.cache_misses, found.seconds) == (1, 1, None)


def test_a_hit_prints_that_it_finished_and_is_no_compile() -> None:
    text = program("init", cache="hit") + program("train_step", "3.5", cache="miss") + program("<lambda>", cache="hit")
    found = reading(text).compile
    assert (found.compiles, found.cache_hits, found.cache_misses, found.seconds) == (1, 2, 1, 3.5)


def test_hits_alone_leave_misses_unsaid_where_a_program_was_compiled() -> None:
    found = reading(program("a", cache="hit") + program("b")).compile
    assert (found.compiles, found.cache_hits, found.cache_misses) == (1, 1, None)


def test_every_program_a_hit_is_no_miss() -> None:
    found = reading(program("a", cache="hit") + program("b", cache="hit")).compile
    assert (found.compiles, found.cache_hits, found.cache_misses) == (0, 2, 0)


def test_no_line_of_a_cache_is_no_evidence_of_one() -> None:
    found = reading(program("train_step"))
    assert (found.compile.compiles, found.compile.cache_hits, found.compile.cache_misses) == (1, None, None)
    assert any("not excluded" in remark.text for remark in found.remarks)


def test_a_version_that_does_not_tell_hits_does_not_tell_compiles() -> None:
    text = (
        "Finished tracing + transforming train_step for pjit in 0.010231494903564453 sec\n"
        "Compiling train_step with global shapes and types [ShapedArray(float32[8])]. Argument mapping: [].\n"
        "Finished XLA compilation of jit(train_step) in 0.025142669677734375 sec\n"
    )
    found = reading(text)
    assert found.compile.compiles is None
    assert found.counters["finished_compilations"] == 1


def test_jax_of_2021_says_jit_and_tells_no_hits() -> None:
    text = (
        "Finished tracing + transforming train_step for jit in 0.31294703483581543 sec\n"
        "Finished XLA compilation of train_step in 12.507121324539185 sec\n"
    )
    assert reading(text).compile.compiles is None


def test_a_compile_after_the_first_steps_is_late_whatever_its_name() -> None:
    start = program("train_step") + steps(0, 1) + program("train_step") + steps(1, 8)
    assert late(reading(start + steps(8, 12))) == 0
    assert late(reading(start + program("<lambda>") + steps(8, 12))) == 1
    assert late(reading(start + program("<lambda>", cache="hit") + steps(8, 12))) == 0


def test_what_compiles_once_training_has_ended_is_not_late() -> None:
    start = program("train_step") + steps(0, 1) + program("train_step") + steps(1, 12)
    assert late(reading(start + program("eval_step"))) == 0


def test_steps_of_an_evaluation_are_none_of_training() -> None:
    between = "Starting eval after train step 0\nCompleted eval step: 0, seconds: 0.01\nCompleted eval step: 1\n"
    start = program("train_step") + program("eval_step") + between + program("mean")
    assert late(reading(start + steps(0, 12))) == 0


def test_steps_that_are_printed_now_and_then_leave_a_stretch_open() -> None:
    text = program("train_step") + "".join(f"step: {step}, loss: 2.5\n" for step in range(10, 60, 10))
    assert late(reading(text)) is None
    assert late(reading(text), window=10) == 0
    assert late(reading(text + program("eval_step")), window=10) is None


def test_without_steps_nothing_is_late() -> None:
    assert late(reading(program("train_step") * 5)) is None


@pytest.mark.parametrize("tail", [":\n", " costing 9.851 ms because:\n", " because:\n"])
def test_a_tracing_cache_miss_keeps_its_place_and_reason(tail: str) -> None:
    text = (
        f"W1120 13:13:08.1 pjit.py:1] TRACING CACHE MISS at /home/a/train.py:19:8 (<module>){tail}"
        "  for train_step defined at /home/a/train.py:11\n  * at x, now f32[24,64] and before f32[16,64]\nnext line\n"
    )
    found = reading(text + program("a"))
    assert found.counters["tracing_cache_misses"] == 1
    remark = next(remark for remark in found.remarks if "/home/a/train.py:19:8" in remark.text)
    assert "now f32[24,64]" in remark.text
    assert "next line" not in remark.text
    assert found.compile.compiles == 1


def test_writes_are_counted() -> None:
    text = (
        "Writing jit_train_step to persistent compilation cache with key 'jit_train_step-0a'\n"
        "Not writing persistent cache entry for 'jit_f' because it took < 1.00 seconds to compile (0.21s)\n"
    )
    assert reading(text).counters == {"cache_writes": 1, "cache_entries_not_written": 1}


def events(tmp_path: Path, content: object) -> Reading:
    path = tmp_path / "events.json"
    path.write_text(json.dumps(content))
    source = Source(path, path.name)
    assert JaxMonitoring.claims(source.head)
    (found,) = JaxMonitoring().read(source)
    return found


def test_writes_without_a_compile_log_do_not_show_that_nothing_was_compiled_late() -> None:
    write = "Writing jit__where to persistent compilation cache with key jit__where-812a.\n"
    assert reading(write + steps(0, 12)).compile.spans is None
    assert reading(write + program("step", cache="miss") + steps(0, 12)).compile.spans is not None


def test_events_tell_hits_from_compiles(tmp_path: Path) -> None:
    built = {"event": "/jax/core/compile/backend_compile_duration", "duration_s": 2.5}
    hit = {"event": "/jax/compilation_cache/cache_hits"}
    found = events(tmp_path, [built | {"step": "init"}, hit, built, built | {"step": 0}, built | {"step": 16}])
    assert (found.compile.compiles, found.compile.cache_hits, late(found)) == (3, 1, 1)
    assert found.compile.seconds is None


def test_counts_in_phases_tell_what_came_after_warm_up(tmp_path: Path) -> None:
    built = "/jax/core/compile/backend_compile_duration"
    found = events(tmp_path, {"init_to_warmup": {built: 8}, "after_warmup": {built: 2}})
    assert (found.compile.compiles, late(found)) == (10, 2)


def test_a_cut_document_of_events_is_told(tmp_path: Path) -> None:
    path = tmp_path / "events.json"
    path.write_text('[{"event": "/jax/core/compile/backend_com')
    (found,) = JaxMonitoring().read(Source(path, path.name))
    assert [remark.kind for remark in found.remarks] == ["broken"]


@pytest.mark.parametrize(("name", "shown"), [("jit(train_step)", True), ("jit(_step_fn)", True), ("jit(add)", False)])
def test_a_compiled_step_shows_its_posture(name: str, shown: bool) -> None:
    text = f"Finished XLA compilation of {name} in 0.250000000 sec\n"
    (found,) = scan([text.encode()], [JaxCompiles])
    assert [item.value for item in found.seen if item.leaf == "posture"] == (["jit"] if shown else [])
