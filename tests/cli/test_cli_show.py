"""``receipts show``."""

from __future__ import annotations

import random
from typing import Any

import pytest

import rule_cases
from command_line import HOSTILE, Shell


def test_it_is_headed_by_the_five_answers(shell: Shell) -> None:
    said = shell("show", shell.write("one"))
    assert said.code == 0
    answers = shell("show", "one.json", "--json").json["answers"]
    assert len(answers) == 5
    places = [said.out.index(question) for question in answers]
    assert places == sorted(places)
    assert places[-1] < said.out.index("Measured")


def test_the_envelope_of_a_file_is_that_of_the_store_or_unknown_without_one(shell: Shell) -> None:
    for day in (1, 2):
        shell.store(f"small-{day}", run__launch=f"small-{day}", run__started=f"2026-03-0{day}T09:00:00+00:00")
    shell.write("one")
    envelope = shell("show", "one.json", "--json").json["answers"]["at target, inside the envelope?"]
    assert "at a repeated ceiling" in envelope
    shell.unmade()
    assert "unknown: no store was asked" in shell("show", "one.json").out


def test_the_regime_is_named_beside_the_numbers_and_how_they_were_measured(shell: Shell) -> None:
    lines = shell("show", shell.write("one", compile__cache_state="warm", measurement__timer="perf_counter")).lines
    assert "  regime: enough work; tokens a step a chip: 4,096" in lines
    (how,) = [line for line in lines if line.startswith("  how measured: ")]
    assert how.startswith("  how measured: cache warm, ")
    assert "timer perf_counter" in how
    unknown = " ".join(shell("show", shell.write("two", memory=None)).out.split())
    assert "regime: not known for lack of memory by chip with its limit; tokens a step a chip: 4,096" in unknown


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (0.0, "nearly independent"),
        (0.4, "means of 8 steps each are nearly independent"),  # of AR(1) 0.4 the means of 4 have 0.15, of 8 0.07
        (0.98, "no 10 batches of them have independent means"),
    ],
)
def test_the_memory_of_the_steps_is_told(shell: Shell, memory: float, said: str) -> None:
    chance, steps, now = random.Random(7), [], 0.0
    for _ in range(600):
        now = memory * now + chance.gauss(0, 0.001)
        steps.append(round(0.8 + now, 6))
    shell.write("one", measurement__step_durations_seconds=steps, measurement__step_flags=None)
    (line,) = [line for line in shell("show", "one.json").out.splitlines() if "autocorrelation" in line]
    number, told = line.strip().removeprefix("autocorrelation of neighboring steps: ").split("; ")
    assert float(number) == pytest.approx(memory, abs=0.1)
    assert told == said


def test_json_carries_id_verdict_and_stated_leaves(shell: Shell) -> None:
    data = shell("show", shell.store("one"), "--json").json
    assert data["id"] == shell.made["one"]
    assert data["verdict"]["status"] == "valid"
    assert data["stated"]["batch.micro_batch"] == 8


