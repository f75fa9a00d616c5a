"""The page of a working day: what was tried and what the answer has, what no file shows, and what costs days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Row(NamedTuple):
    """What was tried, the words that the answer must have, the answer, and whether it has them."""

    tried: str
    words: str
    said: str
    holds: bool


# What no file of a launch holds, with what would.
NOT_KNOWABLE: Final = {
    "Gradients that are wrong while the loss and its norm look right": "a parity run against a reference, as a claim "
    "of `equivalence` on the loss",
    "A patched file that stays on disk while its switch is off": "the recorder's digest of the files that were "
    "imported; a log names a commit at most",
    "A lock, a copy or a neighbor on the host while the run goes on": "`nvidia-smi` beside the run for clocks and "
    "memory, and launches in turns for the rest",
}

# What costs a lab its days, with the rows above that catch it or say what would.
PAINS: Final[Mapping[str, tuple[str, ...]]] = {
    "silently wrong gradients": (next(iter(NOT_KNOWABLE)),),
    "broken, and fast": ("NaN from the first step, and fast", "the same, with outcome ok typed"),
    "asked for, and not executed": (
        *(
            "CUDA graphs asked for, never seen",
            "attention left Transformer Engine",
            "a branch whose test imported main",
        ),
        *("a flag that the program ignores", list(NOT_KNOWABLE)[1]),
    ),
    "silent fallback of the data": ("a missing tokenizer became mock data", "golden against a resumed run"),
    "several axes in one row": ("two axes in one row",),
    "arithmetic that never agreed": ("an MFU with another N", "tokens a step that no batch gives"),
    "evidence that is gone": ("a retained log that is not the log of then", "a job that fails"),
    "words of memory": ("the peak of each chip, by kind", "micro batch 8 does not fit"),
    "windows and units": ("the compile counted in the window",),
    "a hidden environment": ("a variable of one side's environment", list(NOT_KNOWABLE)[2]),
    "figures of other hardware and shapes": (
        *("the same lane on a drifted host", "a claim at a shape that was never run"),
    ),
    '"the only remaining variable"': ('"the only remaining variable"',),
}


def page(rows: list[Row]) -> str:
    """The day as a page of the documentation."""
    caught = "\n".join(f"| {row.tried} | {row.words} |" for row in rows)
    unknown = "\n".join(f"| {what} | {would} |" for what, would in NOT_KNOWABLE.items())
    pains = "\n".join(f"| {pain} | {'; '.join(names)} |" for pain, names in PAINS.items())
    return f"""# A working day

```sh title="needs a clone of the project"
python -m benchmarks.day
```

What a performance engineer's day does to a number, and what receipts answers: launches of one lane as files in
Megatron's form, and a job that `receipts record` really runs, judged in this order. `python -m benchmarks.day` runs the
day again; a test holds this page against it.

| tried | the answer has |
| --- | --- |
{caught}

## What no file of a launch shows

| pain | what would show it |
| --- | --- |
{unknown}

## What costs days

| pain | where it ends |
| --- | --- |
{pains}
"""
