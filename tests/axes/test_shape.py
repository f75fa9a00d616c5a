"""A shape is read from axes, and never from labels: one key for frontiers, ceilings, envelopes, failures and claims."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

import report_store as week
import rule_cases
from command_line import Shell
from receipts.axes.lane import load_lanes
from receipts.axes.shape import described, name_of, parts, shape_key, target_of
from receipts.judging.facts import shape_standing
from receipts.publish.page import text as as_text
from receipts.publish.report.render import first_screen
from receipts.questions.ceiling import frontiers
from receipts.questions.week.collect import collect
from receipts.questions.week.interval import Week
from receipts.receipt.patterns import family_of
from receipts.store import Store, open_store
from receipts.store.entries import VerdictColumns, promoted
from receipts.store.query.reports import SHAPE
from store_receipts import RULEBOOK, parsed, ready
from thorough import unless_thorough

NOW = datetime(2026, 3, 9, tzinfo=UTC)
LANE = "cpu-torch"
EXPERTS = {"model__experts": 8, "model__top_k": 2}  # without them neither top-k nor expert parallelism can act
# Each with another value than the base with experts has.
ROW: dict[str, Any] = {
    "model__pattern": "*---",
    "model__depth": 4,
    "model__sparse_attention": "dsa_tilelang",
    "model__attention_kinds": "4 DSA",
    "model__hidden": 512,
    "model__heads": 8,
    "model__ffn": 1024,
    "model__vocabulary": 8192,
    "model__experts": 16,
    "model__top_k": 4,
    "batch__sequence_length": 512,
    "hardware__accelerator": "h200",
    "hardware__chips": 8,
}
CUT: dict[str, Any] = {
    "parallelism__tensor": 2,
    "parallelism__expert": 4,
    "parallelism__pipeline": 2,
    "parallelism__shard": 8,
    "batch__micro_batch": 4,
}
LABELS: dict[str, Any] = {
    "model__name": "another name",
    "model__family": "sparse",
    "run__label": "another label",
    "run__context": "another context",
    "run__host": "another host",
    "run__tags": ["another"],
}
AE = {"model.pattern": "AEMEAEMEAEMR", "model.experts": 16, "model.top_k": 4}
AM = {"model.pattern": "AMMMAMMMAMMM", "model.experts": 0, "model.top_k": 0}
NAM = {"model.alphabet": "nam", "model.depth": 52, "model.attention_kinds": "13 full", "model.name": "NAM52"}
SPARSE = {"model.sparse_attention": "dsa_tilelang", "model.attention_kinds": "13 DSA"}


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as made:
        yield made


def columns_of(**leaves: Any) -> dict[str, Any]:
    launch, verdict = ready(**{**EXPERTS, **leaves})
    return promoted(launch, VerdictColumns.by(verdict), NOW)


def row(**leaves: Any) -> tuple[Any, ...]:
    """The row of a frontier that a receipt stands in."""
    columns = columns_of(**leaves)
    return tuple(columns[name] for name in SHAPE)


def envelope(**leaves: Any) -> tuple[Any, ...]:
    """What its ceilings, envelope and failures are kept by."""
    columns = columns_of(**leaves)
    return (*(columns[name] for name in SHAPE), columns["layout"], columns["micro_batch"])


@pytest.mark.parametrize("path", ROW)
def test_receipts_that_differ_in_a_shape_axis_share_no_row(path: str) -> None:
    assert row(**{path: ROW[path]}) != row()
    assert row(**{path: None}) != row()


@pytest.mark.parametrize("path", CUT)
def test_a_layout_and_a_micro_batch_make_another_envelope_and_no_other_row(path: str) -> None:
    assert envelope(**{path: CUT[path]}) != envelope()
    assert row(**{path: CUT[path]}) == row()


def test_a_tuned_constant_of_communication_makes_no_other_layout() -> None:
    assert envelope(parallelism__bucket_bytes=2**26) == envelope()


@pytest.mark.slow
def test_rows_are_shared_where_no_shape_axis_differs_and_only_there() -> None:
    random = Random(16)
    for _ in range(unless_thorough(40, 200)):
        labels, leaves = ({key: of[key] for key in of if random.random() < 0.2} for of in (LABELS, {**ROW, **CUT}))
        assert (row(**labels, **leaves) == row()) == (not leaves.keys() & ROW.keys())
        assert (envelope(**labels, **leaves) == envelope()) == (not leaves)
        signed = name_of(parts(parsed(**{**EXPERTS, **labels, **leaves})))
        assert (signed == name_of(parts(parsed(**EXPERTS)))) == (not leaves)


def test_a_pattern_is_the_stack_that_it_makes() -> None:
    assert shape_key(parsed(model__pattern="*-")) == shape_key(parsed())


@pytest.mark.parametrize(
    ("pattern", "family"),
    [
        ("AEMEAEMEAEMR", "hybrid"),
        ("AEAE", "moe"),
        ("MMM", "ssm"),
        ("*-", "dense"),
        ("D-", "sparse"),
        ("A?", None),
    ],
)
def test_a_family_is_derived_from_the_pattern_where_it_is_not_stated(pattern: str, family: str | None) -> None:
    assert family_of(pattern) == family
    assert described({"model.pattern": pattern, "model.family": "stated"}).family == "stated"
    assert described({"model.pattern": pattern}).family == family


def _lane(place: Path, *sides: dict[str, Any]) -> Any:
    """The lane of a weekly report of one launch a side, the later the slower."""
    launches = [
        made
        for number, side in enumerate(sides)
        for made in week.one(chr(ord("a") + number), {**week.day(3), **NAM, **side}, {"seconds": 0.5 + number / 10})
    ]
    (lane,) = week_data(week.fill(place, launches)).lanes
    return lane


def week_data(store: Store) -> Any:
    return collect(store, RULEBOOK, Week.parse(week.WEEK), datetime.fromisoformat(week.AS_OF))


@pytest.mark.parametrize("family", ["hybrid", None])
def test_patterns_of_one_name_have_rows_of_their_own(tmp_path: Path, family: str | None) -> None:
    lane = _lane(tmp_path / "s.sqlite", {**AE, "model.family": family}, {**AM, "model.family": family})
    rows = (*lane.frontier, *lane.stated)
    assert {item.family for item in rows} == {"hybrid"}
    assert {item.axes.split()[0] for item in rows} == {"AEMEAEMEAEMR", "AMMMAMMMAMMM"}


def test_an_unlabelled_dense_run_replaces_no_hybrid_one(tmp_path: Path) -> None:
    bare = {"model.family": None, "model.name": None}
    dense = {**bare, "model.pattern": "A" * 12, "model.attention_kinds": "52 full"}
    lane = _lane(tmp_path / "s.sqlite", dense, {**AM, **bare})
    assert sorted(item.family for item in (*lane.frontier, *lane.stated)) == ["dense", "hybrid"]


def test_a_sparse_model_is_first_of_itself_and_says_so(tmp_path: Path) -> None:
    store = week.fill(
        tmp_path / "s.sqlite",
        [
            *week.one("a", week.day(3)),
            *week.one("b", {**week.day(4), "model.sparse_attention": "dsa_tilelang"}, {"seconds": 0.4}),
        ],
    )
    data = week_data(store)
    points = dict(first_screen(data, rule_cases.rulebook().rules).sections[0].points)
    assert "accepted" not in points, "a first result of its kind beats none"
    assert any("model.sparse_attention" in as_text(point) for point in points["next"]), "what it may be compared by"


def test_a_name_makes_no_row_of_its_own(tmp_path: Path) -> None:
    lane = _lane(
        tmp_path / "s.sqlite", {**AM, "model.family": "hybrid"}, {**AM, "model.name": "another", "model.family": None}
    )
    (one,) = (*lane.frontier, *lane.stated)
    assert one.model in ("NAM52", "another")


def _leaves(changes: dict[str, Any]) -> dict[str, Any]:
    return {path.replace(".", "__"): value for path, value in changes.items()}


def test_ceilings_and_envelopes_of_patterns_are_kept_apart(store: Store) -> None:
    ae, am = (_leaves({**NAM, "model.family": "hybrid", **side}) for side in (AE, AM))
    for leaves in (ae, ae, am):
        store.submit(*ready(**leaves))
    found = frontiers(store.query.reached(LANE)).frontiers
    assert sorted(item.ceilings[0].grade for item in found) == ["peak", "repeated"]
    assert str(shape_standing(store.query.facts(parsed(**ae)), parsed(**ae))).startswith("at a repeated ceiling")
    assert str(shape_standing(store.query.facts(parsed(**am)), parsed(**am))).startswith(
        "unknown: no shape of this lane"
    )


def test_show_compare_and_ceiling_say_it_by_axes(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.store(name, model__name="NAM52")
    shell.store("sparse", model__name="NAM52", model__sparse_attention="dsa_tilelang")
    assert "at a repeated ceiling" in " ".join(shell("show", "a").out.split())
    assert "unknown: no shape of this lane was sustained" in " ".join(shell("show", "sparse").out.split())
    said = shell("compare", "a", "sparse", "--json").json["envelope"]
    assert said["a"].startswith("at a repeated ceiling")
    assert said["b"].startswith("unknown")
    groups = shell("ceiling", "--lane", LANE, "--json").json["frontiers"]
    assert {group["name"] for group in groups} == {"NAM52"}
    assert sorted("sparse attention" in group["model"] for group in groups) == [False, True]
    assert len({group["shape"] for group in groups}) == 2


def test_a_target_is_met_by_its_pattern_and_a_substrate_is_none(checkout: Path) -> None:
    lane = load_lanes(checkout / "validators" / "lanes" / "nvidia-megatron.toml")
    tree = rule_cases.base("megatron")
    for path, value in {"model.depth": 52, "model.pattern": "AEMEAEMEAEMR" * 2}.items():
        rule_cases.put(tree, path, value)
    assert target_of(rule_cases.parsed(tree), lane) is not None
    rule_cases.put(tree, "model.pattern", "AMMMAMMMAMMM")
    assert target_of(rule_cases.parsed(tree), lane) is None
    tpu = load_lanes(checkout / "validators" / "lanes" / "tpu-torch-xla.toml")
    assert [item.name for item in tpu.targets] == ["NAM56R pretraining"]
    assert [item.name for item in tpu.substrates] == ["v6e-4 ablation substrate"]
