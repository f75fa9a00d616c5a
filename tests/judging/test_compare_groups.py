"""Comparing groups: what may stand on one side, what the verdict says of it, and the gate on it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.axes.difference import Difference
from receipts.base.errors import UsageError
from receipts.cli.group import run
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.verdict import Comparison
from receipts.metrics import Launch
from receipts.publish.readings import signed
from receipts.questions.gate import Requirement, read_requirement, required
from receipts.receipt import Document, Parsed
from receipts.stats.equivalence import Effect
from receipts.store import open_store
from receipts.workflows.submit import submit


def group(side: str, count: int, *, interleaved: bool = False, seconds: float = 0.8, **leaves: Any) -> list[Parsed]:
    """Launches of one configuration of a side; `leaves` are set by their paths, `__` for the dot."""
    changed = {name.replace("__", "."): value for name, value in leaves.items()}
    tree = rule_cases.build({"set": {"run.label": f"{side}-run", **changed}, "steps": {"seconds": seconds}})
    tree["run"]["launch"] = f"{side}-first"
    return rule_cases.group(tree, side, count, interleaved)


def without(parsed: Parsed, section: str, leaf: str) -> Parsed:
    tree = json.loads(parsed.raw)
    del tree[section][leaf]
    return rule_cases.parsed(tree)


def judged(a: list[Parsed], b: list[Parsed]) -> Comparison:
    return compare(a, b, rule_cases.rulebook(), Request(facts=Facts()))


def headline(verdict: Comparison) -> Effect:
    return next(item.effect for item in verdict.results if item.metric == verdict.metric)


def stored(path: Path, receipts: list[Parsed]) -> None:
    with open_store(str(path)) as store:
        documents = [Document(item.raw, item.source) for item in receipts]
        assert all(item.stored for item in submit(documents, store, rule_cases.rulebook()))


def call(capsys: pytest.CaptureFixture[str], path: Path, *words: str) -> tuple[int, str, str]:
    code = run(["--store", str(path), "compare", *words])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def test_a_side_that_mixes_kinds_is_refused() -> None:
    a = group("a", 3)
    tree = json.loads(a[2].raw)
    tree["run"]["kind"] = "profile"
    with pytest.raises(UsageError, match="mixes kinds"):
        judged([*a[:2], rule_cases.parsed(tree)], group("b", 3, numerics__learning_rate=7))


@pytest.mark.parametrize(("path", "value"), [("timer", "cuda_event"), ("tokens_per_step", 4095)])
def test_a_launch_measured_otherwise_than_the_first_of_its_side_leaves_the_pair_open(path: str, value: Any) -> None:
    b = group("b", 3, numerics__learning_rate=7)
    tree = json.loads(b[2].raw)
    tree["measurement"][path] = value
    verdict = judged(group("a", 3), [*b[:2], rule_cases.parsed(tree)])
    assert verdict.comparable != "yes"
    assert ("C102", f"measurement.{path}") in {(item.code, item.at) for item in verdict.findings}


def seeded(side: str, losses: list[float], **leaves: Any) -> list[Parsed]:
    """Launches of the seeds 1, 2, …, each with its own first loss."""
    made = []
    for seed, (launch, loss) in enumerate(zip(group(side, len(losses), **leaves), losses, strict=True), start=1):
        tree = json.loads(launch.raw)
        tree["numerics"]["seed"], tree["measurement"]["loss"]["first"] = seed, loss
        made.append(rule_cases.parsed(tree))
    return made


def of_other_data(a: list[Parsed], b: list[Parsed]) -> list[str]:
    return [f"{item.level.value} {item.found}" for item in judged(a, b).findings if item.code == "C112"]


def test_first_losses_are_held_against_those_of_the_same_seed_in_any_order() -> None:
    losses = [8.1, 8.7, 8.4, 9.3, 7.9]
    a, b = seeded("a", losses), seeded("b", losses, numerics__recompute="full", numerics__recompute_applied="full")
    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert of_other_data(a, [b[at] for at in order]) == []
    b[3] = seeded("b", [*losses[:3], 4.2], numerics__recompute="full", numerics__recompute_applied="full")[3]
    for order in ([0, 1, 2, 3, 4], [3, 4, 2, 0, 1]):
        assert of_other_data(a, [b[at] for at in order]) == ["E 9.3 on A, 4.2 on B at step 1 of one seed"]


def test_without_a_common_seed_the_means_of_the_first_losses_decide_in_any_order() -> None:
    a = seeded("a", [8.1, 8.7, 8.4])
    b = seeded("b", [0.0, 0.0, 0.0, 8.9, 8.2, 8.5], numerics__learning_rate=7)[3:]
    assert of_other_data(a, b) == of_other_data(a[::-1], [b[1], b[2], b[0]]) == []


def test_a_launch_named_twice_is_refused_and_told_why() -> None:
    a, b = group("a", 2), group("b", 2, numerics__learning_rate=7)
    with pytest.raises(UsageError, match="not independent repeats"):
        judged([*a, a[0]], b)


def test_the_same_steps_under_another_launch_are_a_copy() -> None:
    a, b = group("a", 2), group("b", 2, numerics__learning_rate=7)
    tree = json.loads(a[0].raw)
    tree["run"]["launch"] = "another-name"
    with pytest.raises(UsageError, match="one launch recorded twice"):
        judged([*a, rule_cases.parsed(tree)], b)


def test_a_side_that_mixes_configurations_is_refused() -> None:
    with pytest.raises(UsageError, match="mixes configurations"):
        judged([*group("a", 2), *group("x", 1, numerics__learning_rate=8)], group("b", 2, numerics__learning_rate=7))


def test_an_axis_that_one_launch_of_a_side_leaves_open_is_unknown() -> None:
    a, b = group("a", 3), group("b", 3, numerics__learning_rate=7)
    whole = judged(a, b)
    torn = judged([*a[:2], without(a[2], "numerics", "parameter_dtype")], b)
    gap = next(item for item in torn.difference.unknown if item.axis == "numerics.parameter_dtype")
    assert gap.missing == "a"
    assert not whole.difference.unknown
    assert whole.comparable == "yes"
    assert torn.comparable == "unknown"


def test_one_side_after_the_other_is_said_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    stored(path, [*group("a", 3), *group("b", 3, numerics__learning_rate=7)])
    for form in ("text", "markdown", "json"):
        _, printed, _ = call(capsys, path, "label=a-*", "label=b-*", "--format", form)
        assert "one side ran after the other" in " ".join(printed.split()), form
    document = json.loads(printed)
    assert document["results"][0]["effect"]["order"] == "sequential"


def test_launches_that_took_turns_are_not_said_to_follow_each_other() -> None:
    effect = headline(
        judged(group("a", 3, interleaved=True), group("b", 3, interleaved=True, numerics__learning_rate=7))
    )
    assert (effect.order, effect.design) == ("interleaved", "turns")
    assert "one side ran after the other" not in effect.why


def test_patterns_name_groups_and_the_store_adds_replicates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    a, b = group("a", 3), group("b", 4, numerics__learning_rate=7)
    stored(path, [*a, *b])

    def sides(*words: str) -> tuple[int, int]:
        document = json.loads(call(capsys, path, *words, "--json")[1])
        return len(document["a"]), len(document["b"])

    assert sides("label=a-*", "label=b-*") == (3, 4)
    assert sides(a[0].id, b[0].id) == (3, 4)
    assert sides(a[0].id, b[0].id, "--no-replicates") == (1, 1)
    assert sides(a[0].id, b[0].id, "--also-a", a[1].id, "--no-replicates") == (2, 1)


@pytest.mark.parametrize(
    ("kind", "requirement", "code"),
    [
        ("faster", "faster", 0),
        ("faster", "not-slower", 0),
        ("faster", "equivalent", 1),
        ("slower", "faster", 1),
        ("slower", "not-slower", 1),
        ("slower", "equivalent", 1),
        ("equivalent", "faster", 1),
        ("equivalent", "not-slower", 0),
        ("equivalent", "equivalent", 0),
        ("ambiguous", "faster", 3),
        ("ambiguous", "equivalent", 3),
        ("indicated", "faster", 3),
        ("unproven", "not-slower", 3),
    ],
)
def test_a_gate_holds_fails_or_is_open(kind: str, requirement: Requirement, code: int) -> None:
    made = replace(judged(group("a", 3), group("b", 3, numerics__learning_rate=7)), comparable="yes", path="witnessed")
    assert required(replace(made, effect=kind, status="inconclusive"), requirement).exit_code == code


def test_a_gate_never_passes_what_was_rejected_or_left_open() -> None:
    made = replace(judged(group("a", 3), group("b", 3, numerics__learning_rate=7)), effect="faster")
    assert required(replace(made, status="rejected", comparable="no"), "faster").exit_code == 1
    assert required(replace(made, status="inconclusive", comparable="unknown"), "faster").exit_code == 3
    assert required(replace(made, comparable="yes", path="unwitnessed"), "not-slower").exit_code == 3


def test_not_slower_is_proven_by_the_slow_end_of_the_interval() -> None:
    made = replace(judged(group("a", 3), group("b", 3, numerics__learning_rate=7)), comparable="yes", path="witnessed")
    assert made.metric == "tokens_per_second"

    def with_low(low90: float) -> Comparison:
        results = tuple(
            replace(item, effect=replace(item.effect, kind="ambiguous", low90=low90, high90=1.04, delta=0.01))
            for item in made.results
        )
        return replace(made, results=results, effect="ambiguous", status="inconclusive")

    assert required(with_low(0.995), "not-slower").answer == "holds"
    assert required(with_low(0.98), "not-slower").answer == "open"
    assert required(with_low(0.995), "faster").answer == "open"


def test_the_gate_sets_the_exit_code_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "store.sqlite"
    seeds = {"interleaved": True}
    stored(path, [*group("a", 4, **seeds), *group("b", 4, **seeds, seconds=0.7, numerics__learning_rate=7)])
    sides = ("label=a-*", "label=b-*", "--format", "line")
    code, printed, said = call(capsys, path, *sides)
    assert code == 0
    assert printed.startswith("ACCEPTED  B is ")
    expected = {"faster": 0, "not-slower": 0, "equivalent": 1}
    for requirement, wanted in expected.items():
        gated, again, said = call(capsys, path, *sides, "--require", requirement)
        assert (gated, again) == (wanted, printed)
        assert f"--require {requirement}: " in said


def test_the_change_that_is_printed_is_the_one_that_the_interval_is_around() -> None:
    verdict = judged(group("a", 3), group("b", 4, seconds=0.79, numerics__learning_rate=7))
    for item in verdict.results:
        if item.effect.low is not None and item.effect.high is not None and item.effect.ratio is not None:
            assert signed(item.ratio).replace("−", "-") == f"{(item.effect.ratio - 1) * 100:+.2f} %"
    assert (
        signed(replace(verdict.results[0], effect=replace(headline(verdict), ratio=None), stated_ratio=None).ratio)
        == "~"
    )


def test_an_open_question_leaves_the_effect_its_word_and_takes_its_cause() -> None:
    slow = {"measurement__health__clock_mhz": 1860.0, "numerics__learning_rate": 7}
    verdict = judged(
        group("a", 5, seconds=0.85, **slow), group("b", 5, seconds=0.8, measurement__health__clock_mhz=1980.0)
    )
    effects = {item.metric: item.effect for item in verdict.results}
    assert effects["tokens_per_second"].kind == effects["step_seconds"].kind == verdict.effect == "faster"
    assert (verdict.standing, verdict.status) == ("unattributed", "inconclusive")
    assert verdict.last_line().endswith("effect faster on tokens_per_second, unattributed")
    assert effects["step_seconds"].high is not None
    assert effects["peak_bytes"].kind == "equivalent"


@pytest.mark.parametrize(
    ("text", "low90", "high90", "code"),
    [
        ("not-slower=2%", 0.985, 1.0, 0),
        ("not-slower=0.02", 0.985, 0.99, 0),  # slower beyond δ, and by less than what was allowed
        ("not-slower=2%", 0.97, 0.99, 3),
        ("not-slower=2%", 0.95, 0.97, 1),
        ("not-slower=5 %", 0.96, 0.97, 0),
    ],
)
def test_not_slower_by_a_margin_is_held_against_the_one_sided_bounds(
    text: str, low90: float, high90: float, code: int
) -> None:
    made = replace(judged(group("a", 3), group("b", 3, numerics__seed=7)), comparable="yes", path="witnessed")
    results = tuple(
        replace(item, effect=replace(item.effect, kind="ambiguous", low90=low90, high90=high90))
        for item in made.results
    )
    wanted = read_requirement(text)
    assert wanted is not None
    ambiguous = replace(made, effect="ambiguous", status="inconclusive", results=results)
    assert required(ambiguous, wanted.kind, wanted.margin).exit_code == code
    assert required(replace(ambiguous, effect="unproven"), wanted.kind, wanted.margin).exit_code == 3
    assert required(replace(ambiguous, status="rejected"), wanted.kind, wanted.margin).exit_code == 1


@pytest.mark.parametrize(
    "text", ["", "slower", "not-slower=", "not-slower=2x", "not-slower=0", "faster=2%", "not-slower=-2%"]
)
def test_what_is_no_requirement_is_refused(text: str) -> None:
    assert read_requirement(text) is None


def test_launches_alike_are_held_against_the_first_once_and_one_that_leaves_an_axis_open_is_not_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls, compared = [], Launch.difference

    def counting(*sides: Any) -> Difference:
        calls.append(sides)
        return compared(*sides)

    monkeypatch.setattr(Launch, "difference", counting)
    b = group("b", 5, numerics__learning_rate=7)
    assert judged(group("a", 5), b).comparable == "yes"
    assert len(calls) == 2
    verdict = judged(group("a", 5), [*b[:4], without(b[4], "numerics", "optimizer")])
    assert "optimizer" in {item.axis for item in verdict.difference.unknown}
    with pytest.raises(UsageError, match="mixes configurations"):
        judged([*group("a", 4), b[0]], b[1:])
