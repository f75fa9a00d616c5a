"""``check``, ``verify`` and ``evidence list``: what the rules say of receipts, and what their evidence still says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

from receipts.api.answer import Answer, Answers
from receipts.api.question import FLAG, Kind, Param, integer, question, unnamed
from receipts.api.questions.compare import AtLeast, Witnesses
from receipts.api.session import Session, documents
from receipts.base.errors import InputError, NotFound, ReceiptsError, UsageError, near, printed
from receipts.base.plugins import service
from receipts.base.units import amount, counted

if TYPE_CHECKING:
    from pathlib import Path

    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.receipt import Parsed
    from receipts.store import Store
    from receipts.workflows.evidence import Verified

# One of several that cannot be read refuses no other.
LENIENT = Kind(document="receipt", gather=list, lenient=True)
Checked = Annotated[Any, Param(LENIENT, "A receipt", metavar="FILE|ID…", many=True, wire="receipt")]
WITNESSES = Witnesses.__metadata__[0]._replace(help="A launch that witnesses one of these (run.witness_for).")


@question(
    "check",
    alone=unnamed,
    costly=True,
    forms=("csv",),
    views={
        "quiet": Param(FLAG, "Print one line for each receipt.", ("--quiet", "-q")),
        "missing": Param(FLAG, "List what is missing, by weight, with what to do about it.", ("--missing",)),
    },
)
def check(
    session: Session, receipts: Checked, *, witnesses: Annotated[Any, WITNESSES] = (), grade: AtLeast = "typed"
) -> Answers:
    """Check receipts against the rules of their lanes, and store nothing.

    Prints all errors of all documents. A profiled launch among them is the witness of the launch that it names. The
    store, if there is one, is also searched for witnesses, successors, earlier failures and sustained shapes.

    Examples:
      receipts check run.json
      receipts check *.json --json
      receipts check run.json --missing
      receipts check run.json --witness profile.json
      receipts check 3f9c

    Findings: E makes a receipt invalid, I leaves a question open, W is a warning; receipts rules CODE explains one.
    Exit codes: 0 valid, 1 invalid, 2 not a receipt, 3 open (path, steps or a needed fact not evidenced).
    """
    from receipts.api.comparison import refuse_strangers
    from receipts.judging.judge import judge_receipt
    from receipts.judging.verdict import verdict_to_json
    from receipts.publish.page import text
    from receipts.publish.verdict import line, page

    given: list[Parsed] = []
    refused: list[str] = []
    for item in receipts:
        try:
            if isinstance(item, ReceiptsError):
                raise item
            given += session.groups([item])[0]
        except (InputError, NotFound) as error:
            refused += printed(error)
    shown_by = [item for group in session.groups(witnesses) for item in group]
    if not refused:
        refuse_strangers(shown_by, given)
    # Where nothing is left to judge, no store is asked, and none need be there.
    named = [item for item in receipts if not isinstance(item, ReceiptsError)]
    store = None if not given else session.known if documents([*named, *witnesses]) else session.store
    lanes, rules = session.rulebook.lanes, session.rulebook.rules
    known = [replace(facts, grade=grade) for facts in _facts(given, shown_by, store)]
    replaced = {name: words for facts in known for name, words in facts.superseded.items()}

    def judged() -> Iterator[Answer]:
        for item, facts in zip(given, known, strict=True):
            yield answer(item, facts)

    def answer(item: Parsed, facts: Facts) -> Answer:
        lane, by = item.receipt.run.lane, replaced.get(item.id)
        held: dict[bool, ReceiptVerdict] = {}

        def verdict(*, prove: bool = False) -> ReceiptVerdict:
            """Judged once: JSON has the proof of each error, which takes longer."""
            if True not in held and prove not in held:
                held[prove] = judge_receipt(item, lanes.of(lane), rules, facts, prove=prove)
            return held[True] if True in held else held[prove]

        def shown(*, quiet: bool = False, missing: bool = False) -> Any:
            if quiet:
                return text(line(verdict(), by))
            undeclared = (lane, near(lane, lanes.names())) if lane not in lanes.names() else None
            return page(verdict(), item.source, missing=missing, undeclared=undeclared, replaced=by)

        def data() -> dict[str, Any]:
            return verdict_to_json(verdict(prove=True))

        return Answer(data, shown, lambda: verdict().exit_code, rows=lambda: data()["findings"])

    return Answers(judged(), lambda done: 2 if refused else worst_code(done), always=refused)


def worst_code(done: Sequence[Answer]) -> int:
    """The exit code of several: what does not hold before what nobody can say."""
    codes = {item.exit_code for item in done}
    return 1 if 1 in codes else max(codes, default=0)


def _facts(given: Sequence[Parsed], witnesses: Sequence[Parsed], store: Store | None) -> list[Facts]:
    """What rules may know of each receipt: what those given say of one another, and a store where there is one."""
    from receipts.judging.facts import Facts

    every = [*given, *witnesses]
    among = replace(Facts.among(every), now=datetime.now(UTC))
    if store is None or not given:
        return [among] * len(given)
    known = [store.query.facts(item) for item in given]
    return [
        replace(
            item,
            superseded={**among.superseded, **item.superseded},
            at_once={**among.at_once, **item.at_once},
            resumed={**among.resumed, **item.resumed},
            replaced={**among.replaced, **item.replaced},
            witnesses=tuple({one.id: one for other in known for one in other.witnesses}.values()),
            sides={name: sides for other in known for name, sides in other.sides.items()},
        ).beside(every)
        for item in known
    ]


Verifying = Annotated[
    Any, Param(Kind(document="receipt", gather=list), "A receipt", metavar="ID|FILE…", many=True, wire="receipt")
]
Evidence = Annotated[
    "Path | None", Param(Kind(path=True), "Files to read.", ("--evidence",), "FILE|FOLDER", local=True)
]
Every = Annotated[bool, Param(FLAG, "Every receipt of the store.", ("--all",), wire="all")]
Jobs = Annotated[
    int | None,
    Param(
        integer(1, 256),
        "With --all: how many processes; of many receipts, one a core.",
        ("--jobs",),
        "N",
        local=True,
        limits=(1, 256),
    ),
]


@question(
    "verify",
    alone=unnamed,
    costly=True,
    forms=("csv",),
    views={"same": Param(FLAG, "Print also what is the same.", ("--verbose", "-v"))},
)
def verify(
    session: Session, receipts: Verifying = (), *, evidence: Evidence = None, every: Every = False, jobs: Jobs = None
) -> Answers:
    """Read the evidence of receipts again: bytes against the id, files against digests, leaves against the readers.

    Examples:
      receipts verify run.json --evidence outputs/
      receipts verify 3f9c
      receipts verify benchmarks/mtp-off.receipt.toml
      receipts verify --all

    same: as the receipt says; other: a file or reader shows something else; missing: no file with that digest is given
    or kept; more: today's readers read a leaf that the receipt does not state. Exit codes: 0 all same, 1 something is
    other, 2 wrong call, 3 a file is missing.
    """
    from receipts.publish.tables import verified
    from receipts.workflows.evidence import by_digest

    if bool(receipts) == every:
        raise UsageError("name receipts, or --all for every receipt of the store")
    files = by_digest(evidence) if evidence is not None else {}

    def answer(item: Verified) -> Answer:
        data = item.as_data()
        rows = [{"receipt": data["receipt"], **check} for check in data["checks"]]
        return Answer(data, lambda same=False: verified(item, opened=same), item.exit_code, rows=rows)

    chosen = _chosen(session, receipts, files, jobs, every=every)
    return Answers(map(answer, chosen), worst_code)


def _chosen(
    session: Session, receipts: Sequence[Any], files: Mapping[str, Path], jobs: int | None, *, every: bool
) -> Iterator[Verified]:
    """The receipts, checked one at a time, each beside the kept files of the store that holds it."""
    from receipts.receipt.load import POINTER
    from receipts.store.evidence import kept_files
    from receipts.workflows.evidence import verify, verify_all

    alone = not every and documents(receipts) and not session.asks_store
    store = None if alone else session.opened(looked_up=receipts)
    if every and store is not None:
        yield from verify_all(store, session.rulebook, files, session.jobs if jobs is None else jobs)
        return
    kept = kept_files(store.database.address) if store is not None else None
    for given in receipts:
        for item in session.groups([given])[0]:
            own = service("pointer", item.source).evidence(item.source) if item.source.endswith(POINTER) else {}
            yield verify(item, session.rulebook.lanes.of(item.receipt.run.lane), {**own, **files}, kept)


@question("evidence list", path="/v1/evidence", costly=True, forms=("csv",))
def evidence_list(session: Session) -> Answer:
    """List every kept file, and how many receipts name it.

    Examples:
      receipts evidence list
    """
    from receipts.publish.page import table_of
    from receipts.store.evidence import kept_files, named_files

    store = session.store
    kept = kept_files(store.database.address)
    files = kept.all() if kept is not None else []
    named = named_files(store) if files else {}
    rows = [{**item._asdict(), "receipts": named.get(item.digest, [])} for item in files]
    cells = ((item.digest[:12], amount(item.size), str(len(named.get(item.digest, ())))) for item in files)
    total = f"{counted(len(files), 'file')}, {amount(sum(item.size for item in files))}"
    return Answer(rows, table_of("", "file | #size | #receipts", cells), notes=(total,), rows=rows)
