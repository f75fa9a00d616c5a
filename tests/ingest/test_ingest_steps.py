"""Steps of one launch: durations, averages, ranks, attempts, losses."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from ingest_evidence import at, file, ingested, reading, stepping, told
from receipts.ingest.reading import Reading
from receipts.judging.rule import Case
from receipts.judging.rulebook import builtin
from receipts.metrics import Launch, get
from receipts.receipt import Document, parse

DURATIONS = "measurement.step_durations_seconds"


def test_a_log_of_every_step_gives_every_duration_in_order(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([3.0, 1.0, 1.25])))
    assert at(found, DURATIONS) == [3.0, 1.0, 1.25]


def test_averages_over_ten_steps_are_no_durations(tmp_path: Path) -> None:
    averages = stepping([1.0, 2.0, 3.0], first=10, every=10)
    averages.steps.interval = 10
    found = ingested(file(tmp_path, averages))
    assert at(found, DURATIONS) is None
    assert at(found, "measurement.steps") == 30
    assert at(found, "measurement.stated.statistic") == "mean"
    assert at(found, "measurement.stated.step_seconds") == pytest.approx(2.0)
    assert "average over 10 steps" in told(found)


def test_the_rate_of_averages_is_that_of_their_mean_time(tmp_path: Path) -> None:
    averages = stepping([1.0, 3.0], every=10, tokens_per_second=[300.0, 100.0])
    averages.steps.interval = 10
    found = ingested(file(tmp_path, averages))
    assert at(found, "measurement.stated.tokens_per_second") == pytest.approx(150.0)


def test_every_tenth_step_alone_is_a_sample_and_no_mean(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0, 1.0, 4.0], every=10)))
    assert at(found, "measurement.stated.statistic") == "median"
    assert at(found, "measurement.stated.step_seconds") == 1.0


def test_one_lost_line_among_a_hundred_is_told_and_the_rest_stands(tmp_path: Path) -> None:
    steps = stepping([1.0] * 50)
    for number in range(52, 101):
        steps.steps.put(number, {"step_seconds": 1.0})
    found = ingested(file(tmp_path, steps))
    assert len(at(found, DURATIONS)) == 99
    assert "1 of 100 steps have no time" in told(found)


def test_a_log_with_half_of_its_steps_lost_keeps_no_durations(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0, None] * 20)))
    assert at(found, DURATIONS) is None
    assert at(found, "measurement.stated.step_seconds") == 1.0


def test_durations_follow_from_tokens_a_second_where_a_log_prints_rates_alone(tmp_path: Path) -> None:
    config = reading("torchtitan", hardware__chips=4, batch__global_batch=8, batch__sequence_length=1000)
    rates = stepping([None] * 3, "torchtitan", tokens_per_second_per_chip=[1000.0, 2000.0, 2000.0])
    found = ingested(file(tmp_path, config, rates))
    assert at(found, DURATIONS) == [2.0, 1.0, 1.0]
    assert "follow from 8,000 tokens a step" in told(found)


def test_tokens_a_second_of_every_step_are_kept_where_nothing_tells_the_batch(tmp_path: Path) -> None:
    """They are the rate of the launch, with its steps and without."""
    rates = [1000.0 + step % 3 for step in range(40)]
    for seconds in ([None] * 40, [2.0] * 40):
        found = ingested(file(tmp_path, stepping(seconds, tokens_per_second=rates)), hardware__chips=4)
        assert at(found, "measurement.step_tokens_per_second") == rates
        assert at(found, "measurement.tokens_per_step") is None
        launch = Launch(parse(Document(found.raw, "test")), builtin().lanes.of("unlisted"))
        reading = launch.read(get("tokens_per_second"))
        assert (reading.source, reading.value) == ("steps", pytest.approx(1001.0, rel=0.001))
        assert (launch.read(get("step_seconds")).value is None) == (seconds[0] is None)


def test_rates_of_one_chip_are_kept_where_the_chips_are_known(tmp_path: Path) -> None:
    each = stepping([None] * 12, tokens_per_second_per_chip=[100.0] * 12)
    assert at(ingested(file(tmp_path, each), hardware__chips=4), "measurement.step_tokens_per_second") == [400.0] * 12
    assert at(ingested(file(tmp_path, each)), "measurement.step_tokens_per_second") is None


def test_flags_stand_at_positions_and_not_at_step_numbers(tmp_path: Path) -> None:
    steps = stepping([9.0, 1.0, 1.0, 5.0], first=100)
    steps.not_steady = {100: "compile", 103: "checkpoint"}
    assert at(ingested(file(tmp_path, steps)), "measurement.step_flags") == {"compile": [0], "checkpoint": [3]}


def test_a_time_that_cannot_be_is_flagged_and_told(tmp_path: Path) -> None:
    steps = stepping([1.0, 0.003, 1.0])
    steps.not_steady = {2: "impossible"}
    found = ingested(file(tmp_path, steps))
    assert at(found, "measurement.step_flags") == {"warmup": [1]}
    assert "step 2: impossible" in told(found)


def test_tokens_a_step_are_batch_times_length(tmp_path: Path) -> None:
    config = reading("megatron-config", batch__sequence_length=4096)
    found = ingested(file(tmp_path, config, stepping([1.0, 1.0], global_batch=64.0)))
    assert at(found, "batch.global_batch") == 64
    assert at(found, "measurement.tokens_per_step") == 64 * 4096


def test_a_batch_that_grows_leaves_tokens_a_step_unstated(tmp_path: Path) -> None:
    config = reading("megatron-config", batch__sequence_length=4096)
    found = ingested(file(tmp_path, config, stepping([1.0, 1.0], global_batch=[32.0, 64.0])))
    assert at(found, "measurement.tokens_per_step") is None
    assert "moves over the steps" in told(found)


def test_ranks_give_the_slowest_time_of_a_step_and_the_skew(tmp_path: Path) -> None:
    files = [
        file(tmp_path, stepping(times, loss=2.0), name=f"r{rank}.log")
        for rank, times in enumerate(([1.0, 1.0], [1.25, 1.0]))
    ]
    found = ingested(*files)
    assert at(found, DURATIONS) == [1.25, 1.0]
    assert at(found, "measurement.health.rank_skew") == pytest.approx(0.1)


def test_what_each_attempt_ran_stands_beside_the_steps_that_it_gave(tmp_path: Path) -> None:
    first, second = stepping([1.0] * 12, loss=3.0), stepping([1.0] * 12, first=9, loss=2.0)
    first.state("wheels.torch", "2.9.0", line=1)
    second.state("wheels.torch", "2.9.1", line=1)
    later = "2026-03-02 12:00:00 begin\n"
    found = ingested(file(tmp_path, first, name="a.log"), file(tmp_path, second, name="b.log", text=later))
    assert at(found, "run.parts") == [
        {"start_step": 1, "launch": "a.log", "ran": {"wheels.torch": "2.9.0"}},
        {"start_step": 9, "launch": "b.log", "ran": {"wheels.torch": "2.9.1"}},
    ]


def test_a_later_attempt_stands_from_its_first_step_on(tmp_path: Path) -> None:
    first = file(tmp_path, stepping([1.0] * 10), name="a.log", text="2026-03-02 09:00:00 begin\n")
    second = file(tmp_path, stepping([2.0] * 10, first=8), name="b.log", text="2026-03-02 12:00:00 begin\n")
    found = ingested(second, first)
    assert at(found, DURATIONS) == [1.0] * 7 + [2.0] * 10
    assert "3 later steps of a.log were lost" in told(found)


def test_two_launches_are_told_as_such(tmp_path: Path) -> None:
    first = file(tmp_path, stepping([1.0] * 3), name="a.log", text="2026-03-02 09:00:00 begin\n")
    second = file(tmp_path, stepping([2.0] * 3), name="b.log", text="2026-03-03 09:00:00 begin\n")
    found = ingested(first, second)
    assert [item.path for item in found.contradictions] == ["run.launch"]


def test_another_source_of_the_same_steps_that_disagrees_is_told(tmp_path: Path) -> None:
    found = ingested(
        file(tmp_path, stepping([1.0] * 5)),
        file(tmp_path, stepping([1000.0] * 4, "wandb"), name="history.json"),
    )
    assert at(found, DURATIONS) == [1.0] * 5
    (item,) = found.contradictions
    assert "1e+03 times" in item.what


def test_a_file_that_begins_anew_is_told_as_two_runs_and_one_that_goes_on_is_not(tmp_path: Path) -> None:
    for first, two in ((1, True), (3, False)):
        reading = stepping([1.0] * 5)
        for step in range(first, 6):
            reading.steps.put(step, {"step_seconds": 1.0})
        shown = ingested(file(tmp_path, reading))
        assert any("begins at step" in item.what for item in shown.contradictions) is two


def test_a_tracker_that_goes_back_names_no_step_to_which(tmp_path: Path) -> None:
    reading = stepping([1.0] * 5, "wandb")
    reading.steps.restarts = 1
    assert not ingested(file(tmp_path, reading)).contradictions


def test_a_last_loss_that_is_nan_is_the_outcome(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0] * 3, loss=[2.0, math.nan, math.nan])))
    assert at(found, "run.outcome") == "nan"
    assert at(found, "measurement.loss") == {"first": 2.0, "finite": False, "steps": [1], "values": [2.0]}


def test_a_divergence_that_the_source_hides_is_no_finite_loss(tmp_path: Path) -> None:
    steps = stepping([1.0] * 3, loss=[2.0, 0.0, 0.0])
    steps.diverged = True
    found = ingested(file(tmp_path, steps))
    assert at(found, "run.outcome") == "nan"
    assert at(found, "measurement.loss.finite") is False


def test_a_loss_that_recovers_is_not_finite_and_no_failure(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0] * 3, loss=[2.0, math.inf, 1.9])))
    assert at(found, "run.outcome") == "unknown"
    assert at(found, "measurement.loss.finite") is False


@pytest.mark.slow
def test_more_steps_than_a_receipt_holds_are_cut_and_told(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0] * 100_050)))
    assert len(at(found, DURATIONS)) == 100_000
    assert "the first 100,000 are kept" in told(found)


def test_figures_that_are_no_numbers_become_none_of_the_receipts(tmp_path: Path) -> None:
    speeds = [40.0, math.nan, 40.0]
    steps = stepping([1.0, math.inf, 1.0], tflops_per_second_per_chip=speeds, grad_norm=math.inf)
    found = ingested(file(tmp_path, steps))
    assert at(found, DURATIONS) == [1.0, 1.0]
    assert at(found, "measurement.stated.tflops_per_second_per_chip") == 40.0
    assert at(found, "measurement.gradient_norm") == {"finite": False}


def test_a_batch_without_bounds_is_none(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0] * 3, global_batch=math.inf)))
    assert at(found, "batch") is None


def test_steps_with_absurd_numbers_are_read_without_harm(tmp_path: Path) -> None:
    steps = stepping([1.0, 1.0])
    steps.steps.put(10**30, {"step_seconds": 1e300, "loss": -1e300})
    found = ingested(file(tmp_path, steps))
    assert at(found, DURATIONS) is None
    assert at(found, "run.outcome") == "unknown"


def test_the_rate_of_an_even_number_of_steps_is_that_of_their_median_time(tmp_path: Path) -> None:
    speeds = [0.011, 0.012, 0.0141, 0.02]
    steps = stepping([1.2 / speed for speed in speeds], tflops_per_second_per_chip=speeds)
    found = ingested(file(tmp_path, steps))
    middle = sum(sorted(at(found, DURATIONS))[1:3]) / 2
    assert at(found, "measurement.stated.tflops_per_second_per_chip") == pytest.approx(1.2 / middle, rel=1e-5)


def test_what_ingest_computes_of_printed_digits_is_as_exact_as_they_are(tmp_path: Path) -> None:
    config = reading("maxtext", hardware__chips=1, measurement__tokens_per_step=256)
    config.state("measurement.flops_per_step_per_chip", 0.65e9, "0.00065")
    seconds = [0.059453, 0.052567, 0.047604, 0.048362]
    steps = stepping(seconds, "maxtext", tflops_per_second_per_chip=[round(0.00065 / item, 3) for item in seconds])
    found = ingested(file(tmp_path, config, steps))
    parsed = parse(Document(found.raw, "test"))
    lane = builtin().lanes.get("unlisted")
    rule = builtin().rules.get("R102")
    assert not rule.missing(case := Case(Launch(parsed, lane), lane))
    assert not list(rule.judge(case))


def test_a_rate_in_three_digits_and_a_letter_is_stated_in_three_digits(tmp_path: Path) -> None:
    steps = reading("nanotron")
    steps.steps.digits = 3
    for step in range(1, 5):
        steps.steps.put(step, {"tokens_per_second": 22_800.0, "tokens_per_second_per_chip": 11_000.0, "loss": 2.5})
    rates = at(ingested(file(tmp_path, steps)), "measurement.stated")
    assert (rates["tokens_per_second"], rates["tokens_per_second_stated"]) == (22_800.0, "228e2")
    assert rates["tokens_per_second_per_chip_stated"] == "110e2"


def test_a_rate_that_some_steps_lack_is_of_other_steps_than_the_receipt_has(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0, 1.0, 3.0], tflops_per_second_per_chip=[40.0, 40.0, None])))
    assert at(found, "measurement.stated") is None


@pytest.mark.parametrize(
    ("numbers", "steps"),
    [((1, 10, 20, 30), 30), ((10, 20, 30), 30), ((0, 10, 20), 21), ((1001, 1010, 1020), 20), ((9, 19, 29), 30)],
)
def test_a_first_step_that_is_printed_alone_stands_for_itself(
    tmp_path: Path, numbers: tuple[int, ...], steps: int
) -> None:
    made = Reading("torchtitan", records=1)
    for number in numbers:
        made.steps.put(number, {"step_seconds": 0.5})
    assert at(ingested(file(tmp_path, made)), "measurement.steps") == steps


def maxtext(weights: int = 65_536) -> Reading:
    """Steps of two seconds on eight chips, 8,192 tokens each, as MaxText prints them; no configuration."""
    made = stepping([2.0] * 20, source="maxtext", tokens_per_second_per_chip=4096.0)
    made.state("measurement.target_tokens_per_step", weights)
    return made


def test_the_rates_of_a_log_oppose_a_wrong_count_of_chips(tmp_path: Path) -> None:
    wrong = {"hardware__chips": 16, "batch__global_batch": 16, "batch__sequence_length": 4096}
    found = ingested(file(tmp_path, maxtext()), **wrong)
    (item,) = (item for item in found.contradictions if item.path == "measurement.tokens_per_step")
    assert "8,192 tokens a step of one chip" in item.what
    assert at(found, "measurement.stated.tokens_per_second_per_chip") == 4096
    right = ingested(file(tmp_path, maxtext()), **{**wrong, "hardware__chips": 8})
    assert not right.contradictions
    assert at(right, "measurement.stated") is None


def test_targets_oppose_a_batch_that_is_too_small(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, maxtext()), batch__global_batch=4, batch__sequence_length=4096)
    assert "counts 65,536 targets a step" in found.contradictions[0].what


def test_targets_that_the_rates_count_too_are_the_tokens(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, maxtext()), hardware__chips=8), "measurement.tokens_per_step") == 65_536
    assert at(ingested(file(tmp_path, maxtext(9_000)), hardware__chips=8), "measurement.tokens_per_step") is None


@pytest.mark.parametrize("rate", ["tokens_per_second", "tokens_per_second_per_chip"])
def test_a_printed_rate_of_tokens_is_stated_where_the_durations_do_not_give_it(tmp_path: Path, rate: str) -> None:
    ingest = ingested(file(tmp_path, stepping([2.0] * 4, **{rate: 4096.0})))
    assert at(ingest, f"measurement.stated.{rate}") == 4096
    assert at(ingest, DURATIONS) == [2.0] * 4


def test_one_rate_of_tokens_is_stated_because_each_is_rounded_for_itself(tmp_path: Path) -> None:
    rates = {"tokens_per_second": 22_900.0, "tokens_per_second_per_chip": 11_400.0}
    ingest = ingested(file(tmp_path, stepping([2.0] * 4, **rates)))
    assert at(ingest, "measurement.stated.tokens_per_second") == 22_900
    assert at(ingest, "measurement.stated.tokens_per_second_per_chip") is None


def test_a_batch_that_moves_leaves_the_printed_rates_unstated(tmp_path: Path) -> None:
    config = reading("megatron-config", batch__global_batch=8, batch__sequence_length=128)
    moving = stepping([2.0] * 4, global_batch=[4.0, 8.0, 8.0, 8.0], tokens_per_second=512.0)
    ingest = ingested(file(tmp_path, config, moving))
    assert at(ingest, "measurement.stated.tokens_per_second") is None
