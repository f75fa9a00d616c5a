"""A bridge as a picture: what each hop of its best evidenced chain gave, and the whole with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from receipts import metrics
from receipts.publish.pictures import waterfall

if TYPE_CHECKING:
    from receipts.questions.bridge.bridge import Bridge
    from receipts.questions.bridge.gain import HopGain


def picture(found: Bridge, name: str = "bridge") -> str | None:
    """The SVG element, its ids beginning with ``name``; None where there is no bridge, or a hop of it has no number."""
    chain = found.chains[0] if found.chains else ()
    gains = [(hop.axis, hop.gain) for hop in chain]
    steps = [_step(axis, gain) for axis, gain in gains if gain is not None]
    if found.total is None or len(steps) < len(gains):
        return None
    title = f"From {_short(found.a.name)} to {_short(found.b.name)}"
    whole = _step(f"{_short(found.b.name, 24)} against {_short(found.a.name, 24)}", found.total)
    return waterfall.picture(steps, whole, metric=metrics.get(found.metric).title, name=name, title=title)


def _step(name: str, gain: HopGain) -> waterfall.Step:
    return waterfall.Step(name, gain.log, gain.low, gain.high)


def _short(name: str, most: int = 60) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
