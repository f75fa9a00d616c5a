"""What reaches people where they work: notices, the comment on a pull request, and badges."""

from receipts.base.plugins import Plugin

PLUGIN = Plugin(services={"notices": "notices"})
