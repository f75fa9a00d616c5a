"""``receipts axes``: every leaf of the receipt with its role, and the axis that it counts under."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from receipts.base.errors import NotFound, near
from receipts.cli import output
from receipts.publish.page import Column, Page, Table

if TYPE_CHECKING:
    from receipts.receipt.catalogue import Leaf

EPILOG = """\b
Examples:
  receipts axes
  receipts axes --role axis
  receipts axes parallelism
  receipts axes batch.micro_batch
  receipts axes --json"""


@click.command("axes", epilog=EPILOG)
@click.argument("prefix", required=False)
@click.option(
    "--role",
    type=click.Choice(["axis", "replicate", "block", "derived", "regime", "work", "observation", "outcome", "note"]),
    help="Only leaves of this role.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the leaves as JSON.")
def command(prefix: str | None, role: str | None, as_json: bool) -> int:
    """List every leaf of a receipt: its meaning, and the axis it counts under; of one leaf also what it takes."""
    from receipts.receipt.catalogue import leaves

    matching = [
        leaf
        for leaf in leaves()
        if (role is None or leaf.role == role)
        and (prefix is None or leaf.path == prefix or leaf.path.startswith(f"{prefix}.") or leaf.axis == prefix)
    ]
    if not matching:
        of_role = f" of role {role}" if role else ""
        hint = near(prefix or "", [leaf.path for leaf in leaves()])
        raise NotFound(f"no leaf{of_role} starts with {prefix!r}; see: receipts axes{hint}")
    output.answer(as_json, lambda: [asdict(leaf) for leaf in matching], lambda: _shown(matching))
    return 0


def _shown(matching: Sequence[Leaf]) -> Page | Table:
    """One leaf with what it takes, or several as a table."""
    if len(matching) == 1:
        from receipts.ingest.leaves import taken
        from receipts.publish.leaf import page

        return page(matching[0], taken(matching[0].path.replace("*", "NAME")))
    rows = []
    for leaf in matching:
        counts = (leaf.axis or "").replace("path.intended.", "path.")
        rows.append((leaf.path, leaf.role.value, "itself" if counts == leaf.path else counts or "-", leaf.description))
    return output.listed(("leaf", "role", Column("axis", rank=1), "what it is"), rows)
