"""The pages of an experiment: its plan, and what it says after a look."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.publish.page import Code, Page, Section, lines_of, points_of, sections_of, table_of
from receipts.publish.readings import ends, signed
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.questions.experiment.experiment import Experiment
    from receipts.questions.experiment.progress import ExperimentProgress

say = words("plan")


def page(experiment: Experiment, folder: str, hosts: Sequence[str] = ()) -> Page:
    """The plan of an experiment."""
    looks = experiment.looks
    hours = experiment.chip_hours
    cost = say("cost", hours=hours) if hours is not None else say("no_cost")
    df = say("df", df=experiment.sigma_df) if experiment.sigma_df is not None else ""
    count = len(experiment.contrasts)
    sentences = [
        say("power", effect=experiment.effect, power=looks.power, median=looks.median, fixed=looks.fixed),
        say("sigma", sigma=experiment.sigma, df=df, of=experiment.sigma_of),
        say(
            "looks",
            launches=", ".join(map(str, looks.launches)),
            confidences=", ".join(f"{100.0 * item:.2f}" for item in looks.confidences),
            alpha=experiment.alpha,
            holm=say("holm", n=count) if count > 1 else "",
        ),
        say("order", folder=folder),
    ]
    if hosts:
        sentences.append(say("hosts", hosts=", ".join(hosts)))
    rows = (
        (
            arm.name,
            str(len(arm.receipts)),
            str(sum(name == arm.name for _, name, _ in experiment.runs)),
            f"{arm.chip_hours:,.2f}" if arm.chip_hours is not None else "~",
            ", ".join(f"{path} {value}" for path, value in arm.changes.items()) or "as stored",
        )
        for arm in experiment.arms
    )
    table = table_of("", "arm | #stored | #to run | #chip-hours each ^2 | changes… ^1", rows)
    sections = sections_of(
        Section("arms", say("arms"), tuple(sentences), tables=(table,)),
        Section("left-out", say("left_out"), points=points_of(experiment.left_out)),
    )
    headline = say("headline", runs=len(experiment.runs), arms=len(experiment.arms), most=looks.most, cost=cost)
    return Page(say("title", id=experiment.id), headline=(headline,), sections=sections)


def progress_page(progress: ExperimentProgress, folder: str) -> Page:
    """What an experiment says now, and what to run next."""
    from receipts.questions.experiment.progress import DECIDED

    rows = (
        (
            item.contrast.name,
            item.answer,
            f"{item.n_a} + {item.n_b}",
            signed(item.ratio),
            ends(item.low, item.high),
            item.why,
        )
        for item in progress.answers
    )
    table = table_of("", "question | answer | #launches ^2 | #change | interval ^1 | look… ^3", rows)
    sections = sections_of(
        Section("answers", say("answers"), tables=(table,)),
        Section("runs", say("runs"), points=lines_of(Code(f"{folder}/{name}") for name in progress.next_runs)),
    )
    decided = sum(item.answer in DECIDED for item in progress.answers)
    headline = say("next_headline", status=progress.status, decided=decided, n=len(progress.answers))
    return Page(say("title", id=progress.experiment.id), headline=(headline,), sections=sections)
