"""Performance statements in Markdown, and whether the receipts that they link to bear them out."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "lint": Verb("verbs", "Publish", "Check the performance statements in Markdown files.", after="claim"),
    },
)
