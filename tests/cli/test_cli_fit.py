"""``receipts fit``: the answer with its exit code, what fills a chip, what shrinks it, and what had to be assumed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

import rule_cases
from command_line import HOSTILE, Shell
from receipts.estimate.surface import SurfaceName
from receipts.judging.rulebook import Rulebook
from receipts.questions.fit import CalibrationPoint, budget, calibrate, compared, estimate, measured, with_shrinks
from receipts.questions.plan import parse_plan, plan_of, write_plan
from receipts.receipt import Document, Parsed, parse
from tpu_plan import PLAN, plan

pytestmark = pytest.mark.slow

GIB = 2**30
LANES = Rulebook(()).lanes
SVG = "{http://www.w3.org/2000/svg}"


def parsed(base: str = "tpu", **leaves: Any) -> Parsed:
    tree = rule_cases.base(base)
    for leaf, value in leaves.items():
        rule_cases.put(tree, leaf.replace("__", "."), value)
    return parse(Document(json.dumps(tree).encode(), "a receipt"))


def test_a_plan_that_fits_says_so_and_ends_with_0(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder))
    assert said.code == 0
    assert said.lines[0].startswith("a plan · tpu-maxtext: fits: ")
    assert "of 31.24 GiB" in said.lines[0]
    assert "32.00 GiB are physical, which is no budget" in " ".join(said.out.split())


EXPERTS_IN_32_RANKS: dict[str, Any] = {
    "model__pattern": "AE", "model__depth": 2, "model__hidden": 4096, "model__heads": 32, "model__experts": 128,
    "model__capacity_factor": 1.2, "hardware__chips": 32, "parallelism__expert": 32, "parallelism__data": 1,
    "parallelism__shard": 1, "batch__micro_batch": 1, "batch__global_batch": 32, "batch__sequence_length": 4096,
}  # fmt: skip


def test_the_worked_example_of_routing_scratch_is_printed_digit_by_digit(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, **EXPERTS_IN_32_RANKS))
    assert "77 rows an expert from each rank, 4 local experts" in said.out
    rows = {line.split()[0]: line for line in said.lines if " B (" in line}
    assert "32,768 B (32.8 kB)" in rows["counts"]
    for buffer in ("receive", "combine"):
        assert "2,523,136 B (2.52 MB)" in rows[buffer]
        assert "80,740,352 B (80.7 MB)" in rows[buffer], "what 32 ranks send lies beside it"
    assert "5,079,040 B (5.08 MB)" in rows["together"]
    assert "receive and combine are held 32 times" in " ".join(said.out.split())


def test_replicated_parameters_are_shown_by_family_and_never_as_zero(shell: Shell) -> None:
    path = plan(shell.folder, **EXPERTS_IN_32_RANKS, parallelism__strategy="ddp")
    said = shell("fit", path)
    surface = next(line for line in said.lines if "replicated parameters" in line)
    assert "MiB" in surface
    families = {item["family"]: item for item in shell("fit", path, "--json").json["estimates"][0]["parameters"]}
    assert families["routers"]["bytes"] == 4096 * 128 * 4
    assert families["norms"]["bytes"] == (2 + 1) * 4096 * 4
    assert families["routers"]["owner"] == families["norms"]["owner"] == "replicated"
    assert families["embedding and head"]["bytes"] == 2 * 32768 * 4096 * 4
    assert families["experts"]["ways"] == 32


def test_a_plan_that_does_not_fit_ends_with_1_and_says_what_would(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, batch__micro_batch=64, batch__global_batch=256))
    assert said.code == 1
    assert "does not fit" in said.lines[0]
    data = shell("fit", plan(shell.folder, batch__micro_batch=64, batch__global_batch=256), "--json").json
    first = data["estimates"][0]
    changes = {item["axis"]: item for item in first["shrinks"]}
    assert changes["batch.micro_batch"]["change"] == "64 → 32"
    assert changes["numerics.recompute"]["saves_bytes"] > 0
    assert first["fits"] is False
    assert first["headroom_bytes"] < 0


def test_a_long_sequence_is_offered_context_parallelism_at_the_bytes_of_that_plan() -> None:
    lane, tree = LANES.of("tpu-maxtext"), json.loads(json.dumps(PLAN))
    tree["batch"] = {"micro_batch": 1, "global_batch": 4, "sequence_length": 65536, "accumulation": 1}
    long = plan_of(tree, "long")
    now = with_shrinks(estimate(long, lane), long, lane)
    assert now.dominant is not None
    assert now.dominant.name is SurfaceName.ACTIVATIONS
    offered = {item.axis: item for item in now.shrinks}["parallelism.context"]
    assert (offered.change, offered.saved / (now.total_bytes or 1) > 0.3) == ("1 → 2", True)
    made = parse_plan(Document(write_plan(long, {"parallelism.context": 2}, lane), "split"))
    assert made.stated["parallelism.shard"] == 2
    assert estimate(made, lane).total_bytes == pytest.approx(offered.total)
    without = replace(lane, not_applicable={"parallelism.context": "not on this lane"})
    assert "parallelism.context" not in {item.axis for item in with_shrinks(now, long, without).shrinks}


def test_where_no_single_change_fits_pairs_that_do_are_offered(shell: Shell) -> None:
    path = plan(shell.folder, batch__micro_batch=96, batch__global_batch=384)
    first = shell("fit", path, "--json").json["estimates"][0]
    assert all(item["total_bytes"] > first["budget_bytes"] for item in first["shrinks"])
    assert first["pairs"]
    assert all(item["total_bytes"] <= first["budget_bytes"] for item in first["pairs"])
    pairs = {item["axis"]: item["change"] for item in first["pairs"]}
    assert pairs["numerics.recompute + batch.micro_batch"] == "full + 96 → 48"
    assert "batch.sequence_length" not in first["pairs"][0]["axis"], "pairs that keep the question come first"
    assert " + " in shell("fit", path).out
    alone = shell("fit", plan(shell.folder, batch__micro_batch=4, batch__global_batch=16), "--json").json
    assert alone["estimates"][0]["pairs"] == [], "one change suffices, or none is needed"


def test_too_little_stated_ends_with_3_and_names_what_is_missing(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, model__hidden=None, batch__micro_batch=None))
    assert said.code == 3
    assert "state model.hidden, batch.micro_batch" in said.lines[0]


def test_what_is_assumed_is_named(shell: Shell) -> None:
    whole = shell("fit", plan(shell.folder), "--json").json["estimates"][0]
    assert whole["assumed"] == []
    less = plan(shell.folder, "less", numerics__recompute=None, model__capacity_factor=None)
    data = shell("fit", less, "--json").json["estimates"][0]
    assert [item["path"] for item in data["assumed"]] == ["model.capacity_factor", "numerics.recompute"]
    said = shell("fit", less)
    assert "on 2 assumptions" in said.lines[0]
    assert "numerics.recompute: none (frameworks recompute nothing unless asked to)" in said.out


def test_a_skeleton_of_init_is_a_plan(shell: Shell) -> None:
    path = str(shell.folder / "skeleton.json")
    assert shell("init", "tpu-maxtext", "-o", path).code == 0
    said = shell("fit", path)
    assert said.code == 3
    assert "model.depth" in said.lines[0]


def test_the_surfaces_of_the_json_add_up(shell: Shell) -> None:
    data = shell("fit", plan(shell.folder), "--json").json["estimates"][0]
    assert [item["surface"] for item in data["surfaces"]] == [name.value for name in SurfaceName]
    assert sum(item["peak_bytes"] for item in data["surfaces"]) == pytest.approx(data["total_bytes"])
    assert data["dominant"] == max(data["surfaces"], key=lambda item: item["peak_bytes"])["surface"]


def test_two_plans_say_which_bucket_grows(shell: Shell) -> None:
    more = plan(shell.folder, "more", model__experts=64)
    said = shell("fit", plan(shell.folder), more)
    assert "Which bucket grows" in said.out
    data = shell("fit", plan(shell.folder), more, "--json").json
    grown = {item["surface"]: item["bytes"] for item in data["growth"]}
    assert grown["expert-sharded parameters"] > 0
    assert "tensor-sharded parameters" not in grown


def test_an_id_a_label_and_standard_input_are_plans(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.store("kept", "tpu")
    assert shell("fit", "kept").code in (0, 1, 3)
    import io
    import sys

    class Stdin:
        buffer = io.BytesIO(json.dumps(PLAN).encode())

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert shell("fit", "-").code == 0


@pytest.mark.parametrize("columns", ["60", "120"])
def test_nothing_runs_out_of_the_terminal(shell: Shell, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    said = shell("fit", plan(shell.folder))
    bars = [line for line in said.lines if "▤" in line and "activations" not in line]
    assert bars
    assert all(len(line) <= int(columns) for line in bars)


def test_the_picture_says_what_it_shows(shell: Shell) -> None:
    path = shell.folder / "plan.svg"
    assert shell("fit", plan(shell.folder), "--svg", str(path)).code == 0
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    assert root.find(f"{SVG}title") is not None
    words = path.read_text(encoding="utf-8")
    assert "activations" in words
    assert "budget" in words
    again = shell.folder / "again.svg"
    shell("fit", plan(shell.folder), "--svg", str(again))
    assert again.read_text(encoding="utf-8") == words


def test_there_is_no_picture_of_nothing(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, model__hidden=None), "--svg", str(shell.folder / "x.svg"))
    assert said.code == 2
    assert not (shell.folder / "x.svg").exists()


def test_a_label_cannot_write_on_the_terminal(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, run__label=HOSTILE))
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


def test_calibration_says_when_there_is_too_little(shell: Shell) -> None:
    shell.store("one", "tpu")
    said = shell("fit", plan(shell.folder), "--calibrate")
    assert "no calibration: fewer than three measured configurations" in " ".join(said.out.split())


def test_calibration_comes_from_the_stores_own_peaks(shell: Shell) -> None:
    lane = LANES.of("tpu-torch-xla")
    for index, batch in enumerate((1, 2, 4)):
        item = parsed(batch__micro_batch=batch)
        live = estimate(item, lane).live_bytes
        assert live is not None
        rows = [{"chip": chip, "phase": "steady", "peak_bytes": int(live * 1.1), "bytes_limit": 2**40}
                for chip in range(8)]  # fmt: skip
        shell.store(f"run-{index}", "tpu", batch__micro_batch=batch, memory__chips=rows)
    data = shell("fit", "run-0", "--calibrate", "--json").json["estimates"][0]
    assert data["calibration"]["factor"] == pytest.approx(1.1, rel=1e-6)
    assert data["calibration"]["left_out"] == pytest.approx(0.0, abs=1e-6)
    assert data["delta"] == pytest.approx(0.0, abs=1e-6)


def test_repeats_are_one_configuration() -> None:
    points = [CalibrationPoint(100.0, 110.0, group="a")] * 5 + [
        CalibrationPoint(100.0, 90.0, group="b"),
        CalibrationPoint(100.0, 100.0, group="c"),
    ]
    found = calibrate(points)
    assert found is not None
    assert (found.groups, found.launches) == (3, 7)
    assert found.factor == pytest.approx((1.1 * 0.9 * 1.0) ** (1 / 3))
    assert found.low < found.factor < found.high
    assert found.left_out == pytest.approx((1.1 * 1.0) ** 0.5 / 0.9 - 1)
    assert calibrate(points[:6]) is None


def test_the_budget_is_the_runtimes_limit_and_never_the_physical_figure() -> None:
    lane = LANES.of("nvidia-megatron")
    stated: dict[str, Any] = {"hardware.accelerator": "NVIDIA H200"}
    found = budget(stated, lane)
    assert found is not None
    assert found.physical == 141 * GIB
    assert found.bytes < found.physical
    read = budget(stated | {"memory.chips[0].bytes_limit": 100 * GIB, "memory.chips[1].bytes_limit": 99 * GIB}, lane)
    assert read is not None
    assert read.bytes == 99 * GIB
    assert budget({}, lane) is None
    v6e = budget({"hardware.accelerator": "v6e-8"}, LANES.of("tpu-maxtext"))
    assert v6e is not None
    assert (v6e.physical, v6e.bytes) == (32 * GIB, int(31.24 * GIB))


def test_the_measured_peak_is_the_fullest_chips_and_live_is_compared_with_live() -> None:
    item = parsed()
    made = estimate(item, LANES.of("tpu-torch-xla"))
    top = measured(item)
    assert top is not None
    assert top.chip == 7
    assert made.delta == pytest.approx(compared(made) / top.bytes - 1)
    pool = parsed(memory__chips=[{"chip": 0, "phase": "steady", "peak_reserved_bytes": 5 * GIB}])
    assert measured(pool) is not None
    assert measured(parsed(memory=None)) is None


def test_a_stored_launch_that_no_chips_can_hold_is_refused_as_its_file_is(shell: Shell) -> None:
    torn = shell.write("torn", parallelism__tensor=3)
    assert "invalid" in shell("submit", torn).out
    by_file, by_label = shell("fit", torn), shell("fit", "torn")
    assert (by_file.code, by_label.code) == (2, 2)
    assert "R105" in by_label.err


def test_a_lane_that_nobody_declared_is_told(shell: Shell) -> None:
    said = shell("fit", shell.write("typo", run__lane="cpu-torh"))
    assert "no lane 'cpu-torh' is declared, so it is read as unlisted; did you mean cpu-torch" in said.err


@pytest.mark.parametrize("words", [["--oom", "x.json"], ["--aot", "OTHER"]])
def test_calls_that_make_no_sense_are_refused(shell: Shell, words: list[str]) -> None:
    path = plan(shell.folder)
    assert shell("fit", path, *(path if word == "OTHER" else word for word in words)).code == 2


def test_nothing_is_told_as_assumed_where_it_stands_on_what_is_missing(shell: Shell) -> None:
    less = plan(shell.folder, "less", model__hidden=None, model__heads=None, model__kv_heads=None, model__head_dim=None)
    said = shell("fit", less)
    assert said.code == 3
    assert "state model.hidden" in said.lines[0]
    assert "kv_heads" not in said.out
    assert shell("fit", less, "--json").json["estimates"][0]["assumed"] == []


def test_a_small_model_is_told_in_a_smaller_unit(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, "small", model__hidden=64, model__depth=2, batch__sequence_length=64))
    assert "0.00 GiB" not in said.out
    assert "MiB" in said.lines[0]


def test_a_pattern_that_cannot_be_read_is_told_with_its_letter(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, "letters", model__pattern="A*E"))
    assert said.code == 2
    assert "model.pattern: R109" in said.err
    assert "*" in said.err


def test_an_accelerator_of_which_no_memory_is_known_is_named(shell: Shell) -> None:
    said = shell("fit", plan(shell.folder, "m4", hardware__accelerator="M4 Max"))
    assert said.code == 3
    assert "what 'M4 Max' lets a launch hold is not known" in " ".join(said.out.split())
    none = shell("fit", plan(shell.folder, "none", hardware__accelerator=None))
    assert "state hardware.accelerator" in " ".join(none.out.split())


def test_growth_lies_beside_measured_peaks_and_against_a_receipt_is_the_same(shell: Shell) -> None:
    before = parsed()
    place = shell.folder / "launch.json"
    place.write_bytes(before.raw)
    after = plan(shell.folder, model__experts=16)
    two, against = shell("fit", str(place), after), shell("fit", after, "--against", str(place))
    assert against.out == two.out
    rows = {line.strip().split("  ")[0]: line for line in two.lines}
    assert rows["measured peak"].rstrip().endswith("~"), "only the launch was measured"
    assert "GiB" in rows["estimated live peak"]
    assert "expert-sharded parameters" in rows
    both = shell("fit", after, str(place), "--against", str(place))
    assert both.code == 2
    assert "leave out --against" in both.err
