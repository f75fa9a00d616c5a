"""torchtitan's log: step lines of every version since 2024, several ranks, and what is around them.

Sources: `torchtitan/components/metrics.py` (before 2025 `train.py`). ``tps`` (``wps`` before 2024-11-25) are tokens
a second a *device*, averaged since the last logged line, as are ``tflops`` and ``mfu``; the loss is the global mean at
the logged step; ``memory`` is the largest *reserved* pool of this rank since the last line, whose statistics are reset
there, in GiB.

What torchtitan says about a run beside its steps: mesh, batch, model, precision, recompute, compiling.

Sources, torchtitan 0.1 (2024) to 0.3 (2026): `train.py`, `config/job_config.py`, `distributed/parallel_dims.py`,
`models/*/infra/parallelize.py`, `components/metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.literals import FIGURE, Brackets, balanced, flattened, integer, literal, number, size
from receipts.ingest.reader import Spans
from receipts.ingest.reading import Reading, Reason
from receipts.ingest.record import Form, LineRecord, RecordRows
from receipts.ingest.record_reader import RANK as RANKS
from receipts.ingest.record_reader import RecordReader
from receipts.ingest.steps import ABSENT, Steps
from receipts.receipt.names import dtype

_AXES, _MODEL = (vocabulary.table("torchtitan")["configuration"][kind] for kind in ("mesh", "model"))
_SETTINGS: Final = Settings("torchtitan")
STATEMENTS: Final = Statements("torchtitan")
# Several of these together say one thing: `_flavour`.
_TOGETHER: Final = ("model", "activation_checkpoint")
RANK: Final = re.compile(r"\[(?:rank|default)(\d{1,6})\]")
# What a page or a script puts before the lines that it quotes.
_MARK = re.compile(r"^(?:[>#] ?)+(?=[\s\[{}'\"])")
_FOLDED = re.compile(r"\s*['\"}\]]")
_MESH = re.compile(r"\b(pp|dp_replicate|dp_shard|cp|tp|etp|ep)=(-?\d{1,9})\b")
_OLD_MESH = re.compile(r"device mesh with \[([^\]]{0,200})\], \[((?:\d{1,9}, ?){0,8}\d{1,9})\]")
_CAPACITY = re.compile(r"\b[A-Z]{3,4} capacity: .{1,90}? with ([\d.]{1,12})GiB memory")
_ARGUMENT = re.compile(r"\b(dim|n_layers|n_heads|n_kv_heads|vocab_size|head_dim)=(\d+)")
_OPTION = re.compile(
    r"--(training|parallelism|compile|activation_checkpoint|optimizer|model)\.(\w+)(?:[= ](?!--)(\S+))?"
)
_ASSIGNMENT = re.compile(r"^[\s#>|]*(\w+)\s*=\s*([^#]+)")
_SECTION = re.compile(r"^\s*\[([\w.]+)\]\s*$")
_TOML: Final = ("training", "parallelism", "compile", "activation_checkpoint", "optimizer", "experimental", "model")


class ConfigBlock(Brackets):
    """The lines of one rank's document."""

    _rank = -1

    def open(self, text: str, start: int, line: int) -> bool:
        """Begin a document at a bracket of a line; False where it is none of the configuration."""
        if "Building " in text and "with {" not in text:
            return False
        ranks = RANK.findall(text)
        self._rank = int(ranks[-1]) if ranks else -1
        self.begin(text[start:], line)
        return True

    def add(self, text: str) -> bool:
        """Take the next line of the file; whether the document goes on below it."""
        text = _MARK.sub("", text)
        match = RANK.match(text)
        rank = int(match[1]) if match else -1
        # A page that folds a line has no rank before its rest.
        if rank != self._rank and not (rank < 0 and _FOLDED.match(text)):
            return True
        return self.more(text[match.end() :].lstrip(":") if match else text)


