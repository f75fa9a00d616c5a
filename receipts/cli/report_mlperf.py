"""``receipts report mlperf``: published results of the store, with their spread and what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.base.files import write
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.published import SubmissionSpread

LANE = "mlperf-closed"


@verb("mlperf", json=False)
@click.option("--benchmark", default="*", metavar="PATTERN", help="Only these benchmarks.")
@click.option("--accelerator", default="*", metavar="PATTERN", help="Only these accelerators.")
@click.option("--pair", nargs=2, metavar="A B", help="Two submissions, axis by axis.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write Markdown here."
)
def mlperf(
    session: Session, benchmark: str, accelerator: str, pair: tuple[str, str] | None, out: Path | None
) -> Answer:
    """By benchmark and accelerator: the spread of each submission, and the pairs that differ in the fewest axes.

    Reads the receipts of lane mlperf-closed, which `receipts import mlperf` stores.

    Examples:
      receipts report mlperf
      receipts report mlperf --benchmark 'llama2*' --accelerator h200-sxm
      receipts report mlperf --pair 'NVIDIA/h200*' 'Lenovo/SR680a*' -o why.md

    A pattern of --pair is searched in the names of submissions (round/submitter/system/benchmark) and must fit one.
    Exit codes: 0 printed or written, 2 wrong call or nothing imported, 4 the store failed.
    """
    from receipts.publish.published import page, pair_page
    from receipts.publish.render.markdown import markdown
    from receipts.questions.published import pair_of, pairs, submissions
    from receipts.store import Condition, Filters

    lane = session.rulebook.lanes.get(LANE)
    store = session.store
    rows = store.find(Filters((Condition("lane", "=", LANE),), limit=100_000))
    listed = submissions((store.parsed(row.id) for row in rows), lane)
    kept = [
        item for item in listed if fnmatchcase(item.benchmark, benchmark) and fnmatchcase(item.accelerator, accelerator)
    ]
    if not kept:
        raise UsageError(f"no receipt of lane {LANE} fits; import some: receipts import mlperf DIR --submit")
    if pair:
        shown = pair_page(pair_of(_one(kept, pair[0]), _one(kept, pair[1]), lane))
    else:
        shown = page(kept, list(pairs(kept, lane)))
    text = markdown(shown, document=True)
    if out is None:
        return Answer(None, text)
    write(out, f"{text}\n", over=True)
    return Answer(None)


def _one(listed: Sequence[SubmissionSpread], pattern: str) -> SubmissionSpread:
    fitting = [item for item in listed if fnmatchcase(item.context.lower(), f"*{pattern.lower()}*")]
    if len(fitting) != 1:
        names = ", ".join(item.context for item in fitting[:4]) or "none"
        raise UsageError(f"{pattern!r} fits {len(fitting)} submissions ({names}); name one")
    return fitting[0]
