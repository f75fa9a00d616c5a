"""The page of a comparison: what its first line says, and that no number of a rejected pair is in it."""

from __future__ import annotations

from typing import Any

import pytest

import rule_cases
from command_line import Shell
from receipts.publish import terminal
from receipts.publish.page import Column

pytestmark = pytest.mark.slow

STEPS: dict[str, Any] = {"measurement__stated": None}


def _first(shell: Shell, *words: str) -> str:
    """The first line, however it was folded."""
    whole = shell("compare", *words).out
    return " ".join(whole[: whole.index("\nA  ")].split())


def _launches(shell: Shell, name: str, scale: float, **leaves: Any) -> list[str]:
    """Three launches of one configuration, each file with step times of its own."""
    return [
        shell.store(
            f"{name}-{number}",
            measurement__step_durations_seconds=[step * scale for step in rule_cases.durations({"seed": 100 + number})],
            **STEPS,
            **leaves,
        )
        for number in range(3)
    ]


def test_an_accepted_pair_says_how_much_faster_and_what_changed(shell: Shell) -> None:
    _launches(shell, "base", 1.0)
    _launches(shell, "cand", 0.8, numerics__learning_rate=0.001)
    line = _first(shell, "label=base-*", "label=cand-*")
    assert line.startswith("ACCEPTED B is ")
    assert " % faster (95 % " in line
    assert "learning_rate 0.0003 → 0.001, 3 + 3 launches" in line


def test_a_pair_with_two_changes_names_them_and_the_bridge(shell: Shell) -> None:
    ids = [shell.store("base"), shell.store("cand", numerics__learning_rate=0.001, numerics__optimizer="lion")]
    line = _first(shell, *ids)
    assert line.startswith("REJECTED 2 settings changed; only 1 may: ")
    assert "learning_rate 0.0003→0.001" in line
    assert line.endswith(f"next: receipts bridge {ids[0][:12]} {ids[1][:12]}")


def test_no_change_of_a_rejected_pair_is_in_its_first_line(shell: Shell) -> None:
    line = _first(shell, shell.write("base"), shell.write("cand", batch__global_batch=17))
    assert line.startswith("REJECTED ")
    assert "%" not in line


# A stated MFU without its formula spoils the MFU, and nothing else.
UNNAMED: dict[str, Any] = {"measurement__stated": {"mfu": 0.4}}


def test_an_accepted_pair_never_says_why_it_is_rejected(shell: Shell) -> None:
    _launches(shell, "base", 1.0)
    _launches(shell, "cand", 0.8, numerics__learning_rate=0.001)
    for number in range(4):
        shell.store(
            f"cand-spoilt-{number}",
            measurement__step_durations_seconds=[s * 0.8 for s in rule_cases.durations({"seed": 300 + number})],
            numerics__learning_rate=0.001,
            **UNNAMED,
        )
    said = shell("compare", "label=base-*", "label=cand-*")
    assert said.code == 0, said.out
    assert "Why it is rejected" not in said.out
    assert "1 offense that decides nothing here" in said.out
    assert "R104" in shell("compare", "label=base-*", "label=cand-*", "-v").out


def test_a_pair_that_left_its_path_is_rejected_for_that_and_not_for_an_mfu(shell: Shell) -> None:
    left = {"path__witnessed__attention": "math"}
    line = _first(shell, shell.write("base"), shell.write("cand", **left, **UNNAMED))
    assert line.startswith("REJECTED left path (R302) on B")


def test_an_undecided_pair_says_what_is_missing(shell: Shell) -> None:
    leaves = {"measurement__step_durations_seconds": None}
    paths = [shell.write("base", **leaves), shell.write("cand", numerics__learning_rate=0.001, **leaves)]
    line = _first(shell, *paths)
    assert line.startswith("UNDECIDED ")
    assert "missing: step times (R205)" in line


