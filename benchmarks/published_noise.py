"""The spread of launches in published results: a page of the docs, and priors that a lane may name.

    python -m benchmarks.published_noise DIR [--round v4.1] [--jobs N] [--write]

DIR is a results repository of MLPerf Training. Without ``--write`` the page is printed; with it docs/published-noise.md
and validators/priors.toml are written.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path

from receipts.axes.lane import Prior
from receipts.judging.rulebook import Rulebook
from receipts.plugins.exchange.published import SubmissionSpread, find_logs, import_logs, submissions
from receipts.receipt import Document, parse
from receipts.stats.log_ratio import pooled

ROOT = Path(__file__).resolve().parents[1]
HEAD = """# Noise of the world

How far launches of one configuration lie apart in published results of MLPerf Training. *Published, not yours*: your
machines may spread more or less, and `receipts noise` measures them. Until they are measured, a lane may name a row:
`sigma_from = "{example}"` ([lanes](lanes.md)). Verdicts then say whose spread it is.

Made by `python -m benchmarks.published_noise DIR --write`, from {launches} launches of {submissions} submissions. σ is
the standard deviation of a launch's log step time, pooled over submissions; `~` means that no launches spread.

| name | submissions | launches | σ | largest spread of one |
| --- | ---: | ---: | ---: | ---: |
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--round", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args(arguments)
    logs = import_logs(find_logs(options.folder, round_=options.round), options.jobs)
    launches = (parse(Document(item.raw, item.place.name)) for item in logs if item.raw is not None)
    listed = [item for item in submissions(launches, Rulebook().lanes.get("mlperf-closed")) if len(item.seconds) > 1]
    groups = grouped(listed, options.round)
    text = page(groups)
    if options.write:
        (ROOT / "docs" / "published-noise.md").write_text(text, encoding="utf-8")
        (ROOT / "validators" / "priors.toml").write_text(
            toml(item for name in groups if (item := prior(name, groups[name])))
        )
    else:
        print(text)
    return 0


def grouped(listed: Iterable[SubmissionSpread], round_: str) -> dict[str, list[SubmissionSpread]]:
    """Submissions by accelerator and hosts, under the name of their prior."""
    groups: defaultdict[tuple[str, int], list[SubmissionSpread]] = defaultdict(list)
    for item in listed:
        groups[item.accelerator, int(item.like.stated.get("hardware.hosts") or 0)].append(item)
    named = {}
    for (accelerator, hosts), items in sorted(groups.items()):
        title = accelerator.replace("tpu-v", "TPU v").replace("-sxm", " SXM")
        title = title if title.startswith("TPU") else title[:1].upper() + title[1:]
        named[f"{'-'.join(filter(None, ('mlperf', round_)))}: {title}, {hosts} host{'s' if hosts != 1 else ''}"] = items
    return named


def prior(name: str, items: Sequence[SubmissionSpread]) -> Prior | None:
    """The pooled spread of some submissions; None where no launches spread."""
    sigma = pooled([[log(value) for value in item.seconds] for item in items])
    if sigma is None or sigma.df is None:
        return None
    return Prior(name, round(sigma.value, 6), sigma.df, sum(len(item.seconds) for item in items), len(items))


def page(groups: dict[str, list[SubmissionSpread]]) -> str:
    """Markdown of all groups."""
    rows = []
    for name, items in groups.items():
        pooled_ = prior(name, items)
        sigma = f"{pooled_.sigma:.3%}" if pooled_ else "~"
        spread = max(item.spread or 0.0 for item in items)
        rows.append(f"| {name} | {len(items)} | {sum(len(item.seconds) for item in items)} | {sigma} | {spread:.2%} |")
    every = [item for items in groups.values() for item in items]
    example = next((name for name in groups if "H200" in name), next(iter(groups), ""))
    head = HEAD.format(example=example, launches=sum(len(item.seconds) for item in every), submissions=len(every))
    return head + "\n".join(rows) + "\n"


def toml(items: Iterable[Prior]) -> str:
    """The priors as data."""
    text = "# Spreads of launches in published results. Made by: python -m benchmarks.published_noise DIR --write\n"
    for item in items:
        text += f'\n[[prior]]\nname = "{item.name}"\nsigma = {item.sigma}\ndf = {item.df:g}\n'
        text += f"launches = {item.launches}\nsubmissions = {item.submissions}\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
