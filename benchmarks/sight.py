"""What the recorder sees with nothing typed: `python -m benchmarks.sight [ROW…] [--python P] [--repeats N] [--write]`.

Each row is a script of `benchmarks/sight_scripts`, written as strangers write theirs. Most are launched by
`receipts record -- …` with no line changed; one has its lines of the recorder (``# seen``), which a
bare copy lacks. Bare and seen launches take turns, and each script prints its own milliseconds a step. A script says at
its end what is true of it, counted by itself; the receipt is held against that. A row whose library is absent says so.

``--write`` puts each row into docs/reference/sight.md when it is there, and leaves the others as they are.
``--overhead`` measures what recording costs instead, by processor time: one that is loaded has no other clock.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = Path(__file__).with_name("sight_scripts")
PAGE = ROOT / "docs" / "reference" / "sight.md"
TRUTH, SEEN = "TRUTH ", "  # seen"
LIMIT_SECONDS = 900
# Of each column what is compared: the script's word, and the receipt's leaf.
COLUMNS: dict[str, dict[str, str]] = {
    "steps": {"steps": "measurement.step_durations_seconds"},
    "tokens": {
        "tokens": "measurement.tokens_per_step",
        "micro": "batch.micro_batch",
        "length": "batch.sequence_length",
        "accumulation": "batch.accumulation",
    },
    "model": {
        **{name: f"model.{name}" for name in ("depth", "hidden", "vocabulary", "heads", "kv_heads")},
        "parameters": "model.parameters_total",
        "adapters": "numerics.adapters.kind",
    },
    "dtype": {"dtype": "numerics.compute_dtype"},
    "recompute": {"recompute": "numerics.recompute"},
    "posture": {"posture": "compile.posture"},
}
HEAD = ("script", *COLUMNS, "typed", "open", "verdict", "ms bare", "ms seen")


TABLE = (f"| {' | '.join(HEAD)} |", f"|{' --- |' * len(HEAD)}")


@dataclass(frozen=True)
class Row:
    """One script with its arguments; ``needs`` are the libraries it imports, ``ranks`` how many torchrun starts."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    needs: tuple[str, ...] = ("torch",)
    ranks: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_lines(self) -> bool:
        """Whether the script has lines of the recorder."""
        return SEEN in (SCRIPTS / self.script).read_text()

    @property
    def typed(self) -> int:
        """How many facts its lines of the recorder state or point at."""
        lines = [line for line in (SCRIPTS / self.script).read_text().splitlines() if line.endswith(SEEN)]
        return sum(len(re.findall(r"\b(?:loss|norm)=|rec\.(?:state|path)\(", line)) for line in lines)

    def command(self, python: str, script: Path) -> list[str]:
        """What starts it."""
        if self.ranks == 1:
            return [python, str(script), *self.arguments]
        run = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.ranks}")
        return [python, *run, str(script), *self.arguments]


def _small(*kinds: str) -> Iterator[Row]:
    for kind in kinds:
        yield Row(kind.replace("_", " "), "small.py", (kind,), ranks=2 if kind in ("ddp", "fsdp2") else 1)


ROWS = (
    Row("nanoGPT: accumulation, evaluation", "nanogpt.py"),
    *_small("plain", "bf16_scaler", "checkpointing", "moe"),
    *_small("compile_model", "compile_method", "compile_layers", "compile_function", "ddp", "fsdp2"),
    Row("GAN", "gan.py"),
    Row("Lightning", "lightning_module.py", needs=("lightning",)),
    Row("HF Trainer", "hf.py", ("trainer",), ("transformers", "accelerate")),
    Row("accelerate", "hf.py", ("accelerate",), ("transformers", "accelerate")),
    Row("LoRA by peft", "hf.py", ("peft",), ("transformers", "accelerate", "peft")),
    Row("Flax linen", "flax_linen.py", needs=("jax", "flax", "optax")),
    Row("Flax NNX", "flax_nnx.py", needs=("jax", "flax", "optax")),
    Row("JAX: scan, remat, bf16", "jax_scanned.py", needs=("jax", "optax")),
    Row("torch_xla", "torch_xla_loop.py", needs=("torch_xla",), environment={"PJRT_DEVICE": "CPU"}),
)


@dataclass
class Launch:
    """What one launch printed of itself, and where its receipt may be."""

    truth: dict[str, Any]
    folder: Path


