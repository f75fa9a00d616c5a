"""One receipt as the store lists it: the row that the table `receipts`, its exports and its audit follow from.

An annotation says what a column holds: the `Leaf` of the document that it was lifted from, a `Metric` that was computed
from it, or in words what else it is. Indexes, checks and migrations name columns, and do not follow from this.
"""

# Annotations are values here: to evaluate them from texts would cost every start of the program milliseconds.

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Final, NamedTuple, get_args

from receipts.judging.grade import status_for, unspoilt
from receipts.judging.verdict import Status
from receipts.metrics.registry import Taint

# Not null, so that an index passes spoilt launches by, however many they are.
NO_TAINT: Final = Taint.NONE.value


def taint_kinds(text: str) -> tuple[str, ...]:
    """Kinds of metric that the columns `tainted` and `undecided` name."""
    return () if text == NO_TAINT else tuple(text.split(","))


class Leaf(NamedTuple):
    """A leaf of the document. ``by_version``: a registry of the version that read it has a say in it."""

    path: str
    note: str = ""
    unit: str | None = None
    by_version: bool = False


class Metric(NamedTuple):
    """The reading of the metric that has the column's name."""

    comment: str


class Derived(NamedTuple):
    """What formulas of the version that read the document make of it."""

    comment: str


class Entry(NamedTuple):
    """One receipt: the columns of the table `receipts`, and whether it stands.

    Times are in UTC; units are those of the columns' comments. `superseded_by` is the successor's id where the
    receipt no longer stands, and empty where it was retracted.
    """

    seq: Annotated[int, "Number in the order in which the store took receipts in"]
    id: Annotated[str, "SHA-256 of the document as it came, in hex"]
    launch: Annotated[str, Leaf("run.launch", ", the unit of replication")]
    generation: Annotated[
        int, "0 for a launch's first receipt here, 1 for the one after it; two writers cannot both take one"
    ]
    lane: Annotated[str, Leaf("run.lane", ", its first 200 characters")]
    kind: Annotated[str, Leaf("run.kind", ": training, microbench, profile, serving")]
    outcome: Annotated[str, Leaf("run.outcome", ": ok, oom, crash, hang, nan, preempted, unknown")]
    provenance: Annotated[str, Leaf("run.provenance", ": measured, quoted, projected, illustrative")]
    status: Annotated[str, "Status when it was submitted: valid, open, invalid"]
    path_answer: Annotated[str, "Path when it was submitted: witnessed, unwitnessed, left"]
    tainted: Annotated[str, "Kinds of metric that errors spoil by that verdict: all, rate, mfu, …; none"]
    undecided: Annotated[str, "Kinds of metric that open questions are about by that verdict, likewise"]
    schema_version: Annotated[str, "Version of the document"]
    started: Annotated[datetime, Leaf("run.started")]
    finished: Annotated[datetime | None, Leaf("run.finished")]
    submitted_at: Annotated[datetime, "When the store took it in"]
    label: Annotated[str | None, Leaf("run.label")]
    session: Annotated[str | None, Leaf("run.session", ", the launches that were made to answer one question")]
    context: Annotated[str | None, Leaf("run.context", ", the base configuration")]
    host: Annotated[str | None, Leaf("run.host")]
    revision: Annotated[str | None, Leaf("code.commit")]
    supersedes: Annotated[str | None, Leaf("run.supersedes.target", ", the launch or id that it replaces")]
    supersedes_reason: Annotated[str | None, Leaf("run.supersedes.reason")]
    accelerator: Annotated[
        str | None,
        Leaf("hardware.accelerator", ", by its name in the registry, else its first 200 characters", by_version=True),
    ]
    chips: Annotated[int | None, Leaf("hardware.chips", unit="chips")]
    sequence_length: Annotated[int | None, Leaf("batch.sequence_length", ", tokens", "tokens")]
    micro_batch: Annotated[int | None, Leaf("batch.micro_batch", ", sequences", "sequences")]
    global_batch: Annotated[int | None, Leaf("batch.global_batch", ", sequences", "sequences")]
    depth: Annotated[int | None, Leaf("model.depth", ", blocks", "blocks")]
    model: Annotated[str | None, Leaf("model.name")]
    family: Annotated[str | None, Leaf("model.family")]
    tokens_per_second: Annotated[float | None, Metric("Tokens a second over all chips")]
    tokens_per_second_per_chip: Annotated[float | None, Metric("Tokens a second a chip")]
    step_seconds: Annotated[float | None, Metric("Median steady step, or the time stated; seconds")]
    tflops_per_second_per_chip: Annotated[float | None, Metric("TFLOP/s a chip")]
    mfu: Annotated[float | None, Metric("Model FLOPs utilization, a fraction")]
    rate_source: Annotated[str | None, Derived("Where tokens_per_second came from: steps, unsteady, stated, derived")]
    rate_of: Annotated[
        str | None,
        Derived(
            "Which steps tokens_per_second is of, where it comes from them: tokens over the time of 12 of 20 steps"
        ),
    ]
    peak_bytes: Annotated[float | None, Metric("Highest live peak of a chip, bytes")]
    peak_reserved_bytes: Annotated[float | None, Metric("Highest pool of a chip, bytes")]
    compile_seconds: Annotated[float | None, Metric("Compile time, seconds")]
    failure_phase: Annotated[str | None, Leaf("failure.phase")]
    failure_class: Annotated[str | None, Leaf("failure.class")]
    witness_for: Annotated[str | None, Leaf("run.witness_for", ", the launch or id whose path it witnesses")]
    geometry: Annotated[int | None, Derived("Digest of the axes of the model but its depth, and of the accelerator")]
    layout: Annotated[int | None, Derived("Digest of the axes of parallelism but its tuned constants")]
    actor: Annotated[
        str | None, "Who caused it: token, database, ci or user, a colon, a name (receipts/base/environment.py)"
    ]
    superseded_by: str | None = None
    stands: bool = True

    @property
    def name(self) -> str:
        """What to call it in a sentence: its label, else the start of its id."""
        return self.label or self.id[:12]

    def is_sample(self, kind: Taint) -> bool:
        """Whether no offence spoils that kind of metric, by the first verdict."""
        return unspoilt(self.path_answer, taint_kinds(self.tainted), kind)

    @property
    def failure_type(self) -> str:
        """What kind of failure it was: its class, else how the launch ended."""
        return self.failure_class or self.outcome

    @property
    def rate_status(self) -> Status:
        """The status as far as rates go."""
        return status_for(Taint.RATE, self.path_answer, taint_kinds(self.tainted), taint_kinds(self.undecided))


