"""Raw facts of one launch of a decoder to a receipt 1.0.

    python benchmarks/decoder/receipt.py RAW.json… --output DIR

writes `DIR/LABEL.json` and copies what witnessed each launch to `DIR/evidence/`. Nothing is filled in: a fact that the
launch did not record is not stated.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from witnessed import compiled, counters, evidence, path, recompute_applied

Json = dict[str, Any]
SAMPLE = 50  # losses are kept at every so many steps, for parity at equal steps


def receipt(raw: Json) -> Json:
    """The document for one launch."""
    document: Json = {
        "schema_version": "1.0",
        "run": run(raw),
        "code": {"repository": "receipts", "imported_digest": raw["code"]["imported_digest"]},
        "hardware": {"accelerator": "cpu", "chips": 1, "hosts": 1},
        "platform": {"os": raw["host"]["os"], "python": raw["python"]},
        "wheels": {"complete": True, **dict(sorted(raw["wheels"].items()))},
        "flags": flags(raw),
        "patches": {"complete": True},
        "features": features(raw),
        "model": model(raw),
        "parallelism": parallelism(),
        "batch": batch(raw),
        "numerics": numerics(raw),
        "compile": compiled(raw),
        "data": {
            "dataset": raw["corpus"]["name"],
            "dataset_digest": raw["corpus"]["digest"],
            "tokenizer": "bytes",
            "kind": "real",
        },
        "path": path(raw),
        "measurement": measurement(raw),
        "memory": {"chips": list(memory(raw))},
    }
    if "failure" in raw:
        document["failure"] = failure(raw)
    if "evidence" in raw:
        document["evidence"] = [evidence(raw)]
    document["notes"] = notes(raw)
    return document


def run(raw: Json) -> Json:
    """Identity, and how it ended: the process died, its losses were not finite, or neither."""
    if "failure" in raw:
        outcome = "oom" if "allocate memory" in raw["failure"]["message"] else "crash"
    else:
        outcome = "ok" if _finite(raw["losses"]) else "nan"
    return {
        "launch": raw["launch"],
        "label": f"cpu {raw['label'].replace('-', ' ')}",
        "lane": f"cpu-{raw['framework']}",
        "kind": "training",
        "outcome": outcome,
        "provenance": "measured",
        "started": raw["started"],
        "finished": raw["finished"],
        "context": raw["context"],
        "host": raw["host"]["label"],
        "command": raw["command"],
        "exit_code": raw["exit_code"],
        "tags": ["demo", "decoder"],
    }


def _finite(values: list[float | None]) -> bool:
    return all(value is not None for value in values)


def flags(raw: Json) -> Json:
    """The environment, sub-flags of XLA apart."""
    found: Json = {"complete": True}
    before = raw["environment"]["before_runtime"]
    for name, value in raw["environment"]["variables"].items():
        if name != "XLA_FLAGS":
            found[name] = {"value": value, "before_runtime": before}
            continue
        for flag in value.split():
            key, _, setting = flag.removeprefix("--").partition("=")
            found[f"XLA_FLAGS.{key}"] = {"value": setting or "true", "before_runtime": before}
    return found


def features(raw: Json) -> Json:
    """Every switch of the scripts that no other section holds."""
    asked = raw["configuration"]
    found: Json = {
        "complete": True,
        "activation": "gelu",
        "adamw": "betas 0.9, 0.95; weight decay 0.1",
        "biases": False,
        "dropout": 0.0,
        "gradient_clipping": asked["clip"],
        "normalization": "layer_norm before each sub-block",
        "positions": "learned",
        "processors": len(raw["host"]["affinity"]),
        "tensor_statistics": False,
        "validation_in_loop": False,
    }
    if raw["framework"] == "torch":
        found["threads"] = raw["threads"]["intra"]
        found["sdpa_inner_backend"] = asked["inner_attention"] or "none"
        if asked["address_space_limit_bytes"]:
            found["address_space_limit_bytes"] = asked["address_space_limit_bytes"]
    else:
        found["donate"], found["layers"] = asked["donate"], asked["layers"]
    return found


def model(raw: Json) -> Json:
    """Geometry. A block is attention and feed-forward together: the fused group of the alphabet."""
    asked = raw["configuration"]
    return {
        "name": f"decoder-{asked['depth']}x{asked['hidden']}",
        "family": "dense",
        "pattern": "[*-]" * asked["depth"],
        "alphabet": "nemo",
        "depth": asked["depth"],
        "hidden": asked["hidden"],
        "heads": asked["heads"],
        "kv_heads": asked["heads"],
        "head_dim": asked["hidden"] // asked["heads"],
        "ffn": asked["ffn"],
        "ffn_projections": 2,
        "vocabulary": raw["vocabulary"],
        "experts": 0,
        "mtp_depth": 0,
        "tied_embeddings": False,
        "attention_kinds": f"{asked['depth']} full",
        "parameters_total": raw["parameters"],
        "parameters_active": raw["parameters"],
    }


def parallelism() -> Json:
    """One process on one processor."""
    ones = ("tensor", "expert_tensor", "expert", "context", "pipeline", "virtual_pipeline", "data")
    return {**dict.fromkeys(ones, 1), "sequence": False}


def batch(raw: Json) -> Json:
    asked = raw["configuration"]
    size = asked["micro_batch"]
    return {
        "micro_batch": size,
        "global_batch": size,
        "sequence_length": asked["sequence_length"],
        "accumulation": 1,
    }


def numerics(raw: Json) -> Json:
    asked = raw["configuration"]
    found = {
        "compute_dtype": asked["dtype"],
        "fp8_recipe": "none",
        "parameter_dtype": asked["dtype"],
        "reduction_dtype": asked["dtype"],
        "optimizer": "adamw_fused" if raw["framework"] == "torch" else "adamw",
        "optimizer_other": "none",
        "optimizer_state_dtype": asked["dtype"],
        "learning_rate": asked["learning_rate"],
        "schedule": "constant",
        "seed": asked["seed"],
        "recompute": asked.get("recompute", "none"),
        "adapters": {"kind": "none"},
    }
    applied = recompute_applied(raw)
    if applied is not None:
        found["recompute_applied"] = applied
    return found


def measurement(raw: Json) -> Json:
    """Every step's duration. The steps that were profiled come after the window, and are flagged."""
    asked = raw["configuration"]
    steps, warmup = len(raw["durations"]), asked["warmup"]
    found: Json = {
        "timer": "perf_counter",
        "synchronisation": "block_until_ready" if raw["framework"] == "jax" else "loss read",
        "region": "step",
        "tokens_per_step": asked["micro_batch"] * asked["sequence_length"],
    }
    if not steps:
        return found
    stop = min(steps, warmup + asked["steps"])
    marked = {"warmup": list(range(min(warmup, steps))), "profile": list(range(stop, steps))}
    if asked.get("posture") == "whole_graph":
        marked["compile"] = [0]
    found["window"] = {"start": warmup, "stop": stop, "warmup_steps": warmup}
    found["step_flags"] = {name: positions for name, positions in marked.items() if positions}
    found["loss"] = loss(raw)
    found["gradient_norm"] = gradient_norm(raw)
    if raw["framework"] == "torch" and "evidence" in raw:
        found["path_counters"] = list(counters(raw))
    found["step_durations_seconds"] = raw["durations"]
    return found