def missing(row: Row, python: str) -> str:
    """The libraries that an interpreter lacks."""
    probe = "import importlib.util, sys; print(*[n for n in sys.argv[1:] if importlib.util.find_spec(n) is None])"
    return subprocess.run([python, "-c", probe, *row.needs], capture_output=True, text=True, check=True).stdout.strip()


def launch(row: Row, python: str, folder: Path, *, seen: bool) -> Launch:
    """Run a script once, in a folder of its own. Raises RuntimeError with the end of what it printed."""
    folder.mkdir(parents=True)
    script = SCRIPTS / row.script
    env = {**os.environ, "OMP_NUM_THREADS": "1", "RECEIPTS_STORE": f"sqlite:///{folder}/store.db", **row.environment}
    if row.has_lines:
        env["PYTHONPATH"] = str(ROOT)
        if not seen:
            lines = [line for line in script.read_text().splitlines() if not line.endswith(SEEN)]
            script = folder / row.script
            script.write_text("\n".join(lines))
    command = row.command(python, script)
    if seen and not row.has_lines:
        command = [*_receipts(), "record", "--no-submit", "--", *command]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    line = next((line for line in done.stdout.splitlines() if line.startswith(TRUTH)), None)
    if done.returncode or line is None:
        raise RuntimeError(f"{row.name}: exit code {done.returncode}: {(done.stderr or done.stdout)[-300:]}")
    return Launch(json.loads(line.removeprefix(TRUTH)), folder)


def _receipts() -> list[str]:
    return [sys.executable, "-m", "receipts"]


def stored(folder: Path) -> tuple[dict[str, Any], str, str]:
    """The receipt of a launch with what its evidence shows, its verdict, and the facts that are open."""
    env = {**os.environ, "RECEIPTS_STORE": f"sqlite:///{folder}/store.db", "COLUMNS": "1000"}
    evidence = ["--evidence", "run.evidence"] if (folder / "run.evidence").is_dir() else []

    def receipts(*words: str) -> str:
        return subprocess.run([*_receipts(), *words], cwd=folder, env=env, capture_output=True, text=True).stdout

    text = receipts("submit", "run.json", *evidence)
    line = re.search(r"^([0-9a-f]{12})  (\w+)", text, re.M)
    if line is None:
        raise RuntimeError(f"no receipt: {text[-300:]}")
    open_facts = re.search(r"(\d+) facts? keeps? it from being valid[,:]?(.*)", text)
    whole = json.loads(receipts("show", line[1], "--raw"))
    return whole, line[2], "0" if open_facts is None else f"{open_facts[1]}:{open_facts[2].partition(';')[0]}"


def leaf(receipt: Mapping[str, Any], path: str) -> Any:
    """A leaf by its path; of a list how long it is."""
    node: Any = receipt
    for part in path.split("."):
        node = node.get(part) if isinstance(node, dict) else None
    return len(node) if isinstance(node, list) else node


