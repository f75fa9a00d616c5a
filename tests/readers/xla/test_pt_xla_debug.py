"""torch_xla's debug blocks: compiles, executions, reads of values and what the analyser says."""

from __future__ import annotations

from late_compiles import late
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.xla.debug import PtXlaDebug

RULE = "=" * 80
SYNC = "user torch_xla.sync"
READ = "most likely user code trying to access tensor value before torch_xla.sync"


def block(kind: str, cause: str, graph: str, frames: tuple[str, ...] = ("<module> (/home/a/train.py:40)",)) -> str:
    rows = [
        RULE,
        "Compilation Cause" if kind != "Execution" else "Execution Cause",
        f"  {cause}",
        "Graph Info: ",
        f"  Graph Hash: {graph}",
        "  Number of Graph Inputs: 12",
        "  Number of Graph Outputs: 7",
        "Python Frame Triggered Execution: ",
        *(f"  {frame}" for frame in frames),
        "-" * 80,
        RULE,
    ]
    return "".join(f"{kind} Analysis: {row}\n" for row in rows) + "\n"


def compiled(cause: str, graph: str, *frames: str) -> str:
    where = frames or ("<module> (/home/a/train.py:40)",)
    return block("Compilation", cause, graph, where) + executed(cause, graph, *where)


def executed(cause: str, graph: str, *frames: str) -> str:
    return block("Execution", cause, graph, frames or ("<module> (/home/a/train.py:40)",))


def reading(text: str) -> Reading:
    (found,) = scan([text.encode()], [PtXlaDebug])
    return found


def test_a_clean_run_compiles_in_its_first_two_steps() -> None:
    found = reading(compiled(SYNC, "a1") + compiled(SYNC, "b2") + executed(SYNC, "b2") * 6)
    assert (found.compile.compiles, late(found)) == (2, 0)
    assert found.counters["executions"] == 8
    assert found.counters["graph_hashes"] == 2
    assert (found.host_transfers, found.steps_covered) == (0, 8)


def test_a_new_shape_each_step_is_counted_after_warm_up() -> None:
    found = reading("".join(compiled(SYNC, f"{step:x}") for step in range(9)))
    assert (found.compile.compiles, late(found)) == (9, 7)


def test_a_late_compile_is_found_in_the_order_of_the_blocks() -> None:
    steady = executed(SYNC, "b2") * 10
    found = reading(compiled(SYNC, "a1") + compiled(SYNC, "b2") + steady + compiled(SYNC, "c3") + steady)
    assert (found.compile.compiles, late(found)) == (3, 1)


def test_two_syncs_in_a_step_are_two_places_and_no_late_compile() -> None:
    early, second_sync = "<module> (/home/a/train.py:38)", "<module> (/home/a/train.py:44)"
    first = compiled(SYNC, "a1", early) + compiled(SYNC, "b2", second_sync)
    second = compiled(SYNC, "c3", early) + compiled(SYNC, "d4", second_sync)
    found = reading(first + second + (executed(SYNC, "c3", early) + executed(SYNC, "d4", second_sync)) * 6)
    assert (late(found), found.steps_covered) == (0, 8)


def test_frames_of_libraries_do_not_make_another_place() -> None:
    own = "<module> (/home/a/train.py:40)"
    library = "wrapper (/venv/lib/python3.11/site-packages/typing_extensions.py:3140)"
    found = reading(compiled(SYNC, "a1", own) + executed(SYNC, "a1", library, own) * 5)
    assert found.steps_covered == 6


def test_more_graphs_than_a_function_may_have_is_a_recompile() -> None:
    text = compiled("torch_xla.compile", "a1") + "RuntimeError: Maximum number of different graphs allowed per function"
    assert late(reading(f"{text} exceeded: 1\n")) == 1


