"""Memory by physical chip, drawn over the topology of the machine."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "chips": Verb(
            "questions", "Compare and explain", "Draw memory by physical chip, or how it changed.", after="show"
        ),
    },
    questions=("questions",),
)
