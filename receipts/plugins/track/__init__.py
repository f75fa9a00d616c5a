"""Lines over time: their history, watching them, and incidents, with their commands and pages."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "history": Verb(
            "questions", "Compare and explain", "Show a line over time, and where its level changed.", after="sweep"
        ),
        "watch": Verb("verbs", "Watch", "Open an incident where a line became slower; close it where it recovered."),
        "incident": Verb("verbs", "Watch", "List incidents, or close one."),
    },
    questions=("questions",),
    services={"gauges": "watch"},
)
