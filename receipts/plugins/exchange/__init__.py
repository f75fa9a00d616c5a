"""Foreign formats in and out: exports of a store and the way back, tables, tracked runs and published results.

See docs/export.md for what is written, and docs/scale.md for what engines make of it."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "import": Verb(
            "import_verbs", "Maintain the store", "Import a table of runs, or another store's export.", after="audit"
        ),
        "export": Verb("verbs", "Maintain the store", "Write the store as Parquet, JSON lines or CSV.", after="import"),
    },
    services={"report": "verbs"},
)
