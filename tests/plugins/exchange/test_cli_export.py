"""``receipts export`` on the command line: what is not there, what meets nothing, and when."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta

import pytest

from command_line import Shell
from receipts.base.errors import UsageError
from receipts.base.units import moment

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("place", ["none.csv", "none.jsonl", "none"])
def test_conditions_that_nothing_meets_give_an_empty_export_and_say_so(shell: Shell, place: str) -> None:
    shell.store("one")
    said = shell("export", place, "--where", "lane=tpu-*")
    assert said.code == 0
    assert "0 receipts" in said.out
    assert "no receipt meets the conditions" in said.err
    if place.endswith(".csv"):
        (header,) = csv.reader((shell.folder / place).read_text(encoding="utf-8").splitlines())
        assert "tokens_per_second" in header
    else:
        assert shell("--store", "other.sqlite", "import", "store", place).code == 0


def test_standard_output_is_no_place(shell: Shell) -> None:
    shell.store("one")
    said = shell("export", "-", "--format", "jsonl")
    assert said.code == 2
    assert "name one, such as" in said.err
    assert not (shell.folder / "-").exists()


def test_every_option_takes_the_same_moments(shell: Shell) -> None:
    shell.store("one")
    assert moment("--since", "2026-03-01") == datetime(2026, 3, 1, tzinfo=UTC)
    assert moment("--since", "2026-03-01T09:00+02:00") == datetime(2026, 3, 1, 7, tzinfo=UTC)
    assert abs(moment("--since", "2w") - (datetime.now(UTC) - timedelta(weeks=2))) < timedelta(minutes=1)
    for words in (("export", "a.csv"), ("ceiling", "--lane", "cpu-torch"), ("revalidate",)):
        said = shell(*words, "--since", "yesterday")
        assert said.code == 2, words
        assert "--since yesterday: write a day" in said.err, words
        assert shell(*words, "--since", "7d").code in (0, 3), words
    for text in ("", "7 days", "2026-13-01"):
        with pytest.raises(UsageError, match=r"write a day|no such day"):
            moment("--since", text)


def test_a_defect_ends_as_a_system_that_failed_and_not_as_an_answer(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("receipts")

    shell.store("one")
    monkeypatch.setattr("receipts.plugins.exchange.export.export", broken)
    said = shell("export", "all.jsonl")
    assert said.code == 4
    assert "KeyError: 'receipts'" in said.err
    assert "a defect of the program" in said.err
