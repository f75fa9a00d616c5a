"""A plan: a receipt of which only what is decided before a launch has to stand.

What ``receipts init`` writes is a plan, and so is every receipt: launch, start, outcome and provenance, which a run
alone knows, may be absent, and what was measured is not asked for.
"""

from __future__ import annotations

from receipts.questions.plan.read import parse_plan, plan_of, read_plan
from receipts.questions.plan.write import before_run, file_name, write_plan

__all__ = ["before_run", "file_name", "parse_plan", "plan_of", "read_plan", "write_plan"]
