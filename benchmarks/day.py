"""One working day of the people this is built for, on files in their formats: what is caught, and what cannot be.

    python -m benchmarks.day [--json] [--page docs/day.md]

From an empty folder, in the order of the day: a lane and its golden baseline, flags tried in turns, an out-of-memory
failure and its ladder, a drifted host, a silent fallback, a NaN that is fast, a wrong window, a resumed run, an MFU
with another N, launches that `receipts record` really runs, a supersession, a claim that was published and is refuted,
and the week's report. Logs are Megatron's, with figures made up; the trace is one of this repository; the job that
is recorded is a loop of plain Python. Every answer is the command line's own, word for word.
Exit 0 when every pain is caught or listed as not knowable, 1 when one passed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from click.testing import CliRunner

from benchmarks.day_page import Row, page
from receipts.cli.group import group

HERE: Final = Path(__file__).resolve().parents[1]
TRACES: Final = HERE / "tests" / "readers" / "every" / "samples" / "nvidia-megatron"
ARGUMENTS: Final = {
    "attention_backend": "AttnBackend.fused", "bf16": "True", "bias_swiglu_fusion": "False", "manual_gc": "False",
    "context_parallel_size": "1", "cuda_graph_impl": "none",
    "data_parallel_size": "8", "data_path": "['/data/climbmix']", "expert_model_parallel_size": "1", "fp8": "None",
    "global_batch_size": "64", "hidden_size": "1024", "lr": "0.0001", "micro_batch_size": "2", "mock_data": "False",
    "num_attention_heads": "8", "num_experts": "None", "num_layers": "2", "optimizer": "adam",
    "padded_vocab_size": "65536", "pipeline_model_parallel_size": "1", "recompute_granularity": "None", "seed": "1234",
    "seq_length": "1024", "tensor_model_parallel_size": "1", "tokenizer_type": "HuggingFaceTokenizer",
    "transformer_impl": "transformer_engine", "world_size": "8",
}  # fmt: skip
WHEELS: Final = (
    "transformer-engine==2.13.0\ntorch==2.12.0\nmegatron-core==0.18.0\ntriton==3.4.0\nnvidia-nccl-cu12==2.27.5\n"
    "nvidia-cudnn-cu12==9.20.0.10\n"
)
SMI: Final = "index, name, memory.used [MiB], memory.total [MiB], clocks.sm [MHz]\n" + "".join(
    f"{index}, NVIDIA H200, {70000 + moment} MiB, 143771 MiB, 1980 MHz\n" for moment in range(3) for index in range(8)
)
# What a launcher knows and a log does not print.
KNOWN: Final = {
    "platform.cudnn": "9.20.0", "run.exit_code": "0", "compile.posture": "eager", "compile.compiles_after_warmup": "0",
    "measurement.window.start": "3", "model.pattern": "*-", "model.alphabet": "nemo",
    "model.attention_kinds": "1 full", "compile.cache_state": "warm", "compile.compiles": "0",
    "run.context": "small hybrid, launcher v3", "measurement.region": "step", "measurement.synchronisation": "device",
}  # fmt: skip
STEPS: Final = 40


@dataclass
class Launch:
    """One launch by what differs from the golden one. ``milliseconds`` is its steady step."""

    label: str
    hour: float
    milliseconds: float = 700.0
    day: str = "2026-05-04"
    host: str = "bench3"
    first: int = 1
    losses: tuple[float, float] = (11.09, 10.3)
    arguments: Mapping[str, str] = field(default_factory=dict)
    known: Mapping[str, str] = field(default_factory=dict)
    trace: str = "trace.json"
    failure: str = ""
    megabytes: float = 61_000.0

    def log(self) -> str:
        """Megatron's log."""
        draw = random.Random(self.label)
        arguments = {**ARGUMENTS, **self.arguments}
        lines = [
            "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, "
            "pipeline-model-parallel size: 1",
            "------------------------ arguments ------------------------",
            *(f"  {name} {'.' * (47 - len(name))} {value}" for name, value in sorted(arguments.items())),
            "-------------------- end of arguments ---------------------",
        ]
        at = self.hour * 3600.0
        for step in range(self.first, self.first + (STEPS if not self.failure else 0)):
            begin = step - self.first
            taken = self.milliseconds * draw.gauss(1, 0.002) * (6.0 if begin == 0 else 1.3 if begin == 1 else 1.0)
            at += taken / 1e3
            loss = self.losses[0] + (self.losses[1] - self.losses[0]) * begin / STEPS + draw.gauss(0, 0.004)
            batch = int(arguments["global_batch_size"])
            lines.append(
                f" [{self.day} {_clock(at)}] iteration {step:8}/{self.first + STEPS - 1:8} | consumed samples: "
                f"{batch * step:12} | elapsed time per iteration (ms): {taken:.1f} | learning rate: 1.000000E-04 | "
                f"global batch size: {batch:5} | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: "
                f"{loss / 8:.3f} | number of skipped iterations:   0 | number of nan iterations:   "
                f"{int(loss != loss)} |"
            )
            if begin == 9:
                lines += [
                    f"[Rank {rank}] (after 10 iterations) memory (MB) | allocated: 40210.1 | max allocated: "
                    f"{self.megabytes + rank:.1f} | reserved: 70110.0 | max reserved: {self.megabytes + 9000:.1f}"
                    for rank in range(8)
                ]
        end = f"[exiting program at iteration {self.first + STEPS - 1}] datetime: {self.day} {_clock(at)[:8]}"
        return "\n".join([*lines, self.failure or end]) + "\n"


