"""Results as text, as JSON, as SARIF 2.1.0 (OASIS standard, 2020), and as GitHub's workflow annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from receipts.base.units import counted
from receipts.plugins.lint.check import LintResult, State
from receipts.publish.terminal import Terminal, clean

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: dict[State, str] = {
    "refuted": "error",
    "stale": "error",
    "unproven": "warning",
    "unreceipted": "warning",
    "remark": "warning",
}
# A rule for each code that a result may carry; results without one are notes on the page itself.
REMARK_RULE = "page-note"
OPEN_RULE = "unproven"


def reported(result: LintResult) -> bool:
    """Whether a result is worth a line: all but what holds or is ignored."""
    return result.state in LEVELS


def rule_of(result: LintResult) -> str:
    """The rule's code, or the name of what has none."""
    return result.code or (REMARK_RULE if result.state == "remark" else OPEN_RULE)


def message(result: LintResult) -> str:
    """What was found, and what to do."""
    words = f"“{result.statement.text}”: " if result.statement and result.state != "unreceipted" else ""
    return f"{words}{result.found}" + (f". To do: {result.do}" if result.do else "")


def text(results: Sequence[LintResult], terminal: Terminal) -> Iterator[str]:
    """A line for each result, as compilers have it, with what to do below it; then the counts by state."""
    for result in filter(reported, results):
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


def as_json(results: Sequence[LintResult], counts: Mapping[State, int]) -> dict[str, Any]:
    """A document with every statement, also those that hold, and the counts by state."""
    return {"schema_version": "1.0", "counts": counts, "results": [_row(result) for result in results]}


def _row(result: LintResult) -> dict[str, Any]:
    file, line, column = result.place
    row: dict[str, Any] = {"state": result.state, "code": result.code or None, "file": file, "line": line}
    row |= {"column": column, "found": result.found, "do": result.do or None}
    item = result.statement
    if item is not None:
        row |= {
            "end_line": item.end_line,
            "end_column": item.end_column,
            "text": item.text,
            "kind": item.kind,
            "metric": item.metric,
            "values": list(item.values),
            "unit": item.unit,
            "direction": item.direction,
            "link": item.link.target if item.link else None,
        }
    return row


def sarif(results: Iterable[LintResult], titles: dict[str, str], version: str) -> dict[str, Any]:
    """A SARIF log with one run. ``titles`` are the rules' names by code."""
    shown = [result for result in results if reported(result)]
    codes = sorted({rule_of(result) for result in shown})
    driver = {
        "name": "receipts lint",
        "semanticVersion": version,
        "rules": [
            {"id": code, "name": titles.get(code, code), "shortDescription": {"text": titles.get(code, code)}}
            for code in codes
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(result, codes) for result in shown],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(result: LintResult, codes: list[str]) -> dict[str, Any]:
    file, line, column = result.place
    region: dict[str, Any] = {"startLine": line, "startColumn": column}
    if result.statement is not None:
        region |= {"endLine": result.statement.end_line, "endColumn": result.statement.end_column}
    # A relative reference with forward slashes; SARIF wants no plain path.
    return {
        "ruleId": rule_of(result),
        "ruleIndex": codes.index(rule_of(result)),
        "level": LEVELS[result.state],
        "message": {"text": message(result)},
        "locations": [
            {"physicalLocation": {"artifactLocation": {"uri": quote(PurePath(file).as_posix())}, "region": region}}
        ],
    }


def github(results: Iterable[LintResult]) -> Iterator[str]:
    """GitHub's workflow commands, one line a result."""
    for result in results:
        if reported(result):
            file, line, column = result.place
            level = LEVELS[result.state]
            place = f"file={_property(file)},line={line},col={column}"
            if result.statement is not None and result.statement.end_line == line:
                place += f",endColumn={result.statement.end_column}"
            yield f"::{level} {place},title={_property(rule_of(result))}::{_data(message(result))}"


def _data(text: str) -> str:
    """GitHub's escapes for a message: the runner reads one command a line."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
