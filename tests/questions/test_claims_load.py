"""``claims.toml``: read strictly, every problem with its path; the published schema says the same."""

from __future__ import annotations

import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from receipts.base.environment import bundled_folder
from receipts.base.errors import InputError
from receipts.judging.claim import claim_from_json, claim_to_json, parse_claims, read_claims_file
from receipts.judging.mechanism import MECHANISMS

WHOLE = """
schema_version = "1.0"

[[claim]]
id = "mtp-off"
text = "Without MTP it is 13.3 % faster."
kind = "speedup"
baseline = ["3f9c", "label=base*"]
candidate = "@golden"
axis = "model.mtp_depth"
metric = "tokens_per_second"
effect = "at least 1.10"
target = { chips = 8, sequence_length = 4096, depth = 52 }
mechanism = "algorithmic substitution"
study = "fixed-accumulation"
waive = { "flags.NCCL_ALGO" = "pinned by the site" }
quoted_in = ["README.md", "docs/results.md"]
supersedes = "mtp"
reason = "measured again with five launches"
"""


def _one(**keys: Any) -> bytes:
    stated = {"id": "a", "text": "b", "kind": "speedup", "effect": "at least 1.1", **keys}
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in stated.items() if value is not None]
    return ('schema_version = "1.0"\n[[claim]]\n' + "\n".join(lines)).encode()


def _problems(raw: bytes) -> dict[str, str]:
    with pytest.raises(InputError) as refused:
        parse_claims(raw, "claims.toml")
    return {problem.at: problem.what for problem in refused.value.problems}


def test_a_whole_claim_is_read_and_kept_as_it_was_stated() -> None:
    (claim,) = parse_claims(WHOLE.encode(), "claims.toml")
    assert claim.baseline == ("3f9c", "label=base*")
    assert claim.candidate == ("@golden",)
    assert claim.mechanism_named is MECHANISMS["algorithmic-substitution"]
    assert claim_from_json(claim_to_json(claim), "store") == claim


def test_claims_fit_the_published_schema_and_what_is_refused_by_shape_does_not() -> None:
    schema = json.loads((bundled_folder("schema") / "claims-1.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert validator.is_valid(tomllib.loads(WHOLE))
    for wrong in (_one(id="a b"), _one(kind="faster"), _one(speed=3), _one(target=3), _one(candidate=3)):
        assert not validator.is_valid(tomllib.loads(wrong.decode()))
        assert _problems(wrong)


@pytest.mark.parametrize(
    ("keys", "at"),
    [
        ({"axis": "nonsense"}, "claim[0].axis"),
        ({"metric": "speed"}, "claim[0].metric"),
        ({"mechanism": "magic"}, "claim[0].mechanism"),
        ({"effect": "fast"}, "claim[0].effect"),
        ({"effect": None}, "claim[0].effect"),
        ({"effect": "at most 115 GiB"}, "claim[0].effect"),
        ({"kind": "equivalence", "effect": "at least 1.2"}, "claim[0].effect"),
        ({"kind": "does-not-fit"}, "claim[0].effect"),
        ({"kind": "memory", "effect": "at most 0.9"}, "claim[0].effect"),
        ({"kind": "mfu", "effect": "29.2 %", "baseline": ["x"]}, "claim[0].baseline"),
        ({"supersedes": "a", "reason": "x"}, "claim[0].supersedes"),
        ({"reason": "x"}, "claim[0].reason"),
        ({"baselines": ["x"]}, "claim[0].baselines"),
        ({"text": ""}, "claim[0].text"),
    ],
)
def test_a_wrong_claim_is_refused_at_its_key(keys: dict[str, Any], at: str) -> None:
    assert list(_problems(_one(**keys))) == [at]


def test_every_problem_of_a_file_is_told_at_once() -> None:
    twice = _one(axis="nonsense", metric="speed", what=3) + b"\n[[claim]]\n" + _one(kind="x").split(b"]]\n")[1]
    assert set(_problems(twice)) == {"claim[0].axis", "claim[0].metric", "claim[0].what", "claim[1].kind"}


def test_an_id_that_stands_twice_is_refused() -> None:
    assert "claim[1].id" in _problems(_one() + b"\n[[claim]]\n" + _one().split(b"]]\n")[1])


def test_an_effect_that_is_a_difference_is_refused_in_a_file_and_read_from_a_store() -> None:
    effect = "+13 ± 2 %"
    assert "is a difference" in _problems(_one(effect=effect))["claim[0].effect"]
    (kept,) = parse_claims(_one(), "claims.toml")
    assert claim_from_json(json.dumps({**json.loads(claim_to_json(kept)), "effect": effect}), "store").effect == effect


def test_an_axis_of_an_open_map_is_an_axis() -> None:
    for name in ("flags.NCCL_ALGO", "features.fused_loss", "patches.mine", "wheels", "code", "precision", "path.gemm"):
        (claim,) = parse_claims(_one(axis=name), "claims.toml")
        assert claim.axis == name


@pytest.mark.parametrize(
    ("metric", "effect", "low", "high", "of"),
    [
        ("step_seconds", "25 % slower", 1.245, 1.255, "metric"),
        ("step_seconds", "at least 25 percent slower", 1.25, math.inf, "metric"),
        ("tokens_per_second", "25 % slower", 0.745, 0.755, "improvement"),
    ],
)
def test_slower_is_said_of_the_metric(metric: str, effect: str, low: float, high: float, of: str) -> None:
    (claim,) = parse_claims(_one(metric=metric, effect=effect), "claims.toml")
    assert claim.bound is not None
    assert (claim.bound.of, claim.bound.text) == (of, effect)
    assert (claim.bound.low, claim.bound.high) == (pytest.approx(low), pytest.approx(high))


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("numerics.recompute", "recompute"),
        ("batch.micro_batch", "batch.micro_batch"),
        ("mtp_depth", "model.mtp_depth"),
        ("driver", "platform.driver"),
        ("platform", "platform"),
    ],
)
def test_a_leaf_names_its_axis_or_one_of_its_members(name: str, axis: str) -> None:
    (claim,) = parse_claims(_one(axis=name), "claims.toml")
    assert claim.axis == axis


def test_what_is_no_toml_no_version_or_no_file_is_refused(tmp_path: Path) -> None:
    assert "TOML" in _problems(b"a = ")[""]
    assert "schema_version" in _problems(b'schema_version = "9.0"')
    assert "schema_version" in _problems(b"[[claim]]\n")
    with pytest.raises(InputError, match="cannot be read"):
        read_claims_file(tmp_path / "none.toml")


def test_the_page_shows_a_claim_that_is_read_and_names_every_mechanism(checkout: Path) -> None:
    page = (checkout / "docs" / "claims.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    (claim,) = parse_claims(example.encode(), "docs/claims.md")
    assert claim.bound is not None
    assert all(f"`{name}`" in page for name in MECHANISMS)
