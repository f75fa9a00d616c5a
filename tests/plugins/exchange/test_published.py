"""The page of published results: spreads, pairs one axis apart, and two submissions axis by axis."""

from __future__ import annotations

import json
from typing import Any

from receipts.judging.rulebook import Rulebook
from receipts.plugins.exchange.published import SubmissionSpread, pairs, submissions
from receipts.plugins.exchange.verbs import pair_page, spreads_page
from receipts.publish.markup import markdown
from receipts.receipt import Document, Parsed, parse

LANE = Rulebook().lanes.get("mlperf-closed")


def launch(system: str, number: int, seconds: float = 2.0, **changed: Any) -> Parsed:
    tree: dict[str, Any] = {
        "schema_version": "1.0",
        "run": {
            "launch": f"{system}-{number}",
            "lane": "mlperf-closed",
            "kind": "training",
            "outcome": "ok",
            "provenance": "measured",
            "started": f"2026-01-0{number}T00:00:00Z",
            "context": f"mlperf/{system}/bench",
        },
        "hardware": {"accelerator": "NVIDIA H200-SXM5-141GB", "chips": 8, "hosts": 1},
        "model": {"name": "bench"},
        "batch": {"global_batch": 8, "micro_batch": 1},
        "measurement": {
            "interval_means_seconds": [seconds + number / 1000 + step / 10_000 for step in range(12)],
            "interval_steps": [6] * 12,
        },
    }
    for path, value in changed.items():
        section, leaf = path.split("__")
        tree.setdefault(section, {})[leaf] = value
    return parse(Document(json.dumps(tree).encode(), "made.json"))


def listed() -> list[SubmissionSpread]:
    every = [launch("a", number) for number in (1, 2, 3)]
    every += [launch("b", number, 1.0, batch__micro_batch=2) for number in (1, 2, 3)]
    every += [launch("c", number, 3.0, features__image="x") for number in (1, 2, 3)]
    return submissions([*every, launch("a", 3)], LANE)


def test_copies_count_once_and_spreads_are_those_of_launches() -> None:
    a, b, _ = listed()
    assert (a.context, len(a.launches), a.accelerator) == ("mlperf/a/bench", 3, "h200-sxm")
    assert a.spread is not None
    assert 0.0004 < a.spread < 0.0006
    assert b.location is not None
    assert 1.0 < b.location < 1.01


def test_a_pair_is_one_axis_apart_where_no_side_alone_states_an_axis() -> None:
    found = {(item.a.context[7], item.b.context[7]): item for item in pairs(listed(), LANE)}
    assert found["a", "b"].one_axis
    assert found["a", "b"].apart.axes == ("batch.micro_batch",)
    assert not found["a", "c"].one_axis
    assert "features.image" in found["a", "c"].lopsided


def test_the_page_names_what_differs_and_by_how_much() -> None:
    every = listed()
    found = list(pairs(every, LANE))
    text = markdown(spreads_page(every, found), document=True)
    assert "## bench on h200-sxm" in text
    assert "| mlperf/a/bench | 8 | 3 of 3 | 8 | 2.003 | 0.05% |" in text
    assert "1 of 3 pairs on one accelerator are one axis apart" in text
    pair = markdown(pair_page(next(item for item in found if item.one_axis)), document=True)
    assert "| batch.micro_batch | 1 | 2 |" in pair
    assert "One stated axis differs, batch.micro_batch" in pair
