"""What is stored is judged again by the present rules; what flipped is told with the findings that made it flip."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import insert, select

import rule_cases as cases
from command_line import Shell
from receipts.base.errors import RuleError
from receipts.judging.comparison import Request, compare
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document, Parsed
from receipts.store import NewClaim, Store, open_store
from receipts.store.database import writing
from receipts.store.entries import CODEC, pack
from receipts.store.tables import subjects, verdicts
from receipts.workflows.audit import audit
from receipts.workflows.revalidate import Rejudged, Revalidation, Tally
from receipts.workflows.submit import submit

pytestmark = pytest.mark.slow

RULEBOOK = Rulebook()
RULE = '''"""# {code} {name}

*Why.* A test.

*Rejected.* A launch that is called so.

*Accepted.* Any other.
"""

from collections.abc import Iterator

from receipts.judging.rule import {level}, Case, Offense, rule


@rule("{code}", "{name}", {level})
def judge(case: Case) -> Iterator[Offense]:
    """A launch that is called so."""
    if case.launch.parsed.receipt.run.launch == "{launch}":
        {body}
'''
OFFENCE = 'yield Offense(at="run.launch", found="it is called so", expected="another name", do="call it otherwise")'


def _rules(folder: Path, launch: str, level: str = "E", body: str = OFFENCE, code: str = "R990") -> Rulebook:
    """The rules as shipped, and one that is against one launch."""
    (folder / "rules").mkdir(parents=True, exist_ok=True)
    text = RULE.format(code=code, name="called_so", level=level, launch=launch, body=body)
    (folder / "rules" / f"{code}_called.py").write_text(text)
    return Rulebook((folder,))


def _group(side: str, count: int = 3, **leaves: object) -> list[Parsed]:
    return cases.group(cases.build({"set": leaves} if leaves else {}), side, count)


def _fill(url: str) -> None:
    """Six launches of two configurations, a comparison of them, and a claim on it, judged by the rules as shipped."""
    with open_store(url) as opened:
        a, b = _group("a"), _group("b", **{"batch.micro_batch": 4})
        ids = _submitted(opened, [*a, *b])
        request = Request(waivers={}, facts=opened.query.facts([*a, *b]))
        opened.record(compare(a, b, RULEBOOK, request))
        stated = {"id": "reached", "text": "2 is a ceiling", "kind": "ceiling", "candidate": ids[:3]}
        opened.published.add_claims([NewClaim("reached", "ceiling", json.dumps(stated), "claims.toml")])
        list(_claims(opened, RULEBOOK))
        opened.seal()


@pytest.fixture
def store(copied: Callable[..., str]) -> Iterator[Store]:
    """A copy of the store that `_fill` makes."""
    with open_store(copied("revalidated", _fill)) as opened:
        yield opened


def _submitted(store: Store, group: list[Parsed]) -> list[str]:
    found = submit([Document(item.raw, item.source) for item in group], store, RULEBOOK)
    return [item.submitted.id for item in found if item.submitted]


def _claims(store: Store, rulebook: Rulebook) -> Iterator[None]:
    from receipts.questions.claims.judgment import gather, judge, stored

    for claim in stored(store).claims:
        store.published.record_claims([judge(claim, gather(claim, rulebook, store), rulebook)])
        yield


def _launches(store: Store) -> dict[str, str]:
    """Ids by launch."""
    return {item.launch: item.id for item in store.find()}


def _one(store: Store) -> str:
    return min(_launches(store))


def _run(store: Store, rulebook: Rulebook, **options: object) -> list[Rejudged]:
    return list(Revalidation(store, rulebook, **options).run())  # type: ignore[arg-type] # as a test names them


def test_nothing_is_judged_again_under_the_rules_that_judged_it(store: Store) -> None:
    assert _run(store, RULEBOOK) == []


FORGED = {"receipt": "open", "comparison": "accepted"}


@pytest.mark.parametrize("kind", FORGED)
@pytest.mark.parametrize("sealed", [False, True], ids=["unsealed", "sealed"])
def test_a_newer_verdict_that_nobody_judged_is_noticed(store: Store, kind: str, sealed: bool) -> None:
    """Whoever owns the database writes a good verdict after the judge's, under the rules in force."""
    receipt = _launches(store)[_one(store)]
    last = [item for item in store.verdicts(receipt) if item.kind == kind][-1]
    status = FORGED[kind]
    assert last.status != status
    with writing(store.database.engine) as connection:
        row = connection.execute(select(verdicts).where(verdicts.c.seq == last.seq)).mappings().one()
        body = pack(json.dumps({**last.document, "status": status, "findings": []}).encode())
        values = {name: value for name, value in row.items() if name != "seq"}
        forged = insert(verdicts).values(**values | {"status": status, "body": body, "codec": CODEC})
        (number,) = connection.execute(forged).inserted_primary_key or ()
        sides = connection.execute(select(subjects).where(subjects.c.verdict == last.seq)).mappings().all()
        connection.execute(insert(subjects), [{**side, "verdict": number} for side in sides])
    if sealed:
        store.seal()
    flips = [item for item in _run(store, RULEBOOK) if item.flipped]
    assert [(item.kind, item.before, item.after) for item in flips] == [(kind, status, last.status)]
    assert [item.status for item in store.verdicts(receipt) if item.kind == kind][-2:] == [status, last.status]
    assert [item for item in _run(store, RULEBOOK) if item.flipped] == []
    assert len([item for item in store.verdicts(receipt) if item.kind == kind]) == 3


