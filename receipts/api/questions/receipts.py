"""``list``, ``show`` and ``repro``: receipts as they are stored, or as they were given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.answer import Answer, Answers
from receipts.api.question import FLAG, WORD, File, OneReceipt, Param, always, choice, integer, question, unnamed

if TYPE_CHECKING:
    from receipts.api.receipt import Receipts
    from receipts.api.session import Session


PAGE = 50

Conditions = Annotated[
    Sequence[str],
    Param(
        WORD, "A condition, such as batch.micro_batch=4 or chips>=8", metavar="[NAME=VALUE]…", many=True, wire="where"
    ),
]
Limit = Annotated[
    int,
    Param(
        integer(1), "Print at most this many rows; 0 for all.", ("--limit", "-n"), show_default=True, limits=(0, None)
    ),
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


@question("repro", alone=always)
def repro(session: Session, receipt: OneReceipt) -> Answer:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state.

    Examples:
      receipts repro 3f9c
      receipts repro @golden > again.sh
    """
    from receipts.questions.commands import recipe

    class Script(Answer):
        """It is to be run: its tabs are not escaped."""

        def text(self, terminal: Any, *, opened: bool = False, **views: Any) -> str:
            """The script as it is."""
            return f"{self.shown()}\n"

    parsed = session.one(receipt)
    steps = recipe(parsed)
    return Script({"id": parsed.id, **asdict(steps)}, steps.script())
