"""``receipts bundle``: a verdict with all that a stranger checks it by."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base import files
from receipts.cli import output
from receipts.cli.attest import METRIC, SIGN, answered
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts bundle 3f9c 81aa --sign ana --output gain.tar
  receipts bundle mtp-off --sign ana --output mtp-off.tar
  receipts bundle report/weekly --sign ana --output week.tar --checkpoints checkpoints.txt

Whoever has it checks it with: python verify.py gain.tar ana.pub
verify.py is one file, receipts/signing/verify.py, that needs Python and openssl and nothing of this project."""


@click.command("bundle", epilog=EPILOG)
@click.argument("word", metavar="ID|CLAIM|REPORT|A")
@click.argument("other", metavar="[B]", required=False)
@METRIC
@SIGN
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), metavar="FILE", required=True)
@click.option(
    "--checkpoints",
    "place",
    metavar="PLACE",
    help="Prove that the log continues these checkpoints, of audit --publish.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_session
def command(
    session: Session,
    word: str,
    other: str | None,
    metric: str,
    sign: str,
    target: Path,
    place: str | None,
    as_json: bool,
) -> int:
    """Pack a verdict, its receipts, their evidence, signatures and proofs, and the rules into one signed tar."""
    from receipts.signing.private import read_private
    from receipts.workflows.bundle import bundle
    from receipts.workflows.checkpoints import published

    files.refuse_existing(target)
    key = read_private(sign)
    answer = answered(session, word, other, metric)
    with session.open_store() as store:
        checkpoints = [] if place is None else published(store, place)
        content = bundle(answer, store, session.rulebook, key, checkpoints)
    files.write(target, content)
    signer = key.public.fingerprint
    data = {"file": str(target), "kind": answer.kind, "status": answer.status, "signed_by": signer}
    output.answer(as_json, data, f"{target}: {answer.kind}, {answer.status}, signed by {signer}")
    return 0
