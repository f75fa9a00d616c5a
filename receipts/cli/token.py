"""``receipts token``: who may do what on the server."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.page import table_of

EPILOG = """\b
Examples:
  receipts token add cluster --scope submit:nvidia-megatron --expires 90d
  receipts token add ana --scope read --scope decide --expires never
  receipts token list
  receipts token revoke cluster"""
_EXPIRES = re.compile(r"([1-9][0-9]{0,4})([dhm])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes"}


@click.group("token", epilog=EPILOG)
def command() -> None:
    """Give, list and revoke tokens for the server. Only their SHA-256 is stored."""


ADD_EPILOG = """\b
Examples:
  receipts token add cluster --scope submit --expires 90d
  receipts token add ana --scope decide --expires 365d

Scopes: submit (or submit:LANE), read, decide (with read: pins, decisions, claims), admin (all).
The token is printed once. The name is the actor of every row that it causes."""


@command.command("add", epilog=ADD_EPILOG)
@click.argument("name", metavar="NAME")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="What it may do; may be repeated.")
@click.option("--expires", default="90d", show_default=True, metavar="90d|12h|never", help="How long it stands.")
@click.option("--json", "as_json", is_flag=True, help="Print the token and its properties as JSON.")
@pass_session
def add(session: Session, name: str, scopes: tuple[str, ...], expires: str, as_json: bool) -> int:
    """Give a token, and print it."""
    from receipts.store.tokens import Tokens, checked

    checked(name, scopes)
    until = _until(expires)
    with session.open_store(create=True) as store:
        token, secret = Tokens(store.database).add(name, scopes, until)
    if as_json:
        output.as_json({**token._asdict(), "token": secret})
    else:
        output.line(secret)
        ends = f"until {until:%Y-%m-%d %H:%M} UTC" if until is not None else "for good"
        output.note(f"{name} may {', '.join(token.scopes)} {ends}; the token is not shown again")
    return 0


def _until(text: str) -> datetime | None:
    if text == "never":
        return None
    match = _EXPIRES.fullmatch(text)
    if match is None:
        raise UsageError(f"--expires {text}: write days, hours or minutes, such as 90d or 12h, or never")
    return datetime.now(UTC) + timedelta(**{_UNITS[match[2]]: int(match[1])})


LIST_EPILOG = """\b
Examples:
  receipts token list
  receipts token list --json"""
REVOKE_EPILOG = """\b
Examples:
  receipts token revoke cluster"""


@command.command("list", epilog=LIST_EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@pass_session
def list_(session: Session, as_json: bool) -> int:
    """List the tokens that are not revoked."""
    from receipts.store.tokens import Tokens

    with session.open_store() as store:
        tokens = Tokens(store.database).all()
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
    output.answer(as_json, [item._asdict() for item in tokens], listed)
    return 0


@command.command("revoke", epilog=REVOKE_EPILOG)
@click.argument("name", metavar="NAME")
@pass_session
def revoke(session: Session, name: str) -> int:
    """End a token now."""
    from receipts.store.tokens import Tokens

    with session.open_store() as store:
        token = Tokens(store.database).revoke(name)
    output.line(f"{token.name} ({token.prefix}…) is revoked")
    return 0
