"""The judge, simulated: `python -m benchmarks.judging [--quick]`.

Trials without a gain, looked at as the judge looks: how often one is kept. Then campaigns of 1,000 trials, each at the
level that those before it have left: the share of kept changes that gain nothing. The vectors compute what
`receipts.plugins.judge.trial` does for one trial; a sample of both is compared.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from receipts.plugins.judge.boundary import ALONE, LOOKS, RATE, interval, next_level

SIGMA = 0.003  # of a launch, in logs
EFFECTS = (0.002, 0.05)  # of changes that are true, even in logs
RATES = (0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.9)
WORTH = np.log1p(0.01)


def launches(draw: np.random.Generator, trials: int, kind: str) -> NDArray[Any]:
    """Differences of the logs of both sides within each turn, a row a trial, without a gain."""
    shape = (trials, LOOKS[-1], 2)
    noise = draw.standard_normal(shape) * SIGMA
    if kind == "uneven":
        noise[..., 1] *= 4.0
    elif kind == "outliers":
        noise += (draw.random(shape) < 0.1) * draw.uniform(-0.05, -0.03, shape)
    elif kind == "autocorrelated":
        order = noise.reshape(trials, -1)
        for at in range(1, order.shape[1]):
            order[:, at] = 0.9 * order[:, at - 1] + np.sqrt(1 - 0.81) * order[:, at]
        noise = order.reshape(shape)
    elif kind == "drift":
        # A twentieth of a percent a launch, in the order base, candidate, candidate, base.
        order = np.arange(2 * LOOKS[-1]).reshape(-1, 2).astype(float)
        order[1::2] = order[1::2, ::-1]
        noise += 0.0005 * order
    return noise[..., 1] - noise[..., 0]


def decided(differences: NDArray[Any], levels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Whether each trial is kept, and after how many turns it ends."""
    kept = np.zeros(len(differences), dtype=bool)
    turns = np.full(len(differences), LOOKS[-1])
    going = np.ones(len(differences), dtype=bool)
    for count in LOOKS:
        own = differences[:, :count]
        middle = own.mean(axis=1)
        half = stats.t.isf(levels / len(LOOKS), count - 1) * own.std(axis=1, ddof=1) / np.sqrt(count)
        yes = going & (middle - half > 0.0)
        no = going & ~yes & (middle + half < WORTH)
        kept |= yes
        turns[yes | no] = count
        going &= ~(yes | no)
    return kept, turns


def campaigns(draw: np.random.Generator, repeats: int, trials: int, rate: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Campaigns side by side: whether each trial was kept, and whether its change is true."""
    kept = np.zeros((repeats, trials), dtype=bool)
    true = draw.random((repeats, trials)) < rate
    levels = np.zeros(trials)
    shares = np.array([next_level([False] * count) / (RATE / 2.0) for count in range(trials)])
    for at in range(trials):
        found = np.cumsum(kept[:, :at], axis=1)
        gains = kept[:, :at] * np.where(found == 1, RATE / 2.0, RATE)
        levels = shares[at] * RATE / 2.0 + gains @ shares[:at][::-1]
        differences = launches(draw, repeats, "even") + (true[:, at] * draw.uniform(*EFFECTS, repeats))[:, None]
        kept[:, at], _ = decided(differences, levels)
    assert np.isclose(levels[0], next_level(kept[0, :-1].tolist())), "the vectors are not what the judge computes"
    return kept, true


def alike(draw: np.random.Generator) -> None:
    """Hold the vectors against the judge's own interval."""
    rows = launches(draw, 50, "even") + 0.004
    kept, turns = decided(rows, np.full(50, ALONE))
    for own, keeps, ended in zip(rows.tolist(), kept, turns, strict=True):
        seen = [interval(own[:count], ALONE) for count in LOOKS]
        first = next((at for at in seen if at is not None and (at.low > 0.0 or at.high < WORTH)), seen[-1])
        assert first is not None
        assert (bool(keeps), int(ended)) == (first.low > 0.0, first.turns), (
            "the vectors are not what the judge computes"
        )


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    draw = np.random.default_rng(49)
    alike(draw)
    trials = 5_000 if quick else 100_000
    print(f"{trials:,} trials that gain nothing, looked at after {', '.join(map(str, LOOKS))} turns")
    print(f"{'launches':<16}{'kept':>8}{'turns':>8}    at most {ALONE:.1%} kept")
    for kind in ("even", "uneven", "outliers", "autocorrelated", "drift"):
        kept, turns = decided(launches(draw, trials, kind), np.full(trials, ALONE))
        print(f"{kind:<16}{kept.mean():>8.2%}{turns.mean():>8.1f}")
    print(f"\ngain, at a spread of {SIGMA:.1%} a launch   kept  discarded   turns")
    for gain in (0.005, 0.01, 0.02, 0.05):
        kept, turns = decided(launches(draw, trials // 10, "even") + gain, np.full(trials // 10, ALONE))
        print(f"{gain:>12.1%}{kept.mean():>30.1%}{1 - kept.mean():>11.1%}{turns.mean():>8.1f}")
    repeats, length = (40, 200) if quick else (400, 1_000)
    print(f"\n{repeats} campaigns of {length:,} trials; true gains of {EFFECTS[0]:.1%} to {EFFECTS[1]:.0%}")
    print(f"{'true':>6}{'kept':>8}{'of the true':>13}{'false of kept':>15}   (mean; at most {RATE:.0%})")
    for rate in RATES:
        kept, true = campaigns(draw, repeats, length, rate)
        false = (kept & ~true).sum(axis=1) / np.maximum(kept.sum(axis=1), 1)
        power = (kept & true).sum() / max(true.sum(), 1)
        print(f"{rate:>6.0%}{kept.sum(axis=1).mean():>8.1f}{power:>13.1%}{false.mean():>15.2%}")


if __name__ == "__main__":
    main()
