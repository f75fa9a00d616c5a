"""A bridge as a page: the best evidenced chain, hop by hop, or the runs that are missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from receipts.publish.page import Page


def page(document: Mapping[str, Any]) -> Page:
    """The page of what ``receipts bridge --json`` prints."""
    from receipts.publish.page import Column, Page, Section, Table, row
    from receipts.publish.readings import value

    columns = (
        Column("axis"),
        Column("from → to"),
        Column("gain", numeric=True),
        Column("verdict"),
        Column("reason", cut=True),
    )

    def hops(items: Any, caption: str, empty: str = "") -> Table:
        rows = [
            row(
                item["axis"],
                "; ".join(f"{value(one['from'])} → {value(one['to'])}" for one in item["members"]),
                f"×{item['gain']['ratio']:.3f}" if item["gain"] else "~",
                item["status"],
                item["reason"] or "",
            )
            for item in items
        ]
        return Table(caption, columns, tuple(rows), empty=empty)

    chain = document["chains"][0] if document["chains"] else []
    sections = [Section("chain", "Best evidenced chain", tables=(hops(chain, "Hops", "no chain of accepted hops"),))]
    if document["refused"]:
        sections.append(Section("refused", "Refused hops", tables=(hops(document["refused"], "Refused"),)))
    runs = (document["missing"] or {}).get("runs", [])
    if runs:
        points = (("", tuple((item["configuration"],) for item in runs)),)
        sections.append(Section("missing", "Missing runs", points=points))
    names = [document[side]["label"] or document[side]["receipt"][:12] for side in ("a", "b")]
    total = f", ×{document['total']['ratio']:.3f} on {document['metric']}" if document["total"] else ""
    headline = (f"{document['status']}: {len(chain)} hop{'' if len(chain) == 1 else 's'}{total}",)
    return Page(" → ".join(names), headline, sections=tuple(sections))
