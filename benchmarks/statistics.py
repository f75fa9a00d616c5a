"""How often the statistics are wrong, what they find: `python -m benchmarks.statistics [--quick | --long] [--json]`.

Simulated launches go through the product's own pipeline (steady segment, summary, compare) as launches of one session
that ran AAAA then BBBB, or took turns ABBA. Beside it stand what people do with the same steps: Mann-Whitney on the
raw steps of all launches, and a moving-block bootstrap of their mean.

A launch's own luck, a drift and an effect are factors on all its steps. The segment does not depend on the clock's
unit, which is checked first, so that launches are drawn from one pool for each model and length and scaled
afterward. A launch that is not steady is run again, as its user would: how many were is told.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import mannwhitneyu

from benchmarks import sessions as sessions_module
from benchmarks.launch_models import SCENARIOS, Scenario
from benchmarks.result import Result
from benchmarks.steadiness import Bar
from benchmarks.steadiness import bars as steadiness_bars
from receipts.stats.effect import compare
from receipts.stats.equivalence import Effect
from receipts.stats.log_ratio import Sigma
from receipts.stats.noise import pooled_sigma
from receipts.stats.steady import steady_segment, summarize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.launch_models import Floats

SEED = 20_240_517
EFFECT = math.log(1.02)
LAUNCHES = (3, 5)
TURNS = (0, 1, 1, 0)
FLOOR_GROUPS, FLOOR_LAUNCHES = 6, 3  # what the noise floor of one launch against one is measured on
BLOCK, RESAMPLES = 20, 200
QUIET = "launch spread 0.3 %"
PAID = frozenset(item.name for item in SCENARIOS if item.paid)


@dataclass(frozen=True)
class Size:
    """How much is simulated."""

    pool: int
    sessions: int
    raw: int
    cell: int  # launches or sessions of a cell of `steadiness`
    steps: tuple[int, ...] = (200, 1000)


FULL = Size(pool=500, sessions=4000, raw=20, cell=1000, steps=(200,))
LONG = Size(pool=2000, sessions=4000, raw=100, cell=1000)
QUICK = Size(pool=100, sessions=100, raw=5, cell=30, steps=(200,))


@dataclass(frozen=True)
class Row:
    """Shares of the sessions of one cell; none where that was not asked.

    `excludes`: without an effect, the interval excludes 1. `wrong`: the verdict is faster or slower all the same.
    `equivalent`: it is equivalent. `covered` and `named`: with an effect of 2 %, the interval holds it, and the
    verdict names its direction. `unsteady`: launches that had to be run again. `said`: the verdict told that one
    side ran after the other.
    """

    scenario: str
    order: str
    launches: int
    steps: int
    unsteady: float
    excludes: float
    wrong: float
    equivalent: float
    covered: float
    named: float
    said: float
    mann_whitney: float | None
    bootstrap: float | None


@dataclass(frozen=True)
class Pool:
    """Steady launches of one model and length: the location of each, steps of some, and the share not steady."""

    locations: Floats
    steps: Floats
    unsteady: float


def make_pool(scenario: Scenario, steps: int, size: Size, rng: np.random.Generator) -> Pool:
    """Send launches through the product's steady segment and summary."""
    times = scenario.model(rng, size.pool, steps)
    locations, kept = [], []
    for i, launch in enumerate(times.tolist()):
        segment = steady_segment(launch)
        summary = summarize(launch, segment) if segment.status == "steady" else None
        if summary is not None:
            locations.append(summary.mean if scenario.paid else summary.median)
            kept.append(i)
    _check_scale(scenario, times[kept[:20]], locations[:20])
    return Pool(np.array(locations), times[kept[: 4 * size.raw]], 1.0 - len(kept) / size.pool)


def _check_scale(scenario: Scenario, times: Floats, locations: Sequence[float]) -> None:
    """A factor on every step is a factor on the location: what the pool rests on."""
    for launch, location in zip(times, locations, strict=True):
        scaled = (launch * 1.0123).tolist()
        summary = summarize(scaled, steady_segment(scaled))
        found = None if summary is None else summary.mean if scenario.paid else summary.median
        if found is None or abs(found / (1.0123 * location) - 1.0) > 1e-12:
            raise AssertionError("the steady segment depends on the unit of time")


def sides(order: str, launches: int) -> Floats:
    """0 for A and 1 for B, in the order in which they run."""
    turns = np.resize(TURNS, 2 * launches) if order == "ABBA" else np.repeat((0, 1), launches)
    return turns.astype(float)


