"""``receipts bridge``, ``sweep``, ``bisect`` and ``plan``: what launches say together, and which to run next."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.compare import METRIC, NOT_INDEXED, STUDY, WAIVE, waivers
from receipts.cli.session import Answer, Session, fetch, is_file, two, verb
from receipts.questions.gate import share

if TYPE_CHECKING:
    from receipts.plugins.study.bisection import Bisected
    from receipts.plugins.study.bridge import Bridge
    from receipts.plugins.study.design import Designed
    from receipts.plugins.study.sweep import Sweep


@verb("bridge")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@METRIC
@click.option("--plan", "folder", metavar="DIR", help="Write the missing runs here as plans for receipts run.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=200,
    show_default=True,
    help="Judge at most this many hops.",
)
@click.option("--svg", "svg", metavar="FILE", help="Also write the bridge as a waterfall picture.")
@click.option("--dot", "as_dot", is_flag=True, help="Print the configurations and hops for Graphviz.")
def bridge_command(
    session: Session, a: str, b: str, metric: str, folder: str | None, most: int, svg: str | None, as_dot: bool
) -> Answer:
    """Show the shortest chain of accepted receipts from A to B, each one axis from the next.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; a label may name launches of two
    configuration. If the store has no chain, prints the fewest configurations that would complete one.

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
    from receipts.plugins.study.bridge import bridge, bridge_as_data, bridge_as_dot
    from receipts.plugins.study.bridge_page import bridge_page, bridge_picture

    if as_dot and session.as_json:
        raise UsageError("--dot and --json are two forms of one answer; ask for one of them")
    sides = two(session.store, a, b)
    bridged = bridge(session.store, *sides, session.rulebook, metric=metric, most=most, progress=session.progress.at)
    written = _write_missing_runs(Path(folder), bridged) if folder is not None else []
    if svg is not None:
        output.picture(svg, bridge_picture(bridged), "there is no bridge with a number on every hop")
    plans = {"plans": written} if folder is not None else {}
    if as_dot:
        return Answer(None, bridge_as_dot(bridged).rstrip("\n"), bridged.exit_code)
    notes = () if bridged.indexed else (NOT_INDEXED,)
    return Answer(
        lambda: bridge_as_data(bridged) | plans,
        lambda: bridge_page(bridged, plans.get("plans")),
        bridged.exit_code,
        notes,
    )


def _write_missing_runs(folder: Path, bridge: Bridge) -> list[str]:
    """Write the plans of the missing runs, all or none; gives their paths in the order of the chain."""
    from receipts.questions.plan import file_name

    runs = bridge.route.runs if bridge.route is not None else ()
    if not runs:
        output.note(f"{folder} is not written: nothing is missing that a run could give")
        return []
    paths = [folder / f"{number:02d}-{file_name(run.label)}.json" for number, run in enumerate(runs, 1)]
    files.refuse_existing(*paths)
    files.write_folder(folder, {path.name: run.plan for path, run in zip(paths, runs, strict=True)})
    return [str(path) for path in paths]


@verb("sweep")
@click.argument("receipts", nargs=-1, required=True, metavar="WHAT…")
@click.option("--vary", "-v", required=True, metavar="AXIS[,AXIS]", help="The axes of the grid, outermost first.")
@click.option("--base", metavar="ID", help="The cell that the others are judged against.  [default: the first]")
@METRIC
@WAIVE
@STUDY
def sweep_command(
    session: Session,
    receipts: tuple[str, ...],
    vary: str,
    base: str | None,
    metric: str,
    waive: tuple[str, ...],
    study: str | None,
) -> Answer:
    """Show receipts as a grid: effects against a base, one-axis links, and rejected cells with the reason.

    Examples:
      receipts sweep 'label=grid*' --vary micro_batch,mtp_depth
      receipts sweep runs/a.json runs/b.json runs/c.json --vary path.attention
      receipts sweep 'label=grid*' --vary pipeline --base 3f9c --metric step_seconds
    """
    from receipts.base.errors import UsageError
    from receipts.plugins.study.pages import sweep_page
    from receipts.plugins.study.sweep import sweep
    from receipts.questions.comparisons import Comparisons

    receipts_ = [item for group in fetch(session, receipts) for item in group]
    unique = list({item.id: item for item in receipts_}.values())
    head = fetch(session, [base])[0][0] if base else None
    names = [name.strip() for name in vary.split(",") if name.strip()]
    if not names:
        raise UsageError("--vary names no axis; write --vary micro_batch,mtp_depth")
    stored = session.asks_store or not all(map(is_file, receipts))
    comparisons = Comparisons(session.store if stored else None, session.rulebook)
    options = {"waivers": waivers(waive), "study": study}
    grid = sweep(unique, names, comparisons, metric, head, **options)
    return Answer(lambda: _sweep_data(grid, metric), lambda: sweep_page(grid, metric))


def _sweep_data(grid: Sweep, metric: str) -> dict[str, Any]:
    from receipts.judging.verdict import verdict_to_json

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
    return {"metric": metric, "vary": list(grid.vary), "cells": cells, "links": links}


@verb("bisect")
@click.argument("good", metavar="GOOD")
@click.argument("bad", metavar="BAD")
@METRIC
@click.option("--plan", "folder", metavar="DIR", help="Write the plan of the next step here, for receipts run.")
def bisect_command(session: Session, good: str, bad: str, metric: str, folder: str | None) -> Answer:
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
    from receipts.plugins.study.bisection import bisect
    from receipts.plugins.study.pages import bisection_page

    store = session.store
    seen = bisect(store, *two(store, good, bad), session.rulebook, metric)
    written = _write_next_step(Path(folder), seen) if folder is not None else None
    data = {
        "axes": seen.axes,
        "metric": seen.metric,
        "effect": asdict(seen.direct),
        "sets": seen.sets,
        "inseparable": seen.inseparable,
        "steps": [asdict(item) for item in seen.steps],
        "avoided": [{"configuration": name, "why": why} for name, why in seen.avoided],
        "launches": seen.launches,
        "plan": written,
    }
    notes = (f"plan: {written}",) if written is not None else ()
    return Answer(data, lambda: bisection_page(seen), seen.exit_code, notes)