def _clock(seconds: float) -> str:
    return f"{int(seconds // 3600):02}:{int(seconds % 3600 // 60):02}:{seconds % 60:09.6f}"


class Said(NamedTuple):
    """What a command answered, and its exit code."""

    code: int
    text: str


class Day:
    """A folder with a store, and the commands of the day on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths: dict[str, Path] = {}

    def call(self, *words: str | Path) -> Said:
        """One command on the day's store."""
        line = ["--store", str(self.folder / "day.sqlite"), *map(str, words)]
        result = CliRunner(env={"COLUMNS": "400"}).invoke(group, line, standalone_mode=False)
        code = result.return_value if isinstance(result.return_value, int) else result.exit_code
        text = f"{result.stdout}{result.stderr}" + (f"\n{result.exception!r}" if result.exception else "")
        return Said(code, " ".join(text.split()))

    def record(self, label: str, *options: str, **variables: str) -> Said:
        """One launch of the job under `receipts record`, in processes of its own."""
        words = ("--store", str(self.folder / "day.sqlite"), "record", "--name", label, "--", sys.executable, "job.py")
        done = subprocess.run(
            [sys.executable, "-m", "receipts", *words, *options],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(HERE), **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, " ".join(done.stderr.split()))

    def ingest(self, launch: Launch) -> Said:
        """The launch's files as a receipt; what ingest says."""
        folder = self.folder / launch.label.replace(" ", "-")
        folder.mkdir()
        (folder / "run.log").write_text(launch.log(), encoding="utf-8")
        (folder / "freeze.txt").write_text(WHEELS, encoding="utf-8")
        (folder / "smi.csv").write_text(SMI, encoding="utf-8")
        traces = [TRACES / launch.trace] if launch.trace else []
        files = [folder / "run.log", folder / "freeze.txt", folder / "smi.csv", *traces]
        known = {**KNOWN, "run.host": launch.host, "run.label": launch.label, **launch.known}
        settings = [word for name, value in known.items() if value for word in ("--set", f"{name}={value}")]
        path = folder / "run.json"
        self.paths[launch.label] = path
        return self.call("ingest", *files, *settings, "-o", path)

    def submit(self, *launches: Launch) -> Said:
        """Ingest and submit launches; what submit says of all of them."""
        for launch in launches:
            said = self.ingest(launch)
            if said.code:
                return said
        return self.call("submit", *(self.paths[launch.label] for launch in launches))


OOM: Final = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.91 GiB. GPU 3 has a total capacity of "
    "139.80 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 138.78 GiB memory in use. Of "
    "the allocated memory 130.11 GiB is allocated by PyTorch, and 5.20 GiB is reserved by PyTorch but unallocated."
)
NAN: Final = float("nan")