def test_a_verdict_that_no_seal_holds_is_judged_again_and_not_written_twice(store: Store) -> None:
    late = _submitted(store, _group("late", 2))
    assert [(item.kind, item.flipped) for item in _run(store, RULEBOOK)] == [("receipt", False)] * 2
    assert [len(store.verdicts(item)) for item in late] == [1, 1]
    assert _run(store, RULEBOOK) == []


def test_what_flipped_is_told_with_the_rule_and_the_earlier_verdicts_stay(store: Store, tmp_path: Path) -> None:
    launch = _one(store)
    other = _rules(tmp_path, launch)
    before = {item.id: [verdict.seq for verdict in store.verdicts(item.id)] for item in store.find()}
    found = _run(store, other)
    assert [item.kind for item in found] == [*["receipt"] * 6, "comparison", "claim"]
    flips = [item for item in found if item.kind == "receipt" and item.flipped]
    assert [(item.names, item.after) for item in flips] == [((_launches(store)[launch],), "invalid")]
    assert [(change.code, change.at, change.appeared) for change in flips[0].changes] == [("R990", "run.launch", True)]
    for item in store.find():
        verdicts = store.verdicts(item.id)
        assert [verdict.seq for verdict in verdicts][: len(before[item.id])] == before[item.id]
        assert verdicts[-1].rules == other.rules.digest
    comparison = next(item for item in found if item.kind == "comparison")
    assert any(change.code == "R990" and change.appeared for change in comparison.changes)
    assert _run(store, other) == []
    # Back under the rules as they were, the last verdict is the other one's.
    back = _run(store, RULEBOOK)
    assert [(item.before, item.fell) for item in back if item.kind == "receipt" and item.flipped] == [
        ("invalid", False)
    ]
    assert [change.appeared for item in back if item.kind == "receipt" for change in item.changes] == [False]


def test_verdicts_that_are_given_again_are_an_audits_verdicts_too(store: Store, tmp_path: Path) -> None:
    store.seal()
    _run(store, _rules(tmp_path, _one(store)))
    assert audit(store, RULEBOOK).faults == ()


def test_a_dry_run_tells_the_same_and_writes_nothing(store: Store, tmp_path: Path) -> None:
    other = _rules(tmp_path, _one(store))
    before = [store.verdicts(item.id) for item in store.find()]
    told = _run(store, other, dry_run=True)
    assert [store.verdicts(item.id) for item in store.find()] == before
    assert told == _run(store, other)


def test_what_falls_decides_the_exit_code_and_what_rises_does_not() -> None:
    tally = Tally()
    tally.add(Rejudged("receipt", ("a",), "a", "open", "valid"))
    tally.add(Rejudged("comparison", ("a",), "a", "inconclusive", "rejected"))
    assert tally.exit_code == 0
    tally.add(Rejudged("claim", ("a",), "a", "supported", "stale"))
    assert tally.exit_code == 1
    assert Rejudged("comparison", ("a",), "a", "accepted", None).fell


