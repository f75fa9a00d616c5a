"""``rules``, ``lanes`` and ``axes``: the contracts in force."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.answer import Answer
from receipts.api.question import WORD, Param, always, choice, question
from receipts.base.errors import NotFound, near

if TYPE_CHECKING:
    from receipts.api.session import Session
    from receipts.publish.page import Page, Table
    from receipts.receipt.leaves import Leaf


Code = Annotated[str | None, Param(WORD, "A rule's code or name")]
Name = Annotated[str | None, Param(WORD, "A lane's name")]
Prefix = Annotated[str | None, Param(WORD, "A leaf, or what its path begins with")]
OfRole = Annotated[
    Literal["axis", "replicate", "block", "derived", "regime", "work", "observation", "outcome", "note"] | None,
    Param(
        choice("axis", "replicate", "block", "derived", "regime", "work", "observation", "outcome", "note"),
        "Only leaves of this role.",
        ("--role",),
    ),
]


@question("rules", alone=always, forms=("csv",))
def rules(session: Session, code: Code = None) -> Answer:
    """List the rules in force, or print the page of one (by code or name).

    Examples:
      receipts rules
      receipts rules C101
      receipts rules cold_start
    """
    from receipts.publish.page import table_of

    rules = session.rulebook.rules
    chosen = [rules.get(code)] if code else list(rules.rules)
    keys = ("code", "name", "level", "subject", "question", "taints", "page")
    listed = [{key: getattr(item, key) for key in keys} for item in chosen]
    data = {"rules": rules.digest, "list": listed}
    if code:
        item = chosen[0]
        taints = ", ".join(item.taints) or "nothing"
        about = f"level {item.level.value} · on a {item.subject} · speaks to {item.question.value} · taints {taints}"
        return Answer(data, f"{item.page}\n\n{about}", rows=listed)
    rows = ((item.code, item.level.value, item.name, item.why) for item in chosen)
    note = (
        f"{len(chosen)} rules, digest {rules.digest[:12]}; E rejects, I leaves a question open, W warns; "
        "receipts rules CODE prints a page"
    )
    table = table_of("", "code | level | name | why", rows)
    return Answer(data, table, notes=(note,), rows=listed)


@question("lanes", alone=always, forms=("csv",))
def lanes(session: Session, name: Name = None) -> Answer:
    """List the lanes, or show one in full.

    Examples:
      receipts lanes
      receipts lanes nvidia-megatron
      receipts lanes --json
    """
    from receipts.publish.page import Page, table_of

    lanes = session.rulebook.lanes
    chosen = [lanes.get(item) for item in ([name] if name else lanes.names())]
    rows = ((item.name, str(item.version), ", ".join(item.accelerators) or "any", item.title) for item in chosen)
    listed = table_of("", "lane | version ^1 | !accelerators ^2 | title", rows)

    def data() -> list[dict[str, Any]]:
        return [asdict(item) for item in chosen]

    if not name:
        return Answer(data, listed, rows=data)
    lane = chosen[0]
    stated = {key: value for key, value in asdict(lane).items() if value not in (None, (), {}, "", False)}
    named = (key for key in stated if key not in ("name", "version", "title"))
    facts = tuple((key.replace("_", " "), (_text(stated[key]),)) for key in named)
    return Answer(data, Page(lane.name, (f"{lane.name}@{lane.version}  {lane.title}",), facts=facts), rows=data)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} ({_text(item)})" for key, item in value.items() if item not in (None, ""))
    if isinstance(value, tuple | list):
        return ", ".join(_text(item) for item in value)
    return str(value)


@question("axes", alone=always, forms=("csv",))
def axes(session: Session, prefix: Prefix = None, *, role: OfRole = None) -> Answer:
    """List every leaf of a receipt: its meaning, and the axis it counts under; of one leaf also what it takes.

    Examples:
      receipts axes
      receipts axes --role axis
      receipts axes parallelism
      receipts axes batch.micro_batch
      receipts axes --json
    """
    from receipts.receipt.leaves import leaves

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

    def data() -> list[dict[str, Any]]:
        return [asdict(leaf) for leaf in matching]

    return Answer(data, lambda: _shown(matching), rows=data)


def _shown(matching: Sequence[Leaf]) -> Page | Table:
    """One leaf with what it takes, or several as a table."""
    from receipts.publish.page import table_of

    if len(matching) == 1:
        from receipts.ingest.leaves import taken
        from receipts.publish.ingested import of_leaf as page

        return page(matching[0], taken(matching[0].path.replace("*", "NAME")))
    rows = []
    for leaf in matching:
        counts = (leaf.axis or "").replace("path.intended.", "path.")
        rows.append((leaf.path, leaf.role.value, "itself" if counts == leaf.path else counts or "-", leaf.description))
    return table_of("", "leaf | role ^2 | axis ^1 | what it is", rows)