def compared(truth: Mapping[str, Any], receipt: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Whether the receipt says what is true: ``yes``, or each value that is open or wrong."""
    asked = {name: path for name, path in names.items() if name in truth}
    wrong = []
    for name, path in asked.items():
        value = leaf(receipt, path)
        if value != truth[name]:
            wrong.append(f"{name} open" if value is None else f"{name} {value}, not {truth[name]}")
    return "; ".join(wrong) or ("yes" if asked else "-")


def cells(row: Row, python: str, repeats: int, folder: Path) -> list[str]:
    """One line of the table."""
    if lacking := missing(row, python):
        return [row.name, *["-"] * (len(HEAD) - 2), f"{lacking} is not installed"]
    times: dict[bool, list[float]] = {False: [], True: []}
    launches: list[Launch] = []
    try:
        for number in range(repeats):
            for seen in (False, True):
                one = launch(row, python, folder / f"{number}-{'seen' if seen else 'bare'}", seen=seen)
                times[seen].append(one.truth["ms"])
                launches += [one] * seen
        receipt, verdict, still = stored(launches[-1].folder)
    except (RuntimeError, ValueError, OSError, subprocess.SubprocessError) as error:
        return [row.name, *["-"] * (len(HEAD) - 2), " ".join(str(error).split())[-200:].replace("|", "/")]
    columns = [compared(launches[-1].truth, receipt, names) for names in COLUMNS.values()]
    medians = [f"{statistics.median(times[seen]):.1f}" for seen in (False, True)]
    return [row.name, *columns, str(row.typed), still, verdict, *medians]


def overhead(python: str, repeats: int, folder: Path) -> list[str]:
    """What recording costs a step, the start of a process and the end of a first step, bare and seen in turns."""
    row = Row("tiny", "tiny.py")
    arming = str(ROOT / "receipts" / "emit" / "sight" / "site")
    steps: dict[bool, list[float]] = {False: [], True: []}
    starts: dict[bool, list[float]] = {False: [], True: []}
    for number in range(repeats):
        for seen in (False, True):
            steps[seen].append(1e3 * launch(row, python, folder / f"{number}-{seen}", seen=seen).truth["ms"])
    for _ in range(10 * repeats):
        for seen in (False, True):
            env = {**os.environ, **({"PYTHONPATH": arming} if seen else {})}
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([python, "-c", "pass"], env=env, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            starts[seen].append(1e3 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    lines = []
    for name, unit, values in (("a step", "µs", steps), ("the start of a process", "ms", starts)):
        bare, seen_ = statistics.median(values[False]), statistics.median(values[True])
        apart = statistics.median(abs(value - bare) for value in values[False])
        lines.append(
            f"Recording costs {seen_ - bare:.1f} {unit} of processor time for {name}: {bare:.1f} bare and {seen_:.1f} "
            f"seen, medians of {len(values[True])} in turns; bare ones lie {apart:.1f} from their median."
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Exit 1 where a row is wrong or not valid."""
    parser = argparse.ArgumentParser(prog="benchmarks.sight", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("rows", nargs="*", help="words of the rows that are run; all without one")
    parser.add_argument(
        "--python", action="append", default=[], help="an interpreter; the first that has the libraries"
    )
    parser.add_argument("--repeats", type=int, default=3, help="bare and seen launches of a row, in turns")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--overhead", action="store_true", help="what recording costs, and no row")
    given = parser.parse_args(arguments)
    pythons = given.python or [sys.executable]
    print(*TABLE, sep="\n", flush=True)
    bad = 0
    with tempfile.TemporaryDirectory(prefix="receipts-sight-") as folder:
        if given.overhead:
            costs = overhead(pythons[0], given.repeats, Path(folder))
            print(*costs, sep="\n")
            if given.write:
                write({}, costs, pythons[0])
            return 0
        for number, row in enumerate(ROWS):
            if given.rows and not any(word.lower() in f"{row.name} {row.script}".lower() for word in given.rows):
                continue
            python = next((path for path in pythons if not missing(row, path)), pythons[0])
            line = cells(row, python, given.repeats, Path(folder) / str(number))
            bad += line[HEAD.index("verdict")] != "valid" or any(
                " open" in cell or ", not " in cell for cell in line[1:7]
            )
            text = f"| {' | '.join(line)} |"
            print(text, flush=True)
            if given.write:
                write({row.name: text}, [], python)
    return int(bool(bad))


def write(rows: Mapping[str, str], costs: Sequence[str], python: str) -> None:
    """Put rows and costs into the page; what is not given stays as it is there."""
    before = PAGE.read_text(encoding="utf-8").splitlines() if PAGE.is_file() else []
    known = {line.split(" | ")[0][2:]: line for line in before if line.startswith("| ")} | dict(rows)
    costs = costs or [line for line in before if line.startswith("Recording costs")]
    probe = "import importlib.metadata as m; print(*[f'{n} {m.version(n)}' for n in ('torch', 'transformers', 'jax')])"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True).stdout.strip()
    versions = next((line for line in before if line.startswith("Measured")), "")
    if done:
        versions = f"Measured on {datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, with {done}."
    table = [*TABLE, *(known[row.name] for row in ROWS if row.name in known)]
    PAGE.write_text(page([versions, "", *costs, "", *table]), encoding="utf-8")


def page(body: Sequence[str]) -> str:
    """The page of the table."""
    text = __doc__ or ""
    about = [
        "# What the recorder sees", "",
        "Written by `python -m benchmarks.sight --write`. " + " ".join(text.split("\n\n")[1].split()), "",
        "*Typed* are facts that the script's lines of the recorder name; *open* those that keep the receipt from being "
        "valid. A cell without `yes` names each value that is open or not what the script counted.", "",
    ]  # fmt: skip
    return "\n".join([*about, *body, ""])


if __name__ == "__main__":
    sys.exit(main())
