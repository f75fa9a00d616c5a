"""``receipts claim``: sentences about performance, and whether their receipts carry them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Answer, Session, group, verb, worst

if TYPE_CHECKING:
    from receipts.judging.claim import ClaimFile
    from receipts.judging.verdict import ClaimVerdict
    from receipts.store import Store

NO_CLAIMS = "no claims; add some: receipts claim add FILE"


@group("claim")
def command() -> None:
    """Check published claims about performance against their receipts.

    Examples:
      receipts claim check claims.toml
      receipts claim add claims.toml
      receipts claim check --all
      receipts claim footnote mtp-off

    A claim is supported, refuted, unproven, or stale. docs/claims.md describes the format of a claims.toml.
    Exit codes: 0 supported, 1 refuted, 2 wrong call or input, 3 unproven or stale.
    """


@verb("check", of=command)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--all", "every", is_flag=True, help="Check every claim in the store that is in force.")
@click.option("--only", multiple=True, metavar="ID", help="Check only this claim; may be repeated.")
@click.option("--no-replicates", is_flag=True, help="Do not look for replicates in the store.")
@click.option("--record", is_flag=True, help="Store the verdicts.")
def check(
    session: Session, files: tuple[str, ...], every: bool, only: tuple[str, ...], no_replicates: bool, record: bool
) -> Answer:
    """Check the claims of files, or with --all those of the store.

    Examples:
      receipts claim check claims.toml
      receipts claim check --all --record
      receipts claim check claims.toml --only mtp-off --json

    Exit codes: 0 all are supported, 1 some are refuted, 2 wrong call or input, 3 some are unproven or stale.
    """
    if bool(files) is every:
        raise UsageError("name claims.toml files, or --all for the claims of the store")
    if session.team is not None:
        options = {"--all": every, "--only": only, "--no-replicates": no_replicates, "--record": record}
        session.team.refuse(options)
        return session.team.claims(files, add=False)
    groups, store = _claims(session, files, every=every, record=record)
    verdicts = _judged(session, groups, store, only, replicates=not no_replicates)
    if record and store is not None:
        store.published.record_claims(verdicts)
    missing = sorted(set(only) - {item.claim for item in verdicts})
    if missing:
        raise UsageError(f"--only {missing[0]}: there is no such claim here")
    return _answer(verdicts, worst(item.status for item in verdicts))


def _claims(
    session: Session, files: tuple[str, ...], *, every: bool, record: bool = False
) -> tuple[list[ClaimFile], Store | None]:
    """The claims that were asked for, and the store where it is needed: some word of a claim is no file."""
    from receipts.judging.claim import read_claims_file
    from receipts.questions.claims.judgment import is_file, stored

    groups = [read_claims_file(file) for file in files]
    words = [word for group in groups for claim in group.claims for word in (*claim.baseline, *claim.candidate)]
    if not every and not record and all(is_file(word) for word in words):
        return groups, None
    return [stored(session.store)] if every else groups, session.store


def _judged(
    session: Session,
    groups: Iterable[ClaimFile],
    store: Store | None,
    only: Collection[str] = (),
    *,
    replicates: bool = True,
) -> list[ClaimVerdict]:
    """The verdicts on the claims of files: on all, or on those of some names."""
    from receipts.questions.claims.judgment import verdict_on

    return [
        verdict_on(claim, session.rulebook, store, group.folder, replicates=replicates)
        for group in groups
        for claim in group.claims
        if not only or claim.id in only
    ]


def _answer(verdicts: list[ClaimVerdict], code: int, notes: tuple[str, ...] = ()) -> Answer:
    from receipts.judging.verdict import verdict_to_json
    from receipts.publish.claim import together

    return Answer(lambda: [verdict_to_json(item) for item in verdicts], lambda: together(verdicts), code, notes)


@verb("add", of=command)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
def add(session: Session, files: tuple[str, ...]) -> Answer:
    """Add the claims of files to the store, with a first verdict on each. A claim is never edited afterward.

    Examples:
      receipts claim add claims.toml
      receipts claim add claims.toml --json

    Each claim is judged when it is added, and the receipts that support it are stored with the verdict. Exit codes: 0
    added, 2 wrong call or input; the verdicts are printed and do not change the code.
    """
    from receipts.judging.claim import read_claims_file
    from receipts.questions.claims.stored import new_claims

    if session.team is not None:
        return session.team.claims(files, add=True)
    groups = [read_claims_file(file) for file in files]
    new = [item for group in groups for item in new_claims(group)]
    store = session.store
    added = set(store.published.add_claims(new))
    verdicts = _judged(session, groups, store, added) if added else []
    store.published.record_claims(verdicts)
    known = len(new) - len(added)
    note = f"{known} of them {'were' if known > 1 else 'was'} in the store already"
    return _answer(verdicts, 0, (note,) if known else ())


@verb("list", of=command)
@click.option(
    "--status", type=click.Choice(["supported", "refuted", "unproven", "stale"]), help="Only claims with this verdict."
)
@click.option("--everything", is_flag=True, help="Also list superseded and withdrawn claims.")
def list_(session: Session, status: str | None, everything: bool) -> Answer:
    """List the store's claims with their current verdicts.

    Examples:
      receipts claim list
      receipts claim list --status stale
      receipts claim list --everything --json
    """
    from receipts.api.lists import claims_as_data, judged_claims
    from receipts.publish.page import table_of

    if session.team is not None:
        return session.team.claim_list(status, everything=everything)
    rows = judged_claims(session.store, session.rulebook, status=status, superseded=everything)
    cells = (
        (claim.id, claim.kind, "superseded" if gone else verdict.status, claim.text) for claim, verdict, gone in rows
    )
    listed = table_of("", "claim | kind | status | says", cells, empty=NO_CLAIMS)
    return Answer(lambda: claims_as_data(rows), listed)


@verb("show", of=command)
@click.argument("claim_id", metavar="ID")
def show(session: Session, claim_id: str) -> Answer:
    """Show one claim: its current and earlier verdicts, and the decisions about its receipts.

    Examples:
      receipts claim show mtp-off
      receipts claim show mtp-off --json
    """
    from receipts.publish.claim import history as page
    from receipts.questions.claims.stored import history

    past = history(session.store, claim_id, session.rulebook)
    return Answer(past.document, lambda: page(past), past.verdict.exit_code)


@verb("supersede", of=command)
@click.argument("claim_id", metavar="ID")
@click.option("--by", "successor", metavar="ID", help="The claim that replaces it; without it the claim is withdrawn.")
@click.option("--reason", required=True, help="Why it is replaced or withdrawn.")
def supersede(session: Session, claim_id: str, successor: str | None, reason: str) -> Answer:
    """Replace or withdraw a claim. It stays in the store, with the reason.

    Examples:
      receipts claim supersede mtp-off --by mtp-off-2 --reason "measured again with five launches"
      receipts claim supersede mtp-off --reason "the run was another's"   (withdrawn)
    """
    session.store.published.supersede_claim(claim_id, successor, reason)
    how = f"superseded by {successor}" if successor else "withdrawn"
    data = {"claim": claim_id, "successor": successor, "reason": reason}
    return Answer(data, f"{claim_id} is {how}: {reason}")


@verb("pending", of=command)
@click.argument("files", nargs=-1, metavar="[FILE]...")
def pending(session: Session, files: tuple[str, ...]) -> Answer:
    """List the wins that wait for their retest at the target shape: those of the store, or of files.

    Examples:
      receipts claim pending
      receipts claim pending claims.toml --json

    A win that was measured at a small shape is listed until both sides have run at the target.
    """
    from receipts.publish.page import table_of
    from receipts.questions.claims.judgment import waits

    verdicts = _judged(session, *_claims(session, files, every=not files))
    rules = session.rulebook.rules
    waiting = [item for item in verdicts if waits(item, rules) and item.at_target is False]
    data = [{"claim": item.claim, "text": item.text, "target": item.target} for item in waiting]
    cells = ((item.claim, item.target or "", item.text) for item in waiting)
    shown = table_of("", "claim | to be shown at | says", cells, empty="no win waits for its retest")
    return Answer(data, shown)


@verb("footnote", of=command)
@click.argument("claim_id", metavar="ID")
@click.option("--file", "file", metavar="FILE", help="Read the claim from this claims.toml, not from the store.")
def footnote(session: Session, claim_id: str, file: str | None) -> Answer:
    """Write the footnote of a claim: differences, waivers, sample sizes, interval, rule set.

    Examples:
      receipts claim footnote mtp-off
      receipts claim footnote mtp-off --file claims.toml
    """
    from receipts.base.errors import NotFound
    from receipts.judging.verdict import verdict_to_json
    from receipts.questions.claims.wording import footnote as written

    groups, store = _claims(session, (file,) if file else (), every=file is None)
    verdict = next(iter(_judged(session, groups, store, [claim_id])), None)
    if verdict is None:
        raise NotFound(f"there is no current claim {claim_id!r}; see: receipts claim list --everything")
    decided = store.published.decisions([*verdict.baseline, *verdict.candidate]) if store is not None else []
    text = written(verdict, decided)
    return Answer(lambda: {"footnote": text, "verdict": verdict_to_json(verdict)}, text.rstrip("\n"), verdict.exit_code)
