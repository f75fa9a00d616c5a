"""``judge`` and ``campaign``: what the stored launches of a trial, and of a series of them, say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from receipts.api.question import WORD, Param, question
from receipts.api.questions.compare import Recorded

if TYPE_CHECKING:
    from receipts.api.answer import Answer
    from receipts.api.session import Session


@question("judge", costly=True, verb=False)
def judge(
    session: Session,
    trial: Annotated[str, Param(WORD, "The trial: CAMPAIGN/NUMBER, or the beginning of it")],
    *,
    record: Recorded = False,
) -> Answer:
    """Judge the stored launches of a trial: keep the change, discard it, or run so many turns more.

    No process is started: receipts judge BASE -- CMD does that, where the work tree is.

    Exit codes: 0 keep, 1 discard, 2 wrong call or input, 3 not enough to say: more turns.
    """
    from receipts.api.answer import Answer
    from receipts.plugins.judge.campaign import level_of, trial_page
    from receipts.plugins.judge.outcome import outcome_of
    from receipts.plugins.judge.trial import WORD as BEGINNING
    from receipts.plugins.judge.trial import decision
    from receipts.plugins.judge.trial import trial as trial_of

    named = trial_of(session.store, trial)
    outcome = outcome_of(named, session.rulebook, level_of(session.store, named))
    # A decision is written down once: what a campaign has spent does not change.
    if record and outcome.answer != "again" and decision(named) is None:
        launches = named.side("candidate") or named.launches
        gain = f"{outcome.quantity.title} {outcome.better}"
        reason = f"{BEGINNING}{named.name} {outcome.answer}: {gain}; {outcome.why}"
        session.store.published.decide(launches[0].id, "ship" if outcome.answer == "keep" else "drop", reason)
    return Answer(outcome.as_data, lambda: trial_page(outcome), outcome.exit_code, outcome.notes)


@question("campaign", costly=True, forms=("csv",))
def campaign(session: Session, name: Annotated[str, Param(WORD, "The campaign", metavar="NAME")]) -> Answer:
    """Show a campaign: what was tried and kept, what survives a re-run, and what the kept changes add up to.

    Examples:
      receipts campaign faster-8b
      receipts judge 3f9c2d1 --campaign faster-8b -- python train.py        (the next trial)
      receipts judge 3f9c2d1 --campaign faster-8b --afresh -- python train.py  (a re-run of one)

    At most 5 % of the kept changes are expected to be false, after any number of trials (LORD++). More: docs/judge.md.
    Exit codes: 0 what was kept survives its re-run, 1 some of it does not, 2 wrong call or input, 3 something was not
    run again yet.
    """
    from receipts.api.answer import Answer
    from receipts.plugins.judge.campaign import campaign_of, campaign_page

    seen = campaign_of(session.store, session.rulebook, name)
    data = seen.as_data()
    return Answer(data, lambda: campaign_page(seen), seen.exit_code, rows=data["trials"])