def _write_next_step(folder: Path, seen: Bisected) -> str | None:
    """Write the plan of the next step; one that is there already is the same step, and stays."""
    from receipts.base import files
    from receipts.questions.plan import file_name, write_plan

    if seen.plan is None:
        return None
    label = seen.plan.receipt.run.label or "as-stored"
    path = folder / f"{len(seen.steps):02d}-{file_name(label)}.json"
    if not path.exists():
        files.write_folder(folder, {path.name: write_plan(seen.plan, {"run.label": label})})
    return str(path)


@verb("plan")
@click.argument("claims", required=False, metavar="[CLAIMS.toml]")
@click.option("--screen", metavar="ARMS.toml", help="Screen the arms of this file against its base.")
@click.option("--next", "following", metavar="DIR", help="Read what came in: run these, decided, or cannot be decided.")
@click.option("--budget", metavar="NUMBERchip-h", help="Chip-hours to spend at most.")
@click.option(
    "--effect", metavar="SHARE", help="The smallest effect that matters, such as 2%.  [default: the lane's δ]"
)
@click.option("--sigma", metavar="SHARE", help="The noise of a launch, such as 0.3%, if the store shows none.")
@click.option("--host", "hosts", multiple=True, metavar="NAME", help="A host for the waves, in turn; may be repeated.")
@METRIC
@click.option("--out", "-o", "folder", metavar="DIR", help="Write the plans here.")
def plan_command(
    session: Session,
    claims: str | None,
    screen: str | None,
    following: str | None,
    budget: str | None,
    effect: str | None,
    sigma: str | None,
    hosts: tuple[str, ...],
    metric: str,
    folder: str | None,
) -> Answer:
    """Plan which launches decide claims, or screen arms; or read what came in.

    Examples:
      receipts plan claims.toml -o next-week
      receipts plan --screen arms.toml --budget 2000chip-h -o screen
      receipts run --plan screen/001-base.json -- python train.py --plan {plan}
      receipts plan --next screen

    Looking early is allowed: the plan fixes the looks, and the interval of each keeps the error rate over all of them.
    More: docs/plan.md. Exit codes: 0 planned, or decided; 1 cannot be decided within the budget; 2 wrong call or input;
    3 more launches are needed.
    """
    from receipts import metrics
    from receipts.base.environment import extra

    if sum(item is not None for item in (claims, screen, following)) != 1:
        raise UsageError("give one of: a claims.toml, --screen ARMS.toml, --next DIR")
    metrics.get(metric)
    extra("scipy", "history")
    if following is not None:
        return _follow_experiment(session, Path(following))
    from receipts.plugins.study.design import design
    from receipts.plugins.study.experiment import read_claims, read_screen

    hours, least, spread = _budget(budget), _share("--effect", effect), _share("--sigma", sigma)
    store = session.store
    if claims is not None:
        wanted = read_claims(Path(claims), store, session.rulebook)
        if not wanted.contrasts:
            return Answer({"runs": []}, "every claim on an effect is decided; nothing is to be run")
    else:
        wanted = read_screen(Path(str(screen)), store)
    designed = design(
        store,
        session.rulebook,
        wanted,
        metric=metric,
        budget=hours,
        effect=least,
        sigma=spread,
    )
    return _planned(designed, folder, hosts)


def _planned(designed: Designed, folder: str | None, hosts: tuple[str, ...]) -> Answer:
    from receipts.base import files
    from receipts.plugins.study.pages import experiment_page

    experiment = designed.experiment
    if folder is not None and not designed.short:
        place = Path(folder)
        files.refuse_existing(*(place / name for name in designed.files))
        files.write_folder(place, designed.files)
    short = f"cannot be decided within the budget: {designed.short}" if designed.short else ""
    note = short or ("" if folder is not None else "nothing is written; name a folder with -o DIR")
    return Answer(
        lambda: {**asdict(experiment), "chip_hours": experiment.chip_hours, "short": designed.short},
        lambda: experiment_page(experiment, folder or "DIR", hosts),
        1 if short else 0,
        (note,) if note else (),
    )


def _follow_experiment(session: Session, folder: Path) -> Answer:
    from receipts.plugins.study.experiment import read_experiment
    from receipts.plugins.study.pages import progress_page
    from receipts.plugins.study.progress import progress_of

    experiment = read_experiment(folder)
    progress = progress_of(session.store, session.rulebook, experiment)
    data = {
        "status": progress.status,
        "answers": [asdict(item) for item in progress.answers],
        "next": list(progress.next_runs),
    }
    return Answer(data, lambda: progress_page(progress, str(folder)), progress.exit_code)


def _budget(text: str | None) -> float | None:
    """Chip-hours, as `2000chip-h`. Raises UsageError."""
    if text is None:
        return None
    number = re.fullmatch(r"\s*([\d,]*\.?\d+)\s*(chip-?h(ours?)?)?\s*", text)
    if number is None:
        raise UsageError(f"--budget {text}: write chip-hours, such as 2000chip-h")
    return float(number[1].replace(",", ""))


def _share(option: str, text: str | None) -> float | None:
    """A share, as `2%` or 0.02, above 0 and below 1. Raises UsageError."""
    if text is None:
        return None
    value = share(text)
    if value is None:
        raise UsageError(f"{option} {text}: write a share, such as 2%")
    return value
