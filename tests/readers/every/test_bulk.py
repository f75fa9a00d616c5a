"""Taking lines out by their shape leaves the same reading as taking them one by one, whatever a log does between."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from receipts.ingest import scan as scanning
from receipts.ingest.reading import Reading
from receipts.ingest.record import Sieve
from receipts.ingest.scan import scan
from receipts.ingest.steps import FIELDS
from thorough import unless_thorough

pytestmark = pytest.mark.slow

LINES = 400
SEEDS = unless_thorough(range(1), range(4))
Line = Callable[[int, random.Random], str]


def clock(n: int) -> str:
    return f"{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}"


def odd(chance: random.Random, text: str) -> str:
    """A figure, or now and then what stands in its place where a run goes wrong."""
    return chance.choice(("nan", "inf", "-inf", "0.0", "1e999", "-1.5", "")) if chance.random() < 0.01 else text


def loss(n: int, chance: random.Random, form: str = ".5f") -> str:
    return odd(chance, format(2 + 5 / (n + 1) + chance.random() / 10, form))


def megatron(n: int, chance: random.Random) -> str:
    skipped = "1" if chance.random() < 0.01 else "0"
    lost = "" if chance.random() < 0.01 else f" lm loss: {loss(n, chance, '.6E')} |"
    return (
        f" [2026-03-02 {clock(n)}.512345] iteration {n:8d}/  900000 | consumed samples: {n * 64:12d} |"
        f" elapsed time per iteration (ms): {odd(chance, f'{800 + chance.random() * 9:.1f}')} |"
        f" throughput per GPU (TFLOP/s/GPU): {odd(chance, '412.3')} | learning rate: 3.000000E-04 |"
        f" global batch size:    64 |{lost} loss scale: 1.0 | grad norm: {odd(chance, '0.512')} |"
        f" number of skipped iterations:   {skipped} | number of nan iterations:   0 |"
    )


def megatron_of_a_rank(n: int, chance: random.Random) -> str:
    return f"[default7]:{megatron(n, chance)}"


def bridge(n: int, chance: random.Random) -> str:
    return (
        f"Step Time : {5 + n % 7 / 100:.2f}s GPU utilization: {400 + n % 9}.1MODEL_TFLOP/s/GPU\n"
        f" [2026-03-02 {clock(n)}] iteration {n:8d}/    5000 | consumed samples: {n * 32:12d} |"
        f" elapsed time per iteration (ms): {5000 + n % 7 * 10}.0 | learning rate: 3.000000E-04 |"
        f" global batch size: 32 | lm loss: {loss(n, chance, '.6E')} | loss scale: 1.0 | grad norm: 0.512 |"
        f" number of skipped iterations:   0 | number of nan iterations:   0 |"
    )


def megatron_deepspeed(n: int, chance: random.Random) -> str:
    return (
        f" iteration={n:8d}/  143051 | consumed_samples={n * 768:12d} | consumed_tokens={n * 768 * 4096:12d} |"
        f" elapsed_time_per_iteration_ms={18000 + n % 99}.{n % 10} | learning_rate=1.28e-04 | global_batch_size=  768 |"
        f" lm loss={loss(n, chance, '.6f')} | loss_scale=1.0 | grad_norm={odd(chance, '0.51')} | actual_seqlen= 4096 |"
        f" number_of_skipped_iterations=  0 | number_of_nan_iterations=  0 | samples_per_second=42.1 |"
        f" tokens_per_gpu_per_second_tgs=3594.9 | [LM]TFLOPs=31.07 |"
    )


def nemo(n: int, chance: random.Random) -> str:
    return (
        f"[NeMo I 2026-03-02 {clock(n)} nemo_logging:393] Training epoch {n // 200}, iteration {n % 200}/199 |"
        f" lr: 0.0003 | global_batch_size: 512 | global_step: {n} | reduced_train_loss: {loss(n, chance, '.4g')} |"
        f" train_step_timing in s: {odd(chance, f'{4 + chance.random():.3f}')} | consumed_samples: {n * 512}"
    )


def torchtitan(n: int, chance: random.Random) -> str:
    return (
        f"[rank0]:[titan] 2026-03-02 {clock(n)},512 - root - INFO - step: {n:2d}  loss: {loss(n, chance)}"
        f"  grad_norm: {odd(chance, '1.2345')}  memory: {90 + n % 5}.58GiB({60 + n % 5}.65%)"
        f"  tps: {odd(chance, f'{900 + n * 7:,}')}  tflops: {260 + n % 9}.41  mfu: 26.{n % 90 + 10}%"
    )


def torchtitan_in_colours(n: int, chance: random.Random) -> str:
    red, green, off = "\x1b[31m", "\x1b[32m", "\x1b[39m"
    return (
        f"[titan] 2026-03-02 {clock(n)},512 - root - INFO - {red}step: {n:2d}  {green}loss: {loss(n, chance)}"
        f"  \x1b[38;2;180;60;0mgrad_norm: {odd(chance, '1.2345')}  \x1b[33mmemory: 94.58GiB(67.65%)"
        f"  {off}tps: {24000 + n % 900:,}  \x1b[36mtflops: 260.41  \x1b[35mmfu: 26.{n % 90 + 10}%{off}"
    )


def torchtitan_of_ranks(n: int, chance: random.Random) -> str:
    """Eight ranks, whose lines come in any order and not always step by step."""
    order = chance.sample(range(8), 8)
    rows = [
        f"[rank{rank}]:[titan] 2026-03-02 {clock(n)},512 - root - INFO - step: {n:2d}  loss: {loss(n, chance)}"
        f"  grad_norm: 1.23  memory: {90 + rank}.58GiB(67.65%)  tps: {24000 + chance.randrange(900):,}  tflops: 260.41"
        f"  mfu: 26.{n % 90 + 10}%"
        for rank in order
    ]
    return "\n".join(rows[: 7 if chance.random() < 0.05 else 8])


def maxtext(n: int, chance: random.Random) -> str:
    return (
        f"completed step: {n}, seconds: {odd(chance, f'{3 + n % 5 / 1000:.3f}')}, TFLOP/s/device: 41{n % 9}.228,"
        f" Tokens/s/device: 5{n % 900 + 100}.482, total_weights: {1048576 + n % 2}, loss: {loss(n, chance, '.3f')},"
        f" perplexity: 8.412"
    )


def maxtext_by_absl(n: int, chance: random.Random) -> str:
    return f"I0302 {clock(n)}.103766 140050 metric_logger.py:265] {maxtext(n, chance)}"


def nanotron(n: int, chance: random.Random) -> str:
    return (
        f"03/02/2026 {clock(n)} [INFO|DP=0|PP=0|TP=0|node-07]: iteration: {n} / 900000 |"
        f" consumed_tokens: {n * 4.19 / 1000:.3g}B | elapsed_time_per_iteration_ms: {odd(chance, f'{500 + n % 9}')} |"
        f" tokens_per_sec: {chance.choice(('8.14M', '8.2M'))} | tokens_per_sec_per_gpu: {odd(chance, '127K')} |"
        f" global_batch_size: {chance.choice(('1.02K', '4.19M'))} | lm_loss: {loss(n, chance, '.3g')} | lr: 0.0003 |"
        f" model_tflops_per_gpu: 2{n % 90 + 10} | hardware_tflops_per_gpu: 2{n % 90 + 10} |"
        f" grad_norm: {odd(chance, '0.5')}"
    )


def deepspeed(n: int, chance: random.Random) -> str:
    return (
        f"[2026-03-02 {clock(n)},296] [INFO] [timer.py:264:stop] epoch=0/micro_step={n * 8}/global_step={n},"
        f" RunningAvgSamplesPerSec=12.{n % 9000 + 1000}, CurrSamplesPerSec={odd(chance, f'12.{n % 9000 + 1000}')},"
        f" MemAllocated={24 + n % 3}.42GB, MaxMemAllocated={61 + n // 100}.08GB"
    )


def deepspeed_with_progress(n: int, chance: random.Random) -> str:
    skipped = n // 500
    progress = (
        f"[2026-03-02 {clock(n)},290] [INFO] [logging.py:96:log_dist] [Rank 0] step={n}, skipped={skipped}, lr=[0.1]"
    )
    return f"{progress}, mom=[(0.9, 0.95)]\n{deepspeed(n, chance)}"


def hf_trainer(n: int, chance: random.Random) -> str:
    return (
        f"{{'loss': {loss(n, chance, '.4f')}, 'grad_norm': {odd(chance, '0.512')}, 'learning_rate': 2.9e-05,"
        f" 'epoch': {n / 9e3:.4f}}}"
    )


def hf_trainer_quoted(n: int, chance: random.Random) -> str:
    return (
        f"{{'loss': '{loss(n, chance, '.4g')}', 'grad_norm': '{odd(chance, '0.512')}', 'learning_rate': '2.9e-05',"
        f" 'epoch': '{n / 9e3:.4f}', 'step': {n}}}"
    )


def llm_c(n: int, chance: random.Random) -> str:
    return (
        f"step {n:4d}/19560 | loss {loss(n, chance, '.6f')} ({chance.random():+.2f}z)| norm {odd(chance, '0.5123')}"
        f" ({chance.choice(('+nan', '-0.12'))}z)| lr 6.00e-04 | {300 + n % 9}.11 ms |"
        f" {chance.choice(('54.3', '-100.0')) if n % 97 == 0 else '54.3'}% bf16 MFU | {1638400 + n} tok/s"
    )


def llm_c_file(n: int, chance: random.Random) -> str:
    return f"s:{n} trl:{loss(n, chance, '.4f')} lr:0.000600 norm:{odd(chance, '0.51')}"


def modded_nanogpt(n: int, chance: random.Random) -> str:
    return (
        f"step:{n}/1750 train_loss:{loss(n, chance, '.4f')} train_time:{n * 59 + chance.randrange(9)}ms"
        f" step_avg:{'nan' if n < 11 else '59.64'}ms"
    )


def plain_loop(n: int, chance: random.Random) -> str:
    return (
        f"iter {n}: loss {loss(n, chance, '.4f')}, time {130 + chance.random():.2f}ms, mfu {30 + chance.random():.2f}%"
    )


def t5x(n: int, chance: random.Random) -> str:
    return (
        f"I0302 {clock(n)}.250000 1 logging_writer.py:48] [{n * 100}] collection=train accuracy=0.51,"
        f" cross_ent_loss=17000.1, loss={loss(n, chance, '.1f')}, loss_per_nonpadding_target_token={loss(n, chance)},"
        f" timing/seconds={odd(chance, '51.2')}, timing/seqs=25600.0, timing/steps_per_second=1.953125,"
        f" timing/target_tokens_per_second=112000.5, timing/target_tokens_per_second_per_core=14000.1"
    )


def dllogger(n: int, chance: random.Random) -> str:
    return (
        f'DLLL {{"timestamp": "17274864{n % 90 + 10}.25", "elapsedtime": "{n}.5", "type": "LOG", "step": {n},'
        f' "data": {{"train_loss": {loss(n, chance)},'
        f' "grad_norm": {odd(chance, "0.512")}, "tflops_per_gpu": {250 + n % 9}.5}}}}'
    )


def loop_of_a_table(n: int, chance: random.Random) -> str:
    return (
        f"2026-03-02 {clock(n)},123 INFO pipeline.py:663 in record_current_batch_training_metrics --"
        f" tflops={odd(chance, f'{180 + chance.random():.9f}')} step={n} loss={loss(n, chance)}"
        f" tgs (tokens/gpu/second)={3900 + n % 90}.25 tgs/last_tgs_1=3917.97 lr=6e-07 micro_num=4"
    )


def json_loop(n: int, chance: random.Random) -> str:
    return f'{{"step": {n}, "loss": {2 + chance.random():.4f}, "step_time_s": {0.5 + chance.random() / 9:.4f}}}'


DIALECTS: tuple[Line, ...] = (
    *(megatron, megatron_of_a_rank, bridge, megatron_deepspeed, nemo, torchtitan, torchtitan_in_colours),
    *(torchtitan_of_ranks, maxtext, maxtext_by_absl, nanotron, deepspeed, deepspeed_with_progress, hf_trainer),
    *(hf_trainer_quoted, llm_c, llm_c_file, modded_nanogpt, plain_loop, t5x, dllogger, loop_of_a_table),
)
# What stands between step lines: nothing to any reader, or something to one of them.
BETWEEN = (
    "",
    "UserWarning: use_reentrant is not stated",
    "[Rank 7] (after 10 iterations) memory (MB) | allocated: 1.5 | max allocated: 2.5 | reserved: 3.5",
    "[after dataloaders are built] datetime: 2026-03-02 09:00:00",
    "[before the start of training step] datetime: 2026-03-02 09:00:00",
    "ActivityProfilerController: CUPTI profiling started",
    "[titan] 2026-03-02 09:00:00,512 - root - INFO - Saving the checkpoint (or staging if async is enabled).",
    "[rank3]:[titan] 2026-03-02 09:00:00,512 - root - INFO - Training starts at step 40.",
    "[titan] 2026-03-02 09:00:00,512 - root - WARNING - 2 CUDA memory allocation retries.",
    "Slice down event detected, restarting",
    "Restoring checkpoint from gs://bucket/50",
    "Restored all states from the checkpoint at /nemo/50",
    "saved a checkpoint at step 120",
    "eval metrics after step: 99, loss=2.345, total_weights=1048576",
    "[rank0]: Clearing the previous training stage",
    "Memory usage: 100.00MiB. Peak allocated 200.00MiB Peak reserved: 300.00MiB",
    "[2026-03-02 09:00:00,296] [INFO] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: 65536, reducing to 32768",
    "  1%|▏         | 12/900 [00:10<12:00,  1.2it/s]",
    "{'eval_loss': 2.5, 'eval_runtime': 12.5, 'eval_samples_per_second': 80.0, 'epoch': 0.5}",
    "{'train_runtime': 100.5, 'train_samples_per_second': 20.1, 'train_loss': 2.345, 'epoch': 1.0}",
    "val loss 3.2781",
    "step:125/1750 val_loss:4.9 train_time:7300ms step_avg:58.4ms",
    "Finished XLA compilation of jit(train_step) in 12.500000000 sec",
    "W0302 09:00:00.266411 21084 guard_lib.cc:140] device-to-host transfer: aval=ShapedArray(float32[])",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.1 GiB",
)


def log(line: Line, seed: int) -> bytes:
    """A log of one dialect that restarts, wraps, glues, overwrites itself, and is interrupted by other lines."""
    chance = random.Random(f"{line.__name__} {seed}")
    noise = chance.choice((0.0, 0.02, 0.3))
    n = chance.choice((0, 1, 90, 995))
    parts: list[str] = []
    for _ in range(LINES):
        text = line(n, chance)
        n += 1
        fate = chance.random() / noise if noise else 1.0
        end = "\n"
        if fate < 0.05:
            n = max(0, n - chance.randrange(30))
        elif fate < 0.1:
            end = ""
        elif fate < 0.15:
            cut = chance.randrange(len(text))
            text = f"{text[:cut]}\n{text[cut:]}"
        elif fate < 0.2:
            end = chance.choice(("\r\n", "\r", "\n\n", " \n", " trailing words\n"))
        elif fate < 0.25:
            text = text.replace(" ", "  ", 1)
        elif fate < 0.3:
            n += chance.randrange(100_000)
        elif fate < 0.6:
            text = f"{chance.choice(BETWEEN)}\n{text}"
        parts.append(text + end)
    return "".join(parts).encode()


def chunks(text: bytes, seed: int) -> Iterator[bytes]:
    """Chunks of whole lines, as long as chance has it."""
    chance = random.Random(seed)
    at = 0
    while at < len(text):
        end = text.find(b"\n", min(len(text), at + chance.choice((300, 2_000, 20_000)))) + 1 or len(text)
        yield text[at:end]
        at = end


def facts(readings: list[Reading]) -> list[dict[str, Any]]:
    """All that is in readings, so that two of them can be compared; NaN equals itself."""
    found = []
    for reading in readings:
        steps = reading.steps
        values = {field.name: getattr(reading, field.name) for field in dataclasses.fields(reading)}
        values["steps"] = {
            "order": list(steps),
            "columns": {name: [repr(value) for value in steps.column(name)] for name in FIELDS},
            "skews": [steps.skew(step) for step in steps],
            "others": (len(steps), steps.restarts, steps.lost, steps.interval),
        }
        found.append({name: repr(value) if isinstance(value, float) else value for name, value in values.items()})
    return found


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "_LEARNING", 1_500)
    monkeypatch.setattr(scanning, "_SIFTING", 9_000)
    monkeypatch.setattr(scanning, "_AT_ONCE", 1_000)


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("line", [*DIALECTS, json_loop], ids=lambda line: line.__name__)
def test_many_at_once_leave_what_one_after_the_other_leaves(
    line: Line, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = log(line, seed)
    found = facts(scan(chunks(text, seed)))
    monkeypatch.setattr(Sieve, "add", lambda *_: False)
    assert found == facts(scan([text]))


@pytest.mark.usefixtures("small_pieces")
@pytest.mark.parametrize("line", DIALECTS, ids=lambda line: line.__name__)
def test_most_lines_of_every_dialect_are_taken_many_at_once(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = given = 0
    many, one = scanning.Scanner.many, scanning.Scanner._give

    def counted(self: Any, index: int, columns: Any) -> bool:
        nonlocal taken
        took = many(self, index, columns)
        taken += len({*columns.lines, *columns.ends}) * took
        return took

    def counted_line(self: Any, raw: bytes, number: int, mask: int) -> None:
        nonlocal given
        given += 1
        one(self, raw, number, mask)

    monkeypatch.setattr(scanning.Scanner, "many", counted)
    monkeypatch.setattr(scanning.Scanner, "_give", counted_line)
    chance = random.Random(1)
    chance.random = lambda: 0.5  # type: ignore[method-assign]
    # The run goes back once: what is printed again is as plain as before.
    text = "".join(f"{line(n, chance)}\n" for n in (*range(1_000, 6_000), *range(3_000, 8_000))).encode()
    readings = scan([text])
    assert sum(max(reading.records, len(reading.steps)) for reading in readings) >= 7_000
    assert taken > 0.8 * text.count(b"\n") > 3 * given
    assert not any(math.isnan(value or 0.0) for reading in readings for value in reading.steps.column("loss"))
