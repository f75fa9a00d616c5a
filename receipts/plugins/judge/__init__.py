"""A judge of proposed changes: base and candidate launched in turns, and campaigns of many trials."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "judge": Verb("verbs", "Compare and explain", "Launch base and candidate in turns: keep or discard a change."),
        "campaign": Verb(
            "questions", "Compare and explain", "Show a series of trials: tried, kept, and what survives."
        ),
    },
    questions=("questions",),
)
