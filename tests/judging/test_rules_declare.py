"""The engine asks a rule what it declares, never for its code: a rule of one's own is as good as a built-in one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import receipts
import rule_cases as cases
from receipts.base.errors import RuleError
from receipts.judging.comparison import compare
from receipts.judging.judge import judge_receipt
from receipts.judging.rule import Topic
from receipts.judging.rulebook import Rulebook
from receipts.questions.answers import answers
from receipts.questions.claims.judgment import waits
from receipts.questions.neighbours import reasons
from receipts.questions.plan import layout_problems
from receipts.questions.week.reader import may_reuse, without_asking

ENGINE = Path(receipts.__file__).parent
CODE = re.compile(r"[RCK][1-4]\d\d")
QUOTED = re.compile(rf"""['"]{CODE.pattern}['"]""")
RULE = '''"""# {code} own

*Why.* A test.

*Rejected.* Everything.

*Accepted.* Nothing.
"""

from receipts.judging.rule import ANYWHERE, COMPARABLE, EFFECT, NONE, E, I, Offense, Topic, W, rule


@rule("{code}", "own", {declared})
def own(case):
    """Everything."""
    yield Offense(at="{at}", found="it is there", expected="the rule's own words", do="nothing")
'''


def _own(folder: Path, code: str, declared: str, at: str = "run.launch") -> Rulebook:
    """The rules as shipped, and one of one's own that is against everything."""
    (folder / "rules").mkdir()
    (folder / "rules" / f"{code}_own.py").write_text(RULE.format(code=code, declared=declared, at=at))
    return Rulebook((folder,))


def _literals(path: Path) -> Iterator[str]:
    """Strings of a module that are values: docstrings are none."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    pages = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in pages:
            yield node.value


def test_no_code_of_a_rule_is_a_value_in_the_engine() -> None:
    files = sorted(ENGINE.rglob("*.py"))
    assert len(files) > 200
    quoted = [path for path in files if QUOTED.search(path.read_text(encoding="utf-8"))]
    values = [(path.relative_to(ENGINE).as_posix(), text) for path in quoted for text in _literals(path)]
    assert [item for item in values if CODE.fullmatch(item[1])] == []


@pytest.mark.parametrize("topic", Topic)
def test_a_topic_has_a_rule(topic: Topic) -> None:
    assert cases.rulebook().rules.about(topic)


def test_a_rule_of_ones_own_on_layouts_forbids_a_plan(tmp_path: Path) -> None:
    plan, book = cases.parsed(cases.base()), cases.rulebook()
    lane = book.lanes.of(plan.receipt.run.lane)
    assert layout_problems(plan, lane, book.rules) == []
    (problem,) = layout_problems(plan, lane, _own(tmp_path, "R990", "E, about=Topic.LAYOUT").rules)
    assert problem.what.startswith("R990 own: it is there")


def test_a_rule_of_ones_own_answers_whether_compile_is_amortized(tmp_path: Path) -> None:
    parsed = cases.parsed(cases.base())
    for level, says in (("E", "no: it was cold"), ("I", "not shown (R990)"), ("W", "yes")):
        (tmp_path / level).mkdir()
        book = _own(tmp_path / level, "R990", f'{level}, amortized="it was cold"')
        lane = book.lanes.of(parsed.receipt.run.lane)
        assert answers(
            parsed, lane, judge_receipt(parsed, lane, book.rules), None, book.rules
        ).amortized.answer.startswith(says)


def test_a_rule_of_ones_own_that_asks_the_store_leaves_stored_verdicts_as_they_are(tmp_path: Path) -> None:
    book = _own(tmp_path, "R990", "W, question=NONE, facts=True, asks_store=True")
    parsed = cases.parsed(cases.base())
    lane = book.lanes.of(parsed.receipt.run.lane)
    verdict = judge_receipt(parsed, lane, book.rules, cases.facts_of({}))
    assert may_reuse(book)
    assert [item.code for item in verdict.findings] == ["R990"]
    assert without_asking(verdict, book.rules).findings == ()


def test_a_rule_of_ones_own_on_changed_axes_gives_the_reason_in_its_own_words(tmp_path: Path) -> None:
    book = _own(tmp_path, "C001", 'E, on="pair", question=COMPARABLE, about=Topic.AXES')
    a, b = (cases.group(cases.build({}), side, 3) for side in "ab")
    assert next(reasons(compare(a, b, book), book.rules)) == "C001 the rule's own words"


def test_a_rule_of_ones_own_on_the_target_leaves_a_claim_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = _own(tmp_path, "K990", 'I, on="claim", question=NONE, about=Topic.TARGET', at="target")
    monkeypatch.setattr(cases, "rulebook", lambda: book)
    slow, fast = {"steps": {"seconds": 0.8, "seed": 3}}, {"steps": {"seconds": 0.6, "seed": 4}}
    claim = {"effect": "at least 1.30"}
    fast["set"] = {"numerics.learning_rate": 0.7}
    measured = {"a": slow, "b": fast, "launches_a": 3, "launches_b": 3, "facts": {}}
    found = cases.judge_claim({"claim": claim, **measured})
    assert [item.code for item in found.findings] == ["K990"]
    assert waits(found, book.rules)


@pytest.mark.parametrize(
    ("code", "declared", "says"),
    [
        ("R990", 'E, on="pair"', "begin with C"),
        ("C990", "E", "begin with C"),
        ("R990", "E, facts=True, asks_store=True", "level W"),
        ("R990", "E, about=Topic.NOTHING", "does not load"),
    ],
)
def test_a_rule_that_says_wrongly_what_it_is_does_not_load(tmp_path: Path, code: str, declared: str, says: str) -> None:
    with pytest.raises(RuleError, match=says):
        _ = _own(tmp_path, code, declared).rules
