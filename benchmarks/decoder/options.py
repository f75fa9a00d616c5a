"""Options that both decoders take, and the shape that they train."""

from __future__ import annotations

import argparse
import hashlib
import json
import uuid
from pathlib import Path


def parser(description: str) -> argparse.ArgumentParser:
    """Shape, optimization and measurement; each framework adds what is its own."""
    options = argparse.ArgumentParser(description=description, allow_abbrev=False)
    shape = options.add_argument_group("shape")
    shape.add_argument("--depth", type=int, default=4)
    shape.add_argument("--hidden", type=int, default=128)
    shape.add_argument("--heads", type=int, default=4)
    shape.add_argument("--ffn", type=int, default=512)
    shape.add_argument("--sequence-length", type=int, default=256)
    shape.add_argument("--micro-batch", type=int, default=2)
    training = options.add_argument_group("training")
    training.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    training.add_argument("--learning-rate", type=float, default=3e-4)
    training.add_argument("--clip", type=float, default=1.0, help="largest global gradient norm")
    training.add_argument("--seed", type=int, default=1234)
    measured = options.add_argument_group("measurement")
    measured.add_argument("--warmup", type=int, default=20, help="steps before the window")
    measured.add_argument("--steps", type=int, default=300, help="steps of the window")
    measured.add_argument("--profile-steps", type=int, default=2, help="steps after the window, for the witness")
    measured.add_argument("--host-label", default="bench-cpu", help="what to call this machine")
    measured.add_argument("--launch", default=str(uuid.uuid4()), help="identity of the launch; made when not given")
    measured.add_argument("--output", type=Path, required=True, help="raw facts, as JSON")
    measured.add_argument("--evidence", type=Path, required=True, help="what witnessed the path, as JSON")
    return options


# Identity and places of a launch are not its configuration.
_PLACES = ("launch", "output", "evidence", "host_label")


def configuration(options: argparse.Namespace) -> dict[str, object]:
    """What was asked for."""
    return {name: value for name, value in sorted(vars(options).items()) if name not in _PLACES}


def context(options: argparse.ArgumentParser) -> str:
    """Digest of the defaults: the base configuration that launches of one script share."""
    base = {action.dest: action.default for action in options._actions if action.dest not in (*_PLACES, "help")}
    return hashlib.sha256(json.dumps(base, sort_keys=True).encode()).hexdigest()


def command(script: str, arguments: list[str]) -> str:
    """The command line without the folder of the interpreter or of the outputs."""
    shown = [Path(item).name if item.startswith("/") else item for item in arguments]
    return " ".join(["python", f"benchmarks/decoder/{script}", *shown])
