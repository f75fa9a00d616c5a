"""Every bar of the store in one run: `python -m benchmarks.store [--receipts 10000,100000,1000000] [--peer mlflow]`.

What `store_submit`, `store_scale` and `store_export` measure, one after the other; each says what it measures and how.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import store_export, store_scale, store_submit
from benchmarks.result import Result, show

QUICK, WHOLE = 2_000, 10_000  # receipts of the scale series, where no sizes are given


def parts(sizes: Sequence[int], keep: Path, peer: str | None, quick: bool) -> Iterator[Callable[[], list[Result]]]:
    """What is measured, in order: submits, stores of these sizes on both engines, the way out and back."""
    yield partial(store_submit.measure, quick, peer)
    yield partial(store_scale.measured, sizes, keep, 40 if quick else store_scale.ROUNDS, max(sizes))
    yield partial(store_export.measure, quick)


def main() -> int:
    """Print every figure as soon as its part has ended; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.store", description=__doc__)
    parser.add_argument("--receipts", help=f"sizes of the stores, with commas between them ({WHOLE})")
    parser.add_argument(
        "--keep", type=Path, help="folder of the SQLite stores, which are filled where they are not full"
    )
    parser.add_argument("--peer", choices=["mlflow"], help="install MLflow for this run, and log the same launches")
    parser.add_argument("--quick", action="store_true", help="few rounds, whose figures are rough")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    sizes = sorted(int(text) for text in (options.receipts or str(QUICK if options.quick else WHOLE)).split(","))
    measured: list[Result] = []
    with ExitStack() as stack:
        keep = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        keep.mkdir(parents=True, exist_ok=True)
        for part in parts(sizes, keep, options.peer, options.quick):
            results = part()
            measured += results
            if not options.json:
                show(results)
    if options.json:
        return show(measured, as_json=True)
    return int(not all(item.holds for item in measured))


if __name__ == "__main__":
    raise SystemExit(main())