class TorchtitanConfig:
    """Collects statements about a run. What the program prints is before its arguments and files."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.capacity: int | None = None
        self.fallback_peak = False
        self._section = "training"
        self._weaker: dict[str, tuple[Any, str, int]] = {}
        self._handlers: dict[str, Callable[[str, int], None]] = {
            "device mesh with": self._mesh,
            "GiB memory": self._memory,
            "Peak FLOPS used": self._peak,
            "Peak flops undefined": self._unknown_peak,
            "ModelArgs(": self._model_arguments,
        }

    def line(self, text: str, number: int) -> bool:
        """Take one line that may state something; whether it did."""
        took = STATEMENTS.take(self.reading, text, number)
        for word, handler in self._handlers.items():
            if word in text:
                handler(text, number)
                took = True
        if not took and "--" in text:
            for section, leaf, word in _OPTION.findall(text):
                value = literal(word) if word and not word.startswith("-") else True
                self._setting(section, leaf, value, f"--{section}.{leaf}", number, self._state_weakly)
        elif not took:
            if match := _SECTION.match(text):
                self._section = match[1]
            elif self._section in _TOML and (match := _ASSIGNMENT.match(text)):
                word = match[2].strip().rstrip(",")
                self._setting(self._section, match[1], literal(word), match[1], number, self._state_weakly)
        return took

    def document(self, text: str, line: int) -> bool:
        """A configuration that was printed whole (`Running with …`), or a model's (`Building …`)."""
        document = literal(text, text.index("{"))
        if not isinstance(document, dict):
            return False
        flat = flattened(document)
        if "dim" in document or "n_layers" in document:
            for name, path in _MODEL.items():
                self._whole(path, document.get(name), name, line, self.reading.state)
            return True
        self.reading.resolve(flat)
        for name, value in flat.items():
            section, _, leaf = name.partition(".")
            self._setting(section, leaf, value, name, line, self.reading.state)
        self._flavour(flat, line)
        return True

    def settle(self) -> None:
        """State what only arguments and files said."""
        for path, (value, text, line) in self._weaker.items():
            if path not in self.reading.stated:
                self.reading.state(path, value, text, line)

    def value(self, path: str) -> Any:
        """What is known of a path so far, also from arguments and files."""
        stated = self.reading.stated.get(path)
        if stated is not None:
            return stated.value
        weaker = self._weaker.get(path)
        return weaker[0] if weaker else None

    def step_tokens_per_chip(self) -> float | None:
        """Tokens of one step over all chips of the mesh, per chip: what a step's time follows from; None if unknown."""
        chips = self.value("hardware.chips")
        tokens = self.value("measurement.tokens_per_step")
        if tokens is None:
            batch, length = self.value("batch.global_batch"), self.value("batch.sequence_length")
            tokens = batch * length if batch and length else None
        if tokens is None or not chips:
            return None
        return float(tokens / chips)

    def _mesh(self, text: str, line: int) -> None:
        degrees = {name: int(value) for name, value in _MESH.findall(text)}
        if not degrees and (match := _OLD_MESH.search(text)):
            names = [name.strip(" '\"") for name in match[1].split(",")]
            sizes = [int(item) for item in match[2].split(",") if item.strip()]
            if len(names) != len(sizes):
                return
            degrees = {"dp_shard" if name == "dp" else name: size for name, size in zip(names, sizes, strict=True)}
            degrees = {name: degrees.get(name, 1) for name in ("pp", "dp_replicate", "dp_shard", "cp", "tp")}
        if not degrees or any(degree < 1 or degree > 1 << 24 for degree in degrees.values()):
            return
        for name, degree in degrees.items():
            self.reading.state(_AXES[name], degree, f"{name}={degree}", line)
        if {"dp_replicate", "dp_shard"} <= degrees.keys():
            data = degrees["dp_replicate"] * degrees["dp_shard"]
            self.reading.state("parallelism.data", data, f"dp_replicate × dp_shard = {data}", line)
            chips = data * degrees.get("tp", 1) * degrees.get("pp", 1) * degrees.get("cp", 1)
            self.reading.state("hardware.chips", chips, text[text.find("device mesh") :], line)

    def _memory(self, text: str, _: int) -> None:
        if match := _CAPACITY.search(text):
            self.capacity = size(f"{match[1]} GiB")

    def _peak(self, text: str, line: int) -> None:
        value = number(text.rpartition(":")[2].split()[0]) if text.rpartition(":")[2].split() else None
        # The peak of a chip that is not there is nobody's denominator.
        if value is not None and 0 < value < 1e18 and not self.fallback_peak:
            self.reading.state("measurement.stated.peak_flops_per_second", value, text[text.find("Peak FLOPS") :], line)
            self.reading.state("measurement.stated.peak_dtype", "bf16", "torchtitan's table holds BF16 peaks", line)

    def _unknown_peak(self, text: str, line: int) -> None:
        if not self.fallback_peak:
            self.fallback_peak = True
            what = text[text.find("Peak flops") :]
            self.reading.remark(
                "contradiction", f"{what[:160]}: MFU is against the peak of a chip that is not there; ignore it", line
            )

    def _model_arguments(self, text: str, line: int) -> None:
        for name, value in _ARGUMENT.findall(text):
            self._whole(_MODEL[name], value, f"{name}={value}", line, self.reading.state)

    def _setting(self, section: str, leaf: str, value: Any, text: str, line: int, say: Callable[..., None]) -> None:
        """One setting of the job's configuration, whatever printed it; a value below one means *automatic*."""
        if section not in _TOGETHER and (stated := _SETTINGS.read(f"{section}.{leaf}", value)):
            say(*stated, f"{text} = {value}", line)
        elif section == "metrics" and leaf == "log_freq":
            interval = integer(value)
            self.reading.steps.interval = interval if interval and interval > 0 else None

    def _flavour(self, flat: dict[str, Any], line: int) -> None:
        mode, option = flat.get("activation_checkpoint.mode"), flat.get("activation_checkpoint.selective_ac_option")
        if isinstance(mode, str):
            recompute = f"selective: {option}" if mode == "selective" and option else mode
            self.reading.state("numerics.recompute", recompute, f"activation_checkpoint.mode = {mode}", line)
        name, flavor = flat.get("model.name"), flat.get("model.flavor")
        if isinstance(name, str) and isinstance(flavor, str):
            self.reading.state("model.name", f"{name} {flavor}", "model.name, model.flavor", line)
        converters = flat.get("model.converters")
        if isinstance(converters, list) and any("float8" in str(item) for item in converters):
            self.reading.state("numerics.compute_dtype", "fp8", f"model.converters = {converters}", line)
            recipe = flat.get("quantize.linear.float8.recipe_name") or flat.get("float8.recipe_name")
            if isinstance(recipe, str):
                self.reading.state("numerics.fp8_recipe", recipe, f"float8.recipe_name = {recipe}", line)
        elif isinstance(param := flat.get("training.mixed_precision_param"), str):
            text = f"training.mixed_precision_param = {param}"
            self.reading.state("numerics.compute_dtype", dtype(param) or param, text, line)

    def _whole(self, path: str, value: Any, text: str, line: int, say: Callable[..., None]) -> None:
        number = integer(value)
        if number is not None and number >= (0 if path.endswith("seed") else 1):
            say(path, number, text if str(number) in text else f"{text} = {number}", line)

    def _state_weakly(self, path: str, value: Any, text: str, line: int) -> None:
        self._weaker[path] = (value, text, line)


