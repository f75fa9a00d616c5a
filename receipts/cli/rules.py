"""``receipts rules``: the rules in force, or one rule's page."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts rules
  receipts rules C101
  receipts rules cold_start"""


@click.command("rules", epilog=EPILOG)
@click.argument("code", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the rules as JSON.")
@pass_session
def command(session: Session, code: str | None, as_json: bool) -> int:
    """List the rules in force, or print the page of one (by code or name)."""
    rules = session.rulebook.rules
    chosen = [rules.get(code)] if code else list(rules.rules)
    if as_json:
        keys = ("code", "name", "level", "subject", "question", "taints", "page")
        listed = [{key: getattr(item, key) for key in keys} for item in chosen]
        output.as_json({"rules": rules.digest, "list": listed})
    elif code:
        item = chosen[0]
        output.line(item.page)
        output.line()
        taints = ", ".join(item.taints) or "nothing"
        output.line(
            f"level {item.level.value} · on a {item.subject} · speaks to {item.question.value} · taints {taints}"
        )
    else:
        rows = [
            (item.code, item.name, item.level.value, item.subject, item.question.value, ", ".join(item.taints) or "-")
            for item in chosen
        ]
        output.show(output.listed(("code", "name", "level", "on", "question", "taints"), rows))
        output.note(f"{len(rows)} rules, digest {rules.digest[:12]}; receipts rules CODE prints a page")
    return 0
