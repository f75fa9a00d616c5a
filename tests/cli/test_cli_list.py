"""``receipts list``."""

from __future__ import annotations

import pytest

from command_line import HOSTILE, Shell
from receipts.store import Store

pytestmark = pytest.mark.slow


def _labels(shell: Shell, *conditions: str) -> list[str]:
    said = shell("list", "--json", *conditions)
    assert said.code == 0, said.err
    return sorted(row["label"] for row in said.json)


@pytest.fixture
def three(shell: Shell) -> Shell:
    """A store with three launches."""
    shell.store("grid-1")
    shell.store("grid-2", batch__micro_batch=4, batch__global_batch=8)
    shell.store("other", numerics__learning_rate=0.001, flags={"complete": True, "NCCL_ALGO": "Ring"})
    return shell


@pytest.mark.parametrize(
    ("condition", "labels"),
    [
        ("label=grid*", ["grid-1", "grid-2"]),
        ("label!=grid*", ["other"]),
        ("lane=cpu-torch", ["grid-1", "grid-2", "other"]),
        ("outcome=oom", []),
        ("batch.micro_batch=4", ["grid-2"]),
        ("micro_batch>=8", ["grid-1", "other"]),
        ("numerics.learning_rate=0.001", ["other"]),
        ("flags.NCCL_ALGO=Ring", ["other"]),
        ("flags.NCCL_ALGO=-", ["grid-1", "grid-2"]),
    ],
)
def test_a_condition_on_any_column_or_leaf_chooses(three: Shell, condition: str, labels: list[str]) -> None:
    assert _labels(three, condition) == labels


def test_conditions_narrow_one_another(three: Shell) -> None:
    assert _labels(three, "label=grid*", "micro_batch=8") == ["grid-1"]


def test_the_table_carries_what_json_says(three: Shell) -> None:
    said = three("list")
    for row in three("list", "--json").json:
        (line,) = [line for line in said.lines if row["id"][:12] in line]
        assert row["label"] in line
        assert row["status"] in line


def test_what_is_cut_off_is_said_on_standard_error(three: Shell) -> None:
    said = three("list", "--limit", "2")
    assert sum(" cpu-torch " in line for line in said.lines) == 2
    assert "--limit 0" in said.err
    assert three("list", "--limit", "0").err == ""


def test_what_reads_the_documents_of_many_is_said_on_standard_error(
    three: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert three("list", "run.site!=nowhere").err == ""
    monkeypatch.setattr("receipts.store.query.lists.COUNTED", 2)
    said = three("list", "run.site!=nowhere").err
    assert "scans 3 receipts and reads documents for run.site!=nowhere" in said
    assert three("list", "lane=cpu-torch").err == ""


def test_nothing_found_is_an_answer(three: Shell) -> None:
    said = three("list", "outcome=oom")
    assert said.code == 0
    assert "no receipt meets these conditions" in said.out


def test_a_fresh_machine_has_no_receipts_yet(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    for named in ("fresh/store.sqlite", ""):
        monkeypatch.setenv("RECEIPTS_STORE", named)
        said = shell("list")
        assert (said.code, said.out) == (0, "")
        assert "no receipts yet" in said.err
        assert shell("list", "--json").json == []


def test_a_receipt_that_no_longer_stands_is_shown_on_demand(three: Shell) -> None:
    three("retract", "other", "--reason", "never ran")
    assert _labels(three) == ["grid-1", "grid-2"]
    assert _labels(three, "--all") == ["grid-1", "grid-2", "other"]


def test_a_mistyped_name_is_answered_with_those_near_it(three: Shell) -> None:
    said = three("list", "micro_btch=4")
    assert said.code == 2
    assert "did you mean micro_batch" in said.err


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("outcome=om", "outcome is one of ok, oom, crash, hang, nan, preempted, unknown; did you mean oom?"),
        ("run.kind!=trainig", "did you mean training?"),
        ("status=unwitnessed", "status is one of valid, open, invalid"),
    ],
)
def test_a_word_that_a_column_never_holds_is_refused(three: Shell, condition: str, says: str) -> None:
    refused = three("list", condition)
    assert refused.code == 2
    assert says in refused.err
    assert three("list", "outcome=o*").code == 0
    assert three("list", "outcome=-").code == 0


@pytest.mark.parametrize("condition", ["micro_batch", "micro_batch=many", "started=soon"])
def test_what_is_no_condition_is_refused_with_a_sentence(three: Shell, condition: str) -> None:
    said = three("list", condition)
    assert said.code == 2
    assert "write" in said.err


def test_a_store_that_is_not_there_says_how_to_make_one(shell: Shell) -> None:
    said = shell("--store", "mistyped.sqlite", "list")
    assert said.code == 4
    assert "receipts submit" in said.err


def test_one_long_word_widens_its_own_row_alone(shell: Shell) -> None:
    shell.store("short")
    shell.store("long", hardware__accelerator="x" * 200)
    widths = {len(line) for line in shell("list").lines if "short" in line or line.lstrip().startswith("id ")}
    assert max(widths) < 180


def test_a_hostile_label_is_shown_escaped(shell: Shell) -> None:
    shell.store("evil", run__label=HOSTILE)
    for words in (("list",), ("list", "--json")):
        assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(shell(*words).out)


def test_a_list_says_what_each_rate_is_and_reads_no_document(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.store("one")
    monkeypatch.setattr(Store, "document", lambda *_: pytest.fail("a document was read"))
    monkeypatch.setattr(Store, "parsed", lambda *_: pytest.fail("a document was read"))
    monkeypatch.setenv("COLUMNS", "160")
    assert "tokens over the time of " in shell("list").out
    assert shell("list", "--json").json[0]["rate_of"].startswith("tokens over the time of ")


def test_the_frontier_of_a_lane_that_does_not_exist_names_the_nearest(shell: Shell) -> None:
    answered = shell("frontier", "--lane", "cpu-torhc")
    assert (answered.code, answered.out) == (2, "")
    assert "there is no lane 'cpu-torhc'; did you mean cpu-torch" in answered.err
