"""Planned looks, measured: `python -m benchmarks.planning [--logs FOLDER] [--quick]`. See `benchmarks.history`."""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path

from benchmarks.history import groups_of, simulated
from receipts.plugins.study.experiment import Contrast, Experiment
from receipts.plugins.study.progress import answer_of
from receipts.plugins.study.sequential import plan_looks
from receipts.stats.equivalence import CONFIDENCE
from receipts.stats.log_ratio import against_floor, pooled

EFFECT = 0.00995  # 1 %
CONTRAST = Contrast("x", "a", "b")


def experiment(sigma: float, df: float | None) -> Experiment:
    """An experiment of one question at this noise."""
    looks = plan_looks(EFFECT, sigma, df)
    return Experiment("s", "lane", "step_seconds", EFFECT, sigma, df, "", 0.05, looks, (), (CONTRAST,))


def ended(plan: Experiment, a: list[float], b: list[float]) -> tuple[str, int]:
    """The answer of an experiment that is read after every launch, and the launches a side when it ended."""
    for count in range(2, plan.looks.most + 1):
        answer = answer_of(plan, plan.looks, CONTRAST, {"a": a[:count], "b": b[:count]}, "lower").answer
        if answer != "run on":
            return answer, count
    return "cannot be decided", plan.looks.most


def peeked(a: list[float], b: list[float]) -> bool:
    """Whether someone who looks after every launch sees an interval that excludes 1 at some look."""
    for count in range(2, len(a) + 1):
        own = pooled((a[:count], b[:count]))
        if own is not None:
            estimate = against_floor(a[:count], b[:count], own)
            if abs(estimate.log_ratio) > estimate.half_width(CONFIDENCE):
                return True
    return False


def row(name: str, df: float | None, sigma: float, repeats: int, rng: random.Random) -> None:
    """Simulated plans without an effect and with one of 1 %: false success, power, launches."""
    false = decided = peeks = 0
    counts = []
    for _ in range(repeats):
        noise = rng.gauss
        estimated = sigma * (sum(noise(0, 1) ** 2 for _ in range(int(df))) / df) ** 0.5 if df else sigma
        plan = experiment(round(estimated, 4), df)
        a, b = ([noise(0.0, sigma) for _ in range(plan.looks.most)] for _ in "ab")
        false += ended(plan, a, b)[0] in ("faster", "slower")
        peeks += peeked(a, b)
        answer, count = ended(plan, a, [value - EFFECT for value in b])
        decided += answer == "faster"
        counts.append(count)
    looks = experiment(sigma, df).looks
    print(
        f"{name} σ {sigma:.2%}: false success {false / repeats:.1%} (peeking {peeks / repeats:.1%}), power "
        f"{decided / repeats:.1%}, median {statistics.median(counts):g} launches a side, "
        f"at most {looks.most}, fixed {looks.fixed}"
    )


def replayed(groups: dict[str, list[float]], repeats: int, rng: random.Random) -> None:
    """Equal launches of real groups, split by chance into two sides of five."""
    false = total = peeks = 0
    for logs in groups.values():
        sigma = round(statistics.stdev(logs), 4) or 0.0001
        plan = experiment(sigma, None)
        for _ in range(repeats):
            mixed = rng.sample(logs, len(logs))
            half = len(mixed) // 2
            a, b = mixed[:half], mixed[half : 2 * half]
            false += ended(plan, a, b)[0] in ("faster", "slower")
            peeks += peeked(a, b)
            total += 1
    print(f"{len(groups)} groups, {total} splits: false success {false / total:.1%} (peeking {peeks / total:.1%})")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rng = random.Random(7)
    repeats = 200 if options.quick else 2000
    for sigma in (0.0035, 0.004, 0.0043, 0.008):
        row("σ of the lane, 24 degrees of freedom,", 24.0, sigma, repeats if sigma < 0.005 else repeats // 10, rng)
        row("own σ,", None, sigma, repeats, rng)
    replayed(groups_of(options.logs) if options.logs else simulated(rng, 30), 5 if options.quick else 50, rng)


if __name__ == "__main__":
    main()