# What is left of a colour code whose escape character was lost on the way: `[31mstep:`.
_RESIDUE = re.compile(r"(?:#?\\?x?0?33)?\[\d{1,3}(?:;\d{1,3}){0,5}m")
_EVALUATION = re.compile(r"valid(?:ate|ation)?\b|\bval\b|\beval", re.IGNORECASE)
_COUNTS = re.compile(r"(\d{1,9}) \w{2,5} (memory allocation retries|OOM errors thrown)")
_DUMP = re.compile(r"Dumping (?:profiler )?traces at step (\d{1,12})")
_START = re.compile(r"Training starts at step (\d{1,12})")
_RATE: Final = "tokens_per_second_per_chip"
# Of a rank that does not hold the last stage of the pipeline.
_NO_LOSS: Final = -1.0
# Characters before a record in which words make it one of an evaluation.
_NEAR: Final = 24


class Torchtitan(RecordReader, table="torchtitan"):
    """Reads torchtitan's console lines."""

    companions: ClassVar[tuple[bytes, ...]] = (b"elapsed time per iteration",)
    rank = RANK
    needs = frozenset()
    any_of = frozenset({"loss", _RATE})
    forms = (
        Form(
            # Forks add the last step and the share: `step: 640/644 = 99.3789%`. `acc` is Lingua's.
            re.compile(
                r"(?<!\w)step(?::\s*|=)(?P<step>\d{1,12})(?!\w)"
                r"(?:\s?/\s?\d{1,12}(?:\s?=\s?[\d.]{1,9}%)?)?\s*(?=[A-Za-z]|$)(?!acc:)",
                re.IGNORECASE,
            ),
            (
                re.compile(
                    r"(?<![\w/])m?(?P<label>loss|global_avg_loss|grad_norm|(?:peak_)?memory|[tw]ps|throughput\(tps\)|"
                    rf"tflops|mfu(?:\(%\))?)[:=]\s*(?P<word>{FIGURE})(?P<unit>GiB|%)?",
                    re.IGNORECASE,
                ),
            ),
            end=re.compile(r"(?=.*(?:[tw]ps|throughput\(tps\))[:=]\s*\d)(?=.*mfu(?:\(%\))?[:=]\s*\d)", re.IGNORECASE),
        ),
    )

    def __init__(self) -> None:
        super().__init__()
        self._config = TorchtitanConfig(self.reading)
        self._stated = 0
        self._block = ConfigBlock(most=4000)
        self._wrapped_trainer = False
        self._disturbed: dict[int | None, Reason] = {}
        self._counts: dict[str, int] = {}
        self._asked = True
        self._step_tokens: float | None = None
        self._foreign = self._lossless = False

    def line(self, text: str, number: int) -> bool:
        """Take one line, without what is left of its colours."""
        return super().line(_RESIDUE.sub("", text) if "[" in text and "m" in text else text, number)

    def spans(self, text: str) -> Spans:
        """The places of a record's figures, where no colour's rest is between them."""
        return {} if _RESIDUE.search(text) else super().spans(text)

    def find(self, text: str) -> list[LineRecord]:
        """The records on a line, but for those of an evaluation."""
        if "step" not in text and "Step" not in text and "STEP" not in text:
            return []
        records = super().find(text)
        return [it for it in records if not _EVALUATION.search(text, max(0, it.start - _NEAR), it.start)]

    def inside(self) -> bool:
        """Whether a printed configuration, or a line that a page wrapped, goes on."""
        return bool(self._block) or self._wrapped_trainer

    def rows(self, rows: RecordRows) -> None:
        """Take records; a step's time follows from the tokens of a step and the rate of a chip."""
        if self._block:
            self._document()
        figures = rows.figures
        ranks: list[int | None] = [*rows.counts.get(RANKS, [])] or [None] * len(rows.steps)
        if "peak_reserved_bytes" in figures:
            self.reading.memory_unavailable = "it is printed as 0.00GiB: the allocator was not the accelerator's"
        if _RATE in figures and self._asked:  # only after a line that may have stated something
            self._asked = False
            self._step_tokens = self._config.step_tokens_per_chip()
        if _RATE in figures and (tokens := self._step_tokens):
            figures["step_seconds"] = [tokens / rate if rate > 0 else ABSENT for rate in figures[_RATE]]
        if self._disturbed:
            for step, rank in zip(rows.steps, ranks, strict=True):
                if why := self._disturbed.pop(rank, None) or self._disturbed.pop(None, None):
                    self.reading.not_steady.setdefault(step, why)
        losses = figures.get("loss", ())
        if _NO_LOSS in losses:
            figures["loss"] = kept = [ABSENT if loss == _NO_LOSS else loss for loss in losses]
            if max(kept) == ABSENT:
                del figures["loss"]
            if not self._lossless:
                self._lossless = True
                what = "loss -1.0 is no loss: this rank does not hold the last stage of the pipeline"
                self.reading.remark("missing", what, rows.lines[list(losses).index(_NO_LOSS)])
        self.put(rows)

    def finish(self) -> Reading | None:
        """The reading, with each rank's peak and the file's arguments where nothing printed said otherwise."""
        posture = self._config.value("compile.posture")
        self.first_step = "warmup" if posture in (None, "eager") else "compile"
        super().finish()
        reading = self.reading
        reading.records += self._stated
        if not reading.records:
            return None
        self._config.settle()
        if self._foreign:
            # A wrapper of Megatron prints lines of this form, with another formula for FLOPs: the steps are Megatron's.
            reading.steps, reading.diverged = Steps(), None
            reading.not_steady.clear()
            reading.remark("note", "step lines of torchtitan's form in a log of Megatron: only their memory is read")
        if reading.memory:
            reading.memory_unavailable = None
        for at, row in enumerate(reading.memory):
            phase = "post_step0" if (row.step or 0) <= 1 else "steady"
            reading.memory[at] = replace(row, phase=phase, bytes_limit=self._config.capacity)
        reading.counters.update(self._counts)
        version = reading.stated.get("wheels.torchtitan")
        reading.version = version.value if version else None
        if reading.steps.interval is None:
            # The spacing of logged steps, the first aside: torchtitan logs step 1 and then every so many.
            gaps = {after - before for before, after in pairwise(reading.steps.numbers()[1:])}
            reading.steps.interval = gaps.pop() if len(gaps) == 1 else None
        return reading

    def other(self, text: str, line: int) -> None:
        """Take a line of the configuration, or one that says what happened between the steps."""
        self._asked = True
        if self._block:
            if not self._block.add(text):
                self._document()
            return
        if "elapsed time per iteration" in text:
            self._foreign, self.follows = True, False
        elif self._wrapped_trainer:
            self._wrapped_trainer = False
            STATEMENTS.take(self.reading, text, line)
        elif not self._printed(text, line):
            if _START.search(text):
                self.fresh = True
            if match := _COUNTS.search(text):
                name = "cuda_alloc_retries" if "retries" in match[2] else "cuda_ooms"
                if name not in self._counts:
                    full = name == "cuda_alloc_retries"
                    what = "the allocator ran full and freed its cache" if full else "allocations failed"
                    self.reading.remark("note", f"{match[0]}: {what}", line)
                self._counts[name] = max(self._counts.get(name, 0), int(match[1]))
            elif match := _DUMP.search(text):
                step = int(match[1])
                ranks = RANK.findall(text)
                self._disturbed[int(ranks[-1]) if ranks else None] = "profile"
                if step in self.reading.steps:
                    self.reading.not_steady[step] = "profile"
            elif "Saving the checkpoint" in text or "Saving a full checkpoint" in text:
                ranks = RANK.findall(text)
                self._disturbed[int(ranks[-1]) if ranks else None] = "checkpoint"
            elif self._config.line(text, line):
                self._stated += "torchtitan" in text or "Trainer is initialized" in text or "device mesh with" in text
                self._wrapped_trainer = "Trainer is initialized" in text and text.rstrip().endswith(",")

    def _printed(self, text: str, line: int) -> bool:
        """Whether a line prints a configuration, or begins one."""
        running = "Running with args: {" in text or "Running with configs: {" in text
        if ("Running with " in text or "Building " in text) and text.rstrip().endswith("{"):
            return self._block.open(text, text.rindex("{"), line) or True
        if running and balanced(text) > 0:
            return self._block.open(text, text.index("{"), line)
        if running:
            self._stated += self._config.document(text, line)
        return running

    def _document(self) -> None:
        self._asked = True
        self._stated += self._config.document(self._block.take(), self._block.line)


READERS = (Torchtitan,)
