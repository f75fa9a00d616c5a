"""Seals: the tree is that of RFC 6962, every row is held by one, and purges do not break them."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import func, select, text

import merkle_proofs
from receipts.judging.verdict import ReceiptVerdict
from receipts.store import Store, open_store, seals
from receipts.store.address import address
from receipts.store.backup import backup, restore
from receipts.store.database import connect, reading, writing
from receipts.store.seals import KINDS, Seal, all_seals, held, seal
from receipts.store.tables import erased
from store_receipts import publish, ready, sign
from tampering import tamper
from thorough import on_engines, unless_thorough


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as opened:
        yield opened


def _broken(store: Store) -> list[str]:
    """The tables whose seals do not hold."""
    with reading(store.database.engine) as connection:
        found = [held(connection, one) for one in all_seals(connection)]
    return [item.seal.what for item in found if not item.whole]


def _filled(store: Store) -> list[str]:
    """Receipts, and a row in each sealed table but those that a purge writes."""
    ids = [store.submit(*ready()).id for _ in range(7)]
    store.submit(*ready(run__launch="one", run__label="a"))
    store.submit(*ready(run__launch="one", run__label="b", run__supersedes={"target": "one", "reason": "x"}))
    store.pin("@golden", ids[0])
    publish(store, ids[0])
    sign(store, ids[0])
    return ids


def test_consistency_proofs_are_those_of_certificate_transparency() -> None:
    # The proofs of Certificate Transparency's reference tests, over the leaves of the test below.
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [seals.leaf(bytes.fromhex(item)) for item in inputs]
    proofs = {
        (1, 1): [],
        (1, 8): ["96a296d224f285c6", "5f083f0a1a33ca07", "6b47aaf29ee3c2af"],
        (6, 8): ["0ebc5d3437fbe2db", "ca854ea128ed050b", "d37ee418976dd957"],
        (2, 5): ["5f083f0a1a33ca07", "bc1a0643b12e4d2d"],
    }
    for (first, second), expected in proofs.items():
        assert [item.hex()[:16] for item in seals.consistency(leaves[:second], first)] == expected


def test_a_consistency_proof_holds_between_any_two_trees_and_no_mutation_of_it_does() -> None:
    leaves = [seals.leaf(bytes([item])) for item in range(33)]
    rng = random.Random(9162)
    trees = [(first, second) for second in range(1, 34) for first in range(1, second + 1)]
    for first, second in trees:
        roots = seals.merkle_root(leaves[:first]), seals.merkle_root(leaves[:second])
        assert merkle_proofs.consistent(first, second, *roots, seals.consistency(leaves[:second], first))
    for _ in range(unless_thorough(120, 10_000)):
        first, second = rng.choice([item for item in trees if item[0] < item[1]])
        roots = [seals.merkle_root(leaves[:first]), seals.merkle_root(leaves[:second])]
        digests = [*roots, *seals.consistency(leaves[:second], first)]
        at = rng.randrange(len(digests))
        flipped = bytearray(digests[at])
        flipped[rng.randrange(32)] ^= rng.randrange(1, 256)
        changed = [*digests[:at], *([bytes(flipped)] if at < 2 or rng.random() < 0.7 else []), *digests[at + 1 :]]
        assert not merkle_proofs.consistent(first, second, changed[0], changed[1], changed[2:])


def test_the_tree_is_that_of_rfc_6962() -> None:
    # The leaves and roots of Certificate Transparency's reference tests (merkletree, "RFC 6962 hasher").
    inputs = ["", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"]
    leaves = [seals.leaf(bytes.fromhex(item)) for item in inputs]
    assert seals.merkle_root([]).hex() == hashlib.sha256(b"").hexdigest()
    assert seals.merkle_root(leaves[:1]).hex() == "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"
    assert seals.merkle_root(leaves[:3]).hex() == "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"
    assert seals.merkle_root(leaves[:7]).hex() == "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"
    assert seals.merkle_root(leaves).hex() == "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"


# For good: seals that exist were computed over these columns in this order.
_SEALED = {
    "receipts": "id",
    "columns": (
        "id launch generation lane kind outcome provenance status path_answer schema_version started finished "
        "submitted_at label context host supersedes supersedes_reason accelerator chips sequence_length micro_batch "
        "global_batch depth model family tokens_per_second tokens_per_second_per_chip step_seconds "
        "tflops_per_second_per_chip mfu rate_source peak_bytes peak_reserved_bytes compile_seconds failure_phase "
        "failure_class witness_for actor"
    ),
    "verdicts": "kind status metric rules judge judged_at codec body",
    "supersessions": "receipt successor reason at actor",
    "pins": "name receipt note at actor",
    "claims": "id kind body origin at actor",
    "claim_supersessions": "claim successor reason at actor",
    "claim_verdicts": "claim status rules judge at codec body",
    "decisions": "receipt decision reason at actor",
    "quotes": "document receipt says at",
    "incidents": "incident event line kind metric body owner actor reason at",
    "erased": "what number receipt leaf seal reason at actor",
    "trusted_keys": "name fingerprint key lanes ends revoked at actor",
    "envelopes": "receipt fingerprint signature at actor",
    "seals": "store what first last held root at",
}


def test_a_seal_covers_the_same_columns_as_ever() -> None:
    covered = {name: " ".join(kind.query.selected_columns.keys()) for name, kind in KINDS.items()}
    assert covered == {name: f"seq {columns}" for name, columns in _SEALED.items()}


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 11])
def test_a_proof_leads_from_its_leaf_to_the_root_and_from_no_other(size: int) -> None:
    leaves = [seals.leaf(bytes([number])) for number in range(size)]
    for at in range(size):
        steps = seals.proof(leaves, at)
        assert merkle_proofs.follow(leaves[at], steps) == seals.merkle_root(leaves)
        assert merkle_proofs.follow(seals.leaf(b"another"), steps) != seals.merkle_root(leaves)


def test_every_row_is_sealed_once_and_a_second_seal_writes_nothing(store: Store) -> None:
    _filled(store)
    made = store.seal()
    assert {item.what for item in made} == set(KINDS) - {"erased"}
    assert {item.what: item.held for item in made}["receipts"] == 9
    assert made[-1].what == "seals"
    assert made[-1].held == len(made) - 1
    assert _broken(store) == []
    assert store.seal() == []
    store.submit(*ready())
    again = store.seal()
    assert {item.what for item in again} == {"receipts", "columns", "verdicts", "seals"}
    assert _broken(store) == []


def test_many_rows_are_sealed_in_parts_none_left_out(store: Store) -> None:
    _filled(store)
    while True:
        with writing(store.database.engine) as connection:
            made = seal(connection, datetime.now(UTC), most=4)
        if not made:
            break
        assert max(item.held for item in made) <= 11
    with reading(store.database.engine) as connection:
        of = [item for item in all_seals(connection) if item.what == "receipts"]
    assert [item.held for item in of] == [4, 4, 1]
    assert _broken(store) == []


CHANGES = {
    "receipts": ["UPDATE receipts SET id = substr(id, 2) || substr(id, 1, 1) WHERE seq = 3"],
    "columns": ["UPDATE receipts SET mfu = 0.99 WHERE seq = 3"],
    "verdicts": ["DELETE FROM verdicts WHERE seq = 4"],
    "supersessions": ["UPDATE supersessions SET reason = 'y'"],
    "pins": ["DELETE FROM pins"],
    "claims": ["UPDATE claims SET body = '{}' WHERE seq = 1"],
    "claim_supersessions": ["DELETE FROM claim_supersessions"],
    "claim_verdicts": ["UPDATE claim_verdicts SET status = 'refuted'"],
    "decisions": ["UPDATE decisions SET decision = 'ship'"],
    "quotes": ["UPDATE quotes SET says = '99k tok/s'"],
    "seals": ["UPDATE seals SET held = held + 1 WHERE what = 'pins'"],
}


@pytest.mark.slow
@pytest.mark.parametrize(("copied", "what"), on_engines(CHANGES), indirect=["copied"])
def test_a_row_that_was_changed_or_taken_away_breaks_its_seal(store: Store, what: str) -> None:
    _filled(store)
    store.seal()
    tamper(store.url, *CHANGES[what])
    assert what in _broken(store)


def test_a_row_put_into_a_sealed_range_breaks_the_seal(store: Store) -> None:
    ids = _filled(store)
    tamper(
        store.url,
        "DELETE FROM pins",
        *[
            f"INSERT INTO pins (seq, name, receipt, at) VALUES ({number}, 'a', '{ids[0]}', '2026-01-01 00:00:00')"
            for number in (1, 5)
        ],
    )
    store.seal()
    assert _broken(store) == []
    tamper(store.url, f"INSERT INTO pins (seq, name, receipt, at) VALUES (3, 'a', '{ids[0]}', '2026-01-01 00:00:00')")
    assert _broken(store) == ["pins"]


def test_a_purge_leaves_every_seal_whole(store: Store) -> None:
    ids = _filled(store)
    store.seal()
    for receipt in (ids[0], ids[4], store.resolve("label=b")):
        store.purge(receipt, "a token")
        assert _broken(store) == []
    assert {item.what for item in store.seal()} == {"supersessions", "erased", "seals"}
    assert _broken(store) == []


def test_a_tombstone_that_is_taken_away_breaks_the_seal_over_what_was_erased(store: Store) -> None:
    ids = _filled(store)
    store.seal()
    store.purge(ids[2], "a token")
    store.seal()
    tamper(store.url, "DELETE FROM purges")
    assert _broken(store) == ["erased"]


def test_no_number_is_given_again_after_a_purge(store: Store) -> None:
    for round_ in range(3):
        kept = [store.submit(*ready()).id for _ in range(2)]
        gone = [store.submit(*ready()).id for _ in range(3)]
        store.seal()
        for receipt in gone[:: 1 if round_ % 2 else -1]:
            store.purge(receipt, "a token")
            assert _broken(store) == []
        late = store.submit(*ready()).id
        made = store.seal()
        assert store.entry(late).seq > erased_last(store)
        assert {item.what: item.held for item in made}["receipts"] == 1
        assert _broken(store) == []
        store.purge(late, "a token")
        assert _broken(store) == []
        assert kept
    with reading(store.database.engine) as connection:
        seals = [item for item in all_seals(connection) if item.what == "receipts"]
    assert sum(item.held for item in seals) == 3 * 6


def erased_last(store: Store) -> int:
    """The highest number of a receipt that a purge erased."""
    with reading(store.database.engine) as connection:
        number = connection.scalar(select(func.max(erased.c.number)).where(erased.c.what == "receipts"))
    assert number is not None
    return int(number)


def test_what_was_erased_before_any_seal_is_missed_by_none(store: Store) -> None:
    store.submit(*ready())
    store.purge(store.submit(*ready()).id, "a token")
    middle = store.submit(*ready()).id
    store.submit(*ready())
    store.purge(middle, "a token")
    assert {item.what: item.held for item in store.seal()}["receipts"] == 2
    assert _broken(store) == []


def test_a_seal_waits_for_writers_whose_numbers_are_smaller(postgres_store: str) -> None:
    """A verdict's number is given when it is written, and seen when its transaction ends: maybe after a larger one."""
    with open_store(postgres_store) as store:
        store.submit(*ready())
        engine = connect(address(postgres_store))
        made: list[Seal] = []
        with engine.connect() as connection, connection.begin():
            from receipts.store.sql import engine_of

            engine_of(connection).lock(connection, alone=False)
            connection.execute(text("SELECT nextval(pg_get_serial_sequence('receipts', 'seq'))"))
            store.submit(*ready())
            sealer = threading.Thread(target=lambda: made.extend(store.seal()))
            sealer.start()
            sealer.join(0.5)
            assert sealer.is_alive()
        sealer.join(30)
        engine.dispose()
    assert {item.what: item.held for item in made}["receipts"] == 2


