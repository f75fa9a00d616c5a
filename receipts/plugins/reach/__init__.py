"""What reaches people where they work: notices, the comment on a pull request, and badges."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "comment": Verb("comment", "Watch", "Put comparisons on a pull request, in one comment that is edited."),
        "site": Verb("site", "Compare and explain", "Write the store as a static site for any web server."),
        "badge": Verb("badge", "Watch", "Draw the badge of a receipt or a claim."),
    },
    questions=("badge",),
    services={"notices": "notices"},
)
