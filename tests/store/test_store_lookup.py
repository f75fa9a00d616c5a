"""Receipts are found by id, beginning, label, launch, pin and any axis; and rules get their facts; on both engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from receipts.axes.configuration import configuration
from receipts.axes.shape import shape_key
from receipts.base.errors import NotFound, UsageError
from receipts.judging.facts import ReachedShape
from receipts.receipt import Document, Parsed, parse
from receipts.store import Filters, ListPlan, Store, Submitted, condition, open_store
from receipts.store import entries as entries_module
from receipts.store.database import reading
from receipts.store.query import facts, lists
from receipts.store.query.reports import facets as counts
from receipts.store.query.terms import Terms, resolve_terms
from receipts.store.sql.statement import run
from store_receipts import RULEBOOK, parsed, ready


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def put(store: Store, **leaves: object) -> Submitted:
    return store.submit(*ready(**leaves))


def found(store: Store, *conditions: str, **options: object) -> list[str | None]:
    filters = Filters(tuple(condition(item) for item in conditions), **options)  # type: ignore[arg-type]
    return [entry.label for entry in store.find(filters)]


def test_a_receipt_is_named_by_its_id_or_a_beginning_of_four_digits(store: Store) -> None:
    made = put(store)
    assert store.resolve(made.id) == store.resolve(made.id[:4]) == store.resolve(made.id[:9].upper()) == made.id
    with pytest.raises(NotFound, match="too short"):
        store.resolve(made.id[:3])
    with pytest.raises(NotFound, match="no receipt is called"):
        store.resolve("f" * 64 if made.id[0] != "f" else "0" * 64)


def test_a_mistyped_label_is_answered_with_its_neighbors_and_a_pattern_with_how_to_write_it(store: Store) -> None:
    put(store, run__label="flash attention 1")
    with pytest.raises(NotFound, match=r"did you mean flash attention 1\?"):
        store.resolve("flash atention 1")
    with pytest.raises(NotFound, match=r"'label=flash\*'"):
        store.resolve("flash*")


def test_a_beginning_of_several_ids_names_none_and_lists_them(store: Store) -> None:
    by_start: dict[str, str] = {}
    ids: tuple[str, str] | None = None
    while ids is None:
        # Two ids that begin with the same four digits come up within a few hundred draws.
        one = parsed(run__label=f"n{len(by_start)}")
        other = by_start.setdefault(one.id[:4], one.id)
        ids = (other, one.id) if other != one.id else None
    # Their bytes are not needed, only their ids, so that the rows are written by hand.
    made = put(store)
    from sqlalchemy import insert

    from receipts.store.database import writing
    from receipts.store.tables import receipts

    with writing(store.database.engine) as connection:
        row = dict(connection.execute(select(receipts).where(receipts.c.id == made.id)).mappings().one())
        for number, item in enumerate(ids):
            connection.execute(insert(receipts), {**row, "seq": 100 + number, "id": item, "launch": item})
    with pytest.raises(NotFound, match=f"beginning of {sorted(ids)[0][:16]}, {sorted(ids)[1][:16]}"):
        store.resolve(ids[0][:4])
    assert store.resolve(ids[0][:20]) == ids[0]


def test_a_label_names_every_launch_that_has_it_and_stands(store: Store) -> None:
    first, second = put(store, run__label="grid"), put(store, run__label="grid")
    assert set(store.resolve_all("grid")) == {first.id, second.id}
    with pytest.raises(NotFound, match="2 receipts are called 'grid'"):
        store.resolve("grid")
    store.retract(first.id, "wrong")
    assert store.resolve("grid") == second.id
    store.retract(second.id, "wrong")
    assert set(store.resolve_all("grid")) == {first.id, second.id}


def test_a_label_or_launch_that_looks_like_a_condition_is_found_first(store: Store) -> None:
    one, other = put(store, run__label="host=a", run__host="b"), put(store, run__launch="lr=1", run__host="a")
    assert store.resolve_all("host=a") == [one.id]
    assert store.resolve_all("host=b") == [one.id]
    assert store.resolve_all("lr=1") == store.resolve_all("host=a outcome=ok") == [other.id]


def test_one_launch_stands_for_a_label_of_one_configuration_alone(store: Store) -> None:
    context = {"run__label": "grid", "run__context": "grid"}
    ran, failed = put(store, **context), put(store, run__outcome="crash", **context)
    assert store.resolve_all("grid")[0] == failed.id
    assert store.get("grid", repeated=True).id == ran.id
    with pytest.raises(NotFound, match="2 receipts are called 'grid'"):
        store.get("grid")
    put(store, numerics__learning_rate=0.001, **context)
    with pytest.raises(NotFound, match="3 receipts of several configurations are called 'grid'"):
        store.get("grid", repeated=True)


def test_a_launch_names_its_standing_receipt(store: Store) -> None:
    put(store, run__launch="the-launch")
    second = put(store, run__launch="the-launch", run__supersedes={"target": "the-launch", "reason": "x"})
    assert store.resolve("the-launch") == second.id


def test_a_text_that_is_a_label_and_the_beginning_of_an_id_is_refused(store: Store) -> None:
    made = put(store)
    labelled = put(store, run__label=made.id[:6])
    with pytest.raises(NotFound, match=f"write label={made.id[:6]}, or more of the id"):
        store.resolve(made.id[:6])
    assert store.resolve(f"label={made.id[:6]}") == labelled.id
    assert store.resolve(made.id[:10]) == made.id


@pytest.mark.parametrize(
    ("pattern", "labels"),
    [
        ("grid*", {"grid-1", "grid-2", "grid%"}),
        ("grid-?", {"grid-1", "grid-2"}),
        ("grid-[1]", {"grid-1"}),
        ("*r-1", {"other-1"}),
        ("grid%", {"grid%"}),
        ("GRID-1", {"GRID-1"}),
    ],
)
def test_a_label_pattern_is_a_shell_pattern_and_minds_case(store: Store, pattern: str, labels: set[str]) -> None:
    for label in ("grid-1", "grid-2", "grid%", "other-1", "GRID-1"):
        put(store, run__label=label)
    assert {store.entry(item).label for item in store.resolve_all(f"label={pattern}")} == labels
    with pytest.raises(NotFound):
        store.resolve_all("label=nothing*")


def test_a_pin_points_where_it_was_set_last_and_keeps_its_history(store: Store) -> None:
    first, second = put(store), put(store)
    with pytest.raises(NotFound, match="there is no pin @golden"):
        store.resolve("@golden")
    store.pin("@golden", first.id)
    store.pin("golden", second.id, "faster")
    assert store.resolve("@golden") == second.id
    assert [(item.receipt, item.note) for item in store.pin_history("@golden")] == [
        (first.id, None),
        (second.id, "faster"),
    ]
    assert set(store.pins()) == {"golden"}
    store.pin("golden", None)
    assert store.pins() == {}
    with pytest.raises(NotFound, match="known: golden"):
        store.resolve("@golden")
    with pytest.raises(UsageError):
        store.pin("@not a name", first.id)
    with pytest.raises(NotFound):
        store.pin("@golden", "0" * 64)


def test_conditions_on_columns_and_on_any_other_axis_narrow_together(store: Store) -> None:
    put(store, run__label="a", batch__micro_batch=1, flags={"NCCL_ALGO": "Ring", "DEBUG": {"value": 1}})
    put(store, run__label="b", batch__micro_batch=2, flags={"NCCL_ALGO": "Tree"}, model__mtp_depth=1)
    put(store, run__label="c", batch__micro_batch=4, flags=None, model__mtp_depth=2, run__tags=["night", "long"])
    every = ["a", "b", "c"]
    cases = {
        ("batch.micro_batch=2",): ["b"],
        ("micro_batch>=2",): ["b", "c"],
        ("micro_batch!=2",): ["a", "c"],
        ("flags.NCCL_ALGO=Ring",): ["a"],
        ("flags.NCCL_ALGO!=Ring",): ["b", "c"],
        ("flags.NCCL_ALGO=-",): ["c"],
        ("flags.DEBUG=1",): ["a"],
        ("mtp_depth>=1",): ["b", "c"],
        ("mtp_depth>=1", "micro_batch<4"): ["b"],
        ("mtp_depth>=1", "mtp_depth<2"): ["b"],
        ("mtp_depth>=1", "mtp_depth!=1"): ["c"],
        ("mtp_depth=1", "mtp_depth=2"): [],
        ("flags.NCCL_ALGO=Ring", "flags.NCCL_ALGO!=Ring"): [],
        ("label=[ab]",): ["a", "b"],
        ("label!=[ab]",): ["c"],
        ("tags=night",): ["c"],
        ("run.lane=cpu-torch",): every,
        ("lane=cpu*", "flags.NCCL_ALGO=*"): ["a", "b"],
        ("accelerator=cpu",): every,
        ("started>=2026-01-01",): every,
        ("started<2026-01-01",): [],
        ("context=-",): [],
        ("mfu=-",): every,
    }
    for conditions, labels in cases.items():
        assert sorted(str(label) for label in found(store, *conditions)) == labels, conditions


def test_a_condition_that_reads_documents_says_so_and_passes_by_those_that_cannot_meet_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, run__label="a", run__tags=["night", "long"], run__site="hall-1")
    put(store, run__label="b", run__tags=["nightly"], run__site="hall-2")
    put(store, run__label="c", run__exit_code=100, notes={"why": "hall-1"})
    cases = {
        "tags=night": ["a"],
        "run.site=hall-1": ["a"],
        "run.site!=hall-1": ["b", "c"],
        "exit_code=1e2": ["c"],
        "notes.why=hall-1": ["c"],
        "site=hall-?": ["a", "b"],
    }
    for text, labels in cases.items():
        assert sorted(map(str, found(store, text))) == labels, text
    read: list[str] = []

    def counting(document: Document) -> Parsed:
        read.append(document.source)
        return parse(document)

    monkeypatch.setattr(entries_module, "parse", counting)
    assert found(store, "run.site=hall-2") == ["b"]
    assert len(read) == 1
    asked = Filters(tuple(map(condition, ("run.site=hall-2", "lane=cpu-torch", "code.commit!=-"))))
    plan = store.plan(asked)
    assert plan.documents == ("run.site=hall-2",)
    assert not plan.slow


def test_a_condition_that_makes_no_sense_is_refused_in_words(store: Store) -> None:
    with pytest.raises(UsageError, match="no condition"):
        condition("micro_batch")
    with pytest.raises(UsageError, match="is a whole number"):
        found(store, "micro_batch=two")
    with pytest.raises(UsageError, match="write a time"):
        found(store, "started>yesterday")
    with pytest.raises(NotFound, match="no column or leaf"):
        found(store, "colour=red")
    with pytest.raises(NotFound, match=r"compute_dtype is the end of .*, .*write one"):
        found(store, "compute_dtype=bf16")


def test_receipts_are_listed_newest_first_up_to_a_limit_and_superseded_ones_on_request(store: Store) -> None:
    for day in (3, 1, 2):
        put(store, run__label=f"day{day}", run__started=f"2026-02-0{day}T00:00:00Z", run__finished=None)
    gone = put(store, run__label="gone", run__started="2026-02-04T00:00:00Z", run__finished=None)
    store.retract(gone.id, "x")
    assert found(store) == ["day3", "day2", "day1"]
    assert found(store, limit=2) == ["day3", "day2"]
    assert found(store, "seed=-", limit=1) == found(store, "seed=-")[:1]
    assert found(store, order="oldest") == ["day1", "day2", "day3"]
    assert found(store, order="stored") == ["day3", "day1", "day2"]
    assert found(store, superseded=True)[0] == "gone"


def test_writing_while_a_list_is_read_disturbs_neither(store: Store) -> None:
    made = [put(store, run__label=f"{number}") for number in range(3)]
    seen = 0
    for entry in store.find():
        seen += 1
        store.pin(f"p{entry.label}", entry.id)
        put(store, run__label="more")
    assert seen == 3
    assert {pin.receipt for pin in store.pins().values()} == {item.id for item in made}


def test_the_shapes_of_a_lane_are_those_that_measured_training_sustained(store: Store) -> None:
    for _ in range(2):
        put(store)
    put(store, batch__micro_batch=64, run__outcome="oom")
    put(store, batch__micro_batch=32, run__provenance="quoted")
    put(store, batch__micro_batch=128, run__lane="cpu-jax")
    gone = put(store, batch__micro_batch=16)
    store.retract(gone.id, "x")
    one = parsed()
    facts = store.query.facts(one)
    assert facts.shapes == (ReachedShape(1, 256, 8, 8, 2, key=shape_key(one)),)
    assert store.query.facts_of_new([one])[0].shapes == facts.shapes
    assert store.query.facts(parsed(parallelism__tensor=2)).shapes == ()
    assert store.query.facts([one, parsed(run__lane="cpu-jax")]).shapes == ()


def test_launches_of_a_shape_that_do_not_count_are_passed_by_in_its_index(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "receipts.db")) as store, reading(store.database.engine) as connection:
        walk = facts._SHAPES.compiled(connection.dialect)
        given = dict.fromkeys(("lane", "geometry", "layout"), 0)
        rows = run(connection, f"EXPLAIN QUERY PLAN {walk.sql}", walk.bound(given)).fetchall()
    (counted,) = (row[3] for row in rows if " twin " in row[3])
    assert "COVERING INDEX receipts_shape" in counted
    assert "depth=? AND provenance=? AND tainted=?" in counted
    _, step = (row[3] for row in rows if " following " in row[3])
    assert "COVERING INDEX receipts_shape" in step
    assert "(chips,sequence_length,micro_batch,depth)>" in step


def test_earlier_failures_of_the_same_signature_are_told(store: Store) -> None:
    failed = put(store, run__outcome="oom")
    put(store, run__outcome="oom", batch__micro_batch=64)
    put(store, run__outcome="oom", numerics__recompute="full")
    put(store, run__outcome="preempted")
    put(store, run__outcome="oom", failure={"phase": "startup", "class": "foreign_process"})
    put(store, run__outcome="oom", run__started="2126-03-05T00:00:00Z", run__finished=None)
    assert [item.id for item in store.query.facts(parsed()).failures] == [failed.id]
    assert store.query.facts(parsed(batch__micro_batch=None)).failures == ()
    assert [item.id for item in store.query.facts_of_new([parsed()])[0].failures] == [failed.id]


def test_facts_say_who_superseded_a_receipt_stored_or_not(store: Store) -> None:
    first = put(store, run__launch="one")
    second = put(store, run__launch="one", run__supersedes={"target": "one", "reason": "x"})
    third = put(store)
    store.retract(third.id, "y")
    unstored = parsed(run__launch="late")
    fourth = put(store, run__launch="late", run__label="b", run__supersedes={"target": unstored.id, "reason": "z"})
    group = [store.get(item.id) for item in (first, second, third)]
    assert store.query.facts([*group, unstored]).superseded == {
        first.id: (second.id, "x"),
        third.id: ("", "y"),
        unstored.id: (fourth.id, "z"),
    }


def test_without_an_index_candidates_for_replicates_share_lane_context_and_shape_and_stand(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("receipts.store.query.replicates.holds_lane", lambda *_: False)

    def candidates(of: Parsed) -> list[str]:
        return store.query.replicate_candidates(of, configuration(of, RULEBOOK.lanes.of(of.receipt.run.lane)))

    head = parsed()
    replicate = put(store, run__started="2026-03-05T00:00:00Z", run__finished=None)
    another = put(store, run__context="another")  # the same, where nothing is unstated
    put(store, batch__micro_batch=None)
    put(store, batch__global_batch=32)
    put(store, run__lane="cpu-jax")
    failed = put(store, run__outcome="oom")
    store.retract(put(store).id, "x")
    put(store, run__launch=head.receipt.run.launch)
    # One that failed is counted among the launches of its configuration, and comes last.
    assert candidates(head) == [replicate.id, another.id, failed.id]
    assert candidates(parsed(run__outcome="oom")) == [failed.id]
    bare = {"run__context": None, "batch__micro_batch": None}
    unstated = put(store, **bare)
    assert candidates(parsed(**bare)) == [unstated.id]


def test_conditions_on_axes_are_counted_together(store: Store) -> None:
    for seed in range(6):
        put(store, run__label=str(seed), numerics__learning_rate=seed)
    asked = ("numerics.learning_rate>1", "numerics.learning_rate<5", "numerics.learning_rate!=3")
    filters = Filters(tuple(map(condition, asked)))
    assert store.plan(filters) == ListPlan("index", "axes", 3)  # what a condition excludes is tested on each receipt
    assert sorted(map(str, found(store, *asked))) == ["2", "4"]
    nobody = Filters((*filters.conditions, condition("numerics.learning_rate=0")))
    assert store.plan(nobody) == ListPlan("index", "axes", 0)


def test_a_condition_of_many_values_is_one_that_a_server_takes(store: Store) -> None:
    for number in range(3):
        put(store, run__label=str(number), numerics__learning_rate=number)
    with reading(store.database.engine) as connection:
        (term,) = resolve_terms(connection, (condition("numerics.learning_rate>0"),)).axes
        many = term._replace(values=term.values | set(range(10**6, 10**6 + 40_000)))
        (query,) = lists._leads(connection, Terms((), (many,), ())).values()
        assert len(connection.execute(query).all()) == 2


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_that_utc_does_not_have_is_no_moment(store: Store, moment: str) -> None:
    with pytest.raises(UsageError, match="write a time such as started>=2026-03-01"):
        found(store, f"started>={moment}")


def test_an_argument_that_is_no_text_is_a_wrong_call(store: Store) -> None:
    for call in (lambda: store.resolve("label\udcff"), lambda: found(store, "host=\udcff")):
        with pytest.raises(UsageError, match="is not text"):
            call()


def test_a_word_finds_names_ids_and_notes_in_letters_of_any_size(store: Store) -> None:
    kept = [
        put(store, run__label="grid 02 of 100%", run__host="bench3", notes={"why": "the Driver was old"}),
        put(store, run__label="Grid 02_b", run__host="europe", model__name="NAM56R"),
        put(store, run__label="grid", run__outcome="oom", code__commit="f00d" * 10),
    ]
    for words, wanted in (
        (("GRID 02",), {0, 1}),
        (("100%",), {0}),
        (("02_b",), {1}),
        (("nam56",), {1}),
        (("f00df",), {2}),
        (("driver",), {0}),
        (("driver", "europe"), set()),
        ((kept[2].id[:9].upper(),), {2}),
        (("%",), {0}),
    ):
        met = {row.id for row in store.find(Filters(words=words))}
        assert met == {kept[number].id for number in wanted}, words
        assert counts(store.database, words=words).total({}) == len(wanted), words
    store.retract(kept[2].id, "wrong")
    assert counts(store.database).of({"outcome": "ok"})["outcome"] == [("ok", 2)]
    assert list(store.find(Filters(words=("f00df",)))) == []
