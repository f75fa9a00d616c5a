"""Progress bars: the time of a step by what a bar says has elapsed, and which bar is the training's."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import at, told
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.ingest.reading import IntervalMeans
from receipts.ingest.scan import scan

STEP = "measurement.stated.step_seconds"


def clock(seconds: int) -> str:
    return (
        f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
        if seconds >= 3600
        else (f"{seconds // 60:02d}:{seconds % 60:02d}")
    )


def bar(count: int, of: int, seconds: int, title: str = "", rate: str = "9.99s/it", after: str = "") -> str:
    return f"{title}{100 * count // of:3d}%|██    | {count}/{of} [{clock(seconds)}<1:00:00, {rate}{after}]\n"


def means(text: str) -> IntervalMeans | None:
    return next((item.means for item in scan([text.encode()]) if item.source == "progress-bar"), None)


def ingest(folder: Path, text: str) -> Ingested:
    (path := folder / "run.log").write_text(text)
    return assemble([read(path)], Options())


def test_elapsed_times_count_and_not_the_smoothed_rate(tmp_path: Path) -> None:
    text = "".join(bar(step, 900, 7000 + 30 * (step - 400)) for step in range(400, 404))
    found = ingest(tmp_path, text)
    assert at(found, STEP) == 30.0
    assert at(found, "measurement.steps") == 3
    assert at(found, "run.outcome") == "unknown"


def test_long_bars_give_means_over_intervals_that_the_clock_can_tell() -> None:
    series = means("".join(bar(step, 900, 10 * step) for step in range(101)))
    assert series is not None
    assert set(series.seconds) == {10.0}
    assert set(series.steps) == {5}


def test_bars_of_other_loops_are_none_of_the_training(tmp_path: Path) -> None:
    text = bar(0, 50, 0) + bar(10, 50, 1000, after=", loss=2.5")
    others = bar(0, 900, 0, "Map: ") + bar(900, 900, 4000, "Map: ") + bar(0, 20, 0) + bar(20, 20, 300)
    assert at(ingest(tmp_path, text + others), STEP) == 100.0


def test_a_bar_that_begins_anew_is_measured_from_there() -> None:
    first, resumed = bar(0, 90, 0) + bar(10, 90, 100), bar(10, 90, 0) + bar(20, 90, 300)
    series = means(first + resumed)
    assert series is not None
    assert sum(map(float.__mul__, series.seconds, map(float, series.steps))) == 400
    assert sum(series.steps) == 20


def test_a_single_bar_is_what_has_elapsed_unless_its_rate_is_another() -> None:
    alone = means(bar(100, 120, 500, rate="5.10s/it"))
    assert alone is not None
    assert alone.seconds == [5.0]
    assert means(bar(100, 120, 500, rate="50.0s/it")) is None
    assert means(bar(1, 300, 760, rate="760.27s/it")) is None


def test_bars_of_rich_and_of_keras_are_read() -> None:
    rich = means("Epoch 0/9 ━━━━ 10/200 0:00:20 • 0:06:20 0.50it/s\nEpoch 0/9 ━━━━ 60/200 0:02:00 • 0:04:40 0.50it/s\n")
    assert rich is not None
    assert rich.seconds == [2.0]
    keras = means(
        " 10/100 [==>.........] - ETA: 3:00 - 2s/step - loss: 2.5\n"
        " 60/100 [====>.......] - ETA: 1:00 - 2s/step - loss: 2.4\n"
    )
    assert keras is not None
    assert keras.seconds == [2.0]


def test_bars_without_a_total_and_of_batches_are_read() -> None:
    for unit, lines in (
        ("it", "Training: 120it [02:00,  1.01s/it, loss=2.5]\nTraining: 180it [04:00,  1.90s/it]\n"),
        ("batch", bar(20, 90, 20, rate="1.00s/batch") + bar(80, 90, 140, rate="1.90s/batch")),
    ):
        series = means(lines)
        assert series is not None, unit
        assert (series.seconds, series.steps) == ([2.0], [60])


def test_a_short_excerpt_is_timed_by_all_that_elapsed() -> None:
    short = means(bar(1317, 9000, 697, rate="1.87it/s") + bar(1321, 9000, 699, rate="1.90it/s"))
    assert short is not None
    assert (short.seconds, short.steps) == ([0.529145], [1321])
    resumed = means(bar(1317, 9000, 7, rate="1.87it/s") + bar(1321, 9000, 9, rate="1.90it/s"))
    assert resumed is not None
    assert resumed.seconds == [0.5]


def test_records_that_say_what_elapsed_time_their_steps_as_a_bar_does() -> None:
    factory = "".join(
        f'{{"current_steps": {at}, "total_steps": 90, "loss": 2.5, "epoch": 0.9, "elapsed_time": "{clock(6 * at)}"}}\n'
        for at in (10, 20, 30)
    )
    swift = "".join(
        f"{{'loss': 2.5, 'global_step/max_steps': '{at}/90', 'elapsed_time': '1h {at // 10}m {at % 10}s'}}\n"
        for at in (60, 85)
    )
    for text, wanted in ((factory, ([6.0], [20])), (swift, ([5.0], [25]))):
        series = means(text)
        assert series is not None
        assert (series.seconds, series.steps) == wanted


def test_a_failure_is_survived_where_bars_alone_go_on(tmp_path: Path) -> None:
    failed = "WARNING:root:CUDA out of memory. Tried to allocate 1.72 GiB (GPU 0; 10.76 GiB total capacity)\n"
    before = bar(2, 90, 20)
    assert at(ingest(tmp_path, before + failed + bar(2, 90, 20) + bar(9, 90, 90)), "run.outcome") == "unknown"
    assert at(ingest(tmp_path, before + failed + bar(2, 90, 20) + bar(3, 90, 30)), "run.outcome") == "oom"


def test_losses_stand_beside_the_timers_of_another_source(tmp_path: Path) -> None:
    log = "".join(
        f"[2025-09-15 14:48:{at},446] [INFO] [timer.py:264:stop] epoch=0/micro_step={at}/global_step={at}, "
        f"RunningAvgSamplesPerSec=10.1, CurrSamplesPerSec=10.2, MemAllocated=5.5GB, MaxMemAllocated=6.5GB\n"
        f"{{'loss': {at / 8}, 'grad_norm': 0.5, 'learning_rate': 1e-5, 'epoch': 0.1}}\n{bar(at, 90, 3 * at)}"
        for at in (10, 20)
    )
    found = ingest(tmp_path, log)
    assert at(found, "measurement.loss.steps") == [10, 20]
    assert at(found, "measurement.loss.values") == [1.25, 2.5]
    assert at(found, "measurement.gradient_norm.last") == 0.5


def test_a_log_that_times_its_steps_keeps_their_times(tmp_path: Path) -> None:
    steps = "".join(f"iter {step}: loss 2.5000, time 900.00ms, mfu 31.25%\n" for step in range(4))
    assert at(ingest(tmp_path, steps + bar(0, 9, 0) + bar(9, 9, 90)), STEP) is None


def test_timers_of_a_part_of_a_step_are_not_the_step(tmp_path: Path) -> None:
    head = "[2025-09-15 14:48:06,452] [INFO] [logging.py:107:log_dist] [Rank 0] time (ms) | "
    timers = head + "fwd: 10000.00 | bwd: 20000.00 | bwd_inner: 19000.00 | bwd_allreduce: 900.00 | step: 500.00\n"

    def log(each: int) -> str:
        return bar(0, 90, 0) + "".join(timers + bar(step, 90, each * step) for step in range(1, 5))

    part = ingest(tmp_path, log(100))
    assert at(part, "measurement.step_durations_seconds") is None
    assert set(at(part, "measurement.interval_means_seconds")) == {100.0}
    assert "they time a part of it" in told(part)
    assert "they time a part of it" not in told(ingest(tmp_path, log(31)))
