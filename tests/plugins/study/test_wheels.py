"""Wheels that move together are one, what no step runs is left out, and two that are bad only together are named."""

from __future__ import annotations

import json
import random
import shlex
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from command_line import Shell
from receipts.base.errors import InputError, UsageError
from receipts.plugins.study.bisection import walk
from receipts.plugins.study.wheels import WheelWalk, executors, grouped, launch_line, outcome_of, pins, script

GOOD = {
    "torch": "2.8.0",
    "triton": "3.4.0",
    "nvidia-nccl-cu12": "2.27.3",
    "nvidia-cublas-cu12": "12.8.4.1",
    "pip": "25.0",
}
BAD = {
    "torch": "2.9.0",
    "triton": "3.5.0",
    "nvidia-nccl-cu12": "2.27.5",
    "nvidia-cublas-cu12": "12.8.4.1",
    "pip": "25.2",
}


def test_wheels_that_move_together_are_one_and_what_no_step_runs_is_left_out() -> None:
    groups, idle = grouped({**GOOD, "jaxlib": "0.8"}, {**BAD, "jaxlib": "0.9", "libtpu": "0.0.30", "my-kernels": "1"})
    assert [(group.name, list(group.wheels)) for group in groups] == [
        ("jax", ["jaxlib", "libtpu"]),
        ("torch", ["torch", "triton"]),
        ("my-kernels", ["my-kernels"]),
        ("nccl", ["nvidia-nccl-cu12"]),
    ]
    assert idle == ["pip"]
    assert str(groups[0]) == "jax (jaxlib 0.8 → 0.9, libtpu none → 0.0.30)"


def test_a_freeze_is_read_and_another_text_is_refused() -> None:
    text = (
        "# made by\nTorch==2.9.0+cu128\nNVIDIA_nccl.cu12 == 2.27.5 ; sys_platform\n-e git+https://x\nnumpy=1.26=py311\n"
    )
    assert pins(text, "f") == {"torch": "2.9.0+cu128", "nvidia-nccl-cu12": "2.27.5", "numpy": "1.26"}
    with pytest.raises(InputError, match="pip freeze"):
        pins("hello\n", "f")


@pytest.mark.parametrize("executor", executors()[1:])
def test_a_command_for_elsewhere_installs_what_moved_and_runs_the_words_as_they_are(executor: str) -> None:
    groups, _ = grouped(GOOD, BAD)
    text = script(groups, 1, ["python", "a b.py", "--x=$HOME"])
    assert (
        text
        == "python -m pip install -q --no-deps torch==2.9.0 triton==3.5.0 || exit 97\nexec python 'a b.py' '--x=$HOME'"
    )
    words = shlex.split(launch_line(executor, "lab/train:41", "wheels-1", text))
    assert any(text in word for word in words)
    assert any("lab/train:41" in word for word in words)


def test_a_walk_over_many_groups_finds_the_two_that_are_bad_together() -> None:
    draw = random.Random(3)
    for _ in range(20):
        first, second = draw.sample(range(16), 2)
        cause = 1 << first | 1 << second
        explained = walk(16, lambda number, cause=cause: "bad" if number & cause == cause else "good")
        assert explained.sets == (cause,)
        assert len(explained.asked) < 60


def test_outcomes_are_those_of_exit_codes() -> None:
    assert [outcome_of(code) for code in (0, 1, 3, 125, 2, 97, -11)] == [
        "good",
        "bad",
        "unknown",
        "unknown",
        *["fails"] * 3,
    ]


def test_ends_that_are_not_good_and_bad_explain_nothing(tmp_path: Path) -> None:
    groups, _ = grouped(GOOD, BAD)
    with pytest.raises(UsageError, match="the bad wheels are good"):
        WheelWalk(tmp_path, groups).explain(lambda _: "good")
    with pytest.raises(UsageError, match="between other wheels"):
        WheelWalk(tmp_path, groups[:1])


def wheel(folder: Path, name: str, version: str) -> None:
    """A wheel of one module, which says its version."""
    info = f"{name}-{version}.dist-info"
    with ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")


CHECK = "import alpha, beta, gamma, sys; sys.exit(alpha.VERSION == '2' and gamma.VERSION == '2')"


@pytest.mark.slow
def test_real_environments_name_the_pair_that_does_it(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shell.folder))
    for name in ("alpha", "beta", "gamma"):
        wheel(shell.folder, name, "1")
        wheel(shell.folder, name, "2")
    for side, version in (("good", "1"), ("bad", "2")):
        pinned = "".join(f"{name}=={version}\n" for name in ("alpha", "beta", "gamma", "pytest"))
        (shell.folder / f"{side}.txt").write_text(pinned)
    ends = [str(shell.folder / f"{side}.txt") for side in ("good", "bad")]
    command = ["bisect-wheels", *ends, "--dir", str(shell.folder / "w"), "--json"]
    done = shell(*command, "--", "python", "-c", CHECK)
    assert (done.code, done.json["idle"]) == (0, ["pytest"]), done.err
    assert done.json["sets"] == [["alpha 1 → 2", "gamma 1 → 2"]]
    assert not [path for path in (shell.folder / "w").iterdir() if path.is_dir()]
    # What is known is not launched again.
    assert shell(*command, "--", sys.executable, "-c", "raise SystemExit(9)").json["sets"] == done.json["sets"]


def test_a_walk_that_runs_elsewhere_goes_on_by_what_it_is_told(shell: Shell) -> None:
    for side, wheels in (("good", GOOD), ("bad", BAD)):
        (shell.folder / f"{side}.txt").write_text("".join(f"{name}=={version}\n" for name, version in wheels.items()))
    ends = [str(shell.folder / f"{side}.txt") for side in ("good", "bad")]
    words = ["bisect-wheels", *ends, "--dir", str(shell.folder / "w"), "--executor", "pyxis", "--image", "lab:41"]
    call = [*words, "--print", "--json"]
    first = shell(*call, "--", "./b.sh")
    assert (first.code, "pip install" in first.json["next"]) == (3, False)
    told = []
    for outcome in ("good", "bad", "good", "bad"):
        told.append(shell(*call, "--was", outcome, "--", "./b.sh"))
    assert [item.code for item in told] == [3, 3, 3, 0]
    assert told[-1].json["sets"] == [["nvidia-nccl-cu12 2.27.3 → 2.27.5"]]
    assert shell(*call, "--was", "bad", "--", "./b.sh").code == 2
    assert shell(*words[:-2], "--", "./b.sh").code == 2
    assert "pyxis" in shell(*words[:3], "--executor", "pyxs", "--", "x").err
    known = json.loads((shell.folder / "w" / "wheels.json").read_text())["outcomes"]
    assert known == {"0": "good", "3": "bad", "1": "good", "2": "bad"}
