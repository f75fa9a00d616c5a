"""``preflight``, ``fit`` and ``ceiling``: whether a plan fits its chips, before it is paid for."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.answer import Answer
from receipts.api.question import FLAG, MOMENT, PLAN, WORD, File, Kind, Param, always, question
from receipts.base.errors import InputError, NotFound, NothingToWrite, UsageError, near

if TYPE_CHECKING:
    from receipts.api.session import Session
    from receipts.questions.fit import MemoryEstimate
    from receipts.receipt import Document, Parsed
    from receipts.store import Store

Candidates = Annotated[
    "Document | None",
    Param(Kind(document="lines"), "Order the plans of a JSONL file, most likely to work first.", ("--rank",), "FILE"),
]
Planned = Annotated[Any, Param(PLAN, "The plan, or a receipt", metavar="PLAN|ID")]


@question(
    "preflight",
    costly=True,
    files={
        "next": File(
            ("--next",),
            "application/json",
            "Write the next smaller plan of the lane's ladder here.",
            view="written",
            silent=True,
            new=True,
        ),
        "out": File(("--out",), "application/jsonl", "With --rank: write the reordered lines here.", silent=True),
    },
    views={"written": Param(WORD, "Where the next plan is written", command=False)},
)
def preflight(session: Session, plan: Planned = None, *, rank: Candidates = None) -> Answer:
    """Say whether a plan is known to work or to fail, and what to try if it fails.

    Launches are looked up by their signature: one hash over code, hardware, model, parallelism, batch and features. If
    no launch has the plan's signature, launches that differ only in micro batch, sequence length or optional features
    decide: a smaller one that ran out of memory, or a larger one that worked. If there are none, the estimate of
    receipts fit decides.

    Examples:
      receipts preflight plan.json
      receipts preflight plan.json --next smaller.json
      receipts preflight 3f9c --json
      receipts preflight --rank candidates.jsonl
      receipts preflight --rank candidates.jsonl --out ordered.jsonl

    A plan is what `receipts init` writes, filled in; a receipt is a plan, too. Exit codes: 0 known or likely to work, 1
    known or predicted to fail, 2 not a plan, 3 unknown. With --rank: 1 if every candidate is known or predicted to
    fail.
    """
    from receipts.publish.fit import preflight as page
    from receipts.questions.preflight import answered

    if (plan is None) == (rank is None):
        raise UsageError("name a plan, or candidates with --rank; see: receipts preflight --help")
    if rank is not None:
        return _ranked(session, rank)
    store = _known(session, needed=isinstance(plan, str))
    one = session.one(plan)
    known = answered(one, session.rulebook.lanes.of(one.receipt.run.lane), store)
    answer, rung = known.answer, known.rung
    if answer.by is None and not isinstance(plan, str):
        laid_out(session, one)  # no launch shows that it can be

    def smaller() -> bytes | str:
        """The next plan; an existing file is kept."""
        if rung is not None and rung.plan is not None:
            return rung.plan
        from receipts.publish.fit import STATES

        raise NothingToWrite(
            "no rung is left: record the frontier" if rung is not None else f"the plan is {STATES[answer.status][1]}"
        )

    def out() -> str:
        raise UsageError("--out belongs to --rank; the next rung's plan is written by --next FILE")

    data = known.as_data()
    return Answer(
        data,
        lambda written=None: page(one, answer, rung, written),
        answer.code,
        rows=[data],
        files={"next": smaller, "out": out},
    )


def _known(session: Session, *, needed: bool) -> Store | None:
    """The store; None where there is none yet, and the estimate alone can tell something of a file."""
    if needed or session.there:
        return session.store
    session.note("there is no store yet: nothing is known of earlier launches, and the estimate alone tells")
    return None


def _ranked(session: Session, document: Document) -> Answer:
    from receipts.publish.fit import ranking
    from receipts.questions.preflight import as_lines, candidates, preflight, ranked

    given = candidates(document.raw, document.source)
    store, lanes = _known(session, needed=False), session.rulebook.lanes
    order = ranked(given, lambda plan: preflight(plan, lanes.of(plan.receipt.run.lane), store))

    def smaller() -> str:
        raise UsageError("--next belongs to one plan, and --rank orders several; ask for one of them")

    data = [item.as_data() for item in order]
    code = 1 if all(item.answer.code == 1 for item in order) else 0
    files = {"out": lambda: as_lines(order), "next": smaller}
    return Answer(data, lambda written=None: ranking(order), code, rows=data, files=files)


def laid_out(session: Session, plan: Parsed) -> None:
    """Refuse a plan that no chips can hold, whatever their memory. Raises InputError with every place."""
    from receipts.questions.plan import layout_problems

    rulebook = session.rulebook
    problems = layout_problems(plan, rulebook.lanes.of(plan.receipt.run.lane), rulebook.rules)
    if problems:
        raise InputError(plan.source, problems)


def plan_of(session: Session, given: Any) -> Parsed:
    """A plan that can be laid out; a lane that nobody declared is said. Raises InputError."""
    plan = session.one(given)
    name, lanes = plan.receipt.run.lane, session.rulebook.lanes
    if name not in lanes.names():
        hint = near(name, lanes.names()) or "; see: receipts lanes"
        session.note(f"{plan.source}: run.lane: no lane {name!r} is declared, so it is read as unlisted{hint}")
    laid_out(session, plan)
    return plan


Other = Annotated[Any, Param(PLAN, "Another plan")]
Against = Annotated[
    Any, Param(PLAN, "Show which part grows from RECEIPT to PLAN, beside measured peaks.", ("--against",), "RECEIPT")
]
Calibrate = Annotated[
    bool,
    Param(
        FLAG,
        "Scale by the measured peaks of the lane's stored launches, with an interval.",
        ("--calibrate",),
        stored=True,
    ),
]
Compiled = Annotated[
    bool, Param(FLAG, "Compile the train step for TPU v6e and show the compiler's bytes.", ("--aot",), local=True)
]


@question(
    "fit",
    alone=always,
    costly=True,
    files={
        "svg": File(("--svg",), "image/svg+xml", "Write the stacked bar as SVG."),
        "oom": File(
            ("--oom",),
            "application/json",
            "With --aot: if it does not fit, write that failure as a receipt here.",
            new=True,
            then="; then: receipts check {}",
        ),
    },
)
def fit(
    session: Session,
    plan: Annotated[Any, Param(PLAN, "The plan")],
    other: Other = None,
    *,
    against: Against = None,
    calibrate: Calibrate = False,
    aot: Compiled = False,
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

    if against is not None:
        if other is not None:
            raise UsageError("fit A B compares the two already; leave out --against, or name one plan")
        plan, other = against, plan
    if aot and other is not None:
        raise UsageError("--aot compiles one plan; give one, and compare the two without it")
    lanes = session.rulebook.lanes
    plans = [plan_of(session, given) for given in (plan, other) if given is not None]
    names = [lanes.of(item.receipt.run.lane).name for item in plans]
    known = calibrations(session.store, lanes, names) if calibrate else {}
    estimates = [
        with_shrinks(estimate(item, lane := lanes.of(item.receipt.run.lane), known.get(lane.name)), item, lane)
        for item in plans
    ]
    compiler: Any = plugins.service("compiler", "fit --aot") if aot else None
    answer: Any = compiler.ask_compiler(plans[0], lanes.of(estimates[0].lane), estimates[0]) if compiler else None

    def refusal() -> str | None:
        import json

        if compiler is None:
            raise UsageError("--oom writes what the compiler refuses; give --aot with it")
        if answer.failure is None:
            return None
        return json.dumps(compiler.oom_receipt(plans[0], estimates[0], answer), indent=2) + "\n"

    return Answer(
        lambda: estimates_as_data(estimates, compiler.answer_json(answer) if compiler else None, calibrated=calibrate),
        lambda: page(estimates, compiler.section(answer) if compiler else None, calibrated=calibrate),
        _fit_code(estimates, answer),
        files={"svg": lambda: _drawn(estimates), "oom": refusal},
    )


def _drawn(estimates: list[MemoryEstimate]) -> str:
    from receipts.publish.fit import picture
    from receipts.publish.svg import svg_file

    drawn = svg_file(picture(estimates))
    if drawn is None:
        raise UsageError("--svg: too little is stated to draw; without --svg the call says what is missing")
    return drawn


def _fit_code(estimates: list[MemoryEstimate], answer: Any) -> int:
    """Of two plans the second decides: it is the one that is asked about. A compiler's answer outranks an estimate."""
    if answer is not None:
        return 0 if answer.compiled.total is not None else 1
    return {True: 0, False: 1, None: 3}[estimates[-1].fits]


