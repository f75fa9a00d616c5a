"""``receipts lint``: performance statements in Markdown, and whether their receipts bear them out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, verb

if TYPE_CHECKING:
    from receipts.judging.claim import ClaimFile
    from receipts.publish.lint.check import LintResult


@verb("lint")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@click.option("--strict", is_flag=True, help="A statement without a receipt is an error.")
@click.option("--max-warnings", type=click.IntRange(min=0), metavar="N", help="More warnings than N are an error.")
@click.option("--claims", "claim_files", multiple=True, metavar="FILE", help="A claims.toml that claim: links name.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "sarif", "github"]), default="text", show_default=True
)
def command(
    session: Session,
    paths: tuple[str, ...],
    strict: bool,
    max_warnings: int | None,
    claim_files: tuple[str, ...],
    form: str,
) -> int:
    """Find performance statements in Markdown files, or below folders, and check those that name receipts.

    The store is opened only if a statement names a receipt or a claim.

    Examples:
      receipts lint README.md docs
      receipts lint docs --strict
      receipts lint README.md --format sarif > lint.sarif
      receipts lint README.md --claims claims.toml --format github

    A statement names its receipts in a link: [+13.3 % tok/s](receipt:81aa..3f9c), [289 TFLOP/s](receipt:3f9c),
    [twice as fast](claim:fused-heads). More: docs/lint.md.
    Exit codes: 0 no errors, 1 a linked statement does not hold (with --strict: or one has no link, or more than
    --max-warnings have none), 2 wrong call, 3 a linked statement is unproven or stale.
    """
    from receipts.publish.lint.check import Checker
    from receipts.publish.lint.files import pages
    from receipts.publish.lint.page import page

    claims = _claims(claim_files)
    checker = Checker(session.rulebook, session.opened, claims)
    results = [checker.check(item) for one in pages(paths) for item in page(one.open_lines, one.name)]
    _print(session, results, form)
    return exit_code(results, strict=strict, max_warnings=max_warnings)


def _claims(files: Sequence[str]) -> tuple[ClaimFile, ...]:
    if not files:
        return ()
    from receipts.judging.claim import read_claims_file

    return tuple(read_claims_file(file) for file in files)


def exit_code(results: Sequence[LintResult], *, strict: bool = False, max_warnings: int | None = None) -> int:
    """1 before 3 before 0, as the page says; a link or comment that backs nothing is a warning."""
    states = Counter(item.state for item in results)
    warnings = states["unreceipted"] + states["remark"]
    too_many = max_warnings is not None and warnings > max_warnings
    if states["refuted"] or too_many or (strict and warnings):
        return 1
    return 3 if states["stale"] or states["unproven"] else 0


def _print(session: Session, results: list[LintResult], form: str) -> None:
    """Print the results. Their lines are clean and may have colors, which an answer of a verb shows escaped."""
    from receipts.publish.lint import forms

    if form == "sarif":
        from receipts import __version__

        titles = {rule.code: rule.name for rule in session.rulebook.rules.rules}
        output.as_json(forms.sarif(results, titles, __version__))
    elif session.as_json or form == "json":
        output.as_json(forms.as_json(results, dict(sorted(Counter(item.state for item in results).items()))))
    else:
        output.line("\n".join(forms.github(results) if form == "github" else forms.text(results, output.terminal())))
