"""``receipts token``: who may do what on the server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from receipts.base.errors import UsageError
from receipts.cli.session import Answer, Session, group, verb
from receipts.publish.page import table_of

_EXPIRES = re.compile(r"([1-9][0-9]{0,4})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@group("token")
def command() -> None:
    """Create, list and revoke tokens for the server. Only their SHA-256 is stored.

    Examples:
      receipts token add cluster --scope submit:nvidia-megatron --expires 90d
      receipts token add ana --scope read --scope decide --expires never
      receipts token list
      receipts token revoke cluster
    """


@verb("add", of=command)
@click.argument("name", metavar="NAME")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="What it may do; may be repeated.")
@click.option("--expires", default="90d", show_default=True, metavar="90d|12h|never", help="How long it is valid.")
def add(session: Session, name: str, scopes: tuple[str, ...], expires: str) -> Answer:
    """Create a token, and print it.

    Examples:
      receipts token add cluster --scope submit --expires 90d
      receipts token add ana --scope decide --expires 365d

    Scopes: submit (or submit:LANE), read, decide (with read: pins, decisions, claims), admin (all).
    The token is printed once. The name is the actor of every row that it causes.
    """
    from receipts.store.tokens import Tokens, checked

    checked(name, scopes)
    until = _until(expires)
    token, secret = Tokens(session.opened(create=True).database).add(name, scopes, until)
    ends = f"until {until:%Y-%m-%d %H:%M} UTC" if until is not None else "for good"
    note = f"{name} may {', '.join(token.scopes)} {ends}; the token is not shown again"
    return Answer({**token._asdict(), "token": secret}, secret, notes=(note,))


def _until(text: str) -> datetime | None:
    if text == "never":
        return None
    match = _EXPIRES.fullmatch(text)
    if match is None:
        raise UsageError(f"--expires {text}: write days, hours or minutes, such as 90d or 12h, or never")
    return datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])})


@verb("list", of=command)
def list_(session: Session) -> Answer:
    """List the tokens that are not revoked.

    Examples:
      receipts token list
      receipts token list --json
    """
    from receipts.store.tokens import Tokens

    tokens = Tokens(session.store.database).all()
    now = datetime.now(UTC)
    rows = [
        (
            item.name,
            f"{item.prefix}…",
            " ".join(item.scopes),
            "never" if item.expires is None else f"{item.expires:%Y-%m-%d %H:%M}{' (expired)' * (item.expires <= now)}",
        )
        for item in tokens
    ]
    empty = "no tokens; receipts token add NAME --scope read"
    listed = table_of("", "name | token | may | expires, UTC", rows, empty=empty)
    return Answer([item._asdict() for item in tokens], listed)


@verb("revoke", of=command)
@click.argument("name", metavar="NAME")
def revoke(session: Session, name: str) -> Answer:
    """End a token now.

    Examples:
      receipts token revoke cluster
    """
    from receipts.store.tokens import Tokens

    token = Tokens(session.store.database).revoke(name)
    return Answer(token._asdict(), f"{token.name} ({token.prefix}…) is revoked")
