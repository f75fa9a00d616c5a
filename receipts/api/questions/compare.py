"""``compare``, ``neighbours``, ``noise``: what a difference means, what lies an axis away, how launches vary."""

from __future__ import annotations

from dataclasses import asdict
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.answer import Answer
from receipts.api.question import (
    FLAG,
    RECEIPT,
    SIDE,
    WORD,
    File,
    Metric,
    Param,
    Spelled,
    Study,
    Waivers,
    choice,
    integer,
    question,
)
from receipts.base.errors import UsageError

if TYPE_CHECKING:
    from receipts.api.comparison import Comparison
    from receipts.api.session import Session
    from receipts.axes.lane import Grade
    from receipts.questions.noise import LaneNoise
    from receipts.questions.sides import Join
    from receipts.stats.noise import SelfCheck


# As in `receipts.axes.lane`, which no --help may load.
GRADES = ("typed", "recorded", "evidenced", "kept")
WARM_CACHE = "warm-cache"  # the study in which the cache state may differ

SideA = Annotated[
    Any,
    Param(SIDE, "A receipt of side A", metavar="A", many=True, words=1, also=("--also-a", "Another launch of side A.")),
]
SideB = Annotated[
    Any, Param(SIDE, "A receipt of side B", metavar="B…", many=True, also=("--also-b", "Another launch of side B."))
]
Witnesses = Annotated[
    Any,
    Param(
        RECEIPT, "A launch that shows the path of one of A or B.", ("--witness",), "FILE|ID", many=True, wire="witness"
    ),
]
AtLeast = Annotated["Grade", Param(choice(*GRADES), "Ask every receipt for at least this grade (R316).", ("--grade",))]
Joined = Annotated[
    "Join", Param(choice("session", "only", "all"), "Which stored launches join those named", command=False)
]
Required = Annotated[
    str | None,
    Param(
        WORD,
        "A gate: exit 0 if B is that, 1 if it is not, 3 if it is not proven. not-slower=2% allows 2 %.",
        ("--require",),
        "faster|not-slower[=SHARE]|equivalent",
    ),
]
Standing = Annotated[
    Literal["attributed", "any"],
    Param(
        choice("attributed", "any"),
        "With --require: any also takes an effect whose cause is not shown.",
        ("--standing",),
        show_default=True,
    ),
]
Recorded = Annotated[bool, Param(FLAG, "Store the verdict.", ("--record",), scope="submit")]


def read_sides(values: dict[str, Any]) -> None:
    """``--cold A --warm B`` as both sides, and ``--only`` or ``--pool`` as what joins them. Raises UsageError."""
    cold, warm, only, pool = (values.pop(name) for name in ("cold", "warm", "only", "pool"))
    if cold is not None or warm is not None:
        if cold is None or warm is None or values["a"] is not None:
            raise UsageError("a cold cache is compared with a warm one: --cold A --warm B, and no other side")
        values.update(a=cold, b=(warm,), metric="compile_seconds", study=WARM_CACHE)
    if only and pool:
        raise UsageError("--only adds no launch and --pool adds all: give one of them")
    values["join"] = "only" if only else "all" if pool else "session"


SIDES = Spelled(
    {
        "cold": Param(WORD, "A, which compiled from a cold cache: compares compile_seconds.", ("--cold",), "A"),
        "warm": Param(WORD, "B, the same configuration from a warm cache.", ("--warm",), "B"),
        "only": Param(FLAG, "Only the launches that are named; add none.", ("--only", "--no-replicates")),
        "pool": Param(FLAG, "Every stored launch of both configurations, whatever its day or label.", ("--pool",)),
    },
    read_sides,
)


@question(
    "compare",
    costly=True,
    alone=lambda documents, named: documents <= 2 or not named,
    forms=("line", "csv"),
    views={"verbose": Param(FLAG, "Show all: settings that are held, warnings, memory.", ("--verbose", "-v"))},
    files={
        "junit": File(
            ("--junit",), "application/xml", "With --require: also write the answer as a JUnit report.", silent=True
        )
    },
    spelled=SIDES,
)
def compare(
    session: Session,
    a: SideA,
    b: SideB,
    *,
    metric: Metric = "tokens_per_second",
    waivers: Waivers = MappingProxyType({}),
    study: Study = None,
    witnesses: Witnesses = (),
    grade: AtLeast = "typed",
    join: Joined = "session",
    require: Required = None,
    standing: Standing = "attributed",
    record: Recorded = False,
) -> Comparison:
    """Compare B against A: two receipts, or two groups of launches.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; ID,ID names several launches of a side.
    Two files need no store; with a store, launches of the session and witnesses are added.

    Examples:
      receipts compare before.json after.json
      receipts compare 3f9c 81aa --metric step_seconds
      receipts compare 'label=base*' 'label=cand*'
      receipts compare @golden 81aa --waive flags.NCCL_ALGO="pinned by the site"
      receipts compare 3f9c 81aa --study fixed-accumulation --format markdown
      receipts compare a.json b.json --witness a-profile.json --witness b-profile.json
      receipts compare @golden 'label=nightly*' --require not-slower
      receipts compare --cold 3f9c --warm 81aa
      receipts compare @golden pr-1.json pr-2.json pr-3.json --require not-slower=1% --junit gate.xml

    The first line is the answer; the last one holds the three answers behind it: is it one experiment? did it run on
    the intended path? what is the effect? Option -v opens what is folded. Findings: E rejects, I leaves a question
    open, W is a warning; receipts rules CODE explains one. Exit codes: 0 accepted, 1 rejected, 2 wrong call or input, 3
    inconclusive.
    """
    from receipts.api.comparison import gather

    wanted = _requirement(require)
    compared = gather(
        session,
        a,
        b,
        metric=metric,
        witnesses=witnesses,
        waivers=waivers,
        study=study,
        grade=grade,
        join=join,
        stored=record,
    )
    if wanted is not None:
        compared.require(wanted, any_standing=standing == "any")
    if record:
        session.store.record(compared.proved)
    return compared


