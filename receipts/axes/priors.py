"""Spreads between launches that others published: a lane may name one meanwhile, and a verdict says whose it is."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from receipts.base.errors import NotFound, near
from receipts.base.resources import folder
from receipts.base.toml import parse_toml


class Prior(NamedTuple):
    """σ of a launch's log step time, pooled over submissions; ``df`` its degrees of freedom."""

    name: str
    sigma: float
    df: float
    launches: int
    submissions: int


@cache
def priors() -> dict[str, Prior]:
    """The priors that ship, by name in lower case. `benchmarks/published_noise.py` writes them."""
    table = parse_toml((folder("validators") / "priors.toml").read_bytes())
    listed = [Prior(**item) for item in table.get("prior", ())]
    return {item.name.lower(): item for item in listed}


def prior(name: str) -> Prior:
    """The prior of that name. Raises NotFound with the nearest names."""
    known = priors()
    item = known.get(" ".join(name.lower().split()))
    if item is None:
        names = [one.name for one in known.values()]
        raise NotFound(f"there is no published spread {name!r}; docs/published-noise.md lists them{near(name, names)}")
    return item
