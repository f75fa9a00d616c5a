"""The recorder: receipts emitted by the training run itself, with the standard library alone.

    from receipts.emit import Recorder

Importing it imports no framework, and nothing of the engine. ``docs/recorder.md`` shows its use.
"""

from __future__ import annotations

from receipts.emit.contract import UnstatedFact
from receipts.emit.recorder import Recorder

__all__ = ["Recorder", "UnstatedFact"]
