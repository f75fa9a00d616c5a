"""A trial of stored launches, the boundary that it stops by, a campaign of trials, and what measures."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from benchmarks.hacks.launches import Shelf, Tree, edited, launch, times, typed, written
from receipts.base.errors import InputError, NotFound, UsageError
from receipts.plugins.judge.boundary import ALONE, LOOKS, RATE, interval, next_level
from receipts.plugins.judge.outcome import names_data, quantity
from receipts.plugins.judge.trees import measures, sides
from receipts.plugins.judge.trial import Asked, asked_of

Make = Callable[[int], Tree]
# What the clean base is changed by: its code, and nothing that is computed.
CODE = {"code.imported_digest": 64 * "c", "code.commit": 40 * "d"}


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    with Shelf() as opened:
        yield opened


def seconds(gain: float) -> Make:
    """Launches that take so much less a step, with noise of two in a thousand."""

    def make(turn: int) -> Tree:
        return launch(number=turn, seconds=0.8 * math.exp(0.002 * math.sin(7 * turn) - gain))

    return make


def asked(number: int = 0, **changes: Any) -> Asked:
    return Asked("throughput", (), None, "base0", f"candidate{number}")._replace(**changes)


def tried(
    shelf: Shelf,
    gain: float = 0.0,
    turns: int = 3,
    question: Asked | None = None,
    campaign: str = "alone",
    rerun: str = "",
    change: Mapping[str, Any] | None = None,
    base: Mapping[str, Any] | None = None,
    edit: Callable[[Tree], Tree | bytes] = lambda tree: tree,
) -> str:
    """Store the launches of a trial; its name."""
    question = question or asked()
    name = f"{campaign}/{question.number}{rerun}"
    shift = len(list(shelf.store.session.store.ids()))
    for turn in range(turns):
        for at, side in enumerate(("base", "candidate")):
            tree = seconds(gain if side == "candidate" else 0.0)(shift + 2 * turn + at)
            own = {"run.session": f"judge/{name}", "run.tags": list(question.tags(side)), "run.label": f"{name} {side}"}
            mine = {**CODE, **(change or {})} if side == "candidate" else {**(base or {})}
            other = edited(tree, {**own, **mine})
            shelf.submit(edit(other) if side == "candidate" else other)
    return name


def answer(shelf: Shelf, name: str, **options: Any) -> Any:
    return shelf.store.judge(name, **options).to_dict()


@pytest.mark.parametrize(
    ("gain", "turns", "word", "code"),
    [(0.05, 3, "keep", 0), (0.0, 6, "discard", 1), (-0.05, 3, "discard", 1), (0.05, 2, "again", 3)],
)
def test_a_gain_is_kept_and_none_is_discarded(shelf: Shelf, gain: float, turns: int, word: str, code: int) -> None:
    name = tried(shelf, gain, turns)
    said = shelf.store.judge(name)
    assert (said.to_dict()["answer"], said.exit_code) == (word, code), said.to_dict()["why"]
    if word == "keep":
        assert said.to_dict()["low"] < math.exp(gain) < said.to_dict()["high"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model.depth": 2}, "pattern"),
        ({"batch.global_batch": 8, "batch.accumulation": 1, "measurement.tokens_per_step": 2048}, "batch.global_batch"),
        ({"run.outcome": "crash", "run.exit_code": 1}, "3 of 3 launches of the candidate do not count"),
        ({"measurement.loss.last": times(1.05)}, "loss at equal steps is worse by 5.00%"),
        ({"measurement.path_counters": [{"name": "whole steps", "count": 2, "expected": 9}]}, "whole steps counted 2"),
    ],
)
def test_what_is_faster_by_less_work_or_a_worse_loss_is_discarded(
    shelf: Shelf, change: Mapping[str, Any], why: str
) -> None:
    said = answer(shelf, tried(shelf, 0.3, change=change))
    assert (said["answer"], why in said["why"]) == ("discard", True), said["why"]


def test_typed_numbers_keep_nothing(shelf: Shelf) -> None:
    said = answer(shelf, tried(shelf, 0.3, edit=lambda tree: json.dumps(typed(tree)).encode()))
    assert said["answer"] != "keep", said


def test_a_launch_that_was_withdrawn_ends_the_trial(shelf: Shelf) -> None:
    name = tried(shelf, 0.05)
    shelf.store.session.store.retract(answer(shelf, name)["launches"][0], "slow")
    assert (answer(shelf, name)["answer"], answer(shelf, name)["why"][:10]) == ("again", "1 launch o")


def test_launches_that_are_asked_different_questions_are_no_trial(shelf: Shelf) -> None:
    name = tried(shelf, 0.05)
    shelf.submit(edited(launch(number=9), {"run.session": f"judge/{name}", "run.tags": list(asked(7).tags("base"))}))
    with pytest.raises(InputError, match="do not say one question"):
        answer(shelf, name)
    with pytest.raises(NotFound, match="the store holds no launch of it"):
        answer(shelf, "alone/none")


def test_the_tags_of_a_launch_say_its_question() -> None:
    question = asked(holds=("loss=1%", "peak_bytes"), effect=0.02)
    assert asked_of(question.tags("base")) == ("base", question)
    assert len({item.number for item in (question, asked(), asked(1), asked(effect=0.03))}) == 4


def test_turns_between_two_looks_wait_for_the_next_one() -> None:
    first = interval([0.01, 0.012, 0.011], ALONE)
    assert first == interval([0.01, 0.012, 0.011], ALONE)
    assert interval([0.01, 0.012], ALONE) is None
    five, four = (interval([0.01, 0.012, 0.011, 0.013, 0.9][:count], ALONE) for count in (5, 4))
    assert (five, four and four.turns) == (four, 4)
    assert first is not None
    half = stats.t.isf(ALONE / len(LOOKS), 2) * 0.001 / math.sqrt(3)
    assert first.high - first.low == pytest.approx(2 * half)


def test_a_campaign_spends_its_rate_and_earns_with_each_discovery() -> None:
    assert sum(next_level([False] * count) for count in range(2000)) <= RATE / 2
    assert next_level([True]) > next_level([]) > next_level([False]) > next_level([False, False])
    # The bound of LORD++: the levels so far are at most the rate times what was kept.
    history: list[bool] = []
    spent = 0.0
    for number in range(300):
        spent += next_level(history)
        history.append(number % 3 == 0)
        assert spent <= RATE * max(1, sum(history))


def test_a_campaign_says_what_survives_and_what_the_kept_changes_add_up_to(shelf: Shelf) -> None:
    first, second = asked(1), asked(2, base="candidate1")
    names = [
        tried(shelf, 0.0, 6, asked(0), "c"),
        tried(shelf, 0.06, 4, first, "c"),
        tried(shelf, 0.04, 4, second, "c"),
    ]
    assert [answer(shelf, name, record=True)["answer"] for name in names] == ["discard", "keep", "keep"]
    levels = [answer(shelf, name)["level"] for name in names]
    assert levels == [next_level([]), next_level([False]), next_level([False, True])]
    seen = shelf.store.campaign("c")
    assert (seen.exit_code, [row["standing"] for row in seen.rows]) == (3, ["", "missing", "missing"])
    tried(shelf, 0.06, 3, first, "c", rerun=".2")
    tried(shelf, 0.0, 6, second, "c", rerun=".2")
    tried(shelf, 0.05, 3, asked(2), "c", rerun=".2")
    seen = shelf.store.campaign("c")
    data = seen.to_dict()
    assert (seen.exit_code, data["tried"], data["kept"], data["survive"]) == (1, 3, 2, 1)
    assert [row["standing"] for row in seen.rows] == ["", "survives", "is gone"]
    assert data["chain"]["table"] == pytest.approx(math.exp(0.10), rel=0.01)
    assert data["chain"]["measured"]["ratio"] == pytest.approx(math.exp(0.05), rel=0.01)
    assert "5 % of what is kept" in str(seen)


def test_a_decision_of_the_judge_is_written_once(shelf: Shelf) -> None:
    name = tried(shelf, 0.05)
    for _ in range(2):
        answer(shelf, name, record=True)
    (decided,) = shelf.store.session.store.published.decisions()
    assert (decided.decision, decided.reason.startswith(f"receipts judge: {name} keep: tokens/s +5.")) == ("ship", True)


@pytest.mark.parametrize(
    ("text", "worse"),
    [
        ("throughput", {"measurement.step_durations_seconds": 2.0, "measurement.step_wall_seconds": 2.0}),
        ("loss", {"measurement.loss.last": 1.5}),
    ],
)
def test_a_quantity_is_how_many_times_worse(text: str, worse: Mapping[str, float]) -> None:
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Document, parse

    one = launch()
    other = edited(one, {path: times(factor) for path, factor in worse.items()})
    a, b = (Rulebook().launch(parse(Document(written(tree), "test"))) for tree in (one, other))
    assert quantity(text).worse(a, b) == pytest.approx(math.log(next(iter(worse.values()))), rel=0.01)
    assert quantity(text).worse(a, a) == 0.0


@pytest.mark.parametrize("text", ["gradient_norm", "loss=much", "time-to-loss=low", "speed"])
def test_what_has_no_better_side_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        quantity(text)


def test_a_mistyped_target_is_answered_with_the_one_that_is_meant() -> None:
    with pytest.raises(UsageError, match=r"memry: write throughput.*did you mean memory"):
        quantity("memry")


@pytest.mark.parametrize(
    ("path", "declared", "expected"),
    [
        ("train.py", (), False),
        ("src/data_loader.py", (), False),
        ("data/loader.py", (), False),
        ("src/evaluate.py", (), True),
        ("run_eval.sh", (), True),
        ("benchmarks/run.py", (), True),
        ("data/train.txt", (), True),
        ("corpus/shard.bin", (), True),
        ("sitecustomize.py", (), True),
        ("receipts/emit/clock.py", (), True),
        ("receipts.toml", ("eval/**",), True),
        ("src/evaluate.py", ("judge/*",), False),
        ("judge/run.py", ("judge/*",), True),
        ("medieval.py", (), False),
    ],
)
def test_files_that_measure_are_known_by_their_names(path: str, declared: tuple[str, ...], expected: bool) -> None:
    assert measures(path, declared) is expected


def test_the_sides_of_a_revision_share_what_git_ignores_and_differ_in_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from receipts.plugins.judge.trees import git

    monkeypatch.chdir(tmp_path)
    for name in ("GIT_AUTHOR", "GIT_COMMITTER"):
        monkeypatch.setenv(f"{name}_NAME", "a")
        monkeypatch.setenv(f"{name}_EMAIL", "a@example.org")
    for name, text in (("train.py", "1"), ("eval.py", "1"), (".gitignore", "data/\n"), ("data/x", "1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git("init", "--quiet", folder=tmp_path)
    git("add", "--all", folder=tmp_path)
    git("commit", "--quiet", "--message", "base", folder=tmp_path)
    (tmp_path / "train.py").write_text("2")
    (tmp_path / "new.py").write_text("2")
    with sides("HEAD", None) as both:
        assert both.changed == ("new.py", "train.py")
        both.refuse_other_measures()
        assert (both.base.folder / "train.py").read_text() == "1"
        assert (both.base.folder / "data" / "x").read_text() == "1"
        (tmp_path / "log.txt").write_text("a launch wrote it")
        assert both.refuse_moved() == ["log.txt"]
        (both.base.folder / "train.py").write_text("slower")
        with pytest.raises(UsageError, match=r"the base changed while it was judged: train\.py"):
            both.refuse_moved()
        place = both.base.folder
    assert not place.exists()
    assert git("worktree", "list", folder=tmp_path).count("\n") == 0
    for name in ("s.sqlite", "s.sqlite-wal", "s.sqlite.evidence/08/a.gz"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("the store's own")
    with sides("HEAD", None, tmp_path / "s.sqlite") as both:
        assert both.changed == ("log.txt", "new.py", "train.py")
    (tmp_path / "eval.py").write_text("2")
    with sides("HEAD", None) as both, pytest.raises(UsageError, match=r"1 file of what measures .*: eval\.py\. Commit"):
        both.refuse_other_measures()
    with pytest.raises(UsageError, match="nowhere is no revision"), sides("nowhere", None):
        pass
    with sides(None, None) as both:
        assert (both.changed, both.base) == ((), both.candidate)
    with (tmp_path / "dump").open("wb") as stream:
        stream.truncate(17 << 20)
    (tmp_path / "eval.py").write_text("1")
    (tmp_path / "older").mkdir()
    (tmp_path / "older" / "train.py").write_text("0")
    monkeypatch.chdir(tmp_path / "older")
    (tmp_path / "newer").mkdir()
    with sides(None, tmp_path / "newer") as both:
        assert (both.changed, both.base.folder) == (("train.py",), tmp_path / "newer")
    monkeypatch.chdir(tmp_path)
    with sides("HEAD", None) as both:
        assert (both.base.folder / "dump").is_symlink()
        assert "dump" not in both.changed


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="the system does not tell the children of a process")
def test_what_a_launch_leaves_behind_is_ended_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    import subprocess

    from receipts.plugins.judge import verbs

    monkeypatch.setattr(verbs, "GRACE", 0.05)
    script = "import subprocess, sys; subprocess.Popen(['sleep', '60'], start_new_session=True)"
    verbs.adopt()
    with subprocess.Popen(["sleep", "60"]) as own:
        before = verbs.children()
        subprocess.run([sys.executable, "-c", script], check=True)
        assert len(verbs.children() - before) == 1
        verbs.end_left_behind(before)
        assert (verbs.children() - before, own.poll()) == (set(), None)
        own.kill()


@pytest.mark.parametrize(
    ("launched", "order"),
    [
        ({"base": 1, "candidate": 0}, ["candidate", "base", "candidate"]),
        ({"base": 1, "candidate": 1}, ["base", "candidate"] * 2),
    ],
    ids=["killed between", "whole turns"],
)
def test_a_call_goes_on_with_the_side_that_a_killed_one_left_short(
    monkeypatch: pytest.MonkeyPatch, launched: dict[str, int], order: list[str]
) -> None:
    from receipts.plugins.judge import verbs

    ran: list[str] = []

    class Turns(verbs.Turns):
        def _launch(self, side: str) -> bool:
            ran.append(side)
            launched[side] += 1
            return True

    known = {"answer": "again", "more": 3, "turns": 0, "launched": launched}
    monkeypatch.setattr(verbs, "_answer", lambda session, name: known)
    still = SimpleNamespace(refuse_moved=list)
    Turns(None, still, {}, asked(), "alone/none", {}).run(2)  # type: ignore[arg-type]  # nothing is launched
    assert ran == order


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").is_file(), reason="the system does not tell environments")
def test_a_trial_whose_launch_still_runs_is_not_begun_again() -> None:
    import subprocess

    from receipts.plugins.judge import verbs

    with subprocess.Popen(
        ["sleep", "60"], env={"PATH": "/bin:/usr/bin", "RECEIPTS_SESSION": "judge/alone/run"}
    ) as left:
        turns = verbs.Turns(None, None, {}, asked(), "alone/run", {})  # type: ignore[arg-type]  # it is refused before
        try:
            with pytest.raises(UsageError, match=f"a launch of alone/run is running, as process {left.pid}"):
                turns.run(1)
        finally:
            left.kill()


@pytest.mark.slow
def test_what_a_killed_call_checked_out_is_removed_and_what_a_living_one_did_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import os
    import subprocess

    from receipts.plugins.judge import trees

    def git(*words: str) -> None:
        own = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "base")
    places = {name: tmp_path / f"{trees.PREFIX}{name}" for name in ("dead", "living")}
    for name, owner in (("dead", 2**22 + 1), ("living", os.getppid())):
        git("worktree", "add", "-q", "--detach", str(places[name] / "base"))
        (places[name] / "owner").write_text(str(owner))
    monkeypatch.chdir(tmp_path)
    with sides("HEAD", None):
        assert [place.exists() for place in places.values()] == [False, True]


def rows_of_loss(rows: int) -> Callable[[Any], Any]:
    """Evidence whose trace shows a loss of so many of 8,192 tokens."""
    return lambda entries: [
        {**entries[0], "observed": {"work.steps": 2, "work.tokens": 8192, "work.loss_rows": rows}},
        *entries[1:],
    ]


@pytest.mark.parametrize(("rows", "word"), [(8192, "keep"), (4096, "discard")])
def test_a_loss_over_half_of_the_tokens_is_discarded(shelf: Shelf, rows: int, word: str) -> None:
    sides_of = {"base": {"evidence": rows_of_loss(8192)}, "change": {"evidence": rows_of_loss(rows)}}
    assert answer(shelf, tried(shelf, 0.3, **sides_of))["answer"] == word  # type: ignore[arg-type]  # two of its names


@pytest.mark.parametrize(("total", "word"), [(1_000_000, "keep"), (900_000, "discard")])
def test_fused_tensors_of_as_many_parameters_are_the_same_work(shelf: Shelf, total: int, word: str) -> None:
    own = {"model.architecture": 64 * "e", "model.parameters_total": 1_000_000}
    fused = {"model.architecture": 64 * "f", "model.parameters_total": total}
    said = answer(shelf, tried(shelf, 0.05, base=own, change=fused))
    assert (said["answer"], "computes something else" in said["why"]) == (word, word == "discard"), said["why"]


@pytest.mark.parametrize(("norm", "word"), [(1.02, "keep"), (1.2, "discard")])
def test_gradients_of_one_seed_that_differ_are_of_another_model(shelf: Shelf, norm: float, word: str) -> None:
    first = "measurement.gradient_norm.first"
    said = answer(shelf, tried(shelf, 0.05, change={first: times(norm)}))
    assert (said["answer"], "gradients" in said["why"]) == (word, word == "discard"), said["why"]


def test_launches_that_never_settle_make_no_turn_and_convict_nobody(shelf: Shelf) -> None:
    name = tried(shelf, 0.05, 2)
    tried(shelf, 0.05, 1, edit=lambda tree: edited(tree, {"measurement.step_durations_seconds": _drifting}))
    said = answer(shelf, name)
    assert (said["answer"], said["turns"], said["more"]) == ("again", 2, 1), said["why"]


def _drifting(steps: list[float]) -> list[float]:
    return [round(step * (1 + 0.002 * at), 6) for at, step in enumerate(steps)]


def test_a_loss_that_the_candidate_leaves_out_leaves_the_trial_open(shelf: Shelf) -> None:
    said = shelf.store.judge(tried(shelf, 0.05, edit=lambda tree: edited(tree, drop=["measurement.loss"])))
    data = said.to_dict()
    assert (data["answer"], data["more"], said.exit_code) == ("again", 0, 3)
    assert "loss at equal steps is not known on both sides; record it in both" in data["why"]


@pytest.mark.parametrize(("factor", "word"), [(1.0, "keep"), (1.1, "discard")])
def test_a_candidate_has_to_come_to_the_loss_that_it_is_timed_to(shelf: Shelf, factor: float, word: str) -> None:
    target = launch()["measurement"]["loss"]["last"] * 1.001
    question = asked(target=f"time-to-loss={target}", holds=("peak_bytes",))
    losses = {f"measurement.loss.{name}": times(factor) for name in ("last", "values")}
    said = answer(shelf, tried(shelf, 0.05, question=question, change=losses))
    assert (said["answer"], word == "keep" or "does not come to a loss" in said["why"]) == (word, True), said["why"]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("inputs.train_data", True),
        ("inputs.data.path", True),
        ("inputs.tokenizer", True),
        ("inputs.data_workers", False),
        ("inputs.dataloader.num", False),
        ("inputs.wait", False),
        ("parallelism.data", False),
    ],
)
def test_an_input_that_names_other_data_is_other_work(axis: str, expected: bool) -> None:
    assert names_data(axis) is expected
