"""Published results: what others measured and printed, as receipts that say where each came from."""

from __future__ import annotations

from receipts.workflows.published.mlperf import PublishedLog, import_logs
from receipts.workflows.published.places import LogPath, find_logs

__all__ = ["LogPath", "PublishedLog", "find_logs", "import_logs"]