def test_raw_gives_back_the_bytes_as_they_came(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("show", receipt, "--raw").out == (shell.folder / "one.json").read_text(encoding="utf-8")


def test_facts_lists_every_stated_leaf(shell: Shell) -> None:
    said = shell("show", shell.write("one"), "--facts")
    assert "numerics.learning_rate" in said.out


def test_a_failure_is_told_with_its_class_and_bytes(shell: Shell) -> None:
    failure = {"class": "runtime_alloc", "phase": "steady", "requested_bytes": 2**31}
    said = shell("show", shell.write("oom", run__outcome="oom", failure=failure))
    assert "Failure" in said.out
    assert "2.00 GiB" in said.out


def test_a_replaced_receipt_says_by_what_and_why(shell: Shell) -> None:
    first = shell.store("one")
    shell.store("two", run__launch="launch-one", run__supersedes={"target": first, "reason": "wrong label"})
    assert f"no longer stands: see {shell.made['two'][:12]}, wrong label" in shell("show", first).out


def test_hostile_text_is_shown_escaped(shell: Shell) -> None:
    shell.write(
        "evil", run__label=HOSTILE, flags={"complete": True, "X" + HOSTILE: HOSTILE}, run__started_stated=HOSTILE
    )
    for words in (("show", "evil.json", "--facts"), ("show", "evil.json", "--json")):
        said = shell(*words)
        assert said.code == 0
        assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(said.out), words
    assert "\\x1b[31m" in shell("show", "evil.json").out


def test_a_failure_is_attributed_to_the_blocks_whose_operator_it_names(shell: Shell) -> None:
    failure = {"phase": "steady", "class": "host", "operator": "model/attention.py:40 scores"}
    said = shell("show", shell.write("gone", run__outcome="oom", failure=failure))
    assert "pressure: A (attention blocks)" in said.out
    bare = {"phase": "steady", "class": "host", "operator": "train.py:40 step"}
    assert "pressure" not in shell("show", shell.write("other", run__outcome="oom", failure=bare)).out


def test_it_says_what_a_rank_owns_and_how_the_experts_were_loaded(shell: Shell) -> None:
    layout = {"parallelism__tensor": 8, "parallelism__sequence": True, "parallelism__expert_tensor": 2}
    heads = {"model__heads": 56, "model__kv_heads": 8, "model__ssm_heads": 8, "model__experts": 16}
    routing = {"load_ratio": 1.834, "dropped_share": 0.0029}
    shown = shell("show", shell.write("one", "megatron", **layout, **heads, measurement__routing=routing))
    text = " ".join(shown.out.split())
    assert "a rank owns 7 attention heads of 56, 1 kv head of 8, 1 SSM head of 8" in text
    assert "routing: the fullest expert has 1.83× the mean load, 0.29% of the tokens dropped" in text
    assert "TP8 SP " in text
    assert " ETP2" in text


@pytest.mark.parametrize(
    ("leaves", "share"),
    [
        (
            {"parallelism__pipeline": 4, "batch__accumulation": 16, "parallelism__schedule": "1F1B"},
            "15.8% of a step, by 4 stages and 16 micro batches",
        ),
        (
            {
                "parallelism__pipeline": 4,
                "parallelism__virtual_pipeline": 2,
                "batch__accumulation": 16,
                "parallelism__schedule": "interleaved 1F1B",
            },
            "8.6% of a step",
        ),
        ({"parallelism__pipeline": 4, "batch__accumulation": 16, "parallelism__schedule": "zero_bubble"}, ""),
        ({"parallelism__pipeline": 1, "batch__accumulation": 16, "parallelism__schedule": "1F1B"}, ""),
    ],
)
def test_it_says_which_share_of_a_step_pipeline_stages_wait(shell: Shell, leaves: dict[str, Any], share: str) -> None:
    text = " ".join(shell("show", shell.write("one", "megatron", **leaves)).out.split())
    assert (f"pipeline bubble: {share}" in text) if share else ("pipeline bubble" not in text)


def test_it_says_which_lineage_ran_and_what_differs_from_the_nearest(shell: Shell) -> None:
    shown = " ".join(shell("show", shell.write("one", "tpu")).out.split())
    assert "lineage documented: torch 2.9 source build, libtpu 0.0.36" in shown
    drifted = " ".join(shell("show", shell.write("two", "tpu", wheels__torch="2.8.0")).out.split())
    assert "lineage neither documented nor validated; nearest torch 2.9 source build" in drifted
    assert "torch 2.8.0 (there 2.9" in drifted


def test_a_substrate_of_the_lane_is_named_as_no_target(shell: Shell) -> None:
    shape = {"hardware__chips": 4, "batch__sequence_length": 4096, "batch__global_batch": 32, "model__depth": 16}
    shown = " ".join(shell("show", shell.write("one", "tpu", **shape)).out.split())
    assert "at the ablation substrate v6e-4 ablation substrate, which is no target" in shown


@pytest.mark.parametrize(("slower", "agrees"), [(1.0, True), (1.2, False)])
def test_launches_of_another_host_that_agree_reproduce_a_result(shell: Shell, slower: float, agrees: bool) -> None:
    steps = rule_cases.base("cpu")["measurement"]["step_durations_seconds"]
    for first, host, factor in ((0, "ours", 1.0), (1, "theirs", slower)):
        for number in range(4):
            own = [step * factor * (1 + (first + 2 * number) / 1e4) for step in steps]
            leaves = {"run__host": host, "measurement__step_durations_seconds": own, "measurement__stated": None}
            assert shell("submit", shell.write(f"{host}{number}", **leaves)).code == 0
    said = " ".join(shell("show", "ours0").out.split())
    assert ("reproduced on theirs (4 launches)" in said) == agrees
    found = shell("show", "ours0", "--json").json["reproduced"]
    assert found == ({"launches": 4, "hosts": ["theirs"], "actors": []} if agrees else None)
    compared = shell("compare", "ours0", "theirs0")
    assert "reproduced" not in compared.out  # one configuration, whose hosts stand on two sides
    assert shell("submit", shell.write("other", numerics__learning_rate=0.001)).code == 0
    assert ("A reproduced on theirs (4 launches)" in shell("compare", "ours0", "other").out) == agrees
