"""A gate as a JUnit report: one test, which passes only where the gate holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from xml.etree import ElementTree

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison


def gate_report(verdict: Comparison, required: str, answer: Literal["holds", "fails", "open"], why: str) -> str:
    """The report's XML. A gate that cannot tell is an error of its own, so that no CI system counts it as passed."""
    failed, undecided = int(answer == "fails"), int(answer == "open")
    counts = {"tests": "1", "failures": str(failed), "errors": str(undecided), "skipped": "0"}
    suites = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "receipts", **counts})
    name = f"{verdict.label_b} {required} than {verdict.label_a} on {verdict.metric}"
    case = ElementTree.SubElement(suite, "testcase", {"classname": "receipts.compare", "name": _printable(name)})
    if answer != "holds":
        tag, kind = ("failure", "not met") if failed else ("error", "undecided")
        problem = ElementTree.SubElement(case, tag, {"type": kind, "message": _printable(why)})
        problem.text = _printable(verdict.last_line())
    else:
        ElementTree.SubElement(case, "system-out").text = _printable(f"{why}\n{verdict.last_line()}")
    ElementTree.indent(suites)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ElementTree.tostring(suites, encoding="unicode")}\n'


def _printable(text: str) -> str:
    """Without what XML cannot hold."""
    return "".join(char if char.isprintable() or char == "\n" else " " for char in text)
