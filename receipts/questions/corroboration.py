"""Who vouches for a stored receipt: by whom it is signed, and who reproduced its result.

A result was reproduced where launches of its configuration by another actor, or on another host, agree with it. They
agree where the 90 % interval of their ratio lies within the equivalence margin, as in two one-sided tests. That one
group ran after the other, which leaves an effect unproven, takes nothing from that: their runs are independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from receipts import metrics
from receipts.base.environment import same_principal
from receipts.base.errors import UsageError
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.questions.comparisons import Comparisons
    from receipts.store import Store
    from receipts.store.entry import Entry
    from receipts.store.query.replicates import AlikeLaunch


SignatureState = Literal["signed", "unsigned", "bad", "unchecked"]


class Signer(NamedTuple):
    """Whether a receipt is signed, by whom, and what is wrong where its state is ``bad`` or ``unchecked``."""

    state: SignatureState
    name: str = ""
    why: str = ""

    def __str__(self) -> str:
        if self.state == "signed":
            return f"signed by {self.name}" + (f" ({self.why})" if self.why else "")
        return {"unsigned": "unsigned", "bad": f"bad signature: {self.why}", "unchecked": f"signed, {self.why}"}[
            self.state
        ]


def signer(store: Store, parsed: Parsed) -> Signer | None:
    """By whom a receipt is signed; None where the store trusts no key and the receipt has no signature.

    A signature counts by what held of its key when it came: a later end or revocation is named and takes nothing away.
    """
    from receipts.signing.key import RECEIPT, encoded

    kept, keys = store.signing.of(parsed.id), {item.key.fingerprint: item for item in store.signing.every_key()}
    if not kept:
        return Signer("unsigned") if keys else None
    names, notes = [], []
    for item in kept:
        known = keys.get(item.signature.key)
        if known is None:
            return Signer("bad", why=f"no key {item.signature.key} was ever trusted")
        try:
            holds = known.key.verifies(item.signature.value, encoded(RECEIPT, parsed.raw))
        except UsageError as error:
            return Signer("unchecked", why=str(error))
        why = known.refusal(parsed.receipt.run.lane, item.at) if holds else f"it is not of the key of {known.name}"
        if why:
            return Signer("bad", why=why)
        names.append(known.name)
        notes += [f"revoked since: {known.revoked}"] if known.revoked is not None else []
    return Signer("signed", " and ".join(names), "; ".join(notes))


class Reproduced(NamedTuple):
    """How many launches agree with a result, on which other hosts, and which other actors submitted them."""

    launches: int
    hosts: tuple[str, ...]
    actors: tuple[str, ...]

    def __str__(self) -> str:
        places = [*(f"on {name}" for name in self.hosts), *(f"by {name}" for name in self.actors)]
        return f"reproduced {', '.join(places)} ({self.launches} launch{'' if self.launches == 1 else 'es'})"


def reproduced(comparisons: Comparisons, store: Store, one: Parsed, metric: str = metrics.DEFAULT) -> Reproduced | None:
    """Who reproduced a stored receipt's value of a metric, by comparisons in its store; None where nobody did."""
    from receipts.store.query.reports import ReportQueries

    head = store.entry(one.id)
    pool = comparisons.pool([one], join="all", few=lambda row: _elsewhere(row, head))
    rows = {row.id: row for row in ReportQueries(store.database).entries([item.id for item in pool])}
    others = [item for item in pool if _elsewhere(rows[item.id], head)]
    if not others:
        return None
    own = [item for item in pool if not _elsewhere(rows[item.id], head)]
    try:
        verdict = comparisons.compare(own, others, metric, named=(), join="only")
    except UsageError:
        return None
    result = next((item.effect for item in verdict.results if item.metric == metric), None)
    if verdict.comparable != "yes" or verdict.path == "left" or result is None:
        return None
    low, high = result.low90, result.high90
    if low is None or high is None or low < 1 - result.delta or high > 1 + result.delta:
        return None
    agreeing = [rows[name] for name in verdict.b]
    hosts = sorted({row.host for row in agreeing if row.host} - {head.host})
    actors = sorted({row.actor for row in agreeing if row.actor and not same_principal(row.actor, head.actor)})
    return Reproduced(len(agreeing), tuple(map(str, hosts)), tuple(actors))


def _elsewhere(row: Entry | AlikeLaunch, head: Entry) -> bool:
    """Whether another host ran it, or another actor submitted it."""
    hosts = None not in (row.host, head.host) and row.host != head.host
    return hosts or not same_principal(row.actor, head.actor)