def test_a_read_of_a_value_is_counted_with_its_place() -> None:
    step = executed(READ, "a1", "log (/home/a/log.py:9)") + executed(SYNC, "b2")
    found = reading(step * 5)
    assert (found.host_transfers, found.steps_covered) == (5, 5)
    assert any("log (/home/a/log.py:9): 5 times" in remark.text for remark in found.remarks)


def test_a_value_that_is_read_once_training_has_ended_is_no_read_of_a_step() -> None:
    loop = compiled(SYNC, "a1") + compiled(SYNC, "b2") + executed(SYNC, "b2") * 8
    found = reading(loop + compiled(READ, "c3", "<module> (/home/a/train.py:90)"))
    assert (found.compile.compiles, late(found)) == (3, 0)
    assert (found.host_transfers, found.steps_covered) == (0, 10)


def test_a_read_of_the_loop_counts_behind_its_last_step_too() -> None:
    found = reading((executed(SYNC, "b2") + executed(READ, "c3", "log (/home/a/log.py:9)")) * 8)
    assert (found.host_transfers, found.steps_covered) == (8, 8)


def test_one_read_without_a_step_around_it_is_a_read_of_no_step() -> None:
    found = reading(compiled(READ, "a1"))
    assert (found.host_transfers, found.steps_covered) == (1, None)


def test_inputs_that_dynamo_gathers_are_no_read() -> None:
    bridge = "optimized_mod (/venv/lib/python3.11/site-packages/torch_xla/_dynamo/dynamo_bridge.py:524)"
    gathered = executed(READ, "a1", bridge, "<module> (/home/a/train.py:40)") * 4
    assert reading(compiled(SYNC, "a1") + gathered).host_transfers == 0


def test_an_excerpt_without_a_compile_shows_neither_that_there_was_none_nor_that_nothing_was_read() -> None:
    found = reading(executed(SYNC, "b2") * 4)
    assert (found.compile.compiles, found.compile.spans, found.host_transfers) == (None, None, None)


def test_causes_of_older_versions_are_known() -> None:
    cause = "most likely user code trying to access tensor value before mark_step"
    found = reading((executed(cause, "a1") + executed("user mark_step", "b2")) * 3)
    assert (found.host_transfers, found.steps_covered) == (3, 3)


def test_an_execution_that_full_graph_forbids_is_a_read() -> None:
    text = block("Unexpected Execution", READ, "a1") + compiled("torch_xla.compile", "b2")
    found = reading(text)
    assert found.counters["unexpected_executions"] == 1
    assert (found.host_transfers, found.compile.compiles) == (1, 1)
    # It ended the step that it was met in, where no other is told.
    assert found.steps_covered == 1


def test_without_executions_two_compiles_say_nothing_of_steps() -> None:
    text = "".join(block("Compilation", SYNC, f"{graph:x}") for graph in range(2))
    found = reading(text)
    assert found.compile.compiles == 2
    assert (late(found), found.host_transfers, found.steps_covered) == (None, None, None)


def test_a_place_that_keeps_compiling_was_met_before_without_executions_too() -> None:
    text = "".join(block("Compilation", SYNC, f"{graph:x}") for graph in range(5))
    assert late(reading(text)) == 3


def test_an_excerpt_of_reads_alone_counts_its_steps_by_them() -> None:
    found = reading(executed(READ, "a1") * 3 + executed(READ, "b2", "log (/home/a/train.py:77)"))
    assert (found.host_transfers, found.steps_covered) == (4, 3)


def test_graph_sizes_were_told_in_the_singular_first() -> None:
    text = block("Compilation", SYNC, "a1").replace("Graph Inputs", "Graph Input").replace("Outputs", "Output")
    found = reading(text)
    assert (found.counters["graph_inputs"], found.counters["graph_outputs"]) == (12, 7)


def test_sizes_of_the_largest_program_stand() -> None:
    def post(size: float) -> str:
        rows = (RULE, f"Graph input size: {size:.6f} GB", f"Intermediate tensor size: {size * 2:.6f} GB", RULE)
        return "".join(f"Post Compilation Analysis: {row}\n" for row in rows)

    found = reading(compiled(SYNC, "a1") + post(1.5) + compiled(SYNC, "b2") + post(0.25))
    assert found.compile.argument_bytes == round(1.5 * (1 << 30))
    assert found.compile.temp_bytes == 3 << 30