OneLane = Annotated[str, Param(WORD, "The lane's name.", ("--lane", "-l"), "LANE")]
Since = Annotated[
    datetime | None, Param(MOMENT, "Only launches that started on this day or later.", ("--since",), "DATE")
]


@question("ceiling", costly=True)
def ceiling(session: Session, *, lane: OneLane, since: Since = None) -> Answer:
    """Show the largest shapes that a lane sustained, the nearest that ran out of memory, and the gap between.

    A shape is sequence length, micro batch and depth. Each model (by its axes, not its name), accelerator, layout,
    recompute policy, precision, optimizer and number of chips has its own shapes. Only measured training launches that
    were neither superseded nor retracted count.

    Examples:
      receipts ceiling --lane tpu-torch-xla
      receipts ceiling --lane nvidia-megatron --since 2026-03-01
      receipts ceiling --lane nvidia-megatron --json

    validated: three launches on two days or two hosts; repeated: two launches; peak: one.
    Exit codes: 0 a shape was sustained repeatedly, 2 no such lane, 3 none was.
    """
    from receipts.publish.report.template import page
    from receipts.questions.ceiling import as_data, ceilings

    known = ceilings(session.store, lane, since=since)
    groups, shapeless = known.reached
    lanes = session.rulebook.lanes.names()
    if not groups and not shapeless and lane not in lanes:
        hint = near(lane, lanes)
        raise NotFound(f"no launch of a lane {lane!r}, and no such lane is declared; see: receipts lanes{hint}")
    return Answer(
        lambda: as_data(lane, known.reached, known.described, known.pressures),
        lambda: page("weekly/ceilings.j2", {"lane": session.rulebook.lanes.of(lane), "ceilings": known}),
        0 if any(item.grade != "peak" for group in groups for item in group.ceilings) else 3,
    )