class Answers:
    """The rows of the day, in their order."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def __call__(self, tried: str, said: Said, code: int, *words: str) -> None:
        """Note one answer: its exit code, and the words that it must contain."""
        holds = said.code == code and all(word in said.text for word in words)
        self.rows.append(Row(tried, ", ".join([*(f"`{word}`" for word in words), f"exit {code}"]), said.text, holds))


def several(label: str, hour: float, count: int = 3, **other: Any) -> list[Launch]:
    """Launches of one configuration, a quarter of an hour apart."""
    return [Launch(f"{label} {number}", hour + number / 4, **other) for number in range(1, count + 1)]


def morning(day: Day, note: Answers) -> None:
    """The lane, its golden baseline, and flags in turns."""
    note("five launches of the lane as it is", day.submit(*several("golden", 7, 5)), 0, "5 valid")
    note("the baseline is pinned", day.call("pin", "@golden", "label=golden 1", "--note", "grid baseline"), 0)
    day.submit(*several("manual gc", 7.1, 5, milliseconds=680, arguments={"manual_gc": "True"}))
    note(
        "one flag, five launches a side in turns",
        day.call("compare", "label=golden*", "label=manual gc*"),
        0,
        "ACCEPTED",
        "faster",
    )
    day.submit(*several("flat flag", 7.12, 5, arguments={"bias_swiglu_fusion": "True"}))
    note("a flag that does nothing", day.call("compare", "label=golden*", "label=flat flag*"), 0, "equivalent")
    both = {"micro_batch_size": "4", "manual_gc": "True"}
    day.submit(*several("two flags", 9, milliseconds=640, arguments=both))
    note(
        "two axes in one row",
        day.call("compare", "label=golden*", "label=two flags*"),
        1,
        "REJECTED",
        "2 settings changed; only 1 may",
        "micro_batch 2→4",
    )
    note(
        '"the only remaining variable"',
        day.call("bridge", "label=golden 1", "label=two flags 1"),
        0,
        "batch.micro_batch",
        "features.manual_gc",
    )
    day.submit(*several("graphs", 9.5, milliseconds=640, arguments={"cuda_graph_impl": "local"}))
    note(
        "CUDA graphs asked for, never seen",
        day.call("compare", "label=golden*", "label=graphs*"),
        3,
        "witness of cuda graphs (R307)",
    )


def noon(day: Day, note: Answers) -> None:
    """What failed, what fell back, and what was fast for a bad reason."""
    day.submit(Launch("unfused", 10, 900, trace="trace-unfused.json"))
    note(
        "attention left Transformer Engine",
        day.call("check", "label=unfused"),
        1,
        "left path (R302)",
        "te_unfused",
    )
    day.submit(Launch("nan", 10.5, 640, losses=(NAN, NAN)))
    note(
        "NaN from the first step, and fast",
        day.call("compare", "@golden", "label=nan"),
        1,
        "REJECTED",
        "ended in nan",
    )
    day.submit(Launch("nan as ok", 10.7, 640, losses=(NAN, NAN), known={"run.outcome": "ok"}))
    note("the same, with outcome ok typed", day.call("check", "label=nan as ok"), 1, "not training (R111)")
    mock = {"mock_data": "True", "tokenizer_type": "NullTokenizer", "data_path": "None"}
    day.submit(Launch("mock", 11, 690, arguments=mock))
    note(
        "a missing tokenizer became mock data",
        day.call("compare", "@golden", "label=mock"),
        1,
        "REJECTED",
        "dataset /data/climbmix→mock",
        "NullTokenizer",
    )
    shape = {"micro_batch_size": "8"}
    unknown = dict.fromkeys(("measurement.window.start", "compile.compiles_after_warmup"), "")
    failed = Launch(
        "oom mbs 8",
        11.5,
        arguments=shape,
        trace="",
        failure=OOM,
        known={**unknown, "run.exit_code": "1", "failure.phase": "first_window"},
    )
    day.submit(failed)
    note("micro batch 8 does not fit", day.call("show", "label=oom mbs 8"), 0, "out of memory in first window")
    note("the next try knows", day.call("preflight", "label=oom mbs 8"), 1, "oom mbs 8")
    day.submit(*several("drifted", 12, milliseconds=770, host="europe"))
    note(
        "the same lane on a drifted host",
        day.call("compare", "label=golden*", "label=drifted*"),
        3,
        "C111",
        "bench3",
        "europe",
    )


def afternoon(day: Day, note: Answers) -> None:
    """Windows, units, denominators, memory words."""
    day.submit(Launch("cold", 13, known={"measurement.window.start": "0"}))
    note("the compile counted in the window", day.call("check", "label=cold"), 1, "cold start (R201)")
    day.submit(*several("resumed", 13.5, milliseconds=698, first=1001, losses=(3.40, 3.38)))
    note(
        "golden against a resumed run",
        day.call("compare", "label=golden*", "label=resumed*"),
        3,
        "one data set (C112)",
    )
    stated = {
        "measurement.stated.mfu": "0.402",
        "measurement.stated.flops_per_token": "2.52e10",
        "measurement.stated.peak_flops_per_second": "9.89e14",
        "measurement.stated.peak_dtype": "bf16",
    }
    day.submit(Launch("mfu", 14, known=stated))
    note("an MFU with another N", day.call("check", "label=mfu"), 1, "R102")
    day.submit(Launch("tokens", 14.5, known={"measurement.tokens_per_step": "131072"}))
    note("tokens a step that no batch gives", day.call("check", "label=tokens"), 1, "batch unaccounted (R106)")
    note("the peak of each chip, by kind", day.call("chips", "label=golden 1"), 0, "chip")
    moved = day.folder / "unfused" / "run.log"
    moved.write_text(moved.read_text(encoding="utf-8").replace("1.000000E-04", "2.000000E-04"), encoding="utf-8")
    note(
        "a retained log that is not the log of then",
        day.call("verify", "label=unfused", "--evidence", moved.parent, "--evidence", TRACES / "trace-unfused.json"),
        3,
        "no file with the digest",
    )


JOB: Final = """
import argparse, os, sys, time
sys.path.insert(0, "tree")
import kernels
from receipts.emit import Recorder
parser = argparse.ArgumentParser()
parser.add_argument("--expert", type=int, default=0)
options, _ = parser.parse_known_args()
os.environ.get("NCCL_ALGO")
with Recorder("cpu-torch", warmup=2) as rec:
    for number in range(12):
        with rec.step(tokens=8):
            time.sleep(0.01)
    range(4)[options.expert]