def test_the_analyser_names_operators_and_frequencies() -> None:
    text = (
        "pt-xla-profiler: CompileTime too frequent: 21 counts during 11 steps\n"
        "pt-xla-profiler: TransferFromDeviceTime too frequent: 11 counts during 11 steps\n"
        "pt-xla-profiler: Op(s) not lowered: aten::_ctc_loss, aten::bincount,  Please open an issue\n"
    )
    found = reading(text)
    assert found.fallbacks == {"aten::_ctc_loss": 1, "aten::bincount": 1}
    assert (found.host_transfers, found.steps_covered) == (11, 11)
    assert late(found)


def test_a_step_at_which_the_analyser_speaks_ends_no_warm_up() -> None:
    analyser = "pt-xla-profiler: CompileTime too frequent: {0} counts during {0} steps\n"
    text = "".join(compiled(SYNC, f"a{step}") + (analyser.format(step) if step > 10 else "") for step in range(1, 13))
    assert late(reading(text)) == 10


def test_a_few_compiles_by_the_analyser_alone_may_all_be_of_the_warm_up() -> None:
    # Two steps of a program that dynamo cut in three.
    assert late(reading("pt-xla-profiler: CompileTime too frequent: 6 counts during 11 steps\n")) is None


def test_a_fallback_that_the_summary_does_not_name_is_a_host_read() -> None:
    text = 'WARNING:pt-xla-profiler:FRAME (count=8):\nWARNING:pt-xla-profiler:Unlowered Op: "xla_fallback"\n'
    found = reading(text)
    assert (found.host_transfers, found.fallbacks) == (8, None)
    named = reading(text.replace("xla_fallback", "_unique2"))
    assert named.fallbacks == {"aten::_unique2": 8}


COMPILED = "torch_xla.compile"
CLEARED = "torch_xla.compile clear the pending graph prior calling the target function"


def posture(text: str) -> list[str]:
    return [item.value for item in reading(text).seen if item.leaf == "posture"]


def test_steps_that_torch_xla_compile_ended_are_one_program_each() -> None:
    assert posture(executed(CLEARED, "a1") + executed(COMPILED, "b2") * 5) == ["xla_step"]


def test_steps_that_the_user_or_the_loader_ended_are_lazy() -> None:
    assert posture(executed("user mark_step", "b2") * 5) == ["xla_lazy"]
    assert posture(executed("`torch_xla.sync()` in parallel loader at step end", "b2") * 5) == ["xla_lazy"]


def test_a_loop_that_syncs_beside_its_compiled_step_is_lazy() -> None:
    assert posture((executed(COMPILED, "b2") + executed(SYNC, "c3")) * 5) == ["xla_lazy"]


def test_a_sync_before_the_first_step_does_not_make_compiled_steps_lazy() -> None:
    assert posture(executed(SYNC, "a1") + executed(COMPILED, "b2") * 5) == ["xla_step"]


def test_two_steps_show_no_posture() -> None:
    assert posture(executed(COMPILED, "b2") * 2) == []


def test_reads_alone_show_no_posture() -> None:
    assert posture(executed(READ, "b2") * 9) == []


def test_programs_of_dynamo_are_whole_graphs() -> None:
    assert posture(executed("dynamo is executing a compiled program", "b2") * 5) == ["whole_graph"]


def test_without_executions_the_posture_is_that_of_the_largest_program() -> None:
    step, small = (block("Compilation", cause, cause[0]) for cause in ("torch_xla.compile", "user mark_step"))
    text = step + small.replace("Outputs: 7", "Outputs: 6")
    assert [item.value for item in reading(text).seen if item.leaf == "posture"] == ["xla_step"]
