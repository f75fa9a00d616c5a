"""How far the product and a careful person agree on a lab's published claims.

    python benchmarks/lab_agreement.py --cases DIR [--mapping FILE] [--json]

DIR holds ``runs.json`` and ``claims.json``. The runs are imported by the mapping; the pair of every claim with two runs
is compared on its metric by `receipts.judging.comparison.compare`, all with the same options. Printed are the table
*person × product*, the shares that the bars speak of, and every disagreement with both reasons; then the same claims as
claims, with their verdicts (``lab_claims.py``). Exit 0 when every bar holds, 1 when one does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# The other halves lie beside this file, however it runs. Last, and never first: statistics.py lies here as well.
sys.path[:] = [*(place for place in sys.path if Path(place or ".").resolve() != HERE), str(HERE)]

from lab_arithmetic import Check, checks
from lab_claims import Published, claim_figures, print_claims, publish
from lab_names import METRICS, renamed

from receipts.base.errors import UsageError
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison, Finding, Level, Question
from receipts.metrics import Launch
from receipts.metrics import get as get_metric
from receipts.plugins.exchange.notebook import ImportedTable, import_file
from receipts.receipt import Parsed

STUDY = "fixed-accumulation"
# The person rejects for a second change that the records do not state: they show one axis, or none.
NOT_IN_RECORD = ("one_axis", "no_stated_difference")
DERIVED = ("parallelism.data", "batch.accumulation", "model.parameters_active", "model.parameters_total", "data.kind")
SHARES = (
    "false_accepts",
    "false_rejects",
    "undecided",
    "decided_agree",
    "decided_as_labelled_agree",
    "axes_agree",
    "arithmetic_agree",
)
BARS = {"false_accepts": 0.02, "false_rejects": 0.08, "undecided": 0.35}
FLOORS = {"decided_agree": 0.95, "arithmetic_agree": 0.98}
CLAIMS_FLOOR = 0.90


@dataclass(frozen=True, slots=True)
class Judged:
    """One claim with the person's verdict and the product's."""

    claim: Mapping[str, Any]
    metric: str
    verdict: Comparison
    arithmetic: tuple[Check, ...]
    published: Published

    @property
    def accepted(self) -> bool:
        """What the person says."""
        return bool(self.claim["strict_one_axis"]["accept"])

    @property
    def mechanical(self) -> str:
        """What the records alone show, by the claim."""
        return str(self.claim["strict_one_axis"].get("mechanical_from_records"))

    @property
    def not_in_record(self) -> bool:
        """Whether the person rejects for what no record states."""
        return not self.accepted and self.mechanical in NOT_IN_RECORD

    @property
    def decided_as_labelled(self) -> bool:
        """Whether the records alone decide the question, and as the person did, by the claim's own count of axes."""
        return self.mechanical == ("one_axis" if self.accepted else "multi_axis")

    @property
    def decided(self) -> bool:
        """The same by the product's axes: a host is a block and never counted, and all wheels are one axis."""
        listed = self.claim["axes"]
        axes = {
            renamed(name).partition(".")[0] if name.startswith("wheels.") else renamed(name)
            for name in listed["stated_and_different"]
        }
        aside = {renamed(name) for name in listed.get("derived") or ()} if self.accepted else set()
        several = len(axes - aside - {*DERIVED, "run.host"}) > 1
        return self.decided_as_labelled and several is not self.accepted

    @property
    def agrees(self) -> bool:
        """Whether both say the same, without doubt."""
        return self.verdict.comparable == ("yes" if self.accepted else "no")

    @property
    def reasons(self) -> tuple[Finding, ...]:
        """The product's reasons: errors, else what is open."""
        asked = [item for item in self.verdict.findings if item.subject == "pair" or item.code.startswith("C")]
        asked = [item for item in asked if item.question is Question.COMPARABLE]
        wanted = Level.ERROR if self.verdict.comparable == "no" else Level.OPEN
        return tuple(item for item in asked if item.level is wanted)

    @property
    def axes_agree(self) -> bool:
        """Whether the counted axes are those that the claim lists; derived, coupled ones and places aside."""
        listed = self.claim["axes"]
        aside = {renamed(name) for name in listed.get("derived") or ()} | {*DERIVED, "run.host"}
        aside |= {renamed(name) for name, _ in self.verdict.uncounted}
        person = {renamed(name) for name in listed["stated_and_different"]} - aside
        product = {renamed(name) for name in self.verdict.difference.axes} - aside
        return person == product


