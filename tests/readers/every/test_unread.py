"""Lines that look like training steps in a form that no reader knows are said to be unread."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.evidence import read

FORMS = [
    "Epoch 0:  11%|#         | {}/18 [00:11<01:33, 58.2s/it, loss=10.2, v_num=7]\n",
    "{}/1875 [=>............................] - ETA: 9s - loss: 0.52 - accuracy: 0.84\n",
    "Epoch: 1/1, Iteration: {}/160, Training Loss: nan\n",
    "[step {}] 2:31<6:50 train/loss/total=1163 train/perf/step_time_s=0.342\n",
    "\x1b[32mupdate {}\x1b[0m policy_loss -0.25 kl 0.5\n",
    "{0}epoch:train:1-{0}00batch: iter_time=0.25, loss=3.5, train_time=2.5\n",
    "[2026-01-02 03:04:05,678 INFO] Step {}/2000; acc: 31.1; xent: 4.05; 5092/261 tok/s\n",
]


def unread(folder: Path, text: str) -> list[tuple[int, str]]:
    path = folder / "run.log"
    path.write_text(text, encoding="utf-8")
    return [(remark.place.line, remark.text) for remark in read(path).remarks if "no reader knows" in remark.text]


@pytest.mark.parametrize("form", FORMS)
def test_steps_of_an_unknown_form_are_named(form: str, tmp_path: Path) -> None:
    ((line, text),) = unread(tmp_path, "begin\n" + form.format(1) + form.format(2))
    assert line == 2
    assert "ingest-map.md" in text


def test_beside_a_failure_that_is_read_they_are_named_too(tmp_path: Path) -> None:
    failure = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    assert unread(tmp_path, FORMS[0].format(1) + FORMS[0].format(2) + failure)


@pytest.mark.parametrize(
    "text",
    [
        "iter 1: loss 4.25, time 562.00ms\niter 2: loss 4.20, time 560.00ms\n",
        "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\nstep 3 of 4: lossless\n",
        "Step 1: install it\nStep 2: start the run, and watch the loss\n",
        FORMS[0].format(1) * 3,
    ],
)
def test_what_is_read_or_names_no_loss_is_not(text: str, tmp_path: Path) -> None:
    assert not unread(tmp_path, text)


def test_beside_the_times_of_deepspeed_a_programs_own_losses_are_named(tmp_path: Path) -> None:
    timer = "[timer.py:260:stop] epoch=0/micro_step={0}/global_step={0}, RunningAvgSamplesPerSec=8.5, "
    timer += "CurrSamplesPerSec=8.25, MemAllocated=5.0GB, MaxMemAllocated=9.5GB\n"
    text = "".join(f"Epoch: 0, Step: {at}, Rank: 0, loss = 1.5\n" + timer.format(at) for at in (10, 20))
    ((line, _),) = unread(tmp_path, text)
    assert line == 1
