"""# R111 not_training

*Why.* A step that trains nothing is fast. NaN from the first iteration ran at 301.9 TFLOP/s, above the golden run, and
a gradient norm of zero was a record for two weeks.

*Rejected.* Outcome `ok` with a loss that was not finite, a last gradient norm of 0, a last loss of 71 after 300 steps
with 65,536 vocabulary entries (guessing costs 11.09 nats), a rate of 0 tokens/s, or an exit code of 1. One of these is
enough, whatever else is not stated. As open: forward passes alone that were timed as steps.

*Accepted.* A loss of 4.9 and a gradient norm of 1.1. A launch whose outcome says that it failed: it is kept as a
failure, and no rate is read from it. A model of values (vocabulary 0): nobody knows what guessing costs. A profile or
microbenchmark, which need not learn. As W: a loss above guessing after 20 steps, within the launch's own warm-up, or
on synthetic data (`data.kind`), in which there is nothing to learn.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from receipts.judging.rule import MFU, RATE, Case, E, I, Offense, W, ended_well, rule

LOSS, FINITE = "measurement.loss.last", "measurement.loss.finite"
NORM, NORM_FINITE = "measurement.gradient_norm.last", "measurement.gradient_norm.finite"
EXIT, VOCABULARY, RATES = "run.exit_code", "model.vocabulary", "measurement.stated.tokens_per_second"
DO = "set the outcome to what happened, or mend the run: its rate is of steps that train nothing"
MADE_UP = "where its tokens are random, state data.kind synthetic (--set, or Recorder.state): they teach nothing; else "
NEEDED = (FINITE, LOSS, NORM_FINITE, NORM, EXIT, VOCABULARY)
REGION = "measurement.region"
STEPS, DURATIONS = "measurement.steps", "measurement.step_durations_seconds"
LEARNT = 100  # optimizer steps after which a model that learns guesses better than at random
# `20 warm-up`, `warm-up over 20 of the steps`, `warmup 2000`; a share (0.1, 3 %) is of a number that is not stated.
WARMUP = re.compile(r"\b(\d+)(?: steps?)?(?: of)?(?: linear)? warm|warm-?_?up[^\d.,;]{0,20}(\d+)\b(?![.\d]|\s*%)", re.I)


def needs(case: Case) -> tuple[str, ...]:
    """All of them to say that it trained; one sign that it did not is enough without the rest."""
    if any(sign.level is not W for sign in signs(case)):
        return ()
    return (*NEEDED, f"{STEPS}|{DURATIONS}") if _guessing(case) and case.launch.steps_trained is None else NEEDED


def applies(case: Case) -> bool:
    """Training that says it went well."""
    return case.receipt.run.kind == "training" and ended_well(case)


@rule("R111", "not_training", E, taints=(RATE, MFU), needs=needs, applies=applies)
def not_training(case: Case) -> Iterator[Offense]:
    """Each sign that an `ok` training run did not train."""
    yield from signs(case)


def signs(case: Case) -> Iterator[Offense]:
    """What is stated and speaks against training."""
    for path, what in ((FINITE, "losses"), (NORM_FINITE, "gradient norms")):
        if case.get(path) is False:
            yield Offense(path, f"some {what} were not finite", f"only finite {what}", DO)
    norm = case.get(NORM)
    if norm is not None and norm <= 0:
        yield Offense(NORM, f"a gradient norm of {norm:g}", "a gradient norm above 0", DO)
    steps, vocabulary = case.launch.steps_trained, case.get(VOCABULARY)
    if _guessing(case) and steps is not None:
        early = steps < max(LEARNT, _warmup(case)) or case.get("data.kind") == "synthetic"
        yield Offense(
            LOSS,
            f"{case.get(LOSS):g} at the end, after {steps} steps",
            f"at most ln({vocabulary}) = {math.log(vocabulary):.2f}, the loss of guessing",
            "train for longer, or say no more than that it runs" if early else MADE_UP + DO,
            level=W if early else None,
        )
    if case.get(REGION) == "forward":
        yield Offense(REGION, "forward passes alone were timed", "steps: forward, backward and optimizer", DO, level=I)
    if case.get(RATES) == 0 or case.get(f"{RATES}_per_chip") == 0:
        yield Offense(RATES, "no tokens", "tokens", DO)
    if case.get(EXIT) not in (None, 0) and case.receipt.run.outcome == "ok":
        yield Offense(EXIT, f"exit code {case.get(EXIT)} of an outcome ok", "0", DO)


def _guessing(case: Case) -> bool:
    loss, vocabulary = case.get(LOSS), case.get(VOCABULARY)
    return loss is not None and bool(vocabulary) and loss > math.log(vocabulary)


def _warmup(case: Case) -> int:
    """Steps over which the learning rate rises, as the schedule's own words say; 0 where they do not."""
    words = case.get("numerics.schedule") or ""
    return max((int(number) for pair in WARMUP.findall(words) for number in pair if number), default=0)
