"""How the launches of each lane ended: a command, a question from Python, a report and a section of the weekly report.

The modules are named here and imported when they are used.
"""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "outcomes": Verb("question", "Compare and explain", "Count how the launches of each lane ended.", after="list")
    },
    questions=("question",),
    services={"report": "verbs", "weekly": "page"},
)
