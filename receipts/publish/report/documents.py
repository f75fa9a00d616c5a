"""The pages of one comparison and of one claim as documents, with both sides, effects and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.text import plain
from receipts.publish import comparison
from receipts.publish.claim import headline
from receipts.publish.page import Code, Page, Section
from receipts.publish.pictures import forest
from receipts.publish.report import appendix
from receipts.publish.report.page import links
from receipts.publish.report.template import page as written
from receipts.publish.text import NOTE
from receipts.questions.week.documents import ClaimData, PairData

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet


def pair_page(data: PairData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    verdict = data.comparison
    shown = comparison.page(verdict, rule_set, memory=data.memory)
    given, values = body(data, rule_set)
    sections = written("compare/body.j2", {**values, "own": True}, folders, sections=given).sections
    sections = (*sections, *appendix.rules_section(rule_set, sections), appendix.receipts_section(data.receipts))
    return replace(
        shown,
        title=f"Comparison of {plain(verdict.label_b, 60)} against {plain(verdict.label_a, 60)}",
        facts=(
            ("A", links(data.a.receipts, 1)),
            ("B", links(data.b.receipts, 1)),
            ("lane", (", ".join(plain(name) for name in verdict.lanes),)),
        ),
        sections=sections,
        foot=(("verdict", (verdict.last_line(),)), ("rules", (Code(data.rules[:12]), f" judge {data.judge}"))),
    )


def body(data: PairData, rule_set: RuleSet) -> tuple[list[Section], dict[str, Any]]:
    """The sections of a comparison that code makes, and what the template of the others takes."""
    shown = comparison.page(data.comparison, rule_set, memory=data.memory).sections
    figure = forest.of_comparison(data.comparison)
    figures = (figure,) if figure is not None else ()
    given = [replace(item, figures=figures) if item.id == "effect" else item for item in shown]
    return given, {"shown": given, "pair": data}


def claim_page(data: ClaimData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    given, values = body(data.comparison, rule_set) if data.comparison is not None else ([], {"pair": None})
    # Its own findings are above those of the comparison.
    given = [replace(one, title="What rules found of the comparison") if one.id == "findings" else one for one in given]
    values |= {"data": data, "own": False, "headline": headline(data.verdict, plain(data.verdict.text, 2 * NOTE))}
    shown = written("claim/page.j2", values, folders, sections=given)
    sections = (
        *shown.sections,
        *appendix.rules_section(rule_set, shown.sections),
        appendix.receipts_section(data.receipts),
    )
    return replace(shown, sections=sections)
