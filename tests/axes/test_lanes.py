"""Lanes: every shipped contract loads and names what exists, and every fault of a file is told with its key."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from receipts import metrics
from receipts.axes import axis_leaves
from receipts.axes.effective import OPEN_MAPS
from receipts.axes.lane import METRICS, UNLISTED, Coupling, Lane, Lanes, Lineage, Target, combined, fits, load_lanes
from receipts.base import environment
from receipts.base.environment import read_config
from receipts.base.errors import NotFound, RuleError
from receipts.judging.rulebook import Rulebook
from receipts.receipt import accelerators

SHIPPED = Lanes((environment.bundled_folder("validators"),))
NAMES = SHIPPED.names()
EVERY = {
    *("mlperf-closed", "modded-nanogpt"),
    *("nvidia-megatron", "nvidia-fsdp2", "nvidia-torchtitan", "nvidia-torch", "tpu-torch-xla", "tpu-maxtext"),
    *("deepspeed-zero-offload", "nanotron", "cpu-torch", "cpu-jax", "cpu-torch-xla", "unlisted"),
}
MINIMAL = 'name = "mine"\nversion = 1\ntitle = "Mine"\n'


def write(folder: Path, text: str, name: str = "mine") -> Path:
    """A lane file below a validators folder."""
    (folder / "lanes").mkdir(parents=True, exist_ok=True)
    path = folder / "lanes" / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(RuleError) as error:
        load_lanes(write(tmp_path, MINIMAL + text))
    return str(error.value)


def test_the_lanes_that_ship_are_those_that_their_users_run() -> None:
    assert set(NAMES) == EVERY


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_lane_loads_under_its_own_name(name: str) -> None:
    lane = SHIPPED.get(name)
    assert lane.name == name
    assert lane.title
    assert lane.source


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_lane_names_axes_and_leaves_that_exist(name: str) -> None:
    lane = SHIPPED.get(name)
    leaves = {leaf.path for leaf in axis_leaves()}
    axes = {leaf.axis for leaf in axis_leaves()}
    assert {name for name in lane.not_applicable if not name.startswith("path.intended.")} <= leaves | set(OPEN_MAPS)
    coupled = {axis for item in lane.couplings for axis in (item.when, *item.then)}
    assert {axis for axis in coupled if not axis.startswith(("flags.", "features."))} <= axes
    assert {path for path in lane.required_features if "." in path} <= leaves
    fixed = [pattern for pattern in lane.waivable if not pattern.startswith(("flags.", "features.", "run."))]
    assert all(any(fnmatchcase(axis, pattern) for axis in axes) for pattern in fixed)
    lineages = (*lane.documented, *lane.validated, *lane.impossible)
    assert {key for item in lineages for key in item.wheels if "." in key} <= leaves


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_lane_names_accelerators_of_the_registry(name: str) -> None:
    keys = {item.key for item in accelerators.ACCELERATORS}
    assert set(SHIPPED.get(name).accelerators) <= keys


@pytest.mark.parametrize("name", sorted(EVERY - {UNLISTED}))
def test_every_posture_is_permitted_or_forbidden_with_a_reason(name: str) -> None:
    lane = SHIPPED.get(name)
    postures = {"eager", "regional", "whole_graph", "xla_lazy", "xla_step", "jit"}
    assert set(lane.postures) | set(lane.forbidden_postures) == postures
    assert all(lane.forbidden_postures.values())


def test_every_shipped_lane_whose_path_can_be_seen_asks_for_what_a_reader_read_of_it() -> None:
    wanted = {lane.name: lane.grade for lane in map(SHIPPED.get, NAMES) if lane.grade_since is not None}
    assert wanted == dict.fromkeys(EVERY - {UNLISTED, "mlperf-closed", "modded-nanogpt"}, "evidenced")
    assert SHIPPED.get("modded-nanogpt").grade == "evidenced", "at any time: its path is its printed program"


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_lineage_says_where_it_comes_from(name: str) -> None:
    lane = SHIPPED.get(name)
    assert all(item.source for item in (*lane.documented, *lane.validated, *lane.impossible))


@pytest.mark.parametrize("name", NAMES)
def test_no_lineage_of_a_lane_is_impossible_in_it(name: str) -> None:
    lane = SHIPPED.get(name)
    for good in (*lane.documented, *lane.validated):
        for bad in lane.impossible:
            exact = {key: version.lstrip("<>=") for key, version in good.wheels.items()}
            assert not all(key in exact and fits(exact[key], wanted) for key, wanted in bad.wheels.items())


@pytest.mark.parametrize("name", NAMES)
def test_no_permitted_path_is_a_fallback(name: str) -> None:
    from receipts.receipt.names import permitted

    lane = SHIPPED.get(name)
    for fallback in ("te_unfused", "unfused", "sdpa_efficient", "sdpa_fallback", "dot_product"):
        assert not permitted(fallback, lane.path.get("attention", ()))


def test_unlisted_waives_nothing_and_never_witnesses() -> None:
    lane = SHIPPED.get(UNLISTED)
    assert lane.never_witnessed
    assert not lane.waivable
    assert not lane.not_applicable
    assert not lane.postures
    assert not lane.couplings


def test_a_lane_that_nobody_declared_is_judged_as_unlisted() -> None:
    assert SHIPPED.of("somebody's").name == UNLISTED
    assert SHIPPED.of("cpu-torch").name == "cpu-torch"


def test_a_lane_that_is_asked_for_by_a_wrong_name_lists_the_right_ones() -> None:
    with pytest.raises(NotFound) as error:
        SHIPPED.get("nvidia-megatrom")
    assert all(name in str(error.value) for name in NAMES)


def test_torch_compile_is_off_on_xla_and_on_the_megatron_hot_path() -> None:
    for name in ("tpu-torch-xla", "nvidia-megatron"):
        assert "whole_graph" in SHIPPED.get(name).forbidden_postures
    assert SHIPPED.get("tpu-torch-xla").postures == ("xla_step",)


@pytest.mark.parametrize("key", [item.name for item in fields(Lane)])
def test_every_key_is_explained(key: str, checkout: Path) -> None:
    page = (checkout / "docs" / "lanes.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{key}` \| .+ \|", page, re.MULTILINE)


@pytest.mark.parametrize("kind", [Lineage, Coupling, Target])
def test_every_key_of_an_inner_table_is_explained(kind: type, checkout: Path) -> None:
    page = (checkout / "docs" / "lanes.md").read_text(encoding="utf-8")
    assert all(f"`{item.name}" in page for item in fields(kind))


def test_the_page_explains_no_key_that_does_not_exist(checkout: Path) -> None:
    page = (checkout / "docs" / "lanes.md").read_text(encoding="utf-8")
    table = page.split("## Keys", 1)[1].split("### Lineages", 1)[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == {item.name for item in fields(Lane)}


def test_the_lane_on_the_page_loads(tmp_path: Path, checkout: Path) -> None:
    page = (checkout / "docs" / "lanes.md").read_text(encoding="utf-8")
    example = next(text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if text.startswith("name"))
    assert load_lanes(write(tmp_path, example, "my-lane")).witness


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('colour = "red"', ["no such key: colour", "docs/lanes.md"]),
        ("headroom = true", ["headroom must be a number", "True"]),
        ('headroom = "10 %"', ["headroom must be a number"]),
        ('convention = "folded"', ["convention must be one of", "expert_in_data"]),
        ('evidence = "proof"', ["evidence must be one of", "kernels"]),
        ('witness = "attention"', ["witness must be a list of texts"]),
        ('witness = ["atention"]', ["witness: no such leaf: atention", "attention"]),
        ("never_witnessed = 1", ["never_witnessed must be true or false"]),
        ('[path]\natention = ["x"]', ["path: no such leaf: atention"]),
        ('[path]\nattention = "te_fused"', ["path must be a table of lists", "attention"]),
        ("[waivable]\n'flags.X' = 1", ["waivable must be a table of texts", "flags.X"]),
        ("waivable = ['flags.X']", ["waivable must be a table"]),
        ("[documented]\nname = 'x'", ["documented must be a list of tables"]),
        ("[[documented]]\nname = 'x'", ["documented", "wheels"]),
        ("[[couplings]]\nwhen = 'x'\nthen = ['y']", ["couplings", "because"]),
        ("[[targets]]\nname = 'x'\ndevices = 4", ["targets", "devices"]),
        ("postures = ['eager']\nforbidden_postures.eager = 'no'", ["forbidden_postures: eager is permitted too"]),
        ("source = 3", ["source must be a text"]),
        ('grade_since = "2026-11-23"', ["grade_since must be a day", "2026-11-23"]),
    ],
)
def test_a_fault_is_told_with_file_and_key(tmp_path: Path, text: str, words: list[str]) -> None:
    message = refused(tmp_path, text)
    assert "lane mine.toml" in message
    assert all(word in message for word in words)


def test_a_lane_without_a_title_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"lane mine\.toml: state title"):
        load_lanes(write(tmp_path, 'name = "mine"\nversion = 1\n'))


def test_the_smallest_effect_is_a_table_by_metric_and_at_most_five_percent_on_rates(tmp_path: Path) -> None:
    lane = load_lanes(write(tmp_path, MINIMAL + "[delta]\ntokens_per_second = 0.02\npeak_bytes = 0.2\n"))
    assert [lane.smallest_effect(name) for name in ("tokens_per_second", "peak_bytes", "mfu")] == [0.02, 0.2, None]
    assert load_lanes(write(tmp_path, f"{MINIMAL}delta = 0.03\n")).smallest_effect("step_seconds") == 0.03
    for table in ("delta = 0.051", "[delta]\nstep_seconds = 0.06"):
        assert "at most 5%" in refused(tmp_path, f"{table}\n")
    assert "no such metric" in refused(tmp_path, "[delta]\ntokens = 0.01\n")
    for value in ("0", "-0.01", "true", '"1 %"', "nan"):
        assert "a share between 0 and 1" in refused(tmp_path, f"delta = {value}\n")
    assert set(METRICS) == {name for name, item in metrics.METRICS.items() if item.summary != "outcome"}


def test_a_lane_is_named_like_its_file(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"name the file mine\.toml"):
        load_lanes(write(tmp_path, MINIMAL, "other"))


@pytest.mark.parametrize("text", ["name = ", "\ud800"])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "")
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(RuleError, match=r"lane mine\.toml: "):
        load_lanes(path)


def test_a_folder_of_ones_own_adds_lanes(tmp_path: Path) -> None:
    write(tmp_path / "ours", MINIMAL)
    config = tmp_path / "receipts.toml"
    config.write_text('validators = ["ours"]\n', encoding="utf-8")
    lanes = Rulebook(read_config(config).validators).lanes
    assert lanes.get("mine").title == "Mine"
    assert set(lanes.names()) == EVERY | {"mine"}


def test_a_lane_of_ones_own_does_not_shadow_a_shipped_one(tmp_path: Path) -> None:
    write(tmp_path / "ours", MINIMAL.replace("mine", "cpu-torch"), "cpu-torch")
    lanes = Rulebook((tmp_path / "ours",)).lanes
    with pytest.raises(RuleError, match="lane cpu-torch is in both"):
        lanes.get("cpu-torch")


def test_a_changed_file_is_read_anew(tmp_path: Path) -> None:
    import os

    path = write(tmp_path, MINIMAL)
    lanes = Lanes((tmp_path,))
    assert lanes.get("mine").version == 1
    path.write_text(MINIMAL.replace("version = 1", "version = 2"), encoding="utf-8")
    os.utime(path, ns=(1, 1))
    assert lanes.get("mine").version == 2


def test_two_lanes_together_require_all_and_waive_only_what_both_do() -> None:
    a, b = SHIPPED.get("nvidia-megatron"), SHIPPED.get("tpu-torch-xla")
    both = combined(a, b)
    assert set(both.not_applicable) == set(a.not_applicable) & set(b.not_applicable)
    assert set(both.waivable) == set(a.waivable) & set(b.waivable)
    assert set(both.witness) == set(a.witness) | set(b.witness)
    assert "ngram_hash" in both.required_features
    assert both.hosts_differ
    assert both.compile_expensive


@pytest.mark.parametrize(
    ("version", "wanted", "answer"),
    [
        ("2.9", "2.9", True),
        ("2.9.1", "2.9", True),
        ("2.9+cpu", "2.9", True),
        ("2.90", "2.9", False),
        ("2.9", "2.9.1", False),
        ("2.9.0a0+git21fec65", "2.9.0a0+git21fec65", True),
        ("0.18.0rc0 (pip git 980211ae)", "0.18", True),
        ("9.10.2", "<9.20", True),
        ("9.2.0", "<9.20", True),
        ("9.20", "<9.20", False),
        ("9.20.0.48", ">=9.20", True),
        ("9.20.0.48", "<=9.20", True),
        ("10.0", ">9.20", True),
        ("9.20.0.48 (venv)", ">=9.20", True),
        ("2.10.0", "!=2.9", True),
        ("2.9.1", "!=2.9", False),
    ],
)
def test_versions_are_ordered_by_their_numbers(version: str, wanted: str, answer: bool) -> None:
    assert fits(version, wanted) is answer


def test_the_files_of_all_lanes_enter_the_rule_set_digest() -> None:
    assert {path.stem for path in SHIPPED.files()} == EVERY
    for path in SHIPPED.files():
        assert tomllib.loads(path.read_text(encoding="utf-8"))["name"] == path.stem
