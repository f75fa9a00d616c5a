"""Studies over several launches: bridges, sweeps, bisections and experiments, with their commands and pages."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "bridge": Verb(
            "questions", "Compare and explain", "Split a gain into a chain of one-axis comparisons.", after="neighbours"
        ),
        "bisect": Verb(
            "questions", "Compare and explain", "Find the axes that made a configuration worse.", after="bridge"
        ),
        "bisect-wheels": Verb(
            "verbs", "Compare and explain", "Find the wheels that made an image worse.", after="bisect"
        ),
        "sweep": Verb(
            "questions",
            "Compare and explain",
            "Show a grid of launches as a table, each compared with a base.",
            after="bisect-wheels",
        ),
        "plan": Verb("verbs", "Plan and launch", "Plan the launches that decide, and read what they say.", after=""),
    },
    questions=("questions",),
)
