"""MFU numbers of several lanes in one order are refused, though each number holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import rule_cases as cases
import section_store as week
from receipts import metrics
from receipts.cli import main
from receipts.store import Store, open_store


class World:
    """A store with a launch of three lanes, two of one of them, and each one's MFU as a page prints it."""

    def __init__(self, store: Store, url: str, page: Path) -> None:
        start = week.MONDAY + timedelta(days=1)
        tpu = {"run.launch": "tpu", "run.started": start.isoformat()}
        tpu["run.finished"] = (start + timedelta(minutes=30)).isoformat()
        parsed = {
            "mega": week.launch("mega", 1, 2.3),
            "slow": week.launch("slow", 2, 2.9),
            "tpu": cases.parsed(cases.build({"set": tpu, "steps": {"seconds": 2.3, "seed": 3}}, "tpu"), "tpu.json"),
        }
        week.put(store, list(parsed.values()))
        self.url, self.page = url, page
        self.words = {}
        for name, one in parsed.items():
            share = cases.rulebook().launch(one).read(metrics.get("mfu")).value
            assert share is not None
            self.words[name] = f"[{share:.1%} MFU](receipt:{one.id[:12]})".replace("%", " %")

    def lint(self, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
        """Exit code, and the code of each statement's rule."""
        self.page.write_text(text.format(**self.words))
        code = main(["--store", self.url, "lint", str(self.page), "--json"])
        results = json.loads(capsys.readouterr().out)["results"]
        return code, [item["code"] or "" for item in results]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("ranking")
    url = str(folder / "store.sqlite")
    with open_store(url) as store:
        yield World(store, url, folder / "page.md")


RANKS = (
    ("| run | MFU |\n| --- | --- |\n| Megatron | {mega} |\n| TPU | {tpu} |\n", ["", "K109"]),
    ("| run | MFU |\n| --- | --- |\n| a | {mega} |\n| b | {tpu} |\n| c | {slow} |\n", ["", "K109", ""]),
    ("Megatron reaches {mega}, ahead of the TPU lane with {tpu}.", ["K109", ""]),
    ("Megatron is the best framework with {mega}. The TPU lane has {tpu}.", ["K109", ""]),
    ("Megatron has {mega}. The TPU lane leads with {tpu}.", ["", "K109"]),
    ("1. Megatron: {mega}\n2. TPU: {tpu}\n", ["", "K109"]),
)
APART = (
    "| run | MFU |\n| --- | --- |\n| new | {mega} |\n| old | {slow} |\n",
    "The launch reaches {mega}, ahead of the older one with {slow}.",
    "## Megatron\n\nIt reaches {mega}.\n\n## TPU\n\nIt reaches {tpu}.\n",
    "| MFU |\n| --- |\n| {mega} |\n\n| MFU |\n| --- |\n| {tpu} |\n",
    "Megatron runs at {mega}. On the TPU it is {tpu}.",
)


@pytest.mark.parametrize(("text", "codes"), RANKS)
def test_lanes_in_one_order_of_mfu_are_refused_where_they_are_ranked(
    world: World, text: str, codes: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.lint(text, capsys) == (1, codes)


@pytest.mark.parametrize("text", APART)
def test_mfu_of_one_lane_or_apart_is_accepted(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, codes = world.lint(text, capsys)
    assert (code, codes) == (0, ["", ""])


def test_the_message_names_the_lanes_and_what_to_do(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.page.write_text(RANKS[0][0].format(**world.words))
    assert main(["--store", world.url, "lint", str(world.page)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "K109" in text
    assert "across lanes: nvidia-megatron, tpu-torch-xla" in text
    assert "give each lane a table or section of its own" in text


NAMED = (
    "Our TPU runs beat the H200 in MFU, 52 % to 48 %.",
    "MaxText reaches 52 % MFU, ahead of Megatron with 48 %.",
    "We get 52 % of peak on v6e and only 48 % on H200.",
    "The v6e has 1.2x the MFU of the H200.",
    "With 52 % MFU, MaxText outperforms Megatron.",
    "Megatron beats FSDP2 on H200, 46 % to 41 % MFU.",
    "In MFU, MaxText beats Megatron.",
)
NOT_RANKED = (
    "Our H200 runs reach 48 % MFU. The TPU runs reach 52 % MFU.",
    "TPU runs reach 52 % MFU, up from 48 % a week ago, while the H200 lane is being rebuilt.",
    "On H200, Megatron beats last week's run, 46 % to 44 % MFU.",
    "H200 gives 48 % MFU, TPU is only supported by MaxText.",
    "torch 2.9 on TPU beats torch 2.8, 52 % to 48 % MFU.",
    "Our TPU runs beat the H200, 52,000 tok/s to 48,000 tok/s.",
    "<!-- receipts: ignore quoted to show what not to do -->\nOur TPU runs beat the H200 in MFU, 52 % to 48 %.",
)


@pytest.mark.parametrize("text", NAMED)
def test_lanes_that_words_rank_are_refused_without_a_link(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, codes = world.lint(text, capsys)
    assert (code, codes[-1]) == (1, "K109")
    assert "K109" not in codes[:-1], "once for each order"


TABLES = (
    ("| framework | MFU |\n|---|---|\n| Megatron | 46 % |\n| MaxText | 52 % |\n| FSDP2 | 41 % |\n", 4),
    ("| stack | chip | MFU |\n|---|---|---|\n| a | H200 | 46 % |\n| b | H100 | 41 % |\n| c | v6e | 52 % |\n", 5),
    ("| | Megatron | MaxText |\n|---|---|---|\n| MFU | 46 % | 52 % |\n", 3),
)
TABLES_OF_ONE_LANE = (
    "| chip | MFU |\n|---|---|\n| H200 | 46 % |\n| H100 | 41 % |\n",
    "| model | MFU |\n|---|---|\n| 8B | 46 % |\n| 70B | 41 % |\n",
    "| framework | tok/s |\n|---|---|\n| Megatron | 98,112 |\n| MaxText | 91,004 |\n",
)


@pytest.mark.parametrize(("text", "line"), TABLES)
def test_a_table_that_ranks_lanes_is_refused_at_its_first_row_of_another_lane(
    world: World, text: str, line: int, capsys: pytest.CaptureFixture[str]
) -> None:
    world.page.write_text(text + "\nMegatron had 44 % MFU in an innocent line.\n")
    assert main(["--store", world.url, "lint", str(world.page), "--json"]) == 1
    refused = [item for item in json.loads(capsys.readouterr().out)["results"] if item["state"] == "refuted"]
    assert [(item["code"], item["line"]) for item in refused] == [("K109", line)]


@pytest.mark.parametrize("text", TABLES_OF_ONE_LANE)
def test_a_table_of_one_lane_or_of_another_metric_ranks_nothing(
    world: World, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert world.lint(text, capsys)[0] == 0


@pytest.mark.parametrize("text", NOT_RANKED)
def test_names_of_two_lanes_alone_rank_nothing(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, codes = world.lint(text, capsys)
    assert code == 0
    assert "K109" not in codes
