"""Block patterns: what is read, what is refused and where, and what follows from tiling."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.base.errors import Problem
from receipts.receipt.patterns import (
    ALPHABETS,
    BlockKind,
    Pattern,
    contradiction,
    counts,
    kind_counts,
    read_pattern,
    shortest_tile,
)

NAM56R = "AEMEAEMEAEMR"


def pattern(text: str, alphabet: str | None = None) -> Pattern:
    found = read_pattern(text, alphabet)
    assert isinstance(found, Pattern), found
    return found


def tile(text: str, depth: int) -> str:
    """The pattern repeated, and cut where the depth ends."""
    return (text * depth)[:depth]


def problems(text: str, alphabet: str | None = None) -> tuple[Problem, ...]:
    found = read_pattern(text, alphabet)
    assert not isinstance(found, Pattern), found
    return found


def test_nam56r_at_52_has_13_attention_13_mamba_22_expert_and_4_recurrent_blocks() -> None:
    assert counts(pattern(NAM56R), 52) == {"A": 13, "M": 13, "E": 22, "R": 4}


def test_tiling_cuts_the_last_repeat() -> None:
    assert counts(pattern("AEMEAEMEAEMRA"), 13) == {"A": 4, "M": 3, "E": 5, "R": 1}


@given(st.text("AEMR", min_size=1, max_size=15), st.integers(1, 60))
def test_the_shortest_tile_makes_the_same_stack(text: str, depth: int) -> None:
    short = shortest_tile(text, depth)
    assert tile(short, depth) == tile(text, depth)
    assert len(short) <= min(len(text), depth)
    assert shortest_tile(tile(text, depth), depth) == shortest_tile(text * 2, depth) == short


@pytest.mark.parametrize("text", ["AEME|AEMR", "AEM/A-", "[*-]E[*-]E"])
def test_stages_groups_and_mtp_heads_keep_a_pattern_as_it_was_written(text: str) -> None:
    assert shortest_tile(text, 52) == text


@given(st.text(alphabet="AMER", min_size=1, max_size=20), st.integers(1, 200))
def test_the_counts_of_a_tiled_pattern_add_up_to_the_depth(text: str, depth: int) -> None:
    assert sum(counts(pattern(text, "nam"), depth).values()) == depth


def test_kinds_are_the_same_in_both_spellings_of_one_stack() -> None:
    assert kind_counts(pattern("*EME*EME*EMM*"), 13) == kind_counts(pattern("AEMEAEMEAEMMA"), 13)


def test_an_unknown_letter_is_refused_with_its_position_and_the_accepted_ones() -> None:
    (problem,) = problems("AEMXA", "nam")
    assert problem.at == "model.pattern"
    assert "'X' at position 4" in problem.what
    assert "A M E R D" in problem.do


def test_every_unknown_letter_is_told_at_once() -> None:
    assert len(problems("AxMyA")) == 2


@pytest.mark.parametrize("text", ["aeme", "AEME AEMR", "A,E,M", "AEMEAEMEAEMR (depth 13 -> *EME*EME*EMM* /*-)"])
def test_near_patterns_are_not_read(text: str) -> None:
    assert problems(text)


def test_an_unknown_alphabet_is_refused_with_the_known_ones() -> None:
    (problem,) = problems("AEME", "klingon")
    assert problem.at == "model.alphabet"
    assert problem.do == "use one of: nam, nemo"


def test_the_alphabet_follows_from_letters_that_only_one_has() -> None:
    assert pattern(NAM56R).alphabet == "nam"
    assert pattern("M*M-").alphabet == "nemo"
    assert pattern("*EME", "NEMO").alphabet == "nemo"


def test_a_letter_that_two_alphabets_read_otherwise_needs_the_alphabet() -> None:
    (problem,) = problems("MDE")
    assert problem.do == "state model.alphabet"
    assert pattern("MDE", "nam").kinds() == {BlockKind.MAMBA, BlockKind.DELTA, BlockKind.EXPERT}
    assert pattern("MDE", "nemo").kinds() == {BlockKind.MAMBA, BlockKind.SPARSE_ATTENTION, BlockKind.EXPERT}


def test_the_mtp_suffix_is_apart_from_the_stack() -> None:
    found = pattern("*EME*EME*EMM*/*-")
    assert (len(found.blocks), found.mtp, found.mtp_depth) == (13, ("*", "-"), 1)
    assert counts(found, 13) == {"*": 4, "E": 5, "M": 4}
    assert pattern("M*M*/MM/MM").mtp_depth == 2
    assert pattern("M*M*/").mtp_depth == 0


def test_stages_are_counted_and_no_blocks() -> None:
    found = pattern("M-M-|M-M*-/MM/MM")
    assert found.stages == (4, 5)
    assert found.letters == "M-M-M-M*-"


def test_a_fused_group_is_one_block_with_all_its_layers() -> None:
    found = pattern("[*-]M*")
    assert found.blocks == ("*-", "M", "*")
    assert counts(found, 3) == {"*": 2, "M": 1, "-": 1}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("M*/MM/M*", "differ"),
        ("M*/MM//", "differ"),
        ("M*/M|M", "main stack only"),
        ("M[*-", "not closed"),
        ("M[*|-]", "not closed"),
        ("M*]", "closes no group"),
        ("M[*]", "closes no group"),
        ("[[*-]-]", "inside a fused group"),
        ("", "no block"),
        ("|", "no block"),
        ("/*-", "no block"),
    ],
)
def test_a_torn_pattern_is_refused_in_words(text: str, says: str) -> None:
    assert any(says in problem.what for problem in problems(text, "nemo"))


@given(st.text(max_size=30))
def test_no_text_makes_reading_fail(text: str) -> None:
    found = read_pattern(text)
    assert isinstance(found, Pattern) or (found and all(problem.what for problem in found))


@given(st.text(alphabet="*MEGD-|/[]", max_size=14))
def test_a_read_pattern_holds_every_letter_of_its_text(text: str) -> None:
    found = read_pattern(text, "nemo")
    if isinstance(found, Pattern):
        main = text.partition("/")[0]
        assert found.letters == "".join(letter for letter in main if letter not in "|[]")
        assert sum(found.stages) == len(found.blocks)


@pytest.mark.parametrize(
    ("text", "alphabet", "family"),
    [
        (NAM56R, "nam", "hybrid"),
        ("M*M-", "nemo", "hybrid"),
        ("MMMM", "nemo", "ssm"),
        ("MEME", "nam", "ssm"),
        ("AEAE", "nam", "moe"),
        ("DEDE", "nemo", "moe"),
        ("*-*-", "nemo", "dense"),
        ("D-D-", "nemo", "sparse"),
    ],
)
def test_blocks_may_be_called_by_their_family(text: str, alphabet: str, family: str) -> None:
    found = pattern(text, alphabet)
    assert contradiction(found, family) == ""


@pytest.mark.parametrize(
    ("text", "family", "says"),
    [
        (NAM56R, "dense", "expert blocks"),
        (NAM56R, "ssm", "attention"),
        ("A", "moe", "no expert"),
        ("AE", "hybrid", "does not mix"),
        ("AM", "dense", "mamba"),
        ("A", "ssm", "no state-space"),
        ("M", "sparse", "neither"),
        ("A", "quantum", "not a family"),
    ],
)
def test_a_family_that_its_pattern_denies_is_told_why(text: str, family: str, says: str) -> None:
    assert says in contradiction(pattern(text, "nam"), family)


def test_families_overlap_and_that_is_no_contradiction() -> None:
    assert contradiction(pattern(NAM56R), "moe") == ""
    assert contradiction(pattern(NAM56R), "sparse") == ""


def test_alphabets_say_where_they_come_from() -> None:
    for name, alphabet in ALPHABETS.items():
        assert alphabet.name == name
        assert len(alphabet.source) > 20
        assert not set(alphabet.letters) & set("/|[]")


def test_a_stack_of_any_height_is_counted_at_once() -> None:
    tall = 12 * 10**15
    assert counts(pattern(NAM56R), tall + 1) == {
        "A": tall // 4 + 1,
        "M": tall // 4,
        "E": 5 * tall // 12,
        "R": tall // 12,
    }
