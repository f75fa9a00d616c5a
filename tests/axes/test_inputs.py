"""Inputs: an option that differs counts once, and equal inputs of one program hold what nobody stated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

import rule_cases
from receipts.axes import Difference, difference
from receipts.axes.catalogue import BUILT_IN_BOOKKEEPING, Bookkeeping, checked_bookkeeping
from receipts.axes.configuration import configuration
from receipts.base.errors import RuleError
from receipts.receipt import Parsed
from store_receipts import RULEBOOK

ONE, OTHER = "a" * 64, "b" * 64
# Leaves that a launch of a script leaves unstated, and that its options decide.
UNSTATED = ("run.context", "numerics.learning_rate", "model.heads", "batch.micro_batch")


def launch(
    options: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
    drop: tuple[str, ...] = UNSTATED,
    *,
    typed: Mapping[str, str] | None = None,
    **section: Any,
) -> Parsed:
    """A launch of ``t.py`` with these options, in no context; ``typed`` are leaves that the job stated itself."""
    tree = rule_cases.base("cpu")
    for path in drop:
        rule_cases.take(tree, path)
    if options is not None:
        tree["inputs"] = {"program": "t.py", "capture": "whole", "options": dict(options), **section}
    sources = {"path.witnessed.attention": "torch", "model.heads": "torch", "batch.micro_batch": "torch"}
    tree["run"]["recorded"] = {"by": "recorder", "digest": "0" * 64, "sources": sources}
    for path, value in {**(changes or {}), **(typed or {})}.items():
        rule_cases.put(tree, path, value)
    for path in typed or {}:
        sources.pop(path, None)
    return rule_cases.parsed(tree)


def apart(a: Mapping[str, str], b: Mapping[str, str], **section: Any) -> Difference:
    """The difference of two launches with these options."""
    return difference(launch(a, **section), launch(b, **section))


def unknown(found: Difference) -> set[str]:
    """Axes that nobody can call equal."""
    return {item.axis for item in found.unknown}


def test_an_option_that_differs_is_an_axis_by_its_name() -> None:
    found = apart({"heads": "8", "lr": "1e-2"}, {"heads": "2", "lr": "0.01"})
    assert [(item.axis, item.members[0].a, item.members[0].b) for item in found.changed] == [("inputs.heads", "8", "2")]


def test_the_order_and_the_spelling_of_options_are_no_change() -> None:
    assert apart({"lr": "1e-2", "fast": "True"}, {"fast": "yes", "lr": ".01"}).axes == ()


def test_equal_inputs_hold_what_neither_side_states() -> None:
    found = apart({"heads": "8"}, {"heads": "8"})
    assert {"numerics.learning_rate", "model.heads", "batch.micro_batch"} <= set(found.held_by_inputs)
    assert not unknown(found)


def test_one_changed_input_makes_what_neither_side_states() -> None:
    found = apart({"heads": "8"}, {"heads": "2"})
    assert found.axes == ("inputs.heads",)
    assert not unknown(found)


def test_what_other_code_patches_is_the_change_of_the_code() -> None:
    gone = (*UNSTATED, "patches")
    found = difference(launch({}, drop=gone), launch({}, {"code.imported_digest": OTHER}, gone))
    assert (found.axes, unknown(found)) == (("code",), set())


def test_inputs_hold_nothing_of_what_a_launch_runs_on_but_on_one_machine() -> None:
    gone = (*UNSTATED, "platform.os")
    same = difference(launch({}, drop=gone), launch({}, drop=gone))
    elsewhere = difference(launch({}, drop=gone), launch({}, {"run.host": "other"}, gone))
    assert (unknown(same), unknown(elsewhere)) == (set(), {"platform"})


@pytest.mark.parametrize("capture", [None, "no main program: a notebook", "a fork of a process with these words"])
def test_inputs_that_were_not_captured_whole_hold_nothing_and_count_all_the_same(capture: str | None) -> None:
    found = difference(launch({"heads": "8"}, capture=capture), launch({"heads": "2"}, capture=capture))
    assert found.axes == ("inputs.heads",)
    assert "numerics.learning_rate" in unknown(found)


def test_a_variable_that_only_one_launch_set_counts() -> None:
    assert difference(launch({}), launch({}, environment={"SCALE": "2"})).axes == ("inputs.env.SCALE",)


def test_another_program_is_compared_by_its_leaves() -> None:
    codes = ({"code.imported_digest": ONE}, {"code.imported_digest": OTHER})
    found = difference(launch({"heads": "8"}, codes[0]), launch({"heads": "2"}, codes[1], program="u.py"))
    assert found.axes == ("code",)
    assert "numerics.learning_rate" in unknown(found)


def test_another_name_of_the_same_code_hides_no_option() -> None:
    code = {"code.imported_digest": ONE}
    assert difference(launch({"heads": "8"}, code), launch({"heads": "2"}, code, program="u.py")).axes == (
        "inputs.heads",
    )


def test_a_context_holds_what_it_held_and_no_option_that_differs() -> None:
    named = {"run.context": "preset"}
    a, b = (launch({"heads": heads}, named, capture="no main program") for heads in ("8", "2"))
    found = difference(a, b)
    assert found.axes == ("inputs.heads",)
    assert "numerics.learning_rate" in found.held


# defaults


def test_an_absent_option_is_its_declared_default() -> None:
    assert apart({}, {"drop": "1e-1"}, defaults={"drop": "0.1"}).axes == ()
    assert apart({}, {"drop": "0.2"}, defaults={"drop": "0.1"}).axes == ("inputs.drop",)


def test_an_absent_option_without_a_default_counts() -> None:
    (change,) = apart({}, {"drop": "0.1"}).changed
    assert (change.members[0].a, change.members[0].b) == (None, "0.1")


def test_of_an_option_that_is_given_twice_the_last_counts_where_the_source_declares_one_value() -> None:
    twice, once = {"lr": "1 then 3e-4"}, {"lr": "0.0003"}
    assert apart(twice, once, defaults={"lr": "0.1"}).axes == ()
    assert apart(twice, once).axes == ("inputs.lr",)
    assert apart({"set": "a then b"}, {"set": "c then b"}).axes == ("inputs.set",)


def test_what_the_program_resolved_stands_for_an_option_that_was_not_given() -> None:
    assert difference(launch({"lr": "1e-3"}), launch({}, resolved={"lr": 0.001})).axes == ()


def test_what_resolved_otherwise_although_no_option_changed_counts() -> None:
    a, b = (launch({}, resolved={"heads": heads}) for heads in (8, 2))
    assert difference(a, b).axes == ("inputs.heads",)


# one input for one leaf


def test_an_option_and_the_leaf_that_a_vocabulary_names_are_one_change() -> None:
    a = launch({"lr": "0.1"}, {"numerics.learning_rate": 0.1})
    b = launch({"lr": "0.2"}, {"numerics.learning_rate": 0.2})
    assert difference(a, b).axes == ("numerics.learning_rate",)


@pytest.mark.parametrize(
    ("a", "b"),
    [({"attn": "math"}, {"attn": "flash"}), ({}, {"flash": "true"}), ({"backend": "sdpa_math"}, {"backend": "flash"})],
)
def test_an_option_and_a_leaf_of_the_same_values_are_one_change(a: dict[str, str], b: dict[str, str]) -> None:
    seen = "path.witnessed.attention"
    found = difference(launch(a, {seen: "sdpa_math"}), launch(b, {seen: "sdpa_flash"}))
    assert found.axes == ("path.attention",)


def test_two_options_share_no_leaf() -> None:
    a = launch({"layers": "2", "threads": "1"}, {"features.threads": "1"})
    b = launch({"layers": "1", "threads": "2"}, {"features.threads": "2"})
    assert set(difference(a, b).axes) == {"features.threads", "inputs.layers"}


def test_a_leaf_that_a_probe_saw_follows_from_the_one_input_that_changed() -> None:
    a, b = launch({"preset": "s"}, {"model.heads": 4}), launch({"preset": "m"}, {"model.heads": 8})
    assert difference(a, b).axes == ("dimensions",)


def test_a_leaf_that_was_typed_follows_from_no_input() -> None:
    a, b = launch({"preset": "s"}, typed={"model.heads": 4}), launch({"preset": "m"}, typed={"model.heads": 8})
    assert set(difference(a, b).axes) == {"dimensions", "inputs.preset"}


def test_a_leaf_whose_own_option_is_equal_follows_from_no_other() -> None:
    a = launch({"preset": "s", "heads": "8"}, {"model.heads": 8})
    b = launch({"preset": "m", "heads": "8"}, {"model.heads": 2})
    assert set(difference(a, b).axes) == {"dimensions", "inputs.preset"}


def test_a_leaf_that_a_probe_saw_follows_from_no_two_inputs() -> None:
    a, b = launch({"x": "1", "y": "1"}, {"model.heads": 4}), launch({"x": "2", "y": "2"}, {"model.heads": 8})
    assert set(difference(a, b).axes) == {"dimensions", "inputs.x", "inputs.y"}


@pytest.mark.parametrize(
    ("path", "values", "axis"),
    [
        ("code.imported_digest", (ONE, OTHER), "code"),
        ("wheels.torch", ("2.12.0", "2.13.0"), "wheels"),
        ("flags.OMP_NUM_THREADS", ("1", "2"), "flags.OMP_NUM_THREADS"),
        ("hardware.chips", (1, 2), "topology"),
        ("platform.python", ("3.11.1", "3.12.1"), "platform"),
    ],
)
def test_what_a_launch_runs_on_follows_from_no_input(path: str, values: tuple[Any, Any], axis: str) -> None:
    a, b = (launch({"preset": name}, {path: value}) for name, value in zip("sm", values, strict=True))
    assert set(difference(a, b).axes) == {axis, "inputs.preset"}


def test_a_leaf_stated_alike_hides_no_option_that_states_it() -> None:
    same = {"numerics.learning_rate": 0.1}
    assert difference(launch({"lr": "0.1"}, same), launch({"lr": "0.3"}, same)).axes == ("inputs.lr",)


def test_a_leaf_that_changed_without_an_input_is_named() -> None:
    found = difference(launch({}, {"model.heads": 4}), launch({}, {"model.heads": 8}))
    assert found.without_input == ("dimensions",)
    moved = difference(launch({}, {"model.heads": 4}), launch({}, {"model.heads": 8, "wheels.torch": "1"}))
    assert moved.without_input == ()


def test_a_fallback_is_no_leaf_that_changed_without_an_input() -> None:
    seen = "path.witnessed.attention"
    assert difference(launch({}, {seen: "sdpa_math"}), launch({}, {seen: "sdpa_flash"})).without_input == ()


def test_a_leaf_of_one_side_is_held_where_one_change_at_most_can_have_moved_it() -> None:
    stated = {"features.eval_every": "5"}
    gone = {"features.complete": False}
    one = difference(launch({"x": "1"}, {**stated, **gone}), launch({"x": "2"}, gone))
    two = difference(launch({"x": "1", "y": "1"}, {**stated, **gone}), launch({"x": "2", "y": "2"}, gone))
    assert "features.eval_every" in one.held_by_inputs
    assert "features.eval_every" in unknown(two)


# bookkeeping


def test_bookkeeping_is_left_out_and_listed() -> None:
    found = apart(
        {"seed": "1", "out": "/x/a.json", "evidence": "a-1.json", "run_name": "a"},
        {"seed": "2", "out": "/y/b.json", "evidence": "a-2.json", "run_name": "b"},
    )
    assert found.axes == ()
    assert {(item.key, item.role) for item in found.left_out} == {
        ("out", "output"),
        ("evidence", "output"),
        ("run_name", "naming"),
        ("seed", "replicate"),
    }


@pytest.mark.parametrize(
    "key", ["optim.name", "rank", "experiment", "o", "a", "name", "diffusion.steps", "runname", "my_seed", "group"]
)
def test_a_name_that_only_resembles_bookkeeping_counts(key: str) -> None:
    assert apart({key: "one"}, {key: "two"}).axes == (f"inputs.{key}",)


@pytest.mark.parametrize(
    "key", ["wandb.name", "trainer.logger.x", "run.id", "hydra.run.dir", "model.seed", "a.log_dir"]
)
def test_a_name_below_a_section_that_keeps_books_is_left_out(key: str) -> None:
    assert apart({key: "one"}, {key: "two"}).axes == ()


@pytest.mark.parametrize("key", ["seed", "out", "run_name", "verbose"])
def test_a_word_behind_bookkeeping_may_be_the_program_s_and_counts(key: str) -> None:
    assert apart({key: "3"}, {key: "[3, big]"}).axes == (f"inputs.{key}",)
    assert apart({key: "[./a, small]"}, {key: "[./b, big]"}).axes == (f"inputs.{key}",)
    assert apart({key: "[./a, big]"}, {key: "[./b, big]"}).axes == ()


def test_tags_are_bookkeeping_however_many() -> None:
    assert apart({"wandb_tags": "a"}, {"wandb_tags": "[a, b]"}).axes == ()


@pytest.mark.parametrize("absent", ["none", "", "false"])
def test_a_place_that_one_launch_names_by_default_alone_is_bookkeeping(absent: str) -> None:
    assert apart({}, {"save": "/x/ck"}, defaults={"save": absent}).axes == ()


def test_a_length_counts_for_no_step_and_where_the_schedule_follows_it() -> None:
    plain = apart({"steps": "20"}, {"steps": "40"})
    assert (plain.axes, plain.length) == (("inputs.steps",), ("inputs.steps",))
    follows = apart({"steps": "20", "warmup": "5"}, {"steps": "40", "warmup": "5"})
    assert (follows.axes, follows.length) == (("inputs.steps",), ())
    fixed = {"warmup": "5", "lr_decay_steps": "100"}
    assert apart({"steps": "20", **fixed}, {"steps": "40", **fixed}).length == ("inputs.steps",)


def test_a_lane_adds_names_and_no_setting() -> None:
    books = Bookkeeping(checked_bookkeeping({"output": ["artifact_root"]}, "lane x"))
    a, b = launch({"artifact_root": "/a"}), launch({"artifact_root": "/b"})
    assert difference(a, b, books=books).axes == ()
    assert difference(a, b, books=BUILT_IN_BOOKKEEPING).axes == ("inputs.artifact_root",)
    for table in ({"output": ["lr"]}, {"naming": ["training.local_batch_size"]}, {"place": ["x"]}, {"output": "x"}):
        with pytest.raises(RuleError, match="lane x"):
            checked_bookkeeping(table, "lane x")


def test_a_secret_is_not_compared() -> None:
    assert apart({"hub_token": "[redacted]"}, {}).axes == ()
    assert apart({"hub_token": "[redacted]"}, {"hub_token": "[redacted:a1b2:c3d4]"}).axes == ()


def test_a_word_that_was_blanked_by_its_name_compares_by_the_digest_of_one_store() -> None:
    one, other = {"router_key": "[redacted:a1b2:c3d4]"}, {"router_key": "[redacted:a1b2:c3d5]"}
    assert apart(one, other).axes == ("inputs.router_key",)
    assert apart(one, dict(one)).axes == ()
    assert apart(one, {"router_key": "[redacted:a1b3:c3d5]"}).axes == ()  # of two stores


# files, variables, launchers


def file(sha: str, flat: Mapping[str, Any] | None, **more: Any) -> dict[str, Any]:
    """A configuration file that ``--config`` names."""
    settings = {} if flat is None else {"flat": dict(flat)}
    return {"option": "config", "name": "c.yaml", "kind": "config", "sha256": sha, **settings, **more}


def test_a_file_counts_by_its_settings_and_not_by_its_name_or_bytes() -> None:
    a = launch({"config": "x.yaml"}, files=[file(ONE, {"lr": 0.1, "heads": 8})])
    same = launch({"config": "y.yaml"}, files=[file(OTHER, {"heads": 8, "lr": "1e-1"})])
    other = launch({"config": "x.yaml"}, files=[file(OTHER, {"lr": 0.1, "heads": 2})])
    assert difference(a, same).axes == ()
    assert difference(a, other).axes == ("inputs.heads",)


def test_an_option_overrides_the_file() -> None:
    a = launch({"config": "x.yaml", "lr": "3e-4"}, files=[file(ONE, {"lr": 0.1})])
    b = launch({"config": "y.yaml"}, files=[file(OTHER, {"lr": 0.0003})])
    assert difference(a, b).axes == ()


def test_a_file_that_nobody_could_read_is_one_change_or_several() -> None:
    a, b = (launch({"config": "c.cfg"}, files=[file(sha, None)]) for sha in (ONE, OTHER))
    found = difference(a, b)
    assert found.axes == ()
    assert [(item.axis, item.opaque) for item in found.unknown] == [("inputs.config", True)]


def test_a_place_that_both_runs_made_is_no_change() -> None:
    def dumped(place: str, kind: str) -> Parsed:
        return launch({"dump": place}, files=[{"option": "dump", "name": place, "kind": kind}])

    assert difference(dumped("/x/1", "output"), dumped("/y/2", "output")).axes == ()
    assert difference(dumped("/x/1", "output"), dumped("/y/2", "folder")).axes == ("inputs.dump",)
    assert difference(dumped("/x/1", "output"), launch({})).axes == ("inputs.dump",)


def test_a_variable_that_names_a_file_counts_by_its_settings() -> None:
    def named(place: str, heads: int) -> Parsed:
        row = {"option": "environment.CONFIG", "name": place, "kind": "config", "sha256": ONE, "flat": {"heads": heads}}
        return launch({}, environment={"CONFIG": place}, files=[row])

    assert difference(named("x.yaml", 8), named("y.yaml", 8)).axes == ()
    assert difference(named("x.yaml", 8), named("x.yaml", 2)).axes == ("inputs.heads",)


def test_variables_that_are_read_by_computed_names_hold_on_one_host_alone() -> None:
    capture = "whole; environment: read by computed names in t.py"
    here, there = launch({}, capture=capture), launch({}, {"run.host": "other"}, capture=capture)
    assert difference(here, launch({}, capture=capture)).unread == "environment: read by computed names in t.py"
    assert "numerics.learning_rate" in unknown(difference(here, there))


def test_data_is_compared_by_its_bytes_and_not_by_its_place() -> None:
    def data(place: str, sha: str) -> Parsed:
        named = {"option": "data", "name": place, "kind": "data", "sha256": sha}
        return launch({"data": place}, files=[named])

    assert difference(data("/mnt/a/x.bin", ONE), data("/scratch/x.bin", ONE)).axes == ()
    assert difference(data("/mnt/a/x.bin", ONE), data("/mnt/a/x.bin", OTHER)).axes == ("inputs.data",)


def test_a_variable_that_the_program_reads_counts() -> None:
    a, b = launch({}, environment={}), launch({}, environment={"NLAYERS": "1", "LOCAL_RANK": "0", "TORCH_LOGS": "+all"})
    assert difference(a, b).axes == ("inputs.env.NLAYERS",)


def test_a_variable_that_is_not_set_is_its_declared_default() -> None:
    section: dict[str, Any] = {"defaults": {"env.DEPTH": "2"}}
    absent, given, other = (
        launch({}, environment=variables, **section) for variables in ({}, {"DEPTH": "2"}, {"DEPTH": "3"})
    )
    assert difference(absent, given).axes == ()
    changed = difference(absent, other).changed
    assert [(item.axis, item.members[0].a, item.members[0].b) for item in changed] == [("inputs.env.DEPTH", "2", "3")]
    lane = RULEBOOK.lanes.of("cpu-torch")
    digests = [configuration(item, lane).whole for item in (absent, given, other)]
    assert digests[0] == digests[1] != digests[2]


def test_a_variable_that_is_a_flag_counts_once() -> None:
    a, b = (
        launch({}, {"flags.OMP_NUM_THREADS": value}, environment={"OMP_NUM_THREADS": value}) for value in ("1", "2")
    )
    assert difference(a, b).axes == ("flags.OMP_NUM_THREADS",)


def test_what_a_wrapper_hands_on_counts_once() -> None:
    def started(lr: str, **own: str) -> Parsed:
        words = {f"w.py.{key.replace('word', '#')}": text for key, text in own.items()}
        return launch({"lr": lr, "bs": "8"}, launcher=words)

    one, other = started("1e-3", word0="0.001"), started("1e-2", word0="0.01")
    assert difference(one, other).axes == ("inputs.lr",)
    lane = RULEBOOK.lanes.of("cpu-torch")
    parts = set(configuration(other, lane).parts)
    assert "inputs.lr" in parts
    assert not any(axis.startswith("inputs.launcher") for axis in parts)
    kept = difference(started("1e-3", heads="8"), started("1e-2", heads="4")).axes
    assert kept == ("inputs.lr", "inputs.launcher.w.py.heads")
    # A name of its own is no other option's, whatever its values.
    named = difference(started("8", heads="8"), started("4", heads="4")).axes
    assert named == ("inputs.lr", "inputs.launcher.w.py.heads")


def test_of_a_launcher_its_settings_count_and_its_processes_where_no_leaf_has_them() -> None:
    def under(**launcher: str) -> Parsed:
        return launch({}, launcher={f"accelerate.{key}": value for key, value in launcher.items()})

    assert difference(under(mixed_precision="bf16"), under(mixed_precision="no")).axes == (
        "inputs.launcher.accelerate.mixed_precision",
    )
    assert difference(under(num_processes="8"), under(num_processes="4")).axes == ()
    gone = (*UNSTATED, "hardware.chips")
    a, b = (launch({}, drop=gone, launcher={"torchrun.nproc_per_node": count}) for count in "84")
    assert difference(a, b).axes == ("inputs.launcher.torchrun.nproc_per_node",)


# receipts without inputs


def test_an_option_of_a_command_counts_and_nothing_is_held_by_it() -> None:
    a, b = (launch(changes={"run.command": f"python t.py --heads {heads}"}) for heads in (8, 2))
    found = difference(a, b)
    assert found.axes == ("inputs.heads",)
    assert "numerics.learning_rate" in unknown(found)
    assert found.without_input == ()


def test_nothing_follows_from_the_option_of_a_command() -> None:
    a, b = (
        launch(changes={"run.command": f"python t.py --preset {name}", "model.heads": heads})
        for name, heads in (("s", 4), ("m", 8))
    )
    assert set(difference(a, b).axes) == {"dimensions", "inputs.preset"}


def test_a_receipt_with_inputs_and_one_without_are_compared_by_their_commands() -> None:
    a = launch({"heads": "8"}, {"run.command": "python t.py --heads 8 --out a"})
    b = launch(changes={"run.command": "python t.py --heads 2 --out b.json"})
    found = difference(a, b)
    assert "inputs.heads" in found.axes
    assert found.held_by_inputs == ()


def test_receipts_with_neither_are_compared_by_their_leaves() -> None:
    found = difference(launch(), launch(changes={"model.heads": 8}))
    assert (found.axes, found.left_out, found.held_by_inputs) == ((), (), ())
