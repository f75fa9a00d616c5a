"""How fast a log is read beside `grep -c` of the same file: `python -m benchmarks ingest_speed`.

Logs of several frameworks are made up: the worst case of step lines alone, and a mixed one in which a step line stands
among twenty others. Each is read in a process of its own by `receipts.ingest.evidence`, whole path: bytes, digest,
lines, readers. CPU of that process, and its highest memory. The bar is 60 MB/s on a core, whatever the framework, and
150 MB of memory, whatever the size.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path

from benchmarks.result import Result

MEGABYTES_A_SECOND = 60.0
MEMORY_MB = 150.0
FULL, QUICK = 200_000_000, 20_000_000
# What stands between the step lines of a real log: warnings, loaders, NCCL, progress of checkpoints.
OTHERS = (
    "/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py:460: UserWarning: use_reentrant is not stated\n",
    "node-07:4121:4455 [3] NCCL INFO Channel 12/0 : 3[3] -> 2[2] via P2P/CUMEM/read\n",
    "2026-03-02 09:14:07,512 - data.loader - INFO - shard 000{n:06d}.tar opened, 8192 samples, 12 workers\n",
    "wandb: uploading history 0.2 s, 14 files waiting, 3.1 MB of 4.4 MB\n",
    "[rank3]: saving optimizer shard {n} of 4096 to /checkpoints/step_{n}/rank_00003.distcp\n",
)


def clock(number: int) -> str:
    """A time of day that moves on a second a step."""
    return f"09:{number // 60 % 60:02d}:{number % 60:02d}"


def megatron_bridge(number: int) -> str:
    """Two lines a step: the first rank's time, and the last rank's record."""
    seconds = 5 + number % 9 / 100
    return (
        f"Step Time : {seconds:.2f}s GPU utilization: 4{number % 90 + 10}.3MODEL_TFLOP/s/GPU\n"
        f" [2026-03-02 {clock(number)}] iteration {number:8d}/  900000 | consumed samples: {number * 64:12d}"
        f" | elapsed time per iteration (ms): {seconds * 1e3:.1f} | learning rate: 3.000000E-04"
        f" | global batch size:    64 | lm loss: {2 + 1 / (number + 1):.6E} | loss scale: 1.0"
        f" | grad norm: 0.{number % 900 + 100} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )


def torchtitan(number: int, before: str = "[titan] ", red: str = "", green: str = "", off: str = "") -> str:
    """A record of one rank, with or without its name, with or without colours."""
    return (
        f"{before}2026-03-02 {clock(number)},512 - root - INFO - {red}step: {number:2d}"
        f"  {green}loss: {2 + 1 / (number + 1):8.5f}  grad_norm: {number % 9}.{number % 9000 + 1000}"
        f"  {red}memory: 94.58GiB(67.65%)  {green}tps: {24000 + number % 900:,}  tflops: {260 + number % 9}.41"
        f"  {red}mfu: 26.{number % 90 + 10}%{off}\n"
    )


STEPS: Mapping[str, Callable[[int], str]] = {
    "megatron": lambda n: (
        f" [2026-03-02 {clock(n)}.512345] iteration {n:8d}/  900000 | consumed samples: {n * 64:12d}"
        f" | elapsed time per iteration (ms): {800 + n % 7}.{n % 10}"
        f" | throughput per GPU (TFLOP/s/GPU): 4{n % 90 + 10}.3"
        f" | learning rate: 3.000000E-04 | global batch size:    64 | lm loss: {2 + 1 / (n + 1):.6E} | loss scale: 1.0"
        f" | grad norm: 0.{n % 900 + 100} | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    ),
    "megatron-bridge": megatron_bridge,
    "megatron-deepspeed": lambda n: (
        f" iteration={n:8d}/  143051 | consumed_samples={n * 768:12d} | consumed_tokens={n * 3145728:14d} |"
        f" elapsed_time_per_iteration_ms={18000 + n % 99}.{n % 10} | learning_rate=1.28e-04 | global_batch_size=  768 |"
        f" lm loss={2 + 1 / (n + 1):.6f} | loss_scale=1.0 | grad_norm=0.{n % 900 + 100} | actual_seqlen= 4096 |"
        f" number_of_skipped_iterations=  0 | number_of_nan_iterations=  0 | samples_per_second=42.{n % 9} |"
        f" tokens_per_gpu_per_second_tgs=3594.{n % 9} | [LM]TFLOPs=31.0{n % 9} |\n"
    ),
    "torchtitan": torchtitan,
    "torchtitan, colours": lambda n: torchtitan(n, "[titan] ", "\x1b[31m", "\x1b[32m", "\x1b[39m"),
    "torchtitan, 8 ranks": lambda n: torchtitan(n // 8 + 1, f"[rank{n * 5 % 8}]:[titan] "),
    "maxtext": lambda n: STEPS["maxtext, absl"](n).partition("] ")[2],
    "maxtext, absl": lambda n: (
        f"I0302 {clock(n)}.103766 140050 metric_logger.py:265] completed step: {n}, seconds:"
        f" {3 + n % 5 / 1000:.3f}, TFLOP/s/device: 41{n % 9}.228, Tokens/s/device: 5{n % 900 + 100}.482, total_weights:"
        f" 1048576, loss: {2 + 1 / (n + 1):.3f}, lm_loss: {2 + 1 / (n + 1):.3f}, perplexity: 8.412\n"
    ),
    "nanotron": lambda n: (
        f"03/02/2026 {clock(n)} [INFO|DP=0|PP=0|TP=0|node-07]: iteration: {n} / 900000 |"
        f" consumed_tokens: {n * 4.19 / 1000:.3g}B | elapsed_time_per_iteration_ms: {500 + n % 9}.{n % 10} |"
        f" tokens_per_sec: 8.{n % 90 + 10}M | tokens_per_sec_per_gpu: 16.{n % 10}K | global_batch_size: 1.02K |"
        f" lm_loss: {2 + 1 / (n + 1):.3g} | lr: 0.0003 | model_tflops_per_gpu: 2{n % 90 + 10} |"
        f" hardware_tflops_per_gpu: 2{n % 90 + 10} | grad_norm: 0.{n % 900 + 100}\n"
    ),
    "deepspeed": lambda n: (
        f"[2026-03-02 {clock(n)},296] [INFO] [timer.py:264:stop] epoch=0/micro_step={n * 8}"
        f"/global_step={n}, RunningAvgSamplesPerSec=12.{n % 9000 + 1000}, CurrSamplesPerSec=12.{n % 9000 + 1000},"
        f" MemAllocated=24.42GB, MaxMemAllocated=61.08GB\n"
    ),
    "hf-trainer": lambda n: (
        f"{{'loss': {2 + 1 / (n + 1):.4f}, 'grad_norm': 0.{n % 9000 + 1000}, 'learning_rate': 2.9e-05,"
        f" 'epoch': {n / 9e5:.6f}, 'num_input_tokens_seen': {n * 65536}}}\n"
    ),
    "nemo": lambda n: (
        f"[NeMo I 2026-03-02 {clock(n)} nemo_logging:393] Training epoch 0, iteration {n}/899999 |"
        f" lr: 0.0003 | global_batch_size: 512 | global_step: {n} | reduced_train_loss: {2 + 1 / (n + 1):.4g} |"
        f" train_step_timing in s: {4 + n % 9 / 1000:.3f} | consumed_samples: {n * 512}\n"
    ),
    "llm.c": lambda n: (
        f"step {n:4d}/900000 | loss {2 + 1 / (n + 1):.6f} ({n % 9 / 9 - 0.5:+.2f}z)| norm 0.{n % 9000 + 1000}"
        f" ({n % 7 / 7 - 0.5:+.2f}z)| lr 6.00e-04 | {300 + n % 9}.11 ms | 54.{n % 9}% bf16 MFU |"
        f" {1638400 + n % 900} tok/s\n"
    ),
    "modded-nanogpt": lambda n: (
        f"step:{n}/900000 train_loss:{2 + 1 / (n + 1):.4f} train_time:{n * 59 + n % 9}ms step_avg:59.{n % 90 + 10}ms\n"
    ),
    "nanogpt": lambda n: (
        f"iter {n}: loss {2 + 1 / (n + 1):.4f}, time {130 + n % 9}.{n % 90 + 10}ms, mfu 31.{n % 90 + 10}%\n"
    ),
    "dllogger": lambda n: (
        f'DLLL {{"timestamp": "1727486{n % 900 + 100}.241469", "elapsedtime": "{n}.305037", "type": "LOG",'
        f' "step": {n}, "data": {{"train_loss": {2 + 1 / (n + 1):.6f}, "lr": 0.0003,'
        f' "grad_norm": 0.{n % 900 + 100}, "tflops_per_gpu": {400 + n % 9}.5, "epoch": 0}}}}\n'
    ),
    "t5x": lambda n: (
        f"I0302 {clock(n)}.250000 140050 logging_writer.py:48] [{n * 100}] collection=train"
        f" accuracy=0.5{n % 9000 + 1000}, cross_ent_loss={17000 + n % 900}.1, learning_rate=0.0{n % 9000 + 1000},"
        f" loss={17000 + n % 900}.1, loss_per_nonpadding_target_token={2 + 1 / (n + 1):.6f},"
        f" timing/seconds=51.{n % 90 + 10}, timing/seqs=25600.0, timing/steps_per_second=1.95{n % 900 + 100},"
        f" timing/target_tokens_per_second=112{n % 900 + 100}.5,"
        f" timing/target_tokens_per_second_per_core=14{n % 900 + 100}.1, z_loss=1.{n % 900 + 100}\n"
    ),
}
CHILD = """
import json, sys, time
from pathlib import Path
from receipts.ingest.evidence import read
read(Path(sys.argv[2]))  # a small file first: what is imported and compiled is no reading of lines
began = time.process_time()
found = read(Path(sys.argv[1]))
spent = time.process_time() - began
status = Path("/proc/self/status")
high = status.read_text().split("VmHWM:")[1].split()[0] if status.exists() else "0"
steps = {reading.source: max(len(reading.steps), reading.records) for reading in found.readings}
print(json.dumps({"cpu": spent, "mb": int(high) * 1024 / 1e6, "steps": steps}))
"""


def lines(kind: str, mixed: bool) -> Iterator[str]:
    """The lines of a made-up log, without end."""
    step = STEPS[kind]
    for number in count(1):
        if mixed:
            for other in range(20):
                yield OTHERS[(number + other) % len(OTHERS)].format(n=number)
        yield step(number)


def write(path: Path, kind: str, mixed: bool, size: int) -> None:
    """Write a log of about that size."""
    with path.open("w", encoding="utf-8") as stream:
        written, waiting = 0, list[str]()
        for line in lines(kind, mixed):
            waiting.append(line)
            written += len(line)
            if len(waiting) == 10_000 or written >= size:
                stream.write("".join(waiting))
                waiting.clear()
            if written >= size:
                return


def figures(kind: str, mixed: bool, size: int, folder: Path) -> dict[str, float]:
    """Milliseconds of CPU a megabyte, those of grep, the highest memory in MB, and how many records were read."""
    path, small = folder / f"{kind}.log", folder / f"{kind}.small"
    write(path, kind, mixed, size)
    write(small, kind, mixed, 10_000)
    megabytes = path.stat().st_size / 1e6
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), str(small)], check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    began = time.perf_counter()
    subprocess.run([shutil.which("grep") or "grep", "-c", "iteration", str(path)], check=False, capture_output=True)
    floor = time.perf_counter() - began
    path.unlink()
    steps = max(found["steps"].values(), default=0)
    return {"ms": found["cpu"] * 1e3 / megabytes, "grep": floor * 1e3 / megabytes, "mb": found["mb"], "steps": steps}


def measure(quick: bool = False) -> list[Result]:
    """Time a megabyte of every framework's log, the worst and the mixed one, and the highest memory of all."""
    size, results, most = QUICK if quick else FULL, list[Result](), 0.0
    with tempfile.TemporaryDirectory() as place:
        for kind in STEPS:
            for mixed in (False, True):
                found = figures(kind, mixed, size, Path(place))
                most = max(most, found["mb"])
                name = f"reading {kind}, {'mixed lines' if mixed else 'step lines alone'}"
                name += "" if found["steps"] else " (NOTHING READ)"
                bar = 1e3 / MEGABYTES_A_SECOND if found["steps"] else 0.0
                results.append(Result(name, found["ms"], "ms/MB", "grep -c", found["grep"], bar, "value"))
    return [*results, Result("highest memory of a reading process", most, "MB", bar=MEMORY_MB, bar_on="value")]


def main() -> int:
    """Print one framework's figures, in MB/s."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("kinds", nargs="*", choices=[[], *STEPS], help="frameworks, all by default")
    parser.add_argument("--megabytes", type=int, default=20)
    chosen = parser.parse_args()
    slow = 0
    with tempfile.TemporaryDirectory() as place:
        for kind in chosen.kinds or STEPS:
            for mixed in (False, True):
                found = figures(kind, mixed, chosen.megabytes * 1_000_000, Path(place))
                rate = 1e3 / found["ms"]
                slow += rate < MEGABYTES_A_SECOND or not found["steps"]
                print(
                    f"{kind:<20} {'mixed' if mixed else 'steps':<6} {rate:8.0f} MB/s"
                    f"   grep {1e3 / found['grep']:8.0f} MB/s   {found['mb']:6.0f} MB   {found['steps']:,.0f} records"
                )
    return int(slow > 0)


if __name__ == "__main__":
    raise SystemExit(main())
