"""``claim list``, ``show``, ``check``, ``pending`` and ``footnote``; ``frontier`` and ``impact``: what is published."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from receipts.api.answer import Answer
from receipts.api.question import FLAG, RECEIPT, WORD, Kind, Param, question
from receipts.base.errors import NotFound, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from receipts.api.session import Session
    from receipts.judging.claim import ClaimFile
    from receipts.judging.verdict import ClaimVerdict
    from receipts.questions.claims.stored import Impact
    from receipts.store import Store

NO_CLAIMS = "no claims; add some: receipts claim add FILE"
UPLOAD = Kind(document="claims", gather=list)

Status = Annotated[
    Literal["supported", "refuted", "unproven", "stale"] | None,
    Param(
        Kind({"type": "string", "enum": ["supported", "refuted", "unproven", "stale"]}),
        "Only claims with this verdict.",
        ("--status",),
    ),
]
Superseded = Annotated[bool, Param(FLAG, "Also list superseded and withdrawn claims.", ("--everything",))]
OneClaim = Annotated[str, Param(WORD, "The claim", metavar="ID")]
Files = Annotated[Any, Param(UPLOAD, "A claims.toml", metavar="[FILE]...", many=True, wire="claims")]


@question("claim list", path="/v1/claims", costly=True, forms=("csv",))
def claims(session: Session, *, status: Status = None, superseded: Superseded = False) -> Answer:
    """List the store's claims with their current verdicts.

    Examples:
      receipts claim list
      receipts claim list --status stale
      receipts claim list --everything --json
    """
    from receipts.api.lists import judged_claims
    from receipts.judging.verdict import verdict_to_json
    from receipts.publish.page import table_of

    rows = judged_claims(session.store, session.rulebook, status=status, superseded=superseded)
    cells = (
        (claim.id, claim.kind, "superseded" if gone else verdict.status, claim.text) for claim, verdict, gone in rows
    )
    data = [{**verdict_to_json(verdict), "superseded": end} for _, verdict, end in rows]
    return Answer(data, table_of("", "claim | kind | status | says", cells, empty=NO_CLAIMS), rows=data)


@question("claim show", path="/v1/claims/{claim_id}", costly=True)
def claim_show(session: Session, claim_id: OneClaim) -> Answer:
    """Show one claim: its current and earlier verdicts, and the decisions about its receipts.

    Examples:
      receipts claim show mtp-off
      receipts claim show mtp-off --json
    """
    from receipts.publish.verdict import history as page
    from receipts.questions.claims.stored import history

    past = history(session.store, claim_id, session.rulebook)
    return Answer(past.document, lambda: page(past), past.verdict.exit_code)


@question("claim check", path="/v1/claims/check", costly=True, forms=("csv",))
def claim_check(
    session: Session,
    files: Files = (),
    *,
    every: Annotated[
        bool, Param(FLAG, "Check every claim in the store that is in force.", ("--all",), wire="all", stored=True)
    ] = False,
    only: Annotated[
        Sequence[str], Param(WORD, "Check only this claim; may be repeated.", ("--only",), "ID", many=True)
    ] = (),
    no_replicates: Annotated[
        bool, Param(FLAG, "Do not look for replicates in the store.", ("--no-replicates",))
    ] = False,
    record: Annotated[bool, Param(FLAG, "Store the verdicts.", ("--record",), scope="submit")] = False,
) -> Answer:
    """Check the claims of files, or with --all those of the store.

    Examples:
      receipts claim check claims.toml
      receipts claim check --all --record
      receipts claim check claims.toml --only mtp-off --json

    Exit codes: 0 all are supported, 1 some are refuted, 2 wrong call or input, 3 some are unproven or stale.
    """
    if bool(files) is every:
        raise UsageError("name claims.toml files, or --all for the claims of the store")
    groups, store = claims_of(session, files, every=every, record=record)
    verdicts = judged(session, groups, store, only, replicates=not no_replicates)
    if record and store is not None:
        store.published.record_claims(verdicts)
    missing = sorted(set(only) - {item.claim for item in verdicts})
    if missing:
        raise UsageError(f"--only {missing[0]}: there is no such claim here")
    return together(verdicts, worst(item.status for item in verdicts))


def worst(statuses: Iterable[str]) -> int:
    """The exit code of several verdicts on claims: what does not hold before what nobody can say."""
    known = set(statuses)
    return 1 if "refuted" in known else 3 if known - {"supported"} else 0


def claims_of(
    session: Session, files: Sequence[ClaimFile], *, every: bool, record: bool = False
) -> tuple[list[ClaimFile], Store | None]:
    """The claims that were asked for, and the store where it is needed: some word of a claim is no file."""
    from receipts.questions.claims.judgment import is_file, stored

    words = [word for group in files for claim in group.claims for word in (*claim.baseline, *claim.candidate)]
    at_home = all(group.folder is not None for group in files)  # a server reads no files
    if not every and not record and at_home and all(is_file(word) for word in words):
        return list(files), None
    return [stored(session.store)] if every else list(files), session.store


def judged(
    session: Session,
    groups: Iterable[ClaimFile],
    store: Store | None,
    only: Collection[str] = (),
    *,
    replicates: bool = True,
) -> list[ClaimVerdict]:
    """The verdicts on the claims of files: on all, or on those of some names."""
    from receipts.questions.claims.judgment import verdict_on

    return [
        verdict_on(claim, session.rulebook, store, group.folder, replicates=replicates)
        for group in groups
        for claim in group.claims
        if not only or claim.id in only
    ]


def together(verdicts: list[ClaimVerdict], code: int, notes: tuple[str, ...] = ()) -> Answer:
    """Several verdicts as one answer."""
    from receipts.judging.verdict import verdict_to_json
    from receipts.publish.verdict import together as page

    data = [verdict_to_json(item) for item in verdicts]
    return Answer(data, lambda: page(verdicts), code, notes, rows=data)


@question("claim pending", costly=True, forms=("csv",))
def claim_pending(session: Session, files: Files = ()) -> Answer:
    """List the wins that wait for their retest at the target shape: those of the store, or of files.

    Examples:
      receipts claim pending
      receipts claim pending claims.toml --json

    A win that was measured at a small shape is listed until both sides have run at the target.
    """
    from receipts.publish.page import table_of
    from receipts.questions.claims.judgment import waits

    verdicts = judged(session, *claims_of(session, files, every=not files))
    rules = session.rulebook.rules
    waiting = [item for item in verdicts if waits(item, rules) and item.at_target is False]
    data = [{"claim": item.claim, "text": item.text, "target": item.target} for item in waiting]
    cells = ((item.claim, item.target or "", item.text) for item in waiting)
    shown = table_of("", "claim | to be shown at | says", cells, empty="no win waits for its retest")
    return Answer(data, shown, rows=data)


@question("claim footnote", costly=True)
def claim_footnote(
    session: Session,
    claim_id: OneClaim,
    *,
    file: Annotated[
        Any,
        Param(
            Kind(document="claims"), "Read the claim from this claims.toml, not from the store.", ("--file",), "FILE"
        ),
    ] = None,
) -> Answer:
    """Write the footnote of a claim: differences, waivers, sample sizes, interval, rule set.

    Examples:
      receipts claim footnote mtp-off
      receipts claim footnote mtp-off --file claims.toml
    """
    from receipts.judging.verdict import verdict_to_json
    from receipts.questions.claims.wording import footnote as written

    groups, store = claims_of(session, [file] if file is not None else [], every=file is None)
    verdict = next(iter(judged(session, groups, store, [claim_id])), None)
    if verdict is None:
        raise NotFound(f"there is no current claim {claim_id!r}; see: receipts claim list --everything")
    decided = store.published.decisions([*verdict.baseline, *verdict.candidate]) if store is not None else []
    text = written(verdict, decided)
    data = {"footnote": text, "verdict": verdict_to_json(verdict)}
    return Answer(data, text.rstrip("\n"), verdict.exit_code)


@question("frontier", costly=True, forms=("csv",))
def frontier(
    session: Session,
    lanes: Annotated[Sequence[str], Param(WORD, "Only this lane", ("--lane",), many=True, wire="lane")] = (),
) -> Answer:
    """List the best proven result of every shape of a lane, beside the best that is merely reported.

    Examples:
      receipts frontier
      receipts frontier --lane nvidia-megatron

    A shape is a model, a sequence length, an accelerator and a number of chips. Exit codes: 0, 2 for an unknown lane.
    """
    from receipts.api.lists import frontier, frontier_page

    rows = frontier(session.store, session.rulebook, lanes)
    return Answer(rows, lambda: frontier_page(rows, session.rulebook.rules), rows=rows)


Places = Annotated[
    "Sequence[Path]",
    Param(
        Kind(path=True, gather=list),
        "Also search this file or folder for its id.",
        ("--in",),
        "PATH",
        many=True,
        local=True,
    ),
]


@question("impact", costly=True)
def impact(
    session: Session, receipt: Annotated[Any, Param(RECEIPT, "The receipt", metavar="ID")], *, places: Places = ()
) -> Answer:
    """List the claims and documents that depend on a receipt. They go stale with the receipt.

    Examples:
      receipts impact 3f9c
      receipts impact @golden --json
      receipts impact 3f9c --in docs --in README.md

    Documents are those that claims name under quoted_in, reports written from this store, and what --in finds. Exit
    codes: 0 the receipt is in force, or nothing quotes it; 3 it is superseded or retracted, and what is listed is
    stale.
    """
    from receipts.publish.verdict import impacted as page
    from receipts.questions.claims.stored import impact

    store = session.store
    name = store.resolve(receipt if isinstance(receipt, str) else receipt.id)
    impacts = impact(store, name, list(places))
    return Answer(lambda: _impact_data(impacts), lambda: page(impacts), 3 if impacts.stale else 0)


def _impact_data(impact: Impact) -> dict[str, object]:
    superseded = impact.superseded
    return {
        "receipt": impact.receipt,
        "superseded": {"by": superseded[0] or None, "reason": superseded[1]} if superseded else None,
        "stale": impact.stale,
        "claims": [
            {"id": claim.id, "text": claim.text, "quoted_in": list(claim.quoted_in)} for _, claim in impact.claims
        ],
        "documents": list(impact.documents),
        "quotes": [item._asdict() for item in impact.quotes],
        "decisions": [item._asdict() for item in impact.decisions],
    }