def judge(cases: Path, mapping: Path) -> tuple[list[Judged], ImportedTable, list[str]]:
    """Import the runs and compare the pair of every claim that has two.

    The last part names claims one of whose rows did not become a receipt: nothing can be asked of them.
    """
    imported = import_file(cases / "runs.json", mapping)
    runs = {str(made.row.at("id")): made.parsed for made in imported.receipts}
    claims = json.loads((cases / "claims.json").read_text())
    rulebook = Rulebook()
    wanted = [item for item in claims if item.get("a") and item.get("b")]
    wanted = [item for item in wanted if (item.get("strict_one_axis") or {}).get("accept") is not None]
    lacking = [item for item in wanted if item["a"] not in runs or item["b"] not in runs]
    if lacking and not imported.refused:
        names = sorted({item[side] for item in lacking for side in ("a", "b")} - set(runs))
        raise UsageError(f"claims name runs that runs.json does not hold: {', '.join(names)}")
    judged = [_judged(item, runs[item["a"]], runs[item["b"]], rulebook) for item in wanted if item not in lacking]
    return judged, imported, [str(item["id"]) for item in lacking]


def _judged(claim: Mapping[str, Any], a: Parsed, b: Parsed, rulebook: Rulebook) -> Judged:
    sides = [Launch(parsed, rulebook.lanes.of(parsed.receipt.run.lane)) for parsed in (a, b)]
    metric = _metric(claim["metric"], sides)
    verdict = compare([b], [a], rulebook, Request(metric=metric, study=STUDY, facts=Facts()))
    published = publish(claim, metric, a, b, STUDY, rulebook)
    return Judged(claim, metric, verdict, tuple(checks(claim, sides[0], sides[1], metric)), published)


def _metric(name: str, sides: Sequence[Launch]) -> str:
    """The metric to compare on: the claim's own, as far as the records hold it.

    Where a side ended badly before it had the figure, the claim is about the outcome. Where neither record holds it,
    or the product has no such metric, it is asked only whether the two are one experiment.
    """
    metric = METRICS.get(name, "experiment")
    if get_metric(metric).summary == "outcome":
        return metric
    lacking = [side for side in sides if side.read(get_metric(metric)).value is None]
    if any(side.stated["run.outcome"] != "ok" for side in lacking):
        return "outcome"
    return "experiment" if len(lacking) == len(sides) else metric


def summary(judged: Sequence[Judged], without_pair: int = 0) -> dict[str, Any]:
    """The figures that the bars speak of; shares are fractions of the claims that they are over."""
    rejected = [item for item in judged if not item.accepted and not item.not_in_record]
    accepted = [item for item in judged if item.accepted]
    decided = [item for item in judged if item.decided]
    labelled = [item for item in judged if item.decided_as_labelled]
    figures = [check for item in judged for check in item.arithmetic]
    undecided = [item for item in accepted if item.verdict.comparable == "unknown"]
    return {
        "n": len(judged),
        "false_accepts": _share([item.verdict.comparable == "yes" for item in rejected]),
        "false_rejects": _share([item.verdict.comparable == "no" for item in accepted]),
        "undecided": _share([item.verdict.comparable == "unknown" for item in accepted]),
        "undecided_unnamed": sum(not item.reasons for item in undecided),
        "decided_agree": _share([item.agrees for item in decided]),
        "decided_as_labelled_agree": _share([item.agrees for item in labelled]),
        "axes_agree": _share([item.axes_agree for item in judged]),
        "arithmetic_agree": _share([check.agrees for check in figures]),
        "counts": {
            "accepted_by_person": len(accepted),
            "rejected_by_person": len(rejected),
            "not_in_record": sum(item.not_in_record for item in judged),
            "decided_by_records": len(decided),
            "decided_as_labelled": len(labelled),
            "arithmetic": len(figures),
        },
        "table": {f"{person} {product}": count for (person, product), count in sorted(_table(judged).items())},
        "metrics": dict(sorted(Counter(item.metric for item in judged).items())),
        "study": STUDY,
        "study_held_in": sum(_by_study(item) for item in judged),
        "arithmetic_disagreements": [
            {"claim": item.claim, "figure": item.figure, "recorded": item.recorded, "found": item.found}
            for item in figures
            if not item.agrees
        ],
        "axes_disagreements": [_axes_entry(item) for item in judged if not item.axes_agree],
        "not_in_record": [_entry(item) for item in judged if item.not_in_record],
        "disagreements": [_entry(item) for item in judged if not item.agrees and not item.not_in_record],
        "claims": claim_figures([item.published for item in judged], without_pair),
    }


def _share(flags: Sequence[bool]) -> float:
    return round(sum(flags) / len(flags), 4) if flags else 0.0


def _table(judged: Iterable[Judged]) -> Counter[tuple[str, str]]:
    def person(item: Judged) -> str:
        return "accept" if item.accepted else "not in record" if item.not_in_record else "reject"

    return Counter((person(item), item.verdict.comparable) for item in judged)


def _by_study(item: Judged) -> bool:
    return any(STUDY in why for _, why in item.verdict.uncounted)