def loss(raw: Json) -> Json:
    losses = raw["losses"]
    kept = [index for index in range(0, len(losses), SAMPLE) if losses[index] is not None]
    found = {
        "first": losses[0],
        "last": losses[-1],
        "finite": _finite(losses),
        "steps": kept,
        "values": [losses[index] for index in kept],
    }
    return {name: value for name, value in found.items() if value is not None}


def gradient_norm(raw: Json) -> Json:
    norms = raw["gradient_norms"]
    largest = max((norm for norm in norms if norm is not None), default=None)
    found = {"first": norms[0], "last": norms[-1], "largest": largest, "finite": _finite(norms)}
    return {name: value for name, value in found.items() if value is not None}


def memory(raw: Json) -> Iterable[Json]:
    """Resident bytes by phase; where a limit on the address space was set, that limit counts virtual bytes."""
    limit = raw["configuration"].get("address_space_limit_bytes")
    for phase in ("post_init", "post_compile", "post_step0", "steady"):
        row = raw["memory"].get(phase)
        if row is None:
            continue
        yield {
            "chip": 0,
            "phase": phase,
            "bytes_used": row["virtual_bytes"] if limit else row["resident_bytes"],
            "bytes_limit": limit or raw["host"]["ram_bytes"],
            **({} if limit else {"peak_bytes": row["peak_resident_bytes"]}),
        }


