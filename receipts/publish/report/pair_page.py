"""The page of one comparison as a document: `publish.comparison` with answers, pictures and receipts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from receipts.publish import comparison
from receipts.publish.page import Code, Column, Page, Section, Table, heads, row
from receipts.publish.report import appendix
from receipts.publish.report.lane import answered
from receipts.publish.report.page import links
from receipts.publish.report.pair_data import PairData
from receipts.publish.report.pictures import step_times
from receipts.publish.report.sections import decisions, rules
from receipts.publish.report.sections.decisions import DecisionRow
from receipts.publish.text import plain

if TYPE_CHECKING:
    from receipts.judging.rulebook import RuleSet


def page(data: PairData, rule_set: RuleSet) -> Page:
    """The whole page."""
    verdict = data.comparison
    shown = comparison.page(verdict, rule_set, memory=data.memory)
    sections = [*body(data, rule_set), appendix.section(data.receipts)]
    if codes := list(rules.cited(sections)):
        sections.insert(-1, rules.section(data.cited, codes))
    return replace(
        shown,
        title=f"Comparison of {plain(verdict.label_b, 60)} against {plain(verdict.label_a, 60)}",
        facts=(
            ("A", links(data.a.receipts, 1)),
            ("B", links(data.b.receipts, 1)),
            ("lane", (", ".join(plain(name) for name in verdict.lanes),)),
        ),
        sections=tuple(sections),
        foot=(("verdict", (verdict.last_line(),)), ("rules", (Code(data.rules[:12]), f" judge {data.judge}"))),
    )


def body(data: PairData, rule_set: RuleSet) -> list[Section]:
    """What the page of a claim shows of its comparison as well."""
    shown = comparison.page(data.comparison, rule_set, memory=data.memory).sections
    figures = step_times.figures("steps", (data.timed,) if data.timed is not None else ())
    sections = [replace(item, figures=figures) if item.id == "effect" else item for item in shown]
    decided = [_decided(data.decisions, data.claims)] if data.decisions or data.claims else []
    effect = 1 + next(at for at, item in enumerate(sections) if item.id == "effect")
    return [*sections[:effect], _sides(data), *sections[effect:], *decided]


def _sides(data: PairData) -> Section:
    columns = (*heads("side | lane | judged"), *(Column(one.question) for one in data.a.answers))
    rows = tuple(
        row((f"{side.letter}: ", *links(side.receipts, 6)), plain(side.lane), side.status, *map(answered, side.answers))
        for side in (data.a, data.b)
    )
    several = any(len(side.receipts) > 1 for side in (data.a, data.b))
    intro = ("The first launch of a side answers for all: the others differ from it in no axis.",) if several else ()
    table = Table("Both sides with their five answers", columns, rows)
    points = (("witnessed by", (links(data.witnesses, 6),)),) if data.witnesses else ()
    return Section("sides", "The two sides", sentences=intro, tables=(table,), points=points)


def _decided(decided: Sequence[DecisionRow], claims: Sequence[str]) -> Section:
    stands = (f"Claims that stand on these receipts: {', '.join(map(plain, claims))}.",) if claims else ()
    shown = (decisions.table("What was decided on these receipts", decided),) if decided else ()
    return Section("decisions", "Decisions", sentences=stands, tables=shown)