"""


def recorded(day: Day, note: Answers) -> None:
    """Launches that really run, and what differs between them that nobody wrote down."""
    (day.folder / "job.py").write_text(JOB, encoding="utf-8")
    kernels = day.folder / "tree" / "kernels.py"
    kernels.parent.mkdir()
    kernels.write_text("WIDTH = 4\n", encoding="utf-8")
    note("a job as it is", day.record("job"), 0, "receipts check")
    day.record("ignored", "--fuse-everything")
    note(
        "a flag that the program ignores",
        day.call("compare", "label=job", "label=ignored"),
        3,
        "inputs.fuse_everything",
    )
    day.record("hidden", NCCL_ALGO="Tree")
    note("a variable of one side's environment", day.call("compare", "label=job", "label=hidden"), 3, "flags.NCCL_ALGO")
    kernels.write_text("WIDTH = 8\n", encoding="utf-8")
    day.record("main")
    note("a branch whose test imported main", day.call("compare", "label=job", "label=main"), 3, "code.imported_digest")
    note("a job that fails", day.record("failed", "--expert", "9"), 1, "receipts check")
    note("how it ended", day.call("show", "label=failed"), 0, "crash in steady")


def evening(day: Day, note: Answers) -> None:
    """A claim, a supersession, and the report."""
    claims = day.folder / "claims.toml"
    claims.write_text(CLAIMS, encoding="utf-8")
    note("a claim is published", day.call("claim", "add", claims), 0, "supported")
    note("a claim at a shape that was never run", day.call("claim", "check", claims), 3, "off-target")
    best = CLAIMS.partition('\n[[claim]]\nid = "off')[0].replace("1.02", "1.05").replace("manual-gc", "best-day")
    claims.write_text(best, encoding="utf-8")
    note("the figure that the launch of the best day had", day.call("claim", "check", claims), 1, "REFUTED")
    right = Launch(
        "golden 1 again",
        15,
        known={
            "run.supersedes.target": _launch(day, "golden 1"),
            "run.supersedes.reason": "the tokenizer of that launch was wrong",
        },
    )
    note("the baseline is superseded", day.submit(right), 0)
    note("who quoted it", day.call("impact", "label=golden 1"), 0, "manual-gc")
    report = day.folder / "report"
    note("the week", day.call("report", "weekly", "--week", "2026-W19", "--as-of", "2026-05-10", "-o", report), 0)
    first = day.call("report", "weekly", "--week", "2026-W19", "--as-of", "2026-05-10", "--first-screen", "text")
    note("its first screen", first, 0, "manual_gc")


def _launch(day: Day, label: str) -> str:
    return str(json.loads(day.paths[label].read_text(encoding="utf-8"))["run"]["launch"])


CLAIMS: Final = """schema_version = "1.0"

[[claim]]
id = "manual-gc"
text = "Collecting garbage by hand makes the small hybrid at least 2 % faster."
kind = "speedup"
baseline = "label=golden*"
candidate = ["label=manual gc*"]
axis = "features.manual_gc"
metric = "tokens_per_second"
effect = "at least 1.02"
target = { pattern = "*-", chips = 8, sequence_length = 1024, depth = 2 }

[[claim]]
id = "off-target"
text = "Collecting garbage by hand makes NAM56R at least 2 % faster."
kind = "speedup"
baseline = "label=golden*"
candidate = ["label=manual gc*"]
axis = "features.manual_gc"
metric = "tokens_per_second"
effect = "at least 1.02"
target = { pattern = "AEMEAEMEAEMR", chips = 8, sequence_length = 4096, depth = 52 }
"""
PARTS: Final[tuple[Callable[[Day, Answers], None], ...]] = (morning, noon, afternoon, recorded, evening)


def main() -> int:
    """Print the day as a table or as JSON, or write its page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--page", type=Path, help="write the page of the documentation here")
    given = parser.parse_args()
    note = Answers()
    with tempfile.TemporaryDirectory() as scratch:
        day = Day(Path(scratch))
        for part in PARTS:
            part(day, note)
    if given.json:
        print(json.dumps([row._asdict() for row in note.rows], ensure_ascii=False, indent=1))
    elif given.page:
        given.page.write_text(page(note.rows), encoding="utf-8")
    else:
        for row in note.rows:
            print(f"{'ok' if row.holds else 'PASSED'}\t{row.tried}\t{row.said[:150]}")
    return 0 if all(row.holds for row in note.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
