"""``neighbours``: every stored launch one axis away, with its effect and its verdict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.question import RECEIPT, WORD, Metric, Param, integer, question

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session

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
        limits=(1, None),
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
    from receipts.api.answer import Answer
    from receipts.api.lists import neighbours_as_data
    from receipts.axes import axis_named
    from receipts.publish.neighbours import page
    from receipts.questions.neighbours import neighbours

    if axis is not None:
        axis = axis_named(axis)
    of, rulebook = session.one(receipt), session.rulebook
    near = neighbours(session.store, of, rulebook, metric=metric, axis=axis, limit=limit, progress=session.advance)
    data = neighbours_as_data(near)
    notes = () if near.indexed else (NOT_INDEXED,)
    rows = [*data["neighbours"], *data["refused"]]
    return Answer(data, lambda: page(near, axis), near.exit_code, notes, rows=rows, columns=COLUMNS)
