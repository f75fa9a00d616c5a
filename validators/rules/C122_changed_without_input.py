"""# C122 changed_without_input

*Why.* A program is a function of its code, its inputs and what it runs on. Where none of these changed and a setting
did, the receipts say what cannot be: the setting was stated by hand, or the program read something that nobody
captured, as a host's name, or a file that another file includes.

*Rejected.* Two launches of one program with equal options, files and variables, on equal wheels; A states 8 heads and
B 2. As open: it is known that something changed, and not what.

*Accepted.* An input that changed, or the code. A machine, a wheel or a flag that changed: they count as they are. A
path that evidence shows to be another than what was asked for, which R302 judges. Receipts without whole inputs.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes import in_words
from receipts.judging.rule import COMPARABLE, I, Offense, PairCase, rule


@rule("C122", "changed_without_input", I, on="pair", question=COMPARABLE)
def changed_without_input(pair: PairCase) -> Iterator[Offense]:
    """Each setting that changed although nothing did that the launches were started with."""
    for change in pair.difference.changed:
        if change.axis not in pair.difference.without_input or change.axis in pair.waived:
            continue
        values = ", ".join(f"{item.path} {in_words(item.a)} → {in_words(item.b)}" for item in change.members)
        yield Offense(
            at=change.axis,
            found=f"{values}, and no input of the two launches differs",
            expected="an option, a file, a variable or code that changed with it",
            do="hand what decides it to the recorder, rec.inputs({...}), or leave to it what it sees by itself",
        )