def judged(scenario: Scenario, order: str, launches: int, drawn: Pool, count: int, seed: Sequence[int]) -> Row:
    """One cell: sessions without an effect, and as many with one of 2 %."""
    rng = np.random.default_rng(seed)
    none = list(sessions(scenario, order, launches, drawn, count, 0.0, rng))
    some = list(sessions(scenario, order, launches, drawn, count, EFFECT, rng))
    return Row(
        scenario=scenario.name,
        order=order,
        launches=launches,
        steps=drawn.steps.shape[1],
        unsteady=drawn.unsteady,
        excludes=_share(not covers(effect, 0.0) for effect in none),
        wrong=_share(effect.kind in ("faster", "slower") for effect in none),
        equivalent=_share(effect.kind == "equivalent" for effect in none),
        covered=_share(covers(effect, EFFECT) for effect in some),
        named=_share(effect.kind == "slower" for effect in some),
        said=_share("one side ran after the other" in effect.why for effect in none),
        mann_whitney=None,
        bootstrap=None,
    )


def sessions(
    scenario: Scenario,
    order: str,
    launches: int,
    drawn: Pool,
    count: int,
    effect: float,
    rng: np.random.Generator,
) -> Iterator[Effect]:
    """The product's verdict on each of `count` sessions."""
    side = sides(order, launches)
    chosen = drawn.locations[rng.integers(0, len(drawn.locations), (count, 2 * launches))]
    locations = chosen * np.exp(scenario.factors(rng, count, 2 * launches) + effect * side)
    times = scenario.starts(2 * launches)
    times_a, times_b = times[side == 0].tolist(), times[side == 1].tolist()
    for a, b in zip(locations[:, side == 0].tolist(), locations[:, side == 1].tolist(), strict=True):
        sigma = _floor(scenario, drawn, rng) if launches == 1 else None
        yield compare(a, b, times_a=times_a, times_b=times_b, sigma=sigma)


def _floor(scenario: Scenario, drawn: Pool, rng: np.random.Generator) -> Sigma | None:
    """A noise floor as a store would have it by then."""
    shape = (FLOOR_GROUPS, FLOOR_LAUNCHES)
    chosen = drawn.locations[rng.integers(0, len(drawn.locations), shape)]
    return pooled_sigma((chosen * np.exp(scenario.factors(rng, *shape))).tolist())


def covers(effect: Effect, truth: float) -> bool:
    """Whether the 95 % interval holds the true log ratio."""
    if effect.low is None or effect.high is None:
        raise AssertionError(f"no interval: {effect.why}")
    return math.log(effect.low) <= truth <= math.log(effect.high)


def _share(told: Iterator[bool]) -> float:
    return float(np.mean(list(told)))


def on_raw_steps(
    scenario: Scenario, order: str, launches: int, drawn: Pool, count: int, seed: Sequence[int]
) -> tuple[float, float]:
    """False positives at 5 % of Mann-Whitney and of a moving-block bootstrap, on all steps of both sides."""
    rng = np.random.default_rng(seed)
    side = sides(order, launches)
    ranks = blocks = 0
    for factor in scenario.factors(rng, count, 2 * launches):
        logs = np.log(drawn.steps[rng.integers(0, len(drawn.steps), 2 * launches)]) + factor[:, None]
        a, b = logs[side == 0], logs[side == 1]
        ranks += mannwhitneyu(a.ravel(), b.ravel(), method="asymptotic").pvalue < 0.05
        low, high = np.percentile(_bootstrap(b, rng) - _bootstrap(a, rng), (2.5, 97.5))
        blocks += not low <= 0.0 <= high
    return ranks / count, blocks / count


