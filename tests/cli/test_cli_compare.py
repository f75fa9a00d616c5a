"""``receipts compare``."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import rule_cases
from command_line import HOSTILE, Shell
from receipts.store import open_store

CPU = Path(__file__).parents[2] / "examples" / "cpu"
LEAKS = {"\x1b", "\u202e", "\x07", "\x9b"}


@pytest.fixture
def pair(shell: Shell) -> Shell:
    """Two files, one axis apart."""
    shell.write("base")
    shell.write("cand", numerics__learning_rate=0.001)
    return shell


def test_two_files_need_no_store(pair: Shell) -> None:
    pair.unmade()
    said = pair("compare", "base.json", "cand.json")
    assert said.code == 3
    assert "comparable yes" in said.lines[-1]
    assert not (pair.folder / "store.sqlite").exists()


def test_every_form_ends_with_the_same_verdict(pair: Shell) -> None:
    verdict = pair("compare", "base.json", "cand.json").lines[-1]
    line = pair("compare", "base.json", "cand.json", "--format", "line")
    whole = " ".join(pair("compare", "base.json", "cand.json").out.partition("\nA  ")[0].split())
    assert " ".join(line.out.split()) == whole  # the first line of the page, without its breaks
    assert verdict in pair("compare", "base.json", "cand.json", "--format", "markdown").lines[-1]
    data = pair("compare", "base.json", "cand.json", "--json").json
    assert verdict.startswith(f"{data['status']}: comparable {data['comparable']} · path {data['path']}")
    assert data == pair("compare", "base.json", "cand.json", "--format", "json").json


def test_both_values_of_what_changed_are_shown(pair: Shell) -> None:
    (line,) = [line for line in pair("compare", "base.json", "cand.json").lines if line.endswith("counts")]
    assert line.split() == ["numerics.learning_rate", "0.0003", "0.001", "counts"]


def test_what_only_one_side_states_is_unknown(shell: Shell) -> None:
    tree = json.loads((shell.folder / shell.write("base")).read_text(encoding="utf-8"))
    tree["run"]["launch"], tree["run"]["context"] = "other", None
    tree["run"]["started"] = "2026-03-02T09:00:01+00:00"
    del tree["numerics"]["optimizer"]
    (shell.folder / "cand.json").write_text(json.dumps(tree), encoding="utf-8")
    said = shell("compare", "base.json", "cand.json")
    assert "stated on A only: numerics.optimizer" in " ".join(said.out.split())
    assert said.code == 3


def test_ids_prefixes_labels_patterns_and_files_mix(pair: Shell) -> None:
    base = pair.store("base")
    for word in (base, base[:12], "base", "label=ba*", "base.json"):
        assert pair("compare", word, "cand.json", "--json").json["a"] == [base], word


def test_an_ambiguous_prefix_names_the_candidates(shell: Shell) -> None:
    heads: dict[str, str] = {}
    number = 0
    while True:
        name = f"n{number}"
        shell.write(name)
        head = shell.made[name][:4]
        if head in heads:
            break
        heads[head], number = name, number + 1
        if number > 64 * 1024:
            pytest.fail("no two digests begin alike")
        (shell.folder / f"{name}.json").rename(shell.folder / f"kept-{name}.json")
    shell("submit", f"kept-{heads[head]}.json", f"{name}.json")
    said = shell("show", head)
    assert said.code == 2
    assert shell.made[name][:16] in said.err
    assert shell.made[heads[head]][:16] in said.err


@pytest.mark.parametrize(
    ("words", "near"),
    [
        (("--metric", "tokens_per_secnd"), "did you mean tokens_per_second"),
        (("--study", "weak-scalng"), "did you mean weak-scaling"),
    ],
)
def test_a_mistyped_metric_or_study_is_answered_with_those_near_it(
    pair: Shell, words: tuple[str, str], near: str
) -> None:
    said = pair("compare", "base.json", "cand.json", *words)
    assert said.code == 2
    assert near in said.err
    assert said.out == ""


def test_a_waiver_with_a_reason_takes_an_axis_out_and_is_shown(shell: Shell) -> None:
    flag = {"value": "offline", "before_runtime": True}
    paths = [shell.write("base"), shell.write("cand", numerics__learning_rate=0.001, flags__WANDB_MODE=flag)]
    counted = shell("compare", *paths)
    assert "C101" in counted.out
    said = shell("compare", *paths, "--waive", "flags.WANDB_MODE=logging moves no step time")
    assert "C101" not in said.out
    assert "waived: logging moves no step time" in said.out
    assert shell("compare", *paths, "-w", "flags.WANDB_MODE=why", "--json").json["waivers"]


@pytest.mark.parametrize(
    ("waiver", "says"),
    [
        ("run.host", 'write --waive run.host="the reason'),
        ("run.host= ", "the reason"),
        ("numerics.learning_rate=because", "does not allow to waive numerics.learning_rate"),
        ("flags.WANDB_MODE=because", "neither changed nor is unknown"),
    ],
)
def test_a_waiver_that_cannot_be_is_refused_with_a_sentence(pair: Shell, waiver: str, says: str) -> None:
    said = pair("compare", "base.json", "cand.json", "--waive", waiver)
    assert said.code == 2
    assert says in said.err


def test_sides_are_groups_of_launches(shell: Shell) -> None:
    for number in range(3):
        own = {"measurement__step_durations_seconds": _steps(number), "measurement__stated": None}
        shell.store(f"base-{number}", **own)
        shell.store(f"cand-{number}", numerics__learning_rate=0.001, **own)
    first = shell(
        "compare", "base-0", "cand-0", "--also-a", "base-1", "--also-b", "cand-1", "--no-replicates", "--json"
    )
    assert (len(first.json["a"]), len(first.json["b"])) == (2, 2)
    comma = shell("compare", "base-0,base-1", "cand-0", "--no-replicates", "--json")
    assert comma.json["a"] == first.json["a"]
    found = shell("compare", "label=base-*", "label=cand-*", "--no-replicates", "--json")
    assert (len(found.json["a"]), len(found.json["b"])) == (3, 3)


@pytest.mark.slow
def test_replicates_are_found_in_the_store_unless_refused(shell: Shell) -> None:
    own = {"run__label": "base", "measurement__stated": None}
    ids = [
        shell.store(f"base-{number}", measurement__step_durations_seconds=_steps(number), **own) for number in range(3)
    ]
    cand = shell.store("cand", numerics__learning_rate=0.001)
    assert len(shell("compare", ids[0], cand, "--json").json["a"]) == 3
    for flag in ("--only", "--no-replicates"):
        assert len(shell("compare", ids[0], cand, flag, "--json").json["a"]) == 1
    assert shell("compare", ids[0], cand, "--only", "--pool").code == 2


@pytest.mark.slow
def test_a_launch_that_fell_back_to_the_path_of_a_side_is_none_of_its_replicates(shell: Shell) -> None:
    base, cand = shell.store("base"), shell.store("cand", numerics__learning_rate=0.001)
    before = shell("compare", base, cand)
    fallen = {"path__intended__attention": "sdpa_math", "measurement__step_durations_seconds": _steps(1)}
    shell.store("other", **fallen)
    after = shell("compare", base, cand)
    assert (after.code, after.lines[-1]) == (before.code, before.lines[-1])


def test_a_side_of_two_configurations_is_refused(pair: Shell) -> None:
    said = pair("compare", "base.json", "cand.json", "--also-a", pair.write("odd", numerics__learning_rate=5))
    assert said.code == 2
    assert "numerics.learning_rate" in said.err


def test_record_keeps_the_verdict(pair: Shell) -> None:
    ids = [pair.store("base"), pair.store("cand", numerics__learning_rate=0.001)]
    assert pair("compare", *ids, "--record").code == 3
    with open_store(str(pair.folder / "store.sqlite")) as store:
        kept = store.verdicts(ids[0])
    assert [item.status for item in kept][-1] == "inconclusive"


def test_recording_what_is_not_stored_is_refused(pair: Shell) -> None:
    pair.store("base")
    said = pair("compare", "base.json", "cand.json", "--record")
    assert said.code == 2
    assert f"submit {pair.made['cand'][:12]} first" in said.err


def test_a_retracted_side_is_superseded(pair: Shell) -> None:
    pair.store("base")
    pair.store("cand", numerics__learning_rate=0.001)
    pair("retract", "base", "--reason", "the log is of another job")
    said = pair("compare", pair.made["base"], "cand")
    assert said.code == 1
    assert "C108 superseded" in said.out
    assert "the log is of another job" in said.out


def test_markdown_lets_nothing_of_a_label_become_markup(shell: Shell) -> None:
    paths = [shell.write("base", run__label="<img src=x>|`*"), shell.write("cand", numerics__learning_rate=0.001)]
    said = shell("compare", *paths, "--format", "markdown")
    assert r"\<img src=x\>\|\`\*" in said.out


def test_markdown_names_hosts_and_what_is_unknown(shell: Shell) -> None:
    other = shell.write("cand", run__host="elsewhere", numerics__learning_rate=None)
    said = shell("compare", shell.write("base"), other, "--format", "markdown")
    assert re.search(r"^\| `run\.host` \|.*\| elsewhere \| block: never counted \|$", said.out, re.MULTILINE)
    assert "\n\n- **stated on A only**: numerics.learning_rate\n" in said.out


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_what_is_unknown_is_never_called_a_repeat(shell: Shell, form: str) -> None:
    base = shell.write("base")
    unknown = shell("compare", base, shell.write("cand", numerics__learning_rate=None), "--format", form)
    assert "repeats of one configuration" not in unknown.out
    assert "what one of them does not state may have changed" in unknown.out
    same = shell("compare", base, shell.write("twin", run__launch="another"), "--format", form)
    assert "the two are repeats of one configuration" in same.out


def test_a_compile_that_takes_longer_pays_nothing_back_while_no_effect_is_shown(shell: Shell) -> None:
    paths = [shell.write("base", compile__compile_seconds=1.0), shell.write("cand", compile__compile_seconds=9.0)]
    said = shell("compare", *paths).out
    assert "B compiles 8.0 s longer; whether a step is faster is unproven" in said
    assert "* as the receipt states it" in said


@pytest.mark.parametrize("form", ["text", "line", "markdown", "json"])
def test_hostile_text_never_reaches_the_terminal_raw(shell: Shell, form: str) -> None:
    flags = {"complete": True, "X" + HOSTILE: "1"}
    paths = [
        shell.write("base", run__label=HOSTILE),
        shell.write("cand", run__label=HOSTILE, flags=flags, hardware__accelerator=HOSTILE),
    ]
    said = shell("compare", *paths, "--format", form)
    assert said.code in (1, 3)
    assert not LEAKS & set(said.out)


def test_hostile_text_in_an_error_is_escaped_as_well(pair: Shell) -> None:
    said = pair(
        "compare",
        "base.json",
        pair.write("evil", run__label=HOSTILE, numerics__learning_rate=3),
        "--also-b",
        "cand.json",
    )
    assert said.code == 2
    assert not LEAKS & set(said.err)
    assert "evil\\x1b" in said.err


def test_one_comparison_with_itself_is_refused(pair: Shell) -> None:
    said = pair("compare", "base.json", "base.json")
    assert said.code == 2
    assert "more than once" in said.err


def _steps(seed: int) -> list[float]:
    return rule_cases.durations({"seed": 100 + seed})


def test_it_says_where_each_side_lies_in_what_the_lane_sustained(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.store(name)
    larger = shell.store("larger", batch__sequence_length=512)
    said = shell("compare", shell.made["a"], larger, "--no-replicates", "-v")
    assert "Envelope of the lane" in said.out
    assert "A: at a repeated ceiling, 256 tokens" in said.out
    assert "B: beyond: the nearest repeated shape is 256 tokens" in said.out
    told = shell("compare", shell.made["a"], larger, "--json").json["envelope"]
    assert told["a"].startswith("at a repeated ceiling")
    assert "Envelope of the lane" in shell("compare", shell.made["a"], larger, "--format", "markdown").out


def test_two_files_without_a_store_have_no_envelope(shell: Shell) -> None:
    assert "Envelope" not in shell("compare", shell.write("a"), shell.write("b")).out


def test_why_an_axis_does_not_count_stands_below_the_table(shell: Shell) -> None:
    wide = {"batch__global_batch": 32, "batch__accumulation": 4}
    said = shell("compare", shell.write("base"), shell.write("cand", **wide), "--metric", "outcome")
    rows = said.out.split("Changed")[1].split("Effect of B")[0]
    assert "outcome does not depend on it\n" in rows
    assert "  outcome does not depend on it: a chip holds one micro batch at a time" in rows


def test_launches_of_either_configuration_that_were_not_given_are_counted(shell: Shell) -> None:
    shell.unmade()
    names = [f"{side}{number}" for side in ("slow", "fast") for number in range(4)]
    for number, name in enumerate(names):
        steps = [0.1 + (number + step) / 1000 for step in range(20)]
        rate = 0.001 if name.startswith("fast") else 0.0003
        own = {"measurement__step_durations_seconds": steps, "measurement__stated": None}
        shell.write(name, numerics__learning_rate=rate, **own)
    words = ["compare", "slow0.json", "fast0.json", "fast1.json", "--also-a", "slow1.json"]
    assert "not asked for" not in shell(*words).lines[-1]
    assert not (shell.folder / "store.sqlite").exists()
    assert shell("submit", *(f"{name}.json" for name in names)).code == 0
    chosen = shell(*words)
    assert "not asked for: A 2 of other labels; B 2 of other labels" in " ".join(chosen.out.split())
    assert [item["count"] for item in shell(*words, "--json").json["left_out"]] == [2, 2]
    # The worst against the best of one configuration, where neither side is given its replicates.
    twins = shell("compare", "slow0,slow1", "slow2")
    assert "not asked for: A 1 of other labels" in " ".join(twins.out.split())


def test_a_label_with_a_comma_needs_no_prefix_and_conditions_name_a_side(shell: Shell) -> None:
    shell.store("base, first", numerics__learning_rate=0.002)
    shell.store("cand", numerics__learning_rate=0.001)
    one = shell("compare", "base, first", "cand", "--json").json
    assert one == shell("compare", "label=base, first", "cand", "--json").json
    two = shell("compare", "base, first", "label=cand numerics.learning_rate=0.001", "--json").json
    assert (two["a"], two["b"]) == (one["a"], one["b"])
    assert "no receipt meets" in shell("compare", "base, first", "label=cand numerics.learning_rate=7").err
    ids = shell.made["base, first"][:12], shell.made["cand"][:12]
    assert "mixes configurations" in shell("compare", ",".join(ids), "cand").err


def test_groups_of_files_are_named_in_quotes(shell: Shell) -> None:
    for kind, side in (("math", "a"), ("flash", "b")):
        for number in (1, 2):
            shutil.copyfile(CPU / f"attention-{kind}-{number}.json", shell.folder / f"{side}-{number}.json")
    data = shell("compare", "a-*.json", "b-1.json,b-2.json", "--json").json
    assert (len(data["a"]), len(data["b"])) == (2, 2)
    mixed = shell("compare", "a-1.json", "a-2.json", "b-1.json", "b-2.json")
    assert mixed.code == 2
    assert "'a-*.json' 'b-*.json' in quotes" in mixed.err
