"""``receipts fit``: whether a launch fits its chips, what fills them, and what would shrink it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.errors import UsageError

if TYPE_CHECKING:
    from receipts.fit import Estimate
    from receipts.memory.calibrate import Calibration
    from receipts.receipt import Parsed

EPILOG = """\b
Examples:
  receipts init tpu-maxtext > plan.json     # fill in model, parallelism and batch
  receipts fit plan.json
  receipts fit plan.json --svg plan.svg --json
  receipts fit before.json after.json       # which bucket grows
  receipts fit 3f9c --calibrate             # by the lane's own measured peaks
  receipts fit plan.json --aot              # ask the TPU compiler as well

The estimate is of the fullest chip at the fullest moment of a step. What the plan does not state is listed with what
was taken instead. The budget is the runtime's limit, never the chip's physical memory.
Exit codes: 0 it fits, 1 it does not, 2 wrong call or input, 3 too little is stated to say."""


@click.command("fit", epilog=EPILOG)
@click.argument("plan")
@click.argument("other", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--svg", type=click.Path(dir_okay=False), help="Write the stacked bar as SVG.")
@click.option("--calibrate", is_flag=True, help="Scale by the lane's measured peaks in the store, with an interval.")
@click.option("--aot", is_flag=True, help="Compile the train step for TPU v6e and show the compiler's bytes.")
@pass_session
def command(
    session: Session, plan: str, other: str | None, as_json: bool, svg: str | None, calibrate: bool, aot: bool
) -> int:
    """Estimate what PLAN holds on its fullest chip; with OTHER, say which bucket grows.

    PLAN and OTHER are receipts, or skeletons as ``receipts init`` writes them: files, ids, labels or pins.
    """
    from receipts.cli import fit_text
    from receipts.fit import estimate

    if aot and other is not None:
        raise UsageError("--aot compiles one plan; give one, and compare the two without it")
    lanes = session.rulebook.lanes
    found = [_read(session, word) for word in (plan, other) if word is not None]
    known = _calibrations(session, found) if calibrate else {}
    made = [estimate(item, lane := lanes.of(item.receipt.run.lane), known.get(lane.name)) for item in found]
    compiled = _compile(found[0], made[0]) if aot else None
    if svg is not None:
        fit_text.write_svg(svg, made)
    if as_json:
        output.as_json(fit_text.document(made, compiled, calibrated=calibrate))
    else:
        fit_text.tell(made, compiled, calibrated=calibrate)
    return _code(made)


def _read(session: Session, word: str) -> Parsed:
    from receipts.cli.session import from_stdin, is_file
    from receipts.plan import parse_plan, read_plan

    if word == "-":
        return parse_plan(from_stdin())
    if is_file(word):
        return read_plan(word)
    with session.open_store() as store:
        return read_plan(word, store)


def _calibrations(session: Session, found: list[Parsed]) -> dict[str, Calibration | None]:
    from receipts.fit import calibrations

    lanes = session.rulebook.lanes
    with session.open_store() as store:
        return calibrations(store, lanes, [lanes.of(item.receipt.run.lane).name for item in found])


def _compile(parsed: Parsed, made: Estimate) -> object:
    raise UsageError("--aot is not there yet")


def _code(made: list[Estimate]) -> int:
    """Of two plans the second decides: it is the one that is asked about."""
    return {True: 0, False: 1, None: 3}[made[-1].fits]