def _entry(item: Judged) -> dict[str, Any]:
    return {
        "claim": item.claim["id"],
        "a": item.claim["a"],
        "b": item.claim["b"],
        "metric": item.metric,
        "person": "accept" if item.accepted else "reject",
        "person_reason": item.claim["strict_one_axis"].get("reason"),
        "mechanical_from_records": item.mechanical,
        "product": item.verdict.comparable,
        "product_reasons": [f"{found.code} {found.at}: {found.found}" for found in item.reasons],
    }


def _axes_entry(item: Judged) -> dict[str, Any]:
    return {
        "claim": item.claim["id"],
        "person": item.claim["axes"]["stated_and_different"],
        "product": list(item.verdict.difference.axes),
    }


def broken_bars(found: Mapping[str, Any]) -> list[str]:
    """Every bar that does not hold, in a sentence."""
    over = [f"{name} is {found[name]:.1%}, above {bar:.0%}" for name, bar in BARS.items() if found[name] > bar]
    under = [f"{name} is {found[name]:.1%}, below {bar:.0%}" for name, bar in FLOORS.items() if found[name] < bar]
    claims = found["claims"]
    if claims["agree"] < CLAIMS_FLOOR:
        under.append(f"claims agree in {claims['agree']:.1%}, below {CLAIMS_FLOOR:.0%}")
    if claims["falsely_supported"]:
        over.append(f"{claims['falsely_supported']} claims supported by stated numbers")
    unnamed = [f"{found['undecided_unnamed']} undecided without a named fact"] if found["undecided_unnamed"] else []
    return over + under + unnamed


def print_summary(found: Mapping[str, Any], imported: ImportedTable) -> None:
    """The table, the shares, and every disagreement with both reasons."""
    print(
        f"{len(imported.receipts)} receipts, {len(imported.refused)} rows refused, {len(imported.unread)} values unread"
    )
    print(f"{found['n']} claims with two runs; study {STUDY} asked for on each, holds in {found['study_held_in']}")
    print("compared on " + ", ".join(f"{name} {count}" for name, count in found["metrics"].items()) + "\n")
    print(f"{'person':<15}{'yes':>9}{'unknown':>9}{'no':>9}")
    for person in ("accept", "reject", "not in record"):
        cells = [found["table"].get(f"{person} {product}", 0) for product in ("yes", "unknown", "no")]
        print(f"{person:<15}" + "".join(f"{cell:>9}" for cell in cells))
    print()
    for name in SHARES:
        bar = f"   bar ≤ {BARS[name]:.0%}" if name in BARS else f"   bar ≥ {FLOORS[name]:.0%}" if name in FLOORS else ""
        print(f"{name:<27}{found[name]:>8.1%}{bar}")
    for entry in found["disagreements"]:
        print(f"\n{entry['claim']} {entry['a']} against {entry['b']} on {entry['metric']}")
        print(f"  person {entry['person']} ({entry['mechanical_from_records']}): {entry['person_reason']}")
        print(f"  product {entry['product']}:")
        for reason in shortened(entry["product_reasons"]):
            print(f"    {reason}")
    for refusal in imported.refused:
        print(f"\n{refusal.where} is no receipt: {'; '.join(map(str, refusal.problems))}")
    if found["not_imported"]:
        print(f"\nclaims on such rows: {', '.join(found['not_imported'])}")
    print_claims(found["claims"], CLAIMS_FLOOR)
    for check in found["arithmetic_disagreements"]:
        print(f"\n{check['claim']} {check['figure']}: the record says {check['recorded']}, found {check['found']}")


def shortened(reasons: Sequence[str]) -> Iterable[str]:
    """Reasons for the eye: the many unstated axes in one line, the others as they are."""
    unstated = [item.split(": ")[0].removeprefix("C102 ") for item in reasons if item.startswith("C102")]
    if unstated:
        yield f"C102 not stated as it must be: {', '.join(unstated)}"
    yield from dict.fromkeys(item for item in reasons if not item.startswith("C102"))


def main(words: Sequence[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Agreement with a careful person on a lab's claims.")
    parser.add_argument("--cases", type=Path, required=True, help="folder with runs.json and claims.json")
    parser.add_argument("--mapping", type=Path, default=ROOT / "examples" / "lab" / "mapping.toml")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    asked = parser.parse_args(words)
    judged, imported, lacking = judge(asked.cases, asked.mapping)
    held = len(json.loads((asked.cases / "claims.json").read_text()))
    found = {**summary(judged, held - len(judged)), "not_imported": lacking}
    if asked.json:
        json.dump(found, sys.stdout, indent=1, ensure_ascii=False)
        print()
    else:
        print_summary(found, imported)
    broken = broken_bars(found)
    for sentence in broken:
        print(sentence, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
