"""Trust between strangers: signed statements, bundles and keys, with their commands."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "key": Verb("verbs", "Sign and prove", "Make keys, and say whose signatures the store trusts."),
        "attest": Verb("verbs", "Sign and prove", "Sign a verdict as a statement that other tools can check."),
        "attested": Verb("verbs", "Sign and prove", "Check a statement that a job signed."),
        "bundle": Verb("verbs", "Sign and prove", "Pack a verdict with all that a stranger checks it by."),
        "pointer": Verb("verbs", "Sign and prove", "Write the file that keeps in git where a bundle is."),
    },
    services={"pointer": "pointer"},
)
