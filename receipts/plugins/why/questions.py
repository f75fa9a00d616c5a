"""``why``: where the difference of two steps went."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.question import FLAG, File, Kind, Param, Study, Waivers, question
from receipts.api.questions.compare import Joined, SideA, SideB

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session


@question(
    "why",
    costly=True,
    forms=("csv",),
    alone=lambda documents, _named: documents > 1,
    files={
        "svg": File(
            ("--svg",),
            "image/svg+xml",
            "Also write the table as a waterfall picture.",
            without="there is no table to draw",
        )
    },
)
def why(
    session: Session,
    a: SideA,
    b: SideB,
    *,
    waivers: Waivers = MappingProxyType({}),
    study: Study = None,
    join: Joined = "session",
    traces: Annotated[
        Any,
        Param(
            Kind(path=True, gather=list),
            "A trace that the store does not keep; a receipt must list it.",
            ("--trace",),
            "FILE",
            many=True,
            local=True,
        ),
    ] = (),
    anyway: Annotated[
        bool, Param(FLAG, "Show the table of a difference that is refused, marked.", ("--anyway",))
    ] = False,
    span: Annotated[
        bool, Param(FLAG, "Lay whole traces that mark no step beside each other: a span, not a step.", ("--span",))
    ] = False,
) -> Answer:
    """Show where the difference between two steps went: a table that adds up, or why there is none.

    A and B are named as for receipts compare. Their receipts list traces of a few steps, from which submit took a time
    profile; the traces themselves are not needed.

    Examples:
      receipts why before after
      receipts why 3f9c 81aa --json
      receipts why @golden candidate.json --trace trace.json.gz
      receipts why 3f9c 81aa --svg why.svg
      receipts why 3f9c 81aa --anyway
      receipts why 3f9c 81aa --span

    measured difference = the lines of the table, to the nanosecond + what is not in the traces. A line is consistent
    with an axis that changed, unexpected, or within noise: never more. More: docs/why.md. Exit codes: 0 explained, 1
    refused (the traces, or the comparison, cannot carry it), 2 wrong call or input, 3 no traces, or no effect.
    """
    from receipts.api.answer import Answer
    from receipts.api.comparison import gather
    from receipts.plugins.why.explanation import METRIC, explain, explanation_as_data
    from receipts.plugins.why.page import explanation_page, picture, waterfall
    from receipts.publish.svg import svg_file

    compared = gather(session, a, b, metric=METRIC, waivers=waivers, study=study, join=join)
    sides = compared.sides.a, compared.sides.b
    explanation = explain(compared.verdict, sides, session.known, files=traces, anyway=anyway, span=span)
    data = explanation_as_data(explanation)
    rows = data["table"]["lines"] if data["table"] else []

    def svg() -> str | None:
        drawn = waterfall(explanation)
        return svg_file(picture(drawn)) if drawn is not None else None

    shown = partial(explanation_page, explanation)
    return Answer(data, shown, explanation.exit_code, rows=rows, files={"svg": svg})
