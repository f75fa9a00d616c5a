"""The lab's claims as claims: the product's verdict on each, beside the person's.

The person's verdict follows from two fields of the record, by one rule:

*refuted*   the person rejects the pair, and the records show why: they differ in several axes
            (``strict_one_axis.accept`` false, ``mechanical_from_records`` ``multi_axis``)
*unproven*  otherwise. No row kept its steps, so that what the person accepts stands as stated and no better; what the
            person rejects for a reason that stands in no record, the records can at most leave open
*supported* never: it takes measured launches

Beside it stands the stricter count *as said*: the person's rejection is *refuted* wherever its reason came from.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from receipts.judging.claim import claim_from_json
from receipts.judging.facts import Facts
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import ClaimVerdict
from receipts.questions.claims.judgment import ClaimEvidence, judge
from receipts.receipt import Parsed

# One signed percentage and nothing beside it, or such a one in brackets behind the two numbers.
_PERCENT = re.compile(r"(?:[^%]*\()?\s*(?P<change>[+\-−]\s?\d+(?:\.\d+)?)\s*%(?:\)|\s*\([^%]*\))?\s*")
# A record that states no single percentage is held to its comparability alone: any change will do.
ANY_CHANGE = "at least 0.0001"
SEVERAL = ("C101", "C103")  # many axes changed; other work


@dataclass(frozen=True, slots=True)
class Published:
    """One of the lab's claims with both verdicts."""

    record: Mapping[str, Any]
    verdict: ClaimVerdict

    @property
    def person(self) -> str:
        """The person's verdict, by the rule above."""
        asked = self.record["strict_one_axis"]
        several = asked.get("mechanical_from_records") == "multi_axis"
        return "refuted" if several and not asked["accept"] else "unproven"

    @property
    def as_said(self) -> str:
        """The person's verdict wherever its reason came from."""
        return "unproven" if self.record["strict_one_axis"]["accept"] else "refuted"

    @property
    def agrees(self) -> bool:
        """Whether both say the same."""
        return self.person == self.verdict.status

    @property
    def same_reason(self) -> bool:
        """Whether the product, too, refutes it for a second change."""
        return any(reason.startswith(SEVERAL) for reason in self.verdict.reasons)


def publish(record: Mapping[str, Any], metric: str, a: Parsed, b: Parsed, study: str, rulebook: Rulebook) -> Published:
    """Judge a record as a claim of A over B: its stated change and metric, and nothing of what the person concluded."""
    change = _PERCENT.fullmatch(record.get("stated_change") or "")
    stated = {
        "id": record["id"],
        "text": record.get("text") or record["id"],
        "kind": "speedup",
        "baseline": [record["b"]],
        "candidate": [record["a"]],
        "metric": metric,
        "effect": f"{change['change'].replace(' ', '')} %" if change else ANY_CHANGE,
        "study": study,
    }
    claim = claim_from_json(json.dumps(stated), record["id"])
    return Published(record, judge(claim, ClaimEvidence((b,), (a,), Facts()), rulebook))


def claim_figures(published: Sequence[Published], without_pair: int) -> dict[str, Any]:
    """Shares and counts, and every disagreement with both reasons."""
    both = [item for item in published if item.person == item.verdict.status == "refuted"]
    with_number = [item for item in published if item.verdict.effect != ANY_CHANGE]
    return {
        "n": len(published),
        "without_pair": without_pair,
        "with_number": len(with_number),
        "agree": _share([item.agrees for item in published]),
        "as_said_agree": _share([item.as_said == item.verdict.status for item in published]),
        "reasons_agree": _share([item.same_reason for item in both]),
        "falsely_supported": sum(item.verdict.status == "supported" for item in published),
        "table": dict(sorted(Counter(f"{item.person} {item.verdict.status}" for item in published).items())),
        "overstated": [_overstated(item) for item in published if _codes(item, "K103")],
        "disagreements": [_entry(item) for item in published if not item.agrees],
    }


def _share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / len(flags), 4) if flags else 0.0


def _codes(item: Published, code: str) -> list[str]:
    return [found.found for found in item.verdict.findings if found.code == code]


def _overstated(item: Published) -> dict[str, Any]:
    return {
        "claim": item.record["id"],
        "stated": item.record.get("stated_change"),
        "found": _codes(item, "K103")[0],
        "person": item.record["arithmetic"].get("notes"),
    }


def _entry(item: Published) -> dict[str, Any]:
    asked = item.record["strict_one_axis"]
    return {
        "claim": item.record["id"],
        "metric": item.verdict.metric,
        "person": item.person,
        "as_said": item.as_said,
        "person_reason": asked.get("reason"),
        "mechanical_from_records": asked.get("mechanical_from_records"),
        "person_would_say": item.record.get("validator_should_say"),
        "product": item.verdict.status,
        "product_reasons": list(item.verdict.reasons),
    }


def print_claims(found: Mapping[str, Any], floor: float) -> None:
    """The table, the shares, and every disagreement."""
    print(f"\nas claims: {found['n']} judged, {found['with_number']} of them with a number of their own")
    print(f"{'person':<15}{'supported':>11}{'unproven':>11}{'refuted':>11}")
    for person in ("unproven", "refuted"):
        cells = [found["table"].get(f"{person} {status}", 0) for status in ("supported", "unproven", "refuted")]
        print(f"{person:<15}" + "".join(f"{cell:>11}" for cell in cells))
    print(f"{'claims agree':<27}{found['agree']:>8.1%}   bar ≥ {floor:.0%}")
    print(f"{'as said':<27}{found['as_said_agree']:>8.1%}")
    print(f"{'reasons agree':<27}{found['reasons_agree']:>8.1%}")
    for entry in found["disagreements"]:
        print(f"\n{entry['claim']} on {entry['metric']}: person {entry['person']}, product {entry['product']}")
        print(f"  person ({entry['mechanical_from_records']}): {entry['person_reason']}")
        for reason in entry["product_reasons"][:4]:
            print(f"  product: {reason}")
    for entry in found["overstated"]:
        print(f"\n{entry['claim']} overstated: {entry['stated']}; {entry['found']}")
