"""The generated pages as text: the receipt's fields, the axes, the rules and the commands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from schemas import receipt_schema, type_text

WIDTH = 100
ROLES = {
    "axis": "an experimenter can change it: counted",
    "block": "where a launch happened to run: never counted, judged by C111 alone",
    "derived": "follows from axes: shown, never counted",
    "regime": "how it was measured: each metric says which regimes it depends on",
    "work": "how much was done: each metric says what must be equal",
    "observation": "what was seen",
    "outcome": "how the launch ended",
    "note": "for people, and for links between receipts",
}


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    def row(cells: tuple[str, ...]) -> str:
        return "| " + " | ".join(re.sub(r"\s+", " ", cell.replace("|", "\\|")) for cell in cells) + " |"

    return [row(head), row(("---",) * len(head)), *(row(cells) for cells in rows), ""]


def _made_from(source: str) -> str:
    return f"<!-- Generated from {source} by docs/generate.py: edit that, then run `make docs`. -->"


def receipt_page() -> str:
    """One table a section: key, type, unit, role, axis, what it is."""
    from receipts.receipt.document import VERSION, Receipt
    from receipts.receipt.leaves import leaves

    schema = receipt_schema()
    always = [name for name, field in Receipt.model_fields.items() if field.is_required()]
    needed = [leaf.path for leaf in leaves() if leaf.required and leaf.path.partition(".")[0] in always]
    required = ", ".join(f"`{path}`" for path in needed if path.count(".") < 2)
    lines = [
        _made_from("receipts/receipt/"),
        "",
        f"# The receipt, version {VERSION}",
        "",
        "One JSON object about one launch: UTF-8, at most 16 MiB, no duplicate key, no NaN. Its id is the SHA-256 of",
        "its bytes. Units stand in names. An absent key, or a null, means *not stated*; nothing is filled with a",
        f"default. Required: {required}; and below a section that is given, what its table marks. Times carry a zone.",
        "",
        "Unknown keys are refused, except in the open maps `wheels`, `flags`, `patches`, `features` and `notes`. With",
        "`complete: true` the whole of such a map was captured, and an absent key is the stated value *unset*;",
        "without it an absent key is unknown.",
        "",
        *_table(("role", "what a comparison does with it"), list(ROLES.items())),
    ]
    sections: dict[str, list[tuple[str, ...]]] = {}
    for leaf in leaves():
        section, _, key = leaf.path.partition(".")
        name = section.removesuffix("[]")
        cells = (
            f"`{key or name}`" + (" (required)" if leaf.required else ""),
            type_text(schema, leaf.path),
            leaf.unit or "",
            leaf.role.value,
            f"`{leaf.axis}`" if leaf.axis else "",
            leaf.description + (f" Follows from {leaf.follows}." if leaf.follows else ""),
        )
        sections.setdefault(name, []).append(cells)
    for name, rows in sections.items():
        says = Receipt.model_fields[name].description or ""
        lines += [f"## `{name}`", "", says, ""] if rows[0][0] != f"`{name}` (required)" else [f"## `{name}`", ""]
        lines += _table(("key", "type", "unit", "role", "axis", "what it is"), rows)
    return "\n".join(lines)


def names_page() -> str:
    """The names of what computes and of types, each with its other spellings."""
    from receipts.receipt.names import NAMES, NAMES_AND_TYPES

    rows = [
        (f"`{name}`", ", ".join(f"`{other}`" for other in others)) for name, others in NAMES_AND_TYPES.items() if others
    ]
    lines = [
        _made_from("receipts/receipt/names.py"),
        "",
        "# Names of paths and types",
        "",
        "Readers, `receipts ingest --set` and the recorder write one spelling of a name that has several. A name that",
        "is in no list is kept as it is: a kernel of your own is one.",
        "",
        *_table(("name", "other spellings"), rows),
        "Without another spelling: " + ", ".join(f"`{name}`" for name, others in NAMES.items() if not others) + ".",
    ]
    return "\n".join(lines) + "\n"


def axes_page() -> str:
    """Each axis with its members and the switches that another leaf turns off."""
    from receipts.axes.switches import FOLLOWS
    from receipts.receipt.leaf import Role
    from receipts.receipt.leaves import leaves

    axes: dict[str, list[str]] = {}
    for leaf in leaves():
        if leaf.role is Role.AXIS and leaf.axis:
            name = leaf.axis.replace("path.intended.", "path.") if leaf.axis == leaf.path else leaf.axis
            axes.setdefault(name, []).append(leaf.path)
    counted = [(f"`{name}`", ", ".join(f"`{path}`" for path in paths)) for name, paths in axes.items()]
    switches = [(f"`{switch}`", f"`{degree}` is 1") for switch, degree in FOLLOWS.items()]
    lines = [
        _made_from("receipts/receipt/ and receipts/axes/"),
        "",
        "# Axes",
        "",
        "An axis is one independent thing that an experimenter can change. A comparison counts axes, not leaves: all",
        "members of an axis are one change. Each key of `flags`, `patches` and `features` is an axis of its own. The",
        "axis `path.X` takes the value of `path.witnessed.X` where there is one, else that of `path.intended.X`.",
        "",
        *_table(("axis", "members"), counted),
        "## Switches that a degree of one turns off",
        "",
        *_table(("switch", "is *off* where"), switches),
    ]
    for role in (Role.DERIVED, Role.BLOCK, Role.REGIME, Role.WORK):
        rows = [(f"`{leaf.path}`", leaf.description) for leaf in leaves() if leaf.role is role]
        lines += [f"## {role.value.capitalize()}: {ROLES[role.value]}", "", *_table(("leaf", "what it is"), rows)]
    return "\n".join(lines)


def rule_pages() -> Mapping[str, str]:
    """The index of the rules, and the page of each."""
    from receipts.judging.rulebook import builtin

    rows: list[tuple[str, ...]] = []
    found: dict[str, str] = {}
    for rule in builtin().rules.rules:
        taints = ", ".join(taint.value for taint in rule.taints) or "–"
        facts = f"level {rule.level.value} · on a {rule.subject} · speaks to {rule.question.value} · taints {taints}"
        source = f"validators/rules/{rule.path.name}" if rule.path else "validators/rules/"
        title, _, rest = rule.page.partition("\n")
        body = f"# {title.lstrip('# ')}\n\n{facts}\n\n{rest.strip()}\n"
        found[f"docs/reference/rules/{rule.code}.md"] = f"{_made_from(source)}\n\n{body}"
        link = f"[{rule.code}](rules/{rule.code}.md)"
        rows.append((link, rule.name, rule.level.value, rule.question.value, taints, rule.why))
    lines = [
        _made_from("validators/rules/"),
        "",
        "# Rules",
        "",
        "Level E rejects or invalidates, I leaves the question open, W is shown. A rule of level E whose needs are not",
        "stated gives an I finding, *unjudged*, in its place. Taints are the metrics that an offense spoils.",
        "",
        *_table(("code", "name", "level", "question", "taints", "why"), rows),
    ]
    return {"docs/reference/rules.md": "\n".join(lines), **found}


def cli_page() -> str:
    """The help of every command, as the program prints it."""
    import click

    from receipts.cli.group import all_commands, group

    def help_of(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
        context = click.Context(
            command,
            info_name=name,
            parent=parent,
            terminal_width=WIDTH,
            max_content_width=WIDTH,
            help_option_names=group.context_settings["help_option_names"],
        )
        title = context.command_path
        yield f"{'##' if parent else '#'} {title}\n\n```text\n{command.get_help(context).rstrip()}\n```\n"
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                if found is not None:
                    yield from help_of(found, child, context)

    every = click.HelpFormatter(width=WIDTH)
    all_commands(every)
    first, *others = help_of(group, "receipts", None)
    listed = f"# All commands\n\n```text\n{every.getvalue().strip()}\n```\n".replace("# All", "## All")
    return "\n".join([_made_from("receipts/cli/"), "", first, listed, *others])
