"""``receipts plan``: which launches to run next, and what they say."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.api.question import Metric
from receipts.base.errors import UsageError
from receipts.cli.asked import as_option
from receipts.cli.session import Answer, Session, verb
from receipts.questions.gate import share

if TYPE_CHECKING:
    from receipts.plugins.study.experiment import Designed


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
