"""The order in which people name files decides nothing: a receipt's id is the digest of its bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from ingest_evidence import at, file, ingested, reading
from receipts.ingest.assembly import assemble, natural
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.files import gather, given
from receipts.receipt.leaves import leaves
from thorough import unless_thorough

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(scope="module")
def evidence() -> list[FileEvidence]:
    with given([str(SAMPLES)], unpack=False) as (items, _):
        return [item for item in gather(items) if item.readings]


@settings(max_examples=unless_thorough(60, 1000))
@drawn(st.data())
def test_any_order_of_the_files_gives_the_same_bytes(evidence: list[FileEvidence], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(evidence) - 1), min_size=2, max_size=5, unique=True))
    other = data.draw(st.permutations(places))
    one, two = (assemble([evidence[number] for number in order]) for order in (places, other))
    assert one.raw == two.raw
    assert one.messages == two.messages


def test_names_sort_as_people_count() -> None:
    assert sorted(["rank10.log", "rank2.log", "rank2.err", "a"], key=natural) == [
        "a",
        "rank2.err",
        "rank2.log",
        "rank10.log",
    ]


def test_files_of_one_name_are_read_by_their_digest(tmp_path: Path) -> None:
    one, two = (file(tmp_path / folder, reading(run__host=folder), text=f"{folder}\n") for folder in ("n1", "n0"))
    first = min(one, two, key=lambda item: item.sha256)
    assert at(ingested(one, two), "run.host") == at(ingested(two, one), "run.host") == first.path.parent.name


def test_a_readers_record_is_in_the_order_of_the_schema(evidence: list[FileEvidence]) -> None:
    known = [leaf.path for leaf in leaves()]
    for item in evidence:
        for entry in assemble([item]).tree["evidence"]:
            read = [known.index(path) for path in entry.get("read", {}) if path in known]
            assert read == sorted(read)
