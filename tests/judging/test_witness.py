"""A profiled twin lends its path to the launch that it names, and to no other; on files, in both stores, in reports."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.base.environment import bundled_folder
from receipts.cli import main
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.verdict import ReceiptVerdict
from receipts.judging.witness import RECOMPUTE, lend
from receipts.questions.week.reader import ReportReader
from receipts.receipt import Document, Parsed
from receipts.store import Filters, Store, condition, open_store
from receipts.store.database import reading
from receipts.store.query import facts
from receipts.store.sql.statement import run
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK

BOOK = rule_cases.rulebook()
FACTS = Facts(sigma=0.003, sigma_df=30)
EXAMPLES = bundled_folder("schema") / "examples"
AUTO = {"path.intended.attention": "auto"}


def measured(launch: str = "measured", base: str = "megatron", **changes: Any) -> dict[str, Any]:
    """A launch that saw nothing of its path and has no evidence."""
    tree = rule_cases.build({"set": {"run.launch": launch, **changes}}, base)
    rule_cases.take(tree, "path.witnessed")
    rule_cases.take(tree, "evidence")
    rule_cases.take(tree, RECOMPUTE)
    return tree


def profiled(target: str = "measured", base: str = "megatron", **changes: Any) -> dict[str, Any]:
    """Its twin, which saw the whole path; forty slow steps, and a timer of its own."""
    own = {"run.launch": f"profile of {target}", "run.kind": "profile", "run.witness_for": target}
    own |= {"run.started": "2026-03-02T10:00:00+00:00", "run.finished": "2026-03-02T10:10:00+00:00"}
    tree = rule_cases.build({"steps": {"count": 40, "seconds": 9.0}, "set": {**own, **changes}}, base)
    rule_cases.take(tree, "measurement.goodput")
    rule_cases.take(tree, "measurement.step_flags")
    return tree


def parsed(tree: dict[str, Any], name: str = "case.json") -> Parsed:
    return rule_cases.parsed(tree, name)


def verdict_on(tree: dict[str, Any], *witnesses: dict[str, Any]) -> ReceiptVerdict:
    one = parsed(tree)
    facts = Facts.among([one, *map(parsed, witnesses)])
    return judge_receipt(one, BOOK.lanes.of(one.receipt.run.lane), BOOK.rules, facts)


def heavy(verdict: ReceiptVerdict) -> list[tuple[str, str]]:
    return [(item.code, item.at) for item in verdict.findings if item.level != "W"]


# What is lent


@pytest.mark.parametrize("base", sorted(rule_cases.BASES))
def test_a_launch_that_saw_nothing_is_witnessed_by_its_profiled_twin(base: str) -> None:
    alone = verdict_on(measured(base=base))
    assert (alone.status, alone.path, alone.witnesses) == ("open", "unwitnessed", ())
    twin = profiled(base=base)
    beside = verdict_on(measured(base=base), twin)
    assert (beside.status, beside.path) == ("valid", "witnessed"), heavy(beside)
    assert beside.witnesses == (parsed(twin).id,)


def test_a_launch_is_named_by_its_receipts_id_as_well_as_by_its_launch() -> None:
    one = measured()
    assert verdict_on(one, profiled(target=parsed(one).id)).path == "witnessed"
    assert verdict_on(one, profiled(target="another launch")).path == "unwitnessed"


def test_what_is_lent_leaves_the_document_as_it_is() -> None:
    one, twin = parsed(measured()), parsed(profiled())
    lent = lend(one, [twin], BOOK.lanes.of("nvidia-megatron"))
    assert (lent.parsed.id, lent.parsed.raw) == (one.id, one.raw)
    assert "path.witnessed.attention" not in one.stated
    assert lent.parsed.stated["path.witnessed.attention"] == "te_fused"
    assert lent.parsed.stated["measurement.timer"] == one.stated["measurement.timer"]
    assert set(lent.by.values()) == {twin.id}


def test_an_offense_that_a_witness_saw_names_it() -> None:
    twin = profiled(**{"path.witnessed.attention": "te_unfused"})
    found = verdict_on(measured(), twin)
    (offense,) = [item for item in found.findings if item.level == "E"]
    assert (found.path, offense.code, offense.at) == ("left", "R302", "path.witnessed.attention")
    assert f"witness {parsed(twin).id[:12]}" in offense.found


def test_what_a_launch_saw_itself_stands_against_its_twin_and_both_are_told() -> None:
    twin = profiled(**{"path.witnessed.attention": "te_unfused"})
    own = rule_cases.build({"set": {"run.launch": "measured"}}, "megatron")
    found = verdict_on(own, twin)
    (offense,) = [item for item in found.findings if item.level == "E"]
    assert (found.path, offense.at) == ("left", "path.witnessed.attention")
    assert offense.found == f"te_fused, and witness {parsed(twin).id[:12]} saw te_unfused"


def test_two_twins_that_disagree_are_an_offense() -> None:
    other = profiled(**{"run.launch": "second profile", "path.witnessed.gemm": "te_fp8"})
    assert verdict_on(measured(), profiled(), other).path == "left"


def test_a_twin_that_is_itself_superseded_lends_nothing() -> None:
    again = profiled(**{"run.label": "again", "run.supersedes": {"target": "profile of measured", "reason": "worn"}})
    rule_cases.take(again, "path.witnessed")
    rule_cases.take(again, "evidence")
    assert verdict_on(measured(), profiled(), again).path == "unwitnessed"


def test_a_witness_takes_nothing_from_a_witness_of_its_own() -> None:
    middle = measured("middle", **{"run.kind": "profile", "run.witness_for": "measured"})
    found = verdict_on(measured(), middle, profiled(target="middle"))
    assert found.path == "unwitnessed"
    assert any(item.code == "R308" and "shows nothing of the path" in item.found for item in found.findings)


@pytest.mark.parametrize(
    ("changes", "drop", "why"),
    [
        ({"batch.micro_batch": 2}, (), "batch.micro_batch is 2 there and 4 here"),
        ({"code.imported_digest": "c" * 64}, (), "code.imported_digest is cccc"),
        ({"run.lane": "nvidia-fsdp2"}, (), "run.lane is nvidia-fsdp2 there"),
        ({}, ("numerics.learning_rate",), "numerics.learning_rate not stated by the witness"),
        ({"run.provenance": "quoted"}, (), "was not measured"),
        ({}, ("evidence",), "its evidence is of level none"),
        ({}, ("path.witnessed", RECOMPUTE), "it shows nothing of the path"),
    ],
)
def test_a_witness_that_does_not_hold_lends_nothing_and_says_why(
    changes: dict[str, Any], drop: tuple[str, ...], why: str
) -> None:
    twin = profiled(**changes)
    for path in drop:
        assert rule_cases.take(twin, path)
    found = verdict_on(measured(), twin)
    assert (found.path, found.witnesses) == ("unwitnessed", ())
    (told,) = [item for item in found.findings if item.code == "R308"]
    assert (told.level, told.at) == ("W", "path.witnessed")
    assert why in told.found
    assert parsed(twin).id[:12] in told.found


# Comparisons


def fast(tree: dict[str, Any], launch: str, **changes: Any) -> dict[str, Any]:
    made = rule_cases.build({"steps": {"seconds": 0.6, "seed": 11}}, "cpu")
    left = copy.deepcopy(tree)
    for path, value in {"run.launch": launch, **changes}.items():
        rule_cases.put(left, path, value)
    for rate in ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "mfu"):
        rule_cases.take(left, f"measurement.stated.{rate}")
        rule_cases.take(left, f"measurement.stated.{rate}_stated")
    rule_cases.take(left, "measurement.goodput")
    rule_cases.take(left, "measurement.loss.first")
    steps = made["measurement"]["step_durations_seconds"]
    rule_cases.put(left, "measurement.step_durations_seconds", [step * (4 if launch == "a" else 3) for step in steps])
    return left


def compared(a: dict[str, Any], b: dict[str, Any], *witnesses: dict[str, Any]) -> Any:
    one, other = parsed(a, "a.json"), parsed(b, "b.json")
    facts = FACTS.beside([one, other, *map(parsed, witnesses)])
    return compare([one], [other], BOOK, Request(facts=facts))


def test_two_measured_launches_are_accepted_by_what_their_twins_saw() -> None:
    a, b = fast(measured(), "a"), fast(measured(), "b", **{"numerics.learning_rate": 7})
    twins = (profiled("a"), profiled("b", **{"numerics.learning_rate": 7}))
    assert compared(a, b).status == "inconclusive"
    assert compared(a, b, twins[0]).path == "unwitnessed"
    found = compared(a, b, *twins)
    assert found.status == "accepted", [(item.code, item.at, item.found) for item in found.findings]
    assert found.counted == ("numerics.learning_rate",)
    assert found.witnesses == tuple(parsed(twin).id for twin in twins)


def test_a_path_axis_takes_the_value_that_a_witness_saw() -> None:
    """`auto` beside a witnessed te_fused is no change where its twin saw te_fused as well."""
    a = fast(rule_cases.build({"set": AUTO}, "megatron"), "a")
    b = fast(measured(**AUTO), "b", **{"numerics.learning_rate": 7})
    assert "path.attention" in compared(a, b).counted
    assert compared(a, b, profiled("b", **AUTO, **{"numerics.learning_rate": 7})).counted == ("numerics.learning_rate",)


def test_launches_of_a_side_that_only_a_witness_tells_apart_are_open_and_no_mixture() -> None:
    group = [parsed(fast(measured(**AUTO), name), f"{name}.json") for name in ("a", "a2")]
    seed = {"numerics.learning_rate": 7}
    other = parsed(fast(measured(**AUTO), "b", **seed), "b.json")
    twins = [parsed(profiled("a", **AUTO)), parsed(profiled("b", **AUTO, **seed))]
    found = compare(group, [other], BOOK, Request(facts=FACTS.beside([*group, other, *twins])))
    assert (found.status, found.counted) == ("inconclusive", ("numerics.learning_rate",))
    assert "path.attention" in {item.axis for item in found.difference.unknown}


def test_one_witness_shows_the_path_of_every_launch_of_the_side_that_it_names() -> None:
    side = {"run.label": "one side"}
    twin, others = profiled("a"), [measured(name, **side) for name in ("a", "a2", "a3")]
    every = [parsed(tree) for tree in (*others, twin)]
    facts = replace(Facts.among(every), at_once={})
    for one in every[:3]:
        verdict = judge_receipt(one, BOOK.lanes.of(one.receipt.run.lane), BOOK.rules, facts)
        assert (verdict.status, verdict.path) == ("valid", "witnessed"), heavy(verdict)
        assert verdict.witnesses == (every[3].id,)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"run.label": "another side"}, "another label"),
        ({"run.label": "one side", "batch.micro_batch": 2}, "another configuration"),
        ({"run.label": "one side", "path.intended.attention": "auto"}, "a path that was left open"),
    ],
)
def test_and_of_no_launch_that_may_have_run_otherwise(changes: dict[str, Any], why: str) -> None:
    open_path = {"path.intended.attention": changes.get("path.intended.attention", "te_fused")}
    first, twin = measured("a", **{"run.label": "one side", **open_path}), profiled("a", **open_path)
    other = parsed(measured("other", **changes))
    facts = Facts.among([parsed(first), parsed(twin), other])
    verdict = judge_receipt(other, BOOK.lanes.of(other.receipt.run.lane), BOOK.rules, facts)
    assert verdict.path == "unwitnessed", why
    assert not [item for item in verdict.findings if item.code == "R308"]


# The store


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def put(store: Store, *trees: dict[str, Any]) -> list[ReceiptVerdict]:
    documents = [Document(parsed(tree).raw, "case.json") for tree in trees]
    found = list(submit(documents, store, RULEBOOK))
    assert all(item.stored for item in found), [item.error for item in found]
    return [item.verdict for item in found if item.verdict is not None]


def test_the_store_finds_the_witnesses_of_a_launch_and_whom_a_witness_names(store: Store) -> None:
    one, twin, stranger = measured(), profiled(), profiled(target="somebody else")
    put(store, one, twin, stranger)
    assert [item.id for item in store.query.facts(parsed(one)).witnesses] == [parsed(twin).id]
    assert [item.id for item in store.query.facts(parsed(twin)).witnessed] == [parsed(one).id]
    assert store.query.facts(parsed(stranger)).witnessed == ()
    rows = store.find(Filters((condition("run.witness_for=measured"),)))
    assert [row.id for row in rows] == [parsed(twin).id]
    store.retract(parsed(twin).id, "the profiler was broken")
    assert store.query.facts(parsed(one)).witnesses == ()


@pytest.mark.parametrize("order", ["launch first", "witness first", "together"])
def test_a_launch_and_its_witness_find_each_other_in_whatever_order_they_come(store: Store, order: str) -> None:
    one, twin = measured(), profiled()
    if order == "together":
        first, second = put(store, one, twin)
        assert (first.path, second.path) == ("witnessed", "witnessed")
        return
    trees = (one, twin) if order == "launch first" else (twin, one)
    first, second = (put(store, tree)[0] for tree in trees)
    # A witness that comes before its launch cannot tell yet whether it is a stranger.
    assert (first.path, second.path) == ("unwitnessed", "witnessed")
    again = [
        judge_receipt(parsed(tree), BOOK.lanes.of("nvidia-megatron"), BOOK.rules, store.query.facts(parsed(tree)))
        for tree in trees
    ]
    assert [item.path for item in again] == ["witnessed", "witnessed"]


def test_of_many_witnesses_the_newest_are_read(store: Store) -> None:
    one = measured()
    put(store, one, *(profiled(**{"run.launch": f"profile {at:02}"}) for at in range(facts.MAX_RELATED + 3)))
    names = {"id": parsed(one).id, "launch": "measured"}
    with store.database.reading() as connection:
        rows = facts.WITNESSES.all(connection, names)
    launches = [store.entry(row[0]).launch for row in rows]
    assert launches == [f"profile {at:02}" for at in reversed(range(3, facts.MAX_RELATED + 3))]
    assert len(store.query.facts(parsed(one)).witnesses) == facts.MAX_RELATED


def test_witnesses_are_looked_up_by_index_on_both_engines(store: Store) -> None:
    looked_up = (
        (facts.WITNESSES, {"id": "a", "launch": "b"}, ("receipts_witness_for",)),
        (facts.WITNESSED, {"target": "a", "id": "a"}, ("receipts_launch_generation_key", "receipts_id_key")),
    )
    with reading(store.database.engine) as connection:
        sqlite = connection.dialect.name == "sqlite"
        if not sqlite:
            run(connection, "SET LOCAL enable_seqscan = off")  # on an empty table the planner would not look further
        for statement, given, indexes in looked_up:
            made = statement.compiled(connection.dialect)
            asked = f"EXPLAIN {'QUERY PLAN ' if sqlite else ''}{made.sql}"
            plan = " ".join(str(row) for row in run(connection, asked, made.bound(given)).fetchall())
            assert "SCAN receipts" not in plan
            if not sqlite or indexes[0] == "receipts_witness_for":
                assert any(name in plan for name in indexes), plan


# The command line


def write(place: Path, **trees: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name, tree in trees.items():
        (place / f"{name}.json").write_text(json.dumps(tree))
        found[name] = str(place / f"{name}.json")
    return found


def test_check_takes_a_witness_beside_a_launch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, one=measured(), twin=profiled(), other=profiled(target="another"))
    assert main(["check", files["one"]]) == 3
    assert main(["check", files["one"], "--witness", files["twin"]]) == 0
    told = capsys.readouterr().out
    assert f"path witnessed by {parsed(profiled()).id[:12]}" in told
    main(["check", files["one"], files["twin"], "--json"])
    assert [item["path"] for item in json.loads(capsys.readouterr().out)] == ["witnessed", "witnessed"]
    assert main(["check", files["one"], "--witness", files["other"]]) == 2
    assert "its run.witness_for is another" in capsys.readouterr().err


def test_check_asks_a_store_that_is_named_for_witnesses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = write(tmp_path, one=measured(), twin=profiled())
    place = str(tmp_path / "store.sqlite")
    assert main(["submit", files["twin"], "--store", place]) == 0
    assert main(["check", files["one"]]) == 3
    assert main(["check", files["one"], "--store", place]) == 0
    capsys.readouterr()


def test_check_makes_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "store.sqlite"
    assert main(["check", write(tmp_path, one=measured())["one"], "--store", str(place)]) == 4
    assert "there is no store yet" in capsys.readouterr().err
    assert not place.exists()


def test_show_tells_who_witnesses_a_launch_and_whom_a_witness_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = profiled(**{"run.launch": "stranger", "batch.micro_batch": 2})
    files = write(tmp_path, one=measured(), twin=profiled(), stranger=stranger)
    place = str(tmp_path / "store.sqlite")
    assert main(["submit", *files.values(), "--store", place]) == 0
    capsys.readouterr()
    one, twin = parsed(measured()), parsed(profiled())
    assert main(["show", one.id, "--store", place]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"witnessed by {twin.id[:12]} {twin.name}: lends framework, frameworks, runtime, attention" in told
    assert f"not witnessed by {parsed(stranger).id[:12]}" in told
    assert f"witnessed: te_fused, by {twin.id[:12]}" in told
    assert main(["show", twin.id, "--store", place]) == 0
    assert f"witnesses {one.id[:12]} {one.name}" in " ".join(capsys.readouterr().out.split())


def test_compare_takes_the_witnesses_of_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = {"numerics.learning_rate": 7}
    files = write(
        tmp_path, a=fast(measured(), "a"), b=fast(measured(), "b", **seed), wa=profiled("a"), wb=profiled("b", **seed)
    )
    pair = ["compare", files["a"], files["b"], "--json"]
    main(pair)
    assert json.loads(capsys.readouterr().out)["path"] == "unwitnessed"
    main([*pair, "--witness", files["wa"], "--witness", files["wb"]])
    found = json.loads(capsys.readouterr().out)
    assert (found["path"], len(found["witnesses"])) == ("witnessed", 2)
    assert main([*pair, "--witness", files["a"]]) == 2
    assert "it states no run.witness_for" in capsys.readouterr().err
    place = str(tmp_path / "store.sqlite")
    assert main(["submit", *files.values(), "--store", place]) == 0
    capsys.readouterr()
    ids = [parsed(json.loads(Path(files[name]).read_text())).id for name in ("a", "b")]
    main(["compare", *ids, "--json", "--no-replicates", "--store", place])
    assert json.loads(capsys.readouterr().out)["path"] == "witnessed"


def test_the_profiled_example_witnesses_the_measured_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = json.loads((EXAMPLES / "measured.json").read_text())
    for path in ("path.witnessed", "evidence"):
        assert rule_cases.take(tree, path)
    file = write(tmp_path, bare=tree)["bare"]
    twin = str(EXAMPLES / "profile.json")
    assert main(["check", file, "--quiet"]) == 3
    assert main(["check", file, "--witness", twin, "--quiet"]) == 0
    assert main(["check", str(EXAMPLES / "measured.json"), twin, "--quiet"]) == 0
    capsys.readouterr()


# Reports


def test_a_report_judges_a_launch_beside_its_witnesses(store: Store) -> None:
    one, twin = measured(), profiled()
    put(store, one, twin)
    reader = ReportReader(store, RULEBOOK, datetime(2030, 1, 1, tzinfo=UTC))
    found = {row.launch: reader.item(row) for row in reader.rows}
    assert {name: item.verdict.path for name, item in found.items()} == {
        "measured": "witnessed",
        "profile of measured": "witnessed",
    }
    assert found["measured"].verdict.witnesses == (parsed(twin).id,)
