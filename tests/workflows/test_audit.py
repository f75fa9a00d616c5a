"""An audit finds what was changed, taken away or put in, says what to do, and is silent about what is lawful."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import rule_cases as cases
from command_line import Shell
from receipts.judging.comparison import Request, compare
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import Store, open_store
from receipts.store.entries import pack
from receipts.workflows.audit import Audit, audit
from receipts.workflows.submit import submit
from store_receipts import publish
from tampering import tamper
from thorough import on_engines

pytestmark = pytest.mark.slow

RULEBOOK = Rulebook()


def _fill(url: str) -> None:
    """A store with something in each table, sealed and unsealed, and a receipt that was purged."""
    with open_store(url) as opened:
        base = [
            *cases.group(cases.build({}), "a", 3),
            *cases.group(cases.build({"set": {"batch.micro_batch": 4}}), "b", 3),
        ]
        every = [Document(item.raw, item.source) for item in base]
        ids = [item.submitted.id for item in submit(every, opened, RULEBOOK) if item.submitted]
        opened.record(compare(base[:3], base[3:4], RULEBOOK, Request(facts=opened.query.facts(base))))
        opened.pin("@golden", ids[0])
        publish(opened, ids[0])
        opened.seal()
        opened.retract(ids[5], "the clock was wrong")
        opened.purge(ids[4], "a token")


@pytest.fixture
def store(copied: Callable[..., str]) -> Iterator[Store]:
    """A copy of the store that `_fill` makes."""
    with open_store(copied("audited", _fill)) as opened:
        yield opened


def _audit(store: Store, *expected: str) -> Audit:
    return audit(store, RULEBOOK, expected)


def _found(store: Store) -> list[str]:
    """Every fault on one line; each says what to do."""
    found = _audit(store)
    assert all(item.do for item in found.faults)
    return [f"{item.kind} {item.where}: {item.found}" for item in found.faults]


def test_a_store_as_it_was_written_is_whole_with_its_purges_and_retractions(store: Store) -> None:
    found = _audit(store)
    assert found.faults == ()
    assert found.exit_code == 0
    assert found.counts["receipts"] == 5
    assert found.counts["purges"] == 1
    assert found.head is not None
    store.seal()
    assert _found(store) == []


@pytest.mark.parametrize("again", [False, True], ids=["sealed", "never sealed"])
def test_a_changed_byte_of_a_document_is_found(store: Store, again: bool) -> None:
    number = 2
    if again:
        late = cases.group(cases.build({"set": {"batch.micro_batch": 8}}), "c", 1)
        list(submit([Document(item.raw, "late") for item in late], store, RULEBOOK))
        number = max(item.seq for item in store.find())
    entry = {item.seq: item for item in store.find()}[number]
    raw = store.document(entry.id).replace(b'"measured"', b'"Measured"')
    body = pack(raw).hex()
    literal = f"X'{body}'" if store.url.endswith("sqlite") else f"'\\x{body}'"
    tamper(store.url, f"UPDATE documents SET body = {literal} WHERE receipt = {number}")
    assert any(line.startswith(f"document receipt {entry.id[:12]}: its bytes hash to") for line in _found(store))


EDITS = {
    "UPDATE receipts SET tokens_per_second = tokens_per_second * 1.5 WHERE seq = 2": "column receipt",
    "UPDATE receipts SET label = 'better' WHERE seq = 2": "label is better",
    "UPDATE receipts SET status = 'invalid' WHERE seq = 2": "status is invalid",
    "UPDATE receipts SET path_answer = 'left' WHERE seq = 2": "path_answer is left",
    "UPDATE receipts SET started = '2020-07-02 12:00:00' WHERE seq = 2": "started is 2020",
    "UPDATE receipts SET submitted_at = '2020-01-01 00:00:00' WHERE seq = 2": "over columns 1 to 6, of",
    "UPDATE receipts SET generation = 7 WHERE seq = 2": "over columns",
    "UPDATE receipts SET id = substr(id, 2) || substr(id, 1, 1) WHERE seq = 2": "document receipt",
    "DELETE FROM documents WHERE receipt = 2": "its document is not there",
    "UPDATE documents SET size = 7 WHERE receipt = 2": "its row says 7",
    "UPDATE documents SET codec = 'lz9' WHERE receipt = 2": "packed as lz9",
    "DELETE FROM verdicts WHERE seq = 2": "the verdict that it was stored with is gone",
    "DELETE FROM verdicts WHERE kind = 'comparison'": "over verdicts 1 to 7",
    "UPDATE verdicts SET status = 'accepted' WHERE seq = 7": "status is accepted and its body says",
    "UPDATE verdicts SET judged_at = '2020-01-01 00:00:00' WHERE seq = 1": "over verdicts",
    "DELETE FROM subjects WHERE verdict = 2": "it speaks of 1 receipts and its rows name 0",
    "UPDATE claim_verdicts SET status = 'refuted'": "status is refuted and its body says supported",
    "DELETE FROM supersessions": "",
    "DELETE FROM purges": "its tombstone is gone",
    "DELETE FROM erased": "seal seal",
    "DELETE FROM seals WHERE what = 'pins'": "over seals",
    "UPDATE seals SET root = substr(root, 2) || substr(root, 1, 1) WHERE what = 'pins'": "over pins",
    "UPDATE claims SET body = '{}' WHERE seq = 1": "over claims 1 to 2",
    "DELETE FROM claims WHERE id = 'second'": "which is neither here nor purged",
    "UPDATE decisions SET decision = 'ship'": "over decisions",
    "UPDATE pins SET receipt = 'feed'": "it names feed",
    "UPDATE seals SET what = 'pens' WHERE what = 'pins'": "it is over pens",
    "DELETE FROM stores": "the row with the store's own id is gone",
    "UPDATE placements SET at = 7 WHERE receipt = 2": "under other values than their documents state: 1 (",
    "DELETE FROM placements WHERE receipt = 2": "receipts that it does not hold: 1 (",
    "UPDATE axis_values SET value = '{}' WHERE axis = 'batch.micro_batch'": "configurations that are not what their",
    "DELETE FROM axes WHERE configuration = 1": "configurations that are not what their receipts ran: 1 (1)",
    "UPDATE axes SET leave_one_out = 7 WHERE leave_one_out IS NOT NULL": "configurations that are not what their",
    "UPDATE configurations SET anchor = 'elsewhere' WHERE seq = 1": "configurations that are not what their",
    "DELETE FROM signatures WHERE receipt = 2": "index signatures",
}


@pytest.mark.parametrize(("copied", "statement"), on_engines(EDITS), indirect=["copied"])
def test_tampering_is_found_and_named(store: Store, statement: str) -> None:
    tamper(store.url, statement)
    found = _found(store)
    if statement == "DELETE FROM supersessions":
        assert found == []  # the last row, which came after the last seal: only a seal can tell that it was there
        return
    assert any(EDITS[statement] in line for line in found), found


def test_a_receipt_that_was_deleted_without_a_tombstone_is_found(store: Store) -> None:
    tamper(
        store.url,
        "DELETE FROM verdicts WHERE seq = 2",
        "DELETE FROM subjects WHERE verdict = 2",
        "DELETE FROM documents WHERE receipt = 2",
        "DELETE FROM receipts WHERE seq = 2",
    )
    found = _found(store)
    assert any("over receipts 1 to 6" in line and "1 of 6 rows were taken away" in line for line in found)
    assert any("there is none of number 2" in line for line in found)


def test_a_receipt_that_was_deleted_before_a_seal_held_it_leaves_a_gap(store: Store) -> None:
    late = cases.group(cases.build({"set": {"batch.micro_batch": 8}}), "c", 4)
    sent = submit([Document(item.raw, "late") for item in late], store, RULEBOOK)
    ids = [item.submitted.id for item in sent if item.submitted]
    store.purge(ids[1], "a token")
    assert [item.kind for item in _audit(store).faults] == []
    verdict = {item.seq for item in store.verdicts(ids[2])}.pop()
    number = store.entry(ids[2]).seq
    tamper(
        store.url,
        *(f"DELETE FROM {table} WHERE receipt = {number}" for table in ("documents", "placements", "signatures")),
        f"DELETE FROM subjects WHERE verdict = {verdict}",
        f"DELETE FROM verdicts WHERE seq = {verdict}",
        f"DELETE FROM receipts WHERE seq = {number}",
    )
    found = _audit(store)
    problem = f"1 row that no seal held is not there ({number}): "
    if store.url.endswith("sqlite"):
        assert [(item.kind, item.where) for item in found.faults] == [("gap", "receipts"), ("gap", "verdicts")]
        assert found.faults[0].found.startswith(problem)
        assert found.sealable
    else:
        assert found.faults == ()
        assert any(item.startswith(f"receipts: {problem}") for item in found.notes)
    store.seal()
    assert _found(store) == []


def test_a_quote_that_was_deleted_before_a_seal_held_it_leaves_a_gap_too(store: Store) -> None:
    for document in ("weekly.md", "monthly.md"):
        store.published.quote(document, [])
    tamper(store.url, "DELETE FROM quotes WHERE document = 'weekly.md'")
    found = _audit(store)
    gaps = [f"{item.where}: {item.found}" for item in found.faults] or list(found.notes)
    assert any(item.startswith("quotes: 1 row that no seal held is not there (") for item in gaps)


def test_numbers_that_are_absurd_do_not_make_an_audit_wait(store: Store) -> None:
    tamper(store.url, "UPDATE supersessions SET seq = 4000000000000000")
    gap = _audit(store)
    assert "3,999,999,999,999,999 rows" in " ".join((*(item.found for item in gap.faults), *gap.notes))


def test_a_tombstone_that_is_forged_does_not_excuse_a_deletion(store: Store) -> None:
    gone = {item.seq: item for item in store.find()}[2]
    tamper(
        store.url,
        f"INSERT INTO purges (receipt, reason, at) VALUES ('{gone.id}', 'never mind', '2026-01-01 00:00:00')",
        *(
            f"DELETE FROM {table} WHERE {column} = 2"
            for table, column in (("verdicts", "seq"), ("subjects", "verdict"))
        ),
        "DELETE FROM documents WHERE receipt = 2",
        "DELETE FROM receipts WHERE seq = 2",
    )
    assert any("over receipts 1 to 6" in line for line in _found(store))


def test_seals_that_were_written_anew_over_changed_rows_are_found_by_a_root_that_was_kept(store: Store) -> None:
    kept = _audit(store).head
    assert kept is not None
    assert _audit(store, kept[:16]).exit_code == 0
    tamper(store.url, "UPDATE decisions SET decision = 'ship'", "DELETE FROM seals")
    store.seal()
    late = _audit(store, kept[:16])
    assert [item.where for item in late.faults if item.kind == "seal"][-1] == f"root {kept[:16]}"


def test_columns_that_another_version_wrote_are_no_fault_while_their_seal_holds(store: Store) -> None:
    """A formula that is put right later must not make every store of before look edited."""
    other = replace_digest(RULEBOOK)
    tamper(store.url, "UPDATE receipts SET mfu = 0.5", "DELETE FROM seals")
    assert any("mfu is 0.5" in line for line in _found(store))
    store.seal()
    found = audit(store, other)
    assert found.faults == ()
    assert found.notes == ("5 receipts were taken in under other rules, which give another mfu",)
    tamper(store.url, "UPDATE receipts SET mfu = 0.6 WHERE seq = 2")
    edited = audit(store, other).faults
    assert {item.kind for item in edited} == {"column", "seal"}


def replace_digest(rulebook: Rulebook) -> Rulebook:
    """The same rules under another digest."""
    made = Rulebook()
    made.__dict__["rules"] = replace(rulebook.rules, digest="f" * 64)
    return made


def test_a_missing_trigger_is_found(store: Store) -> None:
    tamper(store.url, "DELETE FROM quotes WHERE seq = 77")
    assert _found(store) == []
    from receipts.store.address import address
    from receipts.store.database import connect

    engine = connect(address(store.url))
    with engine.begin() as connection:
        on = "" if engine.dialect.name == "sqlite" else " ON receipts"
        connection.exec_driver_sql(f"DROP TRIGGER receipts_no_update{on}")
    engine.dispose()
    assert ["schema" in line and "receipts_no_update" in line for line in _found(store)] == [True]


def test_the_command_lists_faults_with_what_to_do_and_does_not_seal_over_them(shell: Shell) -> None:
    shell.store("one")
    sealed = shell("audit", "--seal")
    assert sealed.code == 0
    root = next(line.split()[-1] for line in sealed.lines if line.startswith("root over all seals"))
    assert f"receipts audit --expect {root[:16]}" in sealed.err
    assert shell("audit", "--expect", root).lines[-1] == "whole"
    assert shell("audit", "--seal").lines[-1] == f"root over all seals: {root}"
    tamper(str(shell.folder / "store.sqlite"), "UPDATE receipts SET label = 'two'")
    found = shell("audit", "--seal")
    assert found.code == 1
    assert "label is two and its document gives one: the row was edited" in " ".join(found.out.split())
    assert "receipts restore FILE" in found.out
    assert "nothing was sealed" in found.err
    data = shell("audit", "--json")
    assert data.code == 1
    assert {item["kind"] for item in data.json["faults"]} == {"column", "seal"}
    assert shell("audit", "--expect", "xyz").code == 2
    assert shell("audit", "--expect", "0123456789").code == 1


def test_a_submit_of_two_seals_and_so_does_a_report_once_a_day(shell: Shell) -> None:
    def unsealed() -> int:
        return int(shell("audit", "--json").json["unsealed"])

    shell.store("one")
    assert unsealed() == 2  # the receipt and its verdict
    assert shell("submit", shell.write("two", "cpu"), shell.write("three", "cpu")).code == 0
    assert unsealed() == 0
    shell.store("four")
    report = ("report", "weekly", "--since", "2020-01-01", "--out", "pages")
    assert shell(*report).code == 0
    assert unsealed() == 2
    tamper(str(shell.folder / "store.sqlite"), "UPDATE seals SET at = '2020-01-01 00:00:00.000000'")
    assert shell(*report).code == 0
    assert unsealed() == 0


@pytest.mark.parametrize("table", ["documents", "verdicts", "receipts"])
def test_a_damaged_page_is_listed_and_the_rest_is_read(tmp_path: Path, table: str) -> None:
    file = tmp_path / "store.sqlite"
    with open_store(str(file)) as store:
        base = cases.group(cases.build({}), "a", 12)
        list(submit([Document(item.raw, item.source) for item in base], store, RULEBOOK))
        store.seal()
        with store.database.engine.connect() as connection:
            query = f"SELECT pageno FROM dbstat WHERE name = '{table}' AND pagetype = 'leaf' ORDER BY pageno DESC"
            page = connection.exec_driver_sql(query).scalar()
    content = bytearray(file.read_bytes())
    content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(content)
    with open_store(str(file), create=False) as store:
        found = audit(store, RULEBOOK)
    assert found.exit_code == 1
    assert any("damaged" in item.found or "malformed" in item.found for item in found.faults)
    assert all("restore" in item.do or "recover" in item.do for item in found.faults)
