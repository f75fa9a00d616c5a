"""``receipts compare``: what the difference between two numbers means."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.sides import ComparisonOptions, gather, of_two_sides
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.api.comparison import Comparison
    from receipts.cli.requirement import Required
    from receipts.publish.page import Page


def _requirement(_context: click.Context, _option: click.Parameter, text: str | None) -> Required | None:
    from receipts.cli.requirement import read

    wanted = read(text) if text is not None else None
    if text is not None and wanted is None:
        raise click.BadParameter(f"{text!r} is none of faster, not-slower, not-slower=2%, equivalent")
    return wanted


@verb("compare")
@of_two_sides
@click.option(
    "--require",
    metavar="faster|not-slower[=SHARE]|equivalent",
    callback=_requirement,
    help="A gate: exit 0 if B is that, 1 if it is not, 3 if it is not proven. not-slower=2% allows 2 %.",
)
@click.option(
    "--standing",
    type=click.Choice(["attributed", "any"]),
    default="attributed",
    show_default=True,
    help="With --require: any also takes an effect whose cause is not shown.",
)
@click.option("--junit", metavar="FILE", help="With --require: also write the answer as a JUnit report.")
@click.option("--record", is_flag=True, help="Store the verdict.")
@click.option(
    "--format", "form", type=click.Choice(["text", "line", "markdown", "json"]), default="text", show_default=True
)
@click.option("--verbose", "-v", "opened", is_flag=True, help="Show all: settings that are held, warnings, memory.")
def command(
    session: Session,
    options: ComparisonOptions,
    require: Required | None,
    standing: str,
    junit: str | None,
    record: bool,
    form: str,
    opened: bool,
) -> Answer | int:
    """Compare B against A: two receipts, or two groups of launches.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; ID,ID names several launches of a side.
    Two files need no store; with a store, launches of the session and witnesses are added.

    Examples:
      receipts compare before.json after.json
      receipts compare 3f9c 81aa --metric step_seconds
      receipts compare 'label=base*' 'label=cand*'
      receipts compare @golden 81aa --waive flags.NCCL_ALGO="pinned by the site"
      receipts compare 3f9c 81aa --study fixed-accumulation --format markdown
      receipts compare a.json b.json --witness a-profile.json --witness b-profile.json
      receipts compare @golden 'label=nightly*' --require not-slower
      receipts compare --cold 3f9c --warm 81aa
      receipts compare @golden pr-1.json pr-2.json pr-3.json --require not-slower=1% --junit gate.xml

    The first line is the answer; the last one holds the three answers behind it: is it one experiment? did it run on
    the intended path? what is the effect? Option -v opens what is folded. Findings: E rejects, I leaves a question
    open, W is a warning; receipts rules CODE explains one. Exit codes: 0 accepted, 1 rejected, 2 wrong call or input, 3
    inconclusive.
    """
    if junit is not None and require is None:
        raise UsageError("--junit reports a gate; add --require")
    stored = record or not options.all_files
    if stored and session.team is not None:
        given = {"--record": record, "--require": require, "--junit": junit, "--grade": options.grade != "typed"}
        session.team.refuse(given)
        return session.team.compare(options, "json" if session.as_json else form, opened=opened)
    compared = gather(session, options, stored=stored)
    verdict = compared.verdict
    if record:
        session.store.record(compared.proved)
    session.as_json |= form == "json"
    notes = _payback(compared, session, verdict.metric) if form == "text" else ()
    answer = Answer(compared.to_json, lambda: _shown(compared, form), verdict.exit_code, notes, opened)
    if require is None:
        return answer
    from receipts.cli.requirement import required

    gate = required(verdict, require.kind, require.margin, any_standing=standing == "any")
    margin = f"={100 * require.margin:g}%" if require.margin is not None else ""
    output.note(f"--require {require.kind}{margin}: {gate.why}")
    if junit is not None:
        from receipts.base import files
        from receipts.publish.render.junit import gate_report

        files.write(junit, gate_report(verdict, f"{require.kind}{margin}", gate.answer, gate.why), over=True)
    return answer._replace(code=gate.exit_code)


def _payback(compared: Comparison, session: Session, metric: str) -> tuple[str, ...]:
    """What a cold cache costs beside a warm one; with ``--metric compile_seconds`` any longer compile."""
    from receipts.questions.regime import payback

    a, b = (session.rulebook.launch(side[0]) for side in (compared.sides.a, compared.sides.b))
    answer = payback(a, b)
    return (str(answer),) if answer is not None and (answer.of_caches or metric == "compile_seconds") else ()


def _shown(compared: Comparison, form: str) -> Page | str:
    """The comparison as a page, or in one line, or as Markdown."""
    verdict = compared.verdict
    if form == "line":
        return f"{verdict.label_a} → {verdict.label_b}: {verdict.last_line()}"
    if form == "markdown":
        from receipts.publish.render.markdown import markdown

        return markdown(compared.page())
    return compared.page()
