"""The verbs of studies that are not questions.

``receipts plan``: which launches to run next, and what they say. ``receipts bisect-wheels``: the walk over groups of
wheels, run here or printed for elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from receipts.api.question import Metric
from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.asked import as_option
from receipts.cli.session import Answer, Session, verb
from receipts.plugins.study.wheels import LOCAL, OUTCOMES, PYTHON
from receipts.questions.gate import share

if TYPE_CHECKING:
    from receipts.plugins.study.bisection import Explanation, Outcome
    from receipts.plugins.study.experiment import Designed
    from receipts.plugins.study.wheels import WheelWalk


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
@as_option("metric", Metric, "tokens_per_second")
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
    from receipts.plugins.study.experiment import design, read_claims, read_screen

    hours, least, spread = _budget(budget), _share("--effect", effect), _share("--sigma", sigma)
    store = session.store
    if claims is not None:
        wanted = read_claims(Path(claims), store, session.rulebook)
        if not wanted.contrasts:
            return Answer({"runs": []}, "every claim on an effect is decided; nothing is to be run")
    else:
        wanted = read_screen(Path(str(screen)), store)
    designed = design(store, session.rulebook, wanted, metric=metric, budget=hours, effect=least, sigma=spread)
    return _planned(designed, folder, hosts)


def _planned(designed: Designed, folder: str | None, hosts: tuple[str, ...]) -> Answer:
    from receipts.base import files
    from receipts.plugins.study.progress import experiment_page

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
    from receipts.plugins.study.progress import progress_of, progress_page

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


@verb("bisect-wheels")
@click.argument("good", metavar="GOOD")
@click.argument("bad", metavar="BAD")
@click.option("--dir", "folder", default="bisect-wheels", show_default=True, metavar="DIR", help="Outcomes are here.")
@click.option("--executor", default=LOCAL, show_default=True, help="venv, docker, pyxis, sbatch or jobset.")
@click.option("--image", metavar="IMAGE", help="The image of the good side, for every executor but venv.")
@click.option("--python", "python", default=PYTHON, metavar="FILE", help="The Python under the venvs.  [default: this]")
@click.option("--print", "printed", is_flag=True, help="Print the next command, and run nothing.")
@click.option("--was", type=click.Choice(OUTCOMES), help="The outcome of the command that was printed last.")
@click.option(
    "--tries", type=click.IntRange(1), default=3, show_default=True, help="Launches of one that is not clear."
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND…")
def bisect_wheels(
    session: Session,
    good: str,
    bad: str,
    folder: str,
    executor: str,
    image: str | None,
    python: str,
    printed: bool,
    was: str | None,
    tries: int,
    words: tuple[str, ...],
) -> Answer:
    """Find the smallest set of changed wheels with which COMMAND becomes bad.

    GOOD and BAD are receipts (files, ids, labels) or files of `pip freeze`. COMMAND says what a configuration is by its
    exit code: 0 good, 1 bad, 3 or 125 not enough to say, anything else that it does not run: that of `receipts compare
    --require` will do.

    Examples:
      receipts bisect-wheels good.txt bad.txt -- ./bench.sh
      receipts bisect-wheels @golden 81aa --executor docker --image ghcr.io/lab/train:41 -- ./bench.sh
      receipts bisect-wheels good.txt bad.txt --executor pyxis --image lab:41 --print -- ./bench.sh
      receipts bisect-wheels good.txt bad.txt --print --was bad -- ./bench.sh

    Wheels that move together (torch and triton; jax, jaxlib and libtpu) are one; builders, linters and notebooks are
    left out. Two that are bad only together are named together. More: docs/bisect.md. Exit codes: 0 explained, 2 wrong
    call, or the ends are not good and bad, 3 the next step is to run.
    """
    from receipts.plugins.study.wheels import WheelWalk, checked_executor, grouped

    if not words:
        raise UsageError("name the command that says good or bad after --: receipts bisect-wheels A B -- ./bench.sh")
    checked_executor(executor, image)
    groups, idle = grouped(*(_wheels(session, word) for word in (good, bad)))
    if not groups:
        why = f"they differ in what no step runs: {', '.join(idle)}" if idle else "the two have the same wheels"
        raise UsageError(f"{why}; the change has another cause: receipts bisect")
    walk = WheelWalk(Path(folder), groups)
    left = f"left out, since no step runs them: {', '.join(idle)}" if idle else ""
    output.note(f"{counted(len(groups), 'group')} of wheels differ{'; ' if left else ''}{left}")

    def ask(number: int) -> Outcome:
        if printed:
            return "unknown"
        moved = ", ".join(walk.named(number)) or "nothing, the good side"
        for _ in range(tries):
            output.note(f"step {len(walk.outcomes) + 1}: {moved}")
            outcome = walk.run(number, words, executor, image or "", python)
            output.note(f"  {outcome}")
            if outcome != "unknown":
                break
        return outcome

    if was is not None:
        waiting = walk.explain(lambda _: "unknown").waiting
        if waiting is None:
            raise UsageError(f"--was {was}: no step is waiting; leave --was out")
        walk.record(waiting, cast("Outcome", was))
    explained = walk.explain(ask)
    return _answered(walk, explained, idle, words, executor, image or "")


def _wheels(session: Session, word: str) -> dict[str, str]:
    """The wheels that a receipt states, or a file pins."""
    from receipts.cli.asked import read_files
    from receipts.plugins.study.wheels import normal, pins

    path = Path(word)
    if path.is_file() and not path.read_bytes()[:64].lstrip().startswith(b"{"):
        return pins(path.read_text("utf-8", errors="replace"), word)
    parsed = session.groups(read_files((word,)))[0][0]
    stated = parsed.receipt.wheels or {}
    wheels = {normal(name): str(getattr(wheel, "version", wheel)) for name, wheel in stated.items()}
    if not wheels:
        raise UsageError(f"{word}: it states no wheels; name a file of: pip freeze")
    return wheels


def _answered(
    walk: WheelWalk, explained: Explanation, idle: list[str], words: tuple[str, ...], executor: str, image: str
) -> Answer:
    from receipts.plugins.study.wheels import launch_line, script

    causes = [walk.named(number) for number in explained.sets]
    data: dict[str, Any] = {
        "groups": [{"name": group.name, "wheels": dict(group.wheels)} for group in walk.groups],
        "idle": idle,
        "sets": causes,
        "inseparable": [walk.named(number) for number in explained.inseparable],
        "outcomes": [{"moved": walk.named(key), "outcome": value} for key, value in walk.outcomes.items()],
        "next": None,
    }
    if explained.waiting is None:
        sentences = [f"{' and '.join(item)}{', only together' if len(item) > 1 else ''}" for item in causes]
        steps = counted(len(walk.outcomes), "configuration")
        return Answer(data, lambda: f"bad by {'; and by '.join(sentences)}\n{steps} launched, {walk.folder}")
    text = script(walk.groups, explained.waiting, words, every=executor == LOCAL)
    line = text if executor == LOCAL else launch_line(executor, image, walk.name(explained.waiting), text)
    data["next"] = line
    moved = ", ".join(walk.named(explained.waiting)) or "nothing: the good side"
    again = "then: the same command with --was good, bad or fails"
    return Answer(data, lambda: f"next, with {moved}:\n{line}\n{again}", 3)
