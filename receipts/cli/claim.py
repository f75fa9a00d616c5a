"""``receipts claim``: sentences about performance, and whether their receipts carry them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.errors import UsageError

if TYPE_CHECKING:
    from receipts.claims import Claim, ClaimFile
    from receipts.store import Store
    from receipts.verdict import ClaimVerdict

EPILOG = """\b
Examples:
  receipts claim check claims.toml
  receipts claim add claims.toml
  receipts claim check --all
  receipts claim footnote mtp-off

A claim is supported, refuted, unproven, or stale. docs/claims.md says how a claims.toml is written.
Exit codes: 0 supported, 1 refuted, 2 wrong call or input, 3 unproven or stale."""


@click.group("claim", epilog=EPILOG)
def command() -> None:
    """Say of published sentences whether receipts carry them."""


CHECK_EPILOG = """\b
Examples:
  receipts claim check claims.toml
  receipts claim check --all --record
  receipts claim check claims.toml --only mtp-off --json

Exit codes: 0 all are supported, 1 some are refuted, 2 wrong call or input, 3 some are unproven or stale."""


@command.command("check", epilog=CHECK_EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--all", "every", is_flag=True, help="Check every claim in the store that stands.")
@click.option("--only", multiple=True, metavar="ID", help="Check this claim alone; may be given again.")
@click.option("--no-replicates", is_flag=True, help="Do not look for replicates in the store.")
@click.option("--record", is_flag=True, help="Keep the verdicts in the store.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@pass_session
def check(
    session: Session,
    files: tuple[str, ...],
    every: bool,
    only: tuple[str, ...],
    no_replicates: bool,
    record: bool,
    as_json: bool,
) -> int:
    """Check the claims of files, or with --all those of the store."""
    if bool(files) == every:
        raise UsageError("name claims.toml files, or --all for the claims of the store")
    verdicts = []
    with _claims(session, files, every=every, record=record) as (groups, store):
        for group in groups:
            for claim in group.claims:
                if not only or claim.id in only:
                    verdicts.append(_judge(session, claim, group, store, replicates=not no_replicates))
        if record and store is not None:
            for verdict in verdicts:
                store.record_claim(verdict)
    missing = sorted(set(only) - {item.claim for item in verdicts})
    if missing:
        raise UsageError(f"--only {missing[0]}: there is no such claim here")
    _print(verdicts, as_json)
    return exit_code(verdicts)


def exit_code(verdicts: list[ClaimVerdict]) -> int:
    """1 where some claim is refuted, else 3 where some is unproven or stale, else 0."""
    codes = {item.exit_code for item in verdicts}
    return 1 if 1 in codes else 3 if 3 in codes else 0


@contextmanager
def _claims(
    session: Session, files: tuple[str, ...], *, every: bool, record: bool = False
) -> Iterator[tuple[list[ClaimFile], Store | None]]:
    """The claims that were asked for, and the store where it is needed: some word of a claim is no file."""
    from receipts.claims import read
    from receipts.claims.gather import is_file

    groups = [read(file) for file in files]
    words = [word for group in groups for claim in group.claims for word in (*claim.baseline, *claim.candidate)]
    if not every and not record and all(is_file(word) for word in words):
        yield groups, None
        return
    with session.open_store() as store:
        if every:
            groups = [stored_claims(store)]
        yield groups, store


def stored_claims(store: Store) -> ClaimFile:
    """The store's claims that stand, as a group. Words that name files are read from where the call is made."""
    from pathlib import Path

    from receipts.claims import ClaimFile

    return ClaimFile(store.url, Path(), tuple(item.claim for item in store.claims()))


def _judge(
    session: Session, claim: Claim, group: ClaimFile, store: Store | None, *, replicates: bool = True
) -> ClaimVerdict:
    from receipts.claims import judge
    from receipts.claims.gather import gather

    evidence = gather(claim, session.rulebook, store, group.folder, replicates=replicates)
    return judge(claim, evidence, session.rulebook)


def _print(verdicts: list[ClaimVerdict], as_json: bool) -> None:
    if as_json:
        from receipts.verdict import to_json

        output.as_json([to_json(item) for item in verdicts])
    else:
        from receipts.cli.claim_text import print_verdicts

        print_verdicts(verdicts)
