"""``receipts attest``, ``bundle`` and ``key``: signed verdicts for strangers, and the keys whose signatures count."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.api.question import Metric
from receipts.base import files
from receipts.base.errors import NotFound, UsageError
from receipts.base.units import moment
from receipts.cli import output
from receipts.cli.asked import as_option
from receipts.cli.session import Answer, Session, group, is_file, parsed_file, verb
from receipts.publish.page import table_of

if TYPE_CHECKING:
    from receipts.plugins.trust.bundle import Answered


SIGN = click.option("--sign", "sign", required=True, metavar="KEY", help="The key, by its name or file.")


@verb("attest", json=False)
@click.argument("word", metavar="ID|CLAIM|REPORT|A")
@click.argument("other", metavar="[B]", required=False)
@as_option("metric", Metric, "tokens_per_second")
@click.option("--sign", "sign", metavar="KEY", help="The key, by its name or file.")
@click.option("--keyless", is_flag=True, help="Sign by the identity of this job, with sigstore.")
@click.option("--output", "-o", "output_", type=click.Path(path_type=Path), metavar="FILE", help="Write to a new file.")
def attest_command(
    session: Session, word: str, other: str | None, metric: str, sign: str | None, keyless: bool, output_: Path | None
) -> int:
    """Sign the verdict on a receipt, on a claim, on B compared with A, or the folder of a report.

    Examples:
      receipts attest 3f9c 81aa --sign ana
      receipts attest mtp-off --sign ana --output mtp-off.dsse.json
      receipts attest report/weekly --sign ana
      receipts attest 3f9c 81aa --keyless --output gain.sigstore.json

    The statement is in-toto's, in a DSSE envelope: its subjects are receipts by their SHA-256, its predicate has the
    digest of the rules, the answers and the findings. The verdict is given now; a report is signed as it was written,
    by the SHA-256 of its files. docs/signatures.md describes it.
    """
    from receipts.plugins.trust.bundle import signed_by_job, stated
    from receipts.signing.key import STATEMENT, read_private, signed

    if (sign is None) != keyless:
        raise UsageError("name a key with --sign, or sign by the identity of this job with --keyless")
    key = read_private(sign) if sign is not None else None
    answer = answered(session, word, other, metric)
    statement = stated(answer)
    content = signed(STATEMENT, statement, key).to_json() if key is not None else signed_by_job(statement)
    if output_ is None:
        output.line(content.rstrip("\n"))
    else:
        files.write(output_, content)
    output.note(
        f"{answer.kind}: {answer.status}, signed by {key.public.fingerprint if key is not None else 'this job'}"
    )
    return 0


@verb("attested")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--identity", required=True, metavar="NAME", help="Who signed: the URL of the workflow, or an address.")
@click.option("--issuer", required=True, metavar="URL", help="Who vouches for it.")
@click.option("--trusted-root", type=click.Path(path_type=Path), metavar="FILE", help="Sigstore's root; no network.")
def attested_command(_: Session, file: Path, identity: str, issuer: str, trusted_root: Path | None) -> Answer:
    """Check a statement that a job signed with attest --keyless, and print what it says.

    Examples:
      receipts attested gain.sigstore.json --issuer https://token.actions.githubusercontent.com \\
        --identity https://github.com/team/bench/.github/workflows/perf.yml@refs/heads/main

    Exit codes: 0 that identity signed it, 2 it did not, or the file is no such statement.
    """
    from receipts.plugins.trust.bundle import verified

    checked = verified(file, identity, issuer, trusted_root)
    names = ", ".join(f"{name} ({receipt[:12]})" for receipt, name in checked.receipts.items())
    return Answer(checked._asdict(), f"{checked.kind}: {checked.status}, on {names}; signed by {checked.identity}")


def answered(session: Session, word: str, other: str | None, metric: str) -> Answered:
    """The verdict on what one or two words name. Raises NotFound."""
    from receipts.plugins.trust.bundle import Answered, report

    if other is not None:
        from receipts.api.questions.compare import compare
        from receipts.cli.asked import read_files

        compared = compare(session, *([item] for item in read_files((word, other))), metric=metric)
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
@as_option("metric", Metric, "tokens_per_second")
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
    receipts/plugins/trust/verify.py; it needs Python and openssl, and nothing else of this project.
    """
    from receipts.plugins.trust.bundle import bundle
    from receipts.signing.key import read_private
    from receipts.workflows.checkpoints import published_checkpoints

    files.refuse_existing(target)
    key = read_private(sign)
    answer = answered(session, word, other, metric)
    checkpoints = [] if place is None else published_checkpoints(session.store, place)
    files.write(target, bundle(answer, session.store, session.rulebook, key, checkpoints))
    signer = key.public.fingerprint
    data = {"file": str(target), "kind": answer.kind, "status": answer.status, "signed_by": signer}
    return Answer(data, f"{target}: {answer.kind}, {answer.status}, signed by {signer}")


