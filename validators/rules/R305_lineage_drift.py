"""# R305 lineage_drift

*Why.* A drifted environment tells a story that looks like the model's. Which cuDNN is loaded decides whether fused
attention exists at all, and the order of a search path decides which cuDNN is loaded.

*Rejected.* Wheels that are neither a documented nor a validated lineage of the lane (shown). torch 2.10 below torch_xla
2.9, or Transformer Engine 2.13 over cuDNN 9.10: these cannot work together, and that is an error. Where what decides
this is not stated, the question stays open. The wheel of libtpu 0.0.36 where 0.0.40 was loaded (shown, on
the page of each comparison too): what was loaded is what counts as the wheel.

*Accepted.* torch 2.9.0a0+git21fec65, torch_xla 2.9.0+gitc04e61c and libtpu 0.0.36 on the torch_xla lane. cuDNN 9.10.2
loaded from the wheel 9.10.2.21.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.axes.lane import Lineage, fits
from receipts.axes.lineage import Versions, lineage_of
from receipts.axes.switches import LOADED, same_version
from receipts.judging.rule import PATH, Case, E, I, Offense, Topic, W, rule


@rule("R305", "lineage_drift", W, question=PATH, of_configuration=True, about=Topic.INCIDENT)
def lineage_drift(case: Case) -> Iterator[Offense]:
    """Sets that cannot work together, sets that may be such, drift from every known lineage, and what was loaded."""
    versions = Versions(case.receipt.wheels, case.get)
    offenses = [offense for lineage in case.lane.impossible for offense in _impossible(lineage, versions)]
    yield from (offense for offense in offenses if offense.level is E)
    yield from [offense for offense in offenses if offense.level is I][:1]  # one unstated wheel leaves many sets open
    match = lineage_of(case.lane, versions)
    if match is not None and match.state == "neither":
        yield Offense(
            at=versions.leaf(next(iter(match.differs))),
            found="; ".join(f"{name} {version or 'not stated'}" for name, version in match.differs.items()),
            expected=f"{match.nearest.name}: {_set(match.nearest)}",
            do="state the whole lineage, or read this launch as one in an environment of its own",
        )
    yield from _other_loaded(versions)


def _other_loaded(versions: Versions) -> Iterator[Offense]:
    """Libraries that were loaded in another version than their installed wheel."""
    for leaf, wheels in LOADED.items():
        for name in wheels:
            if same_version(versions.of(leaf), versions.installed(name)) is False:
                yield Offense(
                    at=leaf,
                    found=f"{versions.of(leaf)} loaded, beside the wheel {name} {versions.installed(name)}",
                    expected="the version of the wheel",
                    do="see which library path comes first, and read this launch as one on what was loaded",
                )


def _impossible(lineage: Lineage, known: Versions) -> Iterator[Offense]:
    versions = {name: known.of(name) for name in lineage.wheels}
    # A lane names what it cannot run without: beside one of them, another that a whole capture lacks was left out.
    excluded = not any(version != "" for version in versions.values()) or any(
        version and not fits(version, lineage.wheels[name]) for name, version in versions.items()
    )
    if excluded:
        return
    unstated = [name for name, version in versions.items() if not version]
    stated = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    wanted = f"{', '.join(unstated)} stated" if unstated else "versions that work together"
    yield Offense(
        at=known.leaf(unstated[0] if unstated else next(iter(versions))),
        found=stated or f"{', '.join(unstated)} not stated",
        expected=f"{wanted}: {_set(lineage)} do not work together ({lineage.source})",
        do=f"state {', '.join(unstated)}" if unstated else "install versions that work together, and run again",
        level=I if unstated else E,
    )


def _set(lineage: Lineage) -> str:
    return ", ".join(f"{name} {wanted}" for name, wanted in lineage.wheels.items())
