"""Why two launches differ: the time profile of their traces, and the table that adds up to the difference."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "why": Verb(
            "questions", "Compare and explain", "Show where the difference between two steps went.", after="compare"
        )
    },
    questions=("questions",),
    services={"spans": "profile", "sections": "sections", "weekly": "weekly"},
)
