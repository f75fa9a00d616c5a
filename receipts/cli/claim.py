"""``receipts claim``: sentences about performance, and whether their receipts carry them."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.api.questions.claims import (
    NO_CLAIMS,
    claim_check,
    claim_footnote,
    claim_pending,
    claim_show,
    claims,
    judged,
    together,
)
from receipts.base.errors import UsageError
from receipts.cli.asked import command as command_of
from receipts.cli.session import Answer, Session, group, verb


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


for asked in (claim_check, claims, claim_show, claim_pending, claim_footnote):
    command.add_command(command_of(asked))


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
    from receipts.base.files import read_small
    from receipts.judging.claim import read_claims_file
    from receipts.publish.page import table_of
    from receipts.questions.claims.stored import new_claims

    if session.server is not None:
        answered = []
        for file in files:
            try:
                raw = read_small(Path(file))
            except OSError as error:
                raise UsageError(f"{file} cannot be read: {error.strerror}") from None
            answered += session.server.ask("POST", "/v1/claims", body=raw, media="application/toml").data
        rows = [(item["claim"], item["status"], item["text"]) for item in answered]
        return Answer(answered, table_of("", "claim | status | says", rows, empty=NO_CLAIMS))
    groups = [read_claims_file(file) for file in files]
    new = [item for group in groups for item in new_claims(group)]
    store = session.store
    added = set(store.published.add_claims(new))
    verdicts = judged(session, groups, store, added) if added else []
    store.published.record_claims(verdicts)
    known = len(new) - len(added)
    note = f"{known} of them {'were' if known > 1 else 'was'} in the store already"
    return together(verdicts, 0, (note,) if known else ())


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
