"""The page of a check: the status and its reason, every finding, and what is missing by weight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.judging.verdict import Finding, Level, ReceiptVerdict
from receipts.publish import lacks
from receipts.publish.findings import Grouped, entries, grouped, reason
from receipts.publish.page import Cell, Mark, Page, Section, marked, sections_of
from receipts.publish.words import words

say = words("receipt")


def offense(errors: Sequence[Sequence[Finding]]) -> Iterator[str]:
    """Why a receipt is invalid: the first error, and how many more there are."""
    first = errors[0][0]
    yield say("offense", name=first.name.replace("_", " "), code=first.code, reason=reason(first))
    if len(errors) > 1:
        yield say("more", n=len(errors) - 1)


def fallen(replaced: tuple[str, str] | None) -> Cell:
    """That a receipt no longer stands, and why, before anything else is said of it."""
    if replaced is None:
        return ()
    by, why = replaced
    text = say("replaced", id=by[:12], reason=why) if by else say("withdrawn", reason=why)
    return (Mark("no", say("superseded" if by else "retracted")), f"  {text}; ")


def page(
    verdict: ReceiptVerdict,
    source: str,
    *,
    missing: bool = False,
    undeclared: tuple[str, str] | None = None,
    replaced: tuple[str, str] | None = None,
) -> Page:
    """The whole page; with ``missing`` what is missing and what to do about it, in place of the findings.

    ``undeclared`` is the name of a lane that nobody declared, and which names are near it. ``replaced`` are the
    successor (empty where it was retracted) and the reason of a receipt that no longer stands.
    """
    groups = grouped(verdict.findings)
    name = verdict.label or verdict.receipt[:12]
    unknown = [say("undeclared", lane=undeclared[0], near=undeclared[1])] if undeclared else []
    if missing:
        section = Section("missing", "", tables=(lacks.table(lacks.weighed(groups)),))
    else:
        section = Section("findings", "", entries=entries(verdict.findings))
    return Page(
        title=name,
        headline=(
            *fallen(replaced),
            marked(verdict.status, say(verdict.status)),
            f"  {'; '.join([name, *_why(verdict, groups, source)])}",
        ),
        facts=tuple(("", (text,)) for text in (say("checked", id=verdict.receipt[:12], lane=verdict.lane), *unknown)),
        sections=sections_of(section),
        foot=tuple(_foot(verdict)),
    )


def line(verdict: ReceiptVerdict, replaced: tuple[str, str] | None = None) -> Cell:
    """The verdict in one line, after the receipt's name."""
    return (f"{verdict.label or verdict.receipt[:12]}: ", *fallen(replaced), *status(verdict))


def _why(verdict: ReceiptVerdict, groups: Grouped, source: str) -> Iterator[str]:
    errors = groups.at(Level.ERROR)
    if errors:
        yield from offense(errors)
    elif verdict.status != "valid" and (lacking := lacks.weighed(groups)):
        yield lacks.sentence(lacking, source)


def _foot(verdict: ReceiptVerdict) -> Iterator[tuple[str, Cell]]:
    if verdict.witnesses:
        yield "", (say("path_by", ids=", ".join(item[:12] for item in verdict.witnesses)),)
    yield "", (grade(verdict),)
    yield "", status(verdict)


def grade(verdict: ReceiptVerdict) -> str:
    """What the receipt's word rests on."""
    why = f": {verdict.grade_why}" if verdict.grade_why else ""
    return say("grade", grade=verdict.grade, why=why)


def status(verdict: ReceiptVerdict) -> Cell:
    """The verdict in one line."""
    kinds = say("tainted", kinds=", ".join(verdict.tainted)) if verdict.tainted else ""
    return (say("verdict", status=verdict.status, path=verdict.path, tainted=kinds),)
