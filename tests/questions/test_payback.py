"""Cold against warm cache, and a longer compile that faster steps pay back."""

from __future__ import annotations

import math
from typing import Any

import rule_cases
from command_line import Shell
from receipts.metrics import Launch
from receipts.questions.answers import payback


def _launch(seconds: float, compiling: float | None, cache: str | None = None) -> Launch:
    leaves: dict[str, Any] = {"run.launch": f"7c1f0a52-5a0e-4c53-9d3e-0d6a7be1f{int(100 * (compiling or 1)):03x}"}
    if compiling is not None:
        leaves["compile.compile_seconds"] = compiling
    if cache is not None:
        leaves["compile.cache_state"] = cache
    table = {"steps": {"seconds": seconds, "seed": 3}, "drop": ["measurement.goodput", "compile"], "set": leaves}
    return rule_cases.rulebook().launch(rule_cases.parsed(rule_cases.build(table, "cpu", None)))


def test_a_cold_cache_costs_as_many_steps_as_take_that_long() -> None:
    cold, warm = _launch(0.5, 90.0, "cold"), _launch(0.5, 8.0, "warm")
    answer = payback(cold, warm)
    assert answer is not None
    assert answer.of_caches
    assert (answer.longer, answer.extra) == ("A", 82.0)
    assert warm.step_seconds is not None
    assert answer.worth == math.ceil(82.0 / warm.step_seconds)
    assert f"A compiled 82 s longer (cold cache), as long as {answer.worth:,} steps" in str(answer)
    assert "a warm cache is paid back after" in str(answer)


def test_a_longer_compile_is_paid_back_by_faster_steps() -> None:
    plain, tuned = _launch(0.5, 10.0), _launch(0.4, 60.0)
    answer = payback(plain, tuned)
    assert answer is not None
    assert plain.step_seconds is not None
    assert tuned.step_seconds is not None
    assert answer.steps == math.ceil(50.0 / (plain.step_seconds - tuned.step_seconds))
    assert f"paid back after {answer.steps:,} steps" in str(answer)


def test_a_longer_compile_without_faster_steps_is_never_paid_back() -> None:
    assert "never paid back" in str(payback(_launch(0.4, 10.0), _launch(0.5, 60.0)))


def test_nothing_is_said_without_two_compile_times_that_differ() -> None:
    assert payback(_launch(0.5, None), _launch(0.5, 8.0)) is None
    assert payback(_launch(0.5, 8.0), _launch(0.4, 8.0)) is None


def test_compare_notes_what_a_cold_cache_costs(shell: Shell) -> None:
    assert "A compiled 82 s longer (cold cache)" in shell("compare", *_files(shell)).err


def _files(shell: Shell) -> tuple[str, str]:
    for name, launch in (("cold", _launch(0.5, 90.0, "cold")), ("warm", _launch(0.5, 8.0, "warm"))):
        (shell.folder / f"{name}.json").write_bytes(launch.parsed.raw)
    return str(shell.folder / "cold.json"), str(shell.folder / "warm.json")


def test_a_cold_cache_is_compared_with_a_warm_one_by_name(shell: Shell) -> None:
    cold, warm = _files(shell)
    shown = shell("compare", "--cold", cold, "--warm", warm)
    assert shown.code == 3, shown.out  # one launch a side decides nothing
    assert "C104" not in shown.out
    assert "compile" in shown.out
    assert "a warm cache is paid back after" in shown.err


def test_launches_that_are_not_cold_and_warm_are_refused(shell: Shell) -> None:
    cold, warm = _files(shell)
    shown = shell("compare", "--cold", warm, "--warm", cold)
    assert shown.code == 1
    assert "warm on A, cold on B" in " ".join(shown.out.split())
    assert shell("compare", cold, "--cold", cold, "--warm", warm).code == 2
    assert shell("compare", cold).code == 2