def failure(raw: Json) -> Json:
    """The allocator's refusal, with what the process held when it was raised."""
    error = raw["failure"]
    asked = re.search(r"tried to allocate (\d+) bytes", error["message"])
    found: Json = {
        "phase": raw["phase"],
        "class": "runtime_alloc" if asked else "not_oom",
        "used_bytes": error["memory"]["virtual_bytes"],
        "operator": error["frames"][-1],
        "message": error["message"],
        "chip": 0,
        "step": len(raw["durations"]),
    }
    if asked:
        found["requested_bytes"] = int(asked.group(1))
    limit = raw["configuration"].get("address_space_limit_bytes")
    return {**found, "limit_bytes": limit} if limit else found


def notes(raw: Json) -> Json:
    """What a reader may want to know of the machine and its other load."""
    host = raw["host"]
    found: Json = {
        "processor": f"{host['cpu']}, {host['cores']} cores, pinned to {host['affinity']}, priority {raw['nice']}",
        "load_average": f"{host['load_average'][0]:.2f} at the start, {host['load_average_at_end'][0]:.2f} at the end",
        "memory": "bytes_used and peak_bytes are the process's resident set, its libraries included",
    }
    if raw["configuration"].get("address_space_limit_bytes"):
        found["memory"] = "bytes_used is the process's address space, which is what the limit counts"
    begin, end = raw["usage"].get("at_window_start"), raw["usage"].get("at_window_end")
    if begin and end:
        share = (end["cpu_seconds"] - begin["cpu_seconds"]) / (end["seconds"] - begin["seconds"])
        switches = end["involuntary_switches"] - begin["involuntary_switches"]
        found["processor_share"] = f"{share:.3f} of the window on the processor, {switches} involuntary switches"
    return found


def readable(value: Any, indent: int = 0) -> str:
    """JSON with two levels of lines; what is deeper stands on one, and long lists are wrapped."""
    if isinstance(value, dict) and value and indent < 4:
        inner = " " * (indent + 2)
        rows = [f"{inner}{json.dumps(key)}: {readable(item, indent + 2)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    if isinstance(value, list) and len(value) > 24:
        inner = " " * (indent + 2)
        texts = [json.dumps(item, ensure_ascii=False) for item in value]
        rows = [", ".join(texts[start : start + 10]) for start in range(0, len(texts), 10)]
        return "[\n" + ",\n".join(inner + row for row in rows) + "\n" + " " * indent + "]"
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("a value that is not finite has no place in a receipt")
    return json.dumps(value, ensure_ascii=False)


def main() -> None:
    """Convert each file of raw facts."""
    options = argparse.ArgumentParser(description="Raw facts of a launch to a receipt.")
    options.add_argument("raw", nargs="+", type=Path)
    options.add_argument("--output", type=Path, required=True)
    asked = options.parse_args()
    (asked.output / "evidence").mkdir(parents=True, exist_ok=True)
    for file in asked.raw:
        raw = json.loads(file.read_text())
        (asked.output / file.name).write_text(readable(receipt(raw)) + "\n")
        if "evidence" in raw:
            name = raw["evidence"]["name"]
            shutil.copyfile(file.parent / "evidence" / name, asked.output / "evidence" / name)


if __name__ == "__main__":
    main()
