"""``receipts fit``: whether a launch fits its chips, what fills them, and what would shrink it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, named_plan
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.fit import MemoryEstimate


@verb("fit")
@click.argument("plan")
@click.argument("other", required=False)
@click.option("--against", metavar="RECEIPT", help="Show which part grows from RECEIPT to PLAN, beside measured peaks.")
@click.option("--svg", type=click.Path(dir_okay=False), help="Write the stacked bar as SVG.")
@click.option(
    "--calibrate", is_flag=True, help="Scale by the measured peaks of the lane's stored launches, with an interval."
)
@click.option("--aot", is_flag=True, help="Compile the train step for TPU v6e and show the compiler's bytes.")
@click.option(
    "--oom",
    type=click.Path(dir_okay=False),
    help="With --aot: if it does not fit, write that failure as a receipt here.",
)
def command(
    session: Session,
    plan: str,
    other: str | None,
    against: str | None,
    svg: str | None,
    calibrate: bool,
    aot: bool,
    oom: str | None,
) -> Answer:
    """Estimate the memory of PLAN on its fullest chip; with OTHER, show which part grows.

    PLAN and OTHER are receipts, or plans as ``receipts init`` writes them: files, ids, labels or pins. A label may name
    launches of one configuration.

    Examples:
      receipts init tpu-maxtext > plan.json     # fill in model, parallelism and batch
      receipts fit plan.json
      receipts fit plan.json --svg plan.svg --json
      receipts fit before.json after.json       # which bucket grows
      receipts fit plan.json --against 3f9c     # the same from a launch, beside its measured peak
      receipts fit 3f9c --calibrate             # by the lane's own measured peaks
      receipts fit plan.json --aot              # ask the TPU compiler as well

    The estimate is for the fullest chip at the fullest moment of a step. Values that the plan does not state are listed
    with the value assumed. The budget is the runtime's limit, not the chip's physical memory. Exit codes: 0 it fits, 1
    it does not, 2 wrong call or input, 3 too little is stated to decide.
    """
    from receipts.base import plugins
    from receipts.publish.fit import page
    from receipts.questions.fit import calibrations, estimate, estimates_as_data, with_shrinks

    if oom is not None and not aot:
        raise UsageError("--oom writes what the compiler refuses; give --aot with it")
    if against is not None:
        if other is not None:
            raise UsageError("fit A B compares the two already; leave out --against, or name one plan")
        plan, other = against, plan
    if aot and other is not None:
        raise UsageError("--aot compiles one plan; give one, and compare the two without it")
    lanes = session.rulebook.lanes
    plans = [named_plan(session, word) for word in (plan, other) if word is not None]
    names = [lanes.of(item.receipt.run.lane).name for item in plans]
    known = calibrations(session.store, lanes, names) if calibrate else {}
    estimates = [
        with_shrinks(estimate(item, lane := lanes.of(item.receipt.run.lane), known.get(lane.name)), item, lane)
        for item in plans
    ]
    compiler = plugins.service("compiler", "fit --aot") if aot else None
    answer = compiler.ask_compiler(plans[0], lanes.of(estimates[0].lane), estimates[0]) if compiler else None
    if compiler and oom is not None and answer.failure is not None:
        _write_refusal(oom, compiler.oom_receipt(plans[0], estimates[0], answer))
    if svg is not None:
        _draw(svg, estimates)
    return Answer(
        lambda: estimates_as_data(estimates, compiler and compiler.answer_json(answer), calibrated=calibrate),
        lambda: page(estimates, compiler and compiler.section(answer), calibrated=calibrate),
        _code(estimates, answer),
    )


def _draw(path: str, estimates: list[MemoryEstimate]) -> None:
    from receipts.publish.fit import picture

    figure = picture(estimates)
    if figure is None:
        raise UsageError(f"--svg {path}: too little is stated to draw; without --svg the call says what is missing")
    output.picture(path, figure)


def _write_refusal(path: str, receipt: dict[str, Any]) -> None:
    import json

    files.write(path, json.dumps(receipt, indent=2) + "\n")
    output.note(f"wrote {path}; then: receipts check {path}")


def _code(estimates: list[MemoryEstimate], answer: Any) -> int:
    """Of two plans the second decides: it is the one that is asked about. A compiler's answer outranks an estimate."""
    if answer is not None:
        return 0 if answer.compiled.total is not None else 1
    return {True: 0, False: 1, None: 3}[estimates[-1].fits]
