"""# R316 below_grade

*Why.* A receipt that somebody typed reads like one that the recorder wrote, and a job that states its own path sounds
like a profile that shows it. A lane may ask for more than the document's word.

*Rejected.* On a lane with `grade = "evidenced"`: a receipt that no program wrote; one that was edited after its program
wrote it; one whose path the job stated and no reader read from a file.

*Accepted.* The grade follows from what the receipt holds, and is at least the one that the lane asks for. A lane that
asks for none accepts every grade, and every verdict shows it. `receipts submit run.json --evidence DIR` reads the files
and raises the grade.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.lane import Grade
from receipts.judging.grade import GRADES
from receipts.judging.rule import ALL, PATH, Case, I, Offense, Topic, rule


def _asked(case: Case) -> Grade:
    """The grade that the lane asks for, or the caller, whichever is higher."""
    wanted: tuple[Grade, ...] = (case.lane.grade, case.facts.grade if case.facts is not None else "typed")
    return max(wanted, key=GRADES.index)


@rule("R316", "below_grade", I, question=PATH, taints=(ALL,), about=Topic.EVIDENCE)
def below_grade(case: Case) -> Iterator[Offense]:
    """A receipt whose grade is lower than the lane asks for."""
    grade = case.graded
    wanted = _asked(case)
    if GRADES.index(grade.grade) < GRADES.index(wanted):
        yield Offense(
            at="evidence" if grade.grade != GRADES[0] else "run.recorded",
            found=f"grade {grade.grade}: {grade.why}",
            expected=f"grade {wanted}, which lane {case.lane.name} or the caller asks for",
            do="submit the receipt as its program wrote it, with the files: receipts submit run.json --evidence DIR",
        )
