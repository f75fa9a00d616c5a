"""Statements that name receipts, held against a store: the number, the receipt's standing, and the comparison."""

from __future__ import annotations

import copy
import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import rule_cases
from receipts.cli import main
from receipts.plugins.lint.arithmetic import ratios
from receipts.plugins.lint.page import page
from receipts.plugins.lint.statement import Statement
from receipts.publish.terminal import Terminal
from receipts.receipt import Document
from receipts.store import Store, open_store
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK

SCHEMA = json.loads((Path(__file__).parent / "sarif-2.1.0-subset.schema.json").read_text())


BOUND = {"value": "close", "before_runtime": True}


@dataclass
class World:
    """A store with two sides of one change, an OOM, and a quoted receipt; ids by name."""

    store: Store
    url: str
    ids: dict[str, str]
    folder: Path

    def lint(self, text: str, *words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
        path = self.folder / "page.md"
        for name, receipt_id in self.ids.items():
            text = text.replace(f"<{name}>", receipt_id[:12])
        path.write_text(text)
        code = main(["--store", self.url, "lint", str(path), "--format", "json", *words])
        return code, json.loads(capsys.readouterr().out)["results"]


def tree(seconds: float, hour: int, **leaves: Any) -> dict[str, Any]:
    """The clean base with steps of that length, as a launch of its own."""
    made = rule_cases.build({"steps": {"seconds": seconds, "seed": hour, "cv": 0.002}})
    made["run"]["launch"] = str(uuid.uuid4())
    for key in ("started", "finished"):
        made["run"][key] = (datetime.fromisoformat(made["run"][key]) + timedelta(hours=hour)).isoformat()
    for path, value in leaves.items():
        rule_cases.put(made, path.replace("__", "."), value)
    return made


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("links")
    url = str(folder / "store.sqlite")
    trees: dict[str, dict[str, Any]] = {}
    for index in range(4):
        trees[f"a{index}"] = tree(0.8 + 0.0008 * index, 2 * index)
        trees[f"b{index}"] = tree(0.64 + 0.0008 * index, 2 * index + 1, flags__OMP_PROC_BIND=BOUND)
    trees["quoted"] = tree(0.8, 20, run__provenance="quoted", features__other=True)
    trees["old"] = tree(0.8, 21, features__old=True)
    trees["nan"] = tree(0.8, 22, run__outcome="nan", features__nan=True)
    trees["preempted"] = tree(0.8, 23, run__outcome="preempted", features__preempted=True)
    with open_store(url) as store:
        documents = [Document(json.dumps(made).encode(), name) for name, made in trees.items()]
        outcomes = list(submit(documents, store, RULEBOOK))
        assert all(item.stored for item in outcomes), [str(item.error) for item in outcomes]
        ids = {name: document.id for name, document in zip(trees, documents, strict=True)}
        store.retract(ids["old"], "its gradients were wrong")
        yield World(store, url, ids, folder)


def rate(world: World, name: str) -> float:
    """Tokens a second that a receipt reads."""
    from receipts import metrics
    from receipts.metrics import Launch

    parsed = world.store.get(world.ids[name])
    value = Launch(parsed, RULEBOOK.lanes.of(parsed.receipt.run.lane)).read(metrics.get("tokens_per_second")).value
    assert value is not None
    return value


def test_a_reading_holds_within_half_its_last_digit(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    value = rate(world, "a0")
    code, (result,) = world.lint(f"It runs at [{value:,.0f} tok/s](receipt:<a0>).", capsys=capsys)
    assert (code, result["state"]) == (0, "holds")
    code, (result,) = world.lint(f"It runs at [{value * 1.01:,.0f} tok/s](receipt:<a0>).", capsys=capsys)
    assert (code, result["state"], result["code"]) == (1, "refuted", "K103")
    assert f"reads {value:,.0f} tokens/s" in result["found"]


def test_a_step_time_is_read_in_the_unit_that_the_page_uses(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, results = world.lint("[800 ms/step](receipt:<a0>) or [0.8 s/step](receipt:<a0>)", capsys=capsys)
    assert [item["state"] for item in results] == ["holds", "holds"]
    code, (result,) = world.lint("A step takes [1.10 s per step](receipt:<a0>).", capsys=capsys)
    assert (code, result["state"]) == (1, "refuted")


@pytest.mark.parametrize("text", ["[1.25× faster](receipt:<a0>..<b0>)", "[+25 % throughput](receipt:<a0>..<b0>)"])
def test_a_difference_is_held_against_the_comparison(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = world.lint(f"The ring is {text}.", capsys=capsys)
    assert (code, result["state"]) == (0, "holds"), result
    assert "95 % interval 1.2" in result["found"]


@pytest.mark.parametrize("text", ["[1.4× faster](receipt:<a0>..<b0>)", "[25 % slower](receipt:<a0>..<b0>)"])
def test_a_difference_outside_the_interval_is_refuted(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = world.lint(f"The ring is {text}.", capsys=capsys)
    assert (code, result["state"], result["code"]) == (1, "refuted", "K103")


def test_a_change_is_held_against_both_readings(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    text = "Step time fell [from {} s to {} s](receipt:<a0>..<b0>)."
    _, (wrong,) = world.lint(text.format("0.90", "0.64"), capsys=capsys)
    assert (wrong["state"], wrong["code"]) == ("refuted", "K103")
    _, (right,) = world.lint(text.format("0.80", "0.64"), capsys=capsys)
    assert right["state"] == "holds"


def test_two_readings_in_a_link_are_those_of_its_two_receipts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, results = world.lint("Steps took [800 ms before and 640 ms after](receipt:<a0>..<b0>).", capsys=capsys)
    assert [item["state"] for item in results] == ["holds", "holds"]
    _, results = world.lint("Steps took [640 ms before and 800 ms after](receipt:<a0>..<b0>).", capsys=capsys)
    assert [item["state"] for item in results] == ["refuted", "refuted"]


def test_of_two_readings_the_second_may_be_the_earlier(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, results = world.lint("Steps take [640 ms/step, down from 800 ms/step](receipt:<a0>..<b0>).", capsys=capsys)
    assert [item["state"] for item in results] == ["holds"]


def test_a_link_holds_the_number_that_it_encloses(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = rate(world, "a0"), rate(world, "b0")
    for text in (
        "Step time fell from 0.80 s to [0.64 s](receipt:<b0>).",
        f"Tokens/s: {a:,.0f} → [{b:,.0f}](receipt:<b0>)",
    ):
        _, results = world.lint(text, capsys=capsys)
        assert results[-1]["state"] == "holds", results
        _, results = world.lint(text.replace("[0.64", "[0.70").replace(f"[{b:,.0f}", f"[{b * 0.9:,.0f}"), capsys=capsys)
        assert results[-1]["state"] == "refuted", results


def test_every_figure_of_a_linked_list_is_held_to_its_receipt(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, results = world.lint("The run: [800 ms/step, 71.2 GiB](receipt:<a0>) on 141 GB cards.", capsys=capsys)
    assert [item["metric"] for item in results] == ["step_seconds", "peak_bytes"]
    assert [item["state"] == "holds" for item in results] == [True, False]
    _, results = world.lint(
        "It trades [3 % more memory for 25 % higher throughput](receipt:<a0>..<b0>).", capsys=capsys
    )
    assert results[1]["state"] == "holds", results


def test_what_is_no_performance_is_held_to_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, (result,) = world.lint("It cuts training cost by [20 %](receipt:<a0>..<b0>).", capsys=capsys)
    assert result["state"] == "unproven"


@pytest.mark.parametrize("words", ["receipt", "1", "run 12", "the 3rd launch"])
def test_a_link_without_a_figure_backs_the_statement_before_it(
    world: World, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (result,) = world.lint(f"It takes 800 ms/step ([{words}](receipt:<a0>)).", capsys=capsys)
    assert result["state"] == "holds", result


def test_a_label_says_what_its_number_is_of(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, (result,) = world.lint("Throughput: [+25 %](receipt:<a0>..<b0>), peak memory is the same.", capsys=capsys)
    assert (result["state"], result["metric"]) == ("holds", "tokens_per_second")


@pytest.mark.parametrize("text", ["We never saw more than a [30 %]", "It is never more than [30 %]"])
def test_what_is_never_more_is_a_bound(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, (result,) = world.lint(f"{text}(receipt:<a0>..<b0>) faster.", capsys=capsys)
    assert result["state"] == "holds", result


@pytest.mark.parametrize(
    "text",
    [
        '<a href="receipt:<a0>">800 ms/step</a>',
        "[800[^1] ms/step](receipt:<a0>)",
    ],
)
def test_a_link_is_read_in_other_forms_as_well(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, (right,) = world.lint(f"It takes {text}.", capsys=capsys)
    assert (right["state"], right["link"]) == ("holds", f"receipt:{world.ids['a0'][:12]}")
    _, (wrong,) = world.lint(f"It takes {text}.".replace("800", "900"), capsys=capsys)
    assert wrong["state"] == "refuted"


def test_a_share_of_one_launch_is_no_difference(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("[12 % of the step](receipt:<a0>)", "[45 GiB (57 %)](receipt:<a0>)", "[80 % of HBM](receipt:<a0>)"):
        _, results = world.lint(f"It takes {text}.", capsys=capsys)
        assert results[-1]["state"] == "unproven", results


def test_a_printed_tps_is_that_of_a_chip_or_of_all(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    value = rate(world, "a0")
    _, (result,) = world.lint(f"It prints [tps: {value:,.0f}](receipt:<a0>).", capsys=capsys)
    assert result["state"] == "holds"


def test_a_shape_in_thousands_is_of_1024_or_of_1000(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    _, (result,) = world.lint("It [fits at 4K context](receipt:<a0>).", capsys=capsys)
    assert (result["state"], "sequence_length" in result["found"]) == ("refuted", True)


def test_a_row_has_columns_of_their_own_metrics(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    head = "| Run | Time per Global Step (s) | HFU | Throughput (S/s) | Goodput |\n| - | - | - | - | - |\n"
    _, results = world.lint(head + "| [compile](receipt:<a0>) | 0.80 | 55.0 | 251 | 97 % |", capsys=capsys)
    assert [(item["metric"], item["state"]) for item in results] == [("step_seconds", "holds")]
    _, results = world.lint("It has a [latency of 12 ms](receipt:<a0>) and [55 % HFU](receipt:<a0>).", capsys=capsys)
    assert [item["state"] for item in results] == ["unproven", "unproven"]


def test_a_difference_needs_two_receipts(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, (result,) = world.lint("It is [1.25× faster](receipt:<a0>).", capsys=capsys)
    assert (code, result["code"]) == (1, "K101")
    assert "BASELINE..CANDIDATE" in result["do"]


def test_an_id_that_is_not_in_the_store_backs_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, (result,) = world.lint("It runs at [98k tok/s](receipt:ffffffffffff).", capsys=capsys)
    assert (code, result["state"], result["code"]) == (1, "refuted", "K101")


def test_a_receipt_that_no_longer_stands_makes_its_number_stale(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    value = rate(world, "old")
    code, (result,) = world.lint(f"It runs at [{value:,.0f} tok/s](receipt:<old>).", capsys=capsys)
    assert (code, result["state"], result["code"]) == (3, "stale", "K106")
    assert "its gradients were wrong" in result["found"]


def test_a_quoted_receipt_proves_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    value = rate(world, "quoted")
    code, (result,) = world.lint(f"It runs at [{value:,.0f} tok/s](receipt:<quoted>).", capsys=capsys)
    assert (code, result["state"]) in {(1, "refuted"), (3, "unproven")}
    assert "quoted" in result["found"]


def test_the_speed_of_a_launch_that_did_not_end_well_is_refuted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = world.lint("It runs at [800 ms/step](receipt:<nan>).", capsys=capsys)
    assert (code, result["state"], result["code"]) == (1, "refuted", "C105")
    assert result["found"].endswith("and the launch ended in nan")
    code, (result,) = world.lint("It runs at [800 ms/step](receipt:<preempted>).", capsys=capsys)
    assert (code, result["state"]) == (3, "unproven")


def test_a_launch_that_ended_well_does_not_show_that_it_ran_out_of_memory(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = world.lint("The lane [OOMs at MBS=10](receipt:<a0>).", capsys=capsys)
    assert (code, result["state"]) == (1, "refuted")
    assert "ended ok" in result["found"]


def test_a_claim_that_nobody_made_backs_nothing(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    code, (result,) = world.lint("It is [twice as fast](claim:nobody-said-so).", capsys=capsys)
    assert (code, result["code"]) == (1, "K101")


def test_statements_without_links_are_warnings_until_somebody_is_strict(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "It runs at 98k tok/s.\n\nIt reaches 41 % MFU.\n"
    code, results = world.lint(text, capsys=capsys)
    assert (code, [item["code"] for item in results]) == (0, ["K107", "K107"])
    assert world.lint(text, "--strict", capsys=capsys)[0] == 1
    assert world.lint(text, "--max-warnings", "2", capsys=capsys)[0] == 0
    assert world.lint(text, "--max-warnings", "1", capsys=capsys)[0] == 1
    ignored = "<!-- receipts: ignore the vendor says so -->\nIt reaches 41 % MFU.\n"
    assert world.lint(ignored, "--strict", capsys=capsys)[0] == 0


def test_a_page_without_links_needs_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.md"
    path.write_text("It runs at 98k tok/s.\n")
    assert main(["--store", str(tmp_path / "none.sqlite"), "lint", str(path)]) == 0
    assert "K107" in capsys.readouterr().out
    path.write_text("It runs at [98k tok/s](receipt:3f9c).\n")
    assert main(["--store", str(tmp_path / "none.sqlite"), "lint", str(path)]) == 4
    assert "there is no store" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path / "none.md")]) == 2
    assert "none.md" in capsys.readouterr().err
    assert main(["lint"]) == 2


def test_sarif_is_what_the_standard_asks_for(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    path = world.folder / "a page é.md"
    path.write_text("It runs at [98k tok/s](receipt:ffffffffffff) and 99k tok/s.\n\n[x](receipt:ffff)\n")
    main(["--store", world.url, "lint", str(path), "--format", "sarif"])
    log = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(SCHEMA).validate(log)
    (run,) = log["runs"]
    assert [item["ruleId"] for item in run["results"]] == ["K101", "K107", "page-note"]
    for item in run["results"]:
        assert run["tool"]["driver"]["rules"][item["ruleIndex"]]["id"] == item["ruleId"]
    region = run["results"][1]["locations"][0]["physicalLocation"]["region"]
    assert path.read_text().splitlines()[0][region["startColumn"] - 1 : region["endColumn"] - 1] == "99k tok/s"


def test_the_schema_refuses_what_is_no_sarif() -> None:
    broken = {"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x"}}, "results": [{"level": "bad"}]}]}
    assert not jsonschema.Draft202012Validator(SCHEMA).is_valid(broken)
    good = copy.deepcopy(broken)
    good["runs"][0]["results"] = [{"message": {"text": "x"}, "level": "error"}]  # type: ignore[index]
    assert jsonschema.Draft202012Validator(SCHEMA).is_valid(good)


def test_annotations_are_commands_of_one_line_with_their_signs_escaped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a,b.md"
    path.write_text("We see 29.2 % MFU.\n")
    assert main(["lint", str(path), "--format", "github"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("::warning file=")
    assert "a%2Cb.md,line=1,col=8,endColumn=18,title=K107::" in out
    assert "29.2 %25 MFU" in out
    assert out.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "lower", "low", "high"),
    [
        ("It is 1.3× faster.", False, 1.25, 1.35),
        ("It is 1.3× faster.", True, 1 / 1.35, 1 / 1.25),
        ("Peak memory is 2.0× lower.", True, 1 / 2.05, 1 / 1.95),
        ("This gives +13.3 % throughput.", False, 1.1325, 1.1335),
        ("Throughput changed by −34 %.", False, 0.655, 0.665),
        ("It uses 2.5x less memory.", True, 1 / 2.55, 1 / 2.45),
        ("Throughput is within 2 % of the baseline.", False, 0.975, 1.025),
        ("Throughput fell to 60 % of the baseline.", False, 0.595, 0.605),
        ("It is at least 30 % faster.", False, 1.295, float("inf")),
        ("Throughput is at most 2 % lower.", False, 0.975, 1.9),
    ],
)
def test_a_factor_and_a_percentage_become_the_ratio_that_they_mean(
    text: str, lower: bool, low: float, high: float
) -> None:
    (item,) = [item for item in page(f"[{text}](receipt:a..b)", "a.md") if isinstance(item, Statement)]
    (said,) = ratios(item, lower_is_better=lower)
    assert said.low == pytest.approx(low)
    assert said.high == pytest.approx(high)


def test_slower_may_be_said_of_the_rate_or_of_the_time() -> None:
    text = "It is [25 % slower](receipt:a..b)."
    (item,) = [item for item in page(text, "a.md") if isinstance(item, Statement)]
    said = ratios(item, lower_is_better=False)
    assert any(one.contains(0.75) for one in said)
    assert any(one.contains(0.8) for one in said)


@pytest.mark.parametrize(
    "text",
    [
        "Step time [improved by 20 %](receipt:<a0>..<b0>).",
        "Step time [improved by 25 %](receipt:<a0>..<b0>).",
        "Step time fell [by 160 ms](receipt:<a0>..<b0>).",
        "It saves [−160 ms per step](receipt:<a0>..<b0>).",
        "It is [at least 1.2× faster](receipt:<a0>..<b0>).",
        "It is [up to 30 % faster](receipt:<a0>..<b0>).",
        "It is [less than 30 % faster](receipt:<a0>..<b0>).",
        "It costs [at most 2 % throughput](receipt:<a0>..<b0>).",
        "Going back would be slower: [0.8× the step time](receipt:<a0>..<b0>).",
        "Step time is [80 % of the baseline](receipt:<a0>..<b0>).",
        "Step time fell [from 800 to 640 ms](receipt:<a0>..<b0>).",
        "A step takes [0.64 s instead of 0.80 s](receipt:<a0>..<b0>).",
        "It [saves 160 ms per step](receipt:<a0>..<b0>).",
        "[Saves 160 ms per step](receipt:<a0>..<b0>).",
        "Without it a run is [1.25 times as slow](receipt:<b0>..<a0>).",
        "Throughput is [within 30 %](receipt:<a0>..<b0>) of the baseline.",
        "A step takes [under 0.9 s per step](receipt:<a0>).",
        "A step takes [about 0.8 s per step](receipt:<a0>).",
        "Step time [fell by more than 15 %](receipt:<a0>..<b0>).",
        "It cuts step time [by up to 30 %](receipt:<a0>..<b0>).",
        "Throughput [grew by less than 30 %](receipt:<a0>..<b0>).",
        "Throughput [rose by no more than 30 %](receipt:<a0>..<b0>).",
        "Step time [fell by more than 100 ms](receipt:<a0>..<b0>).",
        "Step time [fell by 150-170 ms](receipt:<a0>..<b0>).",
        "Step time [is down 160 ms](receipt:<a0>..<b0>).",
        "A step is [160 ms faster](receipt:<a0>..<b0>).",
        "Without it a step is [160 ms slower](receipt:<b0>..<a0>).",
        "Step time fell [from about 800 to 640 ms](receipt:<a0>..<b0>).",
        "Going back [gives up 20 % of throughput](receipt:<b0>..<a0>).",
        "Going back [trades 20 % of throughput](receipt:<b0>..<a0>) for nothing.",
        "Step time [differs by less than 30 %](receipt:<a0>..<b0>).",
        "A step takes [812 ± 20 ms/step](receipt:<a0>).",
        "A step takes [812 ms ± 20 ms per step](receipt:<a0>).",
        "The step is [20 % shorter](receipt:<a0>..<b0>) with it.",
        "Going back makes the step [1.25x longer](receipt:<b0>..<a0>).",
        "Throughput is [125 % of that without it](receipt:<a0>..<b0>).",
        "It never uses more than [0.7 GiB](receipt:<a0>) of memory.",
        "Steps are [160 ms shorter](receipt:<a0>..<b0>).",
        "It is a [20.0 % reduction in time](receipt:<a0>..<b0>).",
        "A [20 %](receipt:<a0>..<b0>) drop in step time.",
        "Mean step time: [0.80 s (std 1.48 ms)](receipt:<a0>).",
        "Step time: [0.64 s vs 0.80 s](receipt:<a0>..<b0>).",
        "It ran at [0.80 s/step on 8x H100](receipt:<a0>).",
    ],
)
def test_a_true_difference_is_not_refuted_however_it_is_said(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (result,) = world.lint(text, capsys=capsys)
    assert result["state"] == "holds", result


@pytest.mark.parametrize(
    "text",
    [
        "A step takes [0.64 s instead of 0.90 s](receipt:<a0>..<b0>).",
        "Step time [rose by 160 ms](receipt:<a0>..<b0>).",
        "It is [at least 1.4× faster](receipt:<a0>..<b0>).",
        "It is [up to 10 % faster](receipt:<a0>..<b0>).",
        "Throughput is [within 2 %](receipt:<a0>..<b0>) of the baseline.",
        "A step takes [under 0.7 s per step](receipt:<a0>).",
        "Step time [fell by more than 30 %](receipt:<a0>..<b0>).",
        "Step time [fell by 170-190 ms](receipt:<a0>..<b0>).",
        "A step is [160 ms slower](receipt:<a0>..<b0>).",
        "A step takes [812 ± 5 ms/step](receipt:<a0>).",
    ],
)
def test_a_false_difference_is_refuted_however_it_is_said(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, (result,) = world.lint(text, capsys=capsys)
    assert (result["state"], result["code"]) == ("refuted", "K103"), result


@pytest.mark.parametrize(
    "text",
    [
        "It brought [25 %](receipt:<a0>..<b0>).",
        "Accuracy fell by [0.2 %](receipt:<a0>..<b0>).",
        "Loading is [3x faster](receipt:<a0>..<b0>).",
        "The run took [99.0 min](receipt:<a0>) in total.",
        "It uses [2 % less disk](receipt:<a0>..<b0>).",
        "It is [twice as fast](receipt:<a0>..<b0>).",
        "Step time was [cut by a fifth](receipt:<a0>..<b0>).",
    ],
)
def test_a_number_of_which_no_word_says_what_it_is_of_is_unproven(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (result,) = world.lint(text, capsys=capsys)
    assert (code, result["state"]) == (3, "unproven"), result


def test_a_terminal_shows_states_in_color(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("receipts.cli.output.terminal", lambda: Terminal(colored=True))
    path = tmp_path / "page.md"
    path.write_text("Training has 41 % MFU now.\n", encoding="utf-8")
    assert main(["lint", str(path)]) == 0
    assert "\x1b[36munreceipted\x1b[0m" in capsys.readouterr().out
