"""``receipts key``: whose signatures count."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from receipts.base.errors import UsageError
from receipts.base.units import moment
from receipts.cli.session import Session
from receipts.cli.verb import Answer, group, verb
from receipts.publish.page import table_of


@group("key")
def command() -> None:
    """Make keys, and say whose signatures the store trusts.

    Examples:
      receipts key new ana
      receipts key trust ana ~/.config/receipts/keys/ana.pub --lane nvidia-megatron --until 2027-06-30
      receipts key list
      receipts key revoke ana --reason "the laptop was lost"

    Keys are Ed25519, also those of ssh-keygen. docs/signatures.md explains what a signature shows.
    """


@verb("new", of=command)
@click.argument("name", metavar="NAME")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: ~/.config/receipts/keys/NAME"
)
def new(session: Session, name: str, out: Path | None) -> Answer:
    """Make a key pair, and print the fingerprint.

    Examples:
      receipts key new ana
      receipts key new ci --out secrets/ci

    The private key is written with mode 0600 and without a passphrase, the public key beside it in .pub.
    """
    from receipts.signing.private import folder, new_key

    target = out or folder() / name
    key = new_key(name, target)
    data = {"name": name, "fingerprint": key.public.fingerprint, "file": str(target)}
    note = f"let a store trust it with: receipts key trust {name} {target}.pub"
    return Answer(data, f"{key.public.fingerprint}  {target}", notes=(note,))


@verb("trust", of=command)
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE")
@click.option("--lane", "lanes", multiple=True, metavar="LANE", help="Only receipts of this lane; may be repeated.")
@click.option(
    "--until", metavar="DATE", help="The day on which it ends, or a moment with its offset.  [default: never]"
)
def trust(session: Session, name: str, file: str, lanes: tuple[str, ...], until: str | None) -> Answer:
    """Trust a public key: its signatures count. FILE is in OpenSSH's form or PEM.

    Examples:
      receipts key trust ana ana.pub
      receipts key trust ci ci.pub --lane nvidia-megatron --until 2027-06-30
    """
    from receipts.signing.public import read_public_file

    key = read_public_file(file)
    for lane in lanes:
        session.rulebook.lanes.get(lane)
    ends = moment("--until", until) if until is not None else None
    session.opened(create=True).signing.trust(name, key, lanes, ends)
    data = {"name": name, "fingerprint": key.fingerprint, "lanes": lanes, "ends": ends}
    return Answer(data, f"{name} is trusted: {key.fingerprint}")


@verb("list", of=command)
def list_(session: Session) -> Answer:
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


@verb("revoke", of=command)
@click.argument("name", metavar="NAME|FINGERPRINT")
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept in the store.")
def revoke(session: Session, name: str, reason: str) -> Answer:
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
