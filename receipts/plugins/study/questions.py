"""``bridge``, ``bisect`` and ``sweep``: what launches say together."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.question import RECEIPT, SIDE, WORD, File, Metric, Param, Study, Waivers, integer, question, unnamed
from receipts.api.questions.compare import NOT_INDEXED
from receipts.base.errors import UsageError

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session


@question(
    "bridge",
    costly=True,
    forms=("csv",),
    views={"written": Param(WORD, "The folder of the plans", command=False)},
    files={
        "plan": File(
            ("--plan",),
            "application/json",
            "Write the missing runs here as plans for receipts run.",
            "DIR",
            without="nothing is missing that a run could give",
            folder=True,
            silent=True,
            view="written",
        ),
        "svg": File(
            ("--svg",),
            "image/svg+xml",
            "Also write the bridge as a waterfall picture.",
            without="there is no bridge with a number on every hop",
        ),
        "dot": File(("--dot",), "text/vnd.graphviz", "Print the configurations and hops for Graphviz.", printed=True),
    },
)
def bridge(
    session: Session,
    a: Annotated[Any, Param(RECEIPT, "The receipt to start from", metavar="A")],
    b: Annotated[Any, Param(RECEIPT, "The receipt to get to", metavar="B")],
    *,
    metric: Metric = "tokens_per_second",
    most: Annotated[
        int,
        Param(integer(1, remote=500), "Judge at most this many hops.", ("--most",), show_default=True),
    ] = 200,
) -> Answer:
    """Show the shortest chain of accepted receipts from A to B, each one axis from the next.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; a label may name launches of two
    configurations. If the store has no chain, prints the fewest configurations that would complete one.

    Examples:
      receipts bridge 3f9c 81aa
      receipts bridge @golden candidate.json --metric step_seconds
      receipts bridge 3f9c 81aa --plan missing
      receipts bridge 3f9c 81aa --svg bridge.svg
      receipts bridge 3f9c 81aa --dot | dot -Tsvg > paths.svg

    Each hop changes one axis and is judged in its session, with witnesses, as receipts compare does; the gain of a hop
    is the gain of its axis. More: docs/bridge.md. Exit codes: 0 there is a bridge of accepted hops, 1 there is none and
    no further run can make one (every way has a rejected hop), 2 wrong call or input, 3 there is none yet (hops are
    missing or undecided).
    """
    from receipts.api.answer import Answer
    from receipts.plugins.study.bridge import bridge, bridge_as_data, bridge_as_dot
    from receipts.plugins.study.bridge_page import bridge_page, bridge_picture
    from receipts.publish.svg import svg_file
    from receipts.questions.plan import file_name

    store = session.store
    sides = session.two(a, b)
    bridged = bridge(store, *sides, session.rulebook, metric=metric, most=most, progress=session.advance)
    # The plans of the missing runs by their names, in the order of the chain.
    runs = bridged.route.runs if bridged.route is not None else ()
    plans = {f"{number:02d}-{file_name(run.label)}.json": run.plan for number, run in enumerate(runs, 1)}

    def shown(written: str | None = None) -> Any:
        return bridge_page(bridged, placed(written) if written is not None else None)

    def placed(folder: str) -> list[str]:
        return [f"{folder}/{name}" for name in plans]

    data = bridge_as_data(bridged)
    return Answer(
        data,
        shown,
        bridged.exit_code,
        () if bridged.indexed else (NOT_INDEXED,),
        rows=data["chains"][0] if data["chains"] else [],
        placed=lambda folder: {"plans": placed(folder)},
        files={
            "plan": lambda: plans or None,
            "svg": lambda: svg_file(bridge_picture(bridged)),
            "dot": lambda: bridge_as_dot(bridged),
        },
    )


@question("sweep", costly=True, alone=unnamed, forms=("csv",))
def sweep(
    session: Session,
    receipts: Annotated[
        Any, Param(SIDE._replace(split=False), "A receipt", metavar="WHAT…", many=True, wire="receipt")
    ],
    *,
    vary: Annotated[str, Param(WORD, "The axes of the grid, outermost first.", ("--vary", "-v"), "AXIS[,AXIS]")],
    base: Annotated[
        Any, Param(RECEIPT, "The cell that the others are judged against.  [default: the first]", ("--base",), "ID")
    ] = None,
    metric: Metric = "tokens_per_second",
    waivers: Waivers = MappingProxyType({}),
    study: Study = None,
) -> Answer:
    """Show receipts as a grid: effects against a base, one-axis links, and rejected cells with the reason.

    Examples:
      receipts sweep 'label=grid*' --vary micro_batch,mtp_depth
      receipts sweep runs/a.json runs/b.json runs/c.json --vary path.attention
      receipts sweep 'label=grid*' --vary pipeline --base 3f9c --metric step_seconds
    """
    from receipts.api.answer import Answer
    from receipts.api.session import documents
    from receipts.judging.verdict import verdict_to_json
    from receipts.plugins.study.sweep import sweep, sweep_page
    from receipts.questions.comparisons import Comparisons

    unique = list({item.id: item for group in session.groups(receipts) for item in group}.values())
    head = session.groups([base])[0][0] if base is not None else None
    names = [name.strip() for name in vary.split(",") if name.strip()]
    if not names:
        raise UsageError("--vary names no axis; write --vary micro_batch,mtp_depth")
    stored = session.asks_store or not documents(receipts)
    comparisons = Comparisons(session.store if stored else None, session.rulebook)
    grid = sweep(unique, names, comparisons, metric, head, waivers=waivers, study=study)
    cells = [
        {
            "coordinates": dict(zip(grid.vary, cell.coordinates, strict=True)),
            "launches": [item.id for item in cell.launches],
            "left_out": {item.receipt: item.why for item in cell.lost},
            "refused": cell.refused,
            "against_base": verdict_to_json(cell.against_base) if cell.against_base else None,
        }
        for cell in grid.cells
    ]
    links = [{"a": link.a, "b": link.b, "axis": link.axis} for link in grid.links]
    data = {"metric": metric, "vary": list(grid.vary), "cells": cells, "links": links}
    return Answer(data, lambda: sweep_page(grid, metric), rows=cells)


@question(
    "bisect",
    costly=True,
    views={"written": Param(WORD, "The folder of the plan", command=False)},
    files={
        "plan": File(
            ("--plan",),
            "application/json",
            "Write the plan of the next step here, for receipts run.",
            "DIR",
            folder=True,
            keep=True,
            then="plan: {}",
            view="written",
        )
    },
)
def bisect(
    session: Session,
    good: Annotated[Any, Param(RECEIPT, "The good side", metavar="GOOD")],
    bad: Annotated[Any, Param(RECEIPT, "The bad side", metavar="BAD")],
    *,
    metric: Metric = "tokens_per_second",
) -> Answer:
    """Find the smallest set of axes that explains why BAD differs from GOOD, or say what to launch next.

    GOOD and BAD are files, ids or unique id prefixes, labels, label=GLOB, or @pins; a label may name launches of one
    configuration.

    Examples:
      receipts bisect @golden 81aa --plan bisect
      receipts run --plan bisect/01-torch-2.9.0.json -- python train.py --plan {plan}
      receipts bisect @golden 81aa --plan bisect        (again, until it is explained)

    Each step is a configuration between the two sides, with some axes as the bad side has them; its outcome is the
    effect of its launches, never one number. More: docs/bisect.md. Exit codes: 0 explained, 1 nothing to explain, 2
    wrong call or input, 3 run the plan.
    """
    from dataclasses import asdict

    from receipts.api.answer import Answer
    from receipts.plugins.study.bisection import bisect, bisection_page
    from receipts.questions.plan import file_name, write_plan

    store = session.store
    seen = bisect(store, *session.two(good, bad), session.rulebook, metric)
    plans = None
    if seen.plan is not None:
        label = seen.plan.receipt.run.label or "as-stored"
        plans = {f"{len(seen.steps):02d}-{file_name(label)}.json": write_plan(seen.plan, {"run.label": label})}
    data = {
        "axes": seen.axes,
        "metric": seen.metric,
        "effect": asdict(seen.direct),
        "sets": seen.sets,
        "inseparable": seen.inseparable,
        "steps": [asdict(item) for item in seen.steps],
        "avoided": [{"configuration": name, "why": why} for name, why in seen.avoided],
        "launches": seen.launches,
        "plan": None,
    }
    return Answer(
        data,
        lambda written=None: bisection_page(seen),
        seen.exit_code,
        placed=lambda folder: {"plan": next((f"{folder}/{name}" for name in plans or ()), None)},
        files={"plan": lambda: plans},
    )