def test_only_what_was_asked_for_is_judged(store: Store, tmp_path: Path) -> None:
    other = _rules(tmp_path, "nobody")
    assert _run(store, other, since=datetime.now(UTC), dry_run=True) == []
    assert _run(store, other, lanes=("gb200-*",), dry_run=True) == []
    lane = next(iter([item.lane for item in store.find()]))
    assert len(_run(store, other, lanes=(lane,), dry_run=True)) == 8


def test_one_that_was_interrupted_goes_on_where_it_was(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from receipts.store import stale

    monkeypatch.setattr(stale, "AT_ONCE", 2)
    other = _rules(tmp_path, "nobody")
    first = Revalidation(store, other).run()
    assert [next(first).kind for _ in range(3)] == ["receipt"] * 3
    first.close()
    # Two batches were written, of which three receipts were told.
    rest = _run(store, other)
    assert [item.kind for item in rest] == ["receipt", "receipt", "comparison", "claim"]


def test_a_purged_receipt_and_its_comparisons_are_no_more_judged(store: Store, tmp_path: Path) -> None:
    store.purge(_launches(store)[_one(store)], "a token")
    assert [item.kind for item in _run(store, _rules(tmp_path, "nobody"))].count("receipt") == 5


def test_a_comparison_that_can_no_longer_be_made_is_told_and_keeps_its_verdict(store: Store, tmp_path: Path) -> None:
    from dataclasses import replace

    a, b = _group("a"), _group("b", **{"batch.micro_batch": 4})
    made = compare(a, b, RULEBOOK, Request(facts=store.query.facts([*a, *b])))
    store.record(replace(made, waivers=(("no.such.axis", "because"),), rules="f" * 64))
    found = [item for item in _run(store, RULEBOOK) if item.kind == "comparison"]
    assert [(item.after, item.flipped) for item in found] == [(None, True)]
    assert "no.such.axis" in found[0].why
    assert len([item for item in store.verdicts(a[0].id) if item.kind == "comparison"]) == 2


def test_a_rule_that_raises_is_named_and_nothing_of_its_batch_is_written(store: Store, tmp_path: Path) -> None:
    other = _rules(tmp_path, _one(store), body="raise ValueError")
    before = [len(store.verdicts(item.id)) for item in store.find()]
    with pytest.raises(RuleError, match="R990"):
        _run(store, other)
    assert [len(store.verdicts(item.id)) for item in store.find()] == before


def test_the_command_tells_flips_and_counts(shell: Shell) -> None:
    shell.store("one")
    shell.store("two")
    assert (
        shell("revalidate").lines[-1]
        == "judged 2 receipts: 0 flipped (0 for the worse), 0 with other findings, 2 as before"
    )
    nothing = shell("revalidate")
    assert (nothing.code, nothing.lines[-1].split(":")[0]) == (0, "nothing to judge again")
    before = shell("show", "one", "--json").code
    assert before in (0, 1, 3)
    _rules(shell.folder / "ours", "launch-one")
    (shell.folder / "receipts.toml").write_text('validators = "ours"\n')
    status = shell("--config", "receipts.toml", "revalidate", "--dry-run", "--json").json
    assert [item["label"] for item in status["flipped"]] == ["one"]
    assert status["flipped"][0]["changes"][0]["code"] == "R990"
    assert status["dry_run"] is True
    said = shell("--config", "receipts.toml", "revalidate", "--since", "1d")
    fell = status["flipped"][0]["fell"]
    assert said.code == (1 if fell else 0)
    assert any("→ invalid" in line for line in said.lines)
    assert any("now E R990 run.launch: it is called so" in line for line in said.lines)
    assert "judged 2 receipts: 1 flipped" in said.lines[-1]
    assert shell("revalidate", "--since", "yesterday").code == 2


def test_a_lane_that_is_nowhere_is_told_and_not_passed_by(shell: Shell) -> None:
    shell.store("one")
    said = shell("revalidate", "--lane", "nvidia-megatrn")
    assert said.code == 2
    assert "did you mean nvidia-megatron" in said.err
    assert shell("revalidate", "--lane", "nvidia-*").code == 0
