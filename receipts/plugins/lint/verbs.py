"""``receipts lint``: performance statements in Markdown, and whether their receipts bear them out.

A call names files, folders and everything below them, or standard input. Results are printed as text, as JSON, as SARIF
2.1.0 (OASIS standard, 2020), or as GitHub's workflow annotations.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import quote

import click

from receipts.base.errors import NotFound, UsageError
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session, verb
from receipts.publish.terminal import Terminal, clean

if TYPE_CHECKING:
    from receipts.plugins.lint.check import LintResult, State

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: dict[State, str] = {  # of what is worth a line: all but what holds or is ignored
    "refuted": "error",
    "stale": "error",
    "unproven": "warning",
    "unreceipted": "warning",
    "remark": "warning",
}


def _text(results: Sequence[LintResult], terminal: Terminal) -> Iterator[str]:
    """A line for each result, as compilers have it, with what to do below it; then the counts by state."""
    for result in (one for one in results if one.state in LEVELS):
        place = ":".join(map(str, result.place))
        unlinked = result.state == "unreceipted"
        quoted = f"“{result.statement.text}” " if result.statement and not unlinked else ""
        code = f" {result.code}" if result.code else ""
        yield f"{clean(place)}: {terminal.paint(result.state, result.state)}{code} {clean(quoted + result.found)}"
        if result.do and not unlinked:
            yield from terminal.wrapped(f"do: {result.do}", 4)
    counts = sorted(Counter(item.state for item in results).items())
    totals = ", ".join(f"{number:,} {state}" for state, number in counts) or "no performance statement"
    statements = sum(number for state, number in counts if state != "remark")
    yield f"{counted(statements, 'statement')}: {totals}" if counts else totals


def _as_json(results: Sequence[LintResult]) -> dict[str, Any]:
    """A document with every statement, also those that hold, and the counts by state."""
    rows: list[dict[str, Any]] = []
    for result in results:
        file, line, column = result.place
        rows.append({"state": result.state, "code": result.code or None, "file": file, "line": line, "column": column})
        rows[-1] |= {"found": result.found, "do": result.do or None}
        if item := result.statement:
            names = ("end_line", "end_column", "text", "kind", "metric", "values", "unit", "direction")
            rows[-1] |= {name: getattr(item, name) for name in names}
            rows[-1] |= {"link": item.link.target if item.link else None}
    counts = dict(sorted(Counter(item.state for item in results).items()))
    return {"schema_version": "1.0", "counts": counts, "results": rows}


def _sarif(results: Iterable[LintResult], titles: dict[str, str], version: str) -> dict[str, Any]:
    """A SARIF log with one run. ``titles`` are the rules' names by code."""
    shown = [result for result in results if result.state in LEVELS]
    codes = sorted({result.rule for result in shown})
    rules = [
        {"id": code, "name": titles.get(code, code), "shortDescription": {"text": titles.get(code, code)}}
        for code in codes
    ]
    items: list[dict[str, Any]] = []
    for result in shown:
        file, line, column = result.place
        region = {"startLine": line, "startColumn": column}
        if result.statement is not None:
            region |= {"endLine": result.statement.end_line, "endColumn": result.statement.end_column}
        # A relative reference with forward slashes; SARIF wants no plain path.
        place = {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}, "region": region}
        item = {"ruleId": result.rule, "ruleIndex": codes.index(result.rule), "level": LEVELS[result.state]}
        items.append(item | {"message": {"text": result.message}, "locations": [{"physicalLocation": place}]})
    driver = {"name": "receipts lint", "semanticVersion": version, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": items}
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _github(results: Iterable[LintResult]) -> Iterator[str]:
    """GitHub's workflow commands, one line a result."""
    for result in (one for one in results if one.state in LEVELS):
        file, line, column = result.place
        place = f"file={_property(file)},line={line},col={column}"
        if result.statement is not None and result.statement.end_line == line:
            place += f",endColumn={result.statement.end_column}"
        yield f"::{LEVELS[result.state]} {place},title={_property(result.rule)}::{_data(result.message)}"


def _data(text: str) -> str:
    """GitHub's escapes for a message: the runner reads one command a line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


SUFFIXES = (".md", ".markdown", ".mdx", ".mkd")
SKIPPED = ("node_modules", "__pycache__", "site-packages")
MAX_PAGE = 8 << 20  # bytes: a page takes some thirty times as much memory


def pages(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The name and the text of each file once, in the order of the words. Raises NotFound, UsageError."""
    seen: set[Path] = set()
    for word in words:
        place = Path(word)
        if word == "-":
            yield "standard input", _bounded(sys.stdin, "standard input")
            continue
        if not place.exists():
            raise NotFound(f"there is no file or folder {word}")
        if place.is_char_device() or place.is_block_device():
            raise UsageError(f"{word} is a device, which may have no end; name a file or a folder")
        for path in _below(place) if place.is_dir() else [place]:
            if path.resolve() in seen:
                continue
            seen.add(path.resolve())
            try:
                with path.open(encoding="utf-8", errors="replace", newline=None) as stream:
                    yield path.as_posix(), _bounded(stream, str(path))
            except OSError as error:
                raise UsageError(f"{path}: {error.strerror or error}") from None


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        elif path.suffix.lower() in SUFFIXES and path.is_file():
            yield path


def _bounded(stream: TextIO, name: str) -> str:
    text = stream.read(MAX_PAGE + 1)
    if len(text) > MAX_PAGE:
        raise UsageError(f"{name}: it has more than {MAX_PAGE >> 20} MiB, the limit of a page; leave it out")
    return text


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
    from receipts.judging.claim import read_claims_file
    from receipts.plugins.lint.check import Checker
    from receipts.plugins.lint.page import page

    claims = tuple(read_claims_file(file) for file in claim_files)
    checker = Checker(session.rulebook, session.opened, claims)
    results = [result for name, text in pages(paths) for result in checker.check(page(text, name))]
    # Lines are clean and may have colors, which an answer of a verb shows escaped.
    if form == "sarif":
        from receipts import __version__

        titles = {rule.code: rule.name for rule in session.rulebook.rules.rules}
        output.as_json(_sarif(results, titles, __version__))
    elif session.as_json or form == "json":
        output.as_json(_as_json(results))
    else:
        output.line("\n".join(_github(results) if form == "github" else _text(results, output.terminal())))
    return exit_code(results, strict=strict, max_warnings=max_warnings)


def exit_code(results: Sequence[LintResult], *, strict: bool = False, max_warnings: int | None = None) -> int:
    """1 before 3 before 0, as the page says; a link or comment that backs nothing is a warning."""
    states = Counter(item.state for item in results)
    warnings = states["unreceipted"] + states["remark"]
    too_many = max_warnings is not None and warnings > max_warnings
    if states["refuted"] or too_many or (strict and warnings):
        return 1
    return 3 if states["stale"] or states["unproven"] else 0
