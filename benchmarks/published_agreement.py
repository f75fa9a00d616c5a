"""A/A over published launches: equal launches, split every way, are compared by the product's own recipe.

    python -m benchmarks.published_agreement DIR [--jobs N] [--most SPLITS] [--metric NAME] [--json]

DIR is a results repository of MLPerf, or a folder of it. The launches of each submission with six or more are split
into two sides in every way, unequal sides too (at most ``--most`` for each size of the smaller side, spread evenly),
and the sides are compared. Nothing differs between them but their seeds, so a verdict that names an effect is wrong,
and an interval that excludes 1 is expected in 5 % of the splits. Prints the shares by group, by the sizes of the sides
and over all, and exits 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path

from receipts.judging.rulebook import Rulebook
from receipts.plugins.exchange.published import find_logs, import_logs
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Document, Parsed, parse

MIN_LAUNCHES = 6
NAMED, EXCLUDED, ANSWERED = 0.02, (0.03, 0.07), 0.90


@dataclass(slots=True)
class Tally:
    """Splits of one group: how many, with an interval, of those with a word, excluding 1, and called different."""

    splits: int = 0
    answered: int = 0
    said: int = 0
    excluded: int = 0
    named: int = 0

    def add(self, other: Tally) -> None:
        """Add the counts of another."""
        self.splits += other.splits
        self.answered += other.answered
        self.said += other.said
        self.excluded += other.excluded
        self.named += other.named

    def shares(self) -> tuple[float, float, float, float]:
        """With an interval of all; with a word, and excluding 1, of those with an interval; called different of all."""
        answered = self.answered or 1
        of_answered = self.said / answered, self.excluded / answered
        return self.answered / self.splits, *of_answered, self.named / self.splits


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the splits; 0 where every bar holds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--most", type=int, default=126)
    parser.add_argument("--metric", default="step_seconds")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    rulebook, whole, tallies = Rulebook(), Tally(), defaultdict[str, Tally](Tally)
    by_size = defaultdict[str, Tally](Tally)
    for context, launches in groups(options.folder, options.jobs):
        for size in range(1, len(launches) // 2 + 1):
            counts = tally(launches, size, rulebook, options.metric, options.most)
            for total in (whole, tallies[context], by_size[f"{size} against {len(launches) - size}"]):
                total.add(counts)
    answered, said, excluded, named = whole.shares()
    holds = named <= NAMED and EXCLUDED[0] <= excluded <= EXCLUDED[1] and min(answered, said) >= ANSWERED
    if options.json:
        parts = {"groups": tallies, "sizes": by_size}
        shown = {key: {name: asdict(item) for name, item in part.items()} for key, part in parts.items()}
        print(json.dumps({"all": asdict(whole), **shown}))
        return 0 if holds else 1
    for name, item in [*tallies.items(), *by_size.items()]:
        shares = " · ".join(f"{share:6.1%}" for share in item.shares())
        print(f"{name:90} {item.splits:4} splits · {shares}")
    print(
        f"{whole.splits:,} splits of {len(tallies)} groups: {answered:.1%} have an interval (at least {ANSWERED:.0%})"
    )
    print(f"{said:.1%} of those have a word (at least {ANSWERED:.0%}), {named:.1%} are called different ({NAMED:.0%})")
    print(f"{excluded:.1%} of the intervals exclude 1 (3 to 7 %)")
    return 0 if holds else 1


def groups(folder: Path, jobs: int) -> Iterator[tuple[str, list[Parsed]]]:
    """The launches of each submission that has enough of them, copies left out."""
    by_context: defaultdict[str, list[Parsed]] = defaultdict(list)
    for item in import_logs(find_logs(folder), jobs):
        if item.raw is not None and not item.copy_of:
            by_context[item.place.context].append(parse(Document(item.raw, item.place.name)))
    yield from ((name, launches) for name, launches in by_context.items() if len(launches) >= MIN_LAUNCHES)


def tally(launches: Sequence[Parsed], size: int, rulebook: Rulebook, metric: str, most: int) -> Tally:
    """Compare ``size`` of the launches with the rest, in every way or in ``most`` ways."""
    comparisons, counts = Comparisons(None, rulebook), Tally()
    # In equal halves the first launch is always in A: the mirror of a split is the same question.
    ways = [way for way in combinations(range(len(launches)), size) if 2 * size < len(launches) or 0 in way]
    for way in ways[:: max(1, -(-len(ways) // most))]:
        a = [launches[i] for i in way]
        b = [launch for i, launch in enumerate(launches) if i not in way]
        effect = comparisons.compare(a, b, metric, ()).results[0].effect
        counts.splits += 1
        counts.named += effect.kind in ("faster", "slower")
        if effect.low is not None and effect.high is not None:
            counts.answered += 1
            counts.said += effect.kind != "unproven"
            counts.excluded += not effect.low <= 1.0 <= effect.high
    return counts


if __name__ == "__main__":
    sys.exit(main())
