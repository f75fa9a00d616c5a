"""# R316 below_grade

*Why.* A receipt that somebody typed reads like one that the recorder wrote, and a job that states its own path sounds
like a profile that shows it. A lane may ask for more than the document's word.

*Rejected.* On a lane with `grade = "evidenced"`, as all shipped lanes of accelerators and processors have: a receipt
that no program wrote; one that was edited after its program wrote it; one whose path the job stated and no reader read
from a file.

*Accepted.* The grade follows from what the receipt holds, and is at least the one that the lane asks for. A lane that
asks for none accepts every grade, and every verdict shows it. A lane asks nothing of a launch that failed or was not
measured (it has no result to accept), nor of a receipt that the store took in before the lane's `grade_since`: receipts
of that time could not know. The day that a receipt states is not asked, since whoever types one types its day; only
what a store took in before 29 November 2026 keeps it. Without a store, the grade is asked as of today. A separate
witness launch lifts it for what it witnesses: the launch that it names, and the launches of that one's side. `receipts
submit run.json --evidence DIR` reads the files and raises the grade.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.lane import Grade
from receipts.judging.grade import GRADES, wanted_grade
from receipts.judging.rule import ALL, PATH, Case, I, Offense, Topic, rule

# What raises a grade, by what it is.
_DO = {
    "typed": "make the receipt from the run's own files: receipts ingest LOG TRACE -o run.json; or submit the document "
    "as its program wrote it: receipts submit run.json --evidence DIR",
    "recorded": "read what shows the path (a trace or compiled program; of a framework its log): receipts submit "
    "run.json --evidence DIR",
    "evidenced": "keep the files in the store: receipts submit run.json --evidence DIR",
}


def _wanted_grade(case: Case) -> Grade:
    """The grade that the lane asks for, or the caller, whichever is higher."""
    own, known = case.launch.parsed, case.facts
    caller: Grade = known.grade if known is not None else "typed"
    taken_in = known.taken_in.get(own.id, known.now) if known is not None else None
    return max(caller, wanted_grade(own, case.lane, taken_in), key=GRADES.index)


@rule("R316", "below_grade", I, question=PATH, taints=(ALL,), about=Topic.EVIDENCE)
def below_grade(case: Case) -> Iterator[Offense]:
    """A receipt whose grade is lower than the lane asks for."""
    grade = case.graded
    wanted = _wanted_grade(case)
    if GRADES.index(grade.grade) < GRADES.index(wanted):
        yield Offense(
            at="evidence" if grade.grade != "typed" else "run.recorded",
            found=f"grade {grade.grade}: {grade.why}",
            expected=f"grade {wanted}, which lane {case.lane.name} or the caller asks for",
            do=_DO[grade.grade],
        )