@verb("pointer")
@click.argument("bundle", metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--at", "place", metavar="PLACE", required=True, help="Where it is: a path, https://… or oci://HOST/NAME."
)
@click.option("--receipt", metavar="ID", help="Of a bundle of several, the receipt.")
@click.option("--key", metavar="FILE", help="The public key that must have signed it.")
@click.option("--output", "-o", "target", type=click.Path(path_type=Path), metavar="FILE", required=True)
def pointer(_: Session, bundle: Path, place: str, receipt: str | None, key: str | None, target: Path) -> Answer:
    """Write a pointer: a small file for git that names a receipt, the digest of its bundle, and where that is.

    Examples:
      receipts pointer gain.tar --at ../gain.tar --receipt 3f9c -o bench/gain.receipt.toml
      receipts pointer gain.tar --at oci://ghcr.io/team/bench:gain -o bench/gain.receipt.toml
      receipts verify bench/gain.receipt.toml

    Each command that takes a receipt's file takes FILE, whose name ends with .receipt.toml. A path is relative to FILE.
    """
    from receipts.plugins.trust.pointer import fetched, pointer_to
    from receipts.receipt.load import POINTER
    from receipts.signing.key import read_public_file

    if not target.name.endswith(POINTER):
        raise UsageError(f"--output {target}: the name of a pointer ends with {POINTER}")
    line = read_public_file(key).line if key is not None else None
    leads = pointer_to(fetched(str(bundle.absolute()), "", Path()), place, receipt, line)
    files.write(target, leads.text())
    return Answer(leads._asdict(), f"{target}: {leads.receipt[:12]} in {leads.bundle}")


@group("key")
def key_command() -> None:
    """Make keys, and say whose signatures the store trusts.

    Examples:
      receipts key new ana
      receipts key trust ana ~/.config/receipts/keys/ana.pub --lane nvidia-megatron --until 2027-06-30
      receipts key list
      receipts key revoke ana --reason "the laptop was lost"

    Keys are Ed25519, also those of ssh-keygen. docs/signatures.md explains what a signature shows.
    """


@verb("new", of=key_command)
@click.argument("name", metavar="NAME")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: ~/.config/receipts/keys/NAME"
)
def key_new(session: Session, name: str, out: Path | None) -> Answer:
    """Make a key pair, and print the fingerprint.

    Examples:
      receipts key new ana
      receipts key new ci --out secrets/ci

    The private key is written with mode 0600 and without a passphrase, the public key beside it in .pub.
    """
    from receipts.signing.key import key_folder, new_key

    target = out or key_folder() / name
    key = new_key(name, target)
    data = {"name": name, "fingerprint": key.public.fingerprint, "file": str(target)}
    note = f"let a store trust it with: receipts key trust {name} {target}.pub"
    return Answer(data, f"{key.public.fingerprint}  {target}", notes=(note,))


@verb("trust", of=key_command)
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE")
@click.option("--lane", "lanes", multiple=True, metavar="LANE", help="Only receipts of this lane; may be repeated.")
@click.option(
    "--until", metavar="DATE", help="The day on which it ends, or a moment with its offset.  [default: never]"
)
def key_trust(session: Session, name: str, file: str, lanes: tuple[str, ...], until: str | None) -> Answer:
    """Trust a public key: its signatures count. FILE is in OpenSSH's form or PEM.

    Examples:
      receipts key trust ana ana.pub
      receipts key trust ci ci.pub --lane nvidia-megatron --until 2027-06-30
    """
    from receipts.signing.key import read_public_file

    key = read_public_file(file)
    for lane in lanes:
        session.rulebook.lanes.get(lane)
    ends = moment("--until", until) if until is not None else None
    session.opened(create=True).signing.trust(name, key, lanes, ends)
    data = {"name": name, "fingerprint": key.fingerprint, "lanes": lanes, "ends": ends}
    return Answer(data, f"{name} is trusted: {key.fingerprint}")


@verb("list", of=key_command)
def key_list(session: Session) -> Answer:
    """List every key that was ever trusted, with its state.

    Examples:
      receipts key list
      receipts key list --json
    """
    keys = session.store.signing.every_key()
    now = datetime.now(UTC)
    rows = []
    for item in keys:
        ends = "never" if item.ends is None else f"{item.ends:%Y-%m-%d %H:%M}{' (ended)' * (item.ends <= now)}"
        state = "trusted" if item.revoked is None else f"revoked: {item.revoked}"
        rows.append((item.name, item.key.fingerprint, " ".join(item.lanes) or "all", ends, state))
    empty = "no keys; receipts key trust NAME FILE.pub"
    listed = table_of("", "name | fingerprint | lanes | ends, UTC | state", rows, empty=empty)
    data = [{**item._asdict(), "key": item.key.line, "fingerprint": item.key.fingerprint} for item in keys]
    return Answer(data, listed)


@verb("revoke", of=key_command)
@click.argument("name", metavar="NAME|FINGERPRINT")
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept in the store.")
def key_revoke(session: Session, name: str, reason: str) -> Answer:
    """Revoke a key: from now on, what it signs does not count.

    Examples:
      receipts key revoke ana --reason "the laptop was lost"

    Receipts that it signed before keep their signer, and show that the key was revoked since. The key cannot come back.
    """
    if not reason.strip():
        raise UsageError('--reason "…": say why the key no longer counts')
    key = session.store.signing.revoke(name, reason)
    data = {"name": key.name, "fingerprint": key.key.fingerprint, "reason": reason}
    return Answer(data, f"{key.name} is revoked: {key.key.fingerprint}")
