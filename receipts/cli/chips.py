"""``receipts chips``: memory by physical chip, drawn over the topology."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from receipts.cli import output
from receipts.cli.session import Session, fetch, is_file, pass_session

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.metrics.chips import Account, Figure, Metric, Phase, Pressure
    from receipts.publish.pictures.heat import Heat
    from receipts.receipt import Parsed

EPILOG = """\b
Examples:
  receipts chips 3f9c
  receipts chips run.json --phase post_compile --metric pool
  receipts chips 3f9c --metric headroom --svg headroom.svg
  receipts chips before.json after.json
  receipts chips 3f9c 81aa --json

Each cell is a physical chip: v6e and v5p slices by coordinates, other machines one row per host. Amounts are GiB (bytes
in --json). Live peak, pool peak and memory in use are never mixed, and one figure for several chips counts for none of
them. With B, cells show B less A, and the last line states whether pressure fell or moved. Exit codes: 0 drawn, 2 wrong
call or input, 3 no figure of a single chip is stated."""


@click.command("chips", epilog=EPILOG)
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
@click.option("--json", "as_json", is_flag=True, help="Print every phase and chip as JSON, in bytes.")
@pass_session
def command(
    session: Session, a: str, b: str | None, phase: str | None, metric: Metric | None, svg: str | None, as_json: bool
) -> int:
    """Draw memory by physical chip: which uses most, which peaks earlier, what is left; or what B changed against A."""
    from receipts.base.errors import UsageError

    if b is not None:
        return _changed(session, (a, b), phase, metric, svg, as_json)
    first = fetch(session, [a])[0]
    if svg is not None and len(first) > 1:
        raise UsageError(f"{a} names {len(first)} receipts, and --svg draws one; name one of them by its id")
    codes = [_one(session, parsed, phase, metric, svg, as_json) for parsed in first]
    return max(codes)


def _stated(accounts: Sequence[Account], phase: str | None) -> Metric:
    """The first of live peak, pool peak and in use that every launch states; live peak where none is."""
    from receipts.metrics.chips import PHASES

    names: tuple[Metric, ...] = ("peak", "pool", "used")
    phases = (phase,) if phase else PHASES
    return next((name for name in names if all(one.by_chip(name, phases) for one in accounts)), "peak")


def _one(
    session: Session, parsed: Parsed, phase: str | None, asked: Metric | None, svg: str | None, as_json: bool
) -> int:
    from receipts.axes.lineage import ran_on
    from receipts.metrics.chips import account, words
    from receipts.metrics.chips.as_json import to_json
    from receipts.publish.pictures.maps import file_map

    accounted = account(parsed)
    metric = asked or _stated([accounted], phase)
    lane = session.rulebook.lanes.of(parsed.receipt.run.lane)
    chosen = accounted.get(phase) if phase else accounted.worst(metric)
    drawn = chosen if chosen is not None and chosen.ranking(metric) is not None else None
    heat = _heat(parsed, accounted, drawn, metric, lane) if drawn is not None else None
    if svg is not None and heat is not None:
        output.picture(svg, file_map(heat))
    if as_json:
        lineage = str(ran_on(parsed, lane) or "") or None
        shown = {"metric": metric, "phase": drawn.name if drawn is not None else None, "lineage": lineage}
        output.as_json({"id": parsed.id, "name": parsed.name, **shown, **to_json(accounted)})
        return 0 if drawn is not None else 3
    if heat is None or drawn is None:
        return _nothing(parsed, accounted, phase, metric)
    _print(heat)
    output.line()
    for one in accounted.phases:
        output.wrapped((words.sentence if one is drawn else words.brief)(one), 2, 4)
    if words.aggregate(accounted):
        output.wrapped(words.aggregate(accounted), 2, 4)
    match = ran_on(parsed, lane)
    if match is not None:
        output.wrapped(output.clean(f"lineage {match}"), 2, 4)
    return 0


def _nothing(parsed: Parsed, account: Account, phase: str | None, metric: Metric) -> int:
    """Say what is not there, and what is."""
    from receipts.metrics.chips import METRICS, TITLES, words

    where = f" in phase {phase}" if phase else ""
    output.wrapped(f"{output.clean(parsed.name)}: no chip states its {TITLES[metric]}{where}", 0, 2)
    if words.aggregate(account):
        output.wrapped(words.aggregate(account), 2, 4)
    stated = [
        f"--phase {one.name} --metric {name}"
        for one in account.phases
        for name in METRICS
        if one.ranking(name) is not None
    ]
    if stated:
        output.wrapped(f"stated: {'; '.join(stated)}", 2, 4)
    else:
        output.wrapped("record bytes_used, bytes_limit and peak_bytes on every chip (see: receipts rules R401)", 2, 4)
    return 3


def _heat(parsed: Parsed, account: Account, phase: Phase, metric: Metric, lane: Lane) -> Heat:
    from receipts.metrics.chips import TITLES, words
    from receipts.publish.pictures.heat import Heat

    ranking = phase.ranking(metric)
    assert ranking is not None  # the caller looked
    worst = ranking.lowest if metric == "headroom" else ranking.highest
    alike = ranking.lowest == ranking.highest
    values = {item.chip: float(value) for item in phase.chips if (value := item.read(metric)) is not None}
    return Heat(
        layout=_layout(parsed, account, [item.chip for item in phase.chips] + list(phase.missing)),
        values=values,
        title=f"{TITLES[metric].capitalize()} by chip, {phase.name}, in GiB",
        about=_about(parsed),
        note=tuple(filter(None, (*words.phase_facts(phase), words.aggregate(account)))),
        worse="lower" if metric == "headroom" else "higher",
        limits={item.chip: float(item.limit) for item in phase.chips if item.limit is not None},
        leaders=frozenset(chip for chip, value in values.items() if value == worst and not alike),
        missing=frozenset(phase.missing),
        doubled=frozenset(phase.doubled),
        thin=frozenset(item.chip for item in phase.chips if item.left is not None and item.left < lane.headroom),
    )


def _layout(parsed: Parsed, account: Account, chips: Sequence[int]) -> Any:
    from receipts.publish.pictures.layout import layout

    hardware = parsed.receipt.hardware
    return layout(
        chips,
        count=account.stated,
        hosts=hardware.hosts if hardware else None,
        physical=hardware.physical if hardware else None,
        accelerator=hardware.accelerator if hardware else None,
    )


def _about(parsed: Parsed) -> str:
    hardware = parsed.receipt.hardware
    count = hardware.chips if hardware and hardware.chips is not None else "?"
    machine = hardware.accelerator if hardware and hardware.accelerator else "accelerator not stated"
    name = output.clean(parsed.name)
    called = f"{name if len(name) <= 80 else f'{name[:79]}…'} · " if not parsed.id.startswith(name) else ""
    return f"{called}{parsed.id[:12]} · {count} × {output.clean(machine)}"


def _changed(
    session: Session, names: tuple[str, str], phase: str | None, asked: Metric | None, svg: str | None, as_json: bool
) -> int:
    from receipts.metrics.chips import account, pressure, pressure_json, words
    from receipts.metrics.chips.as_json import to_json
    from receipts.publish.pictures.maps import file_map

    sides = fetch(session, names)
    accounts = [[account(item) for item in side] for side in sides]
    metric = asked or _stated([one for side in accounts for one in side], phase)
    figure: Figure = "peak" if metric == "headroom" else metric
    spread = None if figure != "peak" or all(map(is_file, names)) else _spread(session, sides[0][0])
    pressures = pressure(*accounts, metric=figure, phase=phase, spread=spread)
    heat = _change(sides, accounts, pressures, metric) if pressures.a else None
    if svg is not None and heat is not None:
        output.picture(svg, file_map(heat))
    if as_json:
        tree: dict[str, Any] = {"metric": metric, "change": pressure_json(pressures)}
        for name, side, of in zip(("a", "b"), sides, accounts, strict=True):
            tree[name] = [{"id": item.id, **to_json(one)} for item, one in zip(side, of, strict=True)]
        output.as_json(tree)
        return 3 if pressures.kind == "unknown" else 0
    if heat is not None:
        _print(heat)
        output.line()
    output.wrapped(words.change(pressures), 2, 4)
    if pressures.kind != "unknown":
        output.wrapped(str(pressures.margin), 2, 4)
    return 3 if pressures.kind == "unknown" else 0


def _spread(session: Session, parsed: Parsed) -> float | None:
    """How far one chip's live peak lies apart in equal launches of the store."""
    from receipts.questions.noise import noise_floor

    with session.open_store() as store:
        return noise_floor(store, parsed, session.rulebook.lanes.of(parsed.receipt.run.lane)).chip_spread


