"""What torchtitan says about a run beside its steps: mesh, batch, model, precision, recompute, compiling.

Sources, torchtitan 0.1 (2024) to 0.3 (2026): `train.py`, `config/job_config.py`, `distributed/parallel_dims.py`,
`models/*/infra/parallelize.py`, `components/metrics.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Settings, Statements
from receipts.ingest.literals import Brackets, flattened, integer, literal, number, size
from receipts.ingest.reading import Reading
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
            self._options(text, number)
        elif not took:
            self._assignment(text, number)
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

    def _options(self, text: str, line: int) -> None:
        for section, leaf, word in _OPTION.findall(text):
            value = literal(word) if word and not word.startswith("-") else True
            self._setting(section, leaf, value, f"--{section}.{leaf}", line, self._state_weakly)

    def _assignment(self, text: str, line: int) -> None:
        if match := _SECTION.match(text):
            self._section = match[1]
        elif self._section in _TOML and (match := _ASSIGNMENT.match(text)):
            word = match[2].strip().rstrip(",")
            self._setting(self._section, match[1], literal(word), match[1], line, self._state_weakly)

    def _whole(self, path: str, value: Any, text: str, line: int, say: Callable[..., None]) -> None:
        number = integer(value)
        if number is not None and number >= (0 if path.endswith("seed") else 1):
            say(path, number, text if str(number) in text else f"{text} = {number}", line)

    def _state_weakly(self, path: str, value: Any, text: str, line: int) -> None:
        self._weaker[path] = (value, text, line)
