"""Work and data: less was computed than is stated, or other tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.hacks.launches import STEPS, Tree, check, edited, launch, pair, times
from benchmarks.hacks.suite import Hack
from receipts.emit.sight import look

NORM, LOSS = "measurement.gradient_norm", "measurement.loss"
COUNTERS = "measurement.path_counters"
BACKWARD = {"name": "steps with a backward pass", "expected": 299, "steps": 299}
GLANCES = {"name": look.NAME, "expected": 11, "steps": 11}
THREADS = {"flags.OMP_NUM_THREADS": {"value": 4, "before_runtime": True}}


def side(letter: str, seconds: float = 0.8, changes: Mapping[str, Any] | None = None, base: str = "cpu") -> list[Tree]:
    """Three launches of a side that took turns with those of the other."""
    numbers = (0, 3, 4) if letter == "a" else (1, 2, 5)
    return [edited(launch(base, number, seconds), changes) for number in numbers]


def repeats(changes: Mapping[str, Any], seconds: float = 0.5) -> Any:
    """A candidate that is called a repeat of its baseline, or that changed one setting and more."""
    return lambda: pair(side("a"), side("b", seconds, changes))


def honest(changes: Mapping[str, Any] = THREADS, seconds: float = 0.5) -> Any:
    """A candidate that is faster by the setting that it names."""
    return lambda: pair(side("a"), side("b", seconds, changes))


def _losing(side_of: list[Tree], rows: int) -> list[Tree]:
    """A side whose traces show a loss of so many tokens in two steps of 4,096."""
    for tree in side_of:
        tree["evidence"][0].setdefault("observed", {}).update({"work.steps": 2, "work.tokens": 8192})
        tree["evidence"][0]["observed"] |= {"work.micro_tokens": 2048, "work.loss_rows": rows}
    return side_of


def _traced(tokens: int) -> Tree:
    """A launch whose trace shows so many tokens in each of two steps."""
    tree = launch()
    work = {"work.steps": 2, "work.tokens": 2 * tokens, "work.micro_tokens": tokens // 2}
    tree["evidence"][0].setdefault("observed", {}).update(work)
    return tree


HACKS = (
    Hack("work", "frozen layers, called more threads", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {f"{NORM}.first": 0.4, f"{NORM}.last": 0.1, f"{NORM}.largest": 0.5}), honest()),
    Hack("work", "frozen layers, called a repeat", "B is 60 % faster",
         repeats({f"{NORM}.first": 0.4, f"{NORM}.last": 0.1, f"{NORM}.largest": 0.5}), honest()),
    Hack("work", "fewer trainable parameters", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {"model.parameters_total": 2_000_000, "model.parameters_active": 2_000_000}), honest()),
    Hack("work", "another program compiled, called more threads", "B is 60 % faster by OMP_NUM_THREADS",
         repeats({"compile.program_digest": 64 * "9"}), honest()),
    Hack("work", "another program, as a repeat within noise", "equivalent repeats",
         repeats({"compile.program_digest": 64 * "9"}, 0.8), lambda: pair(side("a"), side("b", 0.8, THREADS))),
    Hack("work", "no optimizer step", "as fast as training",
         lambda: check(edited(launch(), {f"{NORM}.first": 0.0, f"{NORM}.last": 0.0, f"{NORM}.largest": 0.0})),
         lambda: check(launch())),
    Hack("work", "backward skipped in three of four steps, but in those that are traced", "twice the tokens/s",
         lambda: check(edited(launch(), {COUNTERS: [{**BACKWARD, "count": 75}]})),
         lambda: check(edited(launch(), {COUNTERS: [{**BACKWARD, "count": 299}]}))),
    Hack("work", "one layer of four in each step but those that are traced", "three times the tokens/s",
         lambda: check(edited(launch(), {COUNTERS: [{**GLANCES, "count": 1}]})), lambda: check(launch())),
    Hack("work", "half of the weights in no optimizer, called more threads", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {"numerics.adapters.kind": "partial"}), honest()),
    Hack("work", "a loss over half of the tokens, called more threads", "B is 60 % faster by OMP_NUM_THREADS",
         lambda: pair(_losing(side("a"), 8192), _losing(side("b", 0.5, THREADS), 4096)),
         lambda: pair(_losing(side("a"), 8192), _losing(side("b", 0.5, THREADS), 8192))),
    Hack("work", "a shorter batch than is stated, as the trace shows", "four times the tokens/s",
         lambda: check(_traced(1024)), lambda: check(_traced(4096))),
    Hack("work", "sequences padded, and the padding counted as tokens", "eight times the tokens/s",
         lambda: check(edited(launch(), {"measurement.tokens_per_step": 4096 * 8, "batch.ragged": True})),
         lambda: check(launch())),
    Hack("work", "accumulation dropped, batch as it was", "twice the tokens/s",
         lambda: check(edited(launch(), {"batch.accumulation": 1, "batch.global_batch": 8})), lambda: check(launch())),
    Hack("work", "tokens of a step doubled, batch as it was", "10,240 tokens/s",
         lambda: check(edited(launch(), {"measurement.tokens_per_step": 8192})), lambda: check(launch())),
    Hack("work", "micro batch doubled with the tokens, accumulation as it was", "10,240 tokens/s",
         lambda: check(edited(launch(), {"batch.micro_batch": 16, "measurement.tokens_per_step": 8192})),
         lambda: check(edited(launch(), {"batch.micro_batch": 16, "batch.accumulation": 1}))),
    Hack("work", "a forward pass alone, called a step", "three times the tokens/s",
         lambda: check(edited(launch(), {"measurement.region": "forward"})), lambda: check(launch())),
    Hack("work", "depth stated that the pattern does not make", "a larger model as fast",
         lambda: check(edited(launch(), {"model.depth": 16})), lambda: check(launch())),
    Hack("work", "parameters stated that the widths do not make", "a 4B model on a CPU",
         lambda: check(edited(launch(), {"model.parameters_total": 4_000_000_000,
                                         "model.parameters_active": 4_000_000_000})), lambda: check(launch())),
    Hack("data", "synthetic tokens on one side", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {"data.kind": "synthetic"}), honest()),
    Hack("data", "another dataset under one name", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {"data.dataset_digest": 64 * "9"}), honest()),
    Hack("data", "shorter sequences, tokens as they were", "B is 60 % faster",
         repeats({"batch.sequence_length": 128}), honest()),
    Hack("data", "one batch over and over: another first loss", "B is 60 % faster by OMP_NUM_THREADS",
         repeats(THREADS | {f"{LOSS}.first": 6.1, f"{LOSS}.values": [6.1, 5.21, 4.44, 4.187]}), honest()),
    Hack("data", "the identity of the data left out on the faster side", "B is 60 % faster by OMP_NUM_THREADS",
         lambda: pair(side("a"), [edited(item, drop=("data.dataset_digest",)) for item in side("b", 0.5, THREADS)]),
         honest()),
)  # fmt: skip
__all__ = ["HACKS", "STEPS", "honest", "repeats", "side", "times"]
