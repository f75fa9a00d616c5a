"""``receipts key``: whose signatures count."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from receipts.base.errors import UsageError
from receipts.base.moments import moment
from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.page import table_of

EPILOG = """\b
Examples:
  receipts key new ana
  receipts key trust ana ~/.config/receipts/keys/ana.pub --lane nvidia-megatron --until 2027-06-30
  receipts key list
  receipts key revoke ana --reason "the laptop was lost"

Keys are Ed25519, also those of ssh-keygen. docs/signatures.md explains what a signature shows."""


@click.group("key", epilog=EPILOG)
def command() -> None:
    """Make keys, and say whose signatures the store trusts."""


NEW_EPILOG = """\b
Examples:
  receipts key new ana
  receipts key new ci --out secrets/ci

The private key is written with mode 0600 and without a passphrase, the public key beside it in .pub."""


@command.command("new", epilog=NEW_EPILOG)
@click.argument("name", metavar="NAME")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: ~/.config/receipts/keys/NAME"
)
def new(name: str, out: Path | None) -> int:
    """Make a key pair, and print the fingerprint."""
    from receipts.signing.private import folder, new_key

    target = out or folder() / name
    key = new_key(name, target)
    output.line(f"{key.public.fingerprint}  {target}")
    output.note(f"let a store trust it with: receipts key trust {name} {target}.pub")
    return 0


TRUST_EPILOG = """\b
Examples:
  receipts key trust ana ana.pub
  receipts key trust ci ci.pub --lane nvidia-megatron --until 2027-06-30"""


@command.command("trust", epilog=TRUST_EPILOG)
@click.argument("name", metavar="NAME")
@click.argument("file", metavar="FILE")
@click.option("--lane", "lanes", multiple=True, metavar="LANE", help="Only receipts of this lane; may be repeated.")
@click.option(
    "--until", metavar="DATE", help="The day on which it ends, or a moment with its offset.  [default: never]"
)
@pass_session
def trust(session: Session, name: str, file: str, lanes: tuple[str, ...], until: str | None) -> int:
    """Let the signatures of a public key count. FILE is in OpenSSH's form or PEM."""
    from receipts.signing.public import read_public_file

    key = read_public_file(file)
    for lane in lanes:
        session.rulebook.lanes.get(lane)
    with session.open_store(create=True) as store:
        store.signing.trust(name, key, lanes, moment("--until", until) if until is not None else None)
    output.line(f"{name} is trusted: {key.fingerprint}")
    return 0


LIST_EPILOG = """\b
Examples:
  receipts key list
  receipts key list --json"""


@command.command("list", epilog=LIST_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def list_(session: Session, as_json: bool) -> int:
    """List every key that was ever trusted, with its state."""
    with session.open_store() as store:
        keys = store.signing.every_key()
    now = datetime.now(UTC)
    rows = []
    for item in keys:
        ends = "never" if item.ends is None else f"{item.ends:%Y-%m-%d %H:%M}{' (ended)' * (item.ends <= now)}"
        state = "trusted" if item.revoked is None else f"revoked: {item.revoked}"
        rows.append((item.name, item.key.fingerprint, " ".join(item.lanes) or "all", ends, state))
    empty = "no keys; receipts key trust NAME FILE.pub"
    listed = table_of("", "name | fingerprint | lanes | ends, UTC | state", rows, empty=empty)
    data = [{**item._asdict(), "key": item.key.line, "fingerprint": item.key.fingerprint} for item in keys]
    output.answer(as_json, data, listed)
    return 0


REVOKE_EPILOG = """\b
Examples:
  receipts key revoke ana --reason "the laptop was lost"

Receipts that it signed before keep their signer, and show that the key was revoked since. The key cannot come back."""


@command.command("revoke", epilog=REVOKE_EPILOG)
@click.argument("name", metavar="NAME|FINGERPRINT")
@click.option("--reason", required=True, metavar="TEXT", help="Why; kept in the store.")
@pass_session
def revoke(session: Session, name: str, reason: str) -> int:
    """Let a key count no more, from now on."""
    if not reason.strip():
        raise UsageError('--reason "…": say why the key no longer counts')
    with session.open_store() as store:
        key = store.signing.revoke(name, reason)
    output.line(f"{key.name} is revoked: {key.key.fingerprint}")
    return 0
