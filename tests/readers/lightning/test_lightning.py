"""Lightning's ``metrics.csv``."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

_TABLE = (
    "epoch,step,train/batches,train/time,train_loss_epoch,train_loss_step,val_loss\n"
    "0,9,10,5.0,,,\n0,9,,,,2.5,\n0,19,20,9.0,,,\n0,19,,,,2.25,\n0,19,,,,,3.5\n0,19,,,2.4,,\n1,29,30,13.0,,,\n1,29,,,,2.0,\n"
)


def _reading(folder: Path, text: str) -> Reading:
    path = folder / "metrics.csv"
    path.write_text(text)
    (reading,) = read(path).readings
    assert reading.source == "lightning-csv"
    return reading


def test_steps_have_their_losses_and_the_mean_times_between_two_records(tmp_path: Path) -> None:
    reading = _reading(tmp_path, _TABLE)
    assert reading.steps.numbers() == [9, 19, 29]
    assert reading.steps.column("loss") == [2.5, 2.25, 2.0]
    assert reading.steps.column("step_seconds") == [None, 0.4, 0.4]
    assert reading.steps.interval == 10
    assert reading.diverged is False


@pytest.mark.parametrize("word", ["nan", "inf"])
def test_a_loss_that_is_not_finite_is_seen(tmp_path: Path, word: str) -> None:
    assert _reading(tmp_path, f"{_TABLE}1,39,,,,{word},\n").diverged


def test_steps_of_an_epoch_are_none_of_the_run(tmp_path: Path) -> None:
    reading = _reading(tmp_path, "epoch,step,train_loss,val_loss\n0,0,2.5,\n0,1,2.4,\n1,0,2.3,\n")
    assert not len(reading.steps)
    assert "not counted over the whole run" in reading.remarks[0].text


@pytest.mark.parametrize("head", ["epoch,step,iter,loss", "epoch,step,val_loss", "epoch,train_loss"])
def test_other_columns_are_no_table_of_steps(tmp_path: Path, head: str) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(f"{head}\n" + "0,1,2,3\n" * 3)
    assert read(path).readings == ()
