"""Reports as pages and files: the weekly one, and those of one comparison and one claim, from values by templates.

The files are ``report.md``, ``index.html`` and ``report.json``. Templates of HTML are looked for in the user's folders
first (``reports`` in ``receipts.toml``), then among those that ship. A template gets ``page`` (the report in words) and
``data`` (its values), and everything in it is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import ReceiptsError
from receipts.base.plugins import services
from receipts.base.untrusted_text import plain
from receipts.judging.rule import Topic
from receipts.judging.rulebook import RuleSet
from receipts.publish import comparison, plots
from receipts.publish.markup import environment, markdown
from receipts.publish.page import Code, Page, Section
from receipts.publish.report.frontier import over_lanes, over_sequence
from receipts.publish.report.page import links, place, receipts_section, rules_section
from receipts.publish.report.template import fault
from receipts.publish.report.template import page as written
from receipts.publish.tables import incidents_section
from receipts.publish.terminal import Terminal
from receipts.publish.text import NOTE
from receipts.publish.verdict import claim_headline
from receipts.questions.week.collect import WeekData
from receipts.questions.week.documents import ClaimData, PairData

if TYPE_CHECKING:
    pass


def page(data: WeekData, rules: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole report; ``rules`` are those that it was judged by."""
    watched = incidents_section(data.sections.regressions)
    # The pictures of each section by its anchor: the frontier of all lanes first, then each lane's own.
    summary = over_lanes("frontier-lanes", [course for course in data.courses.values() if course is not None])
    drawn = {"summary": summary}
    for lane in data.lanes:
        reached = data.sections.ceilings[lane.name]
        drawn[place(lane.name, "frontier")] = over_sequence(place(lane.name, "sequence"), lane, reached)
        effects = plots.effects_figure(place(lane.name, "effects"), lane.name, (*lane.accepted, *lane.inconclusive))
        drawn[place(lane.name, "accepted" if lane.accepted else "inconclusive")] = effects
    figures = {anchor: (figure,) for anchor, figure in drawn.items() if figure is not None}
    shown = written("weekly/page.j2", _values(data, rules), folders, figures=figures, sections=watched)
    added = (module.section(data) for module in services("weekly"))
    sections = [*shown.sections, *(item for item in added if item is not None)]
    sections += rules_section(rules, sections)
    sections += [receipts_section(data.receipts)] if data.receipts else []
    return replace(shown, sections=tuple(sections))


def first_screen(data: WeekData, rules: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The page down to its first section, without pictures: what a lead forwards."""
    return written("weekly/first.j2", _values(data, rules), folders)


def _values(data: WeekData, rules: RuleSet) -> dict[str, Any]:
    return {
        "data": data,
        "rules": rules,
        "target": rules.about(Topic.TARGET)[:1],
        "failure": rules.about(Topic.FAILURE),
    }


UNBROKEN: Final = 10_000  # columns: whoever reads a message has a width of their own


def render(data: WeekData, rules: RuleSet, folders: Sequence[Path] = (), *, lane: str = "") -> dict[str, bytes]:
    """The files of a weekly report that was judged by some rules, as `files` gives them; or of one lane's page."""
    shown = page(data, rules, folders)
    if lane:
        return files(replace(shown, title=f"Lane {plain(lane)}, {data.week}"), data, "lane", folders)
    return files(shown, data, "weekly", folders)


def render_first(data: WeekData, rules: RuleSet, form: str, folders: Sequence[Path] = ()) -> str:
    """The first screen of a weekly report as ``markdown`` or ``text``, to be pasted into a message: it has no links."""
    shown = first_screen(data, rules, folders)
    (_, days), *facts = shown.facts
    # A message cannot be opened: of what is folded it has the counts.
    folded = (Section(item.id, "", sentences=(item.fold,)) if item.fold else item for item in shown.sections)
    sections = tuple(replace(item, title="") for item in folded)
    shown = replace(shown, headline=(shown.title, " · ", *days), facts=tuple(facts), sections=sections)
    return markdown(shown) if form == "markdown" else "\n".join(Terminal(width=UNBROKEN).page(shown))


def files(shown: Page, data: object, kind: str, folders: Sequence[Path] = ()) -> dict[str, bytes]:
    """The files of a page by name, by the templates of a kind. The same data and templates give the same bytes.

    Raises ResourceError where a template is wrong.
    """
    template = f"{kind}.html.j2"
    try:
        html = environment(tuple(folders)).get_template(template).render(page=shown, data=data)
    except ReceiptsError:
        raise
    except Exception as error:  # a template is somebody's file: whatever it raises is that file's fault
        raise fault(template, error) from error
    pages = {"report.md": f"{markdown(shown, document=True)}\n", "index.html": html}
    texts = {name: text.encode("utf-8", "backslashreplace") for name, text in pages.items()}
    return {"report.json": as_json(data), **texts}


def as_json(data: object) -> bytes:
    """The values as JSON, in the order in which they are declared."""
    import orjson

    option = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z
    try:
        return orjson.dumps(data, option=option, default=_jsonable)
    except TypeError:
        # A feature may be an integer of more than 64 bits, which orjson refuses.
        import json

        tree = asdict(data)  # type: ignore[call-overload]  # the values of a page are dataclasses
        return f"{json.dumps(tree, default=str, ensure_ascii=False, indent=2)}\n".encode("utf-8", "backslashreplace")


def _jsonable(item: Any) -> Any:
    """What orjson does not know: named tuples as objects, other tuples and sets as lists."""
    if hasattr(item, "_asdict"):
        return item._asdict()
    if isinstance(item, tuple | frozenset | set):
        return sorted(item) if isinstance(item, frozenset | set) else list(item)
    raise TypeError(f"no JSON of {type(item).__name__}")


def pair_page(data: PairData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    verdict = data.comparison
    shown = comparison.page(verdict, rule_set, memory=data.memory)
    given, values = _pair_body(data, rule_set)
    sections = written("compare/body.j2", {**values, "own": True}, folders, sections=given).sections
    sections = (*sections, *rules_section(rule_set, sections), receipts_section(data.receipts))
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


def _pair_body(data: PairData, rule_set: RuleSet) -> tuple[list[Section], dict[str, Any]]:
    """The sections of a comparison that code makes, and what the template of the others takes."""
    shown = comparison.page(data.comparison, rule_set, memory=data.memory).sections
    figure = plots.comparison_figure(data.comparison)
    figures = (figure,) if figure is not None else ()
    given = [replace(item, figures=figures) if item.id == "effect" else item for item in shown]
    return given, {"shown": given, "pair": data}


def claim_page(data: ClaimData, rule_set: RuleSet, folders: Sequence[Path] = ()) -> Page:
    """The whole page."""
    given, values = _pair_body(data.comparison, rule_set) if data.comparison is not None else ([], {"pair": None})
    # Its own findings are above those of the comparison.
    given = [replace(one, title="What rules found of the comparison") if one.id == "findings" else one for one in given]
    values |= {"data": data, "own": False, "headline": claim_headline(data.verdict, plain(data.verdict.text, 2 * NOTE))}
    shown = written("claim/page.j2", values, folders, sections=given)
    sections = (
        *shown.sections,
        *rules_section(rule_set, shown.sections),
        receipts_section(data.receipts),
    )
    return replace(shown, sections=sections)
