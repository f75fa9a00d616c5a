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
from receipts.plugins.lint.prose import sentence_at
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
    "| run | MFU |\n| --- | --- |\n| Megatron | {mega} |\n| TPU | {tpu} |\n",
    "Megatron reaches {mega}, ahead of the TPU lane with {tpu}.",
    "Megatron is the best framework with {mega}. The TPU lane has {tpu}.",
    "1. Megatron: {mega}\n2. TPU: {tpu}\n",
)
APART = (
    "| run | MFU |\n| --- | --- |\n| new | {mega} |\n| old | {slow} |\n",
    "The launch reaches {mega}, ahead of the older one with {slow}.",
    "## Megatron\n\nIt reaches {mega}.\n\n## TPU\n\nIt reaches {tpu}.\n",
    "| MFU |\n| --- |\n| {mega} |\n\n| MFU |\n| --- |\n| {tpu} |\n",
    "Megatron runs at {mega}. On the TPU it is {tpu}.",
)


@pytest.mark.parametrize("text", RANKS)
def test_lanes_in_one_order_of_mfu_are_refused(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, codes = world.lint(text, capsys)
    assert (code, codes) == (1, ["", "K109"])


@pytest.mark.parametrize("text", APART)
def test_mfu_of_one_lane_or_apart_is_accepted(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, codes = world.lint(text, capsys)
    assert (code, codes) == (0, ["", ""])


def test_the_message_names_the_lanes_and_what_to_do(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.page.write_text(RANKS[0].format(**world.words))
    assert main(["--store", world.url, "lint", str(world.page)]) == 1
    text = " ".join(capsys.readouterr().out.split())
    assert "K109" in text
    assert "across lanes: nvidia-megatron, tpu-torch-xla" in text
    assert "give each lane a table or section of its own" in text


def test_a_paragraph_without_a_full_stop_is_looked_at_near_each_number() -> None:
    text = "slow as 12 tok/s and then " * 10_000
    start, end = sentence_at(text, 100_000)
    assert start <= 100_000 < end <= start + 2_000
    assert sentence_at("One. Two 12 tok/s. Three.", 10) == (5, 18)


NAMED = (
    "Our TPU runs beat the H200 in MFU, 52 % to 48 %.",
    "MaxText reaches 52 % MFU, ahead of Megatron with 48 %.",
    "We get 52 % of peak on v6e and only 48 % on H200.",
    "The v6e has 1.2x the MFU of the H200.",
    "With 52 % MFU, MaxText outperforms Megatron.",
    "Megatron beats FSDP2 on H200, 46 % to 41 % MFU.",
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


@pytest.mark.parametrize("text", NOT_RANKED)
def test_names_of_two_lanes_alone_rank_nothing(world: World, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, codes = world.lint(text, capsys)
    assert code == 0
    assert "K109" not in codes