@pytest.mark.parametrize(
    "write",
    [
        lambda store, one: store.submit(*ready()),
        lambda store, one: store.record(_verdict(one)),
        lambda store, one: store.pin("@golden", one),
        lambda store, one: store.published.decide(one, "hold", "why"),
        lambda store, one: store.retract(one, "why"),
        lambda store, one: store.purge(one, "why"),
    ],
    ids=["submit", "record", "pin", "decide", "retract", "purge"],
)
def test_every_writer_waits_for_a_seal(postgres_store: str, write: object) -> None:
    assert callable(write)
    with open_store(postgres_store) as store:
        one = store.submit(*ready()).id
        engine = connect(address(postgres_store))
        with engine.connect() as connection, connection.begin():
            seal(connection, datetime.now(UTC))
            writer = threading.Thread(target=write, args=(store, one))
            writer.start()
            writer.join(0.3)
            assert writer.is_alive()
        writer.join(30)
        assert not writer.is_alive()
        engine.dispose()


def _verdict(receipt: str) -> ReceiptVerdict:
    return replace(ready()[1], receipt=receipt)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(unless_thorough(1, 4)))
def test_whatever_is_submitted_purged_and_sealed_in_any_order_every_row_is_sealed_once(
    made_url: str, tmp_path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    with open_store(made_url) as store:
        there: list[str] = []
        for _ in range(unless_thorough(40, 60)):
            what = draw.choice(["submit", "submit", "record", "purge", "purge last", "seal", "seal some"])
            if what == "submit" or not there:
                there.append(store.submit(*ready()).id)
            elif what == "record":
                store.record(_verdict(draw.choice(there)))
            elif what.startswith("purge"):
                store.purge(there.pop(-1 if what == "purge last" else draw.randrange(len(there))), "a token")
            elif what == "seal":
                store.seal()
            else:
                with writing(store.database.engine) as connection:
                    seal(connection, datetime.now(UTC), most=2)
            assert _broken(store) == []
        store.seal()
        _every_row_is_in_one_seal(store)
        # A restored backup has the same numbers, which PostgreSQL itself would not have given twice.
        backup(store.database.address, tmp_path / "kept.sqlite")
        assert _broken(store) == []
    with open_store(str(tmp_path / "kept.sqlite"), create=False) as kept:
        _every_row_is_in_one_seal(kept)


def _every_row_is_in_one_seal(store: Store) -> None:
    with reading(store.database.engine) as connection:
        for what in ("receipts", "columns", "verdicts", "erased"):
            of = [held(connection, one) for one in all_seals(connection, what)]
            rows = select(func.count()).select_from(KINDS[what].table)
            kept = sum(item.seal.held - item.erased for item in of)
            assert kept == connection.execute(rows).scalar_one(), what
            assert all(item.whole for item in of)


def test_a_backup_goes_on_after_what_was_erased_on_either_engine(tmp_path: Path, postgres_store: str) -> None:
    def purge_the_last(store: Store) -> None:
        store.submit(*ready())
        gone = store.submit(*ready()).id
        store.seal()
        store.purge(gone, "a token")

    def goes_on(store: Store) -> None:
        late = store.submit(*ready()).id
        assert store.entry(late).seq > erased_last(store)
        assert {item.what: item.held for item in store.seal()}["receipts"] == 1
        assert _broken(store) == []
        _every_row_is_in_one_seal(store)

    with open_store(str(tmp_path / "store.sqlite")) as store:
        purge_the_last(store)
        backup(store.database.address, tmp_path / "kept.sqlite")
    restore(tmp_path / "kept.sqlite", address(postgres_store))
    with open_store(postgres_store, create=False) as store:
        goes_on(store)
        purge_the_last(store)
        backup(store.database.address, tmp_path / "back.sqlite")
    with open_store(str(tmp_path / "back.sqlite"), create=False) as store:
        goes_on(store)


@pytest.mark.slow
def test_seals_written_while_others_write_leave_no_row_out(made_url: str) -> None:
    with open_store(made_url) as store:
        store.submit(*ready())
        stop = threading.Event()
        failed: list[BaseException] = []

        def work(turn: int) -> None:
            try:
                with open_store(made_url) as own:
                    while not stop.is_set():
                        one = own.submit(*ready()).id
                        own.record(_verdict(one))
                        if turn == 0:
                            own.purge(one, "a token")
            except BaseException as error:
                failed.append(error)

        writers = [threading.Thread(target=work, args=(turn,)) for turn in range(3)]
        for writer in writers:
            writer.start()
        for _ in range(12):
            store.seal()
        stop.set()
        for writer in writers:
            writer.join()
        assert failed == []
        store.seal()
        assert _broken(store) == []
        _every_row_is_in_one_seal(store)
