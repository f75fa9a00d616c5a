"""The Hugging Face Trainer: dictionaries without steps, quoted and bare numbers, hidden NaNs, its state document."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from receipts.ingest.literals import literal
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.ingest.source import Source
from receipts.readers.hf.trainer import HfTrainer, TrainerState

BANNER = (
    "***** Running training *****\n"
    "  Num examples = 1,000\n"
    "  Instantaneous batch size per device = 4\n"
    "  Total train batch size (w. parallel, distributed & accumulation) = 64\n"
    "  Gradient Accumulation steps = 2\n"
    "  Total optimization steps = 100\n"
)


def read(text: str) -> Reading:
    """The one reading of a log."""
    (found,) = scan([text.encode()], [HfTrainer])
    return found


def state(tmp_path: Path, text: str) -> Reading:
    """The reading of a state document."""
    path = tmp_path / "trainer_state.json"
    path.write_text(text, encoding="utf-8")
    assert TrainerState.claims(path.read_bytes())
    (found,) = TrainerState().read(Source(path, path.name))
    return found


def record(loss: str = "2.5", norm: str = "1.25") -> str:
    return f"{{'loss': {loss}, 'grad_norm': {norm}, 'learning_rate': 1e-05, 'epoch': 0.5}}"


def bar(step: int, total: int = 100) -> str:
    return f" {step}%|█▌        | {step}/{total} [00:27<44:53, 27.20s/it]"


def test_the_bar_drawn_again_below_a_record_tells_its_step() -> None:
    found = read(f"{BANNER}{bar(1)}\n{record()}\n{bar(1)}\n{bar(2)}\r      \r{record('2.25')}\n{bar(2)}\n")
    assert found.steps.numbers() == [1, 2]
    assert found.steps.get(2, "loss") == 2.25


def test_a_bar_of_another_total_tells_nothing() -> None:
    assert read(f"{BANNER}{record()}\n{bar(3, 40)}\n").steps.numbers() == []


def test_records_in_a_row_without_bars_have_no_steps() -> None:
    found = read(f"{record()}\n{record('2.25')}\n{record('2.0')}\n")
    assert len(found.steps) == 0
    assert found.diverged is False
    assert [remark.kind for remark in found.remarks] == ["missing"]


def test_logging_steps_number_the_records_of_a_whole_run() -> None:
    log = f"logging_steps=25,\n{BANNER}{record()}\n{record('2.25')}\n"
    assert read(log).steps.numbers() == [25, 50]
    resumed = log.replace("***** Running", "Continuing training from global step 300\n***** Running")
    assert read(resumed).steps.numbers() == []


def test_as_many_records_as_the_run_has_steps_are_one_a_step() -> None:
    banner = "***** Running training *****\n  Total optimization steps = 2\n"
    assert read(f"{banner}{record()}\n{record('2.25')}\n").steps.numbers() == [1, 2]
    assert not len(read(f"{banner}{record()}\n").steps)


def test_as_many_records_as_the_summary_has_steps_are_one_a_step() -> None:
    summary = "{'train_runtime': '5.003', 'train_steps_per_second': '0.5998', 'epoch': '1'}\n"
    assert read(f"{record()}\n{record()}\n{record('2.25')}\n{summary}").steps.numbers() == [1, 2, 3]
    assert not len(read(f"{record()}\n{record()}\n{summary}").steps)


def test_a_line_of_the_script_right_above_tells_the_step() -> None:
    found = read(f"[train] step=50/400 (12.5%) elapsed=8s\n{record()}\n")
    assert found.steps.numbers() == [50]


@pytest.mark.parametrize(
    "key",
    [
        "'step': 7",
        "'global_step/max_steps': '7/100'",
        "'steps[global_step/max_steps]': '7/100'",
        "'iteration': '7/100'",
        "'current_steps': 7",
    ],
)
def test_a_key_that_forks_add_tells_the_step(key: str) -> None:
    assert read(record()[:-1] + f", {key}}}\n").steps.numbers() == [7]


def test_quoted_numbers_of_version_5_are_numbers() -> None:
    line = "{'loss': '1.781', 'grad_norm': '15.97', 'learning_rate': '8.81e-05', 'epoch': '0.032', 'step': '3'}\n"
    steps = read(line).steps
    assert (steps.get(3, "loss"), steps.get(3, "grad_norm")) == (1.781, 15.97)


def test_a_loss_of_zero_beside_a_nan_norm_is_unknown_and_divergence() -> None:
    found = read(record("0.0", "nan")[:-1] + ", 'step': 9}\n")
    assert found.diverged is True
    assert found.steps.get(9, "loss") is None
    assert math.isnan(found.steps.get(9, "grad_norm") or 0.0)


def test_a_loss_of_zero_beside_a_finite_norm_is_a_loss() -> None:
    found = read(record("0.0", "0.01")[:-1] + ", 'step': 9}\n")
    assert (found.diverged, found.steps.get(9, "loss")) == (False, 0.0)


def test_an_infinite_norm_alone_is_an_overflow_and_no_divergence() -> None:
    assert read(record("9.5", "inf") + "\n").diverged is False


def test_the_banner_states_the_batch_and_the_ranks() -> None:
    values = {path: item.value for path, item in read(BANNER + record()).stated.items()}
    assert values == {
        "batch.micro_batch": 4,
        "batch.global_batch": 64,
        "batch.accumulation": 2,
        "parallelism.data": 8,
    }


def test_a_table_repeats_the_runtime_of_the_dictionary_above_it() -> None:
    log = (
        "{'train_runtime': 93784.129, 'train_samples_per_second': 1.5, 'train_loss': 2.0, 'epoch': 1.0}\n"
        "***** train metrics *****\n"
        "  total_flos    =   2GF\n"
        "  train_runtime = 1 day, 2:03:04.12\n"
        "  train_samples =  1234\n"
        "after it\n"
    )
    found = read(log)
    assert (found.timings["train_runtime"].samples, found.timings["train_runtime"].seconds) == (1, 93784.129)
    assert found.counters["train_samples"] == 1234
    assert found.counters["total_flos"] == 2 << 30


def test_two_runs_add_their_runtimes() -> None:
    timing = read("{'train_runtime': 10.0, 'epoch': 1}\n{'train_runtime': 5.5, 'epoch': 1}\n").timings["train_runtime"]
    assert (timing.samples, timing.seconds) == (2, 15.5)


def test_the_runtimes_of_ranks_are_one_runs() -> None:
    ends = [f"{{'train_runtime': {seconds}, 'epoch': 1.0}}\n" for seconds in (273.0148, 273.0144, 272.9369)]
    assert read("".join(ends)).timings["train_runtime"].samples == 1
    assert read(ends[0] + record() + "\n" + ends[2]).timings["train_runtime"].samples == 2


def test_a_rate_of_one_rank_is_a_contradiction() -> None:
    line = "{'train_runtime': 100.0, 'train_tokens_per_second': 1000.0, 'num_input_tokens_seen': 400000, 'epoch': 1}\n"
    (remark,) = read(line).remarks
    assert (remark.kind, "one rank of 4" in remark.text) == ("contradiction", True)


def test_a_dictionary_over_several_lines_gives_the_peak_from_the_trackers_deltas() -> None:
    log = (
        "metrics = {\n  'train_runtime': 5.0,\n  'before_init_mem_gpu': 1000,\n  'init_mem_gpu_alloc_delta': 24,\n"
        "  'train_mem_gpu_alloc_delta': -500,\n  'train_mem_gpu_peaked_delta': 4000\n}\nmore\n"
    )
    (row,) = read(log).memory
    assert (row.bytes_used, row.peak_bytes) == (524, 4524)


def test_the_state_document_gives_steps_losses_and_the_interval(tmp_path: Path) -> None:
    document = {
        "global_step": 20,
        "log_history": [
            {"epoch": 0.5, "grad_norm": 2.0, "learning_rate": 1e-5, "loss": 3.0, "step": 10},
            {"epoch": 0.5, "eval_loss": 2.9, "eval_runtime": 40.0, "step": 10},
            {"epoch": 1.0, "grad_norm": 1.0, "learning_rate": 0.0, "loss": 2.0, "step": 20},
            {"epoch": 1.0, "step": 20, "train_loss": 2.5, "train_runtime": 100.0},
        ],
        "logging_steps": 10,
        "train_batch_size": 4,
    }
    found = state(tmp_path, json.dumps(document, indent=2))
    assert found.steps.column("loss") == [3.0, 2.0]
    assert found.steps.interval == 10
    assert found.stated["batch.micro_batch"].value == 4
    assert (found.complete, found.diverged) == (True, False)


def test_a_state_that_is_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    text = '{\n "log_history": [\n  {"loss": 3.0, "step": 10},\n  {"loss": NaN, "step": 20},\n  {"loss": 2.0, "st'
    found = state(tmp_path, text)
    assert found.steps.numbers() == [10, 20]
    assert found.diverged is True
    assert [remark.kind for remark in found.remarks] == ["note", "broken"]


@pytest.mark.slow
def test_a_state_far_beyond_what_fits_in_one_document_is_read_whole(tmp_path: Path) -> None:
    entries = ",\n".join(
        f'    {{"epoch": 0.5, "loss": 1.5, "step": {step}, "x": "{"y" * 320}"}}' for step in range(1, 30_001)
    )
    found = state(tmp_path, '{\n  "log_history": [\n' + entries + '\n  ],\n  "logging_steps": 1\n}\n')
    assert len(found.steps) == 30_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{'a': nan, 'b': -inf}", {"a": math.nan, "b": -math.inf}),
        ('{"a": 5.000000e+08, "b": [1, 2,],}', {"a": 5e8, "b": [1, 2]}),
        (
            "{'a': torch.float16, 'b': device(type='cuda', index=0)}",
            {"a": "torch.float16", "b": "device(type='cuda', index=0)"},
        ),
        ("{'a': None, 'b': True, 'c': null, 'd': false}", {"a": None, "b": True, "c": None, "d": False}),
        ("{'a': 'it\\'s', 'b': {'c': (1, 'x')", {"a": "it's", "b": {"c": [1, "x"]}}),
    ],
)
def test_dictionaries_of_any_program_are_read_without_running_them(text: str, value: object) -> None:
    assert repr(literal(text)) == repr(value)


def test_memory_that_a_fork_logs_with_each_record_is_the_largest_peak_and_the_last_use() -> None:
    def record(used: float, peak: float) -> str:
        cells = (
            f"'memory_allocated (GB)': {used}, 'max_memory_allocated (GB)': {peak}, 'total_memory_available (GB)': 96.0"
        )
        return f"{{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1, {cells}}}\n"

    (row,) = read(record(3.0, 7.5) + record(4.0, 6.5)).memory
    assert (row.bytes_used, row.peak_bytes, row.bytes_limit) == (4 << 30, int(7.5 * 2**30), 96 << 30)


def test_a_slow_bar_right_above_a_record_tells_its_step() -> None:
    text = "  4%|#  | 2/50 [00:31<12:11, 15.24s/it]\n{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    later = "\n  8%|## | 4/50 [01:02<12:01, 15.31s/it]\n{'loss': 1.25, 'learning_rate': 1e-05, 'epoch': 0.2}\n"
    steps = read(text + later).steps
    assert steps.numbers() == [2, 4]
    assert steps.get(4, "loss") == 1.25


def test_a_bar_in_a_narrow_terminal_has_no_blocks() -> None:
    found = read(
        "  7% 14/200 [06:55<1:31:45, 29.60s/it]\nnoted\n" + record() + "\n  8% 15/200 [07:27<1:34:11, 30.55s/it]\n"
    )
    assert found.steps.numbers() == [15]


def test_a_quick_bar_above_a_record_may_be_of_an_earlier_step() -> None:
    record = "{'loss': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1}\n"
    bars = "  4%|#  | 17/500 [00:01<00:31, 15.24it/s]\n", "  4%|#  | 20/500 [00:01<00:31, 15.24it/s]\n"
    assert read(bars[0] + record + bars[1]).steps.numbers() == [20]


def test_a_bar_of_loading_is_no_step() -> None:
    found = read("Loading shards: 100%|###| 2/2 [00:03<00:00, 1.62s/it]\n{'loss': 1.5, 'epoch': 0.1}\n")
    assert found.steps.numbers() == []


def test_a_bar_of_writing_below_a_record_is_no_step() -> None:
    written = (
        "Writing model shards:   0%|  | 0/1 [00:00<?, ?it/s]\rWriting model shards: 100%|##| 1/1 [00:00<00:00, 449it/s]"
    )
    assert read(f"{record()}\n{written}\n").steps.numbers() == []
    assert read(f"{record()}\nTraining: {bar(3)}\n").steps.numbers() == [3]


def test_a_notebooks_table_is_a_record_a_row() -> None:
    found = read(
        "[30/30 07:58, Epoch 0/1]\nStep\tTraining Loss\tValidation Loss\n10\t2.500000\t2.6\n20\tnan\tNo log\ndone\n"
    )
    assert found.steps.numbers() == [10, 20]
    assert found.steps.get(10, "loss") == 2.5
    assert found.diverged


def test_a_banner_may_hold_two_settings_a_line() -> None:
    banner = "Batch size per device = 3 | Gradient accumulation steps = 4\n"
    banner += "Total batch size (3 x 4 x 2) = 24 | Total steps = 60\n"
    stated = read(banner + "{'loss': 1.5, 'epoch': 0.1}\n").stated
    assert stated["batch.micro_batch"].value == 3
    assert stated["batch.accumulation"].value == 4
    assert stated["batch.global_batch"].value == 24
    assert stated["parallelism.data"].value == 2


def test_a_tasks_number_before_each_line_of_a_dictionary_is_no_key() -> None:
    lines = [
        "metrics = {",
        "    'train_runtime': 12.5, ",
        "    'train_mem_gpu_peaked_delta': 1024, ",
        "    'epoch': 1.0",
        "}",
    ]
    assert read("".join(f"3: {row}\n" for row in lines)).timings["train_runtime"].seconds == 12.5


def test_a_step_before_a_dictionary_on_its_line_is_its_step() -> None:
    assert read("[train] step=30/90 (33.3%) eta=61s{'loss': '1.5', 'epoch': '0.1'}\n").steps.get(30, "loss") == 1.5


HEADS = "<tr>\n <th>Step</th>\n <th>Training Loss</th>\n <th>Validation Loss</th>\n</tr>\n"


def test_rows_of_a_notebooks_html_are_steps() -> None:
    rows = "".join(
        f"<tr>\n <td>{step}</td>\n <td>{loss}</td>\n <td>9.5</td>\n</tr>\n" for step, loss in ((10, 2.5), (20, 2.25))
    )
    found = read(f"<table>\n{HEADS}{rows}</table>\n<td>30</td>\n")
    assert (found.steps.numbers(), found.steps.column("loss")) == ([10, 20], [2.5, 2.25])


def test_html_on_one_line_is_the_same_table() -> None:
    found = read(f"<table>{HEADS}<tr><td>10</td><td>2.5</td><td>9.5</td></tr></table>".replace("\n", "\\n"))
    assert found.steps.column("loss") == [2.5]


def test_a_page_with_other_tables_is_no_training() -> None:
    assert not scan([b"<tr><th>Step</th><th>Price</th></tr>\n<tr><td>10</td><td>2.5</td></tr>\n"], [HfTrainer])


def test_a_model_card_gives_losses_and_sizes() -> None:
    card = (
        "- train_batch_size: 8\n- gradient_accumulation_steps: 5\n- total_train_batch_size: 160\n\n"
        "| Training Loss | Epoch | Step | Validation Loss |\n|:-------------:|:-----:|:----:|:---------------:|\n"
        "| No log        | 1.0   | 130  | 3.1166          |\n| 1.25          | 2.0   | 260  | 2.5             |\n"
        "\n| Model | Step | Size |\n| a | 390 | 7 |\n"
    )
    found = read(card)
    assert (found.steps.numbers(), found.steps.column("loss")) == ([130, 260], [None, 1.25])
    sizes = ("batch.micro_batch", "batch.global_batch", "batch.accumulation", "parallelism.data")
    assert [found.stated[path].value for path in sizes] == [8, 160, 5, 4]


ECHO = "[INFO|2025-06-03 10:22:11] llamafactory.train.callbacks:143 >> "


def test_a_record_that_llama_factory_said_before_is_one_record() -> None:
    bars = [f" 10%|█  | {step}/100 [01:02<09:21,  6.24s/it]" for step in (10, 20)]
    text = f"{bars[0]}{record()}{bars[0]}{ECHO}{record('2.25')}\n{bars[1]}{record('2.25')}{bars[1]}\n"
    found = read(ECHO + record() + "\n" + text)
    assert (found.steps.numbers(), found.steps.column("loss")) == ([10, 20], [2.5, 2.25])
    assert not found.remarks


def test_records_that_only_llama_factory_said_are_read() -> None:
    assert read(f"{ECHO}{record()}\n{ECHO}{record('2.25', 'nan')}\n").diverged is True


def test_what_llama_factory_said_is_known_on_a_page_of_html() -> None:
    echo = ECHO.replace(">", "&gt;")
    bars = [f" 10%|█  | {step}/100 [01:02<09:21,  6.24s/it]" for step in (10, 20)]
    found = read(f"{echo}{record()}\n{bars[0]}{record()}{bars[0]}{echo}{record('2.25')}\n{bars[1]}{record('2.25')}\n")
    assert (found.steps.numbers(), found.steps.column("loss")) == ([10, 20], [2.5, 2.25])


def test_a_bar_that_was_drawn_again_below_a_record_is_not_the_next_ones() -> None:
    bar = " 20%|██        | 20/100 [01:02<04:10,  3.13s/it]\n"
    found = read(f"{bar}{record()}\n{bar}{{'loss': 9.5, 'grad_norm': 2.4, 'learning_rate': 1e-05, 'epo")
    assert found.steps.column("loss") == [2.5]


def test_a_step_said_behind_a_record_on_its_line_is_the_next_ones() -> None:
    found = read(f"{record()}global_step: 20\n{record('2.25')}\n")
    assert found.steps.get(20, "loss") == 2.25


def test_a_dictionary_that_a_terminal_broke_within_a_figure_is_one() -> None:
    figures = "'loss': 2.7022, 'grad_norm': 10.0127\n916, 'learning_r\nate': 2.8e-06, 'epoch': 0.04"
    found = read(f"{{{figures}}}\n  4%|4 | 10/250 [00:22<08:31,  2.13s/it]\n")
    assert found.steps.get(10, "grad_norm") == 10.0127916


def test_swift_logs_the_largest_pool_with_each_record() -> None:
    text = "{'loss': 2.5, 'grad_norm': 1.5, 'learning_rate': 1e-05, 'epoch': 0.1, 'memory(GiB)': %s}\n"
    (row,) = read(text % 10.5 + text % 12.25 + text % 11).memory
    assert row.peak_reserved_bytes == round(12.25 * 2**30)


@pytest.mark.parametrize(
    ("keys", "mib"),
    [
        (("memory/max_mem_allocated(gib)", "memory/device_mem_reserved(gib)"), 1024),
        (("memory/max_allocated (GiB)", "memory/device_reserved (GiB)"), 1024),
        (("step_peak_memory_allocated_MB", "step_peak_memory_reserved_MB"), 1),
    ],
)
def test_forks_name_what_tensors_and_what_the_pool_needed(keys: tuple[str, str], mib: int) -> None:
    logged = record()[:-1] + f", '{keys[0]}': 25.5, '{keys[1]}': 30.25}}"
    (row,) = read(f"{BANNER}{bar(1)}\n{logged}\n{bar(1)}\n").memory
    assert (row.peak_bytes, row.peak_reserved_bytes) == (25.5 * mib * 2**20, 30.25 * mib * 2**20)


def test_a_banner_of_the_script_is_not_the_trainers() -> None:
    lines = ["***** Running training *****", "  Total train batch size (w. parallel, distributed & accumulation) = 8"]
    (reading,) = scan(["".join(f"03/02/2026 10:00:00 - INFO - __main__ - {line}\n" for line in lines).encode()])
    assert (reading.source, reading.stated["batch.global_batch"].value) == ("accelerate-script", 8)