def _bootstrap(logs: Floats, rng: np.random.Generator) -> Floats:
    """Means of moving-block resamples (Künsch 1989), blocks of neighbouring steps of one launch."""
    sums = np.cumsum(np.pad(logs, ((0, 0), (1, 0))), axis=1)
    means = ((sums[:, BLOCK:] - sums[:, :-BLOCK]) / BLOCK).ravel()
    drawn: Floats = means[rng.integers(0, len(means), (RESAMPLES, logs.size // BLOCK))].mean(axis=1)
    return drawn


def simulate(size: Size) -> list[Row]:
    """Every cell, seeded by its place."""
    rows = []
    for i, scenario in enumerate(SCENARIOS):
        for steps in size.steps:
            drawn = make_pool(scenario, steps, size, np.random.default_rng((SEED, i, steps)))
            for order in ("AB", "ABBA"):
                for launches in LAUNCHES:
                    key = (SEED, i, steps, launches, order == "ABBA")
                    row = judged(scenario, order, launches, drawn, size.sessions, key)
                    ranks, blocks = on_raw_steps(scenario, order, launches, drawn, size.raw, (*key, 1))
                    rows.append(Row(**{**asdict(row), "mann_whitney": ranks, "bootstrap": blocks}))
            if scenario.still:
                rows.append(judged(scenario, "one", 1, drawn, size.sessions, (SEED, i, steps, 1, 0)))
    return rows


def bars(rows: Sequence[Row]) -> list[Bar]:
    """The bars, each over the cells that it speaks of."""
    turns = [row for row in rows if row.order == "ABBA"]
    quiet = [row for row in turns if row.scenario == QUIET and row.launches == 5]
    behind = [row for row in rows if row.order == "AB"]
    return [
        _bar("intervals that exclude 1 without an effect, in turns: off 5 % by", turns, _off_five, 0.02),
        _bar("verdicts that are wrong without an effect, in turns", turns, lambda row: row.wrong, 0.01),
        _bar("wrong without an effect, one side after the other", behind, lambda row: row.wrong, 0.025),
        _bar("one side after the other, and not told", behind, lambda row: 1.0 - row.said, 0.0),
        _bar("intervals that hold an effect of 2 %, in turns: off 95 % by", turns, _off_ninety_five, 0.02),
        _bar("equivalence missed, 5 in turns, spread 0.3 %", quiet, lambda row: 1.0 - row.equivalent, 0.05),
        _bar("effects of 2 % missed, 5 in turns, spread 0.3 %", quiet, lambda row: 1.0 - row.named, 0.05),
    ]


def every_bar(size: Size) -> tuple[list[Row], list[Bar]]:
    """The cells of the sessions, and all bars."""
    rows = simulate(size)
    of_days = sessions_module.cells(size.sessions // 2, SEED)
    return rows, [*bars(rows), *sessions_module.bars(of_days), *steadiness_bars(size.cell, SEED)]


def _off_five(row: Row) -> float:
    """Stalls at random make launches rare and far: what is wrong less often than promised is no fault of theirs."""
    return max(0.0, row.excludes - 0.05) if row.scenario in PAID else abs(row.excludes - 0.05)


def _off_ninety_five(row: Row) -> float:
    return max(0.0, 0.95 - row.covered) if row.scenario in PAID else abs(row.covered - 0.95)


def _bar(name: str, rows: Sequence[Row], wrong: Callable[[Row], float], most: float) -> Bar:
    worst = max(rows, key=wrong)
    return Bar(name, wrong(worst), f"{worst.scenario}, {worst.launches} launches, {worst.steps} steps", most)


def measure(quick: bool = False) -> list[Result]:
    """The bars, measured; a quick run has too few sessions to be held to them."""
    return [
        Result(item.name, 100.0 * item.worst, "%", bar=None if quick else 100.0 * item.most, bar_on="value")
        for item in every_bar(QUICK if quick else FULL)[1]
    ]


def table(rows: Sequence[Row]) -> Iterator[str]:
    """The cells as a table in Markdown."""
    names = [item.name for item in fields(Row)]
    yield "| " + " | ".join(name.replace("_", "-") for name in names) + " |"
    yield "| --- | --- |" + " ---: |" * (len(names) - 2)
    for row in rows:
        cells = [getattr(row, name) for name in names]
        yield "| " + " | ".join(_cell(value) for value in cells) + " |"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def main() -> int:
    """Print the table and the bars; 0 where all bars hold, 1 where one does not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a smoke test: too few sessions for the bars")
    parser.add_argument("--json", action="store_true", help="print rows and bars as JSON")
    parser.add_argument("--long", action="store_true", help="launches of 1,000 steps too, and more of each: minutes")
    options = parser.parse_args()
    began = time.perf_counter()
    rows, bars = every_bar(QUICK if options.quick else LONG if options.long else FULL)
    if options.json:
        document = {
            "rows": [asdict(row) for row in rows],
            "bars": [{**asdict(item), "holds": item.holds} for item in bars],
        }
        print(json.dumps(document, ensure_ascii=False, indent=2))
    else:
        print("\n".join(table(rows)) + "\n")
        for item in bars:
            held = "holds" if item.holds else "missed"
            print(f"{held}  {item.name}: {item.worst:.1%} ({item.at}); at most {item.most:.0%}")
        print(f"{time.perf_counter() - began:.0f} s", file=sys.stderr)
    return 0 if options.quick or all(item.holds for item in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
