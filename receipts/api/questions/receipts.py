"""``list``, ``show``, ``chips`` and ``repro``: receipts as they are stored, or as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.question import (
    FLAG,
    RECEIPT,
    WORD,
    File,
    OneReceipt,
    Param,
    always,
    choice,
    integer,
    question,
    unnamed,
)

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.receipt import Receipts
    from receipts.api.session import Session
    from receipts.metrics.chips import Metric
    from receipts.receipt import Parsed

PAGE = 50

Conditions = Annotated[
    Sequence[str],
    Param(
        WORD, "A condition, such as batch.micro_batch=4 or chips>=8", metavar="[NAME=VALUE]…", many=True, wire="where"
    ),
]
Limit = Annotated[
    int, Param(integer(1), "Print at most this many rows; 0 for all.", ("--limit", "-n"), show_default=True)
]
Superseded = Annotated[bool, Param(FLAG, "Also show superseded and retracted receipts.", ("--all", "-a"))]
Ordered = Annotated[
    Literal["newest", "oldest", "stored"],
    Param(choice("newest", "oldest", "stored"), "", ("--order",), show_default=True),
]
Deciding = Annotated[bool, Param(FLAG, "Also print what would decide each open receipt.", ("--next",), wire="next")]
After = Annotated[str | None, Param(WORD, "The cursor of the page before, from its Link header", command=False)]


def _rebuilt(rows: Sequence[Any], notes: Sequence[str]) -> Receipts:
    from receipts.api.receipt import Receipts

    return Receipts.from_rows(rows, notes)


@question(
    "list",
    path="/v1/receipts",
    forms=("csv",),
    views={"by": Param(FLAG, "Also print who submitted each receipt.", ("--by",))},
    pages=_rebuilt,
)
def list_receipts(
    session: Session,
    conditions: Conditions = (),
    *,
    limit: Limit = PAGE,
    superseded: Superseded = False,
    order: Ordered = "newest",
    deciding: Deciding = False,
    cursor: After = None,
) -> Receipts:
    """List stored receipts, newest first, by conditions on any column or leaf.

    Examples:
      receipts list
      receipts list status=open --next
      receipts list lane=nvidia-megatron outcome=oom
      receipts list 'label=grid*' batch.micro_batch=4
      receipts list 'chips>=8' 'mfu>0.3' --limit 0
      receipts list flags.NCCL_ALGO=Ring run.finished=- --json

    A value may be a pattern (*, ?); - means not stated.
    """
    from receipts.api.lists import listed

    return listed(
        session, conditions, limit=limit, order=order, superseded=superseded, deciding=deciding, cursor=cursor
    )


@question(
    "show",
    path="/v1/receipts/{receipt}",
    post="/v1/show",
    alone=unnamed,
    views={
        "facts": Param(FLAG, "Also list every stated leaf.", ("--facts",)),
        "verbose": Param(FLAG, "Show every finding in full, and memory by chip.", ("--verbose", "-v")),
    },
    files={
        "raw": File(
            ("--raw",), "application/json", "Print the document's bytes as they came.", printed=True, over_json=True
        ),
        "envelope": File(
            ("--envelope",),
            "application/json",
            "Print the DSSE envelope: the document with its signatures.",
            printed=True,
            over_json=True,
        ),
    },
)
def show(session: Session, receipt: OneReceipt) -> Answer:
    """Show one receipt: what ran, where, on which path, what was measured, and the rules' verdict.

    Examples:
      receipts show 3f9c
      receipts show @golden --facts
      receipts show run.json
      receipts show 3f9c --raw > run.json
    """
    from receipts.api.answer import Answers
    from receipts.api.receipt import Receipt, stored_receipt

    if not isinstance(receipt, str):
        known = session.known
        return (
            Receipt(receipt, session.rulebook, known.query.facts(receipt), store=known)
            if known
            else Receipt(receipt, session.rulebook)
        )
    (named,) = session.groups([receipt])
    shown = (stored_receipt(session, item.id) for item in named)
    return next(shown) if len(named) == 1 else Answers(shown, lambda _: 0)


Phase = Annotated[
    Literal["post_init", "post_compile", "post_step0", "steady"] | None,
    Param(
        choice("post_init", "post_compile", "post_step0", "steady"),
        "The phase to draw. Default: the one in which the figure is worst.",
        ("--phase",),
    ),
]
Figure = Annotated[
    "Metric | None",
    Param(
        choice("used", "peak", "pool", "headroom"),
        "In use, live peak, pool peak, or headroom: the limit less the live peak. Default: the first stated of live "
        "peak, pool peak and in use.",
        ("--metric", "-m"),
    ),
]
Before = Annotated[Any, Param(RECEIPT, "The receipt", metavar="ID|FILE")]
After_ = Annotated[Any, Param(RECEIPT, "What it is compared with", metavar="[B]")]


@question(
    "chips",
    alone=always,
    files={
        "svg": File(
            ("--svg",),
            "image/svg+xml",
            "Also write the picture to this file.",
            without="no figure of a single chip is stated",
        )
    },
)
def chips(session: Session, a: Before, b: After_ = None, *, phase: Phase = None, metric: Figure = None) -> Answer:
    """Draw memory by physical chip: which uses most, which peaks earlier, what is left; or what B changed against A.

    Examples:
      receipts chips 3f9c
      receipts chips run.json --phase post_compile --metric pool
      receipts chips 3f9c --metric headroom --svg headroom.svg
      receipts chips before.json after.json
      receipts chips 3f9c 81aa --json

    Each cell is a physical chip: v6e and v5p slices by coordinates, other machines one row per host. Amounts are GiB
    (bytes in --json). Live peak, pool peak and memory in use are never mixed, and one figure for several chips counts
    for none of them. With B, cells show B less A, and the last line states whether pressure fell or moved. Exit codes:
    0 drawn, 2 wrong call or input, 3 no figure of a single chip is stated.
    """
    from receipts.api.answer import Answer, Answers
    from receipts.api.session import documents
    from receipts.base.errors import UsageError
    from receipts.publish.chip_map import ChipMap, changed, one
    from receipts.publish.pictures.svg import svg_file

    def answer(item: ChipMap) -> Answer:
        def drawn() -> str | None:
            return svg_file(item.page.sections[0].figures[0].draw("chips") if item.heat is not None else None)

        return Answer(item.data, item.page, 0 if item.known else 3, files={"svg": drawn})

    lanes = session.rulebook.lanes
    if b is not None:
        sides = session.groups([a, b])
        spread = None if documents((a, b)) else _spread(session, sides[0][0])
        return answer(changed(sides, phase, metric, spread))
    (named,) = session.groups([a])
    maps = (answer(one(parsed, lanes.of(parsed.receipt.run.lane), phase, metric)) for parsed in named)
    if len(named) == 1:
        return next(maps)

    class Maps(Answers):
        """Maps of several receipts, of which no picture is drawn."""

        def file(self, name: str) -> Any:
            """Raises UsageError."""
            raise UsageError(f"{a} names {len(named)} receipts, and --svg draws one; name one of them by its id")

    return Maps(maps, lambda known: max(item.exit_code for item in known))


def _spread(session: Session, parsed: Parsed) -> float | None:
    """The largest difference of one chip's live peak between equal launches of the store."""
    from receipts.questions.noise import noise_floor

    return noise_floor(session.store, parsed, session.rulebook.lanes.of(parsed.receipt.run.lane)).chip_spread


@question("repro", alone=always)
def repro(session: Session, receipt: OneReceipt) -> Answer:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state.

    Examples:
      receipts repro 3f9c
      receipts repro @golden > again.sh
    """
    from dataclasses import asdict

    from receipts.api.answer import Answer
    from receipts.questions.repro import recipe

    class Script(Answer):
        """It is to be run: its tabs are not escaped."""

        def text(self, terminal: Any, *, opened: bool = False, **views: Any) -> str:
            """The script as it is."""
            return f"{self.shown()}\n"

    parsed = session.one(receipt)
    steps = recipe(parsed)
    return Script({"id": parsed.id, **asdict(steps)}, steps.script())
