"""# R305 lineage_drift

*Why.* A drifted environment tells a story that looks like the model's. Which cuDNN is loaded decides whether fused
attention exists at all, and the order of a search path decides which cuDNN is loaded.

*Rejected.* Wheels that are neither a documented nor a validated lineage of the lane (shown). torch 2.10 below torch_xla
2.9, or Transformer Engine 2.13 over cuDNN 9.10: these cannot work together, and that is an error. Where what decides
this is not stated, the question stays open.

*Accepted.* torch 2.9.0a0+git21fec65, torch_xla 2.9.0+gitc04e61c and libtpu 0.0.36 on the torch_xla lane.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from receipts.axes.lane import Lineage, fits
from receipts.judging.rule import PATH, Case, E, I, Offense, Topic, W, rule

_ABSENT = ""


@rule("R305", "lineage_drift", W, question=PATH, of_configuration=True, about=Topic.INCIDENT)
def lineage_drift(case: Case) -> Iterator[Offense]:
    """Sets that cannot work together, sets that may be such, and drift from every known lineage."""
    wheels = _wheels(case)
    found = [offense for lineage in case.lane.impossible for offense in _impossible(lineage, case, wheels)]
    yield from (offense for offense in found if offense.level is E)
    yield from [offense for offense in found if offense.level is I][:1]  # one unstated wheel leaves many sets open
    known = (*case.lane.documented, *case.lane.validated)
    if not known:
        return
    gaps = [(item, _gaps(item, case, wheels)) for item in known]
    if all(gap for _, gap in gaps):
        nearest, differs = min(gaps, key=lambda pair: len(pair[1]))
        yield Offense(
            at=_leaf(next(iter(differs)), case),
            found="; ".join(f"{name} {version or 'not stated'}" for name, version in differs.items()),
            expected=f"{nearest.name}: {_says(nearest)}",
            do="state the whole lineage, or read this launch as one in an environment of its own",
        )


def _impossible(lineage: Lineage, case: Case, wheels: Mapping[str, str]) -> Iterator[Offense]:
    versions = {name: _version(name, case, wheels) for name in lineage.wheels}
    # A lane names what it cannot run without: beside one of them, another that a whole capture lacks was left out.
    excluded = not any(version != _ABSENT for version in versions.values()) or any(
        version and not fits(version, lineage.wheels[name]) for name, version in versions.items()
    )
    if excluded:
        return
    unstated = [name for name, version in versions.items() if not version]
    stated = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    wanted = f"{', '.join(unstated)} stated" if unstated else "versions that work together"
    yield Offense(
        at=_leaf(unstated[0] if unstated else next(iter(versions)), case),
        found=stated or f"{', '.join(unstated)} not stated",
        expected=f"{wanted}: {_says(lineage)} do not work together ({lineage.source})",
        do=f"state {', '.join(unstated)}" if unstated else "install versions that work together, and run again",
        level=I if unstated else E,
    )


def _gaps(lineage: Lineage, case: Case, wheels: Mapping[str, str]) -> dict[str, str | None]:
    versions = {name: _version(name, case, wheels) for name in lineage.wheels}
    return {name: found for name, found in versions.items() if not found or not fits(found, lineage.wheels[name])}


def _says(lineage: Lineage) -> str:
    return ", ".join(f"{name} {wanted}" for name, wanted in lineage.wheels.items())


def _spelling(name: str) -> str:
    return name.lower().replace("-", "_")


def _wheels(case: Case) -> Mapping[str, str]:
    found = case.receipt.wheels or {}
    return {_spelling(key): str(getattr(item, "version", item)) for key, item in found.items() if item is not True}


def _version(name: str, case: Case, wheels: Mapping[str, str]) -> str | None:
    """The version found; empty where it is not installed, None where nobody says."""
    if "." in name:
        found = case.get(name)
        return None if found is None else str(found)
    complete = (case.receipt.wheels or {}).get("complete") is True
    return wheels.get(_spelling(name), _ABSENT if complete else None)


def _leaf(name: str, case: Case) -> str:
    if "." in name:
        return name
    stated = next((key for key in case.receipt.wheels or {} if _spelling(key) == _spelling(name)), name)
    return f"wheels.{stated}"