class EntryColumn(NamedTuple):
    """A column of the table. `path` is the leaf's, `unit` what it is counted in where the comment's leaf has one.

    `by_version` says that the registries and formulas of the version that took the receipt in had a say in it.
    """

    name: str
    type: type
    required: bool
    comment: str
    path: str | None = None
    unit: str | None = None
    metric: bool = False
    by_version: bool = False


def _columns() -> Iterator[EntryColumn]:
    for name, hint in Entry.__annotations__.items():
        if not (source := getattr(hint, "__metadata__", None)):
            continue
        (source,) = source
        kind, *null = get_args(hint.__origin__) or (hint.__origin__,)
        column = EntryColumn(name, kind, not null, source if isinstance(source, str) else "")
        if isinstance(source, Leaf):
            path, note, unit, by_version = source
            column = column._replace(comment=path + note, path=path, unit=unit, by_version=by_version)
        elif isinstance(source, Metric | Derived):
            column = column._replace(comment=source.comment, metric=isinstance(source, Metric), by_version=True)
        yield column


ENTRY: Final[Mapping[str, EntryColumn]] = {column.name: column for column in _columns()}
COLUMNS: Final = tuple(ENTRY)
# Column → its path in the document. `list` takes either name.
PATHS: Final[Mapping[str, str]] = {name: column.path for name, column in ENTRY.items() if column.path is not None}
# Columns that hold a metric's reading, by the metric's own name.
METRICS: Final = tuple(name for name, column in ENTRY.items() if column.metric)
