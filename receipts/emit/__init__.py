"""The recorder: receipts emitted by the training run itself, with the standard library alone.

    from receipts.emit import Recorder

Importing it imports no framework, and nothing of the engine. ``docs/recorder.md`` shows its use.
"""

from __future__ import annotations

from receipts import lazy

TYPE_CHECKING = False  # `typing` would cost each process that is armed ten milliseconds
if TYPE_CHECKING:
    from receipts.emit.contract import UnstatedFact
    from receipts.emit.recorder import Recorder
else:
    # The engine uses single modules of this package: they do not load the recorder.
    __getattr__, __dir__ = lazy(
        __name__, {"receipts.emit.contract": "UnstatedFact", "receipts.emit.recorder": "Recorder"}
    )

__all__ = ["Recorder", "UnstatedFact"]