def _change(sides: list[list[Parsed]], accounts: list[list[Account]], pressure: Pressure, metric: Metric) -> Heat:
    """B less A on every chip, of several launches each chip's median."""
    from receipts.metrics.chips import TITLES, middle, words
    from receipts.publish.pictures.heat import Heat

    before, after = (middle([one.by_chip(metric, pressure.phases) for one in side]) for side in accounts)
    values = {chip: after[chip] - before[chip] for chip in before if chip in after}
    most = max(map(abs, values.values()), default=0.0)
    limits = [item for side in accounts for phase in side[0].phases for item in phase.chips]
    where = pressure.phases[0] if len(pressure.phases) == 1 else "highest of its phases"
    if metric == "headroom" and len(pressure.phases) > 1:
        where = "least of its phases"
    return Heat(
        layout=_layout(sides[0][0], accounts[0][0], list(before)),
        values=values,
        title=f"Change of {TITLES[metric]} by chip, {where}, in GiB",
        about=f"A {_about(sides[0][0])} → B {_about(sides[1][0])}",
        note=(words.change(pressure), *([str(pressure.margin)] if pressure.kind != "unknown" else [])),
        worse="either",
        relief="up" if metric == "headroom" else "down",
        limits={item.chip: float(item.limit) for item in limits if item.limit is not None},
        leaders=frozenset(chip for chip, value in values.items() if most and abs(value) == most),
    )


def _print(heat: Heat) -> None:
    from receipts.publish.pictures.terminal import lines

    output.line(output.paint(heat.title, "head"))
    output.wrapped(heat.about, 0, 2)
    output.wrapped(heat.layout.note, 0, 2)
    output.line()
    for text in lines(heat, width=output.width(), colour=output.coloured()):
        output.line(text)