def _requirement(text: str | None) -> Any:
    from receipts.questions.gate import read_requirement

    wanted = read_requirement(text) if text is not None else None
    if text is not None and wanted is None:
        raise UsageError(f"--require {text!r} is none of faster, not-slower, not-slower=2%, equivalent")
    return wanted


NOT_INDEXED = "the index does not hold every receipt of this lane as it is read; run: receipts db reindex"
COLUMNS = (
    *("axis", "members", "receipt", "label", "launches"),
    *("status", "comparable", "path", "effect", "ratio", "low", "high", "reason"),
)
Axis = Annotated[
    str | None, Param(WORD, "Only receipts that differ in this axis; see: receipts axes.", ("--axis", "-a"), "AXIS")
]
Of = Annotated[Any, Param(RECEIPT, "The receipt", metavar="ID|FILE", wire="of")]
Limit = Annotated[
    int,
    Param(
        integer(1, remote=100),
        "Show at most this many configurations per axis, the newest.",
        ("--limit",),
        show_default=True,
    ),
]


@question("neighbours", costly=True, forms=("csv",))
def neighbours(
    session: Session, receipt: Of, *, axis: Axis = None, metric: Metric = "tokens_per_second", limit: Limit = 10
) -> Answer:
    """Show every stored receipt that differs in one axis, with effect and verdict.

    Examples:
      receipts neighbours 3f9c
      receipts neighbours @golden --axis parallelism.tensor
      receipts neighbours run.json --metric step_seconds --limit 50
      receipts neighbours @golden --json

    Each is compared in its session and with its witnesses, as receipts compare does; the best of an axis comes first.
    Exit codes: 0 neighbours were found, 2 wrong call or input, 3 none can be compared.
    """
    from receipts.api.lists import neighbours_as_data
    from receipts.axes import axis_named
    from receipts.publish.tables import neighbours as page
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    of, rulebook = session.one(receipt), session.rulebook
    near = neighbours(session.store, of, rulebook, metric=metric, axis=axis, limit=limit, progress=session.advance)
    data = neighbours_as_data(near)
    notes = () if near.indexed else (NOT_INDEXED,)
    rows = [*data["neighbours"], *data["refused"]]
    return Answer(data, lambda: page(near, axis), near.exit_code, notes, rows=rows, columns=COLUMNS)


OneLane = Annotated[str | None, Param(WORD, "One lane only.", ("--lane",), "LANE")]


@question("noise", costly=True, forms=("csv",))
def noise(
    session: Session,
    *,
    lane: OneLane = None,
    gate: Annotated[
        str | None, Param(WORD, "A gate of your own: B fails if it is slower by more than this.", ("--gate",), "SHARE")
    ] = None,
    each: Annotated[int, Param(integer(1, remote=1000), "Launches of each side of the gate.", ("--each",))] = 1,
) -> Answer:
    """Show how much identical launches vary (the noise floor), and check the statistics on them.

    Examples:
      receipts noise
      receipts noise --lane nvidia-megatron --json
      receipts noise --gate 2% --each 3

    σ is the standard deviation of a launch's log step time, pooled over launches of one configuration. δ is the
    smallest effect that matters: people choose it, and noise does not change it. ~ means that too little is stored.
    With --gate it says how often a gate of your own would have failed equal launches, by those that ran one after the
    other and by σ, and which gate or how many launches fail one in a hundred. Exit codes: 0 a floor was measured, 1 the
    self-check failed, or the gate fails more than one in twenty equal launches, 2 wrong call, 3 nothing measured yet.
    """
    from receipts.publish.tables import noise_floors
    from receipts.questions.gate import share
    from receipts.questions.noise import survey
    from receipts.stats.noise import combined_checks

    allowed = share(gate) if gate is not None else None
    if gate is not None and allowed is None:
        raise UsageError(f"--gate {gate}: write the share by which B may be slower, such as 2%")
    lanes = session.rulebook.lanes
    if lane is not None:
        lanes.get(lane)
    floors = survey(session.store, lanes, lane, None if allowed is None else (allowed, each))
    check = combined_checks([item.check for item in floors])
    alarm = check.alarm or any(item.check.alarm or (item.gate is not None and item.gate.loud) for item in floors)
    classes = [_noise_data(item) for item in floors]
    return Answer(
        {"classes": classes, "self_check": _self_check(check)},
        lambda: noise_floors(floors, check),
        1 if alarm else 0 if any(item.floor.sigma is not None for item in floors) else 3,
        rows=classes,
    )


def _noise_data(item: LaneNoise) -> dict[str, Any]:
    """One class as JSON: shape and floor unfolded, what the data do not carry as null."""
    from receipts.publish.tables import noise_missing

    return {
        **asdict(item.shape),
        "stored": item.stored,
        **asdict(item.floor),
        "declared_sigma": item.declared,
        "delta": item.delta,
        "delta_source": item.delta_source,
        "self_check": _self_check(item.check),
        **({"gate": {**item.gate._asdict(), "rate": item.gate.rate}} if item.gate is not None else {}),
        "missing": noise_missing(item),
    }


def _self_check(check: SelfCheck) -> dict[str, Any]:
    return {**check._asdict(), "share": check.share}
