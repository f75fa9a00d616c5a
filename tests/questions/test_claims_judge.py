"""Verdicts on claims: what supports, what refutes, what stays open, and what goes stale."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import rule_cases
from receipts.judging.verdict import ClaimVerdict, verdict_to_json
from receipts.questions.claims.judgment import waits
from receipts.questions.claims.wording import footnote
from receipts.store import Decision

RULES = rule_cases.rulebook().rules
SLOW = {"steps": {"seconds": 0.8, "seed": 3}}
FAST = {"steps": {"seconds": 0.6, "seed": 4}, "set": {"numerics.learning_rate": 0.7}}
GONE = ["measurement.step_durations_seconds", "measurement.step_flags", "measurement.stated"]
TARGET = {"chips": 1, "sequence_length": 256, "micro_batch": 8, "depth": 8}


def _judge(claim: Mapping[str, Any], **table: Any) -> ClaimVerdict:
    measured = {"a": SLOW, "b": FAST, "launches_a": 3, "launches_b": 3, "interleaved": True, "facts": {}, **table}
    return rule_cases.judge_claim({"claim": claim, **measured})


def _stated(rate: float, **leaves: Any) -> dict[str, Any]:
    stated = {"measurement.stated.tokens_per_second": rate, "measurement.stated.statistic": "median", **leaves}
    return {"drop": GONE, "set": stated}


@pytest.mark.parametrize(
    ("effect", "status"),
    [
        ("at least 1.30", "supported"),
        ("at least 1.3333", "unproven"),
        ("at least 1.40", "refuted"),
        ("about 1.33 ± 5 %", "supported"),
        ("about 1.38 ± 3 %", "refuted"),
        ("at most 1.40", "supported"),
        ("30 % faster", "refuted"),
        ("between +30 % and +36 %", "supported"),
    ],
)
def test_a_speedup_is_judged_by_the_interval_of_its_launches(effect: str, status: str) -> None:
    found = _judge({"effect": effect})
    assert found.status == status
    assert found.exit_code == {"supported": 0, "refuted": 1, "unproven": 3}[status]
    assert bool(found.reasons) is (status != "supported")


def test_a_factor_says_how_many_times_as_good_whatever_the_metric() -> None:
    assert _judge({"metric": "step_seconds", "effect": "at least 1.30"}).status == "supported"
    assert _judge({"metric": "step_seconds", "effect": "−25 %"}).status == "supported"
    assert _judge({"metric": "step_seconds", "effect": "+33 %"}).status == "refuted"


def test_one_launch_a_side_without_a_noise_floor_proves_nothing() -> None:
    found = _judge({"effect": "at least 1.30"}, launches_a=1, launches_b=1)
    assert (found.status, found.assessment.low) == ("unproven", None)


def test_a_measured_noise_floor_lets_one_launch_a_side_carry_a_claim() -> None:
    facts = {"sigma": 0.003, "sigma_df": 30}
    assert _judge({"effect": "at least 1.30"}, launches_a=1, launches_b=1, facts=facts).status == "supported"


@pytest.mark.parametrize(("effect", "status"), [("+13.3 %", "unproven"), ("+18 %", "refuted")])
def test_stated_numbers_can_refute_a_claim_and_never_support_it(effect: str, status: str) -> None:
    sides = {"a": _stated(86845.0), "b": _stated(98412.0, **{"numerics.learning_rate": 0.7})}
    found = _judge({"effect": effect}, launches_a=1, launches_b=1, **sides)
    assert found.status == status


def test_a_stated_range_reaches_from_end_to_end() -> None:
    spread = _stated(171.5, **{"measurement.stated.tokens_per_second_stated": "165-178"})
    other = _stated(269.2, **{"numerics.learning_rate": 0.7})
    found = _judge({"effect": "about 1.57 ± 1 %"}, a=spread, b=other, launches_a=1, launches_b=1)
    assert found.status == "unproven"
    assert (found.assessment.low, found.assessment.high) == (
        pytest.approx(1.507, abs=2e-3),
        pytest.approx(1.637, abs=2e-3),
    )


def test_a_rejected_comparison_refutes_the_claim_as_it_is_worded() -> None:
    two = {**FAST, "set": {"numerics.buffer_dtype": "bf16", "numerics.learning_rate": 0.001}}
    found = _judge({"effect": "at least 1.30"}, b=two)
    assert found.comparison is not None
    assert (found.comparison.status, found.status) == ("rejected", "refuted")
    assert any(reason.startswith("C101") for reason in found.reasons)


def test_an_unwitnessed_path_leaves_a_good_number_unproven() -> None:
    found = _judge({"effect": "at least 1.30"}, b={**FAST, "drop": ["path.witnessed"]})
    assert found.status == "unproven"
    assert "unwitnessed" in " ".join(found.reasons)


def test_equivalence_needs_the_ninety_per_cent_interval_inside_the_band() -> None:
    same = {"steps": {"seconds": 0.8, "seed": 4}, "set": {"numerics.learning_rate": 0.7}}
    claim = {"kind": "equivalence", "effect": "within ±1 %"}
    assert _judge(claim, b=same).status == "supported"
    assert _judge({**claim, "effect": "within ±0.05 %"}, b=same).status == "unproven"
    assert _judge(claim).status == "refuted"


def _ceiling(launches: int, **table: Any) -> ClaimVerdict:
    return _judge({"kind": "ceiling", "baseline": []}, launches_b=launches, **table)


def test_a_ceiling_is_what_launches_repeated() -> None:
    assert [_ceiling(count).assessment.grade for count in (1, 2, 3)] == ["single", "repeated", "repeated"]
    assert [_ceiling(count).status for count in (1, 2, 3)] == ["refuted", "supported", "supported"]


def test_three_launches_on_two_days_validate_a_ceiling() -> None:
    late = {
        **FAST,
        "set": {
            "numerics.learning_rate": 0.7,
            "run.started": "2026-03-02T22:30:00Z",
            "run.finished": "2026-03-02T22:40:00Z",
        },
    }
    found = _ceiling(3, b=late)
    assert (found.status, found.assessment.grade) == ("supported", "validated")


def test_a_ceiling_with_a_rate_holds_both() -> None:
    claim = {"kind": "ceiling", "baseline": [], "effect": "at least 6,000 tok/s"}
    assert _judge(claim).status == "supported"
    assert _judge({**claim, "effect": "at least 7,000 tok/s"}).status == "refuted"


def test_a_failed_launch_reached_no_ceiling() -> None:
    crashed = {"drop": ["measurement"], "set": {"run.outcome": "crash"}}
    assert _ceiling(2, b=crashed).status == "refuted"


def test_an_mfu_says_on_what_basis_it_stands() -> None:
    basis = {"measurement.stated.flops_per_token": 24_000_000.0, "measurement.stated.peak_flops_per_second": 1e12}
    named = {**basis, "measurement.stated.formula": "palm", "measurement.stated.peak_dtype": "fp32"}
    b = {**FAST, "set": {"numerics.learning_rate": 0.7, **named}}
    found = _judge({"kind": "mfu", "baseline": [], "effect": "about 16 % ± 10 %"}, b=b)
    assert found.assessment.grade == "recomputed: palm, 0.024 GFLOP/token, of 1 TFLOP/s fp32"
    assert found.status == "supported"
    assert _judge({"kind": "mfu", "baseline": [], "effect": "29.2 %"}, b=b).status == "refuted"


def _mfu(share: float, **leaves: Any) -> dict[str, Any]:
    return {"drop": GONE, "set": {"measurement.stated.mfu": share, **leaves}}


def _mfu_claim(effect: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> ClaimVerdict:
    return rule_cases.judge_claim({"base": "megatron", "claim": {"metric": "mfu", "effect": effect}, "a": a, "b": b})


def test_an_mfu_of_no_named_denominator_is_open_and_not_refuted() -> None:
    found = _mfu_claim("at least 1.05", _mfu(0.30), _mfu(0.33))
    assert found.comparison is not None
    assert found.comparison.status == "rejected"
    assert any("R104" in reason for reason in found.reasons)
    assert found.status == "unproven"


def test_numbers_outside_the_claim_refute_it_whatever_they_divide_by() -> None:
    assert _mfu_claim("at least 1.5", _mfu(0.30), _mfu(0.33)).status == "refuted"


def test_a_second_axis_refutes_whatever_else_is_left_out() -> None:
    other = _mfu(0.33, **{"numerics.buffer_dtype": "bf16", "numerics.learning_rate": 0.5})
    assert _mfu_claim("at least 1.05", _mfu(0.30), other).status == "refuted"


def test_an_mfu_against_the_sparse_peak_is_refuted() -> None:
    names = {"formula": "palm", "peak_flops_per_second": 1.979e15, "peak_dtype": "bf16", "peak_sparse": True}
    sparse = {f"measurement.stated.{name}": value for name, value in names.items()}
    assert _mfu_claim("at least 1.05", _mfu(0.30, **sparse), _mfu(0.33, **sparse)).status == "refuted"


def test_one_mfu_is_refuted_for_what_it_states_and_not_for_what_it_leaves_out() -> None:
    def status(**leaves: Any) -> str:
        claim = {"kind": "mfu", "baseline": [], "effect": "33 %"}
        return rule_cases.judge_claim({"base": "megatron", "claim": claim, "b": _mfu(0.33, **leaves)}).status

    assert status() == "unproven"
    sparse = {"measurement.stated.peak_flops_per_second": 1.979e15, "measurement.stated.peak_dtype": "bf16"}
    assert status(**sparse) == "refuted"


@pytest.mark.parametrize(
    ("effect", "facts", "launches", "status"),
    [
        ("at most 1 GiB", None, 3, "supported"),
        ("at most 1 GiB", None, 1, "unproven"),
        ("at most 1 GiB", {"exact_memory": frozenset({"peak_bytes"})}, 1, "supported"),
        ("at most 0.5 GiB", None, 1, "refuted"),
    ],
)
def test_the_peak_of_the_fullest_chip_is_held_against_a_memory_claim(
    effect: str, facts: dict[str, Any] | None, launches: int, status: str
) -> None:
    claim = {"kind": "memory", "baseline": [], "effect": effect}
    assert _judge(claim, facts=facts, launches_b=launches).status == status


FAILURE = {"phase": "startup", "class": "capacity", "message": "out of memory", "chip": 0}
OOM = {"drop": ["measurement"], "set": {"run.outcome": "oom", "failure": FAILURE}}


@pytest.mark.parametrize(
    ("b", "facts", "status"),
    [
        (OOM, {"shapes": []}, "supported"),
        (OOM, {"shapes": [{**TARGET, "launches": 1}]}, "refuted"),
        (OOM, {"shapes": [{**TARGET, "chips": 8, "launches": 9}]}, "supported"),
        (OOM, None, "unproven"),
        (FAST, {}, "refuted"),
    ],
)
def test_what_does_not_fit_ran_out_of_memory_and_nothing_of_its_size_fitted(
    b: dict[str, Any], facts: dict[str, Any] | None, status: str
) -> None:
    assert _judge({"kind": "does-not-fit", "baseline": []}, b=b, facts=facts, launches_b=1).status == status


def test_a_claim_on_a_superseded_receipt_is_stale_and_says_what_it_would_be() -> None:
    facts = {"superseded": {"b": ["0123456789ab", "silent gradient corruption"]}}
    found = _judge({"effect": "at least 1.30"}, facts=facts)
    assert (found.status, found.otherwise, found.exit_code) == ("stale", "supported", 3)
    assert "silent gradient corruption" in found.reasons[0]


def test_a_claim_that_was_supported_and_is_no_longer_is_stale() -> None:
    found = _judge({"effect": "at least 1.40"}, facts={}, earlier="supported")
    assert (found.status, found.otherwise) == ("stale", "refuted")


def test_a_win_away_from_its_target_waits_for_its_retest() -> None:
    found = _judge({"effect": "at least 1.30", "target": {"depth": 52}})
    assert (found.status, found.at_target, waits(found, RULES)) == ("unproven", False, True)
    assert not waits(_judge({"effect": "at least 1.40", "target": {"depth": 52}}), RULES)
    assert _judge({"effect": "at least 1.30", "target": {"depth": 8}}).status == "supported"


def test_the_footnote_tells_everything_that_the_number_stands_on() -> None:
    found = _judge({"effect": "at least 1.30", "waive": {}, "axis": "numerics.learning_rate"})
    text = footnote(found, [])
    for part in (
        "numerics.learning_rate 0.0003 → 0.7",
        "3 and 3 launches",
        "95 % interval",
        found.rules[:12],
        "cpu-torch@",
    ):
        assert part in text
    assert all(receipt[:12] in text for receipt in (*found.baseline, *found.candidate))


def test_the_footnote_names_decisions_and_unknown_facts() -> None:
    found = _judge({"effect": "at least 1.30"}, a={**SLOW, "drop": ["numerics.schedule"]})
    made = rule_cases.parsed(rule_cases.base()).receipt.run.started
    text = footnote(found, [Decision(found.candidate[0], "drop", "the loss parts", made)])
    assert "Unknown: numerics.schedule" in text
    assert "drop, the loss parts" in text


def test_a_verdict_is_data_that_fits_its_schema() -> None:
    from jsonschema import Draft202012Validator

    from receipts.base.environment import bundled_folder

    schema = json.loads((bundled_folder("schema") / "verdict-1.schema.json").read_text(encoding="utf-8"))
    facts = {"superseded": {"b": ["0123456789ab", "x"]}}
    for found in (_judge({"effect": "at least 1.30"}, facts=facts), _ceiling(1)):
        document = json.loads(json.dumps(verdict_to_json(found), default=str))
        Draft202012Validator(schema).validate(document)
        assert document["reasons"] == list(found.reasons)


@pytest.mark.parametrize(
    ("claim", "least"),
    [
        ({"effect": "at least 1.40"}, "at least +"),
        ({"effect": "about 1.38 ± 3 %"}, "at least +"),
        ({"metric": "step_seconds", "effect": "+33 %"}, "at most −"),
        ({"metric": "step_seconds", "effect": "at least 1.40"}, "at least 1."),
    ],
)
def test_a_claim_that_falls_short_is_offered_wordings_that_hold(claim: dict[str, Any], least: str) -> None:
    found = _judge(claim)
    assert found.status in ("refuted", "unproven")
    assert found.would_hold[0].startswith(least)
    for effect in found.would_hold:
        assert _judge({**claim, "effect": effect}).status == "supported"
    assert verdict_to_json(found)["would_hold"] == found.would_hold


def test_a_wording_is_as_strong_as_its_interval_to_three_digits() -> None:
    found = _judge({"effect": "at least 1.40"})
    low = found.assessment.low
    assert low is not None
    offered = float(found.would_hold[0].removeprefix("at least +").removesuffix(" %"))
    assert 0 <= (low - 1) * 100 - offered < 0.1


def test_a_value_that_falls_short_is_offered_with_its_unit() -> None:
    claim = {"kind": "ceiling", "baseline": [], "effect": "at least 112,152 tok/s"}
    found = rule_cases.judge_claim({"claim": claim, "facts": {}, "b": FAST, "launches_b": 3})
    assert found.status == "refuted"
    assert found.would_hold[0].startswith("at least ")
    assert all(effect.endswith(" tok/s") for effect in found.would_hold)


def test_equivalence_is_offered_within_a_band_that_is_one() -> None:
    near = {"steps": {"seconds": 0.79, "seed": 4}, "set": {"numerics.learning_rate": 0.7}}
    claim = {"kind": "equivalence", "effect": "within ±1 %"}
    assert _judge(claim, b=near).would_hold[0].startswith("within ±")
    assert _judge(claim).would_hold == ()


def test_no_wording_is_offered_where_none_would_hold() -> None:
    assert _judge({"effect": "at least 1.40"}, a=_stated(1000), b=_stated(1300)).would_hold == ()
    assert _judge({"effect": "at least 1.30"}).would_hold == ()
