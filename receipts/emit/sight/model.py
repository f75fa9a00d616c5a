"""What a watch states of model, batch and numerics: what was seen under its name, what follows from it as inferred."""

from __future__ import annotations

from receipts.emit.sight import root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput
    from receipts.emit.sight.watch import Watch


def state(watch: Watch, stated: ProbeOutput) -> None:
    """State everything."""
    if not watch.roots:
        return
    inner = root.innermost(watch.roots[0])
    stated.put("model.name", root.class_name(inner))
