"""``chips``: memory by physical chip of one launch, or what B changed against A."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.question import RECEIPT, File, Param, always, choice, question

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session
    from receipts.metrics.chips import Metric

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
After = Annotated[Any, Param(RECEIPT, "What it is compared with", metavar="[B]")]


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
def chips(session: Session, a: Before, b: After = None, *, phase: Phase = None, metric: Figure = None) -> Answer:
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
    from receipts.plugins.chips.page import ChipMap, changed, one
    from receipts.publish.svg import svg_file
    from receipts.questions.noise import noise_floor

    def answer(item: ChipMap) -> Answer:
        def drawn() -> str | None:
            return svg_file(item.page.sections[0].figures[0].draw("chips") if item.heat is not None else None)

        return Answer(item.data, item.page, 0 if item.known else 3, files={"svg": drawn})

    lanes = session.rulebook.lanes
    if b is not None:
        sides = session.groups([a, b])
        spread, first = None, sides[0][0]
        if not documents((a, b)):
            # The largest difference of one chip's live peak between equal launches of the store.
            spread = noise_floor(session.store, first, lanes.of(first.receipt.run.lane)).chip_spread
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
