"""How far the product reads public input as a careful person did, whose words no other case had before.

    python benchmarks/public_agreement.py --cases DIR [--json]

DIR holds ``NAME.json`` with a ``truth`` beside ``NAME.log`` or ``.json.gz``, or a list of ``files`` that are one call.
Of a truth the leaves of the receipt are compared as they are: None is a leaf that is absent, or an outcome that is
unknown; a number is right to 1e-4 or where it stands in the words of the truth. What a truth says in words of its own
is compared by `SAYS`, by the kind of the case; statements about pages are those of ``lint_corpus.py``. Exit 0 when all
are right, 1 when one is not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
# Never first: statistics.py lies here as well.
sys.path[:] = [place for place in sys.path if Path(place or ".").resolve() != HERE]

from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.judging.rulebook import builtin
from receipts.receipt.leaves import find_leaf

NEAR = 1e-4
# Truths of pages, of tables and of comparisons, which other benchmarks judge.
ELSEWHERE = ("b", "lint-", "c112-")


@dataclass(frozen=True, slots=True)
class Answer:
    """What ingesting the files of a case gives."""

    ingested: Ingested

    def get(self, path: str) -> Any:
        """A leaf of the receipt, or None."""
        node: Any = self.ingested.tree
        for name in path.split("."):
            node = node.get(name) if isinstance(node, dict) else None
        return node

    @property
    def told(self) -> str:
        """Every remark and contradiction."""
        messages = [message.text for message in self.ingested.messages]
        return "\n".join([*messages, *(item.what for item in self.ingested.contradictions)])


class Item(NamedTuple):
    """One thing of one case, what is true of it, what the product gives, and whether that is right."""

    case: str
    what: str
    wanted: Any
    got: Any
    right: bool


def _stated(name: str) -> Callable[[Answer], Any]:
    return lambda answer: answer.get(f"measurement.stated.{name}")


def _durations(answer: Answer) -> Any:
    return answer.get("measurement.step_durations_seconds")


def _says(*words: str) -> Callable[[Answer], Any]:
    return lambda answer: all(word in answer.told for word in words)


# By case: what it says in words, as a leaf with its value, or as words that the product has to say.
SAYS: Mapping[str, tuple[tuple[str, Callable[[Answer], Any], Any], ...]] = {
    "a01-tpu7x-devices-as-chips": (
        ("tokens/s", _stated("tokens_per_second_per_chip"), 6917.2),
        ("TFLOP/s", _stated("tflops_per_second_per_chip"), 333.75),
    ),
    "a05-ptxla-compiletime-too-slow": (
        ("outcome", lambda answer: answer.get("run.outcome"), "crash"),
        ("longest compile", _says("754.865 s"), True),
    ),
    "a06-tpuestimator-mean-as-one-step": (("step", _stated("step_seconds"), 0.454089),),
    "a07-maxtext-hardware-gpu-lane-tpu": (("lane", lambda answer: answer.get("run.lane") == "tpu-maxtext", False),),
    "a09-maxdiffusion-as-maxtext": (
        ("framework", lambda answer: answer.get("path.witnessed.framework"), "maxdiffusion"),
        ("lane", lambda answer: answer.get("run.lane") == "tpu-maxtext", False),
    ),
    "a10-hbm-breakdown-counts-ok": (("outcome", lambda answer: answer.get("run.outcome") in ("oom", "unknown"), True),),
    "a12-levanter-bar-rate": (("step", _stated("step_seconds"), 76.8),),
    "a13-tinygrad-llama-step": (
        ("steps", _durations, [7.34, 4.32, 4.36]),
        ("loss", lambda answer: answer.get("measurement.loss.last"), 11.9375),
    ),
    "a14-prime-rl-2025-step": (("MFU", _says("337.59%"), True),),
    "a16-e1001-operator-ellipsis": (
        ("requested", lambda answer: answer.get("failure.requested_bytes"), 20814234),
        ("limit", lambda answer: answer.get("failure.limit_bytes"), 16777216),
        ("message", lambda answer: "DELTA" in answer.get("failure.message"), False),
    ),
    "a17-jax-memory-stats-dict": (
        ("limit", lambda answer: answer.get("memory.aggregate.limit_bytes"), 33014415360),
        ("peak", lambda answer: answer.get("memory.aggregate.bytes"), 12288),
    ),
    "a19-pithtrain-step": (
        ("step", _durations, [24.51, 24.51]),
        ("tokens/s", _stated("tokens_per_second"), 85564.5),
    ),
    "arctic-planned-counts-ok": (("step", _durations, [0.996]),),
    "dynamo-fullgraph-limit": (("fallbacks", lambda answer: answer.get("path.witnessed.fallbacks"), None),),
    "hf-bars-alone": (("step", _stated("step_seconds"), 20.0),),
    "hf-dict-markdown-bold": (
        ("loss", lambda answer: answer.get("measurement.loss.last"), 4.7581),
        ("step", lambda answer: answer.get("measurement.loss.steps"), [5]),
        ("seconds", _stated("step_seconds"), 37.4),
    ),
    "hf-loss-zero-twice-ok": (("remark", _says("0.0 in 2 records"), True),),
    "llamafactory-loss-shifted": (
        ("steps", lambda answer: answer.get("measurement.loss.steps"), [30, 35, 40]),
        ("losses", lambda answer: answer.get("measurement.loss.values"), [1.1268, 1.0802, 1.0274]),
        ("seconds", _stated("step_seconds"), 80.4),
    ),
    "megatron-skipped-not-flagged": (("flags", lambda answer: answer.get("measurement.step_flags.warmup"), [0, 1]),),
    "memory-summary-oom-count": (("remark", _says("1 allocation failed for want of memory"), True),),
    "nccl-only": (("outcome", lambda answer: answer.get("run.outcome"), "hang"),),
    "nemo-reserved-dropped": (
        ("allocated", lambda answer: answer.get("memory.aggregate.bytes"), 53930270720),
        ("reserved", lambda answer: answer.get("memory.aggregate.reserved_bytes"), 57466159104),
    ),
    "nsys-decimal-comma": (("runtime", lambda answer: answer.get("path.witnessed.runtime"), "cuda"),),
    "olmo-core-block-no-head": (
        ("tokens/s", _stated("tokens_per_second_per_chip"), 258163),
        ("TFLOP/s", _stated("tflops_per_second_per_chip"), 441.0),
        ("peak", _says("989.5 TFLOP/s"), True),
    ),
    "olmo-core-flops-and-reserved": (
        ("TFLOP/s", _stated("tflops_per_second_per_chip"), 441.0),
        ("reserved", lambda answer: answer.get("memory.aggregate.reserved_bytes"), round(62.69 * 2**30)),
    ),
    "restart-as-ranks-1": (
        ("ranks", _says("read as ranks"), False),
        ("apart", _says("360 s apart", "lost 4 steps"), True),
        ("outcome", lambda answer: answer.get("run.outcome"), "ok"),
    ),
    "rocm-trace-as-cuda": (
        ("runtime", lambda answer: answer.get("path.witnessed.runtime"), "rocm"),
        ("gemm", lambda answer: answer.get("path.witnessed.gemm"), "tensile_fp32"),
    ),
    "slime-perf-line": (
        ("step", _durations, [14.182998419]),
        ("TFLOP/s", _stated("tflops_per_second_per_chip"), 3.71532),
        ("framework", lambda answer: answer.get("path.witnessed.framework"), "slime"),
    ),
    "te-nobackend-counts-ok": (("words", _says("training cannot start"), True),),
    "trl-grpo-partial-time": (("durations", _durations, None), ("step", _stated("step_seconds"), 376.0)),
    "trlx-bar-hides-time": (("started", lambda answer: str(answer.get("run.started"))[:19], "2023-03-29T15:48:55"),),
    "two-runs-as-ranks-before": (("ranks", _says("read as ranks"), False), ("apart", _says("320 s apart"), True)),
    "verl-one-key-a-line": (
        ("grad norm", lambda answer: answer.get("measurement.gradient_norm.last"), 0.167236328125),
        ("reserved", lambda answer: answer.get("memory.aggregate.reserved_bytes"), round(94.625 * 2**30)),
        ("MFU", _says("37.08%"), True),
    ),
}


def near(wanted: Any, got: Any) -> bool:
    """Whether two values are one: numbers and moments of another spelling, lists by their members."""
    if isinstance(wanted, list) and isinstance(got, list):
        return len(wanted) == len(got) and all(map(near, wanted, got))
    if isinstance(wanted, int | float) and isinstance(got, int | float) and not isinstance(wanted, bool):
        return abs(wanted - got) <= NEAR * abs(wanted)
    if isinstance(wanted, str) and got is not None and not isinstance(got, str):
        return wanted.partition(" ")[0] == str(got)
    if isinstance(wanted, str) and isinstance(got, str):
        return wanted == got or wanted.partition(":")[0] == got or wanted.rstrip("Z") == got.rstrip("Z").rstrip("0")
    return bool(wanted == got)


def run(folder: Path) -> list[Item]:
    """Everything that the truths of a folder say of what is ingested."""
    return [item for place in sorted(folder.glob("*.json")) for item in _case(place)]


def _case(place: Path) -> Iterator[Item]:
    if place.stem.startswith(ELSEWHERE):
        return
    case = json.loads(place.read_text(encoding="utf-8"))
    files = [place.parent / name for name in case.get("files", ())]
    files = files or [item for item in sorted(place.parent.glob(f"{place.stem}.*")) if item != place]
    lanes = builtin().lanes
    options = Options(lanes=tuple(lanes.get(name) for name in lanes.names()))
    answer = Answer(assemble([read(path) for path in files], options))
    truth = case["truth"] if isinstance(case["truth"], dict) else {}
    said = {what for what, _, _ in SAYS.get(place.stem, ())}
    for path, wanted in truth.items():
        if find_leaf(path) is None or (place.stem, path) in _IN_WORDS or path in said:
            continue
        got = answer.get(path)
        unknown = wanted is None and path == "run.outcome" and got == "unknown"
        yield Item(place.stem, path, wanted, got, unknown or near(wanted, got))
    for what, give, wanted in SAYS.get(place.stem, ()):
        got = give(answer)
        yield Item(place.stem, what, wanted, got, near(wanted, got))


# Leaves of which the truth says in words what is compared by `SAYS`.
_IN_WORDS = {
    ("a06-tpuestimator-mean-as-one-step", "measurement.stated.step_seconds"),
    ("a07-maxtext-hardware-gpu-lane-tpu", "run.lane"),
    ("a10-hbm-breakdown-counts-ok", "run.outcome"),
    ("megatron-skipped-not-flagged", "measurement.step_flags"),
    ("nccl-only", "run.outcome"),
    ("rocm-trace-as-cuda", "hardware.accelerator"),
    ("rocm-trace-as-cuda", "path.witnessed.runtime"),
    ("te-nobackend-counts-ok", "run.outcome"),
    ("titan-no-end-counts-ok", "measurement.step_durations_seconds"),
    ("trlx-bar-hides-time", "run.started"),
}


def main(arguments: list[str] | None = None) -> int:
    """Print what is wrong and how many are right; 1 where any is not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=Path, required=True)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    items = run(given.cases)
    wrong = [item for item in items if not item.right]
    if given.json:
        print(json.dumps({"n": len(items), "right": len(items) - len(wrong), "wrong": wrong}, default=str))
    else:
        for item in wrong:
            print(f"{item.case}: {item.what}: wanted {item.wanted}, got {item.got}")
        print(f"{len(items) - len(wrong)} of {len(items)} right")
    return 1 if wrong or not items else 0


if __name__ == "__main__":
    sys.exit(main())
