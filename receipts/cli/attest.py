"""``receipts attest`` and ``bundle``: a verdict as a signed statement, and with all that a stranger checks it by."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base import files
from receipts.base.errors import NotFound
from receipts.cli import output
from receipts.cli.session import Session, is_file, parsed_file
from receipts.cli.sides import METRIC, ComparisonOptions, gather
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.workflows.bundle import Answered

SIGN = click.option("--sign", "sign", required=True, metavar="KEY", help="The key, by its name or file.")


@verb("attest", json=False)
@click.argument("word", metavar="ID|CLAIM|REPORT|A")
@click.argument("other", metavar="[B]", required=False)
@METRIC
@SIGN
@click.option("--output", "-o", "output_", type=click.Path(path_type=Path), metavar="FILE", help="Write to a new file.")
def command(session: Session, word: str, other: str | None, metric: str, sign: str, output_: Path | None) -> int:
    """Sign the verdict on a receipt, on a claim, on B compared with A, or the folder of a report.

    Examples:
      receipts attest 3f9c 81aa --sign ana
      receipts attest mtp-off --sign ana --output mtp-off.dsse.json
      receipts attest report/weekly --sign ana

    The statement is in-toto's, in a DSSE envelope: its subjects are receipts by their SHA-256, its predicate has the
    digest of the rules, the answers and the findings. The verdict is given now; a report is signed as it was written,
    by the SHA-256 of its files. docs/signatures.md describes it.
    """
    from receipts.signing.private import read_private
    from receipts.workflows.bundle import attested

    key = read_private(sign)
    answer = answered(session, word, other, metric)
    content = attested(answer, key).to_json()
    if output_ is None:
        output.line(content.rstrip("\n"))
    else:
        files.write(output_, content)
    output.note(f"{answer.kind}: {answer.status}, signed by {key.public.fingerprint}")
    return 0


def answered(session: Session, word: str, other: str | None, metric: str) -> Answered:
    """The verdict on what one or two words name. Raises NotFound."""
    from receipts.workflows.bundle import Answered, report

    if other is not None:
        sides = ((word,), (other,))
        options = ComparisonOptions(sides, metric=metric, waive=(), study=None, witness=())
        compared = gather(session, options, stored=not options.all_files)
        return Answered.of("comparison", compared.verdict, [*compared.sides.a, *compared.sides.b])
    if Path(word).is_dir():
        return report(Path(word), session.store, session.rulebook.rules.digest)
    from receipts.api.receipt import Receipt

    if is_file(word):
        parsed = parsed_file(word)
        return Answered.of("receipt", Receipt(parsed, session.rulebook).verdict, [parsed])
    from receipts.questions.claims.stored import history

    store = session.opened(looked_up=[word])
    try:
        verdict = history(store, word, session.rulebook).verdict
    except NotFound:
        parsed = store.get(word)
        facts = store.query.facts(parsed)
        return Answered.of("receipt", Receipt(parsed, session.rulebook, facts).verdict, [parsed])
    return Answered.of("claim", verdict, [store.parsed(item) for item in (*verdict.baseline, *verdict.candidate)])


@verb("bundle")
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
def bundle(
    session: Session, word: str, other: str | None, metric: str, sign: str, target: Path, place: str | None
) -> Answer:
    """Pack a verdict, its receipts, their evidence, signatures and proofs, and the rules into one signed tar.

    Examples:
      receipts bundle 3f9c 81aa --sign ana --output gain.tar
      receipts bundle mtp-off --sign ana --output mtp-off.tar
      receipts bundle report/weekly --sign ana --output week.tar --checkpoints checkpoints.txt

    Whoever has the bundle checks it with ``python verify.py gain.tar ana.pub``. verify.py is one file,
    receipts/signing/verify.py; it needs Python and openssl, and nothing else of this project.
    """
    from receipts.signing.private import read_private
    from receipts.workflows.bundle import bundle
    from receipts.workflows.checkpoints import published

    files.refuse_existing(target)
    key = read_private(sign)
    answer = answered(session, word, other, metric)
    checkpoints = [] if place is None else published(session.store, place)
    files.write(target, bundle(answer, session.store, session.rulebook, key, checkpoints))
    signer = key.public.fingerprint
    data = {"file": str(target), "kind": answer.kind, "status": answer.status, "signed_by": signer}
    return Answer(data, f"{target}: {answer.kind}, {answer.status}, signed by {signer}")
