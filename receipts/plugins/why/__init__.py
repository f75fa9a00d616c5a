"""Why two launches differ: the time profile of their traces, and the table that adds up to the difference."""

from receipts.base.plugins import Plugin

PLUGIN = Plugin(services={"spans": "profile"})
