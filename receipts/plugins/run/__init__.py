"""Launching a plan: a process for each attempt, a receipt of every attempt, and the ladder of smaller plans."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "record": Verb("record", "Make and store receipts", "Launch a training command, and record it as it is."),
        "run": Verb(
            "verbs", "Plan and launch", "Launch a plan; if memory runs out, launch a smaller one.", after="fit"
        ),
        "template": Verb("template", "Plan and launch", "Print a job file that records, for a cluster.", after="run"),
    },
    services={"launch": "record"},
)