def test_v_shows_the_regime_of_each_side(shell: Shell) -> None:
    paths = [shell.write(side, compile__cache_state=side) for side in ("cold", "warm")]
    closed, opened = shell("compare", *paths).out, shell("compare", *paths, "-v").lines
    assert "the regime of each side" in closed
    rows = [" ".join(line.split()) for line in opened[opened.index("Regime") :]]
    assert "compile.cache_state cold warm" in rows
    assert "tokens a step a chip 4,096 4,096" in rows
    assert "regime enough work enough work" in rows


def test_folds_are_counted_and_v_opens_them(shell: Shell) -> None:
    paths = [shell.write("base"), shell.write("cand", numerics__learning_rate=0.001)]
    closed, opened = shell("compare", *paths).out, shell("compare", *paths, "-v").out
    assert "-v shows more: " in closed
    assert "settings held" in closed
    assert "equal on both sides" not in closed
    assert "-v shows more" not in opened
    assert "equal on both sides" in opened


COLUMNS = (
    Column("id"),
    Column("status"),
    Column("rate", "tokens/s", numeric=True, rank=1),
    Column("lane", rank=2),
    Column("label", cut=True),
)
ROWS = [("58d6e640e5c2", "valid", "11,499", "nvidia-megatron", "a label that goes on for many words and on")]


@pytest.mark.parametrize("width", [50, 60, 70, 80, 100, 140])
def test_a_table_is_never_wider_than_the_terminal(width: int) -> None:
    where = terminal.fit_table(COLUMNS, ROWS, width)
    assert where is not None
    assert 2 + sum(where.sizes) + 2 * (len(where.sizes) - 1) <= width
    (line,) = terminal.table_lines(ROWS[0], where, COLUMNS)
    assert line[0][1] == "58d6e640e5c2"
    assert line[1][1] == "valid"


def test_columns_are_dropped_by_rank() -> None:
    dropped = [terminal.fit_table(COLUMNS, ROWS, width) for width in (140, 60, 45)]
    assert [where and where.dropped for where in dropped] == [(), ("lane",), ("rate tokens/s", "lane")]


def test_a_table_whose_ids_do_not_fit_is_no_table() -> None:
    assert terminal.fit_table(COLUMNS, ROWS, 30) is None


def test_a_pipe_gets_every_column_whole() -> None:
    where = terminal.fit_table(COLUMNS, ROWS, None)
    assert where is not None
    assert where.dropped == ()
    assert terminal.table_lines(ROWS[0], where, COLUMNS).__next__()[-1][1] == ROWS[0][-1]


def test_the_two_values_beside_a_change_divide_to_it_to_the_last_digit_shown(shell: Shell) -> None:
    for side, slow, rate in (("base", 1.0, 3e-4), ("cand", 0.8871, 1e-3)):
        for number in range(4):
            drift = 1.0 + 0.02 * (2 * number + (side == "cand"))  # in turns, and slower with each launch
            shell.store(
                f"{side}-{number}",
                numerics__learning_rate=rate,
                measurement__step_durations_seconds=[
                    step * slow * drift for step in rule_cases.durations({"seed": 100 + number, "cv": 0.003})
                ],
                run__started=f"2026-03-02T{9 + 2 * number + (side == 'cand'):02}:00:00+00:00",
                run__finished=f"2026-03-02T{9 + 2 * number + (side == 'cand'):02}:10:00+00:00",
                **STEPS,
            )
    said = shell("compare", "label=base-*", "label=cand-*", "-v")
    rows = [line.split("  ") for line in said.lines if line.startswith(("  tokens/s", "  step time", "  MFU"))]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    compared = [row for row in cells if row[3].endswith("%") and len(row) > 4]
    assert len(compared) >= 2
    for _, a, b, change, *_ in compared:
        first, second = (float(text.replace(",", "")) for text in (a, b))
        assert f"{(second / first - 1) * 100:+.2f} %" == change.replace("−", "-")
    result = shell("compare", "label=base-*", "label=cand-*", "--json").json["results"][0]
    assert result["b"]["value"] / result["a"]["value"] == pytest.approx(result["effect"]["ratio"])
    assert result["middle_b"] / result["middle_a"] != pytest.approx(result["effect"]["ratio"], rel=1e-4)
    assert "Medians of the launches, as they are" in said.out
