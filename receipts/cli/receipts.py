"""``receipts list``, ``show``, ``chips`` and ``repro``: receipts as they are stored or lie in files.

``list`` finds them by any axis, lane or outcome; ``show`` prints one, headed by the five answers; ``chips`` draws
memory by physical chip; ``repro`` prints what it takes to run one again.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Answer, Session, fetch, is_file, named, one, parsed_file, verb
from receipts.publish.terminal import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.metrics.chips import Metric
    from receipts.receipt import Parsed
    from receipts.store import Condition, Entry, Filters, ListPlan, Store


PAGE = 50


@verb("list")
@click.argument("conditions", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("--limit", "-n", default=PAGE, show_default=True, help="Print at most this many rows; 0 for all.")
@click.option("--all", "-a", "superseded", is_flag=True, help="Also show superseded and retracted receipts.")
@click.option("--order", type=click.Choice(["newest", "oldest", "stored"]), default="newest", show_default=True)
@click.option("--next", "deciding", is_flag=True, help="Also print what would decide each open receipt.")
@click.option("--by", "who", is_flag=True, help="Also print who submitted each receipt.")
def list_(
    session: Session, conditions: tuple[str, ...], limit: int, superseded: bool, order: str, deciding: bool, who: bool
) -> Answer:
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
    from receipts.base.errors import NoStore
    from receipts.publish.tables import listed
    from receipts.store import Filters, condition

    wanted = tuple(condition(text) for text in conditions)
    filters = Filters(wanted, superseded, order, limit + 1 if limit else None)  # type: ignore[arg-type]  # click.Choice holds it to the three
    commands: dict[str, str] = {}
    try:
        if session.team is not None:
            session.team.refuse({"--next": deciding})
            most = limit + 1 if limit else 0
            rows = session.team.listed(conditions, most, superseded=superseded, order=order)
        else:
            rows, commands = _rows(session, filters, limit, deciding=deciding)
    except NoStore:
        if session.store_url is not None:
            raise  # a name that may be mistyped
        return Answer([], notes=("no receipts yet; add one with: receipts submit FILE",))
    more = bool(limit) and len(rows) > limit
    rows = rows[:limit] if limit else rows
    data = [item._asdict() | ({"next": commands.get(item.id) or None} if deciding else {}) for item in rows]
    notes = (f"the first {limit}; --limit 0 prints all",) if more else ()
    return Answer(data, listed(rows, commands, who=who), notes=notes + (() if rows else _mistyped(session, wanted)))


def _mistyped(session: Session, wanted: Sequence[Condition]) -> tuple[str, ...]:
    """The lanes that a condition may mean, where it names one that nobody declared."""
    from receipts.base.errors import near

    lanes = session.rulebook.lanes.names()
    names = [item.value for item in wanted if item.name == "lane" and item.operator == "=" and item.value not in lanes]
    return tuple(f"there is no lane {name!r}{hint}" for name in names if (hint := near(str(name), lanes)))


def _rows(session: Session, filters: Filters, limit: int, *, deciding: bool) -> tuple[list[Entry], dict[str, str]]:
    """The rows of a list, and what would decide the open ones; on standard error, what takes time about it."""
    store = session.store
    plan = store.plan(filters)
    slow = plan.slow and filters.conditions
    if slow:
        output.note(_scanning(plan))
    rows = list(store.find(filters, session.progress.at if slow else None))
    shown = [item for item in rows[: limit or None] if deciding and item.status == "open"]
    return rows, {item.id: _deciding(session, store, item.id) for item in shown}


def _deciding(session: Session, store: Store, receipt: str) -> str:
    """The command that would decide an open receipt, as the present rules judge it."""
    from receipts.judging.judge import judge_receipt
    from receipts.questions.next_command import of_receipt

    parsed = store.parsed(receipt)
    lane = session.rulebook.lanes.of(parsed.receipt.run.lane)
    return of_receipt(parsed, judge_receipt(parsed, lane, session.rulebook.rules, store.query.facts([parsed])))


def _scanning(plan: ListPlan) -> str:
    """What takes time about a list, and what would make it quick."""
    documents = f" and reads documents for {', '.join(plan.documents)}, which no index holds" if plan.documents else ""
    return f"scans {plan.most:,} receipts{documents}; context=, host=, code.commit= or started>= leave fewer to look at"


@verb("show")
@click.argument("receipt", metavar="ID|FILE")
@click.option("--facts", "all_facts", is_flag=True, help="Also list every stated leaf.")
@click.option("--verbose", "-v", "opened", is_flag=True, help="Show every finding in full, and memory by chip.")
@click.option("--raw", is_flag=True, help="Print the document's bytes as they came.")
@click.option("--envelope", is_flag=True, help="Print the DSSE envelope: the document with its signatures.")
def show(session: Session, receipt: str, all_facts: bool, opened: bool, raw: bool, envelope: bool) -> int:
    """Show one receipt: what ran, where, on which path, what was measured, and the rules' verdict.

    Examples:
      receipts show 3f9c
      receipts show @golden --facts
      receipts show run.json
      receipts show 3f9c --raw > run.json
    """
    from receipts.api.receipt import Receipt
    from receipts.api.store import Store

    if session.team is not None and not is_file(receipt):
        return session.team.show(receipt, facts=all_facts, opened=opened, raw=raw, as_json=session.as_json)
    if envelope:
        return _print_envelope(session, receipt)
    rulebook = session.rulebook
    if is_file(receipt):
        parsed = parsed_file(receipt)
        known = session.known if not raw else None
        receipts = [Receipt(parsed, rulebook, known.query.facts(parsed)) if known else Receipt(parsed, rulebook)]
    else:
        store = session.opened(looked_up=[receipt])
        receipts = [Store(store, rulebook).get(one.id) for one in named(store, receipt)]
    for item in receipts:
        if raw:
            _print_raw(item.raw)
        elif session.as_json:
            output.line(item.to_json())
        else:
            output.show(item.page(stated=all_facts), opened=opened)
    return 0


def _print_raw(document: bytes) -> None:
    """The bytes as they came; on a terminal, made harmless for it."""
    if sys.stdout.isatty():
        output.line("\n".join(clean(part) for part in document.decode().splitlines()))
    else:
        sys.stdout.buffer.write(document)


def _print_envelope(session: Session, word: str) -> int:
    store = session.opened(looked_up=[word])
    receipt = store.resolve(word)
    envelope = store.signing.envelope(receipt, store.document(receipt))
    if envelope is None:
        output.note(f"{receipt[:12]} is not signed; receipts submit FILE --sign KEY signs it")
        return 3
    output.line(envelope.to_json().rstrip("\n"))
    return 0


@verb("chips")
@click.argument("a", metavar="ID|FILE")
@click.argument("b", metavar="[B]", required=False)
@click.option(
    "--phase",
    type=click.Choice(["post_init", "post_compile", "post_step0", "steady"]),
    help="The phase to draw. Default: the one in which the figure is worst.",
)
@click.option(
    "--metric",
    "-m",
    type=click.Choice(["used", "peak", "pool", "headroom"]),
    help="In use, live peak, pool peak, or headroom: the limit less the live peak. Default: the first stated of live "
    "peak, pool peak and in use.",
)
@click.option("--svg", "svg", metavar="FILE", help="Also write the picture to this file.")
def chips(session: Session, a: str, b: str | None, phase: str | None, metric: Metric | None, svg: str | None) -> int:
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
    from receipts.base.errors import UsageError
    from receipts.publish.chip_map import changed, one

    sides = fetch(session, [a] if b is None else [a, b])
    lanes = session.rulebook.lanes
    if b is None and svg is not None and len(sides[0]) > 1:
        raise UsageError(f"{a} names {len(sides[0])} receipts, and --svg draws one; name one of them by its id")
    if b is not None:
        spread = None if all(map(is_file, (a, b))) else _spread(session, sides[0][0])
        maps = [changed(sides, phase, metric, spread)]
    else:
        maps = [one(parsed, lanes.of(parsed.receipt.run.lane), phase, metric) for parsed in sides[0]]
    for item in maps:
        if svg is not None and item.heat is not None:
            output.picture(svg, item.page.sections[0].figures[0].draw("chips"))
        output.answer(session.as_json, item.data, item.page)
    return 0 if all(item.known for item in maps) else 3


def _spread(session: Session, parsed: Parsed) -> float | None:
    """The largest difference of one chip's live peak between equal launches of the store."""
    from receipts.questions.noise import noise_floor

    return noise_floor(session.store, parsed, session.rulebook.lanes.of(parsed.receipt.run.lane)).chip_spread


@verb("repro")
@click.argument("receipt", metavar="ID|FILE")
def repro(session: Session, receipt: str) -> int:
    """Print the command, flags and wheels of a receipt as a shell script, and list what the receipt does not state.

    Examples:
      receipts repro 3f9c
      receipts repro @golden > again.sh
    """
    from receipts.questions.repro import recipe

    if is_file(receipt):
        parsed = parsed_file(receipt)
    else:
        parsed = one(session.opened(looked_up=[receipt]), receipt)
    steps = recipe(parsed)
    if session.as_json:
        output.as_json({"id": parsed.id, **asdict(steps)})
    else:
        output.line(steps.script())  # it is to be run: an answer of a verb would have its tabs escaped
    return 0
