"""What the launches of this folder share: options, the corpus, and statements that are alike for both frameworks."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sysconfig
from pathlib import Path
from typing import Any

from receipts.emit import Recorder

HERE = Path(__file__).resolve().parent
HIDDEN, HEADS, FFN, VOCABULARY = 64, 4, 256, 256
STATE, EXPERTS, TOP_K = 8, 4, 2
BATCH, LENGTH = 8, 64
WARMUP, STEPS, PROFILED = 20, 300, 2
RATE, CLIP = 0.1, 1.0
# Patterns by model: letters and the alphabet that they are of (receipts/patterns.py).
PATTERNS = {"decoder": ("*-*-", "nemo"), "hybrid": ("AMER", "nam")}
MODULES = ("argparse.py", "ast.py", "difflib.py", "inspect.py", "tarfile.py", "typing.py")


def options(variants: tuple[str, ...], about: str, *, devices: bool = False) -> argparse.Namespace:
    """The command line: which model, broken in which way, under which name."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("--model", choices=sorted(PATTERNS), default="decoder")
    parser.add_argument("--variant", choices=variants, default="clean")
    if devices:
        parser.add_argument("--devices", type=int, default=1, help="virtual devices, over which the batch is split")
    parser.add_argument("--out", type=Path, default=HERE, help="folder for the receipt")
    return parser.parse_args()


def corpus() -> bytes:
    """Bytes of Python's own standard library: one token a byte."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    return b"".join((folder / name).read_bytes() for name in MODULES)


def named(lane: str, asked: argparse.Namespace) -> str:
    """What the launch is called: framework, model, variant, and devices where there are several."""
    name = f"{lane.partition('-')[2]}-{asked.model}-{asked.variant}"
    several = getattr(asked, "devices", 1)
    return name if several == 1 else f"{name}-{several}"


def recorder(lane: str, asked: argparse.Namespace, *, synchronisation: str) -> Recorder:
    """The recorder of a launch that is named after what it runs."""
    name = named(lane, asked)
    return Recorder(
        lane,
        out=asked.out / f"{name}.json",
        label=name,
        context=f"examples/recorder {asked.model}, {lane}",
        warmup=WARMUP,
        synchronisation=synchronisation,
        site="example",
    )


def state(rec: Recorder, asked: argparse.Namespace, data: bytes, *, parameters: int, chips: int = 1) -> None:
    """State what the launch file alone knows: the model, the batch, the numbers, the data."""
    pattern, alphabet = PATTERNS[asked.model]
    attending = sum(letter in "*A" for letter in pattern)
    rec.state(
        "model",
        {
            "name": asked.model,
            "family": "hybrid" if asked.model == "hybrid" else "dense",
            "pattern": pattern,
            "alphabet": alphabet,
            "depth": len(pattern),
            "hidden": HIDDEN,
            "heads": HEADS,
            "kv_heads": HEADS,
            "head_dim": HIDDEN // HEADS,
            "ffn": FFN,
            "ffn_projections": 2,
            "vocabulary": VOCABULARY,
            "experts": EXPERTS if "E" in pattern else 0,
            "mtp_depth": 0,
            "tied_embeddings": False,
            "attention_kinds": f"{attending} MHA",
            "parameters_total": parameters,
        },
    )
    if "E" in pattern:
        rec.state("model", {"top_k": TOP_K, "expert_ffn": FFN, "shared_expert_ffn": 0})
    rec.state("batch", {"micro_batch": BATCH // chips, "global_batch": BATCH, "accumulation": 1})
    rec.state("batch.sequence_length", LENGTH)
    rec.state("parallelism", {"tensor": 1, "pipeline": 1, "context": 1, "expert": 1})
    rec.state("numerics", {"compute_dtype": "fp32", "parameter_dtype": "fp32", "optimizer": "sgd", "seed": 1})
    rec.state("numerics", {"learning_rate": RATE, "schedule": "constant", "recompute": "none"})
    rec.state("numerics.adapters.kind", "none")
    rec.state("features", {"gradient_clipping": CLIP, "normalization": "layer_norm", "positions": "learned"})
    rec.state("data", {"dataset": "six modules of Python's standard library", "tokenizer": "bytes", "kind": "real"})
    rec.state("data.dataset_digest", hashlib.sha256(data).hexdigest())


def write(folder: Path, asked: argparse.Namespace, lane: str, seen: dict[str, Any]) -> Path:
    """One file of evidence, named relative to the working folder, so that the receipt finds it beside itself."""
    path = Path("evidence") / f"{named(lane, asked)}.json"
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(json.dumps(seen, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return path


def bare(text: str) -> str:
    """The same with the names of files, and none of their folders."""
    return re.sub(r"(?<![\w.-])/(?:[^/\s\"']+/)+", "", text)
